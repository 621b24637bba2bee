//! Every way in which a site can be too much, ended by the cap that is for it, and what that costs the host.

use serde_json::{Value, json};

use super::{dials, fetch, outcome, start};
use crate::support::{Service, in_time};

/// What a hostile answer may leave behind in the host, in bytes.
const LEFT_BEHIND_MAX: u64 = 32 << 20;

async fn until_dialled(service: &Service, times: f64) {
    in_time("they are dialled", async { while dials(service).await < times {} }).await;
}

fn at(path: &str, caps: Value) -> Value {
    let mut input = json!({ "url": format!("http://site.test{path}") });
    let more = caps.as_object().cloned().unwrap_or_default();
    input.as_object_mut().expect("an object").extend(more);
    input
}

#[tokio::test]
async fn whatever_a_site_does_its_cap_ends_it_and_the_host_stays_small() {
    let service = start().await;
    let hostile = [
        ("total_late", at("/drips", json!({ "total_ms": 400 }))),
        ("idle", at("/stalls", json!({ "idle_ms": 100 }))),
        ("first_byte_late", at("/silent", json!({ "first_byte_ms": 100 }))),
        ("bad_response", at("/breaks-off", json!({}))),
        ("bad_response", at("/no-http", json!({}))),
        ("body_too_large", at("/endless", json!({}))),
        ("body_too_large", at("/endless", json!({ "response_bytes": u32::MAX }))),
        ("body_too_large", at("/sized?1001", json!({ "response_bytes": 1000 }))),
        ("body_too_large", at("/bomb?gzip", json!({}))),
        ("body_too_large", at("/bomb?br", json!({}))),
        ("body_too_large", at("/bomb?zstd", json!({}))),
        ("body_too_large", at("/bomb?deflate", json!({}))),
        ("body_too_large", at("/bomb?gzip, gzip", json!({}))),
        ("bad_response", at("/coded?gzip, gzip, gzip", json!({}))),
        ("bad_response", at("/coded?compress", json!({}))),
        ("headers_too_large", at("/headers?1000000", json!({}))),
        ("headers_too_large", at("/headers?129", json!({}))),
        ("too_many_redirects", at("/around", json!({ "redirects": 3 }))),
        ("too_many_redirects", at("/around", json!({ "redirects": u32::MAX }))),
    ];
    // What is allocated once, whatever is asked for, is there before it is measured.
    assert_eq!(outcome(&service, at("/", json!({}))).await, "ok");
    for (expected, input) in &hostile {
        assert_eq!(outcome(&service, input.clone()).await, *expected, "{input}");
    }
    let before = service.resident_bytes();
    for (expected, input) in &hostile {
        assert_eq!(outcome(&service, input.clone()).await, *expected, "{input}");
        let now = service.resident_bytes();
        assert!(now <= before + LEFT_BEHIND_MAX, "{input}: {before} bytes before and {now} after");
    }
    // And what is just within them comes through.
    assert_eq!(fetch(&service, at("/sized?1000", json!({ "response_bytes": 1000 }))).await["bytes"], 1000);
    assert_eq!(outcome(&service, at("/headers?120", json!({}))).await, "ok");
}

#[tokio::test]
async fn a_call_has_so_many_requests_under_way_and_the_next_is_refused() {
    let service = start().await;
    let many = at("/silent", json!({ "times": 40, "first_byte_ms": 3000 }));
    let told = fetch(&service, many).await;
    assert_eq!(told["outcomes"], "busy 8, first_byte_late 32");
    // The places are free again.
    assert_eq!(fetch(&service, at("/", json!({ "times": 32 }))).await["outcomes"], "ok 32");
}

#[tokio::test]
async fn a_plugin_has_so_many_bytes_of_bodies_under_way_and_the_next_waits() {
    let service = start().await;
    let large = json!({ "times": 8, "response_bytes": 16 << 20, "first_byte_ms": 60_000, "total_ms": 8000 });
    let all_taken = fetch(&service, at("/silent", large));
    let the_next = async {
        until_dialled(&service, 8.0).await;
        // It has no place until its time is over, and one when the others are through.
        assert_eq!(outcome(&service, at("/", json!({ "total_ms": 200 }))).await, "total_late");
        assert_eq!(dials(&service).await, 8.0);
        assert_eq!(outcome(&service, at("/", json!({}))).await, "ok");
    };
    let (told, ()) = tokio::join!(all_taken, the_next);
    assert_eq!(told["outcomes"], "total_late 8");
}

#[tokio::test]
async fn a_plugin_has_so_many_requests_under_way_and_the_next_waits() {
    let service = start().await;
    let small = json!({ "times": 32, "response_bytes": 1024, "first_byte_ms": 60_000, "total_ms": 8000 });
    let all_taken = async {
        tokio::join!(fetch(&service, at("/silent", small.clone())), fetch(&service, at("/silent", small.clone())))
    };
    let the_next = async {
        until_dialled(&service, 64.0).await;
        // It is not dialled for until there is a place.
        let next = json!({ "response_bytes": 1024, "total_ms": 200 });
        assert_eq!(outcome(&service, at("/", next)).await, "total_late");
        assert_eq!(dials(&service).await, 64.0);
        assert_eq!(outcome(&service, at("/", json!({ "response_bytes": 1024 }))).await, "ok");
    };
    let ((one, two), ()) = tokio::join!(all_taken, the_next);
    assert_eq!((&one["outcomes"], &two["outcomes"]), (&json!("total_late 32"), &json!("total_late 32")));
}

#[tokio::test]
async fn a_request_is_bounded_too() {
    let service = start().await;
    let headers = |count: usize| (0..count).map(|number| format!("X-{number}: 1")).collect::<Vec<_>>().join("\n");
    assert_eq!(outcome(&service, at("/", json!({ "headers": headers(129) }))).await, "invalid_request");
    assert_eq!(outcome(&service, at("/", json!({ "headers": headers(100) }))).await, "ok");
    let long = format!("X-Long: {}", "x".repeat(70_000));
    assert_eq!(outcome(&service, at("/", json!({ "headers": long }))).await, "invalid_request");
    assert_eq!(outcome(&service, at("/", json!({ "headers": "X-Split: a\rInjected: b" }))).await, "invalid_request");
}

/// What the bodies of all requests of a plugin may hold of the process's memory, and what else a few calls take.
const BODIES_AND_MORE_MAX: u64 = (64 + 128 + 128) << 20;

#[tokio::test]
async fn the_bodies_of_a_plugins_requests_are_bounded_together() {
    let service = start().await;
    assert_eq!(outcome(&service, at("/", json!({ "body_bytes": 4 << 20, "method": "POST" }))).await, "ok");
    let before = service.resident_bytes();
    // Half a gigabyte, sent to a site that does not answer.
    let large = json!({
        "times": 32, "body_bytes": 4 << 20, "method": "POST", "response_bytes": 1024,
        "first_byte_ms": 60_000, "total_ms": 6000,
    });
    let calls = async {
        let call = || fetch(&service, at("/silent", large.clone()));
        let (one, two, three, four) = tokio::join!(call(), call(), call(), call());
        [one, two, three, four]
    };
    let mut calls = std::pin::pin!(calls);
    let (mut most, mut looks) = (before, tokio::time::interval(std::time::Duration::from_millis(20)));
    let told = loop {
        tokio::select! {
            told = &mut calls => break told,
            _ = looks.tick() => most = most.max(service.resident_bytes()),
        }
    };
    assert!(most <= before + BODIES_AND_MORE_MAX, "{before} bytes before and {most} at most");
    let refused = |told: &Value| {
        let outcomes = told["outcomes"].as_str().expect("outcomes").to_owned();
        outcomes.split(", ").find_map(|each| each.strip_prefix("busy ")?.parse::<u32>().ok()).unwrap_or(0)
    };
    // 31 have a place and 16 wait, until their time is over.
    let refused: u32 = told.iter().map(refused).sum();
    assert!((32..=4 * 32 - 31 - 16).contains(&refused), "{told:?}");
    assert_eq!(outcome(&service, at("/", json!({ "body_bytes": 4 << 20, "method": "POST" }))).await, "ok");
}
