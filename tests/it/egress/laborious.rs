//! Bodies that are long to decode and come to nothing, and what becomes of them.

use std::time::Duration;

use serde_json::json;

use super::{fetch, outcome, start};

/// As large as a body may be on its way.
const BODY_BYTES: usize = 15 << 20;
/// What may be used after nobody waits any more: the piece that is under way, and what else the process does.
const LEFT_OVER_MAX: Duration = Duration::from_millis(200);

/// A body of the coding, made of as many small blocks as fit.
pub(super) fn body(coding: &str) -> Vec<u8> {
    match coding {
        "deflate" => deflate(),
        _ => zstd(),
    }
}

/// Blocks with codes of their own and nothing but their end, 90 bits each (RFC 1951, 3.2.7).
fn deflate() -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::new();
    let mut number =
        |value: u32, count: u32| bits.extend((0..count).map(|bit| value >> bit & 1 == 1));
    // Eight blocks end where a byte does.
    for _ in 0..8 {
        number(0b100, 3);
        // 257 codes for literals and the end, one for distances, 18 lengths of codes for these.
        [(0, 5), (0, 5), (14, 4)]
            .into_iter()
            .for_each(|(value, count)| number(value, count));
        // In the order 16, 17, 18, 0, 8, ...: codes of one bit for 18 (many zeros) and 1.
        for place in 0..18 {
            number(u32::from(place == 2 || place == 17), 3);
        }
        // 138 and 118 zeros, then a code of one bit for the end, and one for a distance.
        [(1, 1), (127, 7), (1, 1), (107, 7), (0, 1), (0, 1)]
            .into_iter()
            .for_each(|(value, count)| number(value, count));
        number(0, 1);
    }
    let byte = |bits: &[bool]| {
        bits.iter()
            .enumerate()
            .fold(0, |byte, (place, bit)| byte | u8::from(*bit) << place)
    };
    let blocks: Vec<u8> = bits.chunks(8).map(byte).collect();
    blocks.repeat(BODY_BYTES / blocks.len())
}

/// The compressed block of a short text again and again, in one frame (RFC 8878, 3.1.1).
fn zstd() -> Vec<u8> {
    let text: Vec<u8> = (0..200_u32)
        .map(|n| b"etaoin shrdlu"[usize::try_from(n * n * 7 % 13).expect("small")])
        .collect();
    let frame = ruzstd::encoding::compress_to_vec(
        text.as_slice(),
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    // Behind the magic number and the descriptor stand a window or a size, as the descriptor says.
    let descriptor = frame[4];
    let sizes = [usize::from(descriptor & 0x20 != 0), 2, 4, 8][usize::from(descriptor >> 6)];
    let first = 5 + usize::from(descriptor & 0x20 == 0) + sizes;
    let head = u32::from_le_bytes([frame[first], frame[first + 1], frame[first + 2], 0]);
    let length = usize::try_from(head >> 3).expect("short");
    let block = [
        &(head & !1).to_le_bytes()[..3],
        &frame[first + 3..first + 3 + length],
    ]
    .concat();
    // No checksum, a window of 1 MiB; and an empty block as the last.
    let start = [0x28, 0xb5, 0x2f, 0xfd, 0, 10 << 3];
    [
        &start[..],
        &block.repeat(BODY_BYTES / block.len()),
        &[1, 0, 0],
    ]
    .concat()
}

#[tokio::test]
async fn decoding_is_given_up_when_it_takes_too_long() {
    let service = start().await;
    let input = json!({ "url": "http://site.test/laborious?deflate", "response_bytes": 16 << 20, "total_ms": 60_000 });
    let told = fetch(&service, input).await;
    let rule = "decoding the body takes more than 1s of processor time";
    assert_eq!(
        (&told["outcome"], &told["told"]),
        (&json!("bad_response"), &json!(rule)),
        "{told}"
    );
}

#[tokio::test]
async fn decoding_ends_with_the_request_that_it_is_for() {
    let service = start().await;
    for coding in ["deflate", "zstd"] {
        let url = format!("http://site.test/laborious?{coding}");
        // Long enough for the body to come, and too short to decode it.
        let mut total_ms = 100;
        loop {
            let told = outcome(
                &service,
                json!({ "url": url, "response_bytes": 16 << 20, "total_ms": total_ms }),
            )
            .await;
            if told != "total_late" {
                break;
            }
            let before = service.processor_time();
            // Nothing else is asked for meanwhile.
            assert_eq!(
                outcome(
                    &service,
                    json!({ "url": "http://site.test/silent", "total_ms": 800 })
                )
                .await,
                "total_late"
            );
            let left_over = service.processor_time() - before;
            assert!(
                left_over <= LEFT_OVER_MAX,
                "{coding} after {total_ms} ms: {left_over:?}"
            );
            total_ms *= 2;
        }
    }
}
