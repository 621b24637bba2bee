//! What `overhead` promises, case by case.

use arbtest::arbitrary::Unstructured;
use arbtest::arbtest;

use super::*;

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len())
        .expect("a short frame")
        .to_be_bytes();
    [&length[1..], &[kind, 0, 0, 0, 0, 1], payload].concat()
}

/// A connection over which one request was sent.
fn asked() -> FrameCounter {
    let mut frames = FrameCounter::new();
    frames.sent(
        &[
            vec![b'P'; PREFACE_BYTES],
            frame(SETTINGS, &[]),
            frame(HEADERS, b"head"),
        ]
        .concat(),
    );
    frames
}

#[test]
fn frames_are_found_wherever_their_bytes_are_cut() {
    arbtest(|u: &mut Unstructured<'_>| {
        let (mut expected, mut bytes) = (Vec::new(), Vec::new());
        for _ in 0..u.int_in_range(1..=20)? {
            let (kind, payload) = (u.int_in_range(0..=9)?, vec![0xff; u.int_in_range(0..=300)?]);
            expected.push((kind, payload.len()));
            bytes.extend(frame(kind, &payload));
        }
        let (mut heads, mut found, mut rest) =
            (FrameHeads::default(), Vec::new(), bytes.as_slice());
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(u.int_in_range(1..=rest.len())?);
            heads.read(piece, |kind, length| found.push((kind, length)));
            rest = after;
        }
        assert_eq!(found, expected);
        Ok(())
    });
}

#[test]
fn an_answer_has_so_many_heads_and_a_connection_so_many_frames_that_carry_nothing() {
    let mut frames = asked();
    assert!(frames.received(&frame(HEADERS, b"100").repeat(18)));
    assert!(!frames.received(&frame(HEADERS, b"100")));
    let mut frames = asked();
    // A body has as many pieces as it likes: these are counted where they are read.
    assert!(frames.received(&frame(DATA, b"x").repeat(100_000)));
    assert!(frames.received(&frame(PING, &[0; 8]).repeat(321)));
    assert!(!frames.received(&frame(PING, &[0; 8])));
    assert!(!FrameCounter::new().received(&frame(HEADERS, b"nobody asked")));
    let mut frames = asked();
    assert!(!frames.received(&frame(DATA, b"").repeat(400)));
}

#[test]
fn what_is_saved_up_has_a_bound() {
    let mut frames = FrameCounter::new();
    frames.sent(
        &[
            vec![b'P'; PREFACE_BYTES],
            frame(HEADERS, b"head").repeat(10_000),
        ]
        .concat(),
    );
    assert!(frames.received(&frame(HEADERS, b"200").repeat(4096)));
    assert!(!frames.received(&frame(HEADERS, b"200")));
}
