//! Connections and requests: HTTP/1 as clients speak it, and how many of either there may be.

use reqwest::Method;

use crate::support::{Held, Service, Wire};

pub(crate) const HEALTH: &str = "GET /healthz HTTP/1.1\r\nhost: test\r\n\r\n";

#[tokio::test]
async fn pipelined_requests_are_answered_in_order_on_a_kept_connection() {
    let mut wire = Wire::connect(&Service::shared().base_url).await;
    for _ in 0..2 {
        wire.send(
            [
                HEALTH,
                "GET /nowhere HTTP/1.1\r\nhost: test\r\n\r\n",
                HEALTH,
            ]
            .concat(),
        )
        .await;
        assert_eq!(wire.answer().await.status, 200);
        assert_eq!(wire.answer().await.refusal(), (404, "NOT_FOUND".to_owned()));
        assert_eq!(wire.answer().await.status, 200);
    }
}

#[tokio::test]
async fn http_1_0_is_answered_and_closed() {
    let mut wire = Wire::connect(&Service::shared().base_url).await;
    wire.send("GET /healthz HTTP/1.0\r\n\r\n").await;
    assert_eq!(wire.answer().await.status, 200);
    assert_eq!(wire.ended().await, "");
}

#[tokio::test]
async fn a_head_with_too_many_bytes_or_fields_is_431() {
    let large = format!(
        "GET /healthz HTTP/1.1\r\nhost: test\r\nx-large: {}\r\n\r\n",
        "a".repeat(40_000)
    );
    let many = format!(
        "GET /healthz HTTP/1.1\r\nhost: test\r\n{}\r\n",
        "x-many: 1\r\n".repeat(120)
    );
    for head in [large, many] {
        let mut wire = Wire::connect(&Service::shared().base_url).await;
        wire.send(head).await;
        assert_eq!(wire.answer().await.status, 431);
        assert_eq!(wire.ended().await, "");
    }
}

#[tokio::test]
async fn connections_above_the_cap_wait_while_their_own_peer_is_busy_with_the_others() {
    let service = Service::with_limits("connections = 2").await;
    let [first, second] = [Held::open(&service).await, Held::open(&service).await];
    let mut third = Wire::connect(&service.base_url).await;
    third.send(HEALTH).await;
    for _ in 0..20 {
        assert_eq!(get_from_operator(&service).await, 200);
        assert!(third.is_silent(), "the third was served beside two others");
    }
    assert_eq!(first.finish().await.status, 200);
    assert_eq!(third.answer().await.status, 200);
    assert_eq!(second.finish().await.status, 200);
}

/// Something that takes a while.
async fn get_from_operator(service: &Service) -> u16 {
    service
        .admin(Method::GET, "/admin/v1/status", None)
        .await
        .status
}

#[tokio::test]
async fn bodies_wait_for_their_turn_and_a_client_that_goes_away_gives_its_place_back() {
    let service = Service::with_limits("in_flight = 4").await;
    let held = Held::open(&service).await;
    // The lobby is a fourth of the places: who comes after waits for the body before.
    let (next, first) = tokio::join!(service.get("/api/v1/tools/bank-qr/banks"), held.finish());
    assert_eq!((next.status, first.status), (200, 200));
    drop(Held::open(&service).await);
    assert_eq!(service.get("/api/v1/tools/bank-qr/banks").await.status, 200);
}

#[tokio::test]
async fn the_operators_listener_has_as_many_places_of_its_own() {
    let service = Service::with_limits("in_flight = 1").await;
    let head = format!(
        "POST /admin/v1/keys HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: 2\r\nexpect: 100-continue\r\n\r\n",
        service.operator_token()
    );
    let mut held = Wire::connect(&service.operator_url()).await;
    held.send(&head).await;
    held.until("100 Continue\r\n\r\n").await;
    let mut above = Wire::connect(&service.operator_url()).await;
    above.send(&head).await;
    assert_eq!(
        above.answer().await.refusal(),
        (503, "SERVICE_UNAVAILABLE".to_owned())
    );
    assert_eq!(service.get("/api/v1/tools/bank-qr/banks").await.status, 200);
    held.send("{}").await;
    assert_eq!(
        held.answer().await.refusal(),
        (400, "VALIDATION_ERROR".to_owned())
    );
}

#[tokio::test]
async fn a_body_that_no_route_reads_ends_the_connection() {
    let mut wire = Wire::connect(&Service::shared().base_url).await;
    wire.send("GET /healthz HTTP/1.1\r\nhost: test\r\ncontent-length: 1000\r\n\r\n")
        .await;
    assert_eq!(wire.answer().await.status, 200);
    assert_eq!(wire.ended().await, "");
}

#[tokio::test]
async fn a_body_above_the_operations_limit_is_413_whether_announced_or_chunked() {
    let service = Service::shared();
    let head =
        "POST /api/v1/tools/bank-qr HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n";
    let announced = format!("{head}content-length: 4097\r\n\r\n");
    let endless = format!(
        "{head}transfer-encoding: chunked\r\n\r\n{}",
        format!("800\r\n{}\r\n", "a".repeat(2048)).repeat(3)
    );
    for request in [announced, endless] {
        let mut wire = Wire::connect(&service.base_url).await;
        wire.send(request).await;
        let answer = wire.answer().await;
        assert_eq!(answer.refusal(), (413, "PAYLOAD_TOO_LARGE".to_owned()));
        assert_eq!(answer.json()["data"]["max"], 4096);
        assert_eq!(
            wire.ended().await,
            "",
            "what follows a body that was not read is no request"
        );
    }
    let huge = service
        .post_raw("/api/v1/tools/bank-qr", vec![b'a'; 8 << 20])
        .await;
    assert_eq!(
        huge.refusal(),
        (413, "PAYLOAD_TOO_LARGE".to_owned()),
        "a client that sends on reads the answer"
    );
}

#[tokio::test]
async fn head_is_answered_like_get_without_the_body() {
    let service = Service::shared();
    let get = service.get("/api/v1/tools/bank-qr/banks").await;
    let head = Service::send(service.request(Method::HEAD, "/api/v1/tools/bank-qr/banks")).await;
    assert_eq!((head.status, head.bytes.len()), (200, 0));
    assert_eq!(head.header("content-length"), get.bytes.len().to_string());
    assert_eq!(head.header("etag"), get.header("etag"));
}
