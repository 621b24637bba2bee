//! What plugins keep for good: compared and set, bounded, on disk before it is acknowledged, and whose it is.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::Method;
use serde_json::{Value, json};

use crate::metrics::{revision, scrape};
use crate::support::{Keeps, Service, keeps_anew};

mod together;

const ALL: &str = r#""cache:8MiB", "state:64KiB""#;
const KEEPS: [(&str, &str); 1] = [("keeps", ALL)];
/// What each record counts beside its key and value.
const RECORD_BYTES: usize = 64;
const CALLERS: usize = 24;

async fn records_of(service: &Service, plugin: &str, input: Value) -> Value {
    let answer = service
        .post(&format!("/api/v1/test/{plugin}/records"), &input)
        .await;
    assert_eq!(answer.status, 200, "{input}: {answer:?}");
    answer.json()["data"].clone()
}

async fn records(service: &Service, input: Value) -> Value {
    records_of(service, "keeps", input).await
}

async fn put(service: &Service, key: &str, value: &str) -> u64 {
    let put = records(service, json!({ "act": "put", "key": key, "value": value })).await;
    put["version"].as_u64().unwrap_or_else(|| panic!("{put}"))
}

/// What is there: its value and version.
async fn get(service: &Service, key: &str) -> Option<(String, u64)> {
    let found = records(service, json!({ "act": "get", "key": key })).await;
    match found["outcome"].as_str() {
        Some("none") => None,
        Some("found") => Some((
            found["told"].as_str()?.to_owned(),
            found["version"].as_u64()?,
        )),
        _ => panic!("{found}"),
    }
}

async fn used(service: &Service, plugin: &str) -> (f64, f64) {
    let metrics = scrape(service.data.path()).await;
    let value = |name| metrics.value(name, &[("plugin", plugin)]);
    (
        value("switchbay_plugin_state_bytes"),
        value("switchbay_plugin_state_records"),
    )
}

#[tokio::test]
async fn a_write_is_made_where_what_is_there_is_as_expected() {
    let (_house, service) = Keeps::serve(&KEEPS).await;
    let act = async |act: &str, expected: Value, value: &str| {
        let done = records(
            &service,
            json!({ "act": act, "key": "k", "value": value, "expected": expected }),
        )
        .await;
        (
            done["outcome"].as_str().expect("an outcome").to_owned(),
            done["version"].as_u64(),
        )
    };
    let done = |version| ("done".to_owned(), version);
    let conflict = |version| ("conflict".to_owned(), version);
    let none = Value::Null;
    assert_eq!(get(&service, "k").await, None);
    assert_eq!(
        act("put", json!(7), "never").await,
        conflict(None),
        "nothing is there"
    );
    assert_eq!(act("delete", json!(7), "").await, conflict(None));
    assert_eq!(act("delete", none.clone(), "").await, done(None));
    assert_eq!(act("delete", json!(0), "").await, done(None));
    let (_, first) = act("put", json!(0), "first").await;
    assert_eq!(
        get(&service, "k").await,
        Some(("first".to_owned(), first.expect("a version")))
    );
    assert_eq!(
        act("put", json!(0), "never").await,
        conflict(first),
        "it is there by now"
    );
    assert_eq!(act("delete", json!(0), "").await, conflict(first));
    let (_, second) = act("put", json!(first), "second").await;
    assert!(second > first);
    assert_eq!(
        act("put", json!(first), "never").await,
        conflict(second),
        "it was written again"
    );
    assert_eq!(act("delete", json!(first), "").await, conflict(second));
    let (_, third) = act("put", none.clone(), "third").await;
    assert_eq!(
        get(&service, "k").await,
        Some(("third".to_owned(), third.expect("a version")))
    );
    assert_eq!(act("delete", json!(third), "").await, done(None));
    assert_eq!(get(&service, "k").await, None);
    let (_, again) = act("put", json!(0), "again").await;
    assert!(again > third, "no version stands for two values of one key");
    assert_eq!(act("put", json!(third), "never").await, conflict(again));
}

#[tokio::test]
async fn instances_that_count_at_the_same_time_lose_nothing() {
    let (_house, service) = Keeps::serve(&KEEPS).await;
    let caller = async || {
        let mut counted = Vec::new();
        for _ in 0..10 {
            let count = records(&service, json!({ "act": "count", "key": "count" })).await;
            assert_eq!(count["outcome"], "done", "{count}");
            counted.push(
                count["told"]
                    .as_str()
                    .expect("text")
                    .parse::<usize>()
                    .expect("a number"),
            );
        }
        counted
    };
    let mut counted = futures::future::join_all((0..CALLERS).map(|_| caller()))
        .await
        .concat();
    counted.sort_unstable();
    assert_eq!(
        counted,
        (1..=CALLERS * 10).collect::<Vec<_>>(),
        "each number once"
    );
    assert_eq!(
        get(&service, "count").await.expect("it is there").0,
        (CALLERS * 10).to_string()
    );
}

#[tokio::test]
async fn what_is_refused_says_its_rule_and_changes_nothing() {
    let (_house, service) = Keeps::serve(&KEEPS).await;
    put(&service, "k", "kept").await;
    let long = "the key has 513 bytes; at most 512 are allowed";
    let limit = |limit: &str| format!("the limit is {limit}; it must be from 1 to 1000");
    let refused = [
        (json!({ "act": "get", "key": "" }), "the key is empty"),
        (json!({ "act": "put", "key": "" }), "the key is empty"),
        (json!({ "act": "delete", "key": "" }), "the key is empty"),
        (json!({ "act": "get", "key": "k".repeat(513) }), long),
        (json!({ "act": "put", "key": "k".repeat(513) }), long),
        (json!({ "act": "delete", "key": "k".repeat(513) }), long),
        (
            json!({ "act": "list", "key": "", "after": "k".repeat(513) }),
            long,
        ),
        (
            json!({ "act": "list", "key": "k".repeat(513) }),
            "the prefix has 513 bytes; at most 512 are allowed",
        ),
        (json!({ "act": "list", "key": "", "limit": 0 }), &limit("0")),
        (
            json!({ "act": "list", "key": "", "limit": 1001 }),
            &limit("1001"),
        ),
        (
            json!({ "act": "put", "key": "k", "bytes": 262_145 }),
            "the value has 262145 bytes; at most 262144 are allowed",
        ),
    ];
    for (input, rule) in refused {
        let told = records(&service, input.clone()).await;
        assert_eq!(
            (&told["outcome"], &told["told"]),
            (&json!("not_acceptable"), &json!(rule)),
            "{input}"
        );
    }
    // 32 at once have a place; one that ends meanwhile leaves it to another.
    let many = records(
        &service,
        json!({ "act": "put", "key": "many", "times": 100 }),
    )
    .await;
    let outcomes = many["outcomes"].as_str().expect("text");
    let (busy, done) = outcomes
        .split_once(", ")
        .unwrap_or_else(|| panic!("{outcomes}"));
    let count = |text: &str, name| {
        text.strip_prefix(name)
            .and_then(|count| count.parse::<u32>().ok())
    };
    let (busy, done) = (count(busy, "busy "), count(done, "done "));
    assert!(
        done >= Some(32) && busy.zip(done).map(|(busy, done)| busy + done) == Some(100),
        "{outcomes}"
    );
    assert_eq!(get(&service, "k").await.expect("it is there").0, "kept");
}

#[tokio::test]
async fn a_store_that_cannot_be_written_says_so_and_loses_nothing_that_was_acknowledged() {
    let (house, service) = Keeps::serve(&KEEPS).await;
    let version = put(&service, "k", "kept").await;
    service.fill_disk();
    for act in ["put", "delete"] {
        let told = records(&service, json!({ "act": act, "key": "k", "value": "lost" })).await;
        assert_eq!(
            (&told["outcome"], &told["version"]),
            (&json!("unavailable"), &Value::Null),
            "{act}"
        );
    }
    assert_eq!(service.get("/readyz").await.status, 503);
    service.kill();
    drop(service);
    let service = house.serve_again().await;
    assert_eq!(get(&service, "k").await, Some(("kept".to_owned(), version)));
    assert!(put(&service, "k", "again").await > version);
}

#[tokio::test]
async fn what_is_granted_bounds_the_records_and_a_smaller_grant_takes_nothing_away() {
    let (house, service) = Keeps::serve(&KEEPS).await;
    let most = 64 * 1024 - RECORD_BYTES - 1;
    let put = async |key: &str, bytes: usize| {
        let told = records(
            &service,
            json!({ "act": "put", "key": key, "bytes": bytes }),
        )
        .await;
        (
            told["outcome"].as_str().expect("an outcome").to_owned(),
            told["told"].as_str().expect("text").to_owned(),
        )
    };
    let full = |bytes: usize, granted: usize| {
        (
            "full".to_owned(),
            format!("the plugin's records would take {bytes} bytes; {granted} are granted"),
        )
    };
    let done = ("done".to_owned(), String::new());
    assert_eq!(put("k", most + 1).await, full(65537, 65536));
    assert_eq!(put("k", most).await, done);
    assert_eq!(used(&service, "keeps").await, (65536.0, 1.0));
    assert_eq!(put("l", 0).await, full(65536 + 65, 65536));
    assert_eq!(put("k", most).await, done, "in the place of what was there");
    assert_eq!(put("k", 1000).await, done);
    assert_eq!(put("l", 2000).await, done);
    assert_eq!(used(&service, "keeps").await, (3000.0 + 2.0 * 65.0, 2.0));

    house
        .follow(&service, &[("keeps", r#""cache:8MiB", "state:1KiB""#)])
        .await;
    assert_eq!(put("k", 1001).await, full(3131, 1024));
    assert_eq!(put("m", 0).await, full(3195, 1024));
    assert_eq!(
        get(&service, "k").await.expect("it is there").0,
        "x".repeat(40)
    );
    assert_eq!(put("k", 900).await, done, "nothing grows");
    assert_eq!(
        records(&service, json!({ "act": "delete", "key": "l" })).await["outcome"],
        "done"
    );
    assert_eq!(used(&service, "keeps").await, (965.0, 1.0));
    assert_eq!(put("k", 959).await, done);

    house.follow(&service, &[("keeps", "\"cache:8MiB\"")]).await;
    for act in ["get", "put", "delete", "list"] {
        let told = records(&service, json!({ "act": act, "key": "k" })).await;
        assert_eq!(
            (&told["outcome"], &told["told"]),
            (&json!("not_granted"), &json!("`state` is not granted"))
        );
    }
    let number = revision(service.data.path(), "keeps").await;
    let series = [("plugin", "keeps"), ("revision", number.as_str())];
    assert_eq!(
        scrape(service.data.path())
            .await
            .value("switchbay_plugin_denials_total", &series),
        4.0
    );
    house.follow(&service, &KEEPS).await;
    assert!(
        get(&service, "k").await.is_some(),
        "it was kept all the while"
    );
}

#[tokio::test]
async fn a_list_goes_in_the_order_of_the_keys_and_stays_within_the_plugin() {
    let (_house, service) = Keeps::serve(&[("keeps", ALL), ("other", ALL)]).await;
    for (key, value) in [
        ("b/2", "22"),
        ("a/1", "1"),
        ("b/10", ""),
        ("ä/1", "xy"),
        ("b", "b"),
        ("b0", "c"),
    ] {
        put(&service, key, value).await;
    }
    records_of(
        &service,
        "other",
        json!({ "act": "put", "key": "b/3", "value": "theirs" }),
    )
    .await;
    let list = async |input: Value| {
        let mut asked = json!({ "act": "list", "key": "" });
        asked
            .as_object_mut()
            .expect("an object")
            .extend(input.as_object().expect("an object").clone());
        records(&service, asked).await["told"]
            .as_str()
            .expect("text")
            .to_owned()
    };
    assert_eq!(list(json!({})).await, "a/1=1 b=1 b/10=0 b/2=2 b0=1 ä/1=2");
    assert_eq!(list(json!({ "key": "b/" })).await, "b/10=0 b/2=2");
    assert_eq!(list(json!({ "key": "ä" })).await, "ä/1=2");
    assert_eq!(list(json!({ "key": "c" })).await, "");
    assert_eq!(list(json!({ "limit": 2 })).await, "a/1=1 b=1");
    assert_eq!(
        list(json!({ "limit": 2, "after": "b" })).await,
        "b/10=0 b/2=2"
    );
    assert_eq!(list(json!({ "key": "b/", "after": "b/10" })).await, "b/2=2");
    assert_eq!(
        list(json!({ "key": "b/", "after": "a" })).await,
        "b/10=0 b/2=2",
        "what stands before the prefix"
    );
    assert_eq!(list(json!({ "key": "b/", "after": "c" })).await, "");
    assert_eq!(
        records_of(&service, "other", json!({ "act": "list", "key": "" })).await["told"],
        "b/3=6"
    );
    assert_eq!(
        records_of(&service, "other", json!({ "act": "get", "key": "b" })).await["outcome"],
        "none"
    );
    assert_eq!(
        records_of(&service, "other", json!({ "act": "delete", "key": "b" })).await["outcome"],
        "done"
    );
    assert!(get(&service, "b").await.is_some());
}

#[tokio::test]
async fn records_outlive_a_swap_a_restart_and_the_plugins_entry_and_nobody_logs_them() {
    let (house, service) = Keeps::serve(&KEEPS).await;
    let version = put(&service, "hunter2key", "hunter2value").await;
    let kept = Some(("hunter2value".to_owned(), version));
    house.write("keeps.wasm", &keeps_anew("keeps"));
    let before = revision(service.data.path(), "keeps").await;
    house.follow(&service, &KEEPS).await;
    assert_ne!(revision(service.data.path(), "keeps").await, before);
    assert_eq!(get(&service, "hunter2key").await, kept);
    assert!(put(&service, "other", "").await > version);

    house.follow(&service, &[("other", ALL)]).await;
    let left = used(&service, "keeps").await;
    assert_eq!(
        left,
        (64.0 + 10.0 + 12.0 + 64.0 + 5.0, 2.0),
        "what stays is told"
    );
    for line in service.stop() {
        assert!(!line.contains("hunter2"), "{line}");
    }
    drop(service);
    let service = house.serve_again().await;
    assert_eq!(used(&service, "keeps").await, left);
    house.follow(&service, &KEEPS).await;
    assert_eq!(get(&service, "hunter2key").await, kept);
    let put = json!({ "act": "put", "key": "hunter2key", "expected": version, "value": "next" });
    assert_eq!(records(&service, put).await["outcome"], "done");
}

/// A caller's own key holds what it was told last, or what it asked for after that.
async fn check_kept(service: &Service, written: HashMap<String, String>) {
    let order = |value: &str| {
        let (round, number) = value.split_once('-').expect("two numbers");
        (
            round.parse::<usize>().expect("a number"),
            number.parse::<usize>().expect("a number"),
        )
    };
    for (key, value) in written {
        let (found, _) = get(service, &key)
            .await
            .unwrap_or_else(|| panic!("{key} is lost"));
        assert!(
            order(&found) >= order(&value),
            "{key}: {value} was told, {found} is there"
        );
    }
}

/// How often the process is killed.
const ROUNDS: usize = 5;

#[tokio::test]
async fn no_acknowledged_write_is_lost_when_the_process_is_killed() {
    let (house, mut service) = Keeps::serve(&KEEPS).await;
    let written: Mutex<HashMap<String, String>> = Mutex::default();
    let (answers, counted) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let mut asked = 0;
    for round in 0..ROUNDS {
        let until = answers.load(Ordering::Relaxed) + 40 + round * 17 % 50;
        let caller = async |caller: usize| {
            let mut tries = 0;
            for number in 0.. {
                let (key, value) = (
                    format!("{caller}-{}", number % 5),
                    format!("{round}-{number}"),
                );
                let counts = number % 2 == 0;
                let input = if counts {
                    json!({ "act": "count", "key": "count" })
                } else {
                    json!({ "act": "put", "key": key, "value": value })
                };
                tries += usize::from(counts);
                let request = service
                    .request(Method::POST, "/api/v1/test/keeps/records")
                    .json(&input)
                    .send();
                let Ok(response) = request.await else {
                    return tries;
                };
                let Ok(body) = response.json::<Value>().await else {
                    return tries;
                };
                assert_eq!(body["data"]["outcome"], "done", "{body}");
                if counts {
                    counted.fetch_add(1, Ordering::Relaxed);
                } else {
                    written
                        .lock()
                        .expect("no caller panicked")
                        .insert(key, value);
                }
                if answers.fetch_add(1, Ordering::Relaxed) + 1 == until {
                    service.kill();
                }
            }
            tries
        };
        let tries = futures::future::join_all((0..CALLERS).map(caller)).await;
        asked += tries.iter().sum::<usize>();
        drop(service);
        service = house.serve_again().await;
        let count: usize = get(&service, "count")
            .await
            .map_or(0, |(count, _)| count.parse().expect("a number"));
        let told = counted.load(Ordering::Relaxed);
        assert!(
            (told..=asked).contains(&count),
            "{told} were told, {asked} were asked for, {count} are there"
        );
        let written = written.lock().expect("no caller panicked").clone();
        check_kept(&service, written).await;
    }
}
