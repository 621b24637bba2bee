//! The OpenAPI 3.1.0 document of the REST faces, generated from the operations.
//!
//! This file has what a request may say; `responses` has what it is answered.

mod responses;

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Map, Value, json};

use crate::catalogue::Bound;
use crate::contract::faces::path_parameters;
use crate::contract::operation::{IdempotencySource, InputExample, Operation, RestFace};
use crate::metering::identifier::IDEMPOTENCY_KEY;

const ABOUT: &str = "Scoped developer APIs. Every operation needs a credential that carries its scope. An operation with an \
    empty security requirement may also be called without a credential from this service's own pages, a limited number of times \
    per minute for each address. On a listed route, a method that is not listed is 405 (`MethodNotAllowed`); any other route is \
    404 (`NotFound`). /developer-guide describes the same for people, with requests to copy.";

/// The document for these operations, as JSON text.
pub(crate) fn document(bound: &[Bound], base_url: &str) -> String {
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for one in bound {
        let Some(face) = one.rest() else { continue };
        let method = face.method.as_str().to_ascii_lowercase();
        paths
            .entry(&face.path)
            .or_default()
            .insert(method, operation(one, face));
    }
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Switchbay",
            "version": "1.0.0",
            "description": ABOUT,
        },
        "servers": [{ "url": base_url }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "apiKey": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "x-service-api-key",
                    "description": "An API key.",
                },
                "bearer": { "type": "http", "scheme": "bearer", "description": "An API key or an OAuth access token." },
            },
            "schemas": { "Error": responses::error_schema() },
            "headers": responses::shared_headers(),
            "responses": responses::shared(),
            "parameters": { "Idempotency-Key": idempotency_key(), "If-None-Match": if_none_match() },
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
        "security": security(operation, face),
        "responses": responses::of(operation, face),
    });
    let mut parameters = parameters(operation, face);
    if operation.terms.idempotency == IdempotencySource::Key {
        parameters.push(json!({ "$ref": "#/components/parameters/Idempotency-Key" }));
    }
    if face.etag {
        parameters.push(json!({ "$ref": "#/components/parameters/If-None-Match" }));
    }
    if !parameters.is_empty() {
        row["parameters"] = Value::Array(parameters);
    }
    if let Some(body) = request_body(operation, face) {
        row["requestBody"] = body;
    }
    row
}

fn security(operation: &Operation, face: &RestFace) -> Value {
    let scopes = [face.scope.as_str()];
    let mut security = vec![json!({ "apiKey": scopes }), json!({ "bearer": scopes })];
    if operation.terms.first_party_per_minute.is_some() {
        security.push(json!({}));
    }
    Value::Array(security)
}

fn if_none_match() -> Value {
    json!({
        "name": "If-None-Match",
        "in": "header",
        "required": false,
        "description": "The `ETag` of an earlier response. If the data still has it, the response is 304 without a \
            body.",
        "schema": { "type": "string" },
    })
}

fn idempotency_key() -> Value {
    json!({
        "name": IDEMPOTENCY_KEY,
        "in": "header",
        "required": false,
        // In words, because other credentials' values are ignored whatever they are.
        "description": "Identifies this call of a self-service key, with 1 to 80 characters of a-z, A-Z, 0-9, _ and \
            -; a call with the same value is admitted only once. Ignored for other credentials.",
        "schema": { "type": "string" },
    })
}

fn parameters(operation: &Operation, face: &RestFace) -> Vec<Value> {
    let in_path: Vec<&str> = path_parameters(&face.path).collect();
    let required = |name: &str| {
        let names = face
            .input
            .document()
            .get("required")
            .and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|required| required == name))
    };
    face.input
        .properties()
        .filter_map(|(name, schema)| {
            let place = if in_path.contains(&name.as_str()) {
                "path"
            } else if face.method == Method::POST {
                return None;
            } else {
                "query"
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
            let example = |(index, example): (usize, &InputExample)| {
                let value = example.input.get(name)?;
                Some((
                    format!("example{}", index + 1),
                    json!({ "summary": example.title, "value": value }),
                ))
            };
            let examples: Map<String, Value> = operation
                .examples
                .iter()
                .enumerate()
                .filter_map(example)
                .collect();
            if !examples.is_empty() {
                parameter["examples"] = Value::Object(examples);
            }
            Some(parameter)
        })
        .collect()
}

fn request_body(operation: &Operation, face: &RestFace) -> Option<Value> {
    if face.method != Method::POST {
        return None;
    }
    let in_path: Vec<&str> = path_parameters(&face.path).collect();
    let mut schema = face.input.document().clone();
    let properties = schema["properties"].as_object_mut()?;
    properties.retain(|name, _| !in_path.contains(&name.as_str()));
    let is_empty = properties.is_empty();
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| name.as_str().is_none_or(|name| !in_path.contains(&name)));
        if required.is_empty() {
            schema.as_object_mut()?.remove("required");
        }
    }
    let required = schema.get("required").is_some();
    let mut media = json!({ "schema": schema });
    if !is_empty {
        media["examples"] = Value::Object(examples(operation, &in_path));
    }
    let takes = if is_empty {
        "Nothing or an empty object"
    } else {
        "The arguments"
    };
    let bytes = face.body_bytes_max;
    Some(json!({
        "description": format!("{takes}; at most {bytes} bytes."),
        "required": required,
        "content": { "application/json": media },
    }))
}

fn examples(operation: &Operation, in_path: &[&str]) -> Map<String, Value> {
    let example = |(index, example): (usize, &InputExample)| {
        let mut value = example.input.clone();
        value.retain(|name, _| !in_path.contains(&name.as_str()));
        (
            format!("example{}", index + 1),
            json!({ "summary": example.title, "value": value }),
        )
    };
    operation.examples.iter().enumerate().map(example).collect()
}
