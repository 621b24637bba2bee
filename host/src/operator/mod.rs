//! The operator's API, on its own listener behind its own token. Nothing here is reachable from the public listener or MCP.

pub(crate) mod accounts;
pub(crate) mod client;
pub(crate) mod events;
pub(crate) mod keys;
mod metrics;
mod openapi;
mod overview;
mod plugins;
pub(crate) mod request;
mod routes;
pub(crate) mod token;
pub(crate) mod usage;
mod way_out;

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use http::header::{ALLOW, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderValue, Request, StatusCode};
use hyper::body::{Bytes, Incoming};
use serde_json::Value;
use uuid::Uuid;

use self::plugins::ActRequest;
use self::request::RequestError;
use self::routes::{AnswerForm, BodyForm, Endpoint, EndpointMatch, OperatorRoute};
use self::usage::{ExportFormat, UsageRequest};
use crate::app::App;
use crate::auth::Presented;
use crate::error::{Code, Refusal};
use crate::http::connection::HttpResponse;
use crate::http::{envelope, known, rest};
use crate::metrics::exposition;
use crate::places::{PlacesFull, RequestPlace};
use crate::registry;
use crate::registry::components::COMPONENT_BYTES_MAX;
use crate::stores::Store;

const BODY_BYTES_MAX: usize = 16 * 1024;

/// Answers one request of the operator's listener.
pub(crate) async fn handle(app: Arc<App>, request: Request<Incoming>, visit: Arc<RequestPlace>) -> HttpResponse {
    let started = Instant::now();
    let request_id = Uuid::now_v7().to_string();
    let method = request.method().clone();
    let deadline = app.config.transport.request;
    let late = || Refusal::new(Code::UpstreamTimeout, "The request did not finish in time");
    let answered = match visit.enter().await {
        Ok(()) => tokio::time::timeout(deadline, route(&app, request, &visit)).await.unwrap_or_else(|_| Err(late())),
        Err(full) => Err(full.refusal()),
    };
    let answered = answered.and_then(|response| {
        visit.answer_with(response.body().own_bytes()).map(|()| response).map_err(PlacesFull::refusal)
    });
    let mut response = match answered {
        Ok(response) => response,
        Err(refusal) => {
            if let Some(cause) = &refusal.cause {
                tracing::error!(request_id, method = known(&method), cause, "an operator's request failed");
            }
            refused(&refusal, &request_id)
        }
    };
    envelope::finish(response.headers_mut(), &request_id, started.elapsed(), None);
    response
}

fn refused(refusal: &Refusal, request_id: &str) -> HttpResponse {
    let mut response = envelope::refusal(refusal, request_id);
    if refusal.status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let Some(allow) = refusal.details.get("allow").and_then(Value::as_str)
        && let Ok(value) = HeaderValue::from_str(allow)
    {
        response.headers_mut().insert(ALLOW, value);
    }
    response
}

async fn route(app: &Arc<App>, request: Request<Incoming>, visit: &RequestPlace) -> Result<HttpResponse, Refusal> {
    let (parts, body) = request.into_parts();
    let authorized = match Presented::read(&parts.headers) {
        Presented::One(credential) => app.operator_token.matches(&credential),
        Presented::Nothing | Presented::Unusable => false,
    };
    if !authorized {
        let message =
            "Send the operator's token (the file operator-token in the data folder) as `Authorization: Bearer`";
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
    answer(app, route, &OperatorRequest { parts, parameters }, body).await
}

/// A request that a route was found for.
struct OperatorRequest {
    parts: Parts,
    parameters: Vec<(&'static str, String)>,
}

impl OperatorRequest {
    fn parameter(&self, name: &str) -> &str {
        self.parameters.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    fn plugin(&self) -> &str {
        self.parameter("plugin")
    }

    fn revision(&self) -> Result<u64, Refusal> {
        self.parameter("revision")
            .parse()
            .map_err(|_| Refusal::new(Code::ValidationError, "`revision` must be a number").with("field", "revision"))
    }

    fn query(&self) -> Option<&str> {
        self.parts.uri.query()
    }
}

async fn answer(
    app: &Arc<App>,
    route: &OperatorRoute,
    asking: &OperatorRequest,
    body: Incoming,
) -> Result<HttpResponse, Refusal> {
    let plugin = asking.plugin();
    let read =
        async |body| rest::read_body(&asking.parts.headers, body, BODY_BYTES_MAX, app.config.transport.body).await;
    let data = match route.endpoint {
        Endpoint::Metrics => return Ok(metrics(app)),
        Endpoint::OpenApi => {
            return Ok(envelope::json(StatusCode::OK, openapi::document().to_string()));
        }
        Endpoint::Events => {
            return events::stream(app, &asking.parts.headers, asking.query()).await;
        }
        Endpoint::Usage => return used(app, asking.query().unwrap_or_default()).await,
        Endpoint::Keys
        | Endpoint::IssueKey
        | Endpoint::RotateKey
        | Endpoint::RevokeKey
        | Endpoint::Accounts
        | Endpoint::OpenAccount
        | Endpoint::Account
        | Endpoint::Entries
        | Endpoint::Entitle
        | Endpoint::Withdraw
        | Endpoint::Audit => {
            let body = if route.body == BodyForm::None { Bytes::new() } else { read(body).await? };
            customers(app, route.endpoint, asking, &body).await.map_err(RequestError::refusal)?
        }
        Endpoint::Config => overview::config(app),
        Endpoint::Status => overview::status(app).await?,
        Endpoint::History => events::history(app, asking.query()).await?,
        Endpoint::Plugins => plugins::list(app).await?,
        Endpoint::Plugin => plugins::show(app, plugin).await?,
        Endpoint::Revisions => plugins::list_revisions(app, plugin).await?,
        Endpoint::Revision => plugins::show_revision(app, plugin, asking.revision()?).await?,
        Endpoint::Compare => plugins::compare(app, plugin, asking.revision()?, asking.query()).await?,
        Endpoint::Stage if is_component(&asking.parts) => {
            let asked = ActRequest::read_query(asking.query().unwrap_or_default())?;
            let bytes_max = usize::try_from(COMPONENT_BYTES_MAX).unwrap_or(usize::MAX);
            let component = rest::read_bytes(body, bytes_max, app.config.transport.request).await?;
            plugins::stage(app, plugin, asked, Some(component)).await?
        }
        Endpoint::Stage => plugins::stage(app, plugin, ActRequest::read(&read(body).await?, route.body)?, None).await?,
        Endpoint::Follow => {
            ActRequest::read(&read(body).await?, route.body)?;
            plugins::follow(app).await?
        }
        act => {
            let asked = ActRequest::read(&read(body).await?, route.body)?;
            match act {
                Endpoint::Approve => plugins::approve(app, plugin, asking.revision()?, asked).await?,
                Endpoint::Reject => plugins::reject(app, plugin, asking.revision()?, asked).await?,
                Endpoint::Activate => plugins::activate(app, plugin, asking.revision()?, asked).await?,
                Endpoint::Rollback => plugins::rollback(app, plugin, asked).await?,
                Endpoint::Disable => plugins::disable(app, plugin, asked).await?,
                Endpoint::Enable => plugins::enable(app, plugin, asked).await?,
                Endpoint::LendProxy => way_out::lend(app, plugin, &asked)?,
                _ => plugins::revoke(app, plugin, asked).await?,
            }
        }
    };
    let status = match route.answers {
        AnswerForm::Created => StatusCode::CREATED,
        AnswerForm::Accepted => StatusCode::ACCEPTED,
        AnswerForm::Data | AnswerForm::Plain(_) => StatusCode::OK,
    };
    Ok(envelope::json(status, envelope::success(&data.to_string())))
}

/// What is asked about keys and accounts. Reading much of the store is done on a thread that may.
async fn customers(
    app: &Arc<App>,
    endpoint: Endpoint,
    asking: &OperatorRequest,
    body: &[u8],
) -> Result<Value, RequestError> {
    let (store, now) = (&app.store, SystemTime::now());
    let id = asking.parameter("id").to_owned();
    match endpoint {
        Endpoint::IssueKey => keys::issue(store, &request::read(body)?, now).await,
        Endpoint::RotateKey => keys::rotate(store, &id, now).await.inspect(|_| app.jobs.keys_changed()),
        Endpoint::RevokeKey => keys::revoke(store, &id, now).await.inspect(|_| app.jobs.keys_changed()),
        Endpoint::OpenAccount => accounts::open(store, &request::read(body)?, now).await,
        Endpoint::Entitle => accounts::entitle(store, &id, Some(&request::read(body)?), now).await,
        Endpoint::Withdraw => accounts::entitle(store, &id, None, now).await.inspect(|_| app.jobs.keys_changed()),
        Endpoint::Accounts => blocking(app, accounts::list).await,
        Endpoint::Account => blocking(app, move |store| accounts::show(store, &id, now)).await,
        Endpoint::Entries => {
            let query = form_urlencoded::parse(asking.query().unwrap_or_default().as_bytes());
            let mut after = query.filter(|(name, _)| name == "after").map(|(_, after)| after.into_owned());
            let after = after.next();
            blocking(app, move |store| usage::entries(store, &id, after.as_deref())).await
        }
        Endpoint::Audit => blocking(app, usage::audit).await,
        _ => blocking(app, keys::list).await,
    }
}

/// Whether the body is a component and not JSON about one.
fn is_component(parts: &Parts) -> bool {
    parts.headers.get(CONTENT_TYPE).is_some_and(|value| value == "application/wasm")
}

fn metrics(app: &App) -> HttpResponse {
    let mut response = envelope::json(StatusCode::OK, metrics::text(app));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(exposition::CONTENT_TYPE));
    response
}

/// Usage. What was counted is written first, so that it is told up to this moment.
async fn used(app: &App, query: &str) -> Result<HttpResponse, Refusal> {
    let (request, format) = UsageRequest::read(query).map_err(RequestError::refusal)?;
    app.write_usage().await;
    let now = SystemTime::now();
    let used = blocking(app, move |store| usage::usage(store, &request, now)).await.map_err(RequestError::refusal)?;
    match format {
        ExportFormat::Json => Ok(envelope::json(StatusCode::OK, envelope::success(&used.json().to_string()))),
        ExportFormat::Csv => {
            let mut response = envelope::json(StatusCode::OK, used.csv());
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
            Ok(response)
        }
    }
}

async fn blocking<T: Send + 'static>(app: &App, work: impl FnOnce(&Store) -> T + Send + 'static) -> T {
    let store = Arc::clone(&app.store);
    registry::blocking(move || work(&store)).await
}
