//! A plugin is replaced while another one calls it, and plugins whose few places calls of each other want.

use std::time::Duration;

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::{Folder, WELCOMED, calling, calls, data, read};
use crate::metrics::{CALLS, scrape};
use crate::support::{Service, in_time};

#[tokio::test]
async fn a_request_calls_what_was_served_when_it_began_and_holds_it_no_longer() {
    let folder = Folder::new();
    let welcomed = ["features:second.answer"];
    folder.install("first", &calls("first", "old", &welcomed));
    folder.install(
        "second",
        &calls("second", "old", &["features:third.answer"]),
    );
    folder.manifest(&[("first", &welcomed), ("second", &[])]);
    let service = folder.serve().await;
    let anew = calls("second", "new", &["features:third.answer"]);
    let staged = service.stage("second", anew, "").await;
    assert_eq!(staged["state"], "staged", "{staged}");

    let key = service.key();
    // A call that its guest forgets ends with the guest's own, and keeps nothing either.
    let forgets = json!({
        "call": "second.answer", "how": "forget", "with": r#"{"wait_ms":20000}"#, "wait_ms": 1000,
    });
    let forgot = data(&service, key, "first/answer", &forgets).await;
    assert_eq!(forgot["said"], json!(["false"]));
    until("the forgotten call is over", async || {
        ended(&service, "abandoned").await > 0.0
    })
    .await;
    let before = ended(&service, "ok").await;
    let twice = json!({ "call": "second.answer", "rounds": 2, "wait_ms": 8000 });
    let activate = async {
        until("the first call is over", async || {
            ended(&service, "ok").await > before
        })
        .await;
        let path = "/admin/v1/plugins/second/revisions/2/activate";
        let answer = service.admin(Method::POST, path, Some(&json!({}))).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let once = calling("second.answer", &json!({}));
        marks(&data(&service, key, "first/answer", &once).await)
    };
    let (during, after) = tokio::join!(data(&service, key, "first/answer", &twice), activate);
    assert_eq!(marks(&during), ["old", "old"]);
    assert_eq!(after, ["new"]);
    // The instance of `first` that waits for another call keeps nothing of what was served.
    until("the old one has drained", async || {
        let revision = service.told("/admin/v1/plugins/second/revisions/1").await;
        revision["state"] == "retained"
    })
    .await;
}

/// Whoever calls holds a place and waits for another, always along the grants.
#[tokio::test]
async fn chains_of_plugins_with_one_place_each_come_to_their_ends() {
    let folder = Folder::with_places(1);
    let plugins = &WELCOMED[..3];
    for (name, welcomed) in plugins {
        folder.install(name, &calls(name, "old", welcomed));
    }
    folder.manifest(plugins);
    let service = &folder.serve().await;
    let last = json!({ "how": "toil" });
    let middle = calling("third.answer", &last);
    let whole = calling("second.answer", &middle);
    let kinds = [("first", &whole), ("second", &middle), ("third", &last)];
    let crowd = (0..12).map(|at| {
        let (plugin, input) = kinds[at % 3];
        async move { data(service, service.key(), &format!("{plugin}/answer"), input).await }
    });
    for answer in join_all(crowd).await {
        assert!(!answer.to_string().contains("failed"), "{answer}");
    }
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    in_time(what, async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

fn marks(answer: &Value) -> Vec<String> {
    let said = answer["said"].as_array().expect("a list").iter();
    let mark = |said: &Value| read(said.as_str().expect("a text"))["mark"].clone();
    said.map(|said| mark(said).as_str().expect("a mark").to_owned())
        .collect()
}

/// Calls of the first revision of `second` that ended so.
async fn ended(service: &Service, outcome: &str) -> f64 {
    let labels = [("plugin", "second"), ("revision", "1")];
    let metrics = scrape(service.data.path()).await;
    let ended = metrics.counts(CALLS, &labels, "outcome");
    ended.get(outcome).copied().unwrap_or_default()
}
