//! Schemas: what they bound, what they say of defaults and formats, and what they let through.

use serde_json::{Value, json};

use super::{documented, openapi_of};
use crate::discovery::product;
use crate::support::{Options, Service, built, describing, good};

const URL: &str = r#"{"minLength":1,"maxLength":2048,"format":"uri"}"#;

/// Path, name of an argument, and what its schema says of it.
const ARGUMENTS: [(&str, &str, &str); 15] = [
    ("/api/v1/oembed/resolve", "url", URL),
    ("/api/v1/web/scrape", "url", URL),
    ("/api/v1/web/map", "url", URL),
    ("/api/v1/web/crawls", "url", URL),
    (
        "/api/v1/web/search",
        "query",
        r#"{"minLength":1,"maxLength":1000}"#,
    ),
    (
        "/api/v1/web/search",
        "limit",
        r#"{"minimum":1,"maximum":10,"default":5}"#,
    ),
    (
        "/api/v1/web/map",
        "limit",
        r#"{"minimum":1,"maximum":100,"default":20}"#,
    ),
    (
        "/api/v1/web/crawls",
        "limit",
        r#"{"minimum":1,"maximum":20,"default":10}"#,
    ),
    (
        "/api/v1/web/crawls",
        "maxDepth",
        r#"{"minimum":1,"maximum":3,"default":1}"#,
    ),
    ("/api/v1/web/crawls", "requestId", r#"{"format":"uuid"}"#),
    (
        "/api/v1/domain/dns",
        "domain",
        r#"{"minLength":1,"maxLength":253,"format":"idn-hostname"}"#,
    ),
    (
        "/api/v1/domain/dns",
        "provider",
        r#"{"default":"cloudflare"}"#,
    ),
    (
        "/api/v1/domain/whois",
        "domain",
        r#"{"minLength":1,"maxLength":2048}"#,
    ),
    (
        "/api/v1/domain/whois",
        "forceRefresh",
        r#"{"default":false}"#,
    ),
    (
        "/api/v1/tools/bank-qr",
        "imageSize",
        r#"{"minimum":160,"maximum":1024,"default":320}"#,
    ),
];

#[tokio::test]
async fn bounds_and_defaults_of_arguments_are_documented() {
    let openapi = openapi_of(&product().await).await;
    for (path, name, expected) in ARGUMENTS {
        let schema = "/requestBody/content/application~1json/schema/properties";
        let arguments = openapi["paths"][path]["post"].pointer(schema);
        let schema = &arguments.expect("arguments")[name];
        let expected: Value = serde_json::from_str(expected).expect("JSON");
        for (keyword, value) in expected.as_object().expect("keywords") {
            assert_eq!(&schema[keyword], value, "{path} {name} {keyword}");
        }
    }
}

/// Path, method, place within the data of a success, and its format.
const FORMATS: [(&str, &str, &str, &str); 13] = [
    (
        "/api/v1/tools/bank-qr/banks",
        "get",
        "updatedAt",
        "date-time",
    ),
    (
        "/api/v1/tools/bank-qr/banks",
        "get",
        "banks/items/properties/logoUrl",
        "uri",
    ),
    (
        "/api/v1/tools/bank-qr",
        "post",
        "qr/properties/image/properties/dataUrl",
        "uri",
    ),
    (
        "/api/v1/ip-info/{ip}",
        "post",
        "timezone/properties/localTime",
        "date-time",
    ),
    (
        "/api/v1/ip-info/{ip}",
        "post",
        "sources/items/properties/builtAt",
        "date-time",
    ),
    (
        "/api/v1/web/scrape",
        "post",
        "document/properties/url",
        "uri",
    ),
    (
        "/api/v1/web/search",
        "post",
        "results/items/properties/url",
        "uri",
    ),
    ("/api/v1/web/map", "post", "url", "uri"),
    (
        "/api/v1/web/map",
        "post",
        "links/items/properties/url",
        "uri",
    ),
    ("/api/v1/web/crawls/{id}", "get", "id", "uuid"),
    ("/api/v1/web/crawls/{id}", "get", "expiresAt", "date-time"),
    ("/api/v1/web/crawls/{id}", "delete", "id", "uuid"),
    ("/api/v1/oembed/resolve", "post", "originalUrl", "uri"),
];

#[tokio::test]
async fn formats_of_what_is_answered_are_documented() {
    let openapi = openapi_of(&product().await).await;
    let data = "/responses/200/content/application~1json/schema/properties/data/properties/";
    for (path, method, at, format) in FORMATS {
        let found = openapi["paths"][path][method].pointer(&format!("{data}{at}/format"));
        let found = found.unwrap_or_else(|| panic!("{path} {at}"));
        assert_eq!(found, format, "{path} {at}");
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
        let body =
            json!({ "url": url, "requestId": format!("0b6f3f0a-6c0e-4f3c-9d0b-5d1b8b6f7a{id}") });
        service.post(path, &body).await
    };
    let over = start("http://example.com/", 31).await;
    let goes_on = start("http://example.com/never", 32).await;
    assert_eq!((over.status, goes_on.status), (200, 202));
    for (answer, other) in [(&over, 202), (&goes_on, 200)] {
        documented(&openapi, operation, answer);
        let validator = jsonschema::draft202012::new(&schema(other)).expect("a schema");
        assert!(
            !validator.is_valid(&answer.json()),
            "the schema of {other} takes {}",
            answer.json()
        );
    }
    let read = service
        .get(&format!(
            "{path}/{}",
            goes_on.json()["data"]["id"].as_str().expect("an id")
        ))
        .await;
    assert_eq!(read.status, 200);
    documented(
        &openapi,
        &openapi["paths"][format!("{path}/{{id}}")]["get"],
        &read,
    );
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
    std::fs::write(&component, describing(&description.to_string()))
        .expect("the component is written");
    let manifest = folder.path().join("plugin-manifest.toml");
    std::fs::write(
        &manifest,
        format!("[[plugin]]\nname = \"describes\"\nsource = {component:?}\n"),
    )
    .expect("written");
    // The data folder is the same, so that it lives as long as the service.
    Service::start(Options {
        manifest: Some(manifest),
        data: Some(folder),
        ..Options::default()
    })
    .await
}

#[tokio::test]
async fn what_an_operation_judges_itself_is_published_and_not_enforced() {
    let service = describing_itself(&[("/operations/0/judges", json!(["colour"]))]).await;
    let openapi = openapi_of(&service).await;
    let operation = &openapi["paths"]["/api/v1/test/describes"]["get"];
    assert_eq!(operation["parameters"][0]["schema"]["maxLength"], 5);
    assert_eq!(
        service
            .get("/api/v1/test/describes?colour=burgundy")
            .await
            .status,
        200
    );
    let enforced = describing_itself(&[]).await;
    assert_eq!(
        enforced
            .get("/api/v1/test/describes?colour=burgundy")
            .await
            .status,
        400
    );
}

#[tokio::test]
async fn a_reply_that_is_wider_than_its_outcome_is_a_failure_of_ours() {
    let narrowed =
        |value: bool| json!({ "ok": { "served": { "type": "boolean", "enum": [value] } } });
    for (value, status) in [(true, 200), (false, 500)] {
        let service = describing_itself(&[("/operations/0/rest/narrowed", narrowed(value))]).await;
        // The second answer is one that was checked before.
        for _ in 0..2 {
            assert_eq!(service.get("/api/v1/test/describes").await.status, status);
        }
    }
}
