//! What is kept: successes, what is unavailable, and for a moment that a provider asks to wait. What may pass is not.

use reqwest::Method;
use serde_json::json;

use super::{House, RESOLVE, x_post};
use crate::lab::Reply;
use crate::support::{Service, in_one_minute};

/// How often a provider is asked by two calls, and two more of another form of the same URL.
async fn check(number: u32, reply: Reply, expected: (u16, usize)) {
    let house = House::shared();
    let holds = format!("jack%2Fstatus%2F{number}&");
    house.lab.answer(&holds, reply.clone());
    for url in [
        format!("https://x.com/jack/status/{number}"),
        format!("https://x.com/jack/status/{number}"),
        format!("http://mobile.twitter.com/jack/statuses/{number}/photo/1?s=20"),
        format!("https://x.com/jack/status/{number}#a"),
    ] {
        assert_eq!(
            house
                .service
                .post(RESOLVE, &json!({ "url": url }))
                .await
                .status,
            expected.0,
            "{url}: {reply:?}"
        );
    }
    house.check_asked(&holds, expected.1);
}

#[tokio::test]
async fn an_outcome_that_lasts_is_kept_and_one_that_passes_is_not() {
    check(9501, Reply::json(200, &x_post("9501")), (200, 1)).await;
    check(9502, Reply::page(404, ""), (404, 1)).await;
    check(9503, Reply::page(403, ""), (403, 1)).await;
    check(9504, Reply::page(429, ""), (429, 1)).await;
    check(9505, Reply::page(500, ""), (502, 4)).await;
    check(9506, Reply::page(200, ""), (502, 4)).await;
    check(9507, Reply::Close, (502, 4)).await;
}

#[tokio::test]
async fn each_caller_is_told_its_own_url() {
    let house = House::shared();
    house
        .lab
        .answer("jack%2Fstatus%2F9511&", Reply::json(200, &x_post("9511")));
    for url in [
        "https://x.com/jack/status/9511",
        "https://twitter.com/jack/status/9511?lang=de",
    ] {
        let told = house.resolved(url).await;
        assert_eq!(
            (&told["originalUrl"], &told["resolvedUrl"]),
            (&json!(url), &json!("https://x.com/jack/status/9511"))
        );
    }
    house.check_asked("jack%2Fstatus%2F9511&", 1);
}

#[tokio::test]
async fn what_is_kept_counts_toward_the_callers_limits() {
    let house = House::shared();
    house
        .lab
        .answer("jack%2Fstatus%2F9521&", Reply::json(200, &x_post("9521")));
    let url = json!({ "url": "https://x.com/jack/status/9521" });
    let (_, answers) = in_one_minute(async || {
        let key = house.service.issue(&["--all-scopes", "--per-minute", "3"]);
        let call = || {
            Service::send(
                house
                    .service
                    .bare(Method::POST, RESOLVE)
                    .bearer_auth(&key)
                    .json(&url),
            )
        };
        [call().await, call().await, call().await, call().await]
    })
    .await;
    let left = answers
        .each_ref()
        .map(|answer| (answer.status, answer.header("x-apikey-ratelimit-remaining")));
    assert_eq!(left, [(200, "2"), (200, "1"), (200, "0"), (429, "0")]);
    assert_eq!(answers[3].refusal(), (429, "RATE_LIMITED".to_owned()));
    house.check_asked("jack%2Fstatus%2F9521&", 1);
}
