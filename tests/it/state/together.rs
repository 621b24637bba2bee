//! What `switchbay:state@0.2.0` added: several records in one write, records that expire; and the version before it, which is
//! served beside it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{KEEPS, get, put, records, used};
use crate::metrics::revision;
use crate::support::{Keeps, workspace};

#[tokio::test]
async fn several_records_are_written_together_or_not_at_all() {
    let (_house, service) = Keeps::serve(&KEEPS).await;
    let write = async |writes: Value| {
        let done = records(&service, json!({ "act": "write", "writes": writes })).await;
        let told = |name: &str| done[name].as_str().unwrap_or_default().to_owned();
        (told("outcome"), told("told"), done["version"].as_u64())
    };
    let first = put(&service, "a", "1").await;
    let second = put(&service, "b", "1").await;
    let (outcome, told, _) = write(json!([
        { "key": "a", "value": "2", "expected": first },
        { "key": "b", "value": "2", "expected": first },
        { "key": "c", "expected": 7 },
        { "key": "d", "value": "2", "expected": 0 },
    ]))
    .await;
    assert_eq!(outcome, "conflict");
    assert_eq!(told, format!("1 Some({second}), 2 None"));
    assert_eq!(get(&service, "a").await, Some(("1".to_owned(), first)));
    assert_eq!(get(&service, "d").await, None);

    let (outcome, _, version) = write(json!([
        { "key": "a", "value": "2", "expected": first },
        { "key": "b", "expected": second },
        { "key": "d", "value": "2", "expected": 0 },
    ]))
    .await;
    let version = version.expect("a version");
    assert_eq!(outcome, "done");
    assert_eq!(get(&service, "a").await, Some(("2".to_owned(), version)));
    assert_eq!(get(&service, "b").await, None);
    assert_eq!(get(&service, "d").await, Some(("2".to_owned(), version)));
    assert_eq!(used(&service, "keeps").await, (132.0, 2.0));

    // Room is counted for all of them together.
    let half = json!({ "key": "e", "bytes": 40_000 });
    let other = json!({ "key": "f", "bytes": 40_000 });
    assert_eq!(write(json!([half, other])).await.0, "full");
    assert_eq!(get(&service, "e").await, None);

    let many: Vec<Value> = (0..65).map(|n| json!({ "key": format!("{n}") })).collect();
    let large: Vec<Value> = (0..5)
        .map(|n| json!({ "key": format!("{n}"), "bytes": 250_000 }))
        .collect();
    for (writes, rule) in [
        (json!([]), "there are 0 writes; there must be from 1 to 64"),
        (
            json!(many),
            "there are 65 writes; there must be from 1 to 64",
        ),
        (
            json!([{ "key": "a" }, { "key": "b" }, { "key": "a" }]),
            "the writes at 0 and 2 have the same key",
        ),
        (
            json!(large),
            "the values have 1250000 bytes together; at most 1048576 are allowed",
        ),
        (json!([{ "key": "a" }, { "key": "" }]), "the key is empty"),
    ] {
        let (outcome, told, _) = write(writes).await;
        assert_eq!((&*outcome, &*told), ("not_acceptable", rule));
    }
    assert_eq!(get(&service, "a").await, Some(("2".to_owned(), version)));
}

#[tokio::test]
async fn a_record_that_expires_is_gone_and_its_room_comes_back() {
    let (_house, service) = Keeps::serve(&KEEPS).await;
    let put = async |key: &str, bytes: usize, expires_in_ms: i64| {
        let input =
            json!({ "act": "put", "key": key, "bytes": bytes, "expires_in_ms": expires_in_ms });
        records(&service, input).await
    };
    let lasting = put("lasting", 100, 3_600_000).await;
    assert_eq!(lasting["outcome"], "done");
    let going = put("going", 60_000, 300).await;
    assert_eq!(going["outcome"], "done");
    let began = Instant::now();
    while get(&service, "going").await.is_some() {
        assert!(began.elapsed() < Duration::from_secs(30));
    }
    assert!(get(&service, "lasting").await.is_some());
    let listed = records(&service, json!({ "act": "list", "key": "" })).await;
    assert_eq!(listed["told"], "lasting=100");
    // What has expired counts until it is removed, which is soon.
    while put("large", 60_000, 3_600_000).await["outcome"] != "done" {
        assert!(began.elapsed() < Duration::from_secs(30));
    }
    assert_eq!(used(&service, "keeps").await.1, 2.0);
    // A time that has passed deletes what is there.
    assert_eq!(put("large", 60_000, -1).await["outcome"], "done");
    assert_eq!(used(&service, "keeps").await.1, 1.0);
    let again = json!({ "act": "put", "key": "large", "value": "new", "expected": 0 });
    assert_eq!(records(&service, again).await["outcome"], "done");
}

#[tokio::test]
async fn a_component_of_an_earlier_contract_serves_on_the_same_records() {
    let (house, service) = Keeps::serve(&KEEPS).await;
    let version = put(&service, "k", "by the new one").await;
    house.write("keeps.wasm", &earlier());
    house.follow(&service, &KEEPS).await;
    let number = revision(service.data.path(), "keeps").await;
    assert_eq!(number, "2", "the earlier component serves");
    let found = get(&service, "k").await;
    assert_eq!(found, Some(("by the new one".to_owned(), version)));
    let act = |act: &str, expected: u64| json!({ "act": act, "key": "k", "value": "by the old one", "expected": expected });
    let told = records(&service, act("put", version + 1)).await;
    assert_eq!(
        (&told["outcome"], &told["version"]),
        (&json!("conflict"), &json!(version))
    );
    let told = records(&service, act("put", version)).await;
    assert_eq!(told["outcome"], "done");
    let last = told["version"].as_u64().expect("a version");
    let listed = records(&service, json!({ "act": "list", "key": "" })).await;
    assert_eq!(listed["told"], "k=14");
    assert_eq!(
        records(&service, act("delete", last)).await["outcome"],
        "done"
    );
    assert_eq!(get(&service, "k").await, None);
    let count = records(&service, json!({ "act": "count", "key": "n" })).await;
    assert_eq!(count["told"], "1");
}

/// The guest as it was built when `switchbay:state` was at 0.1.0.
fn earlier() -> Vec<u8> {
    let path = workspace().join("tests/programs/keeps-0.1.0.wasm");
    std::fs::read(path).expect("the component is kept")
}
