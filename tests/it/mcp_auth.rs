//! Credentials on `/mcp`: only calls need one, and a refused one is an HTTP status with a challenge.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use reqwest::{Client, Method};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::support::{Answer, MODERN, Post, Service, in_one_minute, outcome};

const VERSIONS: [&str; 4] = ["2025-03-26", "2025-06-18", "2025-11-25", MODERN];
const BANKS: &str = "list_bank_qr_banks";

fn call_banks() -> Post {
    Post::call(BANKS, &json!({}))
}

/// The parameters of the one challenge, each once.
fn challenge(answer: &Answer) -> BTreeMap<String, String> {
    let all: Vec<_> = answer.headers.get_all("www-authenticate").iter().collect();
    assert_eq!(all.len(), 1, "{answer:?}");
    let parameters = answer
        .header("www-authenticate")
        .strip_prefix("Bearer ")
        .expect("the scheme is Bearer");
    let mut found = BTreeMap::new();
    for parameter in parameters
        .split("\", ")
        .map(|parameter| parameter.trim_end_matches('"'))
    {
        let (name, value) = parameter
            .split_once("=\"")
            .unwrap_or_else(|| panic!("`{parameter}` is no parameter"));
        assert!(
            found.insert(name.to_owned(), value.to_owned()).is_none(),
            "{name} stands twice"
        );
    }
    found
}

/// Sends a call and checks status, challenge and body. No other parameter stands in the challenge: without an identity
/// provider there is no metadata to point at.
async fn check(post: &Post, status: u16, error: Option<&str>, scope: &str) {
    let answer = post.send(Service::shared()).await;
    assert_eq!(
        outcome(&answer),
        format!("{status} {status} #7"),
        "{post:?}"
    );
    let mut challenge = challenge(&answer);
    assert_eq!(
        challenge.remove("scope").as_deref(),
        Some(scope),
        "{post:?}"
    );
    assert_eq!(challenge.remove("error").as_deref(), error, "{post:?}");
    let described = challenge
        .remove("error_description")
        .is_some_and(|text| !text.is_empty());
    assert_eq!(
        (described, challenge),
        (error.is_some(), BTreeMap::new()),
        "{post:?}"
    );

    let envelope = &answer.json()["error"]["data"];
    let code = if status == 401 {
        "UNAUTHORIZED"
    } else {
        "FORBIDDEN"
    };
    assert_eq!(
        (&envelope["success"], &envelope["error"]["code"]),
        (&json!(false), &json!(code))
    );
    assert_eq!(
        envelope["error"]["message"],
        answer.json()["error"]["message"]
    );
    assert_eq!(
        envelope["data"],
        json!({ "requestId": answer.header("x-request-id") })
    );
}

#[tokio::test]
async fn a_call_without_a_credential_is_told_the_scope_alone() {
    for version in VERSIONS {
        check(
            &Post::of(version, "tools/call", json!({ "name": BANKS })),
            401,
            None,
            "bank-qr:banks",
        )
        .await;
    }
    check(
        &Post::call("generate_bank_qr", &json!({})),
        401,
        None,
        "bank-qr:generate",
    )
    .await;
}

#[tokio::test]
async fn an_unknown_credential_is_an_invalid_token() {
    let key = Service::shared().key();
    let mistyped = format!(
        "{}{}",
        &key[..key.len() - 1],
        if key.ends_with('0') { "1" } else { "0" }
    );
    let cases = [
        ("authorization", "Bearer nonsense".to_owned()),
        ("authorization", format!("Bearer {mistyped}")),
        (
            "authorization",
            "Bearer eyJhbGciOiJub25lIn0.e30.".to_owned(),
        ),
        ("authorization", "Bearer ".to_owned()),
        ("authorization", key.to_owned()),
        ("authorization", "Basic dXNlcjpwYXNz".to_owned()),
        ("x-service-api-key", "nonsense".to_owned()),
        ("x-service-api-key", String::new()),
    ];
    for (name, value) in cases {
        check(
            &call_banks().header(name, &value),
            401,
            Some("invalid_token"),
            "bank-qr:banks",
        )
        .await;
    }
    let two = call_banks()
        .bearer(key)
        .header("x-service-api-key", "nonsense");
    check(&two, 401, Some("invalid_token"), "bank-qr:banks").await;
}

#[tokio::test]
async fn both_header_forms_of_a_key_are_accepted() {
    let key = Service::shared().key();
    for version in VERSIONS {
        let post = Post::of(version, "tools/call", json!({ "name": BANKS }));
        post.clone().bearer(key).check("200 result #7").await;
        post.clone()
            .header("authorization", &format!("bearer {key}"))
            .check("200 result #7")
            .await;
        post.clone()
            .header("x-service-api-key", key)
            .check("200 result #7")
            .await;
        post.bearer(key)
            .header("x-service-api-key", key)
            .check("200 result #7")
            .await;
    }
}

#[tokio::test]
async fn a_key_in_the_url_or_in_the_arguments_is_no_credential() {
    let key = Service::shared().key();
    for name in ["access_token", "api_key", "x-service-api-key"] {
        check(
            &call_banks().to(&format!("/mcp?{name}={key}")),
            401,
            None,
            "bank-qr:banks",
        )
        .await;
    }
    let post = Post::call(BANKS, &json!({ "x-service-api-key": key }));
    check(&post, 401, None, "bank-qr:banks").await;
}

#[tokio::test]
async fn a_key_without_the_scope_is_refused_before_its_arguments_are_read() {
    let other = Service::shared().issue(&["--scope", "bank-qr:banks"]);
    for version in VERSIONS {
        let params = json!({ "name": "generate_bank_qr", "arguments": { "surprise": 1 } });
        let post = Post::of(version, "tools/call", params).bearer(&other);
        check(&post, 403, Some("insufficient_scope"), "bank-qr:generate").await;
    }
    call_banks().bearer(&other).check("200 result #7").await;
}

async fn operate(method: Method, path: &str, body: Option<Value>) -> Value {
    let service = Service::shared();
    let url = format!("{}/admin/v1/keys{path}", service.operator_url());
    let mut request = Client::new()
        .request(method, url)
        .bearer_auth(service.operator_token());
    if let Some(body) = body {
        request = request.json(&body);
    }
    let answer = Service::send(request).await.json();
    assert_eq!(answer["success"], true, "{answer}");
    answer["data"].clone()
}

#[tokio::test]
async fn a_revoked_key_is_forbidden_as_an_invalid_token() {
    let issued = operate(
        Method::POST,
        "",
        Some(json!({ "label": "test", "scopes": ["*"] })),
    )
    .await;
    let (id, key) = (
        issued["id"].as_str().expect("an id"),
        issued["key"].as_str().expect("a key"),
    );
    call_banks().bearer(key).check("200 result #7").await;
    operate(Method::DELETE, &format!("/{id}"), None).await;
    check(
        &call_banks().bearer(key),
        403,
        Some("invalid_token"),
        "bank-qr:banks",
    )
    .await;
    check_public(key).await;
}

/// Calls until the clock has passed the key's end; each answer is one or the other.
#[tokio::test]
async fn an_expired_key_is_forbidden_as_an_invalid_token() {
    let now = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("after 1970")
            .as_secs()
    };
    let ends = now() + 2;
    let at = OffsetDateTime::from_unix_timestamp(i64::try_from(ends).expect("a time of today"))
        .expect("a time");
    let at = at.format(&Rfc3339).expect("a timestamp");
    let issued = operate(
        Method::POST,
        "",
        Some(json!({ "label": "test", "scopes": ["*"], "expiresAt": at })),
    )
    .await;
    let post = call_banks().bearer(issued["key"].as_str().expect("a key"));
    while now() < ends {
        let told = outcome(&post.send(Service::shared()).await);
        assert!(told == "200 result #7" || now() >= ends, "{told}");
    }
    check(&post, 403, Some("invalid_token"), "bank-qr:banks").await;
}

/// What needs no credential takes no harm from a bad one.
async fn check_public(credential: &str) {
    let initialize = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
    let public = [
        ("2025-11-25", "initialize", initialize, "200 result #7"),
        ("2025-11-25", "ping", json!({}), "200 result #7"),
        (MODERN, "server/discover", json!({}), "200 result #7"),
        ("2025-03-26", "tools/list", json!({}), "200 result #7"),
        (MODERN, "tools/list", json!({}), "200 result #7"),
        ("2025-06-18", "resources/list", json!({}), "200 result #7"),
        (
            "2025-06-18",
            "resources/templates/list",
            json!({}),
            "200 result #7",
        ),
        (
            MODERN,
            "resources/read",
            json!({ "uri": "service://openapi" }),
            "200 result #7",
        ),
        ("2025-11-25", "foo/bar", json!({}), "200 -32601 #7"),
        (
            "2025-11-25",
            "tools/call",
            json!({ "name": "nothing" }),
            "200 -32602 #7",
        ),
    ];
    for (version, method, params, expected) in public {
        let answer = Post::of(version, method, params)
            .bearer(credential)
            .send(Service::shared())
            .await;
        assert_eq!(outcome(&answer), expected, "{version} {method}");
        assert!(
            answer.headers.get("www-authenticate").is_none(),
            "{version} {method}"
        );
    }
}

#[tokio::test]
async fn public_methods_ignore_a_bad_credential() {
    check_public("nonsense").await;
    check_public(&Service::shared().issue(&["--scope", "domain:dns"])).await;
}

/// A refused credential takes no slot, and neither does what is no call.
#[tokio::test]
async fn only_an_admitted_call_takes_a_slot() {
    let service = Service::shared();
    let (_, told) = in_one_minute(async || {
        let key = service.issue(&["--scope", "bank-qr:banks", "--per-minute", "2"]);
        let forbidden = Post::call("generate_bank_qr", &json!({}));
        let in_batch = json!([
            { "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": BANKS } },
            { "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "generate_bank_qr" } },
        ]);
        let notified = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"list_bank_qr_banks"}}"#;
        let none = [
            forbidden,
            Post::raw(in_batch.to_string()),
            Post::raw(notified),
            Post::legacy("2025-11-25", "tools/list", json!({})),
            Post::legacy("2025-11-25", "tools/call", json!({ "name": "nothing" })),
            Post::legacy("2025-11-25", "tools/call", json!({ "name": BANKS, "arguments": [] })),
        ];
        for post in none {
            let answer = post.clone().bearer(&key).send(service).await;
            assert!(answer.headers.get("x-apikey-ratelimit-limit").is_none(), "{post:?}");
        }
        call_banks().bearer(&key).send(service).await.header("x-apikey-ratelimit-remaining").to_owned()
    })
    .await;
    assert_eq!(told, "1");
}
