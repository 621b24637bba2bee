//! The methods of the endpoint, and how one POST (a message, or a batch of the oldest version) is answered.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::protocol;
use super::protocol::{LATEST_LEGACY, Message, OLDEST, ProtocolEra, RpcError, Text};
use super::{Gathered, resources, tools};
use crate::auth::PresentedCredential;
use crate::base::json::{MalformedJson, strict_json};
use crate::contract::error::Refusal;
use crate::metering::identifier::{IDEMPOTENCY_KEY, Identifier};
use crate::pipeline::Pipeline;
use crate::places::RequestPlace;
use crate::published::Snapshot;
use crate::published::cards::{VERSIONS, server_info};
use crate::transport::http::connection::HttpResponse;
use crate::transport::http::content::{ContentParts, ResponseContent};
use crate::transport::http::envelope;

/// Messages in a batch.
const BATCH_MAX: usize = 16;
/// Once a batch's answers have so many bytes, its further requests are not run. One answer more than that is sent at most.
const BATCH_BYTES_MAX: usize = 1 << 20;
/// How long a client may keep a list or a document: short, because plugins are swapped while it looks.
const TTL_MS: u32 = 60_000;
const INSTRUCTIONS: &str = "Developer API tools. Each tool needs an API key or an access token with the scope in its _meta. Read the \
    resource service://developer-guide for examples and error codes. Branch on error.code, and wait data.retryAfter seconds before \
    a retry.";

/// One POST, as its methods see it.
pub(crate) struct McpPost<'p> {
    pub(crate) pipeline: &'p Arc<Pipeline>,
    pub(crate) snapshot: &'p Snapshot,
    pub(crate) headers: &'p HeaderMap,
    pub(crate) request_id: &'p str,
    /// Of the single call of this POST.
    pub(crate) identifier: Identifier,
    pub(crate) visit: &'p RequestPlace,
}

/// Why a request has no result.
pub(crate) enum MethodError {
    Rpc(RpcError),
    /// The credential was refused: an HTTP status for the whole POST.
    Credential(Box<Refusal>),
}

impl From<RpcError> for MethodError {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}

/// Answers the body of a POST.
pub(crate) async fn answer(
    post: &McpPost<'_>,
    body: &[u8],
    gathered: &mut Gathered,
) -> HttpResponse {
    let message = match strict_json(body) {
        Ok(Value::Array(messages)) => return batch(post, messages, gathered).await,
        Ok(message) => return single(post, message, gathered).await,
        Err(MalformedJson::Duplicate(name)) => {
            format!("the member `{name}` appears more than once")
        }
        Err(MalformedJson::Json { line, column }) => {
            format!("the body is not valid JSON: line {line}, column {column}")
        }
    };
    rpc_error(&RpcError::parse(message), None)
}

async fn single(post: &McpPost<'_>, message: Value, gathered: &mut Gathered) -> HttpResponse {
    match protocol::decode(message) {
        Err((id, error)) => rpc_error(&error, id.as_ref()),
        Ok(Message::Notification) => envelope::empty(StatusCode::ACCEPTED),
        Ok(Message::Response) => response(post.headers),
        Ok(Message::Request { id, method, params }) => {
            let era = match protocol::negotiate(post.headers, &method, &params) {
                Ok(era) => era,
                Err(error) => return rpc_error(&error, Some(&id)),
            };
            match request(post, era, &method, params, gathered).await {
                Ok(result) => printed(print(era, &id, result)),
                Err(MethodError::Rpc(error)) => rpc_error(&error, Some(&id)),
                Err(MethodError::Credential(refusal)) => {
                    challenge(&refusal, Some(&id), post.request_id)
                }
            }
        }
    }
}

/// Legacy clients may post a response; modern ones must not.
fn response(headers: &HeaderMap) -> HttpResponse {
    match protocol::version_header(headers) {
        Ok(header) if header.is_none_or(|header| header < protocol::MODERN) => {
            envelope::empty(StatusCode::ACCEPTED)
        }
        Ok(_) => {
            let message = "this endpoint sends no requests, so it accepts no responses";
            rpc_error(&RpcError::invalid_request(message), None)
        }
        Err(error) => rpc_error(&error, None),
    }
}

async fn batch(post: &McpPost<'_>, messages: Vec<Value>, gathered: &mut Gathered) -> HttpResponse {
    let oldest = matches!(
        protocol::version_header(post.headers),
        Ok(None | Some(OLDEST))
    );
    let refused = match (oldest, messages.len()) {
        (false, _) => Some("this protocol version does not support batches".to_owned()),
        (true, 0) => Some("a batch must not be empty".to_owned()),
        (true, _)
            if post.identifier != Identifier::Absent && post.credential().is_self_service() =>
        {
            Some(format!(
                "{IDEMPOTENCY_KEY} names a single call, so a batch must not have it"
            ))
        }
        (true, length) if length > BATCH_MAX => Some(format!(
            "a batch may have at most {BATCH_MAX} messages, not {length}"
        )),
        (true, _) => None,
    };
    if let Some(message) = refused {
        return rpc_error(&RpcError::invalid_request(message), None);
    }
    let messages: Vec<_> = messages.into_iter().map(protocol::decode).collect();
    // The status is one for the whole POST, so every credential is judged before anything runs.
    for message in &messages {
        if let Ok(Message::Request { method, params, .. }) = message
            && method == "tools/call"
            && let Err(refusal) = tools::judge(post, params).await
        {
            return challenge(&refusal, None, post.request_id);
        }
    }
    let mut answers = ContentParts::default();
    for message in messages {
        let answer = match message {
            Ok(Message::Request { id, .. }) if answers.bytes() > BATCH_BYTES_MAX => {
                ContentParts::from(RpcError::batch_is_full(BATCH_BYTES_MAX).print(Some(&id)))
            }
            Ok(Message::Request { id, method, params }) => {
                batched(post, &id, &method, params, gathered).await
            }
            Ok(Message::Notification | Message::Response) => continue,
            Err((id, error)) => ContentParts::from(error.print(id.as_ref())),
        };
        answers.own(if answers.bytes() == 0 { "[" } else { "," });
        answers.append(answer);
    }
    if answers.bytes() == 0 {
        return envelope::empty(StatusCode::ACCEPTED);
    }
    answers.own("]");
    printed(answers)
}

async fn batched(
    post: &McpPost<'_>,
    id: &Value,
    method: &str,
    params: Value,
    gathered: &mut Gathered,
) -> ContentParts {
    let invalid = |message: &str| RpcError::invalid_request(message).print(Some(id)).into();
    if method == "initialize" {
        return invalid("`initialize` must not be part of a batch");
    }
    if let Ok(ProtocolEra::Modern) | Err(_) = protocol::negotiate(post.headers, method, &params) {
        return invalid("a batch may hold only messages of 2025-03-26");
    }
    match request(post, ProtocolEra::Legacy, method, params, gathered).await {
        Ok(result) => print(ProtocolEra::Legacy, id, result),
        Err(MethodError::Rpc(error)) => error.print(Some(id)).into(),
        // The key was revoked between the judgement and the call.
        Err(MethodError::Credential(refusal)) => {
            let envelope = refusal.envelope(post.request_id);
            credential_error(&refusal, envelope).print(Some(id)).into()
        }
    }
}

/// The result of a method, and whether clients may keep it for a while.
enum MethodAnswer {
    Lasting(Text),
    Once(Text),
}

/// Runs one method.
async fn request(
    post: &McpPost<'_>,
    era: ProtocolEra,
    method: &str,
    params: Value,
    gathered: &mut Gathered,
) -> Result<MethodAnswer, MethodError> {
    let known = match era {
        ProtocolEra::Legacy => matches!(method, "initialize" | "ping"),
        ProtocolEra::Modern => method == "server/discover",
    };
    let shared = [
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/read",
        "resources/templates/list",
    ];
    if !known && !shared.contains(&method) {
        return Err(RpcError::unknown_method(era, method).into());
    }
    if !params.is_object() {
        return Err(RpcError::invalid_params("`params` must be an object").into());
    }
    let published = &post.snapshot.documents;
    let own = |text: String| MethodAnswer::Once(Text::Own(text));
    let shared = |bytes: &Bytes| MethodAnswer::Lasting(Text::Shared(bytes.clone()));
    Ok(match method {
        "initialize" => own(initialize(&params)?),
        "ping" => own("{}".to_owned()),
        "server/discover" => MethodAnswer::Lasting(Text::Own(discover())),
        "tools/list" => {
            no_cursor(&params)?;
            shared(&published.tools)
        }
        "resources/list" => {
            no_cursor(&params)?;
            shared(&published.resources.list)
        }
        "resources/templates/list" => {
            no_cursor(&params)?;
            shared(&Bytes::from_static(br#"{"resourceTemplates":[]}"#))
        }
        "resources/read" => shared(&resources::read(&published.resources, era, &params)?),
        _ => MethodAnswer::Once(tools::call(post, params, gathered).await?),
    })
}

fn initialize(params: &Value) -> Result<String, RpcError> {
    let Some(requested) = params.get("protocolVersion").and_then(Value::as_str) else {
        let message = "`params.protocolVersion` must be a string";
        return Err(RpcError::invalid_params(message));
    };
    // A modern version has no initialize, so whoever sends one speaks a legacy version at best.
    let legacy = VERSIONS
        .iter()
        .find(|version| **version == requested && **version != protocol::MODERN);
    let result = json!({
        "protocolVersion": legacy.unwrap_or(&LATEST_LEGACY),
        "capabilities": { "tools": {}, "resources": {} },
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    });
    Ok(result.to_string())
}

fn discover() -> String {
    let result = json!({
        "supportedVersions": VERSIONS,
        "capabilities": { "tools": {}, "resources": {} },
        "instructions": INSTRUCTIONS,
    });
    result.to_string()
}

/// A result as a message. Those of the modern era say how long they last.
fn print(era: ProtocolEra, id: &Value, answered: MethodAnswer) -> ContentParts {
    let (text, hints) = match answered {
        MethodAnswer::Lasting(text) if era == ProtocolEra::Modern => {
            (text, format!(r#","ttlMs":{TTL_MS},"cacheScope":"public""#))
        }
        MethodAnswer::Lasting(text) | MethodAnswer::Once(text) => (text, String::new()),
    };
    protocol::print_result(era, id, text, &hints)
}

fn printed(message: ContentParts) -> HttpResponse {
    let mut response = envelope::json(StatusCode::OK, Bytes::new());
    *response.body_mut() = ResponseContent::Parts(message);
    response
}

/// All lists are one page, so no cursor was ever given out.
fn no_cursor(params: &Value) -> Result<(), RpcError> {
    match params.get("cursor") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => {
            let message = "`params.cursor` is not one that this server issued";
            Err(RpcError::invalid_params(message))
        }
    }
}

fn rpc_error(error: &RpcError, id: Option<&Value>) -> HttpResponse {
    envelope::json(error.status, error.print(id))
}

fn credential_error(refusal: &Refusal, envelope: Value) -> RpcError {
    RpcError {
        status: refusal.status,
        code: i64::from(refusal.status.as_u16()),
        message: refusal.message.clone().into_owned(),
        data: Some(envelope),
    }
}

/// A refused credential: the real status, a challenge that names the scope, and the envelope in the error's data.
fn challenge(refusal: &Refusal, id: Option<&Value>, request_id: &str) -> HttpResponse {
    let error = credential_error(refusal, refusal.envelope(request_id));
    let mut response = rpc_error(&error, id);
    envelope::advise(response.headers_mut(), refusal);
    response
}

impl McpPost<'_> {
    /// The credential of this POST; never in a message.
    pub(crate) fn credential(&self) -> PresentedCredential {
        PresentedCredential::read(self.headers)
    }
}
