//! Requests of the operator that cannot be met: each is told why.

use reqwest::Method;
use serde_json::{Value, json};

use super::super::House;
use crate::support::Service;

const MISSING: (u16, &str) = (404, "NOT_FOUND");
const CONFLICT: (u16, &str) = (409, "CONFLICT");
const INVALID: (u16, &str) = (400, "VALIDATION_ERROR");

/// Path, body, and the refusal with words of its message.
type Unmet = (
    &'static str,
    &'static str,
    (u16, &'static str),
    &'static str,
);

/// Of what is read.
const UNREAD: [Unmet; 3] = [
    (
        "/nobody",
        "null",
        MISSING,
        "there is no plugin `nobody` in plugin-manifest.toml",
    ),
    (
        "/probe/revisions/1/difference?against=x",
        "null",
        INVALID,
        "must be `against`",
    ),
    (
        "/probe/revisions/1/difference?against=7",
        "null",
        MISSING,
        "plugin `probe` has no revision 7",
    ),
];

/// Of what is done.
const UNDONE: [Unmet; 18] = [
    (
        "/nobody/rollback",
        "{}",
        MISSING,
        "there is no plugin `nobody`",
    ),
    (
        "/probe/revisions/9/activate",
        "{}",
        MISSING,
        "plugin `probe` has no revision 9",
    ),
    (
        "/probe/revisions/first/activate",
        "{}",
        INVALID,
        "`revision` must be a number",
    ),
    (
        "/probe/revisions/1/activate",
        "{}",
        CONFLICT,
        "revision 1 is active; it is already serving",
    ),
    (
        "/probe/rollback",
        "{}",
        CONFLICT,
        "has no revision to roll back to",
    ),
    (
        "/probe/rollback",
        r#"{"to":1}"#,
        CONFLICT,
        "only a revision that served before can be rolled back to",
    ),
    (
        "/probe/enable",
        "{}",
        CONFLICT,
        "plugin `probe` is already enabled",
    ),
    ("/probe/revoke", "{}", INVALID, "`atom` is missing"),
    (
        "/probe/revoke",
        r#"{"atom":"everything"}"#,
        INVALID,
        "`everything` is not a grant",
    ),
    (
        "/probe/revoke",
        r#"{"atom":"config"}"#,
        CONFLICT,
        "there is no approval of `config` to take back",
    ),
    (
        "/probe/disable",
        r#"{"colour":1}"#,
        INVALID,
        "unknown field `colour`",
    ),
    // What another route takes is not passed over.
    (
        "/probe/disable",
        r#"{"to":1}"#,
        INVALID,
        "`to` is not a member of this route's body",
    ),
    (
        "/probe/rollback",
        r#"{"atom":"config"}"#,
        INVALID,
        "`atom` is not a member of this route's body",
    ),
    (
        "/probe/revoke",
        r#"{"grants":[]}"#,
        INVALID,
        "`grants` is not a member of this route's body",
    ),
    (
        "/probe/revisions",
        r#"{"seconds":9}"#,
        INVALID,
        "`seconds` is not a member",
    ),
    (
        "/probe/disable",
        r#"{"by":"a\nb"}"#,
        INVALID,
        "at most 100 printable",
    ),
    (
        "/probe/revisions",
        r#"{"path":"here.wasm"}"#,
        INVALID,
        "must be absolute",
    ),
    (
        "/probe/revisions",
        r#"{"path":"/nowhere.wasm"}"#,
        INVALID,
        "/nowhere.wasm is missing",
    ),
];

/// The service cannot meet this request, and says why.
async fn check_unmet(
    service: &Service,
    method: &Method,
    path: &str,
    body: &Value,
    expected: (u16, &str),
    words: &str,
) {
    let answer = service
        .admin(
            method.clone(),
            &format!("/admin/v1/plugins{path}"),
            Some(body),
        )
        .await;
    assert_eq!(
        answer.refusal(),
        (expected.0, expected.1.to_owned()),
        "{path} {body}"
    );
    let message = answer.json()["error"]["message"]
        .as_str()
        .expect("text")
        .to_owned();
    assert!(message.contains(words), "{path} {body}: {message}");
}

#[tokio::test]
async fn a_request_that_cannot_be_met_is_told_why() {
    let house = House::new("");
    let service = house.serve().await;
    for (method, unmet) in [(Method::GET, &UNREAD[..]), (Method::POST, &UNDONE)] {
        for (path, body, expected, words) in unmet {
            let body = serde_json::from_str(body).expect("JSON");
            check_unmet(&service, &method, path, &body, *expected, words).await;
        }
    }
    let long = json!({ "why": "x".repeat(501) });
    let words = "at most 500 printable";
    check_unmet(
        &service,
        &Method::POST,
        "/probe/disable",
        &long,
        INVALID,
        words,
    )
    .await;
    assert_eq!(
        service
            .admin(Method::PUT, "/admin/v1/plugins/probe", None)
            .await
            .header("allow"),
        "GET"
    );
    assert_eq!(
        service.told("/admin/v1/plugins/probe").await["state"],
        "active",
        "nothing of it changed anything"
    );
}
