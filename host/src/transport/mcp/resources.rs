//! `resources/read`: the two documents, the same bytes as over HTTP.

use bytes::Bytes;
use serde_json::{Value, json};

use super::protocol::{ProtocolEra, RpcError};
use crate::published::resources::McpResources;

/// Finds what a client reads.
pub(crate) fn read(
    resources: &McpResources,
    era: ProtocolEra,
    params: &Value,
) -> Result<Bytes, RpcError> {
    let Some(uri) = params.get("uri").and_then(Value::as_str) else {
        return Err(RpcError::invalid_params("`params.uri` must be a string"));
    };
    let read = resources.read(uri).cloned();
    read.ok_or_else(|| not_found(era, uri))
}

/// Legacy versions have a code of their own for this; the modern one forbids it.
fn not_found(era: ProtocolEra, uri: &str) -> RpcError {
    let shown: String = uri.chars().take(200).collect();
    let mut error = RpcError::invalid_params(format!("Resource not found: {shown}"));
    if era == ProtocolEra::Legacy {
        error.code = -32002;
    }
    error.with_data(json!({ "uri": shown }))
}
