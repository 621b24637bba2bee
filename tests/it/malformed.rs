//! Requests that are none: a clear refusal, and a server that serves on.

use crate::support::{Service, Wire};
use crate::transport::HEALTH;

/// Sends bytes on a connection of their own, and expects an answer with this status.
async fn check(request: impl AsRef<[u8]>, status: u16) {
    let service = Service::shared();
    for url in [service.base_url.clone(), service.operator_url()] {
        let mut wire = Wire::connect(&url).await;
        wire.send(&request).await;
        let found = wire.answer().await.status;
        let shown = String::from_utf8_lossy(request.as_ref());
        let shown: String = shown.chars().take(200).collect();
        // The operator's listener judges the credential before the route.
        let expected = if url == service.base_url || found != 401 {
            status
        } else {
            401
        };
        assert_eq!(found, expected, "{shown:?}");
    }
}

async fn check_post(headers_and_body: &str, status: u16) {
    let head =
        "POST /api/v1/tools/bank-qr HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n";
    check(format!("{head}{headers_and_body}"), status).await;
}

#[tokio::test]
async fn a_malformed_request_line_is_refused() {
    check(b"G\xffT /healthz HTTP/1.1\r\nhost: test\r\n\r\n", 400).await;
    check("GET /healthz HTTP/9.9\r\nhost: test\r\n\r\n", 400).await;
    check("GET  HTTP/1.1\r\nhost: test\r\n\r\n", 400).await;
    check("GET /heal thz HTTP/1.1\r\nhost: test\r\n\r\n", 400).await;
    check("\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n", 400).await;
    check("GET /health\0z HTTP/1.1\r\nhost: test\r\n\r\n", 400).await;
    check(
        format!("GET /{} HTTP/1.1\r\nhost: test\r\n\r\n", "a".repeat(20_000)),
        404,
    )
    .await;
    check(
        format!(
            "GET /{} HTTP/1.1\r\nhost: test\r\n\r\n",
            "a".repeat(100_000)
        ),
        431,
    )
    .await;
}

#[tokio::test]
async fn malformed_header_fields_are_refused() {
    check(
        "GET /healthz HTTP/1.1\r\nhost: test\r\nx: a\0b\r\n\r\n",
        400,
    )
    .await;
    check(
        "GET /healthz HTTP/1.1\r\nhost: test\r\nno colon\r\n\r\n",
        400,
    )
    .await;
    check("GET /healthz HTTP/1.1\r\nhost: test\r\nx : 1\r\n\r\n", 400).await;
    check(
        "GET /healthz HTTP/1.1\r\nhost: test\r\nx: 1\r\n folded\r\n\r\n",
        400,
    )
    .await;
    check("GET /healthz HTTP/1.1\r\n\r\n", 400).await;
    check(
        "GET /healthz HTTP/1.1\r\nhost: test\r\nhost: other\r\n\r\n",
        400,
    )
    .await;
}

#[tokio::test]
async fn a_body_of_doubtful_length_is_refused() {
    check_post("content-length: 2\r\ncontent-length: 3\r\n\r\n{}", 400).await;
    check_post("content-length: +2\r\n\r\n{}", 400).await;
    check_post("content-length: -1\r\n\r\n{}", 400).await;
    check_post("content-length: 99999999999999999999999\r\n\r\n{}", 400).await;
    check_post("transfer-encoding: xchunked\r\n\r\n0\r\n\r\n", 400).await;
    check_post("transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400).await;
    check_post(
        "transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        400,
    )
    .await;
    check_post(
        "transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}\r\n0\r\n\r\n",
        400,
    )
    .await;
}

#[tokio::test]
async fn a_smuggled_request_is_never_answered() {
    let head =
        "POST /api/v1/tools/bank-qr HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n";
    let (stated, chunked) = ("content-length: 5\r\n", "transfer-encoding: chunked\r\n");
    for lengths in [[stated, chunked], [chunked, stated]] {
        let mut wire = Wire::connect(&Service::shared().base_url).await;
        wire.send(format!("{head}{}\r\n0\r\n\r\n{HEALTH}", lengths.concat()))
            .await;
        let answer = wire.answer().await;
        assert_eq!((answer.status, answer.header("connection")), (401, "close"));
        assert_eq!(wire.ended().await, "", "what follows is no request");
    }
}

#[tokio::test]
async fn every_form_of_target_is_understood_or_refused() {
    check(
        "GET http://elsewhere.example/nowhere HTTP/1.1\r\nhost: test\r\n\r\n",
        404,
    )
    .await;
    check(
        "CONNECT elsewhere.example:443 HTTP/1.1\r\nhost: test\r\n\r\n",
        404,
    )
    .await;
    check("OPTIONS * HTTP/1.1\r\nhost: test\r\n\r\n", 404).await;
    check(
        "GET /api/v1/tools/%zz%ff%00 HTTP/1.1\r\nhost: test\r\n\r\n",
        404,
    )
    .await;
    check(
        "GET /api/v1/../v1/tools HTTP/1.1\r\nhost: test\r\n\r\n",
        404,
    )
    .await;
    let mut wire = Wire::connect(&Service::shared().base_url).await;
    wire.send("GET http://elsewhere.example/healthz HTTP/1.1\r\nhost: elsewhere.example\r\n\r\n")
        .await;
    assert_eq!(wire.answer().await.status, 200);
}

#[tokio::test]
async fn a_query_that_is_no_text_is_refused() {
    let service = Service::shared();
    for query in [
        &b"x=%ff"[..],
        b"x=%",
        b"x=%00",
        b"%ff=1",
        b"x=\xff\xfe",
        b"=",
        b"&&&=&",
    ] {
        let mut wire = Wire::connect(&service.base_url).await;
        wire.send(b"GET /api/v1/tools/bank-qr/banks?").await;
        wire.send(query).await;
        wire.send(format!(
            " HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {}\r\n\r\n",
            service.key()
        ))
        .await;
        let answer = wire.answer().await;
        let shown = String::from_utf8_lossy(query);
        assert!(
            matches!(answer.status, 200 | 400),
            "{shown}: {}",
            answer.status
        );
    }
    assert_eq!(service.get("/healthz").await.status, 200);
}
