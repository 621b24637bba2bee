//! What one caller may have under way of a plugin's requests: whoever waits for slow sites keeps nobody else waiting.

use reqwest::Method;
use serde_json::{Value, json};

use super::caps::at;
use super::{FETCH, dials, outcome, start};
use crate::support::{Service, in_time};

/// Keys of as many callers.
pub(super) fn callers(service: &Service, count: usize) -> Vec<String> {
    (0..count)
        .map(|_| service.issue(&["--all-scopes"]))
        .collect()
}

pub(super) async fn fetch_as(service: &Service, key: &str, input: Value) -> Value {
    let answer = Service::send(
        service
            .bare(Method::POST, FETCH)
            .bearer_auth(key)
            .json(&input),
    )
    .await;
    assert_eq!(
        answer.status,
        200,
        "{input}: {}",
        String::from_utf8_lossy(&answer.bytes)
    );
    answer.json()["data"].clone()
}

async fn outcome_as(service: &Service, key: &str, input: Value) -> String {
    fetch_as(service, key, input).await["outcome"]
        .as_str()
        .expect("an outcome")
        .to_owned()
}

async fn until_dialled(service: &Service, times: f64) {
    in_time("they are dialled", async {
        while dials(service).await < times {}
    })
    .await;
}

/// Does something while calls are held, which then end with their clients.
pub(super) async fn while_held<T>(held: impl Future<Output = T>, done: impl Future<Output = ()>) {
    tokio::select! {
        _ = held => panic!("the calls were not held"),
        () = done => {}
    }
}

/// Holds requests to a site that never answers.
fn silent(times: u32) -> Value {
    at(
        "/silent",
        json!({ "times": times, "first_byte_ms": 60_000, "total_ms": 50_000 }),
    )
}

#[tokio::test]
async fn a_callers_requests_wait_behind_its_own_and_behind_nobody_elses() {
    let service = start().await;
    let callers = callers(&service, 2);
    let all_taken = fetch_as(&service, &callers[0], silent(32));
    let the_next = async {
        until_dialled(&service, 32.0).await;
        // It is not dialled for until there is a place.
        let next = outcome_as(&service, &callers[0], at("/", json!({ "total_ms": 200 })));
        assert_eq!(next.await, "total_late");
        assert_eq!(dials(&service).await, 32.0);
        assert_eq!(
            outcome_as(&service, &callers[1], at("/", json!({ "total_ms": 2000 }))).await,
            "ok"
        );
    };
    while_held(all_taken, the_next).await;
    assert_eq!(
        outcome_as(&service, &callers[0], at("/", json!({}))).await,
        "ok"
    );
}

#[tokio::test]
async fn the_last_quarter_of_a_plugins_requests_is_for_callers_that_have_none() {
    let service = start().await;
    let callers = callers(&service, 8);
    let all_taken = callers[..7]
        .iter()
        .map(|key| fetch_as(&service, key, silent(32)));
    let the_next = async {
        // They have three quarters of all; if one of them came when these were taken, one more of its own.
        until_dialled(&service, 192.0).await;
        assert_eq!(
            outcome_as(&service, &callers[7], at("/", json!({ "total_ms": 2000 }))).await,
            "ok"
        );
        assert!(
            dials(&service).await <= 194.0,
            "what waits is not dialled for"
        );
    };
    while_held(futures::future::join_all(all_taken), the_next).await;
}

#[tokio::test]
async fn what_answers_have_beyond_their_beginnings_is_shared_too() {
    let service = start().await;
    let callers = callers(&service, 2);
    // A site that sends the beginning of what could be a large body, and then nothing: the first has room for it.
    let large =
        json!({ "times": 2, "response_bytes": 16 << 20, "idle_ms": 30_000, "total_ms": 50_000 });
    let all_taken = fetch_as(&service, &callers[0], at("/begins?200000", large));
    let the_next = async {
        until_dialled(&service, 2.0).await;
        let page = |bytes: u32, total_ms: u32| {
            at(
                &format!("/sized?{bytes}"),
                json!({ "response_bytes": 16 << 20, "total_ms": total_ms }),
            )
        };
        assert_eq!(
            outcome_as(&service, &callers[0], page(10_000_000, 500)).await,
            "total_late"
        );
        assert_eq!(
            outcome_as(&service, &callers[0], page(100_000, 2000)).await,
            "ok",
            "a beginning needs no room"
        );
        assert_eq!(
            outcome_as(&service, &callers[1], page(10_000_000, 4000)).await,
            "ok"
        );
    };
    while_held(all_taken, the_next).await;
    let again = at("/sized?10000000", json!({ "response_bytes": 16 << 20 }));
    assert_eq!(outcome_as(&service, &callers[0], again).await, "ok");
}

/// What the bodies of all requests of a plugin may hold of the process's memory, and what else a few calls take.
const BODIES_AND_MORE_MAX: u64 = (64 + 128 + 128) << 20;

#[tokio::test]
async fn the_bodies_of_a_plugins_requests_are_bounded_together() {
    let service = start().await;
    assert_eq!(
        outcome(
            &service,
            at("/", json!({ "body_bytes": 4 << 20, "method": "POST" }))
        )
        .await,
        "ok"
    );
    let before = service.resident_bytes();
    // Three quarters of a gigabyte, sent to a site that does not answer.
    let large = json!({
        "times": 32, "body_bytes": 4 << 20, "method": "POST", "response_bytes": 1024,
        "first_byte_ms": 60_000, "total_ms": 6000,
    });
    let callers = callers(&service, 6);
    let calls = callers
        .iter()
        .map(|key| fetch_as(&service, key, at("/silent", large.clone())));
    let mut calls = futures::future::join_all(calls);
    let (mut most, mut looks) = (
        before,
        tokio::time::interval(std::time::Duration::from_millis(20)),
    );
    let told = loop {
        tokio::select! {
            told = &mut calls => break told,
            _ = looks.tick() => most = most.max(service.resident_bytes()),
        }
    };
    assert!(
        most <= before + BODIES_AND_MORE_MAX,
        "{before} bytes before and {most} at most"
    );
    let refused = |told: &Value| {
        let outcomes = told["outcomes"].as_str().expect("outcomes").to_owned();
        outcomes
            .split(", ")
            .find_map(|each| each.strip_prefix("busy ")?.parse::<u32>().ok())
            .unwrap_or(0)
    };
    // Of all at least six have a place and twelve wait, until their time is over.
    let refused: Vec<u32> = told.iter().map(refused).collect();
    assert!(refused.iter().all(|refused| *refused <= 31), "{told:?}");
    assert!(
        (3 * 32..=6 * 32 - 6 - 12).contains(&refused.iter().sum::<u32>()),
        "{told:?}"
    );
    assert_eq!(
        outcome(
            &service,
            at("/", json!({ "body_bytes": 4 << 20, "method": "POST" }))
        )
        .await,
        "ok"
    );
}
