//! Tools: operations with a tool face, listed and called.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::Gathered;
use super::methods::{McpPost, MethodError};
use super::protocol::{RpcError, Text};
use crate::catalogue::Bound;
use crate::contract::error::Refusal;
use crate::contract::operation::Face;
use crate::pipeline;
use crate::pipeline::CallRequest;
use crate::pipeline::read_input::UnreadArguments;
use crate::transport::http::envelope;

/// `tools/call`.
pub(crate) async fn call(
    post: &McpPost<'_>,
    params: Value,
    gathered: &mut Gathered,
) -> Result<Text, MethodError> {
    let (bound, arguments) = read_call(post, params)?;
    let tool = bound.tool();
    let tool = tool.expect("the catalogue's tools have a tool face");
    let request = CallRequest {
        bound,
        catalogue: &post.snapshot.catalogue,
        face: Face::Tool,
        credential: post.credential(),
        first_party: None,
        identifier: post.identifier.clone(),
        unread: UnreadArguments::Tool {
            arguments,
            fixed: &tool.fixed,
            bytes_max: tool.bytes_max,
        },
        request_id: post.request_id,
        visit: post.visit,
    };
    let answered = post.pipeline.execute(request).await;
    gathered.meters = answered.meters;
    if let Some(time) = answered.plugin_time {
        gathered.plugin = Some(gathered.plugin.unwrap_or_default() + time);
    }
    match answered.outcome {
        Ok(reply) => Ok(Text::Own(write_result(&envelope::success(&reply.data)))),
        Err(refusal) if is_challenge(&refusal) => Err(MethodError::Credential(Box::new(refusal))),
        Err(refusal) => {
            gathered.retry_after_s = gathered.retry_after_s.max(refusal.retry_after_s);
            Ok(Text::Own(write_error(&refusal, post.request_id)))
        }
    }
}

/// Judges the credential of a call without making it. A call that is malformed is left to [`call`].
pub(crate) async fn judge(post: &McpPost<'_>, params: &Value) -> Result<(), Refusal> {
    let name = params.get("name").and_then(Value::as_str);
    let Some(bound) = name.and_then(|name| post.snapshot.catalogue.tool(name)) else {
        return Ok(());
    };
    match post
        .pipeline
        .check_credential(bound, Face::Tool, &post.credential())
        .await
    {
        Err(refusal) if is_challenge(&refusal) => {
            pipeline::refused_before(bound, Face::Tool, &refusal);
            Err(refusal)
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn is_challenge(refusal: &Refusal) -> bool {
    let refused = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN];
    refusal.challenge.is_some() && refused.contains(&refusal.status)
}

fn read_call<'p>(
    post: &McpPost<'p>,
    mut params: Value,
) -> Result<(&'p Bound, Map<String, Value>), RpcError> {
    let Some(name) = params.get("name").and_then(Value::as_str) else {
        return Err(RpcError::invalid_params("`params.name` must be a string"));
    };
    let Some(bound) = post.snapshot.catalogue.tool(name) else {
        let shown: String = name.chars().take(100).collect();
        return Err(RpcError::invalid_params(format!("Unknown tool: {shown}")));
    };
    match params.get_mut("arguments").map(Value::take) {
        None | Some(Value::Null) => Ok((bound, Map::new())),
        Some(Value::Object(arguments)) => Ok((bound, arguments)),
        Some(_) => {
            let message = "`params.arguments` must be an object";
            Err(RpcError::invalid_params(message))
        }
    }
}

/// A success: the REST envelope as structured content, and the same text for clients that read only text.
fn write_result(envelope: &str) -> String {
    let text = Value::from(envelope).to_string();
    let mut result = String::with_capacity(text.len() + envelope.len() + 96);
    result.push_str(r#"{"content":[{"type":"text","text":"#);
    result.push_str(&text);
    result.push_str(r#"}],"structuredContent":"#);
    result.push_str(envelope);
    result.push_str(r#","isError":false}"#);
    result
}

/// A failure: text alone, because clients check structured content against the schema of success.
fn write_error(refusal: &Refusal, request_id: &str) -> String {
    let text = refusal.envelope(request_id).to_string();
    json!({ "content": [{ "type": "text", "text": text }], "isError": true }).to_string()
}
