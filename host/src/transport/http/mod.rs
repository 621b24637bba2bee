//! The public listener: from a request to the room that answers it.
//!
//! Each request gets its id and its deadline here, and every response its closing headers.
//! What an operation is, `rest` finds; this file knows only the host's own routes.

mod activity;
mod compressor;
pub(crate) mod connection;
pub(crate) mod content;
pub(crate) mod cross_origin;
pub(crate) mod discovery;
pub(crate) mod envelope;
mod guarded;
mod sending;

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::{ALLOW, HOST};
use http::{Method, Request, Version};
use hyper::body::Incoming;
use uuid::Uuid;

use self::connection::HttpResponse;
use self::discovery::HostRoutes;
use self::envelope::TimedResponse;
use super::mcp::McpTransport;
use super::rest;
use super::rest::RestTransport;
use crate::base::clock::microseconds;
use crate::contract::error::{Code, Refusal};
use crate::places::RequestPlace;
use crate::registry::Registry;

/// What the public listener serves.
pub(crate) struct PublicApi {
    pub(crate) registry: Arc<Registry>,
    pub(crate) rest: RestTransport,
    pub(crate) mcp: McpTransport,
    pub(crate) host_routes: HostRoutes,
    /// How long a request may take.
    pub(crate) request_time: Duration,
}

impl PublicApi {
    /// Answers one request of the public listener.
    pub(crate) async fn handle(
        self: Arc<Self>,
        request: Request<Incoming>,
        visit: Arc<RequestPlace>,
    ) -> HttpResponse {
        let started = Instant::now();
        let request_id = Uuid::now_v7().to_string();
        let method = request.method().clone();
        // How the host is must be told also when everything is taken.
        let entered = if discovery::is_health(request.uri().path()) {
            Ok(())
        } else {
            visit.enter().await
        };
        let mut printed = match entered {
            Ok(()) => {
                // Pinned where it stands: it is kilobytes, and each move would copy them.
                let routed = pin!(self.route(request, &request_id, &visit));
                tokio::time::timeout(self.request_time, routed)
                    .await
                    .unwrap_or_else(|_| refused(&too_slow(self.request_time), &request_id))
            }
            Err(full) => refused(&full.refusal(), &request_id),
        };
        if let Err(full) = visit.answer_with(printed.response.body().own_bytes()) {
            printed = refused(&full.refusal(), &request_id);
        }
        if method == Method::HEAD {
            rest::take_body(&mut printed.response);
        }
        let headers = printed.response.headers_mut();
        envelope::finish(headers, &request_id, started.elapsed(), printed.plugin);
        let status = printed.response.status().as_u16();
        tracing::debug!(
            request_id,
            method = known(&method),
            status,
            elapsed_us = microseconds(started.elapsed()),
            "answered"
        );
        printed.response
    }

    async fn route(
        &self,
        request: Request<Incoming>,
        request_id: &str,
        visit: &RequestPlace,
    ) -> TimedResponse {
        if !names_its_host(&request) {
            let rule = "An HTTP/1.1 request must have exactly one Host header";
            return refused(&Refusal::invalid(None, rule), request_id);
        }
        let snapshot = self.registry.current();
        let path = request.uri().path();
        if path.starts_with("/api/") {
            let (rest, catalogue) = (&self.rest, &snapshot.catalogue);
            return rest.answer(catalogue, request, request_id, visit).await;
        }
        if path == "/mcp" {
            return self.mcp.answer(&snapshot, request, request_id, visit).await;
        }
        let Some(found) = self.host_routes.find(path) else {
            return refused(&rest::no_route(), request_id);
        };
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut printed = refused(&rest::method_not_allowed(), request_id);
            envelope::set(printed.response.headers_mut(), ALLOW, "GET, HEAD");
            return printed;
        }
        let response = self.host_routes.answer(&snapshot, found, request.headers());
        response.into()
    }
}

/// A method's name for the log. Any token can be a method, so those that nobody registered may be anything.
pub(crate) fn known(method: &Method) -> &str {
    match *method {
        Method::GET
        | Method::HEAD
        | Method::POST
        | Method::PUT
        | Method::PATCH
        | Method::DELETE
        | Method::OPTIONS => method.as_str(),
        _ => "other",
    }
}

/// RFC 9112, 3.2. Where there are two, this host and a proxy before it could mean different ones.
fn names_its_host(request: &Request<Incoming>) -> bool {
    request.version() != Version::HTTP_11 || request.headers().get_all(HOST).iter().count() == 1
}

fn too_slow(deadline: Duration) -> Refusal {
    let message = format!("The request did not finish within {} s", deadline.as_secs());
    Refusal::new(Code::UpstreamTimeout, message)
}

fn refused(refusal: &Refusal, request_id: &str) -> TimedResponse {
    envelope::refusal(refusal, request_id).into()
}
