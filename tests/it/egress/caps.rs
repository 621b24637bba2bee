//! Every way in which a site can be too much, ended by the cap that is for it, and what that costs the host.

use serde_json::{Value, json};

use super::{fetch, outcome, start};

/// What a hostile answer may leave behind in the host, in bytes.
const LEFT_BEHIND_MAX: u64 = 32 << 20;

pub(super) fn at(path: &str, caps: Value) -> Value {
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
        (
            "first_byte_late",
            at("/silent", json!({ "first_byte_ms": 100 })),
        ),
        ("bad_response", at("/breaks-off", json!({}))),
        ("bad_response", at("/no-http", json!({}))),
        ("body_too_large", at("/endless", json!({}))),
        (
            "body_too_large",
            at("/endless", json!({ "response_bytes": u32::MAX })),
        ),
        (
            "body_too_large",
            at("/sized?1001", json!({ "response_bytes": 1000 })),
        ),
        ("body_too_large", at("/bomb?gzip", json!({}))),
        ("body_too_large", at("/bomb?br", json!({}))),
        ("body_too_large", at("/bomb?zstd", json!({}))),
        ("body_too_large", at("/bomb?deflate", json!({}))),
        ("body_too_large", at("/bomb?gzip, gzip", json!({}))),
        ("bad_response", at("/coded?gzip, gzip, gzip", json!({}))),
        ("bad_response", at("/coded?compress", json!({}))),
        ("headers_too_large", at("/headers?1000000", json!({}))),
        ("headers_too_large", at("/headers?129", json!({}))),
        (
            "too_many_redirects",
            at("/around", json!({ "redirects": 3 })),
        ),
        (
            "too_many_redirects",
            at("/around", json!({ "redirects": u32::MAX })),
        ),
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
        assert!(
            now <= before + LEFT_BEHIND_MAX,
            "{input}: {before} bytes before and {now} after"
        );
    }
    // And what is just within them comes through.
    assert_eq!(
        fetch(
            &service,
            at("/sized?1000", json!({ "response_bytes": 1000 }))
        )
        .await["bytes"],
        1000
    );
    assert_eq!(outcome(&service, at("/headers?120", json!({}))).await, "ok");
}

#[tokio::test]
async fn a_call_has_so_many_requests_under_way_and_the_next_is_refused() {
    let service = start().await;
    let many = at("/silent", json!({ "times": 40, "first_byte_ms": 3000 }));
    let told = fetch(&service, many).await;
    assert_eq!(told["outcomes"], "busy 8, first_byte_late 32");
    // The places are free again.
    assert_eq!(
        fetch(&service, at("/", json!({ "times": 32 }))).await["outcomes"],
        "ok 32"
    );
}

#[tokio::test]
async fn a_request_is_bounded_too() {
    let service = start().await;
    let headers = |count: usize| {
        (0..count)
            .map(|number| format!("X-{number}: 1"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(
        outcome(&service, at("/", json!({ "headers": headers(129) }))).await,
        "invalid_request"
    );
    assert_eq!(
        outcome(&service, at("/", json!({ "headers": headers(100) }))).await,
        "ok"
    );
    let long = format!("X-Long: {}", "x".repeat(70_000));
    assert_eq!(
        outcome(&service, at("/", json!({ "headers": long }))).await,
        "invalid_request"
    );
    assert_eq!(
        outcome(
            &service,
            at("/", json!({ "headers": "X-Split: a\rInjected: b" }))
        )
        .await,
        "invalid_request"
    );
}
