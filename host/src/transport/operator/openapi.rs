//! The OpenAPI document of the operator's API, printed from its table of routes.

use serde_json::{Map, Value, json};

use super::routes::{AnswerForm, BodyForm, OperatorRoute, ROUTES};
use super::way_out;
use crate::contract::faces::path_parameters;

/// OpenAPI 3.1.
pub(crate) fn document() -> Value {
    let mut paths = Map::new();
    for route in &ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.to_ascii_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Switchbay operator API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Stages, compares, approves, activates and rolls back the plugins that the service runs. \
                The API has its own listener; its token is in the file `operator-token` in the data folder.",
        },
        "security": [{ "operatorToken": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "operatorToken": { "type": "http", "scheme": "bearer" } },
            "schemas": { "Error": error(), "Success": success() },
        },
    })
}

fn operation(route: &OperatorRoute) -> Value {
    let mut parameters: Vec<Value> = Vec::new();
    for name in path_parameters(route.path) {
        let schema = match name {
            "revision" => json!({ "type": "integer", "minimum": 1 }),
            _ => json!({ "type": "string" }),
        };
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
    }
    for (name, meaning) in route.query {
        parameters.push(
            json!({ "name": name, "in": "query", "required": false, "description": meaning, "schema": member(name) }),
        );
    }
    let refused = |description: &str| {
        let schema = json!({ "$ref": "#/components/schemas/Error" });
        json!({ "description": description, "content": { "application/json": { "schema": schema } } })
    };
    let envelope =
        || json!({ "application/json": { "schema": { "$ref": "#/components/schemas/Success" } } });
    let (status, content) = match route.answers {
        AnswerForm::Data => ("200", envelope()),
        AnswerForm::Created => ("201", envelope()),
        AnswerForm::Accepted => ("202", envelope()),
        AnswerForm::Plain(media_type) => (
            "200",
            json!({ media_type: { "schema": { "type": "string" } } }),
        ),
    };
    let mut operation = json!({
        "operationId": format!("{:?}", route.endpoint),
        "summary": route.summary,
        "parameters": parameters,
        "responses": {
            status: { "description": route.summary, "content": content },
            "400": refused("The request is not one that the route accepts."),
            "401": refused("The operator's token is missing or wrong."),
            "404": refused("There is no such plugin, revision, key or account."),
            "409": refused("The request conflicts with the current state; the message says what to do."),
            "503": refused("The server is full, or its store failed."),
        },
    });
    if let Some(body) = body(route) {
        operation["requestBody"] = body;
    }
    operation
}

fn body(route: &OperatorRoute) -> Option<Value> {
    let json_body = || {
        let properties: Map<String, Value> = route
            .body
            .members()
            .map(|(name, meaning)| {
                let mut schema = member(name);
                schema["description"] = json!(meaning);
                ((*name).to_owned(), schema)
            })
            .collect();
        json!({ "schema": { "type": "object", "properties": properties, "additionalProperties": false } })
    };
    match route.body {
        BodyForm::None => None,
        BodyForm::Key => Some(
            json!({ "required": true, "content": { "application/json": { "schema": {
            "type": "object",
            "required": ["label", "scopes"],
            "properties": {
                "label": { "type": "string" },
                "scopes": { "type": "array", "items": { "type": "string" } },
                "account": { "type": ["string", "null"], "description": "The account that pays; makes it a self-service key." },
                "perSecond": { "type": ["integer", "null"], "minimum": 1 },
                "perMinute": { "type": ["integer", "null"], "minimum": 1 },
                "perMonth": { "type": ["integer", "null"], "minimum": 1 },
                "windows": {
                    "type": ["object", "null"],
                    "additionalProperties": { "type": "integer", "minimum": 1 },
                    "description": "Calls per minute by operation (`PLUGIN.OPERATION`), in place of the operation's \
                        own limit.",
                },
                "expiresAt": { "type": ["string", "null"], "format": "date-time" },
            },
            "additionalProperties": false,
        } } } }),
        ),
        BodyForm::Account => Some(
            json!({ "required": true, "content": { "application/json": { "schema": {
            "type": "object",
            "required": ["label"],
            "properties": {
                "label": { "type": "string" },
                "perSecond": { "type": ["integer", "null"], "minimum": 1 },
                "concurrency": { "type": ["integer", "null"], "minimum": 1 },
                "entitlement": { "anyOf": [entitlement(), { "type": "null" }] },
            },
            "additionalProperties": false,
        } } } }),
        ),
        BodyForm::Entitlement => Some(
            json!({ "required": true, "content": { "application/json": { "schema": entitlement() } } }),
        ),
        BodyForm::Act(_) => {
            Some(json!({ "required": false, "content": { "application/json": json_body() } }))
        }
        BodyForm::Component => Some(json!({ "required": false, "content": {
            "application/wasm": { "schema": { "type": "string", "format": "binary" } },
            "application/json": json_body(),
        } })),
    }
}

fn entitlement() -> Value {
    json!({
        "type": "object",
        "required": ["plan", "creditsPerMonth"],
        "properties": {
            "plan": { "type": "string" },
            "creditsPerMonth": { "type": "integer", "minimum": 0 },
            "expiresAt": { "type": ["string", "null"], "format": "date-time" },
        },
        "additionalProperties": false,
    })
}

/// The type of a parameter or member, by its name: one name means one thing throughout the table.
fn member(name: &str) -> Value {
    match name {
        "activate" => json!({ "type": "boolean" }),
        "against" | "after" | "to" => json!({ "type": "integer", "minimum": 0 }),
        "seconds" => json!({ "type": "integer", "minimum": 1, "maximum": way_out::SECONDS.1 }),
        "grants" => json!({ "type": "array", "items": { "type": "string" } }),
        _ => json!({ "type": "string" }),
    }
}

fn success() -> Value {
    json!({
        "type": "object",
        "required": ["success", "data"],
        "properties": { "success": { "const": true }, "data": { "type": "object" } },
    })
}

fn error() -> Value {
    json!({
        "type": "object",
        "required": ["success", "error", "data"],
        "properties": {
            "success": { "const": false },
            "error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": { "code": { "type": "string" }, "message": { "type": "string" } },
            },
            "data": { "type": "object" },
        },
    })
}
