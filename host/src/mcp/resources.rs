//! The two resources: the developer guide and the OpenAPI document, the same bytes as over HTTP.

use serde_json::{Value, json};

use super::protocol::{Era, RpcError};
use crate::published::{Document, Published};

const GUIDE: &str = "service://developer-guide";
const OPENAPI: &str = "service://openapi";

/// `resources/list`.
pub(crate) fn list(published: &Published) -> String {
    let row = |uri: &str, name: &str, title: &str, description: &str, document: &Document| {
        json!({
            "uri": uri,
            "name": name,
            "title": title,
            "description": description,
            "mimeType": document.media_type,
            "size": document.text.len(),
        })
    };
    let guide = row(
        GUIDE,
        "developer-guide",
        "Developer guide",
        "How to authenticate, what every operation takes and answers, and the error codes, with examples.",
        &published.guide,
    );
    let openapi =
        row(OPENAPI, "openapi", "OpenAPI", "The OpenAPI 3.1 description of the REST operations.", &published.openapi);
    json!({ "resources": [guide, openapi] }).to_string()
}

/// `resources/read`.
pub(crate) fn read(published: &Published, era: Era, params: &Value) -> Result<String, RpcError> {
    let Some(uri) = params.get("uri").and_then(Value::as_str) else {
        return Err(RpcError::invalid_params("`params.uri` must be a string"));
    };
    let document = match uri {
        GUIDE => &published.guide,
        OPENAPI => &published.openapi,
        _ => return Err(not_found(era, uri)),
    };
    let contents = json!([{ "uri": uri, "mimeType": document.media_type, "text": document.text.as_ref() }]);
    Ok(json!({ "contents": contents }).to_string())
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
