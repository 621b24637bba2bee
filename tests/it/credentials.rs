//! Credentials and windows on REST: which keys are accepted, what a refusal tells, and how often a key may call.

use reqwest::Method;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::support::{Answer, Service, in_one_minute, issue};

const BANKS: &str = "/api/v1/tools/bank-qr/banks";
const GENERATE: &str = "/api/v1/tools/bank-qr";
const GOOD: &str = r#"{"bank":"VCB","accountNumber":"0011001234567"}"#;
const WINDOW_HEADERS: [&str; 4] = [
    "x-apikey-ratelimit-limit",
    "x-apikey-ratelimit-remaining",
    "x-apikey-ratelimit-reset",
    "x-apikey-ratelimit-window",
];

/// Asks for the directory with these headers.
async fn ask(headers: &[(&str, &str)]) -> Answer {
    let mut request = Service::shared().bare(Method::GET, BANKS);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Service::send(request).await
}

async fn check(headers: &[(&str, &str)], expected: u16) {
    let answer = ask(headers).await;
    assert_eq!(answer.status, expected, "{headers:?}");
    if expected == 401 {
        assert_eq!(
            answer.refusal(),
            (401, "UNAUTHORIZED".to_owned()),
            "{headers:?}"
        );
    }
}

#[tokio::test]
async fn a_key_is_taken_from_either_header() {
    let key = Service::shared().key();
    let other = &Service::shared().issue(&["--all-scopes"]);
    let bearer = &format!("Bearer {key}");
    let other_bearer = &format!("Bearer {other}");
    check(&[("authorization", bearer)], 200).await;
    check(&[("authorization", &format!("bearer {key}"))], 200).await;
    check(&[("authorization", &format!("BEARER {key}"))], 200).await;
    check(&[("x-service-api-key", key)], 200).await;
    check(
        &[("x-service-api-key", key), ("authorization", bearer)],
        200,
    )
    .await;
    check(
        &[("x-service-api-key", key), ("authorization", other_bearer)],
        401,
    )
    .await;
    check(
        &[("x-service-api-key", key), ("x-service-api-key", other)],
        401,
    )
    .await;
    check(
        &[("authorization", bearer), ("authorization", other_bearer)],
        401,
    )
    .await;
    check(
        &[("x-service-api-key", key), ("authorization", "Basic dTpw")],
        401,
    )
    .await;
}

#[tokio::test]
async fn what_is_no_known_key_is_401() {
    let key = Service::shared().key();
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let foreign = &issue(folder.path(), &["--all-scopes"]);
    let last = if key.ends_with('0') { "1" } else { "0" };
    let mistyped = &format!("{}{last}", &key[..key.len() - 1]);
    let other_kind = &key.replacen("sb_adm_", "sb_self_", 1);
    check(&[], 401).await;
    for text in [
        "",
        "nonsense",
        "sb_adm_",
        &key[..key.len() - 1],
        &key.to_lowercase(),
        mistyped,
        other_kind,
        foreign,
    ] {
        check(&[("x-service-api-key", text)], 401).await;
        check(&[("authorization", &format!("Bearer {text}"))], 401).await;
    }
    check(&[("authorization", key)], 401).await;
    check(&[("authorization", &format!("Basic {key}"))], 401).await;
    check(&[("x-service-api-key", &format!("Bearer {key}"))], 401).await;
    check(&[("x-service-api-key", &"k".repeat(9000))], 401).await;
    check(&[("cookie", &format!("key={key}"))], 401).await;
}

#[tokio::test]
async fn a_key_in_the_url_is_no_credential() {
    let service = Service::shared();
    for name in ["key", "api_key", "access_token", "x-service-api-key"] {
        let answer =
            Service::send(service.bare(Method::GET, &format!("{BANKS}?{name}={}", service.key())))
                .await;
        assert_eq!(answer.refusal(), (401, "UNAUTHORIZED".to_owned()), "{name}");
    }
}

#[tokio::test]
async fn a_key_calls_what_its_scopes_name() {
    check_scopes(&["--scope", "bank-qr:banks"], (200, 403)).await;
    check_scopes(&["--scope", "bank-qr:generate"], (403, 200)).await;
    check_scopes(
        &["--scope", "bank-qr:banks", "--scope", "bank-qr:generate"],
        (200, 200),
    )
    .await;
    check_scopes(&["--scope", "domain:dns"], (403, 403)).await;
    check_scopes(&["--all-scopes"], (200, 200)).await;
}

/// What the directory and the generation answer to a key with these scopes.
async fn check_scopes(arguments: &[&str], expected: (u16, u16)) {
    let key = &Service::shared().issue(arguments);
    let (banks, generated) = (get(key).await, post(key, GOOD).await);
    assert_eq!((banks.status, generated.status), expected, "{arguments:?}");
    for answer in [banks, generated]
        .iter()
        .filter(|answer| answer.status == 403)
    {
        assert_eq!(
            answer.refusal(),
            (403, "FORBIDDEN".to_owned()),
            "{arguments:?}"
        );
    }
}

#[tokio::test]
async fn a_refused_credential_is_challenged_for_the_operations_scope() {
    let service = Service::shared();
    check_challenge(&ask(&[]).await, 401, None);
    check_challenge(
        &ask(&[("x-service-api-key", "nonsense")]).await,
        401,
        Some("invalid_token"),
    );
    let narrow = service.issue(&["--scope", "bank-qr:generate"]);
    check_challenge(&get(&narrow).await, 403, Some("insufficient_scope"));
    let answer = service.get(BANKS).await;
    assert_eq!(
        (answer.status, answer.headers.get("www-authenticate")),
        (200, None)
    );
    let answer = service.post_raw(GENERATE, "{}").await;
    assert_eq!(
        (answer.status, answer.headers.get("www-authenticate")),
        (400, None)
    );
}

fn check_challenge(answer: &Answer, status: u16, error: Option<&str>) {
    assert_eq!(answer.status, status);
    let challenge = answer.header("www-authenticate");
    let parameters = challenge
        .strip_prefix("Bearer ")
        .unwrap_or_else(|| panic!("{challenge}"));
    let value = |name: &str| {
        let found = parameters
            .split(", ")
            .find_map(|one| one.strip_prefix(&format!("{name}=")));
        found.map(|quoted| quoted.trim_matches('"').to_owned())
    };
    assert_eq!(
        value("scope").as_deref(),
        Some("bank-qr:banks"),
        "{challenge}"
    );
    assert_eq!(value("error").as_deref(), error, "{challenge}");
}

#[tokio::test]
async fn a_limited_key_is_told_where_its_minute_stands() {
    let (started, answers) = in_one_minute(async || {
        let [key, other] =
            [(); 2].map(|()| Service::shared().issue(&["--all-scopes", "--per-minute", "2"]));
        [
            get(&key).await,
            post(&key, "{}").await,
            get(&key).await,
            post(&key, GOOD).await,
            get(&other).await,
        ]
    })
    .await;
    let reset = (started / 60 + 1) * 60;
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [200, 400, 429, 429, 200]);
    for (answer, remaining) in answers.iter().zip(["1", "0", "0", "0", "1"]) {
        let told: Vec<&str> = WINDOW_HEADERS
            .iter()
            .map(|name| answer.header(name))
            .collect();
        assert_eq!(told, ["2", remaining, &reset.to_string(), "60"]);
    }
    for refused in &answers[2..4] {
        check_429(refused, started, reset);
    }
}

/// `Retry-After`, `data.retryAfter` and `data.resetAt` say the same: the end of the minute.
fn check_429(answer: &Answer, started: u64, reset: u64) {
    assert_eq!(answer.refusal(), (429, "RATE_LIMITED".to_owned()));
    let body = answer.json();
    let wait = body["data"]["retryAfter"].as_u64().expect("retryAfter");
    assert_eq!(answer.header("retry-after"), wait.to_string());
    assert!((1..=reset - started).contains(&wait), "{wait}");
    let at = body["data"]["resetAt"].as_str().expect("resetAt");
    assert!(at.ends_with('Z'), "{at}");
    let at = OffsetDateTime::parse(at, &Rfc3339).expect("ISO 8601");
    assert_eq!(
        at.unix_timestamp(),
        i64::try_from(reset).expect("a time of today")
    );
}

#[tokio::test]
async fn an_unlimited_key_is_sent_no_limits() {
    let service = Service::shared();
    for answer in [
        service.get(BANKS).await,
        service.post_raw(GENERATE, GOOD).await,
        service.post_raw(GENERATE, "{").await,
    ] {
        let told = answer
            .headers
            .keys()
            .find(|name| name.as_str().contains("ratelimit"));
        assert_eq!(told, None, "{}", answer.status);
        assert_eq!(answer.headers.get("retry-after"), None, "{}", answer.status);
    }
}

#[tokio::test]
async fn a_304_and_a_head_take_a_slot_too() {
    let (_, answers) = in_one_minute(async || {
        let key = Service::shared().issue(&["--all-scopes", "--per-minute", "3"]);
        let conditional = Service::shared()
            .bare(Method::GET, BANKS)
            .bearer_auth(&key)
            .header("if-none-match", "*");
        let head = Service::shared()
            .bare(Method::HEAD, BANKS)
            .bearer_auth(&key);
        [
            Service::send(conditional).await,
            Service::send(head).await,
            get(&key).await,
            get(&key).await,
        ]
    })
    .await;
    let told = answers.map(|answer| {
        (
            answer.status,
            answer.header("x-apikey-ratelimit-remaining").to_owned(),
        )
    });
    assert_eq!(
        told,
        [(304, "2"), (200, "1"), (200, "0"), (429, "0")]
            .map(|(status, left)| (status, left.to_owned()))
    );
}

#[tokio::test]
async fn what_is_refused_before_the_window_takes_no_slot() {
    let (_, answers) = in_one_minute(async || {
        let key = Service::shared().issue(&["--scope", "bank-qr:generate", "--per-minute", "1"]);
        let typed = Service::shared()
            .bare(Method::POST, GENERATE)
            .bearer_auth(&key)
            .body("x");
        [
            Service::send(typed).await,
            post(&key, &" ".repeat(5000)).await,
            get(&key).await,
            post(&key, GOOD).await,
            // Used up: the scope is looked at before the window, and the window before the body.
            get(&key).await,
            post(&key, "{").await,
        ]
    })
    .await;
    assert_eq!(
        answers.map(|answer| answer.status),
        [415, 413, 403, 200, 403, 429]
    );
}

#[tokio::test]
async fn calls_at_once_do_not_pass_the_limit() {
    let (_, statuses) = in_one_minute(async || {
        let key = Service::shared().issue(&["--all-scopes", "--per-minute", "5"]);
        let calls = (0..20).map(|_| get(&key));
        futures::future::join_all(calls)
            .await
            .into_iter()
            .map(|answer| answer.status)
            .collect::<Vec<u16>>()
    })
    .await;
    let admitted = statuses.iter().filter(|status| **status == 200).count();
    let refused = statuses.iter().filter(|status| **status == 429).count();
    assert_eq!((admitted, refused), (5, 15));
}

async fn get(key: &str) -> Answer {
    Service::send(Service::shared().bare(Method::GET, BANKS).bearer_auth(key)).await
}

async fn post(key: &str, body: &str) -> Answer {
    let request = Service::shared()
        .bare(Method::POST, GENERATE)
        .bearer_auth(key);
    Service::send(
        request
            .header("content-type", "application/json")
            .body(body.to_owned()),
    )
    .await
}
