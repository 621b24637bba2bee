//! The published tools: a contract in a snapshot, schemas that every client takes, and results that fit them.

use std::collections::BTreeSet;

use jsonschema::{Draft, Validator};
use regex_lite::Regex;
use serde_json::{Map, Value, json};

use crate::support::{MODERN, Options, Post, Service, failure, outcome, workspace};

const VERSIONS: [&str; 4] = ["2025-03-26", "2025-06-18", "2025-11-25", MODERN];
const ACCOUNT: &str = "0011001234567";

async fn tools(service: &Service, version: &str) -> Value {
    let answer = Post::of(version, "tools/list", json!({}))
        .send(service)
        .await;
    assert_eq!(outcome(&answer), "200 result #7", "{version}");
    let result = answer.json()["result"].clone();
    assert!(result.get("nextCursor").is_none(), "{version}");
    result["tools"].clone()
}

/// Our own tools alone, without the tests' guests.
async fn product() -> Service {
    let manifest = Some(workspace().join("plugin-manifest.toml"));
    Service::start(Options {
        manifest,
        ..Options::default()
    })
    .await
}

#[tokio::test]
async fn the_published_tools_are_a_contract() {
    insta::assert_json_snapshot!("tools_list", tools(&product().await, "2025-11-25").await);
}

#[tokio::test]
async fn the_list_is_the_same_text_in_all_versions_and_in_the_order_of_the_names() {
    let service = Service::shared();
    let listed = tools(service, "2025-11-25").await;
    for version in VERSIONS {
        assert_eq!(
            tools(service, version).await.to_string(),
            listed.to_string(),
            "{version}"
        );
    }
    let names = names(&listed);
    assert!(names.is_sorted(), "{names:?}");
    assert_eq!(
        names.iter().collect::<BTreeSet<_>>().len(),
        names.len(),
        "{names:?}"
    );
    assert!(
        names.contains(&"generate_bank_qr") && names.contains(&"list_bank_qr_banks"),
        "{names:?}"
    );
}

fn names(listed: &Value) -> Vec<&str> {
    listed
        .as_array()
        .expect("an array")
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name"))
        .collect()
}

/// Section 3 of the requirements, over whatever is published.
#[tokio::test]
async fn every_published_tool_fits_the_profile_that_clients_take() {
    let listed = tools(Service::shared(), MODERN).await;
    let name = Regex::new("^[a-z][a-z0-9_]{2,39}$").expect("a pattern");
    let scope = Regex::new("^[a-z0-9-]+:[a-z0-9-]+$").expect("a pattern");
    for tool in listed.as_array().expect("an array") {
        let members: Vec<&str> = tool
            .as_object()
            .expect("an object")
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(
            members,
            [
                "name",
                "title",
                "description",
                "inputSchema",
                "outputSchema",
                "annotations",
                "_meta"
            ],
            "{tool}"
        );
        assert!(
            name.is_match(tool["name"].as_str().expect("a name")),
            "{tool}"
        );
        let characters =
            |member: &str| tool[member].as_str().map_or(0, |text| text.chars().count());
        assert!((1..=60).contains(&characters("title")), "{tool}");
        assert!((20..=1000).contains(&characters("description")), "{tool}");
        let hints = tool["annotations"].as_object().expect("annotations");
        let explicit = [
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        ];
        assert_eq!(hints.keys().collect::<Vec<_>>(), explicit, "{tool}");
        assert!(hints.values().all(Value::is_boolean), "{tool}");
        let scopes = tool["_meta"]["dev.switchbay/requiredScopes"]
            .as_array()
            .expect("scopes");
        assert!(
            !scopes.is_empty()
                && scopes
                    .iter()
                    .all(|one| scope.is_match(one.as_str().expect("text"))),
            "{tool}"
        );
        input(tool["inputSchema"].as_object().expect("a schema"));
        output(tool["outputSchema"].as_object().expect("a schema"));
    }
}

/// The root of an input schema: a closed object, and nothing beside.
fn input(root: &Map<String, Value>) {
    let known = [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "description",
        "title",
    ];
    assert!(
        root.keys().all(|keyword| known.contains(&keyword.as_str())),
        "{root:?}"
    );
    assert_eq!(
        (&root["type"], &root["additionalProperties"]),
        (&json!("object"), &json!(false))
    );
    let properties = root["properties"]
        .as_object()
        .expect("properties, be there none");
    let required = root.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten() {
        assert!(
            properties.contains_key(name.as_str().expect("a name")),
            "{name} is required and not there"
        );
    }
    properties.iter().for_each(|(name, schema)| {
        property(name, schema.as_object().expect("an object schema"), 1);
    });
}

fn property(name: &str, schema: &Map<String, Value>, depth: usize) {
    const KNOWN: [&str; 17] = [
        "type",
        "description",
        "title",
        "enum",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "pattern",
        "items",
        "minItems",
        "maxItems",
        "default",
        "properties",
        "required",
        "additionalProperties",
        "format",
    ];
    assert!(depth <= 4, "{name} is too deep");
    for keyword in schema.keys() {
        assert!(KNOWN.contains(&keyword.as_str()), "{name} has {keyword}");
    }
    let types = ["string", "integer", "number", "boolean", "array", "object"];
    assert!(
        types.contains(&schema["type"].as_str().expect("one type")),
        "{name}"
    );
    assert!(
        schema["description"]
            .as_str()
            .is_some_and(|text| !text.is_empty()),
        "{name}"
    );
    assert!(
        schema
            .get("format")
            .is_none_or(|format| format == "date-time"),
        "{name}"
    );
    for value in schema
        .get("enum")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        assert!(value.is_string(), "{name}");
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        assert!(pattern.starts_with('^') && pattern.ends_with('$'), "{name}");
        Regex::new(pattern).expect("a pattern without look-around and back references");
    }
    if schema["type"] == "array" {
        let items = schema["items"].as_object().expect("one object schema");
        assert!(items["type"].is_string(), "{name}");
    }
    for (inner, schema) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        property(
            inner,
            schema.as_object().expect("an object schema"),
            depth + 1,
        );
    }
}

/// The envelope, and nowhere in it what a popular client rejects.
fn output(root: &Map<String, Value>) {
    assert_eq!(root["type"], "object");
    assert_eq!(root["required"], json!(["success", "data"]));
    assert_eq!(root["properties"]["success"]["type"], "boolean");
    assert_eq!(root["properties"]["data"]["type"], "object");
    walk("outputSchema", &Value::Object(root.clone()));
}

fn walk(at: &str, schema: &Value) {
    let members = schema
        .as_object()
        .unwrap_or_else(|| panic!("{at} is no object schema"));
    assert!(!members.is_empty(), "{at} says nothing");
    for keyword in [
        "$ref",
        "$defs",
        "definitions",
        "$schema",
        "$id",
        "$dynamicRef",
        "nullable",
        "const",
        "oneOf",
    ] {
        assert!(!members.contains_key(keyword), "{at} has {keyword}");
    }
    assert!(
        members.get("type").is_none_or(Value::is_string),
        "{at} has a list of types"
    );
    assert_ne!(
        members.get("additionalProperties"),
        Some(&json!(false)),
        "{at} refuses what a later version may add"
    );
    for (name, inner) in members
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        walk(&format!("{at}.{name}"), inner);
    }
    if let Some(items) = members.get("items") {
        walk(&format!("{at}[]"), items);
    }
    for branch in members
        .get("anyOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        walk(&format!("{at}|"), branch);
    }
}

#[tokio::test]
async fn our_tools_say_what_they_do_and_which_scope_they_need() {
    let listed = tools(Service::shared(), "2025-11-25").await;
    let read_only = json!({ "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false });
    for (name, scope) in [
        ("list_bank_qr_banks", "bank-qr:banks"),
        ("generate_bank_qr", "bank-qr:generate"),
    ] {
        let tool = tool(&listed, name);
        assert_eq!(tool["annotations"], read_only, "{name}");
        assert_eq!(
            tool["_meta"],
            json!({ "dev.switchbay/requiredScopes": [scope] }),
            "{name}"
        );
    }
}

fn tool<'l>(listed: &'l Value, name: &str) -> &'l Value {
    let found = listed
        .as_array()
        .expect("an array")
        .iter()
        .find(|tool| tool["name"] == name);
    found.unwrap_or_else(|| panic!("no tool {name}"))
}

/// The schema as clients of both dialects read it: without `$schema`, old ones take draft 7.
fn validators(schema: &Value) -> [Validator; 2] {
    [Draft::Draft7, Draft::Draft202012].map(|draft| {
        jsonschema::options()
            .with_draft(draft)
            .build(schema)
            .expect("a schema")
    })
}

#[tokio::test]
async fn results_fit_their_published_schema() {
    let service = Service::shared();
    let listed = tools(service, "2025-11-25").await;
    let inputs = [
        ("list_bank_qr_banks", json!({})),
        (
            "generate_bank_qr",
            json!({ "bank": "VCB", "accountNumber": ACCOUNT }),
        ),
        (
            "generate_bank_qr",
            json!({ "bank": "VCB", "accountNumber": ACCOUNT, "amount": 150_000, "memo": "cà phê" }),
        ),
        (
            "generate_bank_qr",
            json!({ "bank": "970418", "accountNumber": "000000", "memo": "", "imageSize": 1024 }),
        ),
    ];
    for (name, arguments) in inputs {
        let result = service.tool(name, &arguments).await;
        let tool = tool(&listed, name);
        for validator in validators(&tool["outputSchema"]) {
            let offences: Vec<String> = validator
                .iter_errors(&result["structuredContent"])
                .map(|error| error.to_string())
                .collect();
            assert_eq!(offences, [""; 0], "{name} {arguments}");
            // The schema is no empty promise.
            assert!(
                !validator.is_valid(&json!({ "success": true, "data": {} })),
                "{name}"
            );
            assert!(!validator.is_valid(&json!({ "success": true })), "{name}");
        }
        for validator in validators(&tool["inputSchema"]) {
            assert!(validator.is_valid(&arguments), "{name} {arguments}");
            assert!(!validator.is_valid(&json!({ "surprise": 1 })), "{name}");
        }
    }
}

/// 1.6: the same JSON twice, compact, in every version.
#[tokio::test]
async fn a_success_is_structured_and_the_same_as_text() {
    let service = Service::shared();
    for version in VERSIONS {
        let params = json!({ "name": "generate_bank_qr", "arguments": { "bank": "VCB", "accountNumber": ACCOUNT } });
        let answer = Post::of(version, "tools/call", params)
            .bearer(service.key())
            .send(service)
            .await;
        let result = answer.json()["result"].clone();
        assert_eq!(result["isError"], false, "{version}");
        assert_eq!(result["structuredContent"]["success"], true, "{version}");
        assert_eq!(
            result["structuredContent"]["data"]["transfer"]["accountNumber"], ACCOUNT,
            "{version}"
        );
        let text = result["structuredContent"].to_string();
        assert_eq!(
            result["content"],
            json!([{ "type": "text", "text": text }]),
            "{version}"
        );
        let own = ["content", "structuredContent", "isError"];
        let members: Vec<&str> = result
            .as_object()
            .expect("an object")
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(
            members.len(),
            if version == MODERN { 5 } else { 3 },
            "{members:?}"
        );
        assert!(members.starts_with(&own), "{members:?}");
        assert!(
            answer.header("server-timing").contains("plugin;dur="),
            "{version}"
        );
    }
}

#[tokio::test]
async fn a_failure_is_the_envelope_as_text_alone() {
    let service = Service::shared();
    for version in VERSIONS {
        let arguments = json!({ "bank": "no such bank", "accountNumber": ACCOUNT });
        let params = json!({ "name": "generate_bank_qr", "arguments": arguments });
        let answer = Post::of(version, "tools/call", params)
            .bearer(service.key())
            .send(service)
            .await;
        assert_eq!(
            outcome(&answer),
            "200 isError VALIDATION_ERROR #7",
            "{version}"
        );
        let (_, envelope) = failure(&answer.json()["result"]);
        let members: Vec<&str> = envelope
            .as_object()
            .expect("an object")
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(members, ["success", "error", "data"], "{version}");
        assert!(
            envelope["error"]["message"]
                .as_str()
                .is_some_and(|text| text.contains("bank")),
            "{version}"
        );
        let id = answer.header("x-request-id");
        assert_eq!(
            envelope["data"],
            json!({ "requestId": id, "field": "bank" }),
            "{version}"
        );
    }
}

#[tokio::test]
async fn arguments_may_be_left_out() {
    let key = Service::shared().key();
    for version in VERSIONS {
        for params in [
            json!({ "name": "list_bank_qr_banks" }),
            json!({ "name": "list_bank_qr_banks", "arguments": {} }),
            json!({ "name": "list_bank_qr_banks", "arguments": null }),
        ] {
            Post::of(version, "tools/call", params)
                .bearer(key)
                .check("200 result #7")
                .await;
        }
        let params = json!({ "name": "generate_bank_qr" });
        Post::of(version, "tools/call", params)
            .bearer(key)
            .check("200 isError VALIDATION_ERROR #7")
            .await;
    }
}
