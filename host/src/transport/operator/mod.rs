//! The operator's API, on its own listener behind its own token. Nothing here is reachable from the public listener or MCP.

pub(crate) mod accounts;
pub(crate) mod endpoint;
pub(crate) mod events;
pub(crate) mod keys;
pub(crate) mod metrics;
mod openapi;
pub(crate) mod operations;
pub(crate) mod overview;
pub(crate) mod plugins;
pub(crate) mod request;
pub(crate) mod routes;
pub(crate) mod token;
pub(crate) mod usage;
pub(crate) mod way_out;

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use http::header::{ALLOW, WWW_AUTHENTICATE};
use http::{HeaderValue, Request, StatusCode};
use hyper::body::Incoming;
use serde_json::Value;
use uuid::Uuid;

use self::endpoint::ArrivedRequest;
use self::events::EventStreams;
use self::metrics::MetricsSources;
use self::routes::EndpointMatch;
use self::token::OperatorToken;
use self::way_out::ProxyLender;
use super::http::connection::HttpResponse;
use super::http::{envelope, known};
use super::rest;
use crate::auth::PresentedCredential;
use crate::config::Config;
use crate::contract::error::{Code, Refusal};
use crate::metering::usage_writer::UsageWriter;
use crate::pipeline::Pipeline;
use crate::places::{PlacesFull, RequestPlace};
use crate::queue::JobQueue;
use crate::registry::Registry;
use crate::stores::Store;

/// What the operator's listener serves.
pub(crate) struct OperatorApi {
    pub(crate) token: OperatorToken,
    pub(crate) config: Arc<Config>,
    pub(crate) base_url: String,
    pub(crate) store: Arc<Store>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) jobs: Arc<JobQueue>,
    pub(crate) usage: UsageWriter,
    pub(crate) metrics: MetricsSources,
    pub(crate) events: EventStreams,
    pub(crate) lender: ProxyLender,
}

impl OperatorApi {
    /// Answers one request.
    pub(crate) async fn handle(
        self: Arc<Self>,
        request: Request<Incoming>,
        visit: Arc<RequestPlace>,
    ) -> HttpResponse {
        let started = Instant::now();
        let request_id = Uuid::now_v7().to_string();
        let method = request.method().clone();
        let deadline = self.config.file.limits.request_ms.time();
        let late = || Refusal::new(Code::UpstreamTimeout, "The request did not finish in time");
        let answered = match visit.enter().await {
            Ok(()) => {
                tokio::time::timeout(deadline, pin!(self.route(request, &request_id, &visit)))
                    .await
                    .unwrap_or_else(|_| Err(late()))
            }
            Err(full) => Err(full.refusal()),
        };
        let answered = answered.and_then(|response| {
            visit
                .answer_with(response.body().own_bytes())
                .map(|()| response)
                .map_err(PlacesFull::refusal)
        });
        let mut response = match answered {
            Ok(response) => response,
            Err(refusal) => {
                if let Some(cause) = &refusal.cause {
                    let method = known(&method);
                    tracing::error!(request_id, method, cause, "an operator's request failed");
                }
                refused(&refusal, &request_id)
            }
        };
        envelope::finish(response.headers_mut(), &request_id, started.elapsed(), None);
        response
    }

    async fn route(
        &self,
        request: Request<Incoming>,
        request_id: &str,
        visit: &RequestPlace,
    ) -> Result<HttpResponse, Refusal> {
        let (parts, body) = request.into_parts();
        let authorized = match PresentedCredential::read(&parts.headers) {
            PresentedCredential::One(credential) => self.token.matches(&credential),
            PresentedCredential::Nothing | PresentedCredential::Unusable => false,
        };
        if !authorized {
            let message = "Send the operator's token (the file operator-token in the data folder) as `Authorization: Bearer`";
            return Err(Refusal::new(Code::Unauthorized, message));
        }
        visit.identified().map_err(PlacesFull::refusal)?;
        let (row, parameters) = match routes::find(&parts.method, parts.uri.path()) {
            EndpointMatch::Found(row, parameters) => (row, parameters),
            EndpointMatch::OtherMethods(allow) => {
                return Err(rest::method_not_allowed().with("allow", allow));
            }
            EndpointMatch::Nothing => {
                let message = "There is no such route; /admin/v1/openapi.json lists those of the operator's API";
                return Err(Refusal::new(Code::NotFound, message));
            }
        };
        let arrived = ArrivedRequest {
            parts,
            parameters,
            body,
            request_id: request_id.to_owned(),
        };
        row.answer(self, arrived).await
    }
}

fn refused(refusal: &Refusal, request_id: &str) -> HttpResponse {
    let mut response = envelope::refusal(refusal, request_id);
    if refusal.status == StatusCode::UNAUTHORIZED {
        envelope::set(response.headers_mut(), WWW_AUTHENTICATE, "Bearer");
    }
    if let Some(allow) = refusal.details.get("allow").and_then(Value::as_str)
        && let Ok(value) = HeaderValue::from_str(allow)
    {
        response.headers_mut().insert(ALLOW, value);
    }
    response
}
