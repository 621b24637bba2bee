//! Refusals: each comes as the document of its operation says, and each that the document says can come.

use reqwest::Method;
use serde_json::{Value, json};

use super::{all_codes, documented, openapi_of};
use crate::discovery::product;
use crate::support::{Answer, Metered, Service, in_one_minute};

const JSON: (&str, &str) = ("content-type", "application/json");

fn path(name: &str) -> String {
    format!("/api/v1/test/{name}")
}

/// A service whose operations cost and are limited, and what it documents.
struct House {
    metered: Metered,
    openapi: Value,
}

impl House {
    async fn start() -> Self {
        let config = "[limits]\nbody_ms = 1000\n[credits]\nconcurrency = 1\n";
        let metered = Metered::start(config, None).await;
        let openapi = openapi_of(&metered.service).await;
        Self { metered, openapi }
    }

    async fn post(&self, key: &str, name: &str, body: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = self
            .metered
            .service
            .bare(Method::POST, &path(name))
            .bearer_auth(key)
            .body(body.to_owned());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Service::send(request).await
    }

    fn operation(&self, name: &str) -> &Value {
        &self.openapi["paths"][path(name)]["post"]
    }

    /// The answer is this refusal, and one that the operation's document tells of.
    fn check(&self, name: &str, answer: &Answer, expected: (u16, &str)) {
        assert_eq!(answer.refusal(), (expected.0, expected.1.to_owned()));
        documented(&self.openapi, self.operation(name), answer);
    }
}

#[tokio::test]
async fn every_refusal_of_one_call_comes_as_it_is_documented() {
    let house = House::start().await;
    let service = &house.metered.service;
    let (key, narrow) = (service.key(), service.issue(&["--scope", "bank-qr:banks"]));
    let large = format!("{{{}}}", " ".repeat(20_000));
    let typed = &[JSON][..];
    for (key, body, headers, expected) in [
        (key, "{", typed, (400, "VALIDATION_ERROR")),
        ("nonsense", "{}", typed, (401, "UNAUTHORIZED")),
        (&narrow, "{}", typed, (403, "FORBIDDEN")),
        (key, &large, typed, (413, "PAYLOAD_TOO_LARGE")),
        (key, "{}", &[], (415, "UNSUPPORTED_MEDIA_TYPE")),
        (key, r#"{"how":"fail"}"#, typed, (418, "TEAPOT")),
        (key, r#"{"how":"trap"}"#, typed, (500, "INTERNAL_ERROR")),
    ] {
        let answer = house.post(key, "plain", body, headers).await;
        house.check("plain", &answer, expected);
    }
    let late = house.post(key, "brief", r#"{"wait_ms":5000}"#, typed).await;
    house.check("brief", &late, (504, "UPSTREAM_TIMEOUT"));

    let disabled = service
        .admin(
            Method::POST,
            "/admin/v1/plugins/metered/disable",
            Some(&json!({ "why": "a test" })),
        )
        .await;
    assert_eq!(disabled.status, 200, "{disabled:?}");
    let refused = house.post(key, "plain", "{}", typed).await;
    house.check("plain", &refused, (503, "SERVICE_UNAVAILABLE"));
}

#[tokio::test]
async fn every_refusal_for_what_was_used_before_comes_as_it_is_documented() {
    let house = House::start().await;
    let service = &house.metered.service;
    let typed = &[JSON][..];
    let paid = json!({ "entitlement": { "plan": "paid", "creditsPerMonth": 4 } });
    let account = house.metered.account(paid).await;
    let paying = house.metered.key(json!({ "account": account })).await;
    let named = [JSON, ("idempotency-key", "once")];
    let paid = house.post(&paying, "costly", "{}", &named).await;
    documented(&house.openapi, house.operation("costly"), &paid);
    assert_eq!(
        (paid.status, paid.header("x-apikey-credit-cost")),
        (200, "4")
    );
    let again = house.post(&paying, "costly", "{}", &named).await;
    house.check("costly", &again, (409, "USAGE_RESERVATION_CONFLICT"));
    let poor = house.post(&paying, "costly", "{}", typed).await;
    house.check("costly", &poor, (429, "API_CREDITS_EXCEEDED"));

    let monthly = service.issue(&["--all-scopes", "--per-month", "1"]);
    assert_eq!(house.post(&monthly, "plain", "{}", typed).await.status, 200);
    let over = house.post(&monthly, "plain", "{}", typed).await;
    house.check("plain", &over, (429, "MONTHLY_QUOTA_EXCEEDED"));

    let (_, limited) = in_one_minute(async || {
        let key = service.issue(&["--all-scopes", "--per-minute", "1"]);
        house.post(&key, "plain", "{}", typed).await;
        house.post(&key, "plain", "{}", typed).await
    })
    .await;
    house.check("plain", &limited, (429, "RATE_LIMITED"));
}

#[tokio::test]
async fn only_codes_that_can_come_are_documented() {
    let metered = Metered::shared().await;
    let openapi = openapi_of(&metered.service).await;
    let of = |name: &str| {
        all_codes(
            &openapi,
            &openapi["paths"][format!("/api/v1/test/{name}")]["post"],
        )
    };
    let common = [
        "400 VALIDATION_ERROR",
        "401 UNAUTHORIZED",
        "403 FORBIDDEN",
        "408 REQUEST_TIMEOUT",
        "413 PAYLOAD_TOO_LARGE",
        "415 UNSUPPORTED_MEDIA_TYPE",
        "418 TEAPOT",
        "429 RATE_LIMITED",
        "500 INTERNAL_ERROR",
        "503 SERVICE_UNAVAILABLE",
        "504 UPSTREAM_TIMEOUT",
    ];
    let with = |more: &[&str]| {
        let mut all: Vec<String> = common
            .iter()
            .chain(more)
            .map(|code| (*code).to_owned())
            .collect();
        all.sort_by_key(|code| code[..3].to_owned());
        all
    };
    let sorted = |mut codes: Vec<String>, mut expected: Vec<String>| {
        codes.sort();
        expected.sort();
        assert_eq!(codes, expected);
    };
    let by_key = [
        "409 USAGE_RESERVATION_CONFLICT",
        "409 USAGE_RESERVATION_EXPIRED",
    ];
    let month = ["429 MONTHLY_QUOTA_EXCEEDED"];
    let at_once = ["429 USAGE_CONCURRENCY_EXCEEDED"];
    let credits = ["429 API_CREDITS_EXCEEDED"];
    sorted(
        of("plain"),
        with(&[&by_key[..], &month, &at_once, &credits].concat()),
    );
    sorted(
        of("started"),
        with(&[&month[..], &at_once, &credits].concat()),
    );
    sorted(of("unmetered"), with(&[&by_key[..], &at_once].concat()));
}

#[tokio::test]
async fn an_operation_documents_its_own_codes_in_the_place_of_those_that_cannot_come() {
    let service = product().await;
    let openapi = openapi_of(&service).await;
    let of = |path: &str| all_codes(&openapi, &openapi["paths"][path]["post"]);
    let crawl = of("/api/v1/web/crawls");
    assert!(
        crawl.contains(&"409 DUPLICATE_REQUEST".to_owned()),
        "{crawl:?}"
    );
    assert!(
        !crawl.iter().any(|code| code.contains("USAGE_RESERVATION")),
        "{crawl:?}"
    );
    let oembed = of("/api/v1/oembed/resolve");
    assert!(
        oembed.contains(&"504 OEMBED_UPSTREAM_TIMEOUT".to_owned()),
        "{oembed:?}"
    );
    assert!(
        !oembed.contains(&"504 UPSTREAM_TIMEOUT".to_owned()),
        "{oembed:?}"
    );
}
