//! HTTP/2 by prior knowledge: its limits, and that its streams are requests like any other.

use futures::future::join_all;
use http_body_util::BodyExt;
use hyper::client::conn::http2::SendRequest;
use reqwest::{Client, Method, Version};

use crate::drain::signal;
use crate::metrics::scrape;
use crate::support::{
    Body, Connection, Options, Service, Wire, ask, get, in_time, post_held, streams, with,
};

const BANKS: &str = "/api/v1/tools/bank-qr/banks";

async fn connect(service: &Service, window_bytes: u32) -> (SendRequest<Body>, Connection) {
    streams(service, "127.0.0.1", window_bytes).await
}

/// A request whose answer is larger than a window may be, with a key.
fn banks(service: &Service) -> http::Request<Body> {
    with(get(BANKS), "x-service-api-key", service.key())
}

fn client() -> Client {
    Client::builder()
        .http2_prior_knowledge()
        .build()
        .expect("a client")
}

#[tokio::test]
async fn many_streams_of_one_connection_are_served() {
    // They are one caller's, and wait for its places.
    let config = "[shares]\nwaiting = 200\n".to_owned();
    let service = Service::start(Options {
        config,
        ..Options::default()
    })
    .await;
    let client = client();
    let url = format!("{}/api/v1/tools/bank-qr/banks", service.base_url);
    let answers =
        join_all((0..200).map(|_| client.get(&url).bearer_auth(service.key()).send())).await;
    for answer in answers {
        let answer = answer.expect("it is answered");
        assert_eq!(
            (answer.status().as_u16(), answer.version()),
            (200, Version::HTTP_2)
        );
    }
}

#[tokio::test]
async fn the_settings_name_the_limits() {
    let mut wire = Wire::connect(&Service::shared().base_url).await;
    wire.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
        .await;
    let head = wire.exactly(9).await;
    assert_eq!(head[3], 4, "the first frame is SETTINGS: {head:?}");
    let payload = wire.exactly(usize::from(head[2])).await;
    let setting = |id: u8| {
        let entry = payload
            .chunks(6)
            .find(|entry| entry[..2] == [0, id])
            .expect("the setting is sent");
        u32::from_be_bytes([entry[2], entry[3], entry[4], entry[5]])
    };
    assert_eq!(setting(3), 64, "MAX_CONCURRENT_STREAMS");
    assert_eq!(setting(6), 32 * 1024, "MAX_HEADER_LIST_SIZE");
}

#[tokio::test]
async fn a_head_with_too_many_bytes_is_431() {
    let service = Service::shared();
    let request = client()
        .get(format!("{}/healthz", service.base_url))
        .header("x-large", "a".repeat(40_000));
    assert_eq!(Service::send(request).await.status, 431);
}

#[tokio::test]
async fn a_thousand_requests_may_be_in_flight_and_each_stream_counts() {
    let service = Service::with_limits("in_flight = 1000").await;
    let (mut held, mut connections) = (Vec::new(), Vec::new());
    for peer in 2..22 {
        let (mut requests, connection) = streams(&service, &format!("127.0.0.{peer}"), 0).await;
        for _ in 0..50 {
            // The head tells that the caller is known; the rest is not taken.
            let answer = ask(&mut requests, banks(&service)).await;
            assert_eq!(answer.status(), 200);
            held.push(answer);
        }
        held.push(ask(&mut requests, get("/healthz")).await);
        connections.push((requests, connection));
    }
    let above = service.get(BANKS).await;
    assert_eq!(above.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
    assert_eq!(
        (above.header("retry-after"), above.header("cache-control")),
        ("1", "private, no-store")
    );
    for outside in ["/healthz", "/readyz", "/openapi.json", "/developer-guide"] {
        assert_eq!(
            service.get(outside).await.status,
            200,
            "{outside} is answered when every place is taken"
        );
    }
    drop((held, connections));
    in_time("places are free", async {
        while service.get(BANKS).await.status == 503 {}
    })
    .await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_a_busy_one_is_not() {
    let service = Service::with_limits("idle_ms = 300\nheader_ms = 300").await;
    let (mut busy, _connection) = connect(&service, 65_535).await;
    let (body, request) = post_held();
    let answer = tokio::spawn(busy.send_request(request));
    for _ in 0..2 {
        let (mut idle, connection) = connect(&service, 65_535).await;
        assert_eq!(ask(&mut idle, get("/healthz")).await.status(), 200);
        let ended = in_time("the server closes", connection)
            .await
            .expect("no panic");
        ended.expect("the close is in good order");
    }
    drop(body);
    assert_eq!(
        in_time("an answer", answer)
            .await
            .expect("no panic")
            .expect("it is answered")
            .status(),
        401
    );
}

#[tokio::test]
async fn a_peer_that_says_nothing_after_the_preface_is_cut() {
    let service = Service::with_limits("idle_ms = 300\nheader_ms = 300").await;
    for more in [
        &b""[..],
        b"\x00\x00\x00\x04\x00\x00\x00\x00\x00",
        b"\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x40\x01",
    ] {
        let mut wire = Wire::connect(&service.base_url).await;
        wire.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        wire.send(more).await;
        wire.ended().await;
    }
}

#[tokio::test]
async fn an_answer_of_which_nothing_is_taken_is_reset_while_other_streams_go_on() {
    // Nothing of the answer, and the most of it: the peer answers pings all the while, as hyper's client does by itself.
    for window_bytes in [0, 9_000] {
        let service = Service::with_limits("write_ms = 300\nidle_ms = 3600000").await;
        let (mut requests, connection) = connect(&service, window_bytes).await;
        let answer = ask(&mut requests, banks(&service)).await;
        assert_eq!(answer.status(), 200);
        // Reading it would open a window.
        in_time("the stream is reset", async {
            while scrape(service.data.path())
                .await
                .value("switchbay_http_streams_reset_total", &[])
                < 1.0
            {
                let mut head = get("/healthz");
                *head.method_mut() = Method::HEAD;
                assert_eq!(ask(&mut requests, head).await.status(), 200);
            }
        })
        .await;
        answer
            .into_body()
            .collect()
            .await
            .expect_err("the answer is cut short");
        assert!(!connection.is_finished(), "its connection serves on");
    }
}

#[tokio::test]
async fn an_answer_that_takes_too_long_altogether_is_reset_and_gives_its_place_back() {
    let service = Service::with_limits("in_flight = 1\nrequest_ms = 300\nwrite_ms = 3600000").await;
    let (mut requests, _connection) = connect(&service, 0).await;
    let answer = ask(&mut requests, banks(&service)).await;
    let above = ask(&mut requests, banks(&service)).await;
    assert_eq!(
        above.status(),
        503,
        "an answer that is being sent has its place"
    );
    in_time("the stream is reset", answer.into_body().collect())
        .await
        .expect_err("the body is cut short");
    in_time("the place is free", async {
        while service.get(BANKS).await.status == 503 {}
    })
    .await;
}

#[tokio::test]
async fn a_stream_without_a_body_that_was_announced_is_408() {
    let service = Service::with_limits("body_ms = 300").await;
    let (mut requests, _connection) = connect(&service, 65_535).await;
    let (_body, request) = post_held();
    let answer = ask(&mut requests, request).await;
    assert_eq!(answer.status(), 408);
    let request = client().request(Method::GET, format!("{}/healthz", service.base_url));
    assert_eq!(Service::send(request).await.status, 200);
}

#[tokio::test]
async fn a_stream_in_flight_ends_before_the_process_does() {
    let service = Service::with_limits("drain_ms = 3600000").await;
    let (mut requests, connection) = connect(&service, 65_535).await;
    let (body, request) = post_held();
    let answer = tokio::spawn(requests.send_request(request));
    assert_eq!(ask(&mut requests, get("/healthz")).await.status(), 200);
    signal(&service, "TERM").await;
    drop(body);
    assert_eq!(
        in_time("an answer", answer)
            .await
            .expect("no panic")
            .expect("it is answered")
            .status(),
        401
    );
    in_time("the server closes", connection)
        .await
        .expect("no panic")
        .expect("in good order");
    assert_eq!(service.exit_code().await, Some(0));
}

#[tokio::test]
async fn a_stream_that_outlives_the_drain_is_cut() {
    let service = Service::with_limits("drain_ms = 300\nbody_ms = 3600000").await;
    let (mut requests, _connection) = connect(&service, 65_535).await;
    let (_body, request) = post_held();
    let answer = tokio::spawn(requests.send_request(request));
    assert_eq!(ask(&mut requests, get("/healthz")).await.status(), 200);
    signal(&service, "TERM").await;
    in_time("the stream is cut", answer)
        .await
        .expect("no panic")
        .expect_err("there is no answer");
    assert_eq!(service.exit_code().await, Some(0));
}
