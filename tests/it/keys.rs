//! Keys as the operator handles them: over the operator's own listener, and by `switchbay key`, with and without a server.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};

use regex_lite::Regex;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::support::{Answer, Options, Service, binary, members};

const KEYS: &str = "/admin/v1/keys";
const BANKS: &str = "/api/v1/tools/bank-qr/banks";

/// A request to the operator's listener with this token.
async fn operator(method: Method, path: &str, token: Option<&str>, body: &str) -> Answer {
    let client = reqwest::Client::new();
    let mut request = client.request(method, format!("{}{path}", Service::shared().operator_url()));
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    if !body.is_empty() {
        request = request.header("content-type", "application/json").body(body.to_owned());
    }
    Service::send(request).await
}

/// A request with the operator's token.
async fn ask(method: Method, path: &str, body: &str) -> Answer {
    operator(method, path, Some(&Service::shared().operator_token()), body).await
}

/// What the directory answers to a key.
async fn call(service: &Service, key: &str) -> Answer {
    Service::send(service.bare(Method::GET, BANKS).bearer_auth(key)).await
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no string"))
}

#[tokio::test]
async fn a_key_is_shown_once_and_kept_as_a_digest() {
    let body = r#"{"label":"shown once","scopes":["bank-qr:banks"],"perMinute":7,"expiresAt":"2999-01-31T00:00:00Z"}"#;
    let answer = ask(Method::POST, KEYS, body).await;
    assert_eq!((answer.status, answer.header("cache-control")), (201, "private, no-store"));
    let issued = answer.json()["data"].clone();
    let about = ["id", "label", "display", "scopes", "account"];
    let limits = ["perMinute", "perMonth", "perSecond", "windows"];
    let times = ["createdAt", "expiresAt", "revokedAt", "key"];
    assert_eq!(members(&issued), [&about[..], &limits, &times].concat());
    let key = text(&issued["key"]);
    assert!(Regex::new("^sb_adm_[0-9A-Za-z]{38}$").unwrap().is_match(key), "{key}");
    assert_eq!(issued["display"], format!("sb_adm_…{}", &key[key.len() - 4..]));
    assert_eq!((&issued["label"], &issued["scopes"]), (&json!("shown once"), &json!(["bank-qr:banks"])));
    assert_eq!((&issued["perMinute"], &issued["revokedAt"]), (&json!(7), &Value::Null));
    assert_eq!(issued["expiresAt"], "2999-01-31T00:00:00Z");
    let created = OffsetDateTime::parse(text(&issued["createdAt"]), &Rfc3339).expect("ISO 8601");
    assert!((OffsetDateTime::now_utc() - created).whole_seconds() < 60, "{created}");
    assert_eq!(call(Service::shared(), key).await.header("x-apikey-ratelimit-limit"), "7");

    let mut expected = issued.clone();
    expected.as_object_mut().expect("an object").shift_remove("key");
    let listed = ask(Method::GET, KEYS, "").await;
    let keys = listed.json()["data"]["keys"].as_array().expect("keys").clone();
    assert_eq!(keys.iter().find(|one| one["id"] == issued["id"]), Some(&expected));
    assert!(!String::from_utf8_lossy(&listed.bytes).contains(key));
    for entry in std::fs::read_dir(Service::shared().data.path()).expect("the data folder") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            let kept = std::fs::read(&path).expect("it is readable");
            assert!(!kept.windows(key.len()).any(|part| part == key.as_bytes()), "{} has the key", path.display());
        }
    }
    let lines = Service::shared().log_until(|lines| !lines.is_empty());
    assert!(!lines.iter().any(|line| line.to_string().contains(key)), "a line has the key");
}

#[tokio::test]
async fn a_revoked_key_is_403_on_its_next_call_and_for_ever() {
    let service = Service::shared();
    let issued = ask(Method::POST, KEYS, r#"{"label":"revoked","scopes":["*"]}"#).await.json()["data"].clone();
    let key = text(&issued["key"]);
    assert_eq!(call(service, key).await.status, 200);
    let path = format!("{KEYS}/{}", text(&issued["id"]));
    let first = ask(Method::DELETE, &path, "").await;
    assert_eq!((first.status, &first.json()["data"]["id"]), (200, &issued["id"]));
    assert!(first.json()["data"]["revokedAt"].is_string());

    let refused = call(service, key).await;
    assert_eq!(refused.refusal(), (403, "FORBIDDEN".to_owned()));
    assert!(refused.header("www-authenticate").contains(r#"scope="bank-qr:banks""#));
    assert_eq!(ask(Method::DELETE, &path, "").await.json(), first.json(), "revoking again changes nothing");
    assert_eq!(call(service, service.key()).await.status, 200, "no other key is revoked");
    let unknown = format!("{KEYS}/01890000-0000-7000-8000-000000000000");
    assert_eq!(ask(Method::DELETE, &unknown, "").await.refusal(), (404, "NOT_FOUND".to_owned()));
}

#[tokio::test]
async fn a_key_is_403_once_it_has_expired() {
    let service = Service::shared();
    let expires = (OffsetDateTime::now_utc() + Duration::from_secs(2)).replace_nanosecond(0).expect("a second");
    let expires_at = expires.format(&Rfc3339).expect("a time");
    let issue = ["issue", "--json", "--label", "short-lived", "--all-scopes", "--expires", &expires_at];
    let issued = parsed(service.data.path(), &issue);
    let key = text(&issued["key"]);
    let deadline = Instant::now() + Duration::from_secs(30);
    let refused = loop {
        let (before, answer, after) = (OffsetDateTime::now_utc(), call(service, key).await, OffsetDateTime::now_utc());
        assert!(answer.status == 403 || before < expires, "{} after the expiry", answer.status);
        assert!(answer.status == 200 || after >= expires, "{} before the expiry", answer.status);
        if answer.status == 403 {
            break answer;
        }
        assert!(Instant::now() < deadline, "the key does not expire");
    };
    assert_eq!(refused.refusal(), (403, "FORBIDDEN".to_owned()));
    assert!(refused.header("www-authenticate").contains(r#"scope="bank-qr:banks""#));
    let table = printed(service.data.path(), &["list"]);
    let row = table.lines().find(|line| line.contains("short-lived")).unwrap_or_else(|| panic!("{table}"));
    assert_eq!(row.split_whitespace().nth(3), Some("expired"), "{row}");
}

#[tokio::test]
async fn a_key_request_is_checked() {
    check_request(r#"{"label":"","scopes":["*"]}"#, json!("label")).await;
    check_request(&format!(r#"{{"label":"{}","scopes":["*"]}}"#, "l".repeat(101)), json!("label")).await;
    check_request(r#"{"label":"a\nb","scopes":["*"]}"#, json!("label")).await;
    check_request(r#"{"label":"l","scopes":[]}"#, json!("scopes")).await;
    check_request(r#"{"label":"l","scopes":["*","domain:dns"]}"#, json!("scopes")).await;
    check_request(r#"{"label":"l","scopes":["everything"]}"#, json!("scopes")).await;
    check_request(r#"{"label":"l","scopes":["a b:c"]}"#, json!("scopes")).await;
    check_request(r#"{"label":"l","scopes":["*"],"perMinute":0}"#, json!("perMinute")).await;
    check_request(r#"{"label":"l","scopes":["*"],"expiresAt":"2020-01-01T00:00:00Z"}"#, json!("expiresAt")).await;
    check_request(r#"{"label":"l","scopes":["*"],"expiresAt":"tomorrow"}"#, json!("expiresAt")).await;
    for malformed in ["", "{", "[]", r#"{"label":"l"}"#, r#"{"label":"l","scopes":["*"],"surprise":1}"#] {
        check_request(malformed, Value::Null).await;
    }
    for malformed in [r#"{"label":5,"scopes":["*"]}"#, r#"{"label":"l","scopes":["*"],"perMinute":-1}"#] {
        check_request(malformed, Value::Null).await;
    }
}

async fn check_request(body: &str, field: Value) {
    let answer = ask(Method::POST, KEYS, body).await;
    assert_eq!(answer.refusal(), (400, "VALIDATION_ERROR".to_owned()), "{body}");
    assert_eq!(answer.json()["data"]["field"], field, "{body}");
}

#[tokio::test]
async fn the_operators_token_opens_the_operators_listener_alone() {
    let service = Service::shared();
    let token = service.operator_token();
    for wrong in [None, Some("wrong"), Some(&token[..token.len() - 1]), Some(service.key())] {
        for (method, path) in [(Method::GET, KEYS), (Method::POST, KEYS), (Method::DELETE, "/x"), (Method::PUT, KEYS)] {
            let answer = operator(method, path, wrong, "").await;
            assert_eq!(answer.refusal(), (401, "UNAUTHORIZED".to_owned()), "{path}");
            assert_eq!(answer.header("www-authenticate"), "Bearer");
        }
    }
    assert_eq!(call(service, &token).await.refusal(), (401, "UNAUTHORIZED".to_owned()));
    for path in [KEYS, "/admin/v1/keys/x", "/admin", "/admin/v1"] {
        let request = service.bare(Method::GET, path).bearer_auth(&token);
        assert_eq!(Service::send(request).await.refusal(), (404, "NOT_FOUND".to_owned()), "{path}");
    }
    for path in [BANKS, "/openapi.json", "/mcp", "/healthz", "/"] {
        assert_eq!(ask(Method::GET, path, "").await.refusal(), (404, "NOT_FOUND".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn the_operators_routes_keep_to_their_methods_types_and_sizes() {
    for (method, path, allow) in [(Method::PUT, KEYS, "GET, POST"), (Method::GET, "/admin/v1/keys/x", "DELETE")] {
        let answer = ask(method, path, "").await;
        assert_eq!(answer.refusal(), (405, "METHOD_NOT_ALLOWED".to_owned()), "{path}");
        assert_eq!(answer.header("allow"), allow, "{path}");
    }
    let large = ask(Method::POST, KEYS, &" ".repeat(16 * 1024 + 1)).await;
    assert_eq!(large.refusal(), (413, "PAYLOAD_TOO_LARGE".to_owned()));
    assert_eq!(large.json()["data"]["max"], 16384);
    let url = format!("{}{KEYS}", Service::shared().operator_url());
    let untyped = reqwest::Client::new().post(url).bearer_auth(Service::shared().operator_token()).body("{}");
    assert_eq!(Service::send(untyped).await.refusal(), (415, "UNSUPPORTED_MEDIA_TYPE".to_owned()));
}

#[tokio::test]
async fn only_the_operator_may_read_the_data_folder() {
    let data = Service::shared().data.path();
    for file in ["operator-token", "operator-address", "switchbay.redb"] {
        let mode = std::fs::metadata(data.join(file)).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    assert!(Regex::new("^sbop_[A-Za-z0-9_-]{32}$").unwrap().is_match(&Service::shared().operator_token()));
}

/// `switchbay key` on a data folder.
fn key(data: &Path, arguments: &[&str]) -> Output {
    Command::new(binary()).arg("key").args(arguments).arg("--data").arg(data).output().expect("the binary runs")
}

/// What a command printed that must succeed.
fn printed(data: &Path, arguments: &[&str]) -> String {
    let done = key(data, arguments);
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    assert!(done.stderr.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("UTF-8")
}

fn parsed(data: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(data, arguments)).expect("JSON")
}

/// Issues, lists and revokes on a data folder; gives back the two keys, the second of them revoked.
fn go_round(data: &Path) -> [String; 2] {
    let first = parsed(data, &["issue", "--json", "--label", "first", "--scope", "bank-qr:banks", "--per-minute", "9"]);
    assert_eq!((&first["scopes"], &first["perMinute"]), (&json!(["bank-qr:banks"]), &json!(9)));
    let human = printed(data, &["issue", "--label", "second", "--all-scopes", "--expires", "2999-01-31T00:00:00Z"]);
    let form = "^(sb_adm_[0-9A-Za-z]{38})\nid ([0-9a-f-]{36})\\. This is the only time that the key is shown\\.\n$";
    let found = Regex::new(form).expect("a pattern");
    let found = found.captures(&human).unwrap_or_else(|| panic!("{human}"));
    let (second, id) = (found[1].to_owned(), &found[2]);

    let listed = parsed(data, &["list", "--json"]);
    let mine = |label: &str| {
        let keys = listed["keys"].as_array().expect("keys");
        keys.iter().find(|key| key["label"] == label).unwrap_or_else(|| panic!("no {label} in {listed}")).clone()
    };
    assert_eq!((&mine("first")["id"], &mine("second")["id"]), (&first["id"], &json!(id)));
    assert_eq!(mine("second")["expiresAt"], "2999-01-31T00:00:00Z");
    assert!(!listed.to_string().contains(&second));

    assert_eq!(printed(data, &["revoke", id]), format!("revoked {id} (second)\n"));
    assert!(parsed(data, &["revoke", "--json", id])["revokedAt"].is_string());
    let table = printed(data, &["list"]);
    let row = |label: &str| table.lines().find(|line| line.contains(label)).unwrap_or_else(|| panic!("{table}"));
    assert!(table.starts_with("ID "), "{table}");
    let words = |label: &str| row(label).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words("first ")[2..], ["9", "active", "first", "bank-qr:banks"]);
    assert_eq!(words("second")[2..], ["-", "revoked", "second", "*"]);
    [text(&first["key"]).to_owned(), second]
}

#[tokio::test]
async fn the_command_line_handles_keys_while_a_server_runs() {
    let service = Service::start(Options::default()).await;
    let [good, revoked] = go_round(service.data.path());
    assert_eq!((call(&service, &good).await.status, call(&service, &revoked).await.status), (200, 403));
}

#[tokio::test]
async fn the_command_line_handles_keys_while_no_server_runs() {
    let data = TempDir::new().expect("a temporary folder");
    let [good, revoked] = go_round(data.path());
    let service = Service::start(Options { data: Some(Arc::new(data)), ..Options::default() }).await;
    assert_eq!((call(&service, &good).await.status, call(&service, &revoked).await.status), (200, 403));
    assert_eq!(call(&service, &good).await.header("x-apikey-ratelimit-limit"), "9");
}

#[tokio::test]
async fn the_command_line_refuses_as_the_operators_api_does() {
    let offline = TempDir::new().expect("a temporary folder");
    for data in [Service::shared().data.path(), offline.path()] {
        check_failure(data, &["issue", "--label", "", "--all-scopes"], 1, "`label` must have 1 to 100").await;
        check_failure(data, &["issue", "--label", "l", "--scope", "nothing"], 1, "`scopes` has `nothing`").await;
        let zero = ["issue", "--label", "l", "--all-scopes", "--per-minute", "0"];
        check_failure(data, &zero, 1, "`perMinute` must be at least 1").await;
        let past = ["issue", "--label", "l", "--all-scopes", "--expires", "2020-01-01T00:00:00Z"];
        check_failure(data, &past, 1, "`expiresAt` is 2020-01-01T00:00:00Z, which is past").await;
        check_failure(data, &["revoke", "nobody"], 4, "there is no key with the id nobody").await;
        check_failure(data, &["revoke", "../k?e y#é"], 4, "there is no key with the id ../k?e y#é").await;
        check_failure(data, &["issue", "--label", "l"], 2, "--scope <SCOPE>").await;
        check_failure(data, &["issue", "--label", "l", "--all-scopes", "--scope", "a:b"], 2, "cannot be used with")
            .await;
    }
}

/// A command that fails with this exit code, says why on standard error, in one line unless it is 2, and prints nothing.
async fn check_failure(data: &Path, arguments: &[&str], code: i32, expected: &str) {
    let done = key(data, arguments);
    let told = String::from_utf8(done.stderr).expect("UTF-8");
    assert_eq!((done.status.code(), done.stdout.len()), (Some(code), 0), "{arguments:?}: {told}");
    assert!(told.contains(expected), "{arguments:?}: {told}");
    if code != 2 {
        assert!(told.starts_with("switchbay: ") && told.lines().count() == 1, "{arguments:?}: {told}");
    }
}
