//! What plugins remember in the host's memory: ages, bounds, whose it is, and what becomes of it.

use serde_json::{Value, json};

use crate::metrics::{revision, scrape};
use crate::support::{Keeps, Options, Service, keeps_anew, workspace};

const BYTES: &str = "switchbay_plugin_cache_bytes";
const READS: &str = "switchbay_plugin_cache_reads_total";
const ALL: &str = r#""cache:8MiB", "state:64KiB""#;
const LESS: &str = r#""cache:1MiB", "state:64KiB""#;
/// What each entry counts beside its key and value.
const ENTRY_BYTES: usize = 256;

async fn start() -> Service {
    let manifest = Some(workspace().join("tests/programs/keeps.toml"));
    Service::start(Options {
        manifest,
        ..Options::default()
    })
    .await
}

async fn cache_of(service: &Service, plugin: &str, input: Value) -> Value {
    let answer = service
        .post(&format!("/api/v1/test/{plugin}/cache"), &input)
        .await;
    assert_eq!(answer.status, 200, "{input}: {answer:?}");
    answer.json()["data"].clone()
}

async fn cache(service: &Service, input: Value) -> Value {
    cache_of(service, "keeps", input).await
}

async fn outcome(service: &Service, input: Value) -> String {
    cache(service, input).await["outcome"]
        .as_str()
        .expect("an outcome")
        .to_owned()
}

async fn bytes(service: &Service, plugin: &str) -> usize {
    let text = scrape(service.data.path())
        .await
        .value(BYTES, &[("plugin", plugin)])
        .to_string();
    text.parse().expect("a whole number")
}

#[tokio::test]
async fn an_entry_is_fresh_then_stale_then_gone() {
    let service = start().await;
    assert_eq!(
        outcome(&service, json!({ "act": "get", "key": "a" })).await,
        "none"
    );
    let put = json!({ "act": "put", "key": "a", "value": "Tiền cà phê", "fresh_ms": 600_000, "stale_ms": 600_000 });
    assert_eq!(outcome(&service, put).await, "done");
    let found = cache(&service, json!({ "act": "get", "key": "a" })).await;
    assert_eq!(
        (&found["outcome"], &found["told"], &found["bytes"]),
        (&json!("fresh"), &json!("Tiền cà phê"), &json!(15))
    );
    assert!(
        found["age_ms"].as_u64().is_some_and(|ms| ms < 600_000),
        "{found}"
    );

    let put = json!({ "act": "put", "key": "a", "value": "b", "fresh_ms": 0, "stale_ms": 600_000 });
    assert_eq!(outcome(&service, put).await, "done");
    let found = cache(&service, json!({ "act": "get", "key": "a" })).await;
    assert_eq!(
        (&found["outcome"], &found["told"]),
        (&json!("stale"), &json!("b")),
        "the later value is there"
    );

    // Past both ages, which a clock that goes on brings about.
    let put = json!({ "act": "put", "key": "short", "value": "c", "fresh_ms": 1, "stale_ms": 1 });
    assert_eq!(outcome(&service, put).await, "done");
    while outcome(&service, json!({ "act": "get", "key": "short" })).await != "none" {}
    assert_eq!(
        bytes(&service, "keeps").await,
        ENTRY_BYTES + 2,
        "what is gone counts no more"
    );

    assert_eq!(
        outcome(&service, json!({ "act": "remove", "key": "a" })).await,
        "done"
    );
    assert_eq!(
        outcome(&service, json!({ "act": "remove", "key": "a" })).await,
        "done"
    );
    assert_eq!(
        outcome(&service, json!({ "act": "get", "key": "a" })).await,
        "none"
    );
    assert_eq!(bytes(&service, "keeps").await, 0);
}

#[tokio::test]
async fn a_value_is_kept_as_json_and_another_shape_counts_as_none() {
    let service = start().await;
    assert_eq!(
        outcome(
            &service,
            json!({ "act": "put_json", "key": "a", "value": "one two" })
        )
        .await,
        "done"
    );
    let found = cache(&service, json!({ "act": "get_json", "key": "a" })).await;
    assert_eq!(
        (&found["outcome"], &found["told"]),
        (&json!("fresh"), &json!("one two"))
    );
    assert_eq!(
        cache(&service, json!({ "act": "get", "key": "a" })).await["told"],
        r#"["one","two"]"#
    );
    assert_eq!(
        outcome(&service, json!({ "act": "put", "key": "a", "value": "{}" })).await,
        "done"
    );
    assert_eq!(
        outcome(&service, json!({ "act": "get_json", "key": "a" })).await,
        "none"
    );
}

#[tokio::test]
async fn what_is_refused_says_its_rule_and_changes_nothing() {
    let (_house, service) = Keeps::serve(&[("keeps", LESS)]).await;
    // The revision wants more than is granted, so it waits; approved it has what both say.
    assert_eq!(
        service.told("/admin/v1/plugins/keeps").await["state"],
        "awaiting-approval"
    );
    drop(service);

    let (_house, service) = Keeps::serve(&[("keeps", ALL)]).await;
    assert_eq!(
        outcome(
            &service,
            json!({ "act": "put", "key": "k", "value": "kept" })
        )
        .await,
        "done"
    );
    let (day, month) = (86_400_000_u64, 2_678_400_000_u64);
    let refused = [
        (json!({ "act": "get", "key": "" }), "the key is empty"),
        (json!({ "act": "put", "key": "" }), "the key is empty"),
        (
            json!({ "act": "remove", "key": "k".repeat(513) }),
            "the key has 513 bytes; at most 512 are allowed",
        ),
        (
            json!({ "act": "get", "key": "é".repeat(257) }),
            "the key has 514 bytes; at most 512 are allowed",
        ),
        (
            json!({ "act": "put", "key": "k", "bytes": (4 << 20) + 1 }),
            "the value has 4194305 bytes; at most 4194304 are allowed",
        ),
        (
            json!({ "act": "put", "key": "k", "fresh_ms": month + 1 }),
            "`fresh-ms` is 2678400001; it must be at most 2678400000",
        ),
        (
            json!({ "act": "put", "key": "k", "stale_ms": 40 * day }),
            "`stale-ms` is 3456000000; it must be at most 2678400000",
        ),
    ];
    for (input, rule) in refused {
        let told = cache(&service, input.clone()).await;
        assert_eq!(
            (&told["outcome"], &told["told"]),
            (&json!("not_acceptable"), &json!(rule)),
            "{input}"
        );
    }
    assert_eq!(
        cache(&service, json!({ "act": "get", "key": "k" })).await["told"],
        "kept"
    );
    let most = json!({ "act": "put", "key": "k".repeat(512), "bytes": 4 << 20, "fresh_ms": month, "stale_ms": month });
    assert_eq!(outcome(&service, most).await, "done");
    let metrics = scrape(service.data.path()).await;
    let number = revision(service.data.path(), "keeps").await;
    let series = [("plugin", "keeps"), ("revision", number.as_str())];
    assert_eq!(
        metrics.value("switchbay_plugin_denials_total", &series),
        0.0,
        "none of this was for want of a grant"
    );
}

/// What each of the keys is found as.
async fn check_each(service: &Service, expected: &[(&str, &str)]) {
    for (key, expected) in expected {
        assert_eq!(
            outcome(service, json!({ "act": "get", "key": key })).await,
            *expected,
            "{key}"
        );
    }
}

#[tokio::test]
async fn a_grant_that_is_made_smaller_counts_for_a_full_cache() {
    let (house, service) = Keeps::serve(&[("keeps", ALL)]).await;
    // With a key of four bytes; ten of each hundred have one of three.
    let (value, short) = (64 * 1024, 10);
    let entry = ENTRY_BYTES + value + 4;
    assert_eq!(
        outcome(
            &service,
            json!({ "act": "put", "key": "k-", "bytes": value, "times": 100 })
        )
        .await,
        "done"
    );
    assert_eq!(bytes(&service, "keeps").await, 100 * entry - short);
    assert_eq!(
        outcome(&service, json!({ "act": "get", "key": "k-10" })).await,
        "fresh"
    );
    // There is room for 127, and what was asked for longest ago goes.
    assert_eq!(
        outcome(
            &service,
            json!({ "act": "put", "key": "l-", "bytes": value, "times": 40 })
        )
        .await,
        "done"
    );
    assert_eq!(bytes(&service, "keeps").await, 127 * entry - short);
    let left = [
        ("k-9", "none"),
        ("k-10", "fresh"),
        ("k-11", "none"),
        ("k-13", "none"),
        ("k-14", "fresh"),
    ];
    check_each(&service, &left).await;

    house.follow(&service, &[("keeps", LESS)]).await;
    assert_eq!(
        service.told("/admin/v1/plugins/keeps").await["rights"],
        json!(["cache:1MiB", "state:64KiB"])
    );
    // Until the revision that had more has ended, with its last call.
    while bytes(&service, "keeps").await > 1 << 20 {}
    assert_eq!(bytes(&service, "keeps").await, 15 * entry);
    let left = [
        ("k-10", "fresh"),
        ("k-14", "fresh"),
        ("l-27", "fresh"),
        ("l-26", "none"),
        ("k-99", "none"),
    ];
    check_each(&service, &left).await;
    let large = cache(
        &service,
        json!({ "act": "put", "key": "k", "bytes": 1 << 20 }),
    )
    .await;
    let rule = "the entry takes 1048833 bytes; 1048576 are granted";
    assert_eq!(
        (&large["outcome"], &large["told"]),
        (&json!("not_acceptable"), &json!(rule))
    );
}

#[tokio::test]
async fn a_grant_that_is_taken_away_is_missing_at_the_next_call() {
    let (house, service) = Keeps::serve(&[("keeps", ALL)]).await;
    let put = json!({ "act": "put", "key": "k-", "bytes": 64 * 1024, "times": 100 });
    assert_eq!(outcome(&service, put).await, "done");
    check_each(&service, &[("k-10", "fresh")]).await;

    house
        .follow(&service, &[("keeps", "\"state:64KiB\"")])
        .await;
    let number = revision(service.data.path(), "keeps").await;
    let series = [("plugin", "keeps"), ("revision", number.as_str())];
    let denials = async || {
        scrape(service.data.path())
            .await
            .value("switchbay_plugin_denials_total", &series)
    };
    assert_eq!(denials().await, 0.0);
    for act in ["get", "put", "remove"] {
        let told = cache(&service, json!({ "act": act, "key": "k-10" })).await;
        assert_eq!(
            (&told["outcome"], &told["told"]),
            (&json!("not_granted"), &json!("`cache` is not granted"))
        );
    }
    assert_eq!(denials().await, 3.0);
}

#[tokio::test]
async fn a_swap_keeps_a_cache_and_no_other_plugin_sees_it() {
    let both = [("keeps", ALL), ("other", ALL)];
    let (house, service) = Keeps::serve(&both).await;
    for (plugin, value) in [("keeps", "mine"), ("other", "yours")] {
        cache_of(
            &service,
            plugin,
            json!({ "act": "put", "key": "same", "value": value }),
        )
        .await;
    }
    let get = async |plugin: &str| {
        cache_of(&service, plugin, json!({ "act": "get", "key": "same" })).await
    };
    assert_eq!(
        (&get("keeps").await["told"], &get("other").await["told"]),
        (&json!("mine"), &json!("yours"))
    );
    cache_of(&service, "other", json!({ "act": "remove", "key": "same" })).await;
    assert_eq!(
        (&get("keeps").await["told"], &get("other").await["outcome"]),
        (&json!("mine"), &json!("none"))
    );

    // Another component of the plugin.
    house.write("keeps.wasm", &keeps_anew("keeps"));
    let before = revision(service.data.path(), "keeps").await;
    house.follow(&service, &both).await;
    assert_ne!(revision(service.data.path(), "keeps").await, before);
    assert_eq!(get("keeps").await["told"], "mine");

    let metrics = scrape(service.data.path()).await;
    let number = revision(service.data.path(), "keeps").await;
    let found = |found| {
        metrics.value(
            READS,
            &[("plugin", "keeps"), ("revision", &number), ("found", found)],
        )
    };
    assert_eq!(
        (found("hit"), found("stale"), found("miss")),
        (1.0, 0.0, 0.0),
        "of the new revision"
    );

    // Without a plugin there is no cache of it.
    house.follow(&service, &both[1..]).await;
    let gone = async || {
        scrape(service.data.path()).await.counts(
            "switchbay_plugin_instances",
            &[("plugin", "keeps")],
            "plugin",
        )
    };
    while !gone().await.is_empty() {}
    house.follow(&service, &both).await;
    assert_eq!(get("keeps").await["outcome"], "none");
}
