//! The OpenAPI document against what the service answers: every status, header and code that comes stands in it, and what
//! stands in it can come.

mod guide;
mod refusals;
mod schemas;

use reqwest::Method;
use serde_json::{Value, json};

use crate::discovery::{document, product};
use crate::support::{Answer, Metered, Service};

/// Headers of HTTP itself, or of all answers of any service.
const OF_HTTP: [&str; 6] = [
    "content-type",
    "content-length",
    "content-encoding",
    "date",
    "vary",
    "x-content-type-options",
];

/// Looks an answer up among an operation's declared responses: its status, its headers, its code and its body.
pub(crate) fn documented(openapi: &Value, operation: &Value, answer: &Answer) {
    let response = resolved(openapi, &operation["responses"][answer.status.to_string()]);
    assert!(
        response.is_object(),
        "{} is not declared: {answer:?}",
        answer.status
    );
    let declared: Vec<String> = headers(response)
        .iter()
        .map(|name| name.to_ascii_lowercase())
        .collect();
    for name in answer
        .headers
        .keys()
        .map(reqwest::header::HeaderName::as_str)
    {
        let is_known = OF_HTTP.contains(&name) || declared.iter().any(|declared| declared == name);
        assert!(
            is_known,
            "{name} is not declared with {}: {answer:?}",
            answer.status
        );
    }
    if let Some(schema) = response.pointer("/content/application~1json/schema") {
        let mut schema = schema.clone();
        schema["components"] = openapi["components"].clone();
        fits(&schema, &answer.json());
    }
    if answer.status >= 400 {
        let message = answer.json()["error"]["message"]
            .as_str()
            .expect("a message")
            .to_owned();
        let first = message.chars().next().unwrap_or_default();
        assert!(
            !first.is_lowercase() && !message.ends_with('.'),
            "no sentence: {message}"
        );
    }
}

fn resolved<'d>(openapi: &'d Value, response: &'d Value) -> &'d Value {
    match response["$ref"].as_str() {
        Some(reference) => openapi
            .pointer(reference.trim_start_matches('#'))
            .expect("it resolves"),
        None => response,
    }
}

fn headers(response: &Value) -> Vec<&String> {
    response["headers"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
        .collect()
}

fn fits(schema: &Value, instance: &Value) {
    let validator = jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .should_validate_formats(true);
    let validator = validator.build(schema).expect("a schema of 2020-12");
    let broken: Vec<String> = validator
        .iter_errors(instance)
        .map(|error| error.to_string())
        .collect();
    assert!(broken.is_empty(), "{broken:?} in {instance}");
}

async fn openapi_of(service: &Service) -> Value {
    document(service, "/openapi.json").await.json()
}

/// The codes that an operation may answer with this status.
fn codes(openapi: &Value, operation: &Value, status: u16) -> Vec<String> {
    let response = resolved(openapi, &operation["responses"][status.to_string()]);
    let schema = "/content/application~1json/schema/allOf/1/properties/error/properties/code/enum";
    let codes = response
        .pointer(schema)
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    codes
        .iter()
        .map(|code| code.as_str().expect("a code").to_owned())
        .collect()
}

/// The declared refusals, as `409 CODE`.
fn all_codes(openapi: &Value, operation: &Value) -> Vec<String> {
    (400..600)
        .flat_map(|status| {
            codes(openapi, operation, status)
                .into_iter()
                .map(move |c| format!("{status} {c}"))
        })
        .collect()
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
    let answer = Service::send(
        service
            .request(Method::GET, path)
            .header("if-none-match", "*"),
    )
    .await;
    assert_eq!(answer.status, 304);
    documented(&openapi, operation, &answer);
    let named = json!({ "$ref": "#/components/parameters/If-None-Match" });
    assert!(
        operation["parameters"]
            .as_array()
            .is_some_and(|all| all.contains(&named)),
        "{operation}"
    );
    assert_eq!(
        openapi["components"]["parameters"]["If-None-Match"]["in"],
        "header"
    );
}

#[tokio::test]
async fn use_without_a_credential_is_documented_where_there_is_an_allowance() {
    let openapi = openapi_of(&Metered::shared().await.service).await;
    let security =
        |name: &str| openapi["paths"][format!("/api/v1/test/{name}")]["post"]["security"].clone();
    let scopes = json!(["test:metered"]);
    assert_eq!(
        security("plain"),
        json!([{ "apiKey": scopes }, { "bearer": scopes }])
    );
    assert_eq!(
        security("open"),
        json!([{ "apiKey": scopes }, { "bearer": scopes }, {}])
    );
    let answered = |name: &str| {
        let response =
            &openapi["paths"][format!("/api/v1/test/{name}")]["post"]["responses"]["200"];
        headers(response)
            .iter()
            .any(|header| *header == "X-RateLimit-Limit")
    };
    assert_eq!((answered("plain"), answered("open")), (false, true));
}

#[tokio::test]
async fn no_public_text_speaks_of_what_its_reader_cannot_see() {
    let service = product().await;
    let tools = service
        .mcp(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }))
        .await;
    let texts = [
        document(&service, "/openapi.json").await,
        document(&service, "/developer-guide").await,
        tools,
    ];
    let spoken =
        regex_lite::Regex::new(r"(?i)\b(the|this|our|a) spec(s|'s|ification)?\b|\bdecisions\b")
            .expect("a pattern");
    for answer in texts {
        let text = String::from_utf8(answer.bytes).expect("UTF-8");
        let found: Vec<&str> = spoken
            .find_iter(&text)
            .map(|found| found.as_str())
            .collect();
        assert!(found.is_empty(), "{found:?}");
    }
}
