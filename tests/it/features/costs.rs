//! What a call by a plugin costs, and whom.

use reqwest::Method;
use serde_json::json;

use super::{PAGE, calling, chain, data, is_second, post, read, said};
use crate::support::{Service, in_one_minute};

#[tokio::test]
async fn the_operations_own_minute_counts_for_the_caller_however_it_is_called() {
    let chain = chain().await;
    let service = &chain.service;
    let (_, (key, told, direct)) = in_one_minute(async || {
        let key = chain.key(json!({})).await;
        let input = json!({ "call": "second.limited", "rounds": 4 });
        let told = said(service, &key, &input).await;
        let direct = post(service, &key, "second/limited", &json!({})).await;
        (key, told, direct.refusal())
    })
    .await;
    assert!(told[..3].iter().all(|said| is_second(said)), "{told:?}");
    assert!(
        told[3].starts_with(
            "failed: RATE_LIMITED The limit of 3 calls per minute is used up retry true"
        ),
        "{}",
        told[3]
    );
    assert_eq!(direct, (429, "RATE_LIMITED".to_owned()));
    let others = calling("second.limited", &json!({}));
    let other = chain.key(json!({})).await;
    assert!(is_second(&said(service, &other, &others).await[0]));
    // Another operation of the same plugin has nothing to do with it.
    let answer = calling("second.answer", &json!({}));
    assert!(is_second(&said(service, &key, &answer).await[0]));
}

#[tokio::test]
async fn an_address_has_the_operations_own_allowance() {
    let service = &chain().await.service;
    let (_, told) = in_one_minute(async || {
        let input = json!({ "call": "second.limited", "rounds": 4 });
        let request = service.bare(Method::POST, "/api/v1/test/first/answer");
        let request = request.header("origin", PAGE).json(&input);
        Service::send(request).await.json()["data"]["said"].clone()
    })
    .await;
    let told: Vec<String> = serde_json::from_value(told).expect("texts");
    let two = |said: &String| is_second(said) && read(said)["kind"] == "CallerKind::FirstParty";
    assert!(told[..2].iter().all(two), "{told:?}");
    let refused = "failed: RATE_LIMITED The limit of 2 calls per minute is used up";
    assert!(
        told[2..].iter().all(|said| said.starts_with(refused)),
        "{told:?}"
    );
}

#[tokio::test]
async fn processor_time_is_the_callees_and_counts_for_the_caller_alone() {
    let chain = chain().await;
    let (service, key) = (&chain.service, chain.key(json!({})).await);
    // Each call has 200 ms, in each plugin: together these use twice as much.
    let toils = json!({ "call": "second.answer", "with": r#"{"how":"toil"}"#, "rounds": 4 });
    let told = said(service, &key, &toils).await;
    assert!(told.iter().all(|said| is_second(said)), "{told:?}");

    let spins = calling("second.answer", &json!({ "how": "spin" }));
    let mut told = Vec::new();
    for _ in 0..6 {
        told.extend(said(service, &key, &spins).await);
    }
    assert!(told[0].starts_with("failed: UPSTREAM_TIMEOUT "), "{told:?}");
    let paused = "failed: SERVICE_UNAVAILABLE The operation is paused for you";
    assert!(told[5].starts_with(paused), "{told:?}");
    let direct = post(service, &key, "second/answer", &json!({})).await;
    assert_eq!(direct.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
    data(service, &key, "first/answer", &json!({})).await;
    let other = chain.key(json!({})).await;
    let answer = calling("second.answer", &json!({}));
    assert!(is_second(&said(service, &other, &answer).await[0]));
}

#[tokio::test]
async fn no_scope_is_asked_and_no_price_is_taken() {
    let chain = chain().await;
    let service = &chain.service;
    let entitlement = json!({ "plan": "paid", "creditsPerMonth": 1 });
    let account = chain.account(json!({ "entitlement": entitlement })).await;
    let paying = chain.key(json!({ "account": account })).await;
    let refused = post(service, &paying, "second/costly", &json!({})).await;
    assert_eq!(refused.refusal(), (429, "API_CREDITS_EXCEEDED".to_owned()));
    let costly = calling("second.costly", &json!({}));
    assert!(is_second(&said(service, &paying, &costly).await[0]));

    let narrow = service.issue(&["--scope", "test:first"]);
    let refused = post(service, &narrow, "second/costly", &json!({})).await;
    assert_eq!(refused.refusal(), (403, "FORBIDDEN".to_owned()));
    assert!(is_second(&said(service, &narrow, &costly).await[0]));
}

#[tokio::test]
async fn one_call_makes_no_more_than_so_many() {
    let chain = chain().await;
    let key = chain.key(json!({})).await;
    // Refused for its input, so that nothing but the number ends it.
    let input = json!({
        "call": "second.answer", "with": r#"{"nome":1}"#, "times": 4, "rounds": 65,
    });
    let told = said(&chain.service, &key, &input).await;
    let (made, beyond) = told.split_at(256);
    let is_told = |said: &String| said.starts_with("not acceptable: `nome`");
    assert!(made.iter().all(is_told), "{made:?}");
    let refused =
        "failed: RATE_LIMITED One call may make at most 256 calls of other plugins retry false";
    assert_eq!(beyond.len(), 4);
    assert!(
        beyond.iter().all(|said| said.starts_with(refused)),
        "{beyond:?}"
    );
}
