//! Compression: asked for, worth it, and the same bytes once decoded.

use std::io::Read;

use reqwest::Method;

use crate::support::{Answer, Service};

const BANKS: &str = "/api/v1/tools/bank-qr/banks";

async fn get(path: &str, accept_encoding: &str) -> Answer {
    let request = Service::shared()
        .request(Method::GET, path)
        .header("accept-encoding", accept_encoding);
    Service::send(request).await
}

fn decoded(answer: &Answer) -> Vec<u8> {
    let mut bytes = Vec::new();
    match answer.header("content-encoding") {
        "gzip" => flate2::read::GzDecoder::new(&answer.bytes[..]).read_to_end(&mut bytes),
        "br" => brotli::Decompressor::new(&answer.bytes[..], 4096).read_to_end(&mut bytes),
        other => panic!("encoded as {other}"),
    }
    .expect("it decodes");
    bytes
}

#[tokio::test]
async fn large_json_is_encoded_as_asked() {
    for path in [BANKS, "/openapi.json"] {
        let plain = get(path, "identity").await;
        assert!(!plain.headers.contains_key("content-encoding"));
        for (accepted, encoding) in [
            ("gzip", "gzip"),
            ("br", "br"),
            ("gzip;q=0.5, br;q=0.9", "br"),
            ("gzip;q=0.9, br;q=0.5", "gzip"),
            ("br;q=0, gzip", "gzip"),
            ("zstd, GZIP", "gzip"),
        ] {
            let answer = get(path, accepted).await;
            assert_eq!(
                answer.header("content-encoding"),
                encoding,
                "{path} as {accepted}"
            );
            assert!(answer.bytes.len() < plain.bytes.len());
            assert_eq!(decoded(&answer), plain.bytes, "{path} as {accepted}");
        }
    }
}

#[tokio::test]
async fn an_encoding_that_is_refused_or_unknown_is_not_used() {
    for accepted in [
        "gzip;q=0",
        "gzip;q=0, br;q=0.000",
        "zstd, deflate",
        "",
        "identity",
        "gzip;q=0, identity;q=0",
    ] {
        let answer = get(BANKS, accepted).await;
        assert_eq!(answer.status, 200, "{accepted}");
        assert!(
            !answer.headers.contains_key("content-encoding"),
            "{accepted}"
        );
        assert_eq!(answer.json()["success"], true);
    }
}

#[tokio::test]
async fn a_small_body_is_not_encoded() {
    let answer = get("/healthz", "gzip, br").await;
    assert!(!answer.headers.contains_key("content-encoding"));
    assert_eq!(answer.bytes, br#"{"status":"ok"}"#);
}

#[tokio::test]
async fn caches_can_tell_the_encodings_apart_and_one_weak_tag_fits_all() {
    let plain = get(BANKS, "identity").await;
    let tag = plain.header("etag").to_owned();
    assert!(tag.starts_with("W/\""), "{tag}");
    for accepted in ["identity", "gzip", "br"] {
        let answer = get(BANKS, accepted).await;
        assert_eq!(answer.header("etag"), tag);
        assert_eq!(answer.header("vary"), "accept-encoding");
        let request = Service::shared()
            .request(Method::GET, BANKS)
            .header("accept-encoding", accepted)
            .header("if-none-match", &tag);
        let again = Service::send(request).await;
        assert_eq!((again.status, again.bytes.len()), (304, 0));
        assert_eq!(
            (again.header("etag"), again.header("vary")),
            (&*tag, "accept-encoding")
        );
        assert!(!again.headers.contains_key("content-encoding"));
    }
}
