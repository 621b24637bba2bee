//! Swaps under load: no call fails, no answer mixes two revisions, and waiting does not grow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use reqwest::{Client, Method};
use serde_json::{Value, json};

use super::{House, key};
use crate::support::{Held, Service, built, in_time};

/// Swaps in one run; `SWITCHBAY_SWAPS` asks for more or fewer.
fn swaps() -> usize {
    std::env::var("SWITCHBAY_SWAPS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(500)
}

const CALLERS: usize = 8;
const TURNS: usize = 10;

/// Calls until it is told to stop, and gives back how long each took.
async fn call(client: Client, url: String, key: String, stop: Arc<AtomicBool>) -> Vec<Duration> {
    let mut took = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let started = Instant::now();
        let response = client
            .get(&url)
            .bearer_auth(&key)
            .send()
            .await
            .expect("it answers");
        assert_eq!(response.status(), 200);
        let header = response.headers()["cache-control"]
            .to_str()
            .expect("text")
            .to_owned();
        let body: Value =
            serde_json::from_slice(&response.bytes().await.expect("the body")).expect("JSON");
        took.push(started.elapsed());
        let expected = if body["data"]["revision"] == "a" {
            "max-age=11"
        } else {
            "max-age=22"
        };
        assert_eq!(header, expected, "an answer mixes two revisions: {body}");
    }
    took
}

/// Callers' times while something is done.
async fn load<F: Future<Output = ()>>(
    service: &Service,
    key: &str,
    meanwhile: impl FnOnce() -> F,
) -> Vec<Duration> {
    let stop = Arc::new(AtomicBool::new(false));
    let client = Client::builder().build().expect("a client");
    let url = format!("{}/api/v1/test/which", service.base_url);
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            tokio::spawn(call(
                client.clone(),
                url.clone(),
                key.to_owned(),
                Arc::clone(&stop),
            ))
        })
        .collect();
    meanwhile().await;
    stop.store(true, Ordering::Relaxed);
    let mut took = Vec::new();
    for caller in callers {
        took.extend(caller.await.expect("no call failed"));
    }
    took
}

fn p99(mut took: Vec<Duration>) -> Duration {
    took.sort_unstable();
    took[took.len() * 99 / 100]
}

const VERSIONED: &str = "/admin/v1/plugins/versioned";

/// Puts the other revision in the place of the one that serves, and looks at the documents.
async fn swap(service: &Service, round: usize) {
    let next = 1 + round % 2;
    let answer = service
        .admin(
            Method::POST,
            &format!("{VERSIONED}/revisions/{next}/activate"),
            Some(&json!({})),
        )
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let letter = if next == 1 { "a" } else { "b" };
    let sentence = format!("this is revision {letter} of");
    let tools = service
        .mcp(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }))
        .await;
    assert!(
        String::from_utf8_lossy(&tools.bytes).contains(&sentence),
        "round {round}: the tools are stale"
    );
    let document = Service::send(service.bare(Method::GET, "/openapi.json")).await;
    assert!(
        String::from_utf8_lossy(&document.bytes).contains(&sentence),
        "round {round}: the document is stale"
    );
}

/// The same requests without the swap: what the swapping itself costs is what is left.
async fn look(service: &Service) {
    let plugin = service.told(VERSIONED).await;
    assert_eq!(plugin["state"], "active");
    service
        .mcp(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }))
        .await;
    Service::send(service.bare(Method::GET, "/openapi.json")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_swaps_under_load_fail_no_call_and_mix_no_answer() {
    let house = House::new("");
    house.write("versioned.wasm", &built("versioned_a"));
    house.manifest(
        "[[plugin]]\nname = \"versioned\"\nsource = \"versioned.wasm\"\ninstances = \"warm\"\n",
    );
    let service = Arc::new(house.serve().await);
    house.write("versioned.wasm", &built("versioned_b"));
    let followed = service
        .admin(Method::POST, "/admin/v1/manifest/follow", None)
        .await;
    assert_eq!(
        followed.json()["data"]["plugins"][0]["outcome"],
        "live",
        "{followed:?}"
    );

    let rounds = swaps();
    let (key, mut quiet, mut swapped) = (key(&service), Vec::new(), Vec::new());
    // By turns, so that whatever else the machine does falls on both.
    for turn in 0..TURNS {
        let part = rounds * turn / TURNS..rounds * (turn + 1) / TURNS;
        let looks = part.clone();
        quiet.extend(
            load(&service, &key, async || {
                for _ in looks {
                    look(&service).await;
                }
            })
            .await,
        );
        swapped.extend(
            load(&service, &key, async || {
                for round in part {
                    swap(&service, round).await;
                }
            })
            .await,
        );
    }
    let calls = swapped.len();
    assert!(
        calls > rounds,
        "{calls} calls beside {rounds} swaps are no load"
    );
    let (quiet, swapped) = (p99(quiet), p99(swapped));
    let ratio = swapped.as_secs_f64() / quiet.as_secs_f64();
    println!(
        "{rounds} swaps, {calls} calls: p99 {swapped:?} against {quiet:?} without, {ratio:.2} times"
    );
    assert!(
        ratio <= 2.0,
        "p99 is {swapped:?} with swaps and {quiet:?} without"
    );
}

async fn metrics(service: &Service) -> String {
    let url = format!("{}/metrics", service.operator_url());
    let request = Client::new().get(url).bearer_auth(service.operator_token());
    String::from_utf8(Service::send(request).await.bytes).expect("text")
}

#[tokio::test]
async fn a_call_that_runs_ends_on_the_revision_that_it_began_on() {
    let house = House::new("");
    house.write("misbehave.wasm", &super::misbehave());
    let manifest = |concurrency: u32| {
        format!(
            "[[plugin]]\nname = \"misbehave\"\nsource = \"misbehave.wasm\"\ngrants = [\"logging\", \"config\"]\n\
             limits = {{ concurrency = {concurrency} }}\n"
        )
    };
    house.manifest(&manifest(4));
    let service = Arc::new(house.serve().await);
    // It waits for its whole second, and is told of its own deadline then.
    let waiting = tokio::spawn({
        let service = Arc::clone(&service);
        async move { service.post("/api/v1/test/wait", &json!({})).await }
    });
    let runs = "switchbay_plugin_instances{plugin=\"misbehave\",revision=\"1\"} 1";
    in_time("the call runs", async {
        while !metrics(&service).await.contains(runs) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // More revisions than may drain at once would stop it; these do not.
    for concurrency in 5..9 {
        house.manifest(&manifest(concurrency));
        let followed = service
            .admin(Method::POST, "/admin/v1/manifest/follow", None)
            .await;
        assert_eq!(
            followed.json()["data"]["plugins"][0]["outcome"],
            "live",
            "{followed:?}"
        );
    }
    let status = service.told("/admin/v1/status").await;
    assert_eq!(
        status["draining"],
        json!([{ "plugin": "misbehave", "revision": 1 }])
    );
    assert!(metrics(&service).await.contains(runs));
    let answer = waiting.await.expect("it is answered");
    assert_eq!(
        answer.refusal(),
        (504, "TOO_LATE".to_owned()),
        "its own deadline, and not the swap"
    );
    in_time("it has drained", async {
        while service.told("/admin/v1/status").await["draining"] != json!([]) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let first = service.told("/admin/v1/plugins/misbehave").await;
    let states: Vec<&Value> = first["revisions"]
        .as_array()
        .expect("revisions")
        .iter()
        .map(|revision| &revision["state"])
        .collect();
    assert!(
        states.iter().all(|state| **state != "draining"),
        "{states:?}"
    );
}

#[tokio::test]
async fn when_too_many_revisions_drain_the_oldest_is_stopped() {
    const DRAINING_MAX: usize = 16;
    let house = House::new("");
    house.write("misbehave.wasm", &super::misbehave());
    let grants = "grants = [\"logging\", \"config\"]";
    let entry =
        format!("[[plugin]]\nname = \"misbehave\"\nsource = \"misbehave.wasm\"\n{grants}\n");
    house.manifest(&entry);
    let service = house.serve().await;
    house.manifest(&format!("{entry}instances = \"warm\"\n"));
    let followed = service
        .admin(Method::POST, "/admin/v1/manifest/follow", None)
        .await;
    assert_eq!(
        followed.json()["data"]["plugins"][0]["outcome"],
        "live",
        "{followed:?}"
    );
    let mut held = Vec::new();
    for round in 0..=DRAINING_MAX {
        // It has its route, and so its revision; its body does not come yet.
        held.push(Held::open_on(&service, "/api/v1/test/misbehave", r#"{"how":"behave"}"#).await);
        let path = format!(
            "/admin/v1/plugins/misbehave/revisions/{}/activate",
            1 + round % 2
        );
        let swapped = service.admin(Method::POST, &path, Some(&json!({}))).await;
        assert_eq!(swapped.status, 200, "{swapped:?}");
    }
    let mut held = held.into_iter();
    let oldest = held.next().expect("the oldest").finish().await;
    assert_eq!(oldest.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
    assert_eq!(
        oldest.json()["error"]["message"],
        "The operation was replaced while this call ran; try again"
    );
    for (index, one) in held.enumerate() {
        assert_eq!(
            one.finish().await.status,
            200,
            "of those that drain, the {index}. ends as it began"
        );
    }
}
