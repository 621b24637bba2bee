//! What ends a request or a tunnel through the proxy that does not end by itself.

use std::time::Duration;

use serde_json::{Value, json};

use super::proxied::{Lent, lend, lines, request};
use super::{dials, outcome, start_with};
use crate::support::{Service, Wire, in_time};

/// What the proxy says where a plugin has as many requests under way as it may.
const BUSY: &str = "switchbay; error=connection_limit_reached; details=\"refused: the plugin has reached its limit \
    of concurrent requests\"";

async fn asked(lent: &Lent, line: &str) -> Wire {
    let mut wire = Wire::connect(&lent.proxy).await;
    wire.send(request(line, lent)).await;
    wire
}

/// A tunnel that is open.
async fn tunnel(lent: &Lent) -> Wire {
    let mut wire = asked(lent, "CONNECT site.test:80 HTTP/1.1").await;
    assert!(wire.until("\r\n\r\n").await.starts_with("HTTP/1.1 200 "));
    wire
}

/// The verdict of the first line that is about what went through.
fn verdict(service: &Service) -> String {
    let is_told = |all: &[Value]| lines(all).iter().any(|line| line["way"].is_string());
    let all = service.log_until(is_told);
    let line = lines(&all)
        .into_iter()
        .find(|line| line["way"].is_string())
        .expect("a line");
    line["verdict"].as_str().expect("a verdict").to_owned()
}

#[tokio::test]
async fn a_head_that_does_not_come_is_cut_however_it_does_not() {
    let service = start_with("[proxy]\nhead_ms = 300").await;
    let lent = lend(&service, 600).await;
    let mut nothing = Wire::connect(&lent.proxy).await;
    let mut half = Wire::connect(&lent.proxy).await;
    half.send("GET http://site.test/ HTTP/1.1\r\nHost: si")
        .await;
    let mut drips = Wire::connect(&lent.proxy).await;
    drips
        .send("GET http://site.test/ HTTP/1.1\r\nX-Drip: ")
        .await;
    let dripping = async {
        while !drips.ended_within(Duration::from_millis(20)).await {
            drips.try_send("a").await;
        }
    };
    in_time("the proxy cuts", dripping).await;
    assert!(half.ended().await.starts_with("HTTP/1.1 408 "));
    assert_eq!(nothing.ended().await, "");
    assert_eq!(dials(&service).await, 0.0);
}

#[tokio::test]
async fn a_tunnel_in_which_nothing_moves_is_cut() {
    let service = start_with("[proxy]\nidle_ms = 300").await;
    let mut idle = tunnel(&lend(&service, 600).await).await;
    assert_eq!(idle.ended().await, "");
    assert_eq!(verdict(&service), "idle");
}

#[tokio::test]
async fn an_answer_that_stops_is_cut() {
    let service = start_with("[proxy]\nidle_ms = 300").await;
    let mut stalled = asked(
        &lend(&service, 600).await,
        "GET http://site.test/stalls HTTP/1.1",
    )
    .await;
    assert!(stalled.ended().await.ends_with("\r\n\r\nhalf"));
    assert_eq!(verdict(&service), "idle");
}

#[tokio::test]
async fn an_answer_that_drips_is_cut_with_its_time() {
    let service = start_with("[proxy]\ntotal_ms = 600").await;
    let mut dripping = asked(
        &lend(&service, 600).await,
        "GET http://site.test/drips HTTP/1.1",
    )
    .await;
    assert!(dripping.ended().await.starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(verdict(&service), "late");
}

#[tokio::test]
async fn a_tunnel_that_drips_is_cut_with_its_time() {
    let service = start_with("[proxy]\ntotal_ms = 600").await;
    let mut dripping = tunnel(&lend(&service, 600).await).await;
    dripping
        .send("GET /drips HTTP/1.1\r\nHost: site.test\r\n\r\n")
        .await;
    assert!(dripping.ended().await.starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(verdict(&service), "late");
}

#[tokio::test]
async fn an_endless_answer_is_cut_with_its_bytes() {
    let service = start_with("[proxy]\nbytes = 1000000").await;
    let mut endless = asked(
        &lend(&service, 600).await,
        "GET http://site.test/endless HTTP/1.1",
    )
    .await;
    let bytes = endless.ended().await.len();
    assert!((900_000..1_300_000).contains(&bytes), "{bytes}");
    assert_eq!(verdict(&service), "too_large");
}

#[tokio::test]
async fn an_endless_tunnel_is_cut_with_its_bytes() {
    let service = start_with("[proxy]\nbytes = 1000000").await;
    let mut endless = tunnel(&lend(&service, 600).await).await;
    endless
        .send("GET /endless HTTP/1.1\r\nHost: site.test\r\n\r\n")
        .await;
    let bytes = endless.ended().await.len();
    assert!((900_000..1_300_000).contains(&bytes), "{bytes}");
    assert_eq!(verdict(&service), "too_large");
}

#[tokio::test]
async fn a_site_that_is_no_site_is_answered_for() {
    let service = start_with("").await;
    let lent = lend(&service, 600).await;
    for (path, status) in [
        ("no-http", 502),
        ("headers?129", 502),
        ("proxy-status", 502),
    ] {
        let mut wire = asked(&lent, &format!("GET http://site.test/{path} HTTP/1.1")).await;
        assert_eq!(wire.answer().await.status, status, "{path}");
        assert_eq!(wire.ended().await, "", "{path}");
    }
    let mut unreachable = asked(&lent, "GET http://closed.test/ HTTP/1.1").await;
    assert_eq!(unreachable.answer().await.status, 502);
    let mut unreachable = asked(&lent, "CONNECT closed.test:80 HTTP/1.1").await;
    assert_eq!(unreachable.answer().await.status, 502);
    // What is cut off is not made whole.
    let mut broken = asked(&lent, "GET http://site.test/breaks-off HTTP/1.1").await;
    let told = broken.ended().await;
    assert!(
        told.contains("content-length: 100\r\n") && told.ends_with("half"),
        "{told}"
    );
}

#[tokio::test]
async fn more_tunnels_than_a_plugin_may_have_are_refused() {
    let service = start_with("").await;
    let lent = lend(&service, 600).await;
    let mut open = Vec::new();
    for _ in 0..64 {
        open.push(tunnel(&lent).await);
    }
    let mut refused = asked(&lent, "CONNECT site.test:80 HTTP/1.1").await;
    assert_eq!(refused.answer().await.status, 503);
    // One that ends makes room.
    drop(open);
    service.log_until(|all| lines(all).len() >= 65);
    tunnel(&lent).await;
}

#[tokio::test]
async fn more_requests_than_a_plugin_may_have_are_refused_until_an_answer_is_whole() {
    let service = start_with("").await;
    let lent = lend(&service, 600).await;
    let mut open = Vec::new();
    for _ in 0..64 {
        let mut stalls = asked(&lent, "GET http://site.test/stalls HTTP/1.1").await;
        // Its head is there, and its body never will be.
        stalls.until("\r\n\r\nhalf").await;
        open.push(stalls);
    }
    let mut refused = asked(&lent, "GET http://site.test/ HTTP/1.1").await;
    let told = refused.answer().await;
    assert_eq!(
        (told.status, told.headers["proxy-status"].to_str().ok()),
        (503, Some(BUSY))
    );
    assert_eq!(
        outcome(
            &service,
            json!({ "url": "http://site.test/", "total_ms": 2000 })
        )
        .await,
        "ok",
        "calls have others"
    );
    // What is denied is told so all the same.
    assert_eq!(
        asked(&lent, "GET http://127.0.0.1/ HTTP/1.1")
            .await
            .answer()
            .await
            .status,
        403
    );
    drop(open);
    let gone = |all: &[Value]| {
        lines(all)
            .iter()
            .filter(|line| line["host"] == "site.test")
            .count()
            >= 65
    };
    service.log_until(gone);
    let mut answered = asked(&lent, "GET http://site.test/ HTTP/1.1").await;
    assert!(answered.ended().await.ends_with("hello"));
}

#[tokio::test]
async fn more_connections_than_there_may_be_wait() {
    let service = start_with("[proxy]\nconnections = 1\nhead_ms = 300").await;
    let lent = lend(&service, 600).await;
    let mut silent = Wire::connect(&lent.proxy).await;
    silent.send("GET ").await;
    let mut waits = asked(&lent, "GET http://site.test/ HTTP/1.1").await;
    // Without a bound the one that waits would be through long before the silent one is cut.
    let first = tokio::select! {
        biased;
        cut = silent.ended() => cut,
        answered = waits.ended() => answered,
    };
    assert!(first.starts_with("HTTP/1.1 408 "), "{first}");
    assert!(waits.ended().await.ends_with("hello"));
}
