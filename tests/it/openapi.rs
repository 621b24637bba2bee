//! The OpenAPI document against what the service answers: every status, header and code that comes stands in it, and what
//! stands in it can come.

use reqwest::Method;
use serde_json::{Value, json};

use crate::discovery::{document, product};
use crate::support::{Answer, Metered, Options, Service, built, describing, good, in_one_minute};

/// Headers of HTTP itself, or of all answers of any service.
const OF_HTTP: [&str; 6] =
    ["content-type", "content-length", "content-encoding", "date", "vary", "x-content-type-options"];

/// Looks an answer up among an operation's declared responses: its status, its headers, its code and its body.
pub(crate) fn documented(openapi: &Value, operation: &Value, answer: &Answer) {
    let response = resolved(openapi, &operation["responses"][answer.status.to_string()]);
    assert!(response.is_object(), "{} is not declared: {answer:?}", answer.status);
    let declared: Vec<String> = headers(response).iter().map(|name| name.to_ascii_lowercase()).collect();
    for name in answer.headers.keys().map(reqwest::header::HeaderName::as_str) {
        let is_known = OF_HTTP.contains(&name) || declared.iter().any(|declared| declared == name);
        assert!(is_known, "{name} is not declared with {}: {answer:?}", answer.status);
    }
    if let Some(schema) = response.pointer("/content/application~1json/schema") {
        let mut schema = schema.clone();
        schema["components"] = openapi["components"].clone();
        fits(&schema, &answer.json());
    }
    if answer.status >= 400 {
        let message = answer.json()["error"]["message"].as_str().expect("a message").to_owned();
        let first = message.chars().next().unwrap_or_default();
        assert!(!first.is_lowercase() && !message.ends_with('.'), "no sentence: {message}");
    }
}

fn resolved<'d>(openapi: &'d Value, response: &'d Value) -> &'d Value {
    match response["$ref"].as_str() {
        Some(reference) => openapi.pointer(reference.trim_start_matches('#')).expect("it resolves"),
        None => response,
    }
}

fn headers(response: &Value) -> Vec<&String> {
    response["headers"].as_object().into_iter().flatten().map(|(name, _)| name).collect()
}

fn fits(schema: &Value, instance: &Value) {
    let validator = jsonschema::options().with_draft(jsonschema::Draft::Draft202012).should_validate_formats(true);
    let validator = validator.build(schema).expect("a schema of 2020-12");
    let broken: Vec<String> = validator.iter_errors(instance).map(|error| error.to_string()).collect();
    assert!(broken.is_empty(), "{broken:?} in {instance}");
}

async fn openapi_of(service: &Service) -> Value {
    document(service, "/openapi.json").await.json()
}

/// The codes that an operation may answer with this status.
fn codes(openapi: &Value, operation: &Value, status: u16) -> Vec<String> {
    let response = resolved(openapi, &operation["responses"][status.to_string()]);
    let schema = "/content/application~1json/schema/allOf/1/properties/error/properties/code/enum";
    let codes = response.pointer(schema).and_then(Value::as_array).cloned().unwrap_or_default();
    codes.iter().map(|code| code.as_str().expect("a code").to_owned()).collect()
}

/// The declared refusals, as `409 CODE`.
fn all_codes(openapi: &Value, operation: &Value) -> Vec<String> {
    (400..600)
        .flat_map(|status| codes(openapi, operation, status).into_iter().map(move |c| format!("{status} {c}")))
        .collect()
}

async fn send(service: &Service, key: &str, path: &str, body: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = service.bare(Method::POST, path).bearer_auth(key).body(body.to_owned());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Service::send(request).await
}

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn every_refusal_comes_as_it_is_documented() {
    let metered = Metered::start("[limits]\nbody_ms = 1000\n[credits]\nconcurrency = 1\n", None).await;
    let service = &metered.service;
    let openapi = openapi_of(service).await;
    let path = |name: &str| format!("/api/v1/test/{name}");
    let check = |name: &str, answer: &Answer, expected: (u16, &str)| {
        assert_eq!(answer.refusal(), (expected.0, expected.1.to_owned()));
        documented(&openapi, &openapi["paths"][path(name)]["post"], answer);
    };
    let plain = path("plain");
    let key = service.key();
    check("plain", &send(service, key, &plain, "{", &[JSON]).await, (400, "VALIDATION_ERROR"));
    check("plain", &send(service, "nonsense", &plain, "{}", &[JSON]).await, (401, "UNAUTHORIZED"));
    let narrow = service.issue(&["--scope", "bank-qr:banks"]);
    check("plain", &send(service, &narrow, &plain, "{}", &[JSON]).await, (403, "FORBIDDEN"));
    let large = format!("{{{}}}", " ".repeat(20_000));
    check("plain", &send(service, key, &plain, &large, &[JSON]).await, (413, "PAYLOAD_TOO_LARGE"));
    check("plain", &send(service, key, &plain, "{}", &[]).await, (415, "UNSUPPORTED_MEDIA_TYPE"));
    check("plain", &send(service, key, &plain, r#"{"how":"fail"}"#, &[JSON]).await, (418, "TEAPOT"));
    check("plain", &send(service, key, &plain, r#"{"how":"trap"}"#, &[JSON]).await, (500, "INTERNAL_ERROR"));
    let late = send(service, key, &path("brief"), r#"{"wait_ms":5000}"#, &[JSON]).await;
    check("brief", &late, (504, "UPSTREAM_TIMEOUT"));

    let account = metered.account(json!({ "entitlement": { "plan": "paid", "creditsPerMonth": 4 } })).await;
    let paying = metered.key(json!({ "account": account })).await;
    let named = [JSON, ("idempotency-key", "once")];
    let paid = send(service, &paying, &path("costly"), "{}", &named).await;
    documented(&openapi, &openapi["paths"][path("costly")]["post"], &paid);
    assert_eq!((paid.status, paid.header("x-apikey-credit-cost")), (200, "4"));
    let again = send(service, &paying, &path("costly"), "{}", &named).await;
    check("costly", &again, (409, "USAGE_RESERVATION_CONFLICT"));
    let poor = send(service, &paying, &path("costly"), "{}", &[JSON]).await;
    check("costly", &poor, (429, "API_CREDITS_EXCEEDED"));
    let monthly = service.issue(&["--all-scopes", "--per-month", "1"]);
    assert_eq!(send(service, &monthly, &plain, "{}", &[JSON]).await.status, 200);
    check("plain", &send(service, &monthly, &plain, "{}", &[JSON]).await, (429, "MONTHLY_QUOTA_EXCEEDED"));

    let (_, limited) = in_one_minute(async || {
        let key = service.issue(&["--all-scopes", "--per-minute", "1"]);
        send(service, &key, &plain, "{}", &[JSON]).await;
        send(service, &key, &plain, "{}", &[JSON]).await
    })
    .await;
    check("plain", &limited, (429, "RATE_LIMITED"));

    let disabled =
        service.admin(Method::POST, "/admin/v1/plugins/metered/disable", Some(&json!({ "why": "a test" }))).await;
    assert_eq!(disabled.status, 200, "{disabled:?}");
    check("plain", &send(service, key, &plain, "{}", &[JSON]).await, (503, "SERVICE_UNAVAILABLE"));
}

#[tokio::test]
async fn a_body_of_a_wrong_type_is_documented_for_every_method() {
    let service = Service::shared();
    let openapi = openapi_of(service).await;
    let path = "/api/v1/tools/bank-qr/banks";
    let answer = Service::send(service.request(Method::GET, path).body("text")).await;
    assert_eq!(answer.refusal(), (415, "UNSUPPORTED_MEDIA_TYPE".to_owned()));
    documented(&openapi, &openapi["paths"][path]["get"], &answer);
}

#[tokio::test]
async fn what_is_unchanged_is_documented() {
    let service = Service::shared();
    let openapi = openapi_of(service).await;
    let path = "/api/v1/tools/bank-qr/banks";
    let operation = &openapi["paths"][path]["get"];
    let answer = Service::send(service.request(Method::GET, path).header("if-none-match", "*")).await;
    assert_eq!(answer.status, 304);
    documented(&openapi, operation, &answer);
    let named = json!({ "$ref": "#/components/parameters/If-None-Match" });
    assert!(operation["parameters"].as_array().is_some_and(|all| all.contains(&named)), "{operation}");
    assert_eq!(openapi["components"]["parameters"]["If-None-Match"]["in"], "header");
}

#[tokio::test]
async fn only_codes_that_can_come_are_documented() {
    let metered = Metered::shared().await;
    let openapi = openapi_of(&metered.service).await;
    let of = |name: &str| all_codes(&openapi, &openapi["paths"][format!("/api/v1/test/{name}")]["post"]);
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
        let mut all: Vec<String> = common.iter().chain(more).map(|code| (*code).to_owned()).collect();
        all.sort_by_key(|code| code[..3].to_owned());
        all
    };
    let sorted = |mut codes: Vec<String>, mut expected: Vec<String>| {
        codes.sort();
        expected.sort();
        assert_eq!(codes, expected);
    };
    let by_key = ["409 USAGE_RESERVATION_CONFLICT", "409 USAGE_RESERVATION_EXPIRED"];
    let month = ["429 MONTHLY_QUOTA_EXCEEDED"];
    let at_once = ["429 USAGE_CONCURRENCY_EXCEEDED"];
    let credits = ["429 API_CREDITS_EXCEEDED"];
    sorted(of("plain"), with(&[&by_key[..], &month, &at_once, &credits].concat()));
    sorted(of("started"), with(&[&month[..], &at_once, &credits].concat()));
    sorted(of("unmetered"), with(&[&by_key[..], &at_once].concat()));

    let service = product().await;
    let openapi = openapi_of(&service).await;
    let of = |path: &str| all_codes(&openapi, &openapi["paths"][path]["post"]);
    let crawl = of("/api/v1/web/crawls");
    assert!(crawl.contains(&"409 DUPLICATE_REQUEST".to_owned()), "{crawl:?}");
    assert!(!crawl.iter().any(|code| code.contains("USAGE_RESERVATION")), "{crawl:?}");
    let oembed = of("/api/v1/oembed/resolve");
    assert!(oembed.contains(&"504 OEMBED_UPSTREAM_TIMEOUT".to_owned()), "{oembed:?}");
    assert!(!oembed.contains(&"504 UPSTREAM_TIMEOUT".to_owned()), "{oembed:?}");
}

#[tokio::test]
async fn use_without_a_credential_is_documented_where_there_is_an_allowance() {
    let openapi = openapi_of(&Metered::shared().await.service).await;
    let security = |name: &str| openapi["paths"][format!("/api/v1/test/{name}")]["post"]["security"].clone();
    let scopes = json!(["test:metered"]);
    assert_eq!(security("plain"), json!([{ "apiKey": scopes }, { "bearer": scopes }]));
    assert_eq!(security("open"), json!([{ "apiKey": scopes }, { "bearer": scopes }, {}]));
    let answered = |name: &str| {
        let response = &openapi["paths"][format!("/api/v1/test/{name}")]["post"]["responses"]["200"];
        headers(response).iter().any(|header| *header == "X-RateLimit-Limit")
    };
    assert_eq!((answered("plain"), answered("open")), (false, true));
}

#[tokio::test]
async fn bounds_defaults_and_formats_are_documented() {
    let service = product().await;
    let openapi = openapi_of(&service).await;
    let argument = |path: &str, name: &str| {
        let schema = "/requestBody/content/application~1json/schema/properties";
        openapi["paths"][path]["post"].pointer(schema).expect("arguments")[name].clone()
    };
    let url = json!({ "minLength": 1, "maxLength": 2048, "format": "uri" });
    let uuid = json!({ "format": "uuid" });
    for (path, name, expected) in [
        ("/api/v1/oembed/resolve", "url", &url),
        ("/api/v1/web/scrape", "url", &url),
        ("/api/v1/web/map", "url", &url),
        ("/api/v1/web/crawls", "url", &url),
        ("/api/v1/web/search", "query", &json!({ "minLength": 1, "maxLength": 1000 })),
        ("/api/v1/web/search", "limit", &json!({ "minimum": 1, "maximum": 10, "default": 5 })),
        ("/api/v1/web/map", "limit", &json!({ "minimum": 1, "maximum": 100, "default": 20 })),
        ("/api/v1/web/crawls", "limit", &json!({ "minimum": 1, "maximum": 20, "default": 10 })),
        ("/api/v1/web/crawls", "maxDepth", &json!({ "minimum": 1, "maximum": 3, "default": 1 })),
        ("/api/v1/web/crawls", "requestId", &uuid),
        ("/api/v1/domain/dns", "domain", &json!({ "minLength": 1, "maxLength": 253, "format": "idn-hostname" })),
        ("/api/v1/domain/dns", "provider", &json!({ "default": "cloudflare" })),
        ("/api/v1/domain/whois", "domain", &json!({ "minLength": 1, "maxLength": 2048 })),
        ("/api/v1/domain/whois", "forceRefresh", &json!({ "default": false })),
        ("/api/v1/tools/bank-qr", "imageSize", &json!({ "minimum": 160, "maximum": 1024, "default": 320 })),
    ] {
        let schema = argument(path, name);
        for (keyword, value) in expected.as_object().expect("keywords") {
            assert_eq!(&schema[keyword], value, "{path} {name} {keyword}");
        }
    }
    let data = |path: &str, method: &str, at: &str| {
        let schema = "/responses/200/content/application~1json/schema/properties/data/properties/";
        let found = openapi["paths"][path][method].pointer(&format!("{schema}{at}/format"));
        found.unwrap_or_else(|| panic!("{path} {at}")).clone()
    };
    for (path, method, at, format) in [
        ("/api/v1/tools/bank-qr/banks", "get", "updatedAt", "date-time"),
        ("/api/v1/tools/bank-qr/banks", "get", "banks/items/properties/logoUrl", "uri"),
        ("/api/v1/tools/bank-qr", "post", "qr/properties/image/properties/dataUrl", "uri"),
        ("/api/v1/ip-info/{ip}", "post", "timezone/properties/localTime", "date-time"),
        ("/api/v1/ip-info/{ip}", "post", "sources/items/properties/builtAt", "date-time"),
        ("/api/v1/web/scrape", "post", "document/properties/url", "uri"),
        ("/api/v1/web/search", "post", "results/items/properties/url", "uri"),
        ("/api/v1/web/map", "post", "url", "uri"),
        ("/api/v1/web/map", "post", "links/items/properties/url", "uri"),
        ("/api/v1/web/crawls/{id}", "get", "id", "uuid"),
        ("/api/v1/web/crawls/{id}", "get", "expiresAt", "date-time"),
        ("/api/v1/web/crawls/{id}", "delete", "id", "uuid"),
        ("/api/v1/oembed/resolve", "post", "originalUrl", "uri"),
    ] {
        assert_eq!(data(path, method, at), format, "{path} {at}");
    }
}

#[tokio::test]
async fn a_crawl_that_is_over_and_one_that_goes_on_have_schemas_of_their_own() {
    let service = product().await;
    let openapi = openapi_of(&service).await;
    let path = "/api/v1/web/crawls";
    let operation = &openapi["paths"][path]["post"];
    let schema = |status: u16| {
        operation["responses"][status.to_string()]
            .pointer("/content/application~1json/schema")
            .expect("a schema")
            .clone()
    };
    let start = async |url: &str, id: u8| {
        let body = json!({ "url": url, "requestId": format!("0b6f3f0a-6c0e-4f3c-9d0b-5d1b8b6f7a{id}") });
        service.post(path, &body).await
    };
    let over = start("http://example.com/", 31).await;
    let goes_on = start("http://example.com/never", 32).await;
    assert_eq!((over.status, goes_on.status), (200, 202));
    for (answer, other) in [(&over, 202), (&goes_on, 200)] {
        documented(&openapi, operation, answer);
        let validator = jsonschema::draft202012::new(&schema(other)).expect("a schema");
        assert!(!validator.is_valid(&answer.json()), "the schema of {other} takes {}", answer.json());
    }
    let read = service.get(&format!("{path}/{}", goes_on.json()["data"]["id"].as_str().expect("an id"))).await;
    assert_eq!(read.status, 200);
    documented(&openapi, &openapi["paths"][format!("{path}/{{id}}")]["get"], &read);
}

/// A service with a guest that answers `{"served":true}` to whatever its schema lets through.
async fn describing_itself(changes: &[(&str, Value)]) -> Service {
    built("describes");
    let mut description = good("describes");
    for (at, value) in changes {
        let (parent, member) = at.rsplit_once('/').expect("a pointer");
        description.pointer_mut(parent).expect("a parent")[member] = value.clone();
    }
    let folder = std::sync::Arc::new(tempfile::TempDir::new().expect("a folder"));
    let component = folder.path().join("describes.wasm");
    std::fs::write(&component, describing(&description.to_string())).expect("the component is written");
    let manifest = folder.path().join("plugin-manifest.toml");
    std::fs::write(&manifest, format!("[[plugin]]\nname = \"describes\"\nsource = {component:?}\n")).expect("written");
    // The data folder is the same, so that it lives as long as the service.
    Service::start(Options { manifest: Some(manifest), data: Some(folder), ..Options::default() }).await
}

#[tokio::test]
async fn what_an_operation_judges_itself_is_published_and_not_enforced() {
    let service = describing_itself(&[("/operations/0/judges", json!(["colour"]))]).await;
    let openapi = openapi_of(&service).await;
    let operation = &openapi["paths"]["/api/v1/test/describes"]["get"];
    assert_eq!(operation["parameters"][0]["schema"]["maxLength"], 5);
    assert_eq!(service.get("/api/v1/test/describes?colour=burgundy").await.status, 200);
    let enforced = describing_itself(&[]).await;
    assert_eq!(enforced.get("/api/v1/test/describes?colour=burgundy").await.status, 400);
}

#[tokio::test]
async fn a_reply_that_is_wider_than_its_outcome_is_a_failure_of_ours() {
    let narrowed = |value: bool| json!({ "ok": { "served": { "type": "boolean", "enum": [value] } } });
    for (value, status) in [(true, 200), (false, 500)] {
        let service = describing_itself(&[("/operations/0/rest/narrowed", narrowed(value))]).await;
        // The second answer is one that was checked before.
        for _ in 0..2 {
            assert_eq!(service.get("/api/v1/test/describes").await.status, status);
        }
    }
}

/// The guide's text on one operation.
fn section<'g>(guide: &'g str, title: &str) -> &'g str {
    let heading = format!("\n### {title}\n");
    let (_, rest) = guide.split_once(&heading).unwrap_or_else(|| panic!("no section {title}"));
    rest.split_once("\n### ").map_or(rest, |(own, _)| own)
}

fn has_row(section: &str, begins: &str) {
    assert!(section.lines().any(|line| line.starts_with(begins)), "no row {begins}\n{section}");
}

/// Rows for the fields of a schema's objects, each once.
fn has_rows(section: &str, schema: &Value, prefix: &str) {
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        has_row(section, &format!("| {prefix}{name} | "));
        let is_told_elsewhere = section.contains("Its fields are those of");
        if !is_told_elsewhere {
            has_rows(section, schema, &format!("{prefix}{name}."));
            has_rows(section, &schema["items"], &format!("{prefix}{name}[]."));
        }
    }
}

#[tokio::test]
async fn the_developer_guide_tells_what_the_openapi_document_does() {
    let service = product().await;
    let openapi = openapi_of(&service).await;
    let guide = String::from_utf8(document(&service, "/developer-guide").await.bytes).expect("UTF-8");
    let (common, _) = guide.split_once("\n## Operations\n").expect("operations");
    for (path, methods) in openapi["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let section = section(&guide, operation["summary"].as_str().expect("a title"));
            let body = operation.pointer("/requestBody/content/application~1json/schema/properties");
            let in_body = body.and_then(Value::as_object).cloned().unwrap_or_default();
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let named = parameters.filter_map(|one| Some((one["name"].as_str()?.to_owned(), one["schema"].clone())));
            for (name, schema) in in_body.into_iter().chain(named) {
                let default = schema.get("default").map_or_else(String::new, |default| match default {
                    Value::String(text) => format!("`{text}`"),
                    other => format!("`{other}`"),
                });
                let row = section.lines().find(|line| line.starts_with(&format!("| {name} | "))).unwrap_or_default();
                assert_eq!(
                    row.split(" | ").nth(3).map(str::trim),
                    Some(default.trim()),
                    "{method} {path} {name}: {row}"
                );
            }
            let answer = operation.pointer("/responses/200/content/application~1json/schema/properties/data");
            has_rows(section, answer.expect("a schema"), "");
            for code in all_codes(&openapi, operation) {
                let (_, code) = code.split_once(' ').expect("a status and a code");
                assert!(section.contains(code) || common.contains(&format!("| {code} | ")), "{method} {path} {code}");
            }
            assert!(section.contains("\n```sh\ncurl -sS "), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn the_developer_guide_tells_what_a_call_takes_of_its_callers_limits() {
    let config = "[credits]\nconcurrency = 7\n[credits.costs.metered]\nlimited = 9\nopen = 0\n";
    let metered = Metered::start(config, None).await;
    let guide = String::from_utf8(document(&metered.service, "/developer-guide").await.bytes).expect("UTF-8");
    assert!(guide.contains("at once: 7 unless its plan"), "{guide}");
    // The operations share a title and are told by their routes.
    let limits = |name: &str| -> Vec<&str> {
        let (_, rest) = guide.split_once(&format!("\n`POST /api/v1/test/{name}`, ")).expect("a route");
        let (_, rest) = rest.split_once("\n#### Limits\n\n").expect("limits");
        rest.lines().take_while(|line| line.starts_with("- ")).map(|line| &line[2..]).collect()
    };
    let none = "no window of its own: the credential's limits alone";
    let counts = "counts toward the credential's windows and its month";
    let one = "costs 1 credit of a self-service key's account, where it succeeds";
    let key = "takes `Idempotency-Key` from self-service keys";
    let bytes = "takes at most 16384 bytes of body, or of a tool's arguments";
    let ends = "answers within 30 s, else 504 `UPSTREAM_TIMEOUT`";
    assert_eq!(limits("plain"), [none, counts, one, key, bytes, ends]);
    let three = "3 calls a minute of each credential, beside its own limits";
    let nine = "costs 9 credits of a self-service key's account, where it succeeds";
    assert_eq!(limits("limited"), [three, counts, nine, key, bytes, ends]);
    assert_eq!(limits("unmetered"), [none, "costs no credits", key, bytes, ends]);
    let named = "is done once for each `requestId`; `Idempotency-Key` is ignored";
    assert_eq!(limits("started"), [none, counts, one, named, bytes, ends]);
    let pages = "3 calls a minute of each address without a credential, from this service's own pages";
    assert_eq!(limits("open"), [none, pages, counts, "costs no credits", key, bytes, ends]);
}

#[tokio::test]
async fn no_public_text_speaks_of_what_its_reader_cannot_see() {
    let service = product().await;
    let tools = service.mcp(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })).await;
    let texts = [document(&service, "/openapi.json").await, document(&service, "/developer-guide").await, tools];
    let spoken =
        regex_lite::Regex::new(r"(?i)\b(the|this|our|a) spec(s|'s|ification)?\b|\bdecisions\b").expect("a pattern");
    for answer in texts {
        let text = String::from_utf8(answer.bytes).expect("UTF-8");
        let found: Vec<&str> = spoken.find_iter(&text).map(|found| found.as_str()).collect();
        assert!(found.is_empty(), "{found:?}");
    }
}
