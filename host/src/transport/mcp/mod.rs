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

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, ORIGIN, RETRY_AFTER, VARY,
};
use http::{HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;

use self::origins::AllowedOrigins;
use self::protocol::RpcError;
use super::http::connection::HttpResponse;
use super::http::envelope;
use super::rest;
use crate::metering::CallMeters;
use crate::pipeline::Pipeline;
use crate::places::RequestPlace;
use crate::published::Snapshot;

/// The largest message, in bytes.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// A response, and the time that plugins took of it.
pub(crate) struct McpAnswer {
    pub(crate) response: HttpResponse,
    pub(crate) plugin: Option<Duration>,
}

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
    ) -> McpAnswer {
        let origin = request.headers().get(ORIGIN).cloned();
        if request.method() != Method::POST && request.method() != Method::OPTIONS {
            let mut response = fault(
                StatusCode::METHOD_NOT_ALLOWED,
                "this endpoint accepts only POST",
            );
            response
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static("POST"));
            return printed(response);
        }
        if let Some(origin) = &origin
            && !self.origins.allows(origin)
        {
            return printed(fault(StatusCode::FORBIDDEN, "this Origin is not allowed"));
        }
        let mut printed = if *request.method() == Method::OPTIONS {
            printed(preflight())
        } else {
            self.post(snapshot, request, request_id, visit).await
        };
        if let Some(origin) = origin {
            let headers = printed.response.headers_mut();
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.append(VARY, HeaderValue::from_static("Origin"));
            let exposed = format!(
                "WWW-Authenticate, MCP-Protocol-Version, X-Request-Id, Retry-After, {}",
                envelope::METERS
            );
            headers.insert(
                ACCESS_CONTROL_EXPOSE_HEADERS,
                HeaderValue::try_from(exposed).expect("names are a header value"),
            );
        }
        printed
    }

    async fn post(
        &self,
        snapshot: &Snapshot,
        request: Request<Incoming>,
        request_id: &str,
        visit: &RequestPlace,
    ) -> McpAnswer {
        let (parts, body) = request.into_parts();
        // Wildcards do not count: a client that lists neither is a browser or a probe.
        let listed = |media_type| rest::accepts(&parts.headers, media_type);
        if !listed("application/json") || !listed("text/event-stream") {
            return printed(fault(
                StatusCode::NOT_ACCEPTABLE,
                "Accept must list application/json and text/event-stream",
            ));
        }
        if !rest::is_json(&parts.headers) {
            return printed(fault(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "Content-Type must be application/json",
            ));
        }
        let body =
            match rest::read_body(&parts.headers, body, MESSAGE_BYTES_MAX, self.body_time).await {
                Ok(body) => body,
                Err(refusal) => return printed(fault(refusal.status, &refusal.message)),
            };
        let mut gathered = Gathered::default();
        let mut response = methods::answer(
            &self.pipeline,
            snapshot,
            &parts.headers,
            &body,
            request_id,
            visit,
            &mut gathered,
        )
        .await;
        envelope::meters(response.headers_mut(), &gathered.meters);
        if let Some(seconds) = gathered.retry_after_s {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        McpAnswer {
            response,
            plugin: gathered.plugin,
        }
    }
}

fn preflight() -> HttpResponse {
    let mut response = envelope::empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    let allowed = "Authorization, Content-Type, Accept, MCP-Protocol-Version, Mcp-Method, Mcp-Name, x-service-api-key, \
                   Idempotency-Key";
    headers.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("POST, OPTIONS"),
    );
    headers.insert(
        ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static(allowed),
    );
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

/// A fault of transport: an HTTP status with a JSON-RPC error that has no id, because no message was read.
fn fault(status: StatusCode, message: &str) -> HttpResponse {
    envelope::json(status, RpcError::invalid_request(message).print(None))
}

fn printed(response: HttpResponse) -> McpAnswer {
    McpAnswer {
        response,
        plugin: None,
    }
}
