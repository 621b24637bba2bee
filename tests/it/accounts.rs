//! Accounts and self-service keys as the operator handles them: over the API and by `switchbay account`, and what an
//! entitlement opens and closes.

use regex_lite::Regex;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Answer, Post, Service, command, operator, outcome};

const ACCOUNTS: &str = "/admin/v1/accounts";
const KEYS: &str = "/admin/v1/keys";
const BANKS: &str = "/api/v1/tools/bank-qr/banks";

async fn ask(method: Method, path: &str, body: &Value) -> Answer {
    operator(Service::shared(), method, path, body).await
}

async fn call(key: &str) -> Answer {
    Service::send(Service::shared().bare(Method::GET, BANKS).bearer_auth(key)).await
}

fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is no string"))
}

/// A new account, and a key of it.
async fn account_and_key(account: Value) -> (String, String) {
    let opened = ask(Method::POST, ACCOUNTS, &account).await;
    assert_eq!(opened.status, 201, "{opened:?}");
    let id = text(&opened.json()["data"]["id"]).to_owned();
    let issued = ask(
        Method::POST,
        KEYS,
        &json!({ "label": "k", "scopes": ["*"], "account": id }),
    )
    .await;
    assert_eq!(issued.status, 201, "{issued:?}");
    (id, text(&issued.json()["data"]["key"]).to_owned())
}

#[tokio::test]
async fn a_self_service_key_belongs_to_an_account_and_says_so() {
    let body = json!({ "label": "Ada", "perSecond": 9, "entitlement": { "plan": "paid", "creditsPerMonth": 100 } });
    let opened = ask(Method::POST, ACCOUNTS, &body).await.json()["data"].clone();
    let id = text(&opened["id"]);
    let expected = json!({
        "id": id, "label": "Ada", "perSecond": 9, "concurrency": null,
        "entitlement": { "plan": "paid", "creditsPerMonth": 100, "expiresAt": null },
        "createdAt": opened["createdAt"],
    });
    assert_eq!(opened, expected);
    let shown = ask(Method::GET, &format!("{ACCOUNTS}/{id}"), &Value::Null).await;
    assert_eq!(shown.json()["data"]["entitlement"], expected["entitlement"]);
    let listed = ask(Method::GET, ACCOUNTS, &Value::Null).await.json();
    assert!(
        listed["data"]["accounts"]
            .as_array()
            .expect("accounts")
            .iter()
            .any(|one| one["id"] == id)
    );

    let request =
        json!({ "label": "k", "scopes": ["bank-qr:banks"], "account": id, "perSecond": 3 });
    let issued = ask(Method::POST, KEYS, &request).await.json()["data"].clone();
    let key = text(&issued["key"]);
    assert!(
        Regex::new("^sb_self_[0-9A-Za-z]{38}$")
            .unwrap()
            .is_match(key),
        "{key}"
    );
    assert_eq!(
        issued["display"],
        format!("sb_self_…{}", &key[key.len() - 4..])
    );
    assert_eq!(
        (&issued["account"], &issued["perSecond"]),
        (&json!(id), &json!(3))
    );
    assert_eq!(call(key).await.status, 200);
    let header = Service::shared()
        .bare(Method::GET, BANKS)
        .header("x-service-api-key", key);
    assert_eq!(Service::send(header).await.status, 200);
}

#[tokio::test]
async fn a_denied_plan_is_403_until_there_is_one() {
    let (id, key) = account_and_key(json!({ "label": "without a plan" })).await;
    check_denied(&key).await;
    let path = format!("{ACCOUNTS}/{id}/entitlement");
    let plan =
        json!({ "plan": "paid", "creditsPerMonth": 10, "expiresAt": "2999-01-31T00:00:00Z" });
    let entitled = ask(Method::PUT, &path, &plan).await;
    assert_eq!(
        (entitled.status, &entitled.json()["data"]["entitlement"]),
        (200, &plan)
    );
    assert_eq!(call(&key).await.status, 200);
    assert_eq!(
        ask(Method::DELETE, &path, &Value::Null).await.json()["data"]["entitlement"],
        Value::Null
    );
    check_denied(&key).await;
}

/// Both faces refuse, with a challenge.
async fn check_denied(key: &str) {
    let rest = call(key).await;
    assert_eq!(rest.refusal(), (403, "FORBIDDEN".to_owned()));
    let tool = Post::call("list_bank_qr_banks", &json!({}))
        .bearer(key)
        .send(Service::shared())
        .await;
    assert_eq!(outcome(&tool), "403 403 #7");
    for answer in [rest, tool] {
        // No other credential of the account would help, so no error that asks for one.
        assert_eq!(
            answer.header("www-authenticate"),
            r#"Bearer scope="bank-qr:banks""#,
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn a_rotated_key_is_a_new_owner_and_the_old_one_is_refused() {
    let request = json!({ "label": "rotated", "scopes": ["*"], "perMinute": 1000 });
    let old = ask(Method::POST, KEYS, &request).await.json()["data"].clone();
    assert_eq!(
        call(text(&old["key"]))
            .await
            .header("x-apikey-ratelimit-remaining"),
        "999"
    );
    let path = format!("{KEYS}/{}/rotate", text(&old["id"]));
    let rotated = ask(Method::POST, &path, &Value::Null).await;
    let new = rotated.json()["data"].clone();
    assert_eq!(
        (rotated.status, &new["label"], &new["perMinute"]),
        (201, &old["label"], &old["perMinute"])
    );
    assert_ne!(new["id"], old["id"]);
    assert_eq!(
        call(text(&old["key"])).await.refusal(),
        (403, "FORBIDDEN".to_owned())
    );
    assert_eq!(
        call(text(&new["key"]))
            .await
            .header("x-apikey-ratelimit-remaining"),
        "999"
    );
    assert_eq!(
        ask(Method::POST, &path, &Value::Null).await.refusal().0,
        400,
        "a revoked key is not rotated"
    );
    assert_eq!(
        ask(Method::POST, &format!("{KEYS}/none/rotate"), &Value::Null)
            .await
            .refusal()
            .0,
        404
    );
    assert_eq!(
        ask(Method::GET, &path, &Value::Null).await.header("allow"),
        "POST"
    );
}

#[tokio::test]
async fn what_does_not_fit_is_refused_by_its_field() {
    let (id, _) = account_and_key(json!({ "label": "fits" })).await;
    let of_account = |name: &str, value: Value| {
        let mut request = json!({ "label": "k", "scopes": ["*"], "account": id });
        request[name] = value;
        request
    };
    check_refused(KEYS, of_account("perMinute", json!(1)), "perMinute").await;
    check_refused(KEYS, of_account("perMonth", json!(1)), "perMonth").await;
    check_refused(KEYS, of_account("perSecond", json!(0)), "perSecond").await;
    check_refused(KEYS, of_account("account", json!("nobody")), "account").await;
    check_refused(
        KEYS,
        json!({ "label": "k", "scopes": ["*"], "perSecond": 1 }),
        "perSecond",
    )
    .await;
    for (operation, calls) in [
        ("web-data", 1),
        ("web data.scrape", 1),
        (".scrape", 1),
        ("web-data.scrape", 0),
    ] {
        let windows = json!({ "label": "k", "scopes": ["*"], "windows": { operation: calls } });
        check_refused(KEYS, windows, "windows").await;
    }
    check_refused(ACCOUNTS, json!({ "label": "" }), "label").await;
    check_refused(
        ACCOUNTS,
        json!({ "label": "a", "perSecond": 0 }),
        "perSecond",
    )
    .await;
    check_refused(
        ACCOUNTS,
        json!({ "label": "a", "concurrency": 0 }),
        "concurrency",
    )
    .await;
    let past = json!({ "plan": "p", "creditsPerMonth": 1, "expiresAt": "2001-01-01T00:00:00Z" });
    check_refused(
        ACCOUNTS,
        json!({ "label": "a", "entitlement": past }),
        "expiresAt",
    )
    .await;
    for malformed in [json!({}), json!({ "label": "a", "surprise": 1 })] {
        let answer = ask(Method::POST, ACCOUNTS, &malformed).await;
        assert_eq!(
            answer.refusal(),
            (400, "VALIDATION_ERROR".to_owned()),
            "{malformed}"
        );
    }
    for path in ["/nobody", "/nobody/surprise", "/nobody/entitlement/more"] {
        let answer = ask(Method::GET, &format!("{ACCOUNTS}{path}"), &Value::Null).await;
        assert_eq!(answer.refusal(), (404, "NOT_FOUND".to_owned()), "{path}");
    }
    assert_eq!(
        ask(Method::DELETE, ACCOUNTS, &Value::Null)
            .await
            .header("allow"),
        "GET, POST"
    );
}

async fn check_refused(path: &str, body: Value, field: &str) {
    let answer = ask(Method::POST, path, &body).await;
    assert_eq!(
        answer.refusal(),
        (400, "VALIDATION_ERROR".to_owned()),
        "{body}"
    );
    assert_eq!(answer.json()["data"]["field"], field, "{body}");
}

#[tokio::test]
async fn the_command_line_does_the_same_with_and_without_a_server() {
    let own = TempDir::new().expect("a temporary folder");
    for data in [own.path(), Service::shared().data.path()] {
        let run = |words: &[&str]| {
            command(data, words).unwrap_or_else(|line| panic!("{words:?}: {line}"))
        };
        let opened = run(&["account", "open", "--label", "by hand", "--per-second", "4"]);
        let id = text(&opened["id"]);
        assert_eq!(
            (&opened["perSecond"], &opened["entitlement"]),
            (&json!(4), &Value::Null)
        );
        let entitled = run(&["account", "entitle", id, "--plan", "paid", "--credits", "7"]);
        assert_eq!(
            entitled["entitlement"],
            json!({ "plan": "paid", "creditsPerMonth": 7, "expiresAt": null })
        );
        assert_eq!(
            run(&["account", "show", id])["entitlement"],
            entitled["entitlement"]
        );
        let listed = run(&["account", "list"]);
        assert!(
            listed["accounts"]
                .as_array()
                .expect("accounts")
                .contains(&entitled)
        );
        let key = run(&[
            "key",
            "issue",
            "--label",
            "k",
            "--all-scopes",
            "--account",
            id,
            "--per-second",
            "2",
        ]);
        assert_eq!(
            (&key["account"], &key["perSecond"]),
            (&json!(id), &json!(2))
        );
        let rotated = run(&["key", "rotate", text(&key["id"])]);
        assert_eq!(
            (&rotated["account"], &rotated["perSecond"]),
            (&json!(id), &json!(2))
        );
        assert_eq!(
            run(&["account", "withdraw", id])["entitlement"],
            Value::Null
        );
        let refused =
            command(data, &["account", "show", "nobody"]).expect_err("there is no such account");
        assert!(
            refused.contains("there is no account with the id nobody"),
            "{refused}"
        );
    }
}
