//! The operator's OpenAPI document: what it says of requests and answers is what they are.

use std::collections::BTreeSet;

use jsonschema::Validator;
use reqwest::Method;
use serde_json::{Value, json};

use super::super::House;
use crate::support::Service;

async fn document(service: &Service) -> Value {
    let path = "/admin/v1/openapi.json";
    service.admin(Method::GET, path, None).await.json()
}

/// The operation of a path and a method.
fn operation<'d>(document: &'d Value, path: &str, method: &Method) -> &'d Value {
    &document["paths"][path][method.as_str().to_lowercase()]
}

/// What an answer of an operation must be.
fn validator(document: &Value, operation: &Value, status: u16) -> Validator {
    let answer = &operation["responses"][status.to_string()];
    let mut schema = answer["content"]["application/json"]["schema"].clone();
    assert!(schema.is_object(), "{status}: {operation}");
    schema["components"] = document["components"].clone();
    jsonschema::draft202012::new(&schema).expect("a schema")
}

#[tokio::test]
async fn an_operation_has_an_id_of_its_own_that_stays() {
    let house = House::new("");
    let document = document(&house.serve().await).await;
    let paths = document["paths"].as_object().expect("paths");
    let operations = paths
        .values()
        .flat_map(|path| path.as_object().expect("methods").values());
    let ids: Vec<&str> = operations
        .map(|operation| operation["operationId"].as_str().expect("an id"))
        .collect();
    let is_camel_case = |id: &&str| {
        id.starts_with(|c: char| c.is_ascii_lowercase())
            && id.chars().all(|c| c.is_ascii_alphanumeric())
    };
    assert!(ids.iter().all(is_camel_case), "{ids:?}");
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    for (method, path, id) in [
        (
            "post",
            "/admin/v1/plugins/{plugin}/revoke",
            "revokeApproval",
        ),
        ("post", "/admin/v1/plugins/{plugin}/enable", "enablePlugin"),
        ("delete", "/admin/v1/keys/{id}", "revokeKey"),
        ("get", "/metrics", "showMetrics"),
    ] {
        assert_eq!(document["paths"][path][method]["operationId"], id);
    }
}

/// What is asked, with a value for each parameter of its path.
const ASKED: [(Method, &str, &str, &str); 17] = [
    (Method::GET, "/admin/v1/status", "", "null"),
    (Method::GET, "/admin/v1/plugins", "", "null"),
    (Method::GET, "/admin/v1/plugins/{plugin}", "", "null"),
    (
        Method::GET,
        "/admin/v1/plugins/{plugin}/revisions",
        "",
        "null",
    ),
    (
        Method::POST,
        "/admin/v1/plugins/{plugin}/revisions",
        "",
        "{}",
    ),
    (
        Method::GET,
        "/admin/v1/plugins/{plugin}/revisions/{revision}",
        "",
        "null",
    ),
    (
        Method::GET,
        "/admin/v1/plugins/{plugin}/revisions/{revision}/difference",
        "?against=1",
        "null",
    ),
    (Method::POST, "/admin/v1/plugins/{plugin}/proxy", "", "{}"),
    (Method::POST, "/admin/v1/plugins/{plugin}/disable", "", "{}"),
    (Method::GET, "/admin/v1/plugins/{plugin}", "", "null"),
    (Method::POST, "/admin/v1/plugins/{plugin}/enable", "", "{}"),
    (Method::POST, "/admin/v1/manifest/follow", "", "null"),
    (
        Method::GET,
        "/admin/v1/history",
        "?plugin=probe&after=0",
        "null",
    ),
    (Method::GET, "/admin/v1/keys", "", "null"),
    (Method::GET, "/admin/v1/usage", "", "null"),
    (Method::GET, "/admin/v1/audit", "", "null"),
    (Method::GET, "/admin/v1/config", "", "null"),
];

#[tokio::test]
async fn answers_are_as_they_are_published() {
    let house = House::new("grants = [\"http:GET https://example.com/\"]");
    let service = house.serve().await;
    let document = document(&service).await;
    for (method, path, query, body) in ASKED {
        let sent = path.replace("{plugin}", "probe").replace("{revision}", "1");
        let sent = format!("{sent}{query}");
        let body = serde_json::from_str(body).expect("JSON");
        let answer = service.admin(method.clone(), &sent, Some(&body)).await;
        let operation = operation(&document, path, &method);
        let validator = validator(&document, operation, answer.status);
        let answer = answer.json();
        let wrong: Vec<String> = validator
            .iter_errors(&answer)
            .map(|error| format!("{error} at {}", error.instance_path()))
            .collect();
        assert_eq!(wrong, [""; 0], "{method} {path}: {answer}");
        assert_eq!(answer["success"], true);
        assert!(!validator.is_valid(&json!({ "success": true, "data": 1 })));
    }
}

#[tokio::test]
async fn entries_are_read_on_after_an_id_as_published() {
    let house = House::new("");
    let service = house.serve().await;
    let document = document(&service).await;
    let path = "/admin/v1/accounts/{id}/entries";
    let after = &operation(&document, path, &Method::GET)["parameters"][1];
    assert_eq!(
        (&after["name"], &after["schema"]),
        (
            &json!("after"),
            &json!({ "type": "string", "format": "uuid" })
        )
    );
    let account = json!({ "label": "paying" });
    let opened = service
        .admin(Method::POST, "/admin/v1/accounts", Some(&account))
        .await;
    let id = opened.json()["data"]["id"].clone();
    let id = id.as_str().expect("an id");
    let path = path.replace("{id}", id);
    let page = service.told(&format!("{path}?after={id}")).await;
    assert_eq!(page, json!({ "entries": [], "next": null }));
    let wrong = format!("{path}?after=7");
    let wrong = service.admin(Method::GET, &wrong, None).await;
    assert_eq!(wrong.refusal(), (400, "VALIDATION_ERROR".to_owned()));
    assert_eq!(
        wrong.json()["error"]["message"],
        "`after` must be the id of an entry"
    );
}

#[tokio::test]
async fn a_member_of_another_route_is_refused_by_its_name() {
    let house = House::new("");
    let service = house.serve().await;
    for (route, body, field) in [
        ("disable", json!({ "to": 1 }), "to"),
        ("disable", json!({ "colour": 1 }), "colour"),
        ("rollback", json!({ "why": "so", "atom": "config" }), "atom"),
    ] {
        let path = format!("/admin/v1/plugins/probe/{route}");
        let refused = service.admin(Method::POST, &path, Some(&body)).await;
        assert_eq!(refused.refusal(), (400, "VALIDATION_ERROR".to_owned()));
        let refused = refused.json();
        let message = refused["error"]["message"].as_str().expect("text");
        let words =
            format!("`{field}` is not a member of this route's body: unknown field `{field}`");
        assert!(message.starts_with(&words), "{message}");
        assert_eq!(refused["data"]["field"], field);
    }
}
