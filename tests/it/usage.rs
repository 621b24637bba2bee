//! What the operator reads of what was used: by key, account and operation, as JSON and CSV, entry by entry, and audited.

use reqwest::Method;
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::support::{Metered, command, operator};

const USAGE: &str = "/admin/v1/usage";

async fn get(metered: &Metered, path: &str) -> Value {
    let answer = operator(&metered.service, Method::GET, path, &Value::Null).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["data"].clone()
}

/// An account with calls of two keys: three settled, one released, and two of the operations unmetered or refused.
async fn used(metered: &Metered) -> (String, [String; 2]) {
    let entitlement = json!({ "plan": "paid", "creditsPerMonth": 100 });
    let account = metered.account(json!({ "entitlement": entitlement })).await;
    let keys = [
        metered.key(json!({ "account": account })).await,
        metered.key(json!({ "account": account })).await,
    ];
    for (key, operation, how) in [
        (0, "plain", "reply"),
        (0, "costly", "reply"),
        (0, "costly", "fail"),
        (1, "costly", "reply"),
        (1, "unmetered", "reply"),
    ] {
        metered
            .rest(&keys[key], operation, &json!({ "how": how }), &[])
            .await;
    }
    metered
        .rest(&keys[0], "plain", &json!({ "how": "badly" }), &[])
        .await;
    (account, keys)
}

fn month() -> String {
    let now = OffsetDateTime::now_utc();
    format!("{:04}-{:02}", now.year(), u8::from(now.month()))
}

#[tokio::test]
async fn usage_tells_calls_and_credits_by_key_and_operation() {
    let metered = Metered::shared().await;
    let (account, _) = used(metered).await;
    let found = get(
        metered,
        &format!("{USAGE}?account={account}&month={}", month()),
    )
    .await;
    assert_eq!(
        (&found["month"], &found["complete"]),
        (&json!(month()), &json!(true))
    );
    let rows = found["rows"].as_array().expect("rows");
    let told = |row: &Value| {
        let number = |name: &str| row[name].as_u64().expect("a number");
        assert_eq!(row["account"], account);
        (
            row["operation"].as_str().expect("an operation").to_owned(),
            number("calls"),
            number("credits"),
        )
    };
    let expected = [
        ("metered/costly", 2, 4),
        ("metered/plain", 1, 1),
        ("metered/costly", 1, 4),
        ("metered/unmetered", 1, 0),
    ];
    let expected =
        expected.map(|(operation, calls, credits)| (operation.to_owned(), calls, credits));
    assert_eq!(rows.iter().map(told).collect::<Vec<_>>(), expected);
    assert_eq!(rows[0]["key"], rows[1]["key"]);
    assert_ne!(rows[1]["key"], rows[2]["key"]);
    let all = get(metered, USAGE).await;
    assert!(
        rows.iter()
            .all(|row| all["rows"].as_array().expect("rows").contains(row))
    );
    assert_eq!(
        get(metered, &format!("{USAGE}?account={account}&month=1999-01")).await["rows"],
        json!([])
    );
}

#[tokio::test]
async fn usage_is_exported_as_csv_and_by_the_command_line() {
    let metered = Metered::start("", None).await;
    let (account, _) = used(&metered).await;
    let path = format!("{USAGE}?account={account}&format=csv");
    let answer = operator(&metered.service, Method::GET, &path, &Value::Null).await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "text/csv; charset=utf-8")
    );
    let csv = String::from_utf8(answer.bytes).expect("text");
    let lines: Vec<&str> = csv.split_terminator("\r\n").collect();
    assert_eq!(
        (lines[0], lines.len()),
        ("month,account,key,operation,calls,credits", 5)
    );
    assert!(
        lines[1].starts_with(&format!("{},{account},", month())),
        "{csv}"
    );
    assert!(lines[1].ends_with(",metered/costly,2,4"), "{csv}");

    let online = command(
        metered.service.data.path(),
        &["usage", "--account", &account],
    )
    .expect("it runs");
    assert_eq!(online["rows"].as_array().map(Vec::len), Some(4));
    let sound = command(metered.service.data.path(), &["audit"]).expect("it agrees");
    let expected = json!({ "reservations": 4, "pending": 0, "disagreements": 0, "told": [] });
    assert_eq!(sound, expected);
    let data = metered.stop();
    assert_eq!(
        command(data.path(), &["usage", "--account", &account]).expect("it runs"),
        online
    );
    assert_eq!(
        command(data.path(), &["audit"]).expect("it agrees"),
        expected
    );
}

#[tokio::test]
async fn an_accounts_entries_tell_each_reservation_and_its_end() {
    let metered = Metered::shared().await;
    let (account, _) = used(metered).await;
    let path = format!("/admin/v1/accounts/{account}/entries");
    let found = get(metered, &path).await;
    let entries = found["entries"].as_array().expect("entries");
    let told = |entry: &Value| {
        (
            entry["operation"].clone(),
            entry["credits"].clone(),
            entry["resolution"].clone(),
        )
    };
    let expected = [
        ("plain", 1, "settled"),
        ("costly", 4, "settled"),
        ("costly", 4, "released"),
        ("costly", 4, "settled"),
    ]
    .map(|(operation, credits, end)| {
        (
            json!(format!("metered/{operation}")),
            json!(credits),
            json!(end),
        )
    });
    assert_eq!(entries.iter().map(told).collect::<Vec<_>>(), expected);
    assert_eq!(
        (&found["next"], &entries[0]["month"]),
        (&Value::Null, &json!(month()))
    );
    let rest = get(
        metered,
        &format!("{path}?after={}", entries[1]["id"].as_str().expect("an id")),
    )
    .await;
    assert_eq!(
        rest["entries"].as_array().expect("entries")[..],
        entries[2..]
    );
}

#[tokio::test]
async fn what_is_asked_wrongly_is_refused() {
    let metered = Metered::shared().await;
    for (path, code) in [
        ("/admin/v1/usage?month=november", 400),
        ("/admin/v1/usage?format=xml", 400),
        ("/admin/v1/usage?surprise=1", 400),
        ("/admin/v1/usage?account=nobody", 404),
        ("/admin/v1/accounts/nobody/entries", 404),
    ] {
        let answer = operator(&metered.service, Method::GET, path, &Value::Null).await;
        assert_eq!(answer.refusal().0, code, "{path}");
    }
    for path in ["/admin/v1/usage", "/admin/v1/audit"] {
        let answer = operator(&metered.service, Method::POST, path, &json!({})).await;
        assert_eq!(
            (answer.refusal().0, answer.header("allow")),
            (405, "GET"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn the_metrics_tell_how_reservations_ended() {
    let metered = Metered::start("", None).await;
    used(&metered).await;
    let answer = operator(&metered.service, Method::GET, "/metrics", &Value::Null).await;
    let text = String::from_utf8(answer.bytes).expect("text");
    for line in [
        r#"switchbay_credit_reservations_total{resolution="settled"} 3"#,
        r#"switchbay_credit_reservations_total{resolution="released"} 1"#,
        r#"switchbay_credit_reservations_total{resolution="expired"} 0"#,
        "switchbay_credit_reservations_open 0",
        "switchbay_credits_settled_total 9",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}:\n{text}");
    }
}
