//! First-party browsers: calls without a credential from the operator's own pages, counted by address.

use reqwest::Method;
use serde_json::json;

use crate::support::{Answer, Metered, Post, Service, in_one_minute, outcome};

const PAGE: &str = "https://www.example.com";
const CONFIG: &str = "[first_party]\norigins = [\"https://www.example.com\"]\n";
const OPEN: &str = "/api/v1/test/open";

/// A call of an operation without a credential.
async fn call(metered: &Metered, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = metered.service.bare(Method::POST, path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Service::send(request.json(&json!({}))).await
}

/// Status, limit, remaining and reset of an answer.
fn standing(answer: &Answer) -> (u16, [u64; 3]) {
    let read = |name: &str| {
        answer
            .header(&format!("x-ratelimit-{name}"))
            .parse()
            .expect("an integer")
    };
    (answer.status, ["limit", "remaining", "reset"].map(read))
}

fn of_browsers(answer: &Answer) -> Vec<&str> {
    let names = answer
        .headers
        .keys()
        .map(reqwest::header::HeaderName::as_str);
    names
        .filter(|name| name.starts_with("access-control-") || name.starts_with("x-ratelimit-"))
        .collect()
}

#[tokio::test]
async fn a_page_of_ours_calls_what_has_an_allowance_so_often_a_minute() {
    let metered = Metered::start(CONFIG, None).await;
    let (started, answers) = in_one_minute(async || {
        let mut answers = Vec::new();
        for _ in 0..4 {
            answers.push(call(&metered, OPEN, &[("origin", PAGE)]).await);
        }
        answers
    })
    .await;
    let reset = (started / 60 + 1) * 60;
    let told: Vec<(u16, [u64; 3])> = answers.iter().map(standing).collect();
    assert_eq!(
        told,
        [(200, 2), (200, 1), (200, 0), (429, 0)].map(|(status, left)| (status, [3, left, reset]))
    );
    assert_eq!(
        answers[0].json()["data"]["caller"],
        "CallerKind::FirstParty"
    );
    let refused = &answers[3];
    assert_eq!(refused.refusal(), (429, "RATE_LIMITED".to_owned()));
    assert_eq!(
        refused.header("retry-after"),
        refused.json()["data"]["retryAfter"].to_string()
    );
    for answer in &answers {
        assert_eq!(
            (
                answer.header("access-control-allow-origin"),
                answer.header("vary")
            ),
            (PAGE, "Origin")
        );
        check_exposed(answer);
        assert!(!answer.headers.contains_key("x-apikey-ratelimit-limit"));
        assert!(
            !answer
                .headers
                .contains_key("access-control-allow-credentials")
        );
    }
}

#[tokio::test]
async fn nobody_else_calls_without_a_credential() {
    let metered = Metered::start(CONFIG, None).await;
    for (path, headers) in [
        (OPEN, &[][..]),
        (OPEN, &[("origin", "https://www.example.com.evil.example")]),
        (OPEN, &[("origin", "http://www.example.com")]),
        (OPEN, &[("origin", "null")]),
        (OPEN, &[("referer", PAGE)]),
        ("/api/v1/test/plain", &[("origin", PAGE)]),
    ] {
        let answer = call(&metered, path, headers).await;
        assert_eq!(
            answer.refusal(),
            (401, "UNAUTHORIZED".to_owned()),
            "{path} {headers:?}"
        );
        assert_eq!(
            of_browsers(&answer),
            Vec::<&str>::new(),
            "{path} {headers:?}"
        );
    }
    let wrong = call(
        &metered,
        OPEN,
        &[("origin", PAGE), ("x-service-api-key", "nonsense")],
    )
    .await;
    assert_eq!(wrong.refusal(), (401, "UNAUTHORIZED".to_owned()));
    assert_eq!(
        wrong.header("access-control-allow-origin"),
        PAGE,
        "the page may read why"
    );
    let tool = Post::call("call_open", &json!({}))
        .send(&metered.service)
        .await;
    assert_eq!(outcome(&tool), "401 401 #7", "agents need a credential");
    let off = Metered::shared().await;
    assert_eq!(
        call(off, OPEN, &[("origin", PAGE)]).await.status,
        401,
        "no origins, no first party"
    );
}

/// A page may read every header that tells a meter, and what to do about a refusal.
fn check_exposed(answer: &Answer) {
    let exposed = answer
        .header("access-control-expose-headers")
        .to_ascii_lowercase();
    let exposed: Vec<&str> = exposed.split(", ").collect();
    let told = [
        "retry-after",
        "www-authenticate",
        "etag",
        "x-request-id",
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
        "x-apikey-ratelimit-limit",
        "x-apikey-ratelimit-remaining",
        "x-apikey-ratelimit-reset",
        "x-apikey-ratelimit-window",
        "x-apikey-monthly-limit",
        "x-apikey-monthly-remaining",
        "x-apikey-monthly-reset",
        "x-apikey-credit-cost",
        "x-apikey-credit-limit",
        "x-apikey-credit-reset",
    ];
    for name in told {
        assert!(
            exposed.contains(&name),
            "{name} is not exposed: {exposed:?}"
        );
    }
    for name in answer
        .headers
        .keys()
        .map(reqwest::header::HeaderName::as_str)
        .filter(|name| name.starts_with("x-apikey-"))
    {
        assert!(
            exposed.contains(&name),
            "{name} is not exposed: {exposed:?}"
        );
    }
}

#[tokio::test]
async fn a_key_on_a_page_of_ours_is_counted_as_a_key() {
    let metered = Metered::start(CONFIG, None).await;
    let key = metered.key(json!({ "perMinute": 9 })).await;
    let answer = metered
        .rest(&key, "open", &json!({}), &[("origin", PAGE)])
        .await;
    assert_eq!(
        (answer.status, answer.header("x-apikey-ratelimit-limit")),
        (200, "9")
    );
    assert_eq!(answer.header("access-control-allow-origin"), PAGE);
    check_exposed(&answer);
    assert_eq!(answer.json()["data"]["caller"], "CallerKind::ApiKey");
    assert!(!answer.headers.contains_key("x-ratelimit-limit"));
}

#[tokio::test]
async fn a_browser_is_told_what_a_page_may_call() {
    let metered = Metered::start(CONFIG, None).await;
    let ask = async |path: &str, origin: &str, method: &str| {
        let request = metered
            .service
            .bare(Method::OPTIONS, path)
            .header("origin", origin);
        Service::send(request.header("access-control-request-method", method)).await
    };
    let allowed = ask(OPEN, PAGE, "POST").await;
    assert_eq!((allowed.status, allowed.bytes.len()), (204, 0));
    assert_eq!(allowed.header("access-control-allow-methods"), "POST");
    assert!(
        allowed
            .header("access-control-allow-headers")
            .contains("Content-Type")
    );
    assert_eq!(
        (
            allowed.header("access-control-allow-origin"),
            allowed.header("access-control-max-age")
        ),
        (PAGE, "600")
    );
    for (path, origin, method) in [
        (OPEN, "https://evil.example", "POST"),
        (OPEN, PAGE, "DELETE"),
        ("/api/v1/test/plain", PAGE, "POST"),
    ] {
        let refused = ask(path, origin, method).await;
        assert_eq!(
            refused.refusal(),
            (405, "METHOD_NOT_ALLOWED".to_owned()),
            "{path} {origin} {method}"
        );
        assert_eq!(
            (refused.header("allow"), of_browsers(&refused)),
            ("POST", Vec::new())
        );
    }
}

/// The remaining calls that clients behind these addresses are told of, one call each.
async fn remaining(metered: &Metered, forwarded: &[&str]) -> Vec<String> {
    let (_, left) = in_one_minute(async || {
        let mut left = Vec::new();
        for address in forwarded {
            let answer = call(
                metered,
                OPEN,
                &[("origin", PAGE), ("x-forwarded-for", address)],
            )
            .await;
            left.push(answer.header("x-ratelimit-remaining").to_owned());
        }
        left
    })
    .await;
    left
}

#[tokio::test]
async fn an_address_counts_as_trusted_proxies_tell_it() {
    let config = format!("{CONFIG}[peers]\ntrusted_proxies = [\"127.0.0.0/8\"]\n");
    let metered = Metered::start(&config, None).await;
    let addresses = [
        "192.0.2.1",
        "192.0.2.2",
        "192.0.2.66, 192.0.2.1",
        "2001:db8:1:2::1",
        "2001:db8:1:2:f::9",
        "2001:db8:1:3::1",
    ];
    assert_eq!(
        remaining(&metered, &addresses).await,
        ["2", "2", "1", "2", "1", "2"]
    );
}

#[tokio::test]
async fn nobody_else_is_believed_of_an_address() {
    let metered = Metered::start(CONFIG, None).await;
    assert_eq!(
        remaining(&metered, &["192.0.2.1", "192.0.2.2", "192.0.2.3"]).await,
        ["2", "1", "0"]
    );
}
