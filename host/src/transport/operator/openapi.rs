//! The OpenAPI document of the operator's API, printed from its table of endpoints.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::endpoint::{Endpoint, EndpointAnswer, EndpointBody, EndpointSchemas, parameter_schemas};
use super::operations;
use super::routes::{ENDPOINTS, EndpointRow};
use crate::catalogue::Catalogue;

/// What an endpoint takes and tells.
pub(crate) struct EndpointDescription {
    /// The schemas of the parameters, by their names.
    path: Map<String, Value>,
    pub(crate) query: Map<String, Value>,
    body: Option<Value>,
    status: StatusCode,
    /// By media type.
    answer: Value,
}

impl EndpointDescription {
    pub(super) fn of<E: Endpoint>(schemas: &mut EndpointSchemas) -> Self {
        Self {
            path: parameter_schemas::<E::Path>(),
            query: parameter_schemas::<E::Query>(),
            body: E::Body::describe(schemas),
            status: E::Answer::STATUS,
            answer: E::Answer::describe(schemas),
        }
    }
}

/// OpenAPI 3.1, with the operations that plugins serve to the operator.
pub(crate) fn document(catalogue: &Catalogue) -> Value {
    let (mut paths, mut schemas) = (Map::new(), EndpointSchemas::default());
    for row in ENDPOINTS {
        let path = paths.entry(row.path).or_insert_with(|| json!({}));
        path[row.method.to_ascii_lowercase()] = operation(row, (row.describe)(&mut schemas));
    }
    operations::publish(&mut paths, catalogue);
    let mut referred = schemas.referred();
    referred.insert("Error".to_owned(), error());
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
            "schemas": referred,
        },
    })
}

fn operation(row: &EndpointRow, description: EndpointDescription) -> Value {
    let path = parameters("path", description.path);
    let query = parameters("query", description.query);
    let mut operation = json!({
        "operationId": row.id,
        "summary": row.summary,
        "parameters": path.chain(query).collect::<Vec<Value>>(),
        "responses": {
            description.status.as_str(): { "description": row.summary, "content": description.answer },
            "400": refused("The request is not one that the route accepts."),
            "401": refused("The operator's token is missing or wrong."),
            "404": refused("There is no such plugin, revision, key or account."),
            "409": refused("The request conflicts with the current state; the message says what to do."),
            "503": refused("The server is full, or its store failed."),
        },
    });
    if let Some(body) = description.body {
        operation["requestBody"] = body;
    }
    operation
}

/// A response that refuses.
pub(super) fn refused(description: &str) -> Value {
    let schema = json!({ "$ref": "#/components/schemas/Error" });
    json!({ "description": description, "content": { "application/json": { "schema": schema } } })
}

fn parameters(place: &str, schemas: Map<String, Value>) -> impl Iterator<Item = Value> {
    schemas.into_iter().map(move |(name, mut schema)| {
        let description = schema["description"].take();
        schema
            .as_object_mut()
            .and_then(|schema| schema.remove("description"));
        json!({
            "name": name,
            "in": place,
            "required": place == "path",
            "description": description,
            "schema": schema,
        })
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
