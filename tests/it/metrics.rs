//! What the operator reads of a running process: its metrics, its plugins and its settings.

mod exposition;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use reqwest::Method;
use serde_json::{Value, json};

use self::exposition::Metrics;
use crate::support::{Answer, Held, Options, Service, Wire};
use crate::transport::HEALTH;

const BANKS: &str = "/api/v1/tools/bank-qr/banks";
const MISBEHAVE: &str = "/api/v1/test/misbehave";
const SPIN: &str = "/api/v1/test/spin";
pub(crate) const CALLS: &str = "switchbay_plugin_calls_total";
const REQUESTS: &str = "switchbay_requests_total";

/// A GET on the operator's listener of the installation in a data folder.
async fn ask(data: &Path, path: &str) -> Answer {
    let read = |file: &str| {
        std::fs::read_to_string(data.join(file))
            .expect("the server wrote it")
            .trim()
            .to_owned()
    };
    let url = format!("http://{}{path}", read("operator-address"));
    Service::send(
        reqwest::Client::new()
            .get(url)
            .bearer_auth(read("operator-token")),
    )
    .await
}

pub(crate) async fn scrape(data: &Path) -> Metrics {
    let answer = ask(data, "/metrics").await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (
            200,
            "application/openmetrics-text; version=1.0.0; charset=utf-8"
        )
    );
    Metrics::parse(std::str::from_utf8(&answer.bytes).expect("UTF-8"))
}

pub(crate) fn counts<const N: usize>(expected: [(&str, u32); N]) -> BTreeMap<String, f64> {
    expected
        .into_iter()
        .map(|(label, count)| (label.to_owned(), f64::from(count)))
        .collect()
}

async fn misbehave(service: &Service, how: &str) -> u16 {
    let (path, body) = match how {
        "wait" => ("/api/v1/test/wait", json!({})),
        _ => (MISBEHAVE, json!({ "how": how })),
    };
    service.post(path, &body).await.status
}

/// The number of the revision that serves, as the series have it.
pub(crate) async fn revision(data: &Path, plugin: &str) -> String {
    let plugins = ask(data, "/admin/v1/plugins").await.json()["data"]["plugins"].clone();
    let found = plugins
        .as_array()
        .expect("plugins")
        .iter()
        .find(|one| one["name"] == plugin)
        .expect("it is served");
    found["revision"].as_u64().expect("a number").to_string()
}

#[tokio::test]
async fn each_call_is_counted_once_under_the_way_it_ended() {
    let service = Service::start(Options::default()).await;
    let data = service.data.path();
    let before = scrape(data).await;
    assert_eq!(before.counts(CALLS, &[], "plugin"), counts([]));
    assert_eq!(before.counts(REQUESTS, &[], "plugin"), counts([]));

    for how in [
        "trap",
        "exit",
        "wait",
        "eat_memory",
        "huge_reply",
        "fail_as_declared",
        "undeclared_outcome",
        "behave",
    ] {
        misbehave(&service, how).await;
    }
    let after = scrape(data).await;
    let ended = |plugin| after.counts(CALLS, &[("plugin", plugin)], "outcome");
    // An answer that is not as it was declared is a call that ended well, and a request that did not.
    let expected = [
        ("trap", 1),
        ("exit", 1),
        ("deadline", 1),
        ("memory_spent", 1),
        ("too_large", 1),
        ("failure", 1),
        ("ok", 2),
    ];
    assert_eq!(ended("misbehave"), counts(expected));
    assert_eq!((ended("bank-qr"), ended("spin")), (counts([]), counts([])));
    let revision = revision(data, "misbehave").await;
    let series = [("plugin", "misbehave"), ("revision", revision.as_str())];
    assert_eq!(
        after.value("switchbay_plugin_call_duration_seconds_count", &series),
        8.0
    );
    assert!(
        after.value("switchbay_plugin_call_duration_seconds_sum", &series) >= 1.0,
        "one waited for a second"
    );
    let slow = |bound| {
        after.value(
            "switchbay_plugin_call_duration_seconds_bucket",
            &[series[0], series[1], ("le", bound)],
        )
    };
    assert!(
        slow("1.0") <= 7.0 && slow("150.0") == 8.0,
        "{} {}",
        slow("1.0"),
        slow("150.0")
    );
}

#[tokio::test]
async fn a_plugin_that_spins_is_counted_until_it_is_paused() {
    let service = Service::start(Options::default()).await;
    for _ in 0..6 {
        service.post(SPIN, &json!({})).await;
    }
    let metrics = scrape(service.data.path()).await;
    let ended = metrics.counts(CALLS, &[("plugin", "spin")], "outcome");
    assert_eq!(ended, counts([("cpu_spent", 5), ("paused", 1)]));
    let answered = metrics.counts(REQUESTS, &[("plugin", "spin")], "code");
    assert_eq!(
        answered,
        counts([("UPSTREAM_TIMEOUT", 5), ("SERVICE_UNAVAILABLE", 1)])
    );
    assert_eq!(metrics.values_of(REQUESTS, "face").len(), 2);
    assert_eq!(
        metrics.counts(REQUESTS, &[("plugin", "spin"), ("face", "tool")], "code"),
        counts([])
    );
}

#[tokio::test]
async fn a_call_that_outlives_its_request_is_abandoned() {
    let service = Service::with_limits("request_ms = 300").await;
    assert_eq!(misbehave(&service, "wait").await, 504);
    let ended =
        scrape(service.data.path())
            .await
            .counts(CALLS, &[("plugin", "misbehave")], "outcome");
    assert_eq!(ended, counts([("abandoned", 1)]));
}

/// Requests of every outcome, of both faces, with and without a credential.
async fn ask_in_every_way(service: &Service) {
    assert_eq!(service.get(BANKS).await.status, 200);
    assert_eq!(service.get(BANKS).await.status, 200);
    assert_eq!(
        Service::send(service.bare(Method::GET, BANKS)).await.status,
        401
    );
    let narrow = service.issue(&["--scope", "test:misbehave"]);
    assert_eq!(
        Service::send(service.bare(Method::GET, BANKS).bearer_auth(narrow))
            .await
            .status,
        403
    );
    service.tool("list_bank_qr_banks", &json!({})).await;
    for how in [
        "behave",
        "fail_as_declared",
        "wait",
        "trap",
        "undeclared_outcome",
        "no such way",
    ] {
        misbehave(service, how).await;
    }
    let wrong_type = service
        .request(Method::POST, MISBEHAVE)
        .header("content-type", "text/plain")
        .body("{}");
    assert_eq!(Service::send(wrong_type).await.status, 415);
    service
        .tool("misbehave", &json!({ "how": "fail_as_declared" }))
        .await;
    // A batch is refused for one of its credentials before any of it runs.
    let params = json!({ "name": "misbehave", "arguments": { "how": "behave" } });
    let batch = service
        .bare(Method::POST, "/mcp")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-03-26")
        .json(&json!([{ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }]));
    assert_eq!(Service::send(batch).await.status, 401);
}

#[tokio::test]
async fn requests_are_counted_by_operation_face_and_code() {
    let service = Service::start(Options::default()).await;
    ask_in_every_way(&service).await;
    let metrics = scrape(service.data.path()).await;
    let answered = |plugin, operation, face| {
        metrics.counts(
            REQUESTS,
            &[("plugin", plugin), ("operation", operation), ("face", face)],
            "code",
        )
    };
    assert_eq!(
        answered("bank-qr", "banks", "rest"),
        counts([("ok", 2), ("UNAUTHORIZED", 1), ("FORBIDDEN", 1)])
    );
    assert_eq!(answered("bank-qr", "banks", "tool"), counts([("ok", 1)]));
    assert_eq!(answered("bank-qr", "generate", "rest"), counts([]));
    let expected = [
        ("ok", 1),
        ("TEAPOT", 1),
        ("INTERNAL_ERROR", 2),
        ("VALIDATION_ERROR", 1),
        ("UNSUPPORTED_MEDIA_TYPE", 1),
    ];
    assert_eq!(answered("misbehave", "misbehave", "rest"), counts(expected));
    assert_eq!(
        answered("misbehave", "wait", "rest"),
        counts([("TOO_LATE", 1)])
    );
    assert_eq!(
        answered("misbehave", "misbehave", "tool"),
        counts([("TEAPOT", 1), ("UNAUTHORIZED", 1)])
    );
    let calls = metrics.counts(CALLS, &[], "plugin");
    assert_eq!(
        calls,
        counts([("bank-qr", 3), ("misbehave", 6)]),
        "what was refused was not called"
    );
}

#[tokio::test]
async fn instances_and_their_memory_are_told() {
    let service = Service::start(Options::default()).await;
    let data = service.data.path();
    let living = |metrics: &Metrics| metrics.counts("switchbay_plugin_instances", &[], "plugin");
    let peaks =
        |metrics: &Metrics| metrics.counts("switchbay_plugin_memory_peak_bytes", &[], "plugin");
    let before = scrape(data).await;
    assert_eq!(
        (living(&before), peaks(&before)),
        (counts([]), counts([])),
        "describing is no use"
    );

    misbehave(&service, "eat_memory").await;
    assert_eq!(
        living(&scrape(data).await),
        counts([]),
        "the instance was thrown away"
    );
    misbehave(&service, "behave").await;
    service.get(BANKS).await;
    service.post(SPIN, &json!({ "milliseconds": 0 })).await;
    let after = scrape(data).await;
    assert_eq!(
        living(&after),
        counts([("bank-qr", 1), ("misbehave", 1)]),
        "the warm ones are idle"
    );
    let peaks = peaks(&after);
    let mib = |plugin: &str| peaks[plugin] / f64::from(1 << 20);
    assert!((16.0..=32.0).contains(&mib("misbehave")), "{peaks:?}");
    assert!(
        (0.5..16.0).contains(&mib("bank-qr")) && (0.5..16.0).contains(&mib("spin")),
        "{peaks:?}"
    );
}

#[tokio::test]
async fn the_process_and_its_public_listener_are_told() {
    let service = Service::start(Options::default()).await;
    let data = service.data.path();
    let quiet = scrape(data).await;
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        quiet.value("switchbay_build_info", &[("version", version)]),
        1.0
    );
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_secs_f64();
    let age = now - quiet.value("switchbay_start_time_seconds", &[]);
    assert!((0.0..600.0).contains(&age), "{age}");

    let traffic = |metrics: &Metrics| {
        let value = |name| metrics.value(name, &[]);
        (
            value("switchbay_http_connections"),
            value("switchbay_http_requests_in_flight"),
        )
    };
    assert_eq!(
        traffic(&quiet),
        (0.0, 0.0),
        "the operator's own are not counted"
    );
    let mut idle = Wire::connect(&service.base_url).await;
    idle.send(HEALTH).await;
    assert_eq!(idle.answer().await.status, 200);
    let held = Held::open(&service).await;
    assert_eq!(traffic(&scrape(data).await), (2.0, 1.0));
    assert_eq!(held.finish().await.status, 200);
}

#[tokio::test]
async fn only_the_operator_reads_them() {
    let service = Service::shared();
    for path in ["/metrics", "/admin/v1/plugins", "/admin/v1/config"] {
        let url = format!("{}{path}", service.operator_url());
        let client = reqwest::Client::new();
        for request in [
            client.get(&url),
            client.get(&url).bearer_auth(service.key()),
        ] {
            let refused = Service::send(request).await;
            assert_eq!(
                refused.refusal(),
                (401, "UNAUTHORIZED".to_owned()),
                "{path}"
            );
        }
        let written = Service::send(client.post(&url).bearer_auth(service.operator_token())).await;
        assert_eq!(
            written.refusal(),
            (405, "METHOD_NOT_ALLOWED".to_owned()),
            "{path}"
        );
        assert_eq!(written.header("allow"), "GET");
        let public = Service::send(
            service
                .bare(Method::GET, path)
                .bearer_auth(service.operator_token()),
        )
        .await;
        assert_eq!(public.refusal(), (404, "NOT_FOUND".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn the_plugins_are_listed_with_what_they_may() {
    let answer = ask(Service::shared().data.path(), "/admin/v1/plugins").await;
    let mut plugins = answer.json()["data"]["plugins"].clone();
    let digests: Vec<Value> = plugins
        .as_array_mut()
        .expect("plugins")
        .iter_mut()
        .map(|one| one["digest"].take())
        .collect();
    let is_whole = |digest: &Value| digest.as_str().is_some_and(|digest| digest.len() == 64);
    assert!(digests.iter().all(is_whole), "{digests:?}");
    let names: Vec<&Value> = plugins
        .as_array()
        .expect("plugins")
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert_eq!(names, ["bank-qr", "domain-dns", "misbehave", "spin"]);
    let expected = json!({
        "name": "misbehave",
        "state": "active",
        "message": null,
        "version": "0.1.0",
        "summary": "Breaks the promises of a plugin",
        "revision": 1,
        "active": 1,
        "candidate": null,
        "digest": null,
        "approvals": [],
        "rights": ["config", "logging"],
        "disabled": null,
        "config": ["greeting", "list"],
        "instances": "warm",
        "grants": ["config", "logging"],
        "limits": {
            "memoryBytes": 32 << 20,
            "cpuMs": 500,
            "wallMs": 150_000,
            "concurrency": 16,
            "ownerConcurrency": 8,
            "warmGrowthBytes": 2 << 20,
            "responseBytes": 2 << 20,
        },
        "operations": [
            {
                "id": "misbehave",
                "deadlineMs": 60_000,
                "rest": { "method": "POST", "path": MISBEHAVE, "scope": "test:misbehave" },
                "tool": { "name": "misbehave", "scope": "test:misbehave" },
                "operator": false,
            },
            {
                "id": "wait",
                "deadlineMs": 1000,
                "rest": { "method": "POST", "path": "/api/v1/test/wait", "scope": "test:misbehave" },
                "tool": { "name": "wait", "scope": "test:misbehave" },
                "operator": false,
            },
        ],
    });
    assert_eq!(plugins[2], expected);
    assert_eq!(
        (
            &plugins[3]["instances"],
            &plugins[3]["operations"][0]["tool"]
        ),
        (&json!("fresh"), &Value::Null)
    );
}
