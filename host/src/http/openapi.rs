//! The OpenAPI 3.1.0 document of the REST faces, generated from the operations.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Map, Value, json};

use crate::catalogue::Bound;
use crate::error::{COMMON, Code};
use crate::operation::{Idempotency, Operation, RestFace};
use crate::reading;
use crate::registry::faces::path_parameters;

/// The document for these operations, as JSON text.
pub(crate) fn document(bound: &[Bound], base_url: &str) -> String {
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for one in bound {
        let Some(face) = one.rest() else { continue };
        let method = face.method.as_str().to_ascii_lowercase();
        paths.entry(&face.path).or_default().insert(method, operation(one, face));
    }
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Switchbay",
            "version": "1.0.0",
            "description": "Scoped developer APIs. Every operation needs a credential that carries its scope.",
        },
        "servers": [{ "url": base_url }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "apiKey": { "type": "apiKey", "in": "header", "name": "x-service-api-key" },
                "bearer": { "type": "http", "scheme": "bearer", "description": "An API key or an OAuth access token." },
            },
            "schemas": { "Error": error_schema() },
            "headers": headers(),
            "parameters": { "Idempotency-Key": idempotency_key() },
        },
    });
    document.to_string()
}

fn operation(bound: &Bound, face: &RestFace) -> Value {
    let operation = &bound.operation;
    let mut row = json!({
        "operationId": format!("{}_{}", bound.revision.plugin.replace('-', "_"), operation.id),
        "tags": [*bound.revision.plugin],
        "summary": operation.title,
        "description": operation.description,
        "security": [{ "apiKey": [face.scope.as_str()] }, { "bearer": [face.scope.as_str()] }],
        "responses": responses(operation, face),
    });
    let mut parameters = parameters(face);
    if operation.terms.idempotency == Idempotency::Key {
        parameters.push(json!({ "$ref": "#/components/parameters/Idempotency-Key" }));
    }
    if !parameters.is_empty() {
        row["parameters"] = Value::Array(parameters);
    }
    if let Some(body) = request_body(operation, face) {
        row["requestBody"] = body;
    }
    row
}

fn idempotency_key() -> Value {
    json!({
        "name": reading::IDEMPOTENCY_KEY,
        "in": "header",
        "required": false,
        // In words, because other credentials' values are ignored whatever they are.
        "description": "Names this call of a self-service key, in 1 to 80 characters of a-z, A-Z, 0-9, _ and -; such a call \
            is admitted once. Ignored for other credentials.",
        "schema": { "type": "string" },
    })
}

fn parameters(face: &RestFace) -> Vec<Value> {
    let in_path: Vec<&str> = path_parameters(&face.path).collect();
    let required = |name: &str| {
        let names = face.input.document().get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|required| required == name))
    };
    face.input
        .properties()
        .filter_map(|(name, schema)| {
            let place = match in_path.contains(&name.as_str()) {
                true => "path",
                false if face.method != Method::POST => "query",
                false => return None,
            };
            let mut parameter = json!({
                "name": name,
                "in": place,
                "required": place == "path" || required(name),
                "schema": schema,
            });
            if let Some(description) = schema.get("description") {
                parameter["description"] = description.clone();
            }
            Some(parameter)
        })
        .collect()
}

fn request_body(operation: &Operation, face: &RestFace) -> Option<Value> {
    let in_path: Vec<&str> = path_parameters(&face.path).collect();
    let mut schema = face.input.document().clone();
    schema["properties"].as_object_mut()?.retain(|name, _| !in_path.contains(&name.as_str()));
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| name.as_str().is_none_or(|name| !in_path.contains(&name)));
    }
    let empty = schema["properties"].as_object()?.is_empty();
    if face.method != Method::POST || empty {
        return None;
    }
    let required = schema.get("required").and_then(Value::as_array).is_some_and(|required| !required.is_empty());
    let examples: Map<String, Value> = operation
        .examples
        .iter()
        .enumerate()
        .map(|(index, example)| {
            let mut value = example.input.clone();
            value.retain(|name, _| !in_path.contains(&name.as_str()));
            (format!("example{}", index + 1), json!({ "summary": example.title, "value": value }))
        })
        .collect();
    Some(json!({ "required": required, "content": { "application/json": { "schema": schema, "examples": examples } } }))
}

fn responses(operation: &Operation, face: &RestFace) -> Value {
    let mut responses: BTreeMap<String, Value> = BTreeMap::new();
    let envelope = json!({
        "type": "object",
        "properties": { "success": { "const": true }, "data": operation.output.document() },
        "required": ["success", "data"],
    });
    for (outcome, status) in &face.outcomes {
        responses.insert(
            status.as_str().to_owned(),
            json!({
                "description": format!("The outcome `{outcome}`."),
                "headers": response_headers(operation, face),
                "content": { "application/json": { "schema": envelope } },
            }),
        );
    }
    if face.etag {
        responses
            .insert("304".to_owned(), json!({ "description": "The data has the tag that `If-None-Match` names." }));
    }
    let mut codes: BTreeMap<String, Vec<(&str, &str)>> = BTreeMap::new();
    let with_body = [Code::UnsupportedMediaType, Code::RequestTimeout];
    let common = COMMON.iter().chain(with_body.iter().filter(|_| face.method == Method::POST));
    for code in common {
        codes.entry(code.status().as_str().to_owned()).or_default().push((code.name(), code.when()));
    }
    for error in &operation.errors {
        codes.entry(error.status.as_str().to_owned()).or_default().push((&error.code, &error.when));
    }
    for (status, rows) in codes {
        let text: Vec<String> = rows.iter().map(|(code, when)| format!("`{code}`: {when}")).collect();
        let response = json!({
            "description": text.join("\n\n"),
            "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } },
        });
        responses.entry(status).or_insert(response);
    }
    json!(responses)
}

fn response_headers(operation: &Operation, face: &RestFace) -> Value {
    let mut names = vec![
        "X-Request-Id",
        "Server-Timing",
        "X-ApiKey-RateLimit-Limit",
        "X-ApiKey-RateLimit-Remaining",
        "X-ApiKey-RateLimit-Reset",
        "X-ApiKey-RateLimit-Window",
        "X-ApiKey-Monthly-Limit",
        "X-ApiKey-Monthly-Remaining",
        "X-ApiKey-Monthly-Reset",
        "X-ApiKey-Credit-Cost",
        "X-ApiKey-Credit-Limit",
        "X-ApiKey-Credit-Reset",
    ];
    if operation.terms.first_party_per_minute.is_some() {
        names.extend(["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"]);
    }
    if face.etag {
        names.push("ETag");
    }
    if face.decoded_length {
        names.push("X-Decoded-Content-Length");
    }
    let reference = |name: &&str| ((*name).to_owned(), json!({ "$ref": format!("#/components/headers/{name}") }));
    Value::Object(names.iter().map(reference).collect())
}

fn headers() -> Value {
    let header = |description: &str, kind: &str| json!({ "description": description, "schema": { "type": kind } });
    json!({
        "X-Request-Id": header("The request's id, which the service's log knows it by.", "string"),
        "Server-Timing": header("Where the time went, in milliseconds.", "string"),
        "ETag": header("The tag of the data.", "string"),
        "X-Decoded-Content-Length": header("The length of the JSON before compression, in bytes.", "integer"),
        "X-ApiKey-RateLimit-Limit": header("Calls that the key may make in a window.", "integer"),
        "X-ApiKey-RateLimit-Remaining": header("Calls that are left in this window.", "integer"),
        "X-ApiKey-RateLimit-Reset": header("When the window ends, in Unix seconds.", "integer"),
        "X-ApiKey-RateLimit-Window": header("How long a window is, in seconds.", "integer"),
        "X-RateLimit-Limit": header("Calls a minute that an address without a credential may make.", "integer"),
        "X-RateLimit-Remaining": header("Calls of the address that are left in this minute.", "integer"),
        "X-RateLimit-Reset": header("When the minute ends, in Unix seconds.", "integer"),
        "X-ApiKey-Monthly-Limit": header("Calls that the key may make in a calendar month (UTC).", "integer"),
        "X-ApiKey-Monthly-Remaining": header("Calls that are left in this month.", "integer"),
        "X-ApiKey-Monthly-Reset": header("When the month ends, in Unix seconds.", "integer"),
        "X-ApiKey-Credit-Cost": header("Credits that were reserved for this call; a failure gives them back.", "integer"),
        "X-ApiKey-Credit-Limit": header("Credits that the account has in a calendar month (UTC).", "integer"),
        "X-ApiKey-Credit-Reset": header("When the month ends, in Unix seconds.", "integer"),
    })
}

fn error_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "success": { "const": false },
            "error": {
                "type": "object",
                "properties": {
                    "code": { "type": "string", "description": "What to branch on." },
                    "message": { "type": "string", "description": "The same for people." },
                },
                "required": ["code", "message"],
            },
            "data": {
                "type": "object",
                "properties": {
                    "requestId": { "type": "string", "format": "uuid" },
                    "retryAfter": { "type": "integer", "minimum": 1, "description": "Seconds until a retry may help." },
                    "resetAt": { "type": "string", "format": "date-time" },
                    "field": { "type": "string", "description": "The offending field." },
                    "max": { "type": "number" },
                    "min": { "type": "number" },
                },
                "required": ["requestId"],
            },
        },
        "required": ["success", "error", "data"],
    })
}
