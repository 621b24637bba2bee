//! What `decode` promises, case by case.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use super::*;

fn encode(coding: ContentCoding, text: &[u8]) -> Vec<u8> {
    match coding {
        ContentCoding::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            encoder
                .write_all(text)
                .and_then(|()| encoder.finish())
                .expect("it is in memory")
        }
        ContentCoding::Deflate => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
            encoder
                .write_all(text)
                .and_then(|()| encoder.finish())
                .expect("it is in memory")
        }
        ContentCoding::Zstd => {
            ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
        }
        ContentCoding::Brotli => {
            let mut encoded = Vec::new();
            let mut encoder = brotli::CompressorWriter::new(&mut encoded, 4096, 9, 22);
            encoder.write_all(text).expect("it is in memory");
            drop(encoder);
            encoded
        }
    }
}

/// Decodes for somebody who waits.
fn decoded(
    codings: &[ContentCoding],
    body: Vec<u8>,
    bytes_max: usize,
) -> Result<Vec<u8>, DecodeError> {
    let wanted = Arc::new(());
    decode(codings, body, bytes_max, &Work::wanted_by(&wanted))
}

const ALL: [ContentCoding; 4] = [
    ContentCoding::Gzip,
    ContentCoding::Brotli,
    ContentCoding::Zstd,
    ContentCoding::Deflate,
];

#[test]
fn what_was_encoded_is_decoded_once_and_twice() {
    let text = b"the same again, ".repeat(200);
    for outer in ALL {
        assert_eq!(
            decoded(&[outer], encode(outer, &text), text.len()),
            Ok(text.clone()),
            "{outer:?}"
        );
        for inner in ALL {
            let both = encode(outer, &encode(inner, &text));
            assert_eq!(
                decoded(&[inner, outer], both, text.len()),
                Ok(text.clone()),
                "{inner:?} in {outer:?}"
            );
        }
    }
    let mut raw = DeflateEncoder::new(Vec::new(), Compression::best());
    let raw = raw
        .write_all(&text)
        .and_then(|()| raw.finish())
        .expect("it is in memory");
    assert_eq!(
        decoded(&[ContentCoding::Deflate], raw, text.len()),
        Ok(text)
    );
}

#[test]
fn one_byte_too_many_is_refused() {
    let text = vec![b'x'; 5000];
    for coding in ALL {
        let refused = decoded(&[coding], encode(coding, &text), text.len() - 1);
        assert_eq!(
            refused,
            Err(DecodeError::TooLarge {
                bytes_max: text.len() - 1
            }),
            "{coding:?}"
        );
    }
}

#[test]
fn a_bomb_within_a_bomb_is_stopped_between_them() {
    // Half a gigabyte of zeros, and the layer between them is larger than the body may be as well.
    let inner = encode(ContentCoding::Gzip, &vec![0; 64 << 20]);
    let bomb = encode(ContentCoding::Gzip, &inner);
    let bytes_max = 32 << 10;
    assert!(bomb.len() < inner.len() && inner.len() > bytes_max);
    assert_eq!(
        decoded(&[ContentCoding::Gzip, ContentCoding::Gzip], bomb, bytes_max),
        Err(DecodeError::TooLarge { bytes_max })
    );
}

#[test]
fn what_is_cut_or_has_more_behind_it_is_malformed() {
    let text = b"some text that is long enough to be cut in two".repeat(10);
    for coding in ALL {
        let mut encoded = encode(coding, &text);
        encoded.truncate(encoded.len() / 2);
        assert_eq!(
            decoded(&[coding], encoded, 1 << 20),
            Err(DecodeError::Malformed),
            "{coding:?}"
        );
        assert_eq!(
            decoded(&[coding], b"no such thing".to_vec(), 1 << 20),
            Err(DecodeError::Malformed),
            "{coding:?}"
        );
    }
    let mut two = encode(ContentCoding::Zstd, &text);
    two.extend(encode(ContentCoding::Zstd, &text));
    assert_eq!(
        decoded(&[ContentCoding::Zstd], two, 1 << 20),
        Err(DecodeError::Malformed)
    );
}

#[test]
fn codings_are_read_in_their_order_and_two_at_most() {
    let read = |values: &[&str]| codings(values.iter().copied());
    assert_eq!(
        read(&["GZIP, identity", " br"]),
        Ok(vec![ContentCoding::Gzip, ContentCoding::Brotli])
    );
    assert_eq!(read(&["", "identity"]), Ok(Vec::new()));
    assert_eq!(read(&["gzip, gzip, gzip"]), Err(DecodeError::TooMany));
    assert_eq!(read(&["compress"]), Err(DecodeError::Unknown));
}

#[test]
fn decoding_ends_when_nobody_waits_for_it() {
    for coding in ALL {
        let abandoned = Work::wanted_by(&Arc::new(()));
        let refused = decode(&[coding], encode(coding, b"some text"), 1 << 20, &abandoned);
        assert_eq!(refused, Err(DecodeError::Work), "{coding:?}");
    }
}
