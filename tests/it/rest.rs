//! REST: routes and methods, the envelope, the order of checks, the standing headers, and what may be cached.

use std::collections::HashSet;

use regex_lite::Regex;
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::{Answer, Service};

const BANKS: &str = "/api/v1/tools/bank-qr/banks";
const GENERATE: &str = "/api/v1/tools/bank-qr";
const GOOD: &str = r#"{"bank":"VCB","accountNumber":"0011001234567"}"#;

#[tokio::test]
async fn a_success_is_enveloped_and_carries_the_standing_headers() {
    let service = Service::shared();
    for answer in [
        service.get(BANKS).await,
        service.post_raw(GENERATE, GOOD).await,
    ] {
        assert_eq!(answer.status, 200);
        let body = answer.json();
        let members: Vec<&String> = body.as_object().expect("an object").keys().collect();
        assert_eq!(members, ["success", "data"]);
        assert_eq!(body["success"], true);
        assert_eq!(answer.header("content-type"), "application/json");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
    }
}

#[tokio::test]
async fn a_request_id_is_a_uuid_of_version_7_and_never_the_same() {
    let service = Service::shared();
    let form = Regex::new("^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")
        .unwrap();
    let mut seen = HashSet::new();
    for path in [BANKS, GENERATE, "/", "/healthz", "/openapi.json"] {
        let answer = service.get(path).await;
        let id = answer.header("x-request-id").to_owned();
        assert!(form.is_match(&id), "{path}: {id}");
        assert!(seen.insert(id), "{path}");
    }
}

#[tokio::test]
async fn an_inbound_request_id_is_ignored() {
    let service = Service::shared();
    let mine = "0190a6f0-0000-7000-8000-000000000000";
    let request = service
        .request(Method::GET, BANKS)
        .header("x-request-id", mine);
    assert_ne!(Service::send(request).await.header("x-request-id"), mine);
    let request = service
        .bare(Method::GET, BANKS)
        .header("x-request-id", mine);
    let answer = Service::send(request).await;
    assert_eq!(answer.refusal(), (401, "UNAUTHORIZED".to_owned()));
    assert_ne!(answer.header("x-request-id"), mine);
}

#[tokio::test]
async fn server_timing_tells_the_plugins_time_where_a_plugin_ran() {
    let service = Service::shared();
    let number = "[0-9]+\\.[0-9]{3}";
    let ran = Regex::new(&format!("^plugin;dur={number}, total;dur={number}$")).unwrap();
    let refused = Regex::new(&format!("^total;dur={number}$")).unwrap();
    let answer = service.get(BANKS).await;
    assert!(
        ran.is_match(answer.header("server-timing")),
        "{}",
        answer.header("server-timing")
    );
    let answer = service.post_raw(GENERATE, "{}").await;
    assert!(
        refused.is_match(answer.header("server-timing")),
        "{}",
        answer.header("server-timing")
    );
}

#[tokio::test]
async fn an_unknown_route_is_404_with_and_without_a_credential() {
    let service = Service::shared();
    for path in [
        "/",
        "/api",
        "/api/v1",
        "/api/v1/tools/bank-qr/",
        "/api/v1/tools/bank-qr/banks/",
        "/API/v1/tools/bank-qr",
    ] {
        check_404(service, path).await;
    }
    for path in [
        "/api/v2/tools/bank-qr",
        "/api/v1/tools//bank-qr",
        "/admin/v1/keys",
        "/openapi.json/",
        "/mcp/x",
    ] {
        check_404(service, path).await;
    }
}

async fn check_404(service: &Service, path: &str) {
    for method in [Method::GET, Method::POST] {
        let answer = Service::send(service.request(method.clone(), path)).await;
        assert_eq!(
            answer.refusal(),
            (404, "NOT_FOUND".to_owned()),
            "{method} {path}"
        );
        let answer = Service::send(service.bare(method.clone(), path)).await;
        assert_eq!(
            answer.refusal(),
            (404, "NOT_FOUND".to_owned()),
            "{method} {path}"
        );
    }
}

#[tokio::test]
async fn a_method_that_a_route_does_not_take_is_405_with_those_it_takes() {
    let service = Service::shared();
    for method in [
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
    ] {
        check_405(service, method, BANKS, "GET, HEAD").await;
    }
    for method in [
        Method::GET,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
    ] {
        check_405(service, method, GENERATE, "POST").await;
    }
    for path in ["/openapi.json", "/developer-guide", "/healthz", "/readyz"] {
        check_405(service, Method::POST, path, "GET, HEAD").await;
    }
    let answer = Service::send(service.request(Method::HEAD, GENERATE)).await;
    assert_eq!(
        (answer.status, answer.header("allow"), answer.bytes.len()),
        (405, "POST", 0)
    );
}

async fn check_405(service: &Service, method: Method, path: &str, allow: &str) {
    let answer = Service::send(service.request(method.clone(), path)).await;
    assert_eq!(
        answer.refusal(),
        (405, "METHOD_NOT_ALLOWED".to_owned()),
        "{method} {path}"
    );
    assert_eq!(answer.header("allow"), allow, "{method} {path}");
}

#[tokio::test]
async fn head_answers_as_get_does_without_the_body() {
    let service = Service::shared();
    for path in [
        BANKS,
        "/openapi.json",
        "/developer-guide",
        "/healthz",
        "/readyz",
        "/nothing",
    ] {
        let get = service.get(path).await;
        let head = Service::send(service.request(Method::HEAD, path)).await;
        assert_eq!((head.status, head.bytes.len()), (get.status, 0), "{path}");
        for name in ["content-type", "content-length", "cache-control", "etag"] {
            assert_eq!(
                head.headers.get(name),
                get.headers.get(name),
                "{path} {name}"
            );
        }
        assert_eq!(
            head.header("content-length"),
            get.bytes.len().to_string(),
            "{path}"
        );
    }
    let head = Service::send(service.bare(Method::HEAD, BANKS)).await;
    assert_eq!((head.status, head.bytes.len()), (401, 0));
}

/// A request with several faults.
struct Faulty {
    method: Method,
    path: &'static str,
    key: Option<String>,
    content_type: &'static str,
    body: String,
}

#[tokio::test]
async fn the_first_fault_in_the_order_of_checks_is_told() {
    let service = Service::shared();
    let narrow = || Some(service.issue(&["--scope", "bank-qr:banks"]));
    let unknown = || Some("sb_adm_nonsense".to_owned());
    let large = || "x".repeat(5000);
    let broken = || "{".to_owned();
    let (json, text) = ("application/json", "text/plain");
    let post = |key, content_type, body| Faulty {
        method: Method::POST,
        path: GENERATE,
        key,
        content_type,
        body,
    };
    let put = |path| Faulty {
        method: Method::PUT,
        path,
        key: None,
        content_type: text,
        body: large(),
    };

    check_first(put("/api/v1/nothing"), (404, "NOT_FOUND")).await;
    check_first(put(GENERATE), (405, "METHOD_NOT_ALLOWED")).await;
    check_first(post(None, text, large()), (415, "UNSUPPORTED_MEDIA_TYPE")).await;
    check_first(post(None, text, broken()), (415, "UNSUPPORTED_MEDIA_TYPE")).await;
    check_first(post(None, json, large()), (413, "PAYLOAD_TOO_LARGE")).await;
    check_first(post(narrow(), json, large()), (413, "PAYLOAD_TOO_LARGE")).await;
    check_first(post(None, json, broken()), (401, "UNAUTHORIZED")).await;
    check_first(post(unknown(), json, broken()), (401, "UNAUTHORIZED")).await;
    check_first(post(narrow(), json, broken()), (403, "FORBIDDEN")).await;
    check_first(
        post(Some(service.key().to_owned()), json, broken()),
        (400, "VALIDATION_ERROR"),
    )
    .await;
}

async fn check_first(faulty: Faulty, expected: (u16, &str)) {
    let Faulty {
        method,
        path,
        key,
        content_type,
        body,
    } = faulty;
    let mut request = Service::shared()
        .bare(method, path)
        .header("content-type", content_type)
        .body(body);
    if let Some(key) = key {
        request = request.bearer_auth(key);
    }
    assert_eq!(
        Service::send(request).await.refusal(),
        (expected.0, expected.1.to_owned()),
        "{path} {content_type}"
    );
}

#[tokio::test]
async fn declared_cache_headers_go_on_a_success_alone() {
    let service = Service::shared();
    let banks = service.get(BANKS).await;
    assert_eq!(
        banks.header("cache-control"),
        "private, max-age=3600, stale-while-revalidate=86400"
    );
    let generated = service.post_raw(GENERATE, GOOD).await;
    assert_eq!(generated.header("cache-control"), "no-store");
    assert_eq!(generated.headers.get("etag"), None);
    // `refusal` asks for `private, no-store`.
    let refused = service.get(&format!("{BANKS}?x=1")).await;
    assert_eq!(refused.refusal(), (400, "VALIDATION_ERROR".to_owned()));
    assert_eq!(refused.headers.get("etag"), None);
}

#[tokio::test]
async fn the_directory_is_304_where_the_client_has_it_already() {
    let service = Service::shared();
    let etag = service.get(BANKS).await.header("etag").to_owned();
    assert!(
        Regex::new(r#"^W/"[A-Za-z0-9_-]{22}"$"#)
            .unwrap()
            .is_match(&etag),
        "{etag}"
    );
    assert_eq!(
        service.get(BANKS).await.header("etag"),
        etag,
        "the same data has the same tag"
    );
    let strong = etag.trim_start_matches("W/").to_owned();

    check_match(&etag, &etag, 304).await;
    check_match(&etag, &strong, 304).await;
    check_match(&etag, "*", 304).await;
    check_match(&etag, " * ", 304).await;
    check_match(&etag, &format!(r#""one",W/"two" , {etag}"#), 304).await;
    check_match(&etag, &format!(r#"{strong}, "other""#), 304).await;
    check_match(&etag, r#"W/"other""#, 200).await;
    check_match(&etag, r#""one", "two""#, 200).await;
    check_match(&etag, r#""*""#, 200).await;
    check_match(&etag, strong.trim_matches('"'), 200).await;
    check_match(&etag, "", 200).await;
}

/// A conditional GET and HEAD of the directory.
async fn check_match(etag: &str, if_none_match: &str, expected: u16) {
    for method in [Method::GET, Method::HEAD] {
        let request = Service::shared()
            .request(method.clone(), BANKS)
            .header("if-none-match", if_none_match);
        let answer = Service::send(request).await;
        assert_eq!(answer.status, expected, "{method} {if_none_match}");
        assert_eq!(answer.header("etag"), etag, "{method} {if_none_match}");
        assert_eq!(
            answer.header("cache-control"),
            "private, max-age=3600, stale-while-revalidate=86400"
        );
        let empty = expected == StatusCode::NOT_MODIFIED.as_u16() || method == Method::HEAD;
        assert_eq!(answer.bytes.is_empty(), empty, "{method} {if_none_match}");
    }
}

#[tokio::test]
async fn two_lines_of_if_none_match_are_one_list() {
    let service = Service::shared();
    let etag = service.get(BANKS).await.header("etag").to_owned();
    let request = service
        .request(Method::GET, BANKS)
        .header("if-none-match", "\"x\"")
        .header("if-none-match", etag);
    assert_eq!(Service::send(request).await.status, 304);
}

#[tokio::test]
async fn a_condition_answers_nobody_who_may_not_call() {
    let service = Service::shared();
    let refused = |request: reqwest::RequestBuilder| async {
        Service::send(request.header("if-none-match", "*"))
            .await
            .refusal()
    };
    assert_eq!(
        refused(service.bare(Method::GET, BANKS)).await,
        (401, "UNAUTHORIZED".to_owned())
    );
    let narrow = service.issue(&["--scope", "bank-qr:generate"]);
    let request = service.bare(Method::GET, BANKS).bearer_auth(narrow);
    assert_eq!(refused(request).await, (403, "FORBIDDEN".to_owned()));
    let request = service.request(Method::GET, &format!("{BANKS}?x=1"));
    assert_eq!(refused(request).await, (400, "VALIDATION_ERROR".to_owned()));
    let request = service
        .request(Method::POST, GENERATE)
        .header("content-type", "application/json")
        .body(GOOD);
    let answer: Answer = Service::send(request.header("if-none-match", "*")).await;
    assert_eq!(answer.status, 200, "a POST is not conditional");
}

#[tokio::test]
async fn an_idempotency_key_is_ignored_for_an_administrators_key() {
    let service = Service::shared();
    for text in [
        "order-1",
        "order-1",
        "no pattern fits this!",
        &"x".repeat(81),
    ] {
        let request = service
            .request(Method::POST, GENERATE)
            .header("idempotency-key", text);
        let answer =
            Service::send(request.json(&json!({ "bank": "VCB", "accountNumber": "123456" }))).await;
        assert_eq!(answer.status, 200, "{text}");
    }
}
