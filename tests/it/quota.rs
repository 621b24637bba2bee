//! Monthly limits of administrator keys: counted for both faces, told on every answer, kept over a restart.

use serde_json::json;
use time::format_description::well_known::Rfc3339;
use time::{Date, OffsetDateTime};

use crate::support::{Answer, Metered, failure, outcome};

/// When the current month (UTC) ends, in Unix seconds.
pub(crate) fn month_end() -> u64 {
    let now = OffsetDateTime::now_utc();
    let (year, month) = match now.month() {
        time::Month::December => (now.year() + 1, time::Month::January),
        month => (now.year(), month.next()),
    };
    let day = Date::from_calendar_date(year, month, 1)
        .expect("a day")
        .midnight()
        .assume_utc();
    u64::try_from(day.unix_timestamp()).expect("after 1970")
}

/// Status, limit, remaining and reset of an answer.
fn standing(answer: &Answer) -> (u16, [u64; 3]) {
    let read = |name: &str| {
        answer
            .header(&format!("x-apikey-monthly-{name}"))
            .parse()
            .expect("an integer")
    };
    (answer.status, ["limit", "remaining", "reset"].map(read))
}

#[tokio::test]
async fn a_month_counts_calls_that_fit_on_both_faces_and_is_told_on_every_answer() {
    let metered = Metered::shared().await;
    let key = metered
        .key(json!({ "perMonth": 3, "perMinute": 1000 }))
        .await;
    let reset = month_end();
    let answers = [
        metered
            .rest(&key, "plain", &json!({ "how": "badly" }), &[])
            .await,
        metered.rest(&key, "plain", &json!({}), &[]).await,
        metered.tool(&key, "plain", &json!({})).await,
        metered
            .rest(&key, "plain", &json!({ "how": "fail" }), &[])
            .await,
        metered
            .rest(&key, "plain", &json!({ "how": "badly" }), &[])
            .await,
        metered.rest(&key, "plain", &json!({}), &[]).await,
        metered.tool(&key, "plain", &json!({})).await,
        metered.rest(&key, "unmetered", &json!({}), &[]).await,
    ];
    let told: Vec<(u16, [u64; 3])> = answers.iter().map(standing).collect();
    let expected = [
        (400, 3),
        (200, 2),
        (200, 1),
        (418, 0),
        (400, 0),
        (429, 0),
        (200, 0),
        (200, 0),
    ];
    assert_eq!(
        told,
        expected.map(|(status, left)| (status, [3, left, reset]))
    );
    // The slots of the minute were taken all the same.
    assert_eq!(answers[5].header("x-apikey-ratelimit-limit"), "1000");

    let (rest, (code, tool)) = (&answers[5], failure(&answers[6].json()["result"]));
    assert_eq!(rest.refusal(), (429, "MONTHLY_QUOTA_EXCEEDED".to_owned()));
    assert_eq!(
        (code.as_str(), outcome(&answers[6])),
        (
            "MONTHLY_QUOTA_EXCEEDED",
            "200 isError MONTHLY_QUOTA_EXCEEDED #7".to_owned()
        )
    );
    let body = rest.json();
    assert_eq!(
        (&tool["error"], &tool["data"]["resetAt"]),
        (&body["error"], &body["data"]["resetAt"])
    );
    let at = OffsetDateTime::parse(body["data"]["resetAt"].as_str().expect("resetAt"), &Rfc3339)
        .expect("ISO 8601");
    assert_eq!(
        u64::try_from(at.unix_timestamp()).expect("after 1970"),
        reset
    );
    let wait = body["data"]["retryAfter"].as_u64().expect("retryAfter");
    assert_eq!(rest.header("retry-after"), wait.to_string());
    assert_eq!(
        answers[6].header("retry-after"),
        tool["data"]["retryAfter"].to_string()
    );
    assert!((1..=31 * 86_400).contains(&wait), "{wait}");
}

#[tokio::test]
async fn a_key_without_a_monthly_limit_is_told_of_none() {
    let metered = Metered::shared().await;
    let key = metered.key(json!({})).await;
    let answer = metered.rest(&key, "plain", &json!({}), &[]).await;
    let told = answer
        .headers
        .keys()
        .find(|name| name.as_str().contains("monthly"));
    assert_eq!((answer.status, told), (200, None));
}

#[tokio::test]
async fn many_callers_at_once_do_not_pass_the_months_limit() {
    let metered = Metered::shared().await;
    let key = metered.key(json!({ "perMonth": 20 })).await;
    let input = json!({});
    let calls = (0..50).map(|_| metered.rest(&key, "plain", &input, &[]));
    let statuses: Vec<u16> = futures::future::join_all(calls)
        .await
        .iter()
        .map(|answer| answer.status)
        .collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 20);
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 30);
}

#[tokio::test]
async fn a_restart_keeps_the_months_count() {
    let first = Metered::start("", None).await;
    let key = first.key(json!({ "perMonth": 9 })).await;
    for _ in 0..4 {
        assert_eq!(first.rest(&key, "plain", &json!({}), &[]).await.status, 200);
    }
    let second = Metered::start("", Some(first.stop())).await;
    let answer = second.rest(&key, "plain", &json!({}), &[]).await;
    assert_eq!(standing(&answer), (200, [9, 4, month_end()]));
}
