//! HTTP/2 by prior knowledge: its limits, and that its streams are requests like any other.

use std::convert::Infallible;

use futures::channel::mpsc::{Receiver, Sender, channel};
use futures::future::join_all;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use reqwest::{Client, Method, Version};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::drain::signal;
use crate::support::{Options, Service, Wire, in_time};

type Body = StreamBody<Receiver<Result<Frame<Bytes>, Infallible>>>;
type Connection = JoinHandle<hyper::Result<()>>;

/// A connection whose streams may each be sent this many bytes that were not asked for.
async fn connect(service: &Service, window_bytes: u32) -> (SendRequest<Body>, Connection) {
    let stream = TcpStream::connect(service.base_url.trim_start_matches("http://")).await.expect("it accepts");
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(window_bytes);
    let (requests, connection) = builder.handshake(TokioIo::new(stream)).await.expect("it speaks HTTP/2");
    (requests, tokio::spawn(connection))
}

fn get(path: &str) -> http::Request<Body> {
    let (_, body) = channel(0);
    http::Request::get(format!("http://test{path}")).body(StreamBody::new(body)).expect("a request")
}

/// A POST without a key, and what its body is to be sent by.
fn post_held() -> (Sender<Result<Frame<Bytes>, Infallible>>, http::Request<Body>) {
    let (sender, body) = channel(1);
    let request = http::Request::post("http://test/api/v1/tools/bank-qr").header("content-type", "application/json");
    (sender, request.body(StreamBody::new(body)).expect("a request"))
}

/// The head of the answer, which must come.
async fn ask(requests: &mut SendRequest<Body>, request: http::Request<Body>) -> http::Response<Incoming> {
    in_time("an answer", requests.send_request(request)).await.expect("it is answered")
}

fn client() -> Client {
    Client::builder().http2_prior_knowledge().build().expect("a client")
}

#[tokio::test]
async fn many_streams_of_one_connection_are_served() {
    // They are one caller's, and wait for its places.
    let config = "[shares]\nwaiting = 200\n".to_owned();
    let service = Service::start(Options { config, ..Options::default() }).await;
    let client = client();
    let url = format!("{}/api/v1/tools/bank-qr/banks", service.base_url);
    let answers = join_all((0..200).map(|_| client.get(&url).bearer_auth(service.key()).send())).await;
    for answer in answers {
        let answer = answer.expect("it is answered");
        assert_eq!((answer.status().as_u16(), answer.version()), (200, Version::HTTP_2));
    }
}

#[tokio::test]
async fn the_settings_name_the_limits() {
    let mut wire = Wire::connect(&Service::shared().base_url).await;
    wire.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00").await;
    let head = wire.exactly(9).await;
    assert_eq!(head[3], 4, "the first frame is SETTINGS: {head:?}");
    let payload = wire.exactly(usize::from(head[2])).await;
    let setting = |id: u8| {
        let entry = payload.chunks(6).find(|entry| entry[..2] == [0, id]).expect("the setting is sent");
        u32::from_be_bytes([entry[2], entry[3], entry[4], entry[5]])
    };
    assert_eq!(setting(3), 256, "MAX_CONCURRENT_STREAMS");
    assert_eq!(setting(6), 32 * 1024, "MAX_HEADER_LIST_SIZE");
}

#[tokio::test]
async fn a_head_with_too_many_bytes_is_431() {
    let service = Service::shared();
    let request = client().get(format!("{}/healthz", service.base_url)).header("x-large", "a".repeat(40_000));
    assert_eq!(Service::send(request).await.status, 431);
}

#[tokio::test]
async fn a_thousand_requests_may_be_in_flight_and_each_stream_counts() {
    let service = Service::with_limits("in_flight = 1001").await;
    let (mut held, mut answers, mut connections) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..4 {
        let (mut requests, connection) = connect(&service, 65_535).await;
        for _ in 0..250 {
            let (body, request) = post_held();
            requests.ready().await.expect("the connection takes requests");
            answers.push(requests.send_request(request));
            held.push(body);
        }
        // Streams are begun in order: this answer shows that all before it are in flight.
        let last = ask(&mut requests, get("/healthz")).await;
        assert_eq!(last.status(), 200);
        connections.push((requests, connection));
    }
    let (last, request) = post_held();
    let (requests, _) = connections.first_mut().expect("there are four");
    answers.push(requests.send_request(request));
    held.push(last);
    let above = ask(requests, get("/healthz")).await;
    assert_eq!((above.status().as_u16(), above.headers()["retry-after"].as_bytes()), (503, &b"1"[..]));
    drop(held);
    for answer in in_time("all answers", join_all(answers)).await {
        assert_eq!(answer.expect("it is answered").status(), 401, "each is read to its end and judged");
    }
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
        let ended = in_time("the server closes", connection).await.expect("no panic");
        ended.expect("the close is in good order");
    }
    drop(body);
    assert_eq!(in_time("an answer", answer).await.expect("no panic").expect("it is answered").status(), 401);
}

#[tokio::test]
async fn a_peer_that_says_nothing_after_the_preface_is_cut() {
    let service = Service::with_limits("idle_ms = 300\nheader_ms = 300").await;
    for more in
        [&b""[..], b"\x00\x00\x00\x04\x00\x00\x00\x00\x00", b"\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x40\x01"]
    {
        let mut wire = Wire::connect(&service.base_url).await;
        wire.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        wire.send(more).await;
        wire.ended().await;
    }
}

#[tokio::test]
async fn a_peer_that_opens_no_window_for_its_answers_is_cut() {
    // The peer answers pings all the while: hyper's client does that by itself. What fits into hyper's own buffer counts as
    // sent, and then idleness ends the connection.
    for (window_bytes, limits) in [(0, "write_ms = 300\nidle_ms = 3600000"), (9_000, "idle_ms = 300\nheader_ms = 300")]
    {
        let service = Service::with_limits(limits).await;
        let (mut requests, connection) = connect(&service, window_bytes).await;
        // An answer of 11 KiB, whatever else is served.
        let mut request = get("/api/v1/tools/bank-qr/banks");
        request.headers_mut().insert("x-service-api-key", service.key().parse().expect("a header value"));
        let answer = ask(&mut requests, request).await;
        assert_eq!(answer.status(), 200);
        // How it ends is the server's choice; that it ends is the promise.
        in_time("the server cuts", connection).await.expect("no panic").ok();
        drop(answer);
    }
}

#[tokio::test]
async fn a_stream_whose_answer_is_never_taken_is_reset_and_gives_its_place_back() {
    let service = Service::with_limits("in_flight = 1\nrequest_ms = 300\nwrite_ms = 3600000").await;
    let (mut requests, _connection) = connect(&service, 0).await;
    let answer = ask(&mut requests, get("/openapi.json")).await;
    let above = ask(&mut requests, get("/healthz")).await;
    assert_eq!(above.status(), 503, "an answer that is being sent has its place");
    in_time("the stream is reset", answer.into_body().collect()).await.expect_err("the body is cut short");
    in_time("the place is free", async { while service.get("/healthz").await.status == 503 {} }).await;
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
    assert_eq!(in_time("an answer", answer).await.expect("no panic").expect("it is answered").status(), 401);
    in_time("the server closes", connection).await.expect("no panic").expect("in good order");
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
    in_time("the stream is cut", answer).await.expect("no panic").expect_err("there is no answer");
    assert_eq!(service.exit_code().await, Some(0));
}
