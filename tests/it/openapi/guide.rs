//! The developer guide: it tells what the OpenAPI document does, and what a call takes of its caller's limits.

use serde_json::Value;

use super::{all_codes, openapi_of};
use crate::discovery::{document, product};
use crate::support::Metered;

/// The guide's text on one operation.
fn section<'g>(guide: &'g str, title: &str) -> &'g str {
    let heading = format!("\n### {title}\n");
    let (_, rest) = guide
        .split_once(&heading)
        .unwrap_or_else(|| panic!("no section {title}"));
    rest.split_once("\n### ").map_or(rest, |(own, _)| own)
}

fn has_row(section: &str, begins: &str) {
    assert!(
        section.lines().any(|line| line.starts_with(begins)),
        "no row {begins}\n{section}"
    );
}

/// Rows for the fields of a schema's objects, each once.
fn has_rows(section: &str, schema: &Value, prefix: &str) {
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        has_row(section, &format!("| {prefix}{name} | "));
        let is_told_elsewhere = section.contains("Same fields as");
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
    let guide =
        String::from_utf8(document(&service, "/developer-guide").await.bytes).expect("UTF-8");
    let (common, _) = guide.split_once("\n## Operations\n").expect("operations");
    for (path, methods) in openapi["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let section = section(&guide, operation["summary"].as_str().expect("a title"));
            let body =
                operation.pointer("/requestBody/content/application~1json/schema/properties");
            let in_body = body.and_then(Value::as_object).cloned().unwrap_or_default();
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let named = parameters
                .filter_map(|one| Some((one["name"].as_str()?.to_owned(), one["schema"].clone())));
            for (name, schema) in in_body.into_iter().chain(named) {
                let default =
                    schema
                        .get("default")
                        .map_or_else(String::new, |default| match default {
                            Value::String(text) => format!("`{text}`"),
                            other => format!("`{other}`"),
                        });
                let row = section
                    .lines()
                    .find(|line| line.starts_with(&format!("| {name} | ")))
                    .unwrap_or_default();
                assert_eq!(
                    row.split(" | ").nth(3).map(str::trim),
                    Some(default.trim()),
                    "{method} {path} {name}: {row}"
                );
            }
            let answer = operation
                .pointer("/responses/200/content/application~1json/schema/properties/data");
            has_rows(section, answer.expect("a schema"), "");
            for code in all_codes(&openapi, operation) {
                let (_, code) = code.split_once(' ').expect("a status and a code");
                assert!(
                    section.contains(code) || common.contains(&format!("| {code} | ")),
                    "{method} {path} {code}"
                );
            }
            assert!(section.contains("\n```sh\ncurl -sS "), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn the_developer_guide_tells_what_a_call_takes_of_its_callers_limits() {
    let config = "[credits]\nconcurrency = 7\n[credits.costs.metered]\nlimited = 9\nopen = 0\n";
    let metered = Metered::start(config, None).await;
    let guide = String::from_utf8(document(&metered.service, "/developer-guide").await.bytes)
        .expect("UTF-8");
    assert!(guide.contains("at once: 7 unless the account"), "{guide}");
    // The operations share a title and are told by their routes.
    let limits = |name: &str| -> Vec<&str> {
        let (_, rest) = guide
            .split_once(&format!("\n`POST /api/v1/test/{name}`, "))
            .expect("a route");
        let (_, rest) = rest.split_once("\n#### Limits\n\n").expect("limits");
        rest.lines()
            .take_while(|line| line.starts_with("- "))
            .map(|line| &line[2..])
            .collect()
    };
    let none = "no window of its own: only the credential's limits apply";
    let counts = "counts toward the credential's windows and its month";
    let one = "costs 1 credit of a self-service key's account if it succeeds";
    let key = "accepts `Idempotency-Key` from self-service keys";
    let bytes = "accepts at most 16384 bytes in a body, or in a tool's arguments";
    let ends = "responds within 30 s, or with 504 `UPSTREAM_TIMEOUT`";
    assert_eq!(limits("plain"), [none, counts, one, key, bytes, ends]);
    let three = "3 calls per minute for each credential, in addition to its own limits";
    let nine = "costs 9 credits of a self-service key's account if it succeeds";
    assert_eq!(limits("limited"), [three, counts, nine, key, bytes, ends]);
    assert_eq!(
        limits("unmetered"),
        [none, "costs no credits", key, bytes, ends]
    );
    let named = "runs once for each `requestId`; `Idempotency-Key` is ignored";
    assert_eq!(limits("started"), [none, counts, one, named, bytes, ends]);
    let pages =
        "3 calls per minute for each address without a credential, from this service's own pages";
    assert_eq!(
        limits("open"),
        [none, pages, counts, "costs no credits", key, bytes, ends]
    );
}
