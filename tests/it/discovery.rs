//! What the service says of itself: the OpenAPI document, the developer guide, health. What they promise is tried out.

use std::process::Command;

use regex_lite::Regex;
use reqwest::Method;
use serde_json::{Value, json};

use crate::domain_dns::Resolver;
use crate::domain_whois;
use crate::ip_info::databases::{Databases, flat_city_v4};
use crate::oembed;
use crate::openapi::documented;
use crate::support::{Answer, Options, Service, ensure};
use crate::web_data;

const DOCUMENTS: [(&str, &str); 2] = [
    ("/openapi.json", "application/json"),
    ("/developer-guide", "text/markdown; charset=utf-8"),
];

/// The plugins that the product serves, without the tests' own, before an outside world that answers.
pub(crate) async fn product() -> Service {
    // Read before anything is served, so the file may go with the folder.
    let databases = Databases::new().with("city", "CC-BY-4.0", &[("city.mmdb", &flat_city_v4())]);
    let (manifest, search) = web_data::search::product();
    let parts = [
        Resolver::shared().configuration(),
        domain_whois::examples(),
        oembed::examples(),
        databases.config(),
        web_data::configuration(),
        search,
    ];
    let config = together(&parts);
    Service::start(Options {
        config,
        manifest: Some(manifest),
        ..Options::default()
    })
    .await
}

/// One configuration of several: tables and lists hold what each of them says.
fn together(parts: &[String]) -> String {
    let read = |part: &String| -> toml::Table { part.parse().expect("a configuration") };
    let whole = parts
        .iter()
        .map(read)
        .fold(toml::Table::new(), |mut whole, part| {
            merge(&mut whole, part);
            whole
        });
    toml::to_string(&whole).expect("it came from text")
}

fn merge(whole: &mut toml::Table, part: toml::Table) {
    for (key, value) in part {
        match (whole.get_mut(&key), value) {
            (Some(toml::Value::Table(known)), toml::Value::Table(more)) => merge(known, more),
            (Some(toml::Value::Array(known)), toml::Value::Array(more)) => known.extend(more),
            (_, value) => {
                whole.insert(key, value);
            }
        }
    }
}

pub(crate) async fn document(service: &Service, path: &str) -> Answer {
    Service::send(service.bare(Method::GET, path)).await
}

#[tokio::test]
async fn the_openapi_document_is_the_published_contract() {
    let service = product().await;
    let answer = document(&service, "/openapi.json").await;
    assert_eq!(answer.status, 200);
    let openapi = answer.json();
    assert_eq!(
        (&openapi["openapi"], &openapi["info"]["version"]),
        (&json!("3.1.0"), &json!("1.0.0"))
    );
    assert_eq!(openapi["servers"], json!([{ "url": service.base_url }]));
    let text = String::from_utf8(answer.bytes)
        .expect("UTF-8")
        .replace(&service.base_url, "[base URL]");
    let redacted: Value = serde_json::from_str(&text).expect("JSON");
    insta::assert_json_snapshot!("openapi", redacted);
}

#[tokio::test]
async fn every_reference_in_the_openapi_document_resolves() {
    let openapi = document(Service::shared(), "/openapi.json").await.json();
    let references = references(&openapi);
    assert!(
        references.contains(&"#/components/schemas/Error"),
        "{references:?}"
    );
    for reference in references {
        let pointer = reference
            .strip_prefix('#')
            .unwrap_or_else(|| panic!("{reference} leaves the document"));
        assert!(
            openapi.pointer(pointer).is_some(),
            "{reference} leads nowhere"
        );
    }
}

fn references(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str);
            own.into_iter()
                .chain(members.values().flat_map(references))
                .collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

#[tokio::test]
async fn every_declared_route_answers_its_examples_as_declared() {
    let service = product().await;
    let openapi = document(&service, "/openapi.json").await.json();
    let mut routes = Vec::new();
    for (path, methods) in openapi["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            try_route(&service, &openapi, path, method, operation).await;
            routes.push(format!("{method} {path}"));
        }
    }
    routes.sort_unstable();
    let expected = [
        "delete /api/v1/web/crawls/{id}",
        "get /api/v1/tools/bank-qr/banks",
        "get /api/v1/web/crawls/{id}",
        "post /api/v1/domain/dns",
        "post /api/v1/domain/whois",
        "post /api/v1/ip-info/{ip}",
        "post /api/v1/oembed/resolve",
        "post /api/v1/tools/bank-qr",
        "post /api/v1/web/crawls",
        "post /api/v1/web/map",
        "post /api/v1/web/scrape",
        "post /api/v1/web/search",
    ];
    assert_eq!(routes, expected);
}

/// Sends a route's examples with a key that has the declared scope alone, and looks at the answers with the declared schemas.
async fn try_route(
    service: &Service,
    openapi: &Value,
    path: &str,
    method: &str,
    operation: &Value,
) {
    let scope = operation["security"][0]["apiKey"][0]
        .as_str()
        .expect("a scope");
    assert_eq!(operation["security"][1]["bearer"][0], scope);
    let key = service.issue(&["--scope", scope]);
    // What is asked about by an id was made by a call of its own.
    let is_unknown = path.contains("{id}");
    let path = &*path
        .replace("{ip}", "8.8.8.8")
        .replace("{id}", "0b6f3f0a-6c0e-4f3c-9d0b-5d1b8b6f7a21");
    let method: Method = method.to_uppercase().parse().expect("a method");
    let bodies: Vec<Option<&Value>> =
        match operation.pointer("/requestBody/content/application~1json/examples") {
            Some(examples) => examples
                .as_object()
                .expect("examples")
                .values()
                .map(|one| Some(&one["value"]))
                .collect(),
            None => vec![None],
        };
    for body in bodies {
        let mut request = service
            .bare(method.clone(), path)
            .header("x-service-api-key", &key);
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = Service::send(request).await;
        if is_unknown {
            assert_eq!(
                answer.refusal(),
                (404, "NOT_FOUND".to_owned()),
                "{method} {path}"
            );
            continue;
        }
        assert!([200, 202].contains(&answer.status), "{method} {path}");
        documented(openapi, operation, &answer);
    }
    for status in [400, 401, 403, 408, 413, 415, 429, 500, 503] {
        assert!(
            operation["responses"].get(status.to_string()).is_some(),
            "{method} {path} {status}"
        );
    }
    documented(
        openapi,
        operation,
        &Service::send(service.bare(method.clone(), path)).await,
    );
    documented(
        openapi,
        operation,
        &Service::send(service.request(method, &format!("{path}?surprise=1"))).await,
    );
}

#[tokio::test]
async fn the_openapi_document_names_what_every_response_carries() {
    let openapi = document(Service::shared(), "/openapi.json").await.json();
    let declared = openapi["components"]["headers"]
        .as_object()
        .expect("headers");
    let answer = Service::shared().get("/api/v1/tools/bank-qr/banks").await;
    for name in ["X-Request-Id", "Server-Timing", "ETag"] {
        assert!(
            declared.contains_key(name) && answer.headers.contains_key(name),
            "{name}"
        );
    }
    let limited = Service::shared().issue(&["--all-scopes", "--per-minute", "60"]);
    let request = Service::shared()
        .bare(Method::GET, "/api/v1/tools/bank-qr/banks")
        .bearer_auth(limited);
    let answer = Service::send(request).await;
    for name in answer
        .headers
        .keys()
        .filter(|name| name.as_str().starts_with("x-apikey-"))
    {
        assert!(
            declared
                .keys()
                .any(|declared| declared.eq_ignore_ascii_case(name.as_str())),
            "{name}"
        );
    }
    assert!(answer.headers.contains_key("x-apikey-ratelimit-limit"));
}

#[tokio::test]
async fn every_command_of_the_developer_guide_runs_as_it_stands_and_again() {
    let service = product().await;
    let guide = document(&service, "/developer-guide").await;
    assert_eq!(guide.status, 200);
    let text = String::from_utf8(guide.bytes).expect("UTF-8");
    let blocks = Regex::new("(?ms)^```sh\n(.*?)^```$").unwrap();
    let commands: Vec<&str> = blocks
        .captures_iter(&text)
        .map(|block| block.get(1).expect("the block's text").as_str())
        .collect();
    assert_eq!(
        commands.len(),
        16,
        "the directory, two codes, six lookups, a post, a page, a site, a crawl, its read and its end, and a search:\n{text}"
    );
    ensure(&[("curl", "curl")]);
    // The crawl's window is for two a minute.
    let key = service.issue(&["--all-scopes", "--window", "web-data.start_crawl=600"]);
    let endless = json!({ "url": "http://example.com/never", "requestId": "0b6f3f0a-6c0e-4f3c-9d0b-5d1b8b6f7a22" });
    let start = service
        .bare(Method::POST, "/api/v1/web/crawls")
        .bearer_auth(&key)
        .json(&endless);
    let started = Service::send(start).await.json();
    let id = started["data"]["id"]
        .as_str()
        .unwrap_or_else(|| panic!("the page never comes: {started}"));
    for command in commands.iter().flat_map(|command| [command, command]) {
        let done = Command::new("sh")
            .args(["-c", command])
            .env("SWITCHBAY_KEY", &key)
            .env("ID", id)
            .output();
        let done = done.expect("sh runs");
        assert!(
            done.status.success(),
            "{command}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        let answer: Value = serde_json::from_slice(&done.stdout).expect("JSON");
        assert_eq!(answer["success"], true, "{command}: {answer}");
    }
}

#[tokio::test]
async fn the_developer_guide_tells_every_route_with_its_scope_and_fields() {
    let openapi = document(Service::shared(), "/openapi.json").await.json();
    let guide = document(Service::shared(), "/developer-guide").await;
    let text = String::from_utf8(guide.bytes).expect("UTF-8");
    for (path, methods) in openapi["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let scope = operation["security"][0]["apiKey"][0]
                .as_str()
                .expect("a scope");
            let line = format!("`{} {path}`, scope `{scope}`", method.to_uppercase());
            assert!(text.lines().any(|one| one == line), "{line}");
        }
    }
    for row in [
        "| bank | string | yes |  | 2 to 64 characters |",
        "| accountNumber | string | yes |  | `^[0-9]{6,19}$` |",
        "| amount | integer | no |  | 1 to 9999999999999 |",
        "| memo | string | no |  | at most 200 characters |",
        "| imageSize | integer | no | `320` | 160 to 1024 |",
        "| 401 | UNAUTHORIZED |",
        "| 413 | PAYLOAD_TOO_LARGE |",
        "| 429 | RATE_LIMITED |",
    ] {
        assert!(
            text.lines().any(|line| line.starts_with(row)),
            "{row}\n{text}"
        );
    }
}

#[tokio::test]
async fn a_document_needs_no_credential_and_any_page_may_read_it() {
    let service = Service::shared();
    for (path, media_type) in DOCUMENTS {
        let answer = document(service, path).await;
        let etag = answer.header("etag").to_owned();
        check_document(&answer, (200, media_type), &etag);
        assert!(!answer.bytes.is_empty(), "{path}");
        let strong = etag.trim_start_matches("W/");
        for (condition, expected) in [
            (etag.as_str(), 304),
            (strong, 304),
            ("*", 304),
            (&format!("\"x\", {etag}"), 304),
            ("\"x\"", 200),
            ("W/\"x\", \"y\"", 200),
        ] {
            let request = service
                .bare(Method::GET, path)
                .header("if-none-match", condition);
            let answer = Service::send(request.header("origin", "https://docs.example.com")).await;
            check_document(&answer, (expected, media_type), &etag);
            assert_eq!(
                answer.bytes.is_empty(),
                expected == 304,
                "{path} {condition}"
            );
        }
    }
}

fn check_document(answer: &Answer, expected: (u16, &str), etag: &str) {
    assert_eq!((answer.status, answer.header("content-type")), expected);
    assert_eq!(answer.header("etag"), etag);
    assert_eq!(answer.header("access-control-allow-origin"), "*");
    assert!(
        answer
            .header("cache-control")
            .starts_with("public, max-age="),
        "{}",
        answer.header("cache-control")
    );
    assert_eq!(answer.header("x-request-id").len(), 36);
}

#[tokio::test]
async fn an_operation_is_not_for_any_page() {
    let service = Service::shared();
    let request = service
        .request(Method::GET, "/api/v1/tools/bank-qr/banks")
        .header("origin", "https://example.com");
    let answer = Service::send(request).await;
    assert_eq!(
        (
            answer.status,
            answer.headers.get("access-control-allow-origin")
        ),
        (200, None)
    );
}

#[tokio::test]
async fn health_and_readiness_answer_without_a_credential() {
    let service = product().await;
    let plugins = [
        "bank-qr",
        "domain-dns",
        "domain-whois",
        "oembed",
        "ip-info",
        "web-data",
    ]
    .map(|name| json!({ "name": name, "version": "0.1.0" }));
    let ready = json!({ "status": "ready", "plugins": plugins });
    for (path, expected) in [("/healthz", json!({ "status": "ok" })), ("/readyz", ready)] {
        let answer = document(&service, path).await;
        assert_eq!((answer.status, answer.json()), (200, expected), "{path}");
        assert_eq!(answer.header("content-type"), "application/json", "{path}");
        assert_eq!(
            answer.header("cache-control"),
            "private, no-store",
            "{path}"
        );
    }
}
