//! TLS and HTTP/2: who is trusted, and connections that are used again.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use super::traffic::{callers, fetch_as, while_held};
use super::{dials, fetch, fetch_by, outcome};
use crate::lab::{Certificate, HttpServer, Reply, Visit, public_row};
use crate::support::{Options, Service, workspace};

const FETCHES: &str = "fetches.toml";

/// A site that says which version of HTTP it was asked in, and its certificate. Below `/headers/` it has so many of them, below
/// `/header/` one of so many bytes, below `/streamed/` and `/begins/` a body of so many, whole or without its end; at `/dies`
/// its connection dies, and at `/half` its body stops.
pub(super) fn serve() -> (HttpServer, SocketAddr, Certificate) {
    let certificate = Certificate::of(&["secure.test"]);
    let server = HttpServer::new(answer);
    let address = server.listen(Some(certificate.server(&["h2", "http/1.1"])));
    (server, address, certificate)
}

fn answer(visit: &Visit) -> Reply {
    let (path, number) = visit.path[1..]
        .split_once('/')
        .unwrap_or((&visit.path[1..], ""));
    let number = || number.parse().expect("a number");
    let stream = |bytes, ends| Reply::Stream {
        body: vec![b'x'; bytes],
        ends,
    };
    let said = Reply::bare(
        200,
        format!("{:?} {} {}", visit.version, visit.host, visit.path),
    );
    match path {
        "dies" => Reply::Freeze,
        "half" => stream(4, false),
        "streamed" => stream(number(), true),
        "begins" => stream(number(), false),
        "headers" => {
            (0..number()).fold(said, |said, number| said.header(format!("x-{number}"), "1"))
        }
        "header" => said.header("x-long", "x".repeat(number())),
        _ => said,
    }
}

/// The site, a service that trusts it, and the folder of what that trusts.
async fn start_trusting(manifest: &str) -> (HttpServer, TempDir, Service) {
    let (server, site, certificate) = serve();
    let folder = TempDir::new().expect("a temporary folder");
    let root = folder.path().join("root.pem");
    certificate.write(&root);
    let service = start_plugins(manifest, site, &[&root]).await;
    (server, folder, service)
}

pub(super) async fn start(site: SocketAddr, roots: &[&Path]) -> Service {
    start_plugins(FETCHES, site, roots).await
}

async fn start_plugins(manifest: &str, site: SocketAddr, roots: &[&Path]) -> Service {
    let connect_to = ["secure.test:443", "other.test:443", "secure.test:80"];
    let connect_to: Vec<String> = connect_to
        .iter()
        .map(|host| public_row(host, site))
        .collect();
    let config = format!(
        "[egress]\nextra_roots = {roots:?}\nconnect_to = {{ {} }}",
        connect_to.join(", ")
    );
    let manifest = Some(workspace().join("tests/programs").join(manifest));
    Service::start(Options {
        config,
        manifest,
        ..Options::default()
    })
    .await
}

#[tokio::test]
async fn a_trusted_site_is_spoken_to_over_one_connection_of_http_2() {
    let (_site, _folder, service) = start_trusting(FETCHES).await;
    for path in ["/a", "/b", "/c"] {
        let told = fetch(
            &service,
            json!({ "url": format!("https://secure.test{path}") }),
        )
        .await;
        assert_eq!(
            told["text"],
            format!("HTTP/2.0 secure.test {path}"),
            "{told}"
        );
    }
    assert_eq!(
        fetch(
            &service,
            json!({ "url": "https://secure.test/", "times": 20 })
        )
        .await["outcomes"],
        "ok 20"
    );
    assert_eq!(dials(&service).await, 1.0);
    // Another name is another site, whatever its address.
    assert_eq!(
        outcome(&service, json!({ "url": "https://other.test/" })).await,
        "unreachable"
    );
    assert_eq!(
        outcome(&service, json!({ "url": "http://secure.test/" })).await,
        "bad_response"
    );
}

/// Callers share the connection; each answer here takes most of its caller's room, so that the next waits to be read.
#[tokio::test]
async fn answers_that_wait_for_room_hold_up_no_others_of_their_connection() {
    let (site, _folder, service) = start_trusting(FETCHES).await;
    let at = |path: &str, times: u32, total_ms: u32| {
        let url = format!("https://secure.test{path}");
        json!({ "url": url, "times": times, "response_bytes": 16 << 20, "idle_ms": 30_000, "total_ms": total_ms })
    };
    // The connection is there before all ask at once.
    assert_eq!(fetch(&service, at("/a", 1, 5000)).await["outcome"], "ok");
    assert_eq!(
        fetch(&service, at("/streamed/1000000", 8, 20_000)).await["outcomes"],
        "ok 8"
    );
    let callers = callers(&service, 2);
    let held = fetch_as(&service, &callers[0], at("/begins/1000000", 8, 50_000));
    let others = async {
        let begins = |visit: &Visit| visit.path.starts_with("/begins/");
        site.until("what begins", 1, begins).await;
        for path in ["/a", "/streamed/1000000", "/a"] {
            let told = fetch_as(&service, &callers[1], at(path, 1, 5000)).await;
            assert_eq!(told["outcome"], "ok", "{path}: {told}");
        }
    };
    while_held(held, others).await;
    assert_eq!(
        dials(&service).await,
        1.0,
        "all of this came over one connection"
    );
}

#[tokio::test]
async fn a_head_has_its_limits_over_http_2_too() {
    let (_site, _folder, service) = start_trusting(FETCHES).await;
    let outcome_of = async |path: &str| {
        outcome(
            &service,
            json!({ "url": format!("https://secure.test{path}") }),
        )
        .await
    };
    assert_eq!(outcome_of("/headers/100").await, "ok");
    assert_eq!(outcome_of("/headers/129").await, "headers_too_large");
    assert_eq!(outcome_of("/header/60000").await, "ok");
    for bytes in [66_000, 1_000_000] {
        let refused = outcome_of(&format!("/header/{bytes}")).await;
        assert!(
            ["headers_too_large", "bad_response"].contains(&refused.as_str()),
            "{bytes}: {refused}"
        );
    }
    assert_eq!(outcome_of("/").await, "ok");
}

#[tokio::test]
async fn a_connection_that_died_without_a_word_is_given_up() {
    let (site, _folder, service) = start_trusting(FETCHES).await;
    let patient = |path: &str| {
        let url = format!("https://secure.test{path}");
        json!({ "url": url, "first_byte_ms": 60_000, "idle_ms": 30_000, "total_ms": 120_000 })
    };
    assert_eq!(outcome(&service, patient("/")).await, "ok");
    let half = outcome(&service, patient("/half"));
    let dies = async {
        // It is asked for on the connection on which the body is under way.
        site.until("/half", 1, |visit| visit.path == "/half").await;
        outcome(&service, patient("/dies")).await
    };
    assert_eq!(
        tokio::join!(half, dies),
        ("bad_response".to_owned(), "first_byte_late".to_owned())
    );
    assert_eq!(dials(&service).await, 1.0);
    // Whatever comes next has a connection of its own, at once.
    assert_eq!(
        outcome(&service, json!({ "url": "https://secure.test/" })).await,
        "ok"
    );
    assert_eq!(dials(&service).await, 2.0);
}

#[tokio::test]
async fn a_site_that_nobody_vouches_for_is_unreachable() {
    let (_, site, _) = serve();
    let service = start(site, &[]).await;
    assert_eq!(
        outcome(&service, json!({ "url": "https://secure.test/" })).await,
        "unreachable"
    );
}

#[tokio::test]
async fn two_plugins_never_share_a_connection() {
    let (_site, _folder, service) = start_trusting("fetches-twice.toml").await;
    for (plugin, expected) in [
        ("fetches", 1.0),
        ("fetches-too", 2.0),
        ("fetches", 2.0),
        ("fetches-too", 2.0),
    ] {
        let input = json!({ "url": "https://secure.test/" });
        let told = fetch_by(&service, &format!("/api/v1/test/{plugin}"), input).await;
        assert_eq!(told["outcome"], "ok", "{told}");
        assert_eq!(dials(&service).await, expected, "{plugin}");
    }
}
