//! The two resources: the developer guide and the OpenAPI document, the same bytes as over HTTP.

use bytes::Bytes;
use serde_json::{Value, json};

use super::protocol::{Era, RpcError};
use crate::published::Document;

const GUIDE: &str = "service://developer-guide";
const OPENAPI: &str = "service://openapi";

/// What is answered of the resources: made with the documents, and shared by all answers.
pub(crate) struct Resources {
    /// The result of `resources/list`.
    pub(crate) list: Bytes,
    guide: Bytes,
    openapi: Bytes,
}

impl Resources {
    pub(crate) fn new(guide: &Document, openapi: &Document) -> Self {
        Self { list: list(guide, openapi), guide: contents(GUIDE, guide), openapi: contents(OPENAPI, openapi) }
    }

    /// The result of `resources/read`.
    pub(crate) fn read(&self, era: Era, params: &Value) -> Result<Bytes, RpcError> {
        let Some(uri) = params.get("uri").and_then(Value::as_str) else {
            return Err(RpcError::invalid_params("`params.uri` must be a string"));
        };
        match uri {
            GUIDE => Ok(self.guide.clone()),
            OPENAPI => Ok(self.openapi.clone()),
            _ => Err(not_found(era, uri)),
        }
    }
}

fn contents(uri: &str, document: &Document) -> Bytes {
    let contents = json!([{ "uri": uri, "mimeType": document.media_type, "text": document.text() }]);
    Bytes::from(json!({ "contents": contents }).to_string())
}

fn list(guide: &Document, openapi: &Document) -> Bytes {
    let row = |uri: &str, name: &str, title: &str, description: &str, document: &Document| {
        json!({
            "uri": uri,
            "name": name,
            "title": title,
            "description": description,
            "mimeType": document.media_type,
            "size": document.bytes.len(),
        })
    };
    let guide = row(
        GUIDE,
        "developer-guide",
        "Developer guide",
        "How to authenticate, what every operation takes and answers, and the error codes, with examples.",
        guide,
    );
    let openapi = row(OPENAPI, "openapi", "OpenAPI", "The OpenAPI 3.1 description of the REST operations.", openapi);
    Bytes::from(json!({ "resources": [guide, openapi] }).to_string())
}

/// Legacy versions have a code of their own for this; the modern one forbids it.
fn not_found(era: Era, uri: &str) -> RpcError {
    let shown: String = uri.chars().take(200).collect();
    let mut error = RpcError::invalid_params(format!("Resource not found: {shown}"));
    if era == Era::Legacy {
        error.code = -32002;
    }
    error.with_data(json!({ "uri": shown }))
}
