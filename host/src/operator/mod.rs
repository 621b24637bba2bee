//! The operator's API, on its own listener behind its own token. Nothing here is reachable from the public listener or MCP.

pub(crate) mod accounts;
pub(crate) mod client;
pub(crate) mod keys;
mod metrics;
mod overview;
pub(crate) mod request;
pub(crate) mod token;
pub(crate) mod usage;

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use http::header::{ALLOW, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use serde_json::Value;
use uuid::Uuid;

use self::accounts::Asked;
use self::request::RequestError;
use self::usage::{Format, UsageRequest};
use crate::app::App;
use crate::auth::Presented;
use crate::error::{Code, Refusal};
use crate::http::connection::{Reply, Room};
use crate::http::{envelope, known, overloaded, rest};
use crate::metrics::exposition;

const BODY_BYTES_MAX: usize = 16 * 1024;
const KEYS: &str = "/admin/v1/keys";
const PLUGINS: &str = "/admin/v1/plugins";
const CONFIG: &str = "/admin/v1/config";
const METRICS: &str = "/metrics";

/// Answers one request of the operator's listener.
pub(crate) async fn handle(app: Arc<App>, request: Request<Incoming>, room: Room) -> Reply {
    let started = Instant::now();
    let request_id = Uuid::now_v7().to_string();
    let method = request.method().clone();
    let deadline = app.config.transport.request;
    let late = || Refusal::new(Code::UpstreamTimeout, "The request did not finish in time");
    let answered = match room {
        Room::Taken => tokio::time::timeout(deadline, route(&app, request)).await.unwrap_or_else(|_| Err(late())),
        Room::Full => Err(overloaded()),
    };
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

fn refused(refusal: &Refusal, request_id: &str) -> Reply {
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

async fn route(app: &Arc<App>, request: Request<Incoming>) -> Result<Reply, Refusal> {
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
    let path = parts.uri.path();
    if path == KEYS {
        return match parts.method {
            Method::GET => answered(StatusCode::OK, blocking(app, keys::list).await?),
            Method::POST => {
                let body = rest::read_body(&parts.headers, body, BODY_BYTES_MAX, app.config.transport.body).await?;
                let request = request::read(&body).map_err(RequestError::refusal)?;
                answered(StatusCode::CREATED, keys::issue(&app.store, &request, SystemTime::now()).await)
            }
            _ => Err(not_allowed("GET, POST")),
        };
    }
    if path == usage::USAGE || path == usage::AUDIT {
        return match parts.method {
            Method::GET => used(app, path, parts.uri.query().unwrap_or_default()).await,
            _ => Err(not_allowed("GET")),
        };
    }
    if let Some(rest) = below(path, accounts::PATH) {
        let asked = accounts::asked(&parts.method, rest, parts.uri.query().unwrap_or_default());
        if let Asked::OtherMethods(methods) = asked {
            return Err(not_allowed(methods));
        }
        let body = rest::read_body(&parts.headers, body, BODY_BYTES_MAX, app.config.transport.body).await?;
        let done = accounts::answer(&app.store, asked, &body, SystemTime::now()).await.ok_or_else(no_route)?;
        return done.map(|(status, data)| success(status, &data)).map_err(RequestError::refusal);
    }
    if let Some(id) = path.strip_prefix(KEYS).and_then(|rest| rest.strip_prefix('/')) {
        let (id, rotates) = id.strip_suffix("/rotate").map_or((id, false), |id| (id, true));
        let id = percent_encoding::percent_decode_str(id).decode_utf8_lossy().into_owned();
        if rotates {
            return match parts.method {
                Method::POST => answered(StatusCode::CREATED, keys::rotate(&app.store, &id, SystemTime::now()).await),
                _ => Err(not_allowed("POST")),
            };
        }
        return match parts.method {
            Method::DELETE => answered(StatusCode::OK, keys::revoke(&app.store, &id, SystemTime::now()).await),
            _ => Err(not_allowed("DELETE")),
        };
    }
    let read: fn(&App) -> Reply = match path {
        PLUGINS => |app| success(StatusCode::OK, &overview::plugins(app)),
        CONFIG => |app| success(StatusCode::OK, &overview::config(app)),
        METRICS => metrics,
        _ => return Err(no_route()),
    };
    match parts.method {
        Method::GET => Ok(read(app)),
        _ => Err(not_allowed("GET")),
    }
}

/// Usage and its audit. What was counted is written first, so that it is told up to this moment.
async fn used(app: &App, path: &str, query: &str) -> Result<Reply, Refusal> {
    if path == usage::AUDIT {
        return answered(StatusCode::OK, blocking(app, usage::audit).await?);
    }
    let (request, format) = UsageRequest::read(query).map_err(RequestError::refusal)?;
    app.write_usage().await;
    let now = SystemTime::now();
    let used = blocking(app, move |store| usage::usage(store, &request, now)).await?.map_err(RequestError::refusal)?;
    match format {
        Format::Json => Ok(success(StatusCode::OK, &used.json())),
        Format::Csv => {
            let mut response = envelope::json(StatusCode::OK, used.csv());
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
            Ok(response)
        }
    }
}

fn no_route() -> Refusal {
    let routes = [KEYS, accounts::PATH, usage::USAGE, usage::AUDIT, PLUGINS, CONFIG].join(", ");
    let message = format!("There is no such route; the operator's API has {routes} and {METRICS}");
    Refusal::new(Code::NotFound, message)
}

/// What stands in a path after a prefix that ends at a segment.
fn below<'p>(path: &'p str, prefix: &str) -> Option<&'p str> {
    path.strip_prefix(prefix).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn success(status: StatusCode, data: &Value) -> Reply {
    envelope::json(status, envelope::success(&data.to_string()))
}

fn metrics(app: &App) -> Reply {
    let mut response = envelope::json(StatusCode::OK, metrics::text(app));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(exposition::CONTENT_TYPE));
    response
}

fn not_allowed(methods: &str) -> Refusal {
    rest::method_not_allowed().with("allow", methods)
}

fn answered(status: StatusCode, done: Result<Value, RequestError>) -> Result<Reply, Refusal> {
    done.map(|data| success(status, &data)).map_err(RequestError::refusal)
}

/// Reads much of the store, away from the threads that serve.
async fn blocking<T: Send + 'static>(
    app: &App,
    read: impl FnOnce(&crate::stores::Store) -> T + Send + 'static,
) -> Result<T, Refusal> {
    let store = Arc::clone(&app.store);
    tokio::task::spawn_blocking(move || read(&store)).await.map_err(|error| Refusal::internal(error.to_string()))
}
