//! `POST /mcp`: Streamable HTTP for agents, stateless, JSON only.
//!
//! Checks stand in one order: method, origin, accept, type, size, syntax, then the message's own (`protocol`). What a tool
//! does is not known here: `tools` finds the operation and the road runs it. Protocol faults are JSON-RPC errors; all that
//! an operation says is a result; only a credential's refusal is an HTTP status.

mod methods;
pub(crate) mod origins;
mod protocol;
mod resources;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use http::header::{ALLOW, ORIGIN, RETRY_AFTER};
use http::{HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;

use self::methods::McpPost;
use self::origins::AllowedOrigins;
use self::protocol::RpcError;
use super::http::connection::HttpResponse;
use super::http::envelope::TimedResponse;
use super::http::{cross_origin, envelope};
use super::rest;
use crate::metering::CallMeters;
use crate::metering::identifier::Identifier;
use crate::pipeline::Pipeline;
use crate::places::RequestPlace;
use crate::published::Snapshot;

/// The largest message, in bytes.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// What a page may send, and read, of headers.
const ALLOWED: &str = "Authorization, Content-Type, Accept, MCP-Protocol-Version, Mcp-Method, Mcp-Name, x-service-api-key, \
    Idempotency-Key";
const EXPOSED: &str = "WWW-Authenticate, MCP-Protocol-Version, X-Request-Id, Retry-After";

/// What the methods of one POST gather beside their results.
#[derive(Default)]
pub(crate) struct Gathered {
    pub(crate) meters: CallMeters,
    pub(crate) plugin: Option<Duration>,
    /// The longest wait, in seconds, that a call was told of.
    pub(crate) retry_after_s: Option<u64>,
}

/// The MCP face of the public listener.
pub(crate) struct McpTransport {
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) origins: AllowedOrigins,
    /// How long a message may take to arrive.
    pub(crate) body_time: Duration,
}

impl McpTransport {
    /// Answers any request for `/mcp`.
    pub(crate) async fn answer(
        &self,
        snapshot: &Snapshot,
        request: Request<Incoming>,
        request_id: &str,
        visit: &RequestPlace,
    ) -> TimedResponse {
        let origin = request.headers().get(ORIGIN).cloned();
        if request.method() != Method::POST && request.method() != Method::OPTIONS {
            let message = "this endpoint accepts only POST";
            let mut response = fault(StatusCode::METHOD_NOT_ALLOWED, message);
            envelope::set(response.headers_mut(), ALLOW, "POST");
            return response.into();
        }
        if let Some(origin) = &origin
            && !self.origins.allows(origin)
        {
            return fault(StatusCode::FORBIDDEN, "this Origin is not allowed").into();
        }
        let mut printed = if *request.method() == Method::OPTIONS {
            let methods = HeaderValue::from_static("POST, OPTIONS");
            cross_origin::permission(methods, ALLOWED).into()
        } else {
            self.post(snapshot, request, request_id, visit).await
        };
        if let Some(origin) = origin {
            cross_origin::expose(printed.response.headers_mut(), origin, EXPOSED);
        }
        printed
    }

    async fn post(
        &self,
        snapshot: &Snapshot,
        request: Request<Incoming>,
        request_id: &str,
        visit: &RequestPlace,
    ) -> TimedResponse {
        let (parts, body) = request.into_parts();
        let headers = &parts.headers;
        // Wildcards do not count: a client that lists neither is a browser or a probe.
        let listed = |media_type| rest::accepts(headers, media_type);
        if !listed("application/json") || !listed("text/event-stream") {
            let message = "Accept must list application/json and text/event-stream";
            return fault(StatusCode::NOT_ACCEPTABLE, message).into();
        }
        if !rest::is_json(headers) {
            let message = "Content-Type must be application/json";
            return fault(StatusCode::UNSUPPORTED_MEDIA_TYPE, message).into();
        }
        let body = match rest::read_body(headers, body, MESSAGE_BYTES_MAX, self.body_time).await {
            Ok(body) => body,
            Err(refusal) => return fault(refusal.status, &refusal.message).into(),
        };
        let post = McpPost {
            pipeline: &self.pipeline,
            snapshot,
            headers,
            request_id,
            identifier: Identifier::read(headers),
            visit,
        };
        let mut gathered = Gathered::default();
        let mut response = methods::answer(&post, &body, &mut gathered).await;
        let headers = response.headers_mut();
        envelope::meters(headers, &gathered.meters);
        if let Some(seconds) = gathered.retry_after_s {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        let plugin = gathered.plugin;
        TimedResponse { response, plugin }
    }
}

/// A fault of transport: an HTTP status with a JSON-RPC error that has no id, because no message was read.
fn fault(status: StatusCode, message: &str) -> HttpResponse {
    envelope::json(status, RpcError::invalid_request(message).print(None))
}
