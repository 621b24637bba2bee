//! The operator's API, on its own listener behind its own token. Nothing here is reachable from the public listener or MCP.

pub(crate) mod client;
pub(crate) mod keys;
pub(crate) mod token;

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use http::header::{ALLOW, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use serde_json::Value;
use uuid::Uuid;

use self::keys::KeyError;
use crate::app::App;
use crate::auth::Presented;
use crate::error::{Code, Refusal};
use crate::http::connection::{Reply, Room};
use crate::http::{envelope, known, overloaded, rest};

const BODY_BYTES_MAX: usize = 16 * 1024;
const KEYS: &str = "/admin/v1/keys";

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
        Ok((status, data)) => envelope::json(status, envelope::success(&data.to_string())),
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

async fn route(app: &Arc<App>, request: Request<Incoming>) -> Result<(StatusCode, Value), Refusal> {
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
            Method::GET => blocking(app, |store| Ok((StatusCode::OK, keys::list(store)?))).await,
            Method::POST => {
                let body = rest::read_body(&parts.headers, body, BODY_BYTES_MAX, app.config.transport.body).await?;
                blocking(app, move |store| {
                    Ok((StatusCode::CREATED, keys::issue(store, &keys::read(&body)?, SystemTime::now())?))
                })
                .await
            }
            _ => Err(not_allowed("GET, POST")),
        };
    }
    if let Some(id) = path.strip_prefix(KEYS).and_then(|rest| rest.strip_prefix('/')) {
        let id = percent_encoding::percent_decode_str(id).decode_utf8_lossy().into_owned();
        return match parts.method {
            Method::DELETE => {
                blocking(app, move |store| Ok((StatusCode::OK, keys::revoke(store, &id, SystemTime::now())?))).await
            }
            _ => Err(not_allowed("DELETE")),
        };
    }
    Err(Refusal::new(Code::NotFound, format!("There is no such route; the operator's API has {KEYS}")))
}

fn not_allowed(methods: &str) -> Refusal {
    rest::method_not_allowed().with("allow", methods)
}

async fn blocking(
    app: &Arc<App>,
    work: impl FnOnce(&crate::stores::Store) -> Result<(StatusCode, Value), KeyError> + Send + 'static,
) -> Result<(StatusCode, Value), Refusal> {
    let store = Arc::clone(&app.store);
    let done = tokio::task::spawn_blocking(move || work(&store)).await;
    match done {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(error.refusal()),
        Err(error) => Err(Refusal::internal(error.to_string())),
    }
}
