//! Keys as the operator handles them: over the operator's own listener, and by `switchbay key`, with and without a server.

mod command_line;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use regex_lite::Regex;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::support::{Answer, Service, binary, members};

const KEYS: &str = "/admin/v1/keys";
const BANKS: &str = "/api/v1/tools/bank-qr/banks";

/// A request to the operator's listener with this token.
async fn operator(method: Method, path: &str, token: Option<&str>, body: &str) -> Answer {
    let client = reqwest::Client::new();
    let mut request = client.request(
        method,
        format!("{}{path}", Service::shared().operator_url()),
    );
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    if !body.is_empty() {
        request = request
            .header("content-type", "application/json")
            .body(body.to_owned());
    }
    Service::send(request).await
}

/// A request with the operator's token.
async fn ask(method: Method, path: &str, body: &str) -> Answer {
    operator(
        method,
        path,
        Some(&Service::shared().operator_token()),
        body,
    )
    .await
}

/// What the directory answers to a key.
async fn call(service: &Service, key: &str) -> Answer {
    Service::send(service.bare(Method::GET, BANKS).bearer_auth(key)).await
}

fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is no string"))
}

/// No file of the data folder and no line of the log has the key.
fn check_nobody_keeps(key: &str) {
    for entry in std::fs::read_dir(Service::shared().data.path()).expect("the data folder") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            let kept = std::fs::read(&path).expect("it is readable");
            assert!(
                !kept.windows(key.len()).any(|part| part == key.as_bytes()),
                "{} has the key",
                path.display()
            );
        }
    }
    let lines = Service::shared().log_until(|lines| !lines.is_empty());
    assert!(
        !lines.iter().any(|line| line.to_string().contains(key)),
        "a line has the key"
    );
}

#[tokio::test]
async fn a_key_is_shown_once_and_kept_as_a_digest() {
    let body = r#"{"label":"shown once","scopes":["bank-qr:banks"],"perMinute":7,"expiresAt":"2999-01-31T00:00:00Z"}"#;
    let answer = ask(Method::POST, KEYS, body).await;
    assert_eq!(
        (answer.status, answer.header("cache-control")),
        (201, "private, no-store")
    );
    let issued = answer.json()["data"].clone();
    let about = ["id", "label", "display", "scopes", "account"];
    let limits = ["perMinute", "perMonth", "perSecond", "windows"];
    let times = ["createdAt", "expiresAt", "revokedAt", "key"];
    assert_eq!(members(&issued), [&about[..], &limits, &times].concat());
    let key = text(&issued["key"]);
    assert!(
        Regex::new("^sb_adm_[0-9A-Za-z]{38}$")
            .unwrap()
            .is_match(key),
        "{key}"
    );
    assert_eq!(
        issued["display"],
        format!("sb_adm_…{}", &key[key.len() - 4..])
    );
    assert_eq!(
        (&issued["label"], &issued["scopes"]),
        (&json!("shown once"), &json!(["bank-qr:banks"]))
    );
    assert_eq!(
        (&issued["perMinute"], &issued["revokedAt"]),
        (&json!(7), &Value::Null)
    );
    assert_eq!(issued["expiresAt"], "2999-01-31T00:00:00Z");
    let created = OffsetDateTime::parse(text(&issued["createdAt"]), &Rfc3339).expect("ISO 8601");
    assert!(
        (OffsetDateTime::now_utc() - created).whole_seconds() < 60,
        "{created}"
    );
    assert_eq!(
        call(Service::shared(), key)
            .await
            .header("x-apikey-ratelimit-limit"),
        "7"
    );

    let mut expected = issued.clone();
    expected
        .as_object_mut()
        .expect("an object")
        .shift_remove("key");
    let listed = ask(Method::GET, KEYS, "").await;
    let keys = listed.json()["data"]["keys"]
        .as_array()
        .expect("keys")
        .clone();
    assert_eq!(
        keys.iter().find(|one| one["id"] == issued["id"]),
        Some(&expected)
    );
    assert!(!String::from_utf8_lossy(&listed.bytes).contains(key));
    check_nobody_keeps(key);
}

#[tokio::test]
async fn a_revoked_key_is_403_on_its_next_call_and_for_ever() {
    let service = Service::shared();
    let issued = ask(Method::POST, KEYS, r#"{"label":"revoked","scopes":["*"]}"#)
        .await
        .json()["data"]
        .clone();
    let key = text(&issued["key"]);
    assert_eq!(call(service, key).await.status, 200);
    let path = format!("{KEYS}/{}", text(&issued["id"]));
    let first = ask(Method::DELETE, &path, "").await;
    assert_eq!(
        (first.status, &first.json()["data"]["id"]),
        (200, &issued["id"])
    );
    assert!(first.json()["data"]["revokedAt"].is_string());

    let refused = call(service, key).await;
    assert_eq!(refused.refusal(), (403, "FORBIDDEN".to_owned()));
    assert!(
        refused
            .header("www-authenticate")
            .contains(r#"scope="bank-qr:banks""#)
    );
    assert_eq!(
        ask(Method::DELETE, &path, "").await.json(),
        first.json(),
        "revoking again changes nothing"
    );
    assert_eq!(
        call(service, service.key()).await.status,
        200,
        "no other key is revoked"
    );
    let unknown = format!("{KEYS}/01890000-0000-7000-8000-000000000000");
    assert_eq!(
        ask(Method::DELETE, &unknown, "").await.refusal(),
        (404, "NOT_FOUND".to_owned())
    );
}

#[tokio::test]
async fn a_key_is_403_once_it_has_expired() {
    let service = Service::shared();
    let expires = (OffsetDateTime::now_utc() + Duration::from_secs(2))
        .replace_nanosecond(0)
        .expect("a second");
    let expires_at = expires.format(&Rfc3339).expect("a time");
    let issue = [
        "issue",
        "--json",
        "--label",
        "short-lived",
        "--all-scopes",
        "--expires",
        &expires_at,
    ];
    let issued = parsed(service.data.path(), &issue);
    let key = text(&issued["key"]);
    let deadline = Instant::now() + Duration::from_secs(30);
    let refused = loop {
        let (before, answer, after) = (
            OffsetDateTime::now_utc(),
            call(service, key).await,
            OffsetDateTime::now_utc(),
        );
        assert!(
            answer.status == 403 || before < expires,
            "{} after the expiry",
            answer.status
        );
        assert!(
            answer.status == 200 || after >= expires,
            "{} before the expiry",
            answer.status
        );
        if answer.status == 403 {
            break answer;
        }
        assert!(Instant::now() < deadline, "the key does not expire");
    };
    assert_eq!(refused.refusal(), (403, "FORBIDDEN".to_owned()));
    assert!(
        refused
            .header("www-authenticate")
            .contains(r#"scope="bank-qr:banks""#)
    );
    let table = printed(service.data.path(), &["list"]);
    let row = table
        .lines()
        .find(|line| line.contains("short-lived"))
        .unwrap_or_else(|| panic!("{table}"));
    assert_eq!(row.split_whitespace().nth(3), Some("expired"), "{row}");
}

#[tokio::test]
async fn a_key_request_is_checked() {
    check_request(r#"{"label":"","scopes":["*"]}"#, json!("label")).await;
    check_request(
        &format!(r#"{{"label":"{}","scopes":["*"]}}"#, "l".repeat(101)),
        json!("label"),
    )
    .await;
    check_request(r#"{"label":"a\nb","scopes":["*"]}"#, json!("label")).await;
    check_request(r#"{"label":"l","scopes":[]}"#, json!("scopes")).await;
    check_request(
        r#"{"label":"l","scopes":["*","domain:dns"]}"#,
        json!("scopes"),
    )
    .await;
    check_request(r#"{"label":"l","scopes":["everything"]}"#, json!("scopes")).await;
    check_request(r#"{"label":"l","scopes":["a b:c"]}"#, json!("scopes")).await;
    check_request(
        r#"{"label":"l","scopes":["*"],"perMinute":0}"#,
        json!("perMinute"),
    )
    .await;
    check_request(
        r#"{"label":"l","scopes":["*"],"expiresAt":"2020-01-01T00:00:00Z"}"#,
        json!("expiresAt"),
    )
    .await;
    check_request(
        r#"{"label":"l","scopes":["*"],"expiresAt":"tomorrow"}"#,
        json!("expiresAt"),
    )
    .await;
    for malformed in [
        "",
        "{",
        "[]",
        r#"{"label":"l"}"#,
        r#"{"label":"l","scopes":["*"],"surprise":1}"#,
    ] {
        check_request(malformed, Value::Null).await;
    }
    for malformed in [
        r#"{"label":5,"scopes":["*"]}"#,
        r#"{"label":"l","scopes":["*"],"perMinute":-1}"#,
    ] {
        check_request(malformed, Value::Null).await;
    }
}

async fn check_request(body: &str, field: Value) {
    let answer = ask(Method::POST, KEYS, body).await;
    assert_eq!(
        answer.refusal(),
        (400, "VALIDATION_ERROR".to_owned()),
        "{body}"
    );
    assert_eq!(answer.json()["data"]["field"], field, "{body}");
}

#[tokio::test]
async fn the_operators_token_opens_the_operators_listener_alone() {
    let service = Service::shared();
    let token = service.operator_token();
    for wrong in [
        None,
        Some("wrong"),
        Some(&token[..token.len() - 1]),
        Some(service.key()),
    ] {
        for (method, path) in [
            (Method::GET, KEYS),
            (Method::POST, KEYS),
            (Method::DELETE, "/x"),
            (Method::PUT, KEYS),
        ] {
            let answer = operator(method, path, wrong, "").await;
            assert_eq!(answer.refusal(), (401, "UNAUTHORIZED".to_owned()), "{path}");
            assert_eq!(answer.header("www-authenticate"), "Bearer");
        }
    }
    assert_eq!(
        call(service, &token).await.refusal(),
        (401, "UNAUTHORIZED".to_owned())
    );
    for path in [KEYS, "/admin/v1/keys/x", "/admin", "/admin/v1"] {
        let request = service.bare(Method::GET, path).bearer_auth(&token);
        assert_eq!(
            Service::send(request).await.refusal(),
            (404, "NOT_FOUND".to_owned()),
            "{path}"
        );
    }
    for path in [BANKS, "/openapi.json", "/mcp", "/healthz", "/"] {
        assert_eq!(
            ask(Method::GET, path, "").await.refusal(),
            (404, "NOT_FOUND".to_owned()),
            "{path}"
        );
    }
}

#[tokio::test]
async fn the_operators_routes_keep_to_their_methods_types_and_sizes() {
    for (method, path, allow) in [
        (Method::PUT, KEYS, "GET, POST"),
        (Method::GET, "/admin/v1/keys/x", "DELETE"),
    ] {
        let answer = ask(method, path, "").await;
        assert_eq!(
            answer.refusal(),
            (405, "METHOD_NOT_ALLOWED".to_owned()),
            "{path}"
        );
        assert_eq!(answer.header("allow"), allow, "{path}");
    }
    let large = ask(Method::POST, KEYS, &" ".repeat(16 * 1024 + 1)).await;
    assert_eq!(large.refusal(), (413, "PAYLOAD_TOO_LARGE".to_owned()));
    assert_eq!(large.json()["data"]["max"], 16384);
    let url = format!("{}{KEYS}", Service::shared().operator_url());
    let untyped = reqwest::Client::new()
        .post(url)
        .bearer_auth(Service::shared().operator_token())
        .body("{}");
    assert_eq!(
        Service::send(untyped).await.refusal(),
        (415, "UNSUPPORTED_MEDIA_TYPE".to_owned())
    );
}

#[tokio::test]
async fn only_the_operator_may_read_the_data_folder() {
    let data = Service::shared().data.path();
    for file in ["operator-token", "operator-address", "switchbay.redb"] {
        let mode = std::fs::metadata(data.join(file))
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    assert!(
        Regex::new("^sbop_[A-Za-z0-9_-]{32}$")
            .unwrap()
            .is_match(&Service::shared().operator_token())
    );
}

#[test]
fn a_wrong_data_folder_is_told_and_stays_as_it_was() {
    let folder = TempDir::new().expect("a folder");
    let wrong = folder.path().join("wrong");
    for arguments in [&["list"][..], &["revoke", "ID"], &["rotate", "ID"]] {
        let done = key(&wrong, arguments);
        assert_eq!(done.status.code(), Some(4), "{arguments:?}: {done:?}");
        assert_eq!(
            String::from_utf8_lossy(&done.stderr),
            format!(
                "switchbay: there is no store in {}; name the server's data folder with --data\n",
                wrong.display()
            )
        );
        assert!(!wrong.exists(), "{arguments:?}");
    }
    // The first key of a server that was never started.
    printed(&wrong, &["issue", "--label", "first", "--all-scopes"]);
    assert_eq!(
        parsed(&wrong, &["list", "--json"])["keys"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
}

/// `switchbay key` on a data folder.
fn key(data: &Path, arguments: &[&str]) -> Output {
    Command::new(binary())
        .arg("key")
        .args(arguments)
        .arg("--data")
        .arg(data)
        .output()
        .expect("the binary runs")
}

/// What a command printed that must succeed.
fn printed(data: &Path, arguments: &[&str]) -> String {
    let done = key(data, arguments);
    assert!(
        done.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    assert!(
        done.stderr.is_empty(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).expect("UTF-8")
}

fn parsed(data: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(data, arguments)).expect("JSON")
}
