//! Guests that break every promise: each ends as a typed error of its one call, and the host serves on.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::metrics::scrape;
use crate::startup::failure_in;
use crate::support::{Answer, Options, Service, build, workspace};

const MISBEHAVE: &str = "/api/v1/test/misbehave";
const SPIN: &str = "/api/v1/test/spin";

async fn misbehave(service: &Service, how: &str) -> Answer {
    match how {
        "wait" => service.post("/api/v1/test/wait", &json!({})).await,
        _ => service.post(MISBEHAVE, &json!({ "how": how })).await,
    }
}

async fn calls(service: &Service) -> u64 {
    let answer = misbehave(service, "behave").await;
    answer.json()["data"]["calls"]
        .as_u64()
        .unwrap_or_else(|| panic!("{answer:?}"))
}

/// Sends one kind of misbehaviour, and checks the refusal; a good call afterwards is served.
async fn check(how: &str, expected: (u16, &str), message: &str) {
    let service = Service::shared();
    let answer = misbehave(service, how).await;
    assert_eq!(
        answer.refusal(),
        (expected.0, expected.1.to_owned()),
        "{how}"
    );
    assert_eq!(answer.json()["error"]["message"], message, "{how}");
    assert!(calls(service).await >= 1);

    let result = match how {
        "wait" => service.tool("wait", &json!({})).await,
        _ => service.tool("misbehave", &json!({ "how": how })).await,
    };
    assert_eq!(result["isError"], true, "{how}");
    assert!(result.get("structuredContent").is_none(), "{how}");
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().expect("text"))
        .expect("JSON text");
    assert_eq!(text["error"]["code"], expected.1, "{how}");
}

const INTERNAL: (u16, &str) = (500, "INTERNAL_ERROR");
const FAILED: &str = "The service failed to handle this call";

#[tokio::test]
async fn a_trap_an_exit_and_a_bottomless_recursion_are_internal_errors() {
    check("trap", INTERNAL, FAILED).await;
    check("exit", INTERNAL, FAILED).await;
    check("recurse", INTERNAL, FAILED).await;
}

#[tokio::test]
async fn exhausted_memory_is_told_as_such() {
    check(
        "eat_memory",
        INTERNAL,
        "The operation ran out of memory on this input",
    )
    .await;
}

#[tokio::test]
async fn a_missed_deadline_answers_with_the_operations_own_code() {
    check(
        "wait",
        (504, "TOO_LATE"),
        "The operation did not finish by its deadline",
    )
    .await;
    let answer = misbehave(Service::shared(), "wait").await;
    assert_eq!(answer.json()["data"]["retryAfter"], 7);
    assert_eq!(answer.header("retry-after"), "7");
}

#[tokio::test]
async fn a_declared_failure_reaches_the_client_whole() {
    check("fail_as_declared", (418, "TEAPOT"), "`how` asks for coffee").await;
    let answer = misbehave(Service::shared(), "fail_as_declared").await;
    assert_eq!(answer.json()["data"]["field"], "how");
    assert_eq!(
        answer.json()["data"]["retryAfter"],
        2,
        "1.5 s are rounded up"
    );
}

#[tokio::test]
async fn what_was_not_declared_never_reaches_the_client() {
    for how in [
        "fail_undeclared",
        "undeclared_outcome",
        "undeclared_header",
        "host_details",
        "break_schema",
    ] {
        check(how, INTERNAL, FAILED).await;
    }
    let answer = misbehave(Service::shared(), "undeclared_header").await;
    assert!(!answer.headers.contains_key("set-cookie"));
}

#[tokio::test]
async fn a_declared_header_is_sent() {
    assert_eq!(
        misbehave(Service::shared(), "behave")
            .await
            .header("x-declared"),
        "yes"
    );
}

#[tokio::test]
async fn a_reply_over_its_limit_is_refused() {
    check("huge_reply", INTERNAL, FAILED).await;
}

#[tokio::test]
async fn files_and_sockets_are_empty() {
    let service = Service::shared();
    for how in ["open_file", "connect"] {
        assert_eq!(
            misbehave(service, how).await.json()["data"]["result"],
            "true",
            "{how} must fail in the guest"
        );
    }
}

#[tokio::test]
async fn settings_reach_the_plugin_as_the_manifest_has_them() {
    let result = misbehave(Service::shared(), "read_config").await.json()["data"]["result"].clone();
    assert_eq!(result, r#"Some("good day") Some("[1,\"two\"]")"#);
}

#[tokio::test]
async fn a_warm_instance_serves_call_after_call_and_is_thrown_away_after_a_trap() {
    let service = Service::start(Options::default()).await;
    assert_eq!(calls(&service).await, 1);
    assert_eq!(calls(&service).await, 2);
    for how in ["trap", "wait", "exit", "eat_memory"] {
        let before = calls(&service).await;
        assert!(before >= 1);
        misbehave(&service, how).await;
        assert_eq!(
            calls(&service).await,
            1,
            "the instance of `{how}` was used again"
        );
    }
}

/// Linear memory never shrinks, so an instance that grew would hold for the next what this call needed.
#[tokio::test]
async fn a_warm_instance_that_grew_is_not_kept() {
    let held = async |service: &Service| {
        let metrics = scrape(service.data.path()).await;
        metrics
            .counts("switchbay_plugin_memory_bytes", &[], "plugin")
            .get("misbehave")
            .copied()
            .unwrap_or_default()
    };
    let service = Service::start(Options::default()).await;
    assert_eq!((calls(&service).await, calls(&service).await), (1, 2));
    let small = held(&service).await;
    assert!((1.0..8e6).contains(&small), "{small}");
    assert_eq!(misbehave(&service, "grow_memory").await.status, 200);
    assert_eq!(held(&service).await, 0.0, "it is thrown away");
    assert_eq!((calls(&service).await, held(&service).await), (1, small));
    // As the manifest has it, it may grow by twice as much.
    let manifest = Some(workspace().join("tests/programs/shares.toml"));
    let service = Service::start(Options {
        manifest,
        ..Options::default()
    })
    .await;
    assert_eq!(
        (
            calls(&service).await,
            misbehave(&service, "grow_memory").await.status
        ),
        (1, 200)
    );
    assert!(held(&service).await > 8e6);
    assert_eq!(calls(&service).await, 3, "it is kept");
}

#[tokio::test]
async fn a_fresh_instance_has_served_nobody() {
    let service = Service::start(Options::default()).await;
    for _ in 0..3 {
        assert_eq!(
            service
                .post(SPIN, &json!({ "milliseconds": 0 }))
                .await
                .json()["data"]["calls"],
            1
        );
    }
}

#[tokio::test]
async fn a_plugin_that_spins_again_and_again_is_paused_and_its_neighbours_serve() {
    let service = Service::start(Options::default()).await;
    let mut codes = Vec::new();
    for _ in 0..6 {
        let answer = service.post(SPIN, &json!({})).await;
        codes.push(answer.refusal());
        if answer.status == 503 {
            let wait = answer.json()["data"]["retryAfter"]
                .as_u64()
                .expect("a wait");
            assert!((1..=10).contains(&wait), "{wait}");
        }
    }
    let spent = (504, "UPSTREAM_TIMEOUT".to_owned());
    let paused = (503, "SERVICE_UNAVAILABLE".to_owned());
    assert_eq!(
        codes,
        [
            spent.clone(),
            spent.clone(),
            spent.clone(),
            spent.clone(),
            spent,
            paused
        ]
    );
    assert_eq!(calls(&service).await, 1, "another plugin is not paused");
}

#[tokio::test]
async fn log_lines_are_attributed_bounded_and_cannot_be_forged() {
    let arguments = vec!["--log".to_owned(), "info,plugin=debug".to_owned()];
    let service = Service::start(Options {
        arguments,
        ..Options::default()
    })
    .await;
    let flooded = misbehave(&service, "flood_log").await;
    let id = flooded.header("x-request-id").to_owned();
    misbehave(&service, "forge_log").await;
    misbehave(&service, "trap").await;
    let lines =
        service.log_until(|lines| lines.iter().any(|line| line["message"] == "a call failed"));
    let of_flood: Vec<&Value> = lines
        .iter()
        .filter(|line| line["request_id"] == id.as_str() && line["target"] == "plugin")
        .collect();
    assert_eq!(of_flood.len(), 64);
    assert!(
        of_flood
            .iter()
            .all(|line| line["plugin"] == "misbehave" && line["operation"] == "misbehave")
    );
    assert!(
        lines
            .iter()
            .any(|line| line["request_id"] == id.as_str() && line["dropped"] == 936),
        "{lines:?}"
    );
    assert!(lines.iter().all(|line| line["message"] != "forged"));
    let trapped = lines
        .iter()
        .find(|line| line["message"] == "a call failed")
        .expect("the trap is logged");
    let cause = trapped["cause"].as_str().expect("a cause");
    assert!(
        cause.contains("panicked at ") && cause.contains("lib.rs:"),
        "{trapped}"
    );
    assert!(
        !cause.contains("the guest says no"),
        "a panic may quote its input: {trapped}"
    );
    let said = |line: &&Value| {
        line["message"]
            .as_str()
            .is_some_and(|text| text.contains("the guest says no"))
    };
    let words = lines
        .iter()
        .find(said)
        .expect("what it said is a line of the plugin's own");
    assert_eq!(
        (&words["target"], &words["level"]),
        (&json!("plugin"), &json!("DEBUG"))
    );
    for name in ["request_id", "operation", "plugin", "owner", "face"] {
        assert!(
            trapped[name].is_string() && trapped[name] == words[name],
            "{name}: {trapped} {words}"
        );
        assert!(of_flood[0][name].is_string(), "{name}: {}", of_flood[0]);
    }
    assert_eq!(
        (&trapped["revision"], &words["revision"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(trapped["owner"].as_str().map(str::len), Some(32));
}

#[tokio::test]
async fn many_calls_do_not_flood_the_log_either() {
    let service = Service::start(Options::default()).await;
    join_all((0..30).map(|_| misbehave(&service, "flood_log"))).await;
    // 30 calls may write 64 lines each; the plugin may write 256 and then 50 a second, of which the host takes a few to say
    // what a call has dropped.
    let slow =
        |line: &Value| line["message"] == "the plugin writes log lines too fast; some are dropped";
    let lines = service.log_until(|lines| lines.iter().any(slow));
    let of_plugin = lines
        .iter()
        .filter(|line| line["target"] == "plugin")
        .count();
    assert!((200..1200).contains(&of_plugin), "{of_plugin}");
    assert!(
        lines
            .iter()
            .find(|line| slow(line))
            .is_some_and(|line| line["plugin"] == "misbehave")
    );
}

#[tokio::test]
async fn lines_that_the_filter_drops_cost_a_call_nothing() {
    let service = Service::start(Options::default()).await;
    assert_eq!(misbehave(&service, "log_below").await.status, 200);
    service.log_until(|lines| lines.iter().any(|line| line["message"] == "above"));
}

#[tokio::test]
async fn a_call_is_one_line_on_request() {
    let arguments = vec!["--log".to_owned(), "switchbay=debug".to_owned()];
    let service = Service::start(Options {
        arguments,
        ..Options::default()
    })
    .await;
    let answered = misbehave(&service, "behave").await;
    let refused = Service::send(
        service
            .bare(Method::POST, MISBEHAVE)
            .json(&json!({ "how": "behave" })),
    )
    .await;
    service
        .tool("misbehave", &json!({ "how": "fail_as_declared" }))
        .await;
    let about = |lines: &[Value], text: &str| -> Option<Value> {
        lines.iter().find(|line| line["message"] == text).cloned()
    };
    let lines = service.log_until(|lines| {
        lines.iter().any(|line| line["code"] == "TEAPOT")
            && about(lines, "a call was answered").is_some()
    });
    let line = about(&lines, "a call was answered").expect("the first call");
    assert_eq!(
        (&line["request_id"], &line["face"]),
        (&json!(answered.header("x-request-id")), &json!("rest"))
    );
    assert!(
        line["outcome"] == "ok" && line["elapsed_us"].is_u64(),
        "{line}"
    );
    let line = about(&lines, "a call was refused").expect("the second call");
    assert_eq!(
        (&line["request_id"], &line["status"]),
        (&json!(refused.header("x-request-id")), &json!(401))
    );
    assert!(
        line["code"] == "UNAUTHORIZED" && line.get("owner").is_none(),
        "{line}"
    );
    let line = lines
        .iter()
        .find(|line| line["code"] == "TEAPOT")
        .expect("the third call");
    assert!(
        line["face"] == "tool" && line["level"] == "DEBUG" && line["owner"].is_string(),
        "{line}"
    );
}

/// Whatever the manifest grants: what a plugin does not ask for, nobody could have looked at.
#[tokio::test]
async fn an_import_that_is_not_wanted_keeps_the_plugin_out() {
    build();
    let folder = tempfile::tempdir().expect("a folder");
    let source = workspace()
        .join("tests/programs/ungranted")
        .display()
        .to_string();
    for grants in ["", "grants = [\"logging\"]\n"] {
        let manifest = folder.path().join("plugin-manifest.toml");
        let entry = format!("[[plugin]]\nname = \"ungranted\"\nsource = \"{source}\"\n{grants}");
        std::fs::write(&manifest, entry).expect("the manifest is written");
        let line = failure_in(folder.path(), &["--manifest", &manifest.to_string_lossy()]).await;
        assert_eq!(
            line,
            "plugin `ungranted`: it imports `wasi:logging/logging@0.1.0-draft` but does not list `logging` in its \
             `wants`"
        );
    }
}

/// A thousand calls at once, a fifth of them bad: the good succeed, the bad get their own errors, and nothing is kept.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_calls_of_which_a_fifth_misbehave() {
    // All callers have one address and one key.
    let config =
        "[shares]\nwaiting = 1000\n[peers]\nconnections = 1100\nin_flight = 1100\n".to_owned();
    let service = Service::start(Options {
        config,
        ..Options::default()
    })
    .await;
    // The first rounds fill pools, caches and allocators, which then keep now more and now less.
    for _ in 0..3 {
        settled(&service).await;
    }
    let before = settled(&service).await;
    for _ in 0..3 {
        thousand(&service).await;
    }
    let after = settled(&service).await;
    // Four rounds end 268 instances that took 32 MiB each: fewer than two of them may be left in what varies.
    assert!(
        after <= before + (48 << 20),
        "memory grew from {before} to {after} bytes"
    );
    let request = service.bare(Method::GET, "/readyz");
    assert_eq!(Service::send(request).await.status, 200);
}

async fn thousand(service: &Service) {
    let calls = (0..1000_usize).map(|index| async move {
        let (path, body, expected) = match index % 15 {
            0 => (MISBEHAVE, json!({ "how": "trap" }), &["INTERNAL_ERROR"][..]),
            5 => (
                MISBEHAVE,
                json!({ "how": "eat_memory" }),
                &["INTERNAL_ERROR"][..],
            ),
            10 => (
                SPIN,
                json!({}),
                &["UPSTREAM_TIMEOUT", "SERVICE_UNAVAILABLE"][..],
            ),
            _ => (
                "/api/v1/tools/bank-qr",
                json!({ "bank": "VCB", "accountNumber": "0011001234567" }),
                &[][..],
            ),
        };
        let answer = service.post(path, &body).await;
        match expected {
            [] => assert_eq!(
                answer.status,
                200,
                "{}",
                String::from_utf8_lossy(&answer.bytes)
            ),
            codes => assert!(codes.contains(&answer.refusal().1.as_str()), "{answer:?}"),
        }
    });
    join_all(calls).await;
}

/// Resident memory after a thousand calls. Freed instances are given back to the kernel in batches, which some more complete.
async fn settled(service: &Service) -> u64 {
    thousand(service).await;
    for _ in 0..32 {
        assert_eq!(misbehave(service, "trap").await.status, 500);
    }
    service.resident_bytes()
}
