//! Servers that never stop saying what is no answer: it costs them a connection, and nobody a processor.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::{ServerConnection, StreamOwned};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{fetch, proxied, secure, start};
use crate::lab::{Certificate, listen};
use crate::support::{Service, Wire};

/// What a flood may cost the whole process; without a bound it is all of one processor for [`WAITED`].
const COST_MAX: Duration = Duration::from_millis(400);
/// How long a request waits for the head of an answer.
const WAITED: Duration = Duration::from_secs(8);

/// Frames of HTTP/2 by type, flags and payload.
type Frame = (u8, u8, &'static [u8]);
const SETTINGS: Frame = (4, 0, b"");
const SETTINGS_READ: Frame = (4, 1, b"");
/// `:status: 103`, and `:status: 200` with and without an end.
const INFORMATIONAL: Frame = (1, 4, b"\x08\x03103");
const ANSWER: Frame = (1, 4, b"\x88");
const WHOLE_ANSWER: Frame = (1, 5, b"\x88");

/// A server of HTTP/2 that answers its first request with these frames, the last of them without an end, and its certificate.
fn two(first: &'static [Frame], then_forever: Option<Frame>) -> (SocketAddr, Certificate) {
    let certificate = Certificate::of(&["secure.test"]);
    let config = Arc::new(certificate.server(&["h2"]));
    let address = listen(move |tcp| {
        let connection =
            ServerConnection::new(Arc::clone(&config)).map_err(std::io::Error::other)?;
        let mut stream = StreamOwned::new(connection, tcp);
        stream.read_exact(&mut [0; 24])?;
        let asked = until_asked(&mut stream)?;
        let of = |frame: &Frame| {
            written(
                frame,
                if frame.0 == 4 || frame.0 == 6 {
                    0
                } else {
                    asked
                },
            )
        };
        let mut all = of(&SETTINGS);
        [SETTINGS_READ]
            .iter()
            .chain(first)
            .for_each(|frame| all.extend(of(frame)));
        stream.write_all(&all)?;
        stream.flush()?;
        match then_forever.map(|frame| of(&frame).repeat(1000)) {
            Some(flood) => loop {
                stream.write_all(&flood)?;
            },
            None => std::io::copy(&mut stream, &mut std::io::sink()).map(|_| ()),
        }
    });
    (address, certificate)
}

fn written((kind, flags, payload): &Frame, stream: u32) -> Vec<u8> {
    let length = u32::try_from(payload.len())
        .expect("a short frame")
        .to_be_bytes();
    [
        &length[1..],
        &[*kind, *flags],
        &stream.to_be_bytes(),
        payload,
    ]
    .concat()
}

/// Reads frames to the first that asks for something, and gives back its stream.
fn until_asked(stream: &mut StreamOwned<ServerConnection, TcpStream>) -> std::io::Result<u32> {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let [a, b, c, kind, _, id @ ..] = head;
        let length = u32::from_be_bytes([0, a, b, c]);
        std::io::copy(
            &mut Read::by_ref(stream).take(u64::from(length)),
            &mut std::io::sink(),
        )?;
        if kind == 1 {
            return Ok(u32::from_be_bytes(id));
        }
    }
}

/// A service that trusts such a server.
async fn start_before(first: &'static [Frame], then_forever: Option<Frame>) -> (TempDir, Service) {
    let (site, certificate) = two(first, then_forever);
    let folder = TempDir::new().expect("a temporary folder");
    let root = folder.path().join("root.pem");
    certificate.write(&root);
    let service = secure::start(site, &[&root]).await;
    (folder, service)
}

fn patiently(url: &str) -> Value {
    json!({ "url": url, "first_byte_ms": WAITED.as_millis(), "idle_ms": WAITED.as_millis() })
}

/// Fetches before a flood, which must end by its own rule and cost next to nothing.
async fn check_flood(service: &Service, url: &str, rules: &[&str]) {
    // What is made once, whatever is asked for, is there before it is measured.
    assert_eq!(
        fetch(service, json!({ "url": "http://127.0.0.1/" })).await["outcome"],
        "not_public"
    );
    let before = service.processor_time();
    let told = fetch(service, patiently(url)).await;
    let cost = service.processor_time() - before;
    assert_eq!(told["outcome"], "bad_response", "{url}: {told}");
    assert!(
        told["told"]
            .as_str()
            .is_some_and(|told| rules.contains(&told)),
        "{url}: {told}"
    );
    assert!(cost <= COST_MAX, "{url} costs {cost:?}");
}

const TOO_MUCH: &str = "the server sent too much before its final response";

#[tokio::test]
async fn informational_heads_are_counted_and_a_flood_of_them_ends_the_exchange() {
    let service = start().await;
    let few = fetch(
        &service,
        json!({ "url": "http://site.test/informational?16" }),
    )
    .await;
    assert_eq!(
        (&few["outcome"], &few["text"]),
        (&json!("ok"), &json!("at last"))
    );
    let many = fetch(
        &service,
        json!({ "url": "http://site.test/informational?2000" }),
    )
    .await;
    assert_eq!(
        (&many["outcome"], &many["told"]),
        (&json!("bad_response"), &json!(TOO_MUCH))
    );
    check_flood(
        &service,
        "http://site.test/informational?forever",
        &[TOO_MUCH],
    )
    .await;
    // Nothing of it is left to the next request.
    assert_eq!(
        fetch(&service, json!({ "url": "http://site.test/" })).await["outcome"],
        "ok"
    );

    let lent = proxied::lend(&service, 60).await;
    let mut wire = Wire::connect(&lent.proxy).await;
    let head = "GET http://site.test/informational?forever HTTP/1.1\r\nHost: site.test\r\n";
    wire.send(format!(
        "{head}Proxy-Authorization: {}\r\n\r\n",
        lent.authorization
    ))
    .await;
    let answer = wire.answer().await;
    let told = String::from_utf8_lossy(&answer.bytes).into_owned();
    assert_eq!(
        (answer.status, told),
        (
            502,
            format!("bad_answer: the response cannot be used: {TOO_MUCH}\n")
        )
    );
}

#[tokio::test]
async fn informational_heads_over_http_2_are_counted_too() {
    const FEW: &[Frame] = &[INFORMATIONAL, INFORMATIONAL, INFORMATIONAL, WHOLE_ANSWER];
    let (_folder, service) = start_before(FEW, None).await;
    let told = fetch(&service, json!({ "url": "https://secure.test/" })).await;
    assert_eq!(
        (&told["outcome"], &told["status"]),
        (&json!("ok"), &json!(200)),
        "{told}"
    );
    let (_folder, service) = start_before(&[], Some(INFORMATIONAL)).await;
    check_flood(&service, "https://secure.test/", &[TOO_MUCH]).await;
}

#[tokio::test]
async fn frames_that_carry_nothing_are_counted() {
    const PING: Frame = (6, 0, &[0; 8]);
    let (_folder, service) = start_before(&[], Some(PING)).await;
    check_flood(&service, "https://secure.test/", &[TOO_MUCH]).await;
    const EMPTY: Frame = (0, 0, b"");
    let (_folder, service) = start_before(&[ANSWER], Some(EMPTY)).await;
    // It depends on whether the head of the answer had come through.
    check_flood(
        &service,
        "https://secure.test/",
        &[TOO_MUCH, "the connection broke during the exchange"],
    )
    .await;
}

#[tokio::test]
async fn a_switch_of_protocols_that_nobody_asked_for_is_no_answer() {
    let service = start().await;
    let told = fetch(&service, json!({ "url": "http://site.test/switches" })).await;
    let rule = "it is an informational response, not a final one";
    assert_eq!(
        (&told["outcome"], &told["told"]),
        (&json!("bad_response"), &json!(rule)),
        "{told}"
    );
}

#[tokio::test]
async fn a_body_has_so_many_pieces() {
    let service = start().await;
    let told = fetch(
        &service,
        json!({ "url": "http://site.test/in-bytes?100000" }),
    )
    .await;
    assert_eq!(
        (&told["outcome"], &told["bytes"]),
        (&json!("ok"), &json!(100_000))
    );
    let told = fetch(
        &service,
        json!({ "url": "http://site.test/in-bytes?200000" }),
    )
    .await;
    let rule = "its body arrived in more than 131072 pieces";
    assert_eq!(
        (&told["outcome"], &told["told"]),
        (&json!("bad_response"), &json!(rule)),
        "{told}"
    );
}
