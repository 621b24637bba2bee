//! The operator's API, on its own listener behind its own token. Nothing here is reachable from the public listener or MCP.

pub(crate) mod accounts;
pub(crate) mod events;
pub(crate) mod keys;
pub(crate) mod metrics;
mod openapi;
mod overview;
mod plugins;
pub(crate) mod request;
pub(crate) mod routes;
pub(crate) mod token;
pub(crate) mod usage;
pub(crate) mod way_out;

use std::pin::pin;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use http::header::{ALLOW, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderValue, Request, StatusCode};
use hyper::body::{Bytes, Incoming};
use serde_json::Value;
use uuid::Uuid;

use self::events::EventStreams;
use self::metrics::MetricsSources;
use self::plugins::ActRequest;
use self::request::RequestError;
use self::routes::{
    AnswerForm, BodyForm, CustomerEndpoint, EndpointMatch, HostEndpoint, OperatorRoute,
    PluginEndpoint, RouteEndpoint,
};
use self::token::OperatorToken;
use self::usage::{ExportFormat, UsageRequest};
use self::way_out::ProxyLender;
use super::http::connection::HttpResponse;
use super::http::{envelope, known};
use super::rest;
use crate::auth::PresentedCredential;
use crate::config::Config;
use crate::contract::error::{Code, Refusal};
use crate::metering::usage_writer::UsageWriter;
use crate::observe::exposition;
use crate::places::{PlacesFull, RequestPlace};
use crate::queue::JobQueue;
use crate::registry::{PluginAction, Registry};
use crate::runtime::components::COMPONENT_BYTES_MAX;
use crate::stores::Store;

const BODY_BYTES_MAX: usize = 16 * 1024;

/// What the operator's listener serves.
pub(crate) struct OperatorApi {
    pub(crate) token: OperatorToken,
    pub(crate) config: Arc<Config>,
    pub(crate) base_url: String,
    pub(crate) store: Arc<Store>,
    pub(crate) registry: Arc<Registry>,
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
        let deadline = self.config.transport.request;
        let late = || Refusal::new(Code::UpstreamTimeout, "The request did not finish in time");
        let answered = match visit.enter().await {
            Ok(()) => tokio::time::timeout(deadline, pin!(self.route(request, &visit)))
                .await
                .unwrap_or_else(|_| Err(late())),
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
        let (route, parameters) = match routes::find(&parts.method, parts.uri.path()) {
            EndpointMatch::Route(route, parameters) => (route, parameters),
            EndpointMatch::OtherMethods(allow) => {
                return Err(rest::method_not_allowed().with("allow", allow));
            }
            EndpointMatch::Nothing => {
                let message = "There is no such route; /admin/v1/openapi.json lists those of the operator's API";
                return Err(Refusal::new(Code::NotFound, message));
            }
        };
        let request = OperatorRequest { parts, parameters };
        match route.endpoint {
            RouteEndpoint::Host(endpoint) => self.host(endpoint, route, &request, body).await,
            RouteEndpoint::Plugin(endpoint) => {
                let data = self.plugin(endpoint, route, &request, body).await?;
                Ok(enveloped(route, &data))
            }
            RouteEndpoint::Customer(endpoint) => {
                let body = match route.body {
                    BodyForm::None => Bytes::new(),
                    BodyForm::Key
                    | BodyForm::Account
                    | BodyForm::Entitlement
                    | BodyForm::Component
                    | BodyForm::Act(_) => self.read_body(&request, body).await?,
                };
                let data = self.customer(endpoint, &request, &body).await?;
                Ok(enveloped(route, &data))
            }
        }
    }

    async fn read_body(&self, request: &OperatorRequest, body: Incoming) -> Result<Bytes, Refusal> {
        let time = self.config.transport.body;
        rest::read_body(&request.parts.headers, body, BODY_BYTES_MAX, time).await
    }

    /// What is asked about the process.
    async fn host(
        &self,
        endpoint: HostEndpoint,
        route: &OperatorRoute,
        request: &OperatorRequest,
        body: Incoming,
    ) -> Result<HttpResponse, Refusal> {
        let data = match endpoint {
            HostEndpoint::Metrics => {
                return Ok(printed(self.metrics.text().await, exposition::CONTENT_TYPE));
            }
            HostEndpoint::OpenApi => {
                let document = openapi::document().to_string();
                return Ok(envelope::json(StatusCode::OK, document));
            }
            HostEndpoint::Events => {
                let headers = &request.parts.headers;
                return self.events.stream(headers, request.query()).await;
            }
            HostEndpoint::Usage => {
                return self.used(request.query().unwrap_or_default()).await;
            }
            HostEndpoint::Audit => usage::audit(&self.store).await?,
            HostEndpoint::Config => overview::config(&self.config, &self.base_url),
            HostEndpoint::Status => {
                let (public, since) = (&self.metrics.public, self.metrics.started_at);
                overview::status(&self.registry, &self.store, public, since).await?
            }
            HostEndpoint::History => self.events.history(request.query()).await?,
            HostEndpoint::Follow => {
                ActRequest::read(&self.read_body(request, body).await?, route.body)?;
                plugins::follow(&self.registry).await?
            }
        };
        Ok(enveloped(route, &data))
    }

    /// What is asked about plugins, and done to them.
    async fn plugin(
        &self,
        endpoint: PluginEndpoint,
        route: &OperatorRoute,
        request: &OperatorRequest,
        body: Incoming,
    ) -> Result<Value, Refusal> {
        let (registry, plugin) = (&self.registry, request.plugin());
        let act = async |body| ActRequest::read(&self.read_body(request, body).await?, route.body);
        match endpoint {
            PluginEndpoint::Plugins => plugins::list(registry).await,
            PluginEndpoint::Plugin => plugins::show(registry, plugin).await,
            PluginEndpoint::Revisions => plugins::list_revisions(registry, plugin).await,
            PluginEndpoint::Revision => {
                plugins::show_revision(registry, plugin, request.revision()?).await
            }
            PluginEndpoint::Compare => {
                plugins::compare(registry, plugin, request.revision()?, request.query()).await
            }
            PluginEndpoint::Stage if is_component(&request.parts) => {
                let asked = ActRequest::read_query(request.query().unwrap_or_default())?;
                let bytes_max = usize::try_from(COMPONENT_BYTES_MAX).unwrap_or(usize::MAX);
                let time = self.config.transport.request;
                let component = rest::read_bytes(body, bytes_max, time).await?;
                plugins::stage(registry, plugin, asked, Some(component)).await
            }
            PluginEndpoint::Stage => plugins::stage(registry, plugin, act(body).await?, None).await,
            PluginEndpoint::Approve => {
                let asked = act(body).await?;
                let approval = asked.approval(request.revision()?)?;
                plugins::act(registry, plugin, approval, &asked).await
            }
            PluginEndpoint::Reject => {
                let (asked, number) = (act(body).await?, request.revision()?);
                plugins::act(registry, plugin, PluginAction::Reject { number }, &asked).await
            }
            PluginEndpoint::Activate => {
                let (asked, number) = (act(body).await?, request.revision()?);
                plugins::act(registry, plugin, PluginAction::Activate { number }, &asked).await
            }
            PluginEndpoint::Rollback => {
                let asked = act(body).await?;
                let rollback = PluginAction::Rollback { to: asked.to };
                plugins::act(registry, plugin, rollback, &asked).await
            }
            PluginEndpoint::Disable => {
                plugins::act(registry, plugin, PluginAction::Disable, &act(body).await?).await
            }
            PluginEndpoint::Enable => {
                plugins::act(registry, plugin, PluginAction::Enable, &act(body).await?).await
            }
            PluginEndpoint::Revoke => {
                let asked = act(body).await?;
                plugins::act(registry, plugin, asked.revocation()?, &asked).await
            }
            PluginEndpoint::LendProxy => self.lender.lend(plugin, &act(body).await?),
        }
    }

    /// What is asked about keys and accounts.
    async fn customer(
        &self,
        endpoint: CustomerEndpoint,
        request: &OperatorRequest,
        body: &[u8],
    ) -> Result<Value, RequestError> {
        let (store, now) = (&self.store, SystemTime::now());
        let id = request.parameter("id").to_owned();
        match endpoint {
            CustomerEndpoint::Keys => keys::list(store).await,
            CustomerEndpoint::IssueKey => keys::issue(store, &request::read(body)?, now).await,
            CustomerEndpoint::RotateKey => {
                let rotated = keys::rotate(store, &id, now).await;
                rotated.inspect(|_| self.jobs.keys_changed())
            }
            CustomerEndpoint::RevokeKey => {
                let revoked = keys::revoke(store, &id, now).await;
                revoked.inspect(|_| self.jobs.keys_changed())
            }
            CustomerEndpoint::Accounts => accounts::list(store).await,
            CustomerEndpoint::OpenAccount => {
                accounts::open(store, &request::read(body)?, now).await
            }
            CustomerEndpoint::Account => accounts::show(store, &id, now).await,
            CustomerEndpoint::Entries => {
                let query = request.query().unwrap_or_default().as_bytes();
                let mut after = form_urlencoded::parse(query).filter(|(name, _)| name == "after");
                let after = after.next().map(|(_, after)| after.into_owned());
                usage::entries(store, &id, after.as_deref()).await
            }
            CustomerEndpoint::Entitle => {
                accounts::entitle(store, &id, Some(&request::read(body)?), now).await
            }
            CustomerEndpoint::Withdraw => {
                let withdrawn = accounts::entitle(store, &id, None, now).await;
                withdrawn.inspect(|_| self.jobs.keys_changed())
            }
        }
    }

    /// Usage. What was counted is written first, so that it is told up to this moment.
    async fn used(&self, query: &str) -> Result<HttpResponse, Refusal> {
        let (request, format) = UsageRequest::read(query)?;
        self.usage.write().await;
        let now = SystemTime::now();
        let used = usage::usage(&self.store, &request, now).await?;
        Ok(match format {
            ExportFormat::Json => {
                let data = envelope::success(&used.json().to_string());
                envelope::json(StatusCode::OK, data)
            }
            ExportFormat::Csv => printed(used.csv(), "text/csv; charset=utf-8"),
        })
    }
}

fn enveloped(route: &OperatorRoute, data: &Value) -> HttpResponse {
    let status = match route.answers {
        AnswerForm::Created => StatusCode::CREATED,
        AnswerForm::Accepted => StatusCode::ACCEPTED,
        AnswerForm::Data | AnswerForm::Plain(_) => StatusCode::OK,
    };
    envelope::json(status, envelope::success(&data.to_string()))
}

fn printed(text: String, media_type: &'static str) -> HttpResponse {
    let mut response = envelope::json(StatusCode::OK, text);
    envelope::set(response.headers_mut(), CONTENT_TYPE, media_type);
    response
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

/// A request that a route was found for.
struct OperatorRequest {
    parts: Parts,
    parameters: Vec<(&'static str, String)>,
}

impl OperatorRequest {
    fn parameter(&self, name: &str) -> &str {
        let mut parameters = self.parameters.iter();
        let found = parameters.find(|(known, _)| *known == name);
        found.map_or("", |(_, value)| value)
    }

    fn plugin(&self) -> &str {
        self.parameter("plugin")
    }

    fn revision(&self) -> Result<u64, Refusal> {
        let number = self.parameter("revision").parse();
        number.map_err(|_| plugins::invalid("revision", "must be a number"))
    }

    fn query(&self) -> Option<&str> {
        self.parts.uri.query()
    }
}

/// Whether the body is a component and not JSON about one.
fn is_component(parts: &Parts) -> bool {
    let media_type = parts.headers.get(CONTENT_TYPE);
    media_type.is_some_and(|value| value == "application/wasm")
}
