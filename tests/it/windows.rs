//! Windows beside an administrator key's minute: the seconds of a self-service key and its account, and the minute of an
//! operation.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;

use crate::support::{
    Answer, Document, Issuer, KEYS, Metered, Signer, in_one_minute, in_one_second, in_time, now_s,
    outcome,
};

/// Status, limit, remaining, reset and window of an answer.
fn standing(answer: &Answer) -> (u16, [u64; 4]) {
    let read = |name: &str| {
        answer
            .header(&format!("x-apikey-ratelimit-{name}"))
            .parse()
            .expect("an integer")
    };
    (
        answer.status,
        ["limit", "remaining", "reset", "window"].map(read),
    )
}

/// A key of a new account with these seconds.
async fn key(metered: &Metered, of_account: Option<u32>, of_key: Option<u32>) -> (String, String) {
    let entitlement = json!({ "plan": "paid", "creditsPerMonth": 1_000_000 });
    let account =
        json!({ "perSecond": of_account, "concurrency": 100, "entitlement": entitlement });
    let account = metered.account(account).await;
    let key = metered
        .key(json!({ "account": account, "perSecond": of_key }))
        .await;
    (account, key)
}

#[tokio::test]
async fn a_self_service_key_has_windows_of_a_second() {
    let metered = Metered::shared().await;
    let (started, answers) = in_one_second(async || {
        let (_, key) = key(metered, None, Some(2)).await;
        [
            metered.rest(&key, "plain", &json!({}), &[]).await,
            metered.tool(&key, "plain", &json!({})).await,
            metered.rest(&key, "plain", &json!({}), &[]).await,
            metered.tool(&key, "plain", &json!({})).await,
        ]
    })
    .await;
    let told: Vec<(u16, [u64; 4])> = answers.iter().map(standing).collect();
    let reset = started + 1;
    assert_eq!(
        told,
        [(200, 1), (200, 0), (429, 0), (200, 0)]
            .map(|(status, left)| (status, [2, left, reset, 1]))
    );
    assert_eq!(answers[2].refusal(), (429, "RATE_LIMITED".to_owned()));
    assert_eq!(answers[2].header("retry-after"), "1");
    assert_eq!(answers[2].json()["data"]["retryAfter"], 1);
    assert_eq!(
        (
            outcome(&answers[3]).as_str(),
            answers[3].header("retry-after")
        ),
        ("200 isError RATE_LIMITED #7", "1")
    );
}

#[tokio::test]
async fn the_keys_of_an_account_share_its_second() {
    let metered = Metered::shared().await;
    let (_, answers) = in_one_second(async || {
        let (account, first) = key(metered, Some(3), Some(2)).await;
        let second = metered.key(json!({ "account": account })).await;
        [
            metered.rest(&first, "plain", &json!({}), &[]).await,
            metered.rest(&second, "plain", &json!({}), &[]).await,
            metered.rest(&first, "plain", &json!({}), &[]).await,
            metered.rest(&second, "plain", &json!({}), &[]).await,
        ]
    })
    .await;
    let told = answers.map(|answer| {
        let (status, [limit, remaining, _, window]) = standing(&answer);
        (status, limit, remaining, window)
    });
    // The one with the least left is told, then the one that refused.
    assert_eq!(
        told,
        [
            (200, 2, 1, 1),
            (200, 3, 1, 1),
            (200, 2, 0, 1),
            (429, 3, 0, 1)
        ]
    );
}

#[tokio::test]
async fn an_operations_own_window_counts_each_owner_and_leaves_the_keys_alone() {
    let metered = Metered::shared().await;
    let (started, answers) = in_one_minute(async || {
        let [one, other] = [
            metered.key(json!({ "perMinute": 5 })).await,
            metered.key(json!({ "perMinute": 5 })).await,
        ];
        let mut answers = Vec::new();
        for _ in 0..4 {
            answers.push(metered.rest(&one, "limited", &json!({}), &[]).await);
        }
        answers.push(metered.tool(&one, "limited", &json!({})).await);
        answers.push(metered.rest(&other, "limited", &json!({}), &[]).await);
        // Two slots of the key's five are left: the refused calls took none.
        for _ in 0..3 {
            answers.push(metered.rest(&one, "plain", &json!({}), &[]).await);
        }
        answers
    })
    .await;
    let reset = (started / 60 + 1) * 60;
    let told: Vec<(u16, [u64; 4])> = answers.iter().map(standing).collect();
    let expected = [
        (200, 3, 2),
        (200, 3, 1),
        (200, 3, 0),
        (429, 3, 0),
        (200, 3, 0),
        (200, 3, 2),
        (200, 5, 1),
        (200, 5, 0),
        (429, 5, 0),
    ];
    assert_eq!(
        told,
        expected.map(|(status, limit, left)| (status, [limit, left, reset, 60]))
    );
    assert_eq!(outcome(&answers[4]), "200 isError RATE_LIMITED #7");
}

#[tokio::test]
async fn a_key_may_have_a_number_of_its_own_in_the_place_of_an_operations() {
    let metered = Metered::shared().await;
    let (_, answers) = in_one_minute(async || {
        let windows =
            |calls: u32| json!({ "windows": { "metered.limited": calls, "other.limited": 1 } });
        let [more, less] = [metered.key(windows(5)).await, metered.key(windows(1)).await];
        let mut answers = Vec::new();
        for key in [&more, &more, &more, &more, &less, &less] {
            answers.push(metered.rest(key, "limited", &json!({}), &[]).await);
        }
        answers
    })
    .await;
    let told = answers
        .iter()
        .map(standing)
        .map(|(status, [limit, left, _, _])| (status, limit, left));
    let expected = [
        (200, 5, 4),
        (200, 5, 3),
        (200, 5, 2),
        (200, 5, 1),
        (200, 1, 0),
        (429, 1, 0),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn an_operation_that_consumes_nothing_takes_no_slot() {
    let metered = Metered::shared().await;
    let (_, answers) = in_one_minute(async || {
        let key = metered.key(json!({ "perMinute": 1 })).await;
        let free = metered.rest(&key, "unmetered", &json!({}), &[]).await;
        [
            metered.rest(&key, "plain", &json!({}), &[]).await,
            free,
            metered.rest(&key, "unmetered", &json!({}), &[]).await,
        ]
    })
    .await;
    assert_eq!(standing(&answers[0]).1[..2], [1, 0]);
    for answer in &answers[1..] {
        let told = answer
            .headers
            .keys()
            .find(|name| name.as_str().contains("ratelimit"));
        assert_eq!((answer.status, told), (200, None));
    }
}

/// The windows of the answers' own headers: whatever second a call falls into, exactly the limit is admitted there before one
/// is refused.
#[tokio::test]
async fn many_callers_at_once_are_admitted_exactly_to_the_limit() {
    const LIMIT: u64 = 7;
    let metered = Metered::shared().await;
    let (_, key) = key(metered, None, Some(u32::try_from(LIMIT).expect("small"))).await;
    let caller = async || {
        let mut told = Vec::new();
        for _ in 0..30 {
            told.push(standing(
                &metered.rest(&key, "plain", &json!({}), &[]).await,
            ));
        }
        told
    };
    let told: Vec<(u16, [u64; 4])> = futures::future::join_all((0..32).map(|_| caller()))
        .await
        .into_iter()
        .flatten()
        .collect();
    let mut resets: Vec<u64> = told.iter().map(|(_, [_, _, reset, _])| *reset).collect();
    resets.sort_unstable();
    resets.dedup();
    for reset in resets {
        let of = |status: u16| {
            told.iter()
                .filter(|one| one.0 == status && one.1[2] == reset)
                .count() as u64
        };
        assert!(
            of(200) == LIMIT || (of(200) < LIMIT && of(429) == 0),
            "{reset}: {} and {}",
            of(200),
            of(429)
        );
    }
}

/// Returns in a second of the clock that is at least this one.
async fn second(at_least: u64) {
    let mut looks = tokio::time::interval(Duration::from_millis(5));
    while now_s() < at_least {
        looks.tick().await;
    }
}

#[tokio::test]
async fn a_caller_that_waited_for_an_issuers_keys_opens_no_second_that_is_over() {
    let issuer = Issuer::start(&[]).await;
    let metered = Metered::start(&issuer.config(""), None).await;
    let (_, key) = key(&metered, None, Some(1)).await;
    // Again where a second ended among the calls.
    for attempt in 1.. {
        let signer = Signer::p256(&format!("late-{attempt}"));
        let (told, keys) = (Arc::new(Notify::new()), json!({ "keys": [signer.jwk()] }));
        issuer.set(KEYS, Document::Held(keys.to_string(), Arc::clone(&told)));
        let mut claims = issuer.claims(&metered.service.base_url);
        claims["scope"] = json!("test:metered");
        let token = signer.token(&claims);
        let nothing = json!({});
        let late = metered.rest(&token, "plain", &nothing, &[]);
        let others = async {
            in_time("the keys are asked for", async {
                let mut looks = tokio::time::interval(Duration::from_millis(5));
                while issuer.asked(KEYS) < attempt {
                    looks.tick().await;
                }
            })
            .await;
            let started = now_s() + 3;
            second(started).await;
            let first = metered.rest(&key, "plain", &json!({}), &[]).await.status;
            told.notify_one();
            (started, first)
        };
        let (late, (started, first)) = tokio::join!(late, others);
        let second = metered.rest(&key, "plain", &json!({}), &[]).await.status;
        if now_s() == started {
            assert_eq!((first, late.status, second), (200, 200, 429));
            return;
        }
        assert!(attempt < 4, "every attempt took more than a second");
    }
}
