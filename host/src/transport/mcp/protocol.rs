//! JSON-RPC and the protocol versions: which era a message belongs to, whether its headers and metadata agree, and how an
//! answer of that era looks.
//!
//! "Legacy" are the versions with `initialize` (2025-03-26 to 2025-11-25), "modern" is 2026-07-28, where each request
//! carries its own metadata. Knows no tool and no credential.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use crate::contract::error::sentence;
use crate::published::cards::{VERSIONS, server_info};
use crate::transport::http::content::ContentParts;

pub(crate) const MODERN: &str = VERSIONS[0];
pub(crate) const LATEST_LEGACY: &str = VERSIONS[1];
/// The one version with batches, and the one that a client without the header speaks.
pub(crate) const OLDEST: &str = VERSIONS[3];

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// How a message is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProtocolEra {
    Legacy,
    Modern,
}

/// A request, a notification or a response, as its members say.
pub(crate) enum Message {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification,
    Response,
}

/// A JSON-RPC error and the HTTP status that carries it.
#[derive(Debug)]
pub(crate) struct RpcError {
    pub(crate) status: StatusCode,
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl RpcError {
    fn new(status: StatusCode, code: i64, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: sentence(message.into()).into_owned(),
            data: None,
        }
    }

    pub(crate) fn parse(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, -32700, message)
    }

    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, -32600, message)
    }

    /// An unknown method: 404 is for modern clients alone; legacy ones read any status but 200 as a broken transport.
    pub(crate) fn unknown_method(era: ProtocolEra, method: &str) -> Self {
        let status = match era {
            ProtocolEra::Legacy => StatusCode::OK,
            ProtocolEra::Modern => StatusCode::NOT_FOUND,
        };
        let shown: String = method.chars().take(100).collect();
        Self::new(status, -32601, format!("Method not found: {shown}"))
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(StatusCode::OK, -32602, message)
    }

    /// A message of a batch that was not looked at, because the answers before it are enough for one batch.
    pub(crate) fn batch_is_full(bytes_max: usize) -> Self {
        let message = format!(
            "The responses to this batch exceed {bytes_max} bytes: send this message in another batch"
        );
        Self::new(StatusCode::OK, -32000, message)
    }

    fn unsupported_version(requested: &str) -> Self {
        let message = format!("Unsupported protocol version: {requested}");
        Self::new(StatusCode::BAD_REQUEST, -32022, message)
            .with_data(json!({ "supported": VERSIONS, "requested": requested }))
    }

    pub(crate) fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// The error as a JSON-RPC message. Without an id the member is left out: MCP forbids null.
    pub(crate) fn print(&self, id: Option<&Value>) -> String {
        let mut message = json!({ "jsonrpc": "2.0" });
        if let Some(id) = id {
            message["id"] = id.clone();
        }
        message["error"] = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            message["error"]["data"] = data.clone();
        }
        message.to_string()
    }
}

/// Refuses a header that does not say what the message does.
fn mismatch<T>(message: impl Into<String>) -> Result<T, RpcError> {
    let message = message.into();
    Err(RpcError::new(StatusCode::BAD_REQUEST, -32020, message))
}

/// Refuses a request's metadata.
fn bad_metadata<T>(message: impl Into<String>) -> Result<T, RpcError> {
    let message = message.into();
    Err(RpcError::new(StatusCode::BAD_REQUEST, -32602, message))
}

/// Reads the members that every message has. The error comes with the id, where a usable one can be read.
pub(crate) fn decode(message: Value) -> Result<Message, (Option<Value>, RpcError)> {
    let Value::Object(mut message) = message else {
        let error = RpcError::invalid_request("a message must be a JSON object");
        return Err((None, error));
    };
    let id = message.remove("id");
    let is_usable = |id: &Value| id.is_string() || id.is_i64() || id.is_u64();
    let usable = id.clone().filter(is_usable);
    let invalid = |text: &str| (usable.clone(), RpcError::invalid_request(text));
    if message.get("jsonrpc") != Some(&json!("2.0")) {
        return Err(invalid("`jsonrpc` must be \"2.0\""));
    }
    if id.is_some() && usable.is_none() {
        return Err(invalid("`id` must be a string or an integer"));
    }
    match message.remove("method") {
        Some(Value::String(method)) => match usable {
            Some(id) => {
                // As with every optional member, null is no value.
                let params = message.remove("params").filter(|params| !params.is_null());
                let params = params.unwrap_or_else(|| json!({}));
                Ok(Message::Request { id, method, params })
            }
            None => Ok(Message::Notification),
        },
        Some(_) => Err(invalid("`method` must be a string")),
        None if message.contains_key("result") || message.contains_key("error") => {
            Ok(Message::Response)
        }
        None => Err(invalid("`method` is missing")),
    }
}

/// The version that the header names; an error where it is sent twice or is no text.
pub(crate) fn version_header(headers: &HeaderMap) -> Result<Option<&str>, RpcError> {
    single(headers, "mcp-protocol-version")
}

/// Decides the era of a request and checks everything that the era demands of headers and metadata.
pub(crate) fn negotiate(
    headers: &HeaderMap,
    method: &str,
    params: &Value,
) -> Result<ProtocolEra, RpcError> {
    let header = version_header(headers)?;
    let meta = params.get("_meta").and_then(|meta| meta.get(META_VERSION));
    let modern = meta.is_some()
        || header.is_some_and(|header| header >= MODERN)
        || method == "server/discover";
    if !modern {
        return match header {
            // An initialize request carries its version in its body; the header does not count.
            Some(header) if method != "initialize" && !VERSIONS.contains(&header) => {
                Err(RpcError::unsupported_version(header))
            }
            _ => Ok(ProtocolEra::Legacy),
        };
    }
    let Some(Value::String(version)) = meta else {
        return bad_metadata(format!(
            "`params._meta` must have `{META_VERSION}` as a string"
        ));
    };
    match header {
        None => return mismatch("the header MCP-Protocol-Version is missing"),
        Some(header) if header != version => {
            return mismatch(format!(
                "the header MCP-Protocol-Version is {header}, but params._meta says {version}"
            ));
        }
        Some(header) if !VERSIONS.contains(&header) => {
            return Err(RpcError::unsupported_version(header));
        }
        // A client may retry with a version from the list that discovery gave it.
        Some(header) if header != MODERN => return Ok(ProtocolEra::Legacy),
        Some(_) => {}
    }
    match_method(headers, method)?;
    match_name(headers, method, params)?;
    let meta = params.get("_meta");
    let capabilities = meta.and_then(|meta| meta.get(META_CAPABILITIES));
    if !capabilities.is_some_and(Value::is_object) {
        return bad_metadata(format!(
            "`params._meta` must have `{META_CAPABILITIES}` as an object"
        ));
    }
    Ok(ProtocolEra::Modern)
}

fn match_method(headers: &HeaderMap, method: &str) -> Result<(), RpcError> {
    match single(headers, "mcp-method")? {
        Some(header) if header == method => Ok(()),
        Some(header) => mismatch(format!(
            "the header Mcp-Method is {header}, but the method is {method}"
        )),
        None => mismatch("the header Mcp-Method is missing"),
    }
}

/// `Mcp-Name` must say what a named request names. Where the parameter itself is missing, the method will say so.
fn match_name(headers: &HeaderMap, method: &str, params: &Value) -> Result<(), RpcError> {
    let parameter = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return Ok(()),
    };
    let Some(expected) = params.get(parameter).and_then(Value::as_str) else {
        return Ok(());
    };
    let Some(header) = single(headers, "mcp-name")? else {
        return mismatch("the header Mcp-Name is missing");
    };
    let header = header.trim_matches([' ', '\t']);
    let encoded = header.strip_prefix("=?base64?");
    let found = match encoded.and_then(|rest| rest.strip_suffix("?=")) {
        None => header.to_owned(),
        Some(encoded) => match decode_base64(encoded) {
            Some(found) => found,
            None => return mismatch("the header Mcp-Name is not base64 of UTF-8 text"),
        },
    };
    if found == expected {
        Ok(())
    } else {
        mismatch(format!(
            "the header Mcp-Name does not equal `params.{parameter}`"
        ))
    }
}

fn decode_base64(text: &str) -> Option<String> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text);
    String::from_utf8(bytes.ok()?).ok()
}

fn single<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let Some(first) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return mismatch(format!("the header {name} appears more than once"));
    }
    match std::str::from_utf8(first.as_bytes()) {
        Ok(text) => Ok(Some(text)),
        Err(_) => mismatch(format!("the header {name} is not UTF-8 text")),
    }
}

/// A result: JSON text, an object.
pub(crate) enum Text {
    Own(String),
    /// Made with the documents, and in no answer copied.
    Shared(Bytes),
}

/// A result message around a result, to which a modern answer adds its members: its own and those of `hints`, JSON text that
/// begins with a comma.
pub(crate) fn print_result(
    era: ProtocolEra,
    id: &Value,
    result: Text,
    hints: &str,
) -> ContentParts {
    let mut message = ContentParts::default();
    message.own(r#"{"jsonrpc":"2.0","id":"#);
    message.own(&id.to_string());
    message.own(r#","result":"#);
    let length = match &result {
        Text::Own(text) => text.len(),
        Text::Shared(bytes) => bytes.len(),
    };
    let modern = era == ProtocolEra::Modern;
    // Its closing bracket comes after the added members.
    let open = length.saturating_sub(usize::from(modern));
    match result {
        Text::Own(text) => message.own(&text[..open]),
        Text::Shared(bytes) => message.shared(bytes.slice(..open)),
    }
    if modern {
        let follows = open > 1 || !hints.is_empty();
        let comma = if follows { "," } else { "" };
        let meta = json!({ META_SERVER: server_info() });
        message.own(hints);
        message.own(&format!(
            r#"{comma}"resultType":"complete","_meta":{meta}}}"#
        ));
    }
    message.own("}");
    message
}
