//! What the audit tells of requests that were refused: where each was to go, and how many there were.

use serde_json::{Value, json};

use super::{fetch, outcome, proxied, start};
use crate::support::{Service, Wire, in_time};

/// Lines of what was refused that are written at once, and in each second from then on.
const LINES_AT_ONCE: u64 = 256;
const LINES_A_SECOND: u64 = 50;

#[tokio::test]
async fn a_refused_request_is_told_with_its_host_and_port() {
    let service = start().await;
    let told = [
        ("http://127.0.0.1/", "127.0.0.1", 80),
        ("https://[::1]:8443/", "[::1]", 8443),
        ("http://2130706433/", "127.0.0.1", 80),
        ("http://localhost/", "localhost", 80),
        ("http://me:word@site.test/", "site.test", 80),
        ("http://site.test:8080/", "site.test", 8080),
        ("ftp://site.test/", "site.test", 21),
        (
            "http://site.test/redirect?http://169.254.169.254/latest",
            "169.254.169.254",
            80,
        ),
        ("http://site.test/redirect?//10.0.0.1:81/", "10.0.0.1", 81),
    ];
    for (url, _, _) in told {
        let refused = outcome(&service, json!({ "url": url, "redirects": 1 })).await;
        assert!(
            ["not_public", "not_acceptable", "redirect_denied"].contains(&refused.as_str()),
            "{url}: {refused}"
        );
    }
    let lines = service.log_until(|lines| refused(lines).len() >= told.len());
    let found: Vec<(Value, Value)> = refused(&lines)
        .iter()
        .map(|line| (line["host"].clone(), line["port"].clone()))
        .collect();
    assert_eq!(
        found,
        told.map(|(_, host, port)| (json!(host), json!(port)))
    );
}

fn refused(lines: &[Value]) -> Vec<Value> {
    let is_refused = |line: &&Value| {
        line["target"] == "egress"
            && line["message"] == "request"
            && line["verdict"] != "sent"
            && line["level"] == "INFO"
    };
    lines.iter().filter(is_refused).cloned().collect()
}

fn left_out(lines: &[Value]) -> u64 {
    lines
        .iter()
        .filter(|line| line["target"] == "egress")
        .filter_map(|line| line["left_out"].as_u64())
        .sum()
}

#[tokio::test]
async fn refused_requests_have_so_many_lines_and_the_others_are_counted() {
    let service = start().await;
    let started = std::time::Instant::now();
    for _ in 0..20 {
        let many = json!({ "url": "http://127.0.0.1/", "times": 100 });
        assert_eq!(fetch(&service, many).await["outcomes"], "not_public 100");
    }
    check_told(&service, 2000, started);
}

/// All of them are told of, one by one or by their number, and the first not too often.
fn check_told(service: &Service, all: u64, started: std::time::Instant) {
    let count = |lines: &[Value]| u64::try_from(refused(lines).len()).expect("a few");
    let lines = service.log_until(|lines| count(lines) + left_out(lines) >= all);
    assert_eq!(count(&lines) + left_out(&lines), all);
    let lines_max = LINES_AT_ONCE + LINES_A_SECOND * (started.elapsed().as_secs() + 1);
    assert!(
        count(&lines) <= lines_max,
        "{} lines in {:?}",
        count(&lines),
        started.elapsed()
    );
}

#[tokio::test]
async fn the_proxy_tells_of_strangers_by_the_same_rule() {
    let service = start().await;
    let proxy = proxied::lend(&service, 60).await.proxy;
    let started = std::time::Instant::now();
    for _ in 0..400 {
        let mut wire = Wire::connect(&proxy).await;
        wire.send("GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n")
            .await;
        assert_eq!(in_time("it is refused", wire.answer()).await.status, 407);
    }
    let count = |lines: &[Value]| {
        u64::try_from(
            lines
                .iter()
                .filter(|line| line["verdict"] == "no_credential")
                .count(),
        )
        .expect("a few")
    };
    let lines = service.log_until(|lines| count(lines) + left_out(lines) >= 400);
    assert_eq!(count(&lines) + left_out(&lines), 400);
    assert!(count(&lines) <= LINES_AT_ONCE + LINES_A_SECOND * (started.elapsed().as_secs() + 1));
}
