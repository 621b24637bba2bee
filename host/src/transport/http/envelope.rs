//! Responses: the success and error envelopes, and the headers that every answer carries.
//!
//! The only place that prints a [`Refusal`] or the standing of a window; MCP uses the header half of it.

use std::time::Duration;

use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use hyper::body::Bytes;

use super::connection::HttpResponse;
use super::content::ResponseContent;
use crate::contract::error::Refusal;
use crate::metering::CallMeters;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
const NO_STORE: HeaderValue = HeaderValue::from_static("private, no-store");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The headers that tell a caller's meters, as a page must be let read them.
pub(crate) const METERS: &str = "X-ApiKey-RateLimit-Limit, X-ApiKey-RateLimit-Remaining, X-ApiKey-RateLimit-Reset, \
    X-ApiKey-RateLimit-Window, X-ApiKey-Monthly-Limit, X-ApiKey-Monthly-Remaining, X-ApiKey-Monthly-Reset, \
    X-ApiKey-Credit-Cost, X-ApiKey-Credit-Limit, X-ApiKey-Credit-Reset, X-RateLimit-Limit, X-RateLimit-Remaining, \
    X-RateLimit-Reset";

/// A response, and the time that plugins took of it.
pub(crate) struct TimedResponse {
    pub(crate) response: HttpResponse,
    pub(crate) plugin: Option<Duration>,
}

/// One that no plugin had a part in.
impl From<HttpResponse> for TimedResponse {
    fn from(response: HttpResponse) -> Self {
        let plugin = None;
        Self { response, plugin }
    }
}

/// Sets a header to a value that is known.
pub(crate) fn set(headers: &mut HeaderMap, name: HeaderName, value: &'static str) {
    headers.insert(name, HeaderValue::from_static(value));
}

/// A JSON response that no cache may keep.
pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> HttpResponse {
    let mut response = Response::new(ResponseContent::whole(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    response
}

/// A response without a body.
pub(crate) fn empty(status: StatusCode) -> HttpResponse {
    let mut response = Response::new(ResponseContent::empty());
    *response.status_mut() = status;
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    response
}

/// The success envelope around data that is JSON text already.
pub(crate) fn success(data: &str) -> String {
    let mut body = String::with_capacity(data.len() + 24);
    body.push_str(r#"{"success":true,"data":"#);
    body.push_str(data);
    body.push('}');
    body
}

/// The value of `WWW-Authenticate` for a refused credential (RFC 6750, 3): the scope that the operation needs, and an error
/// only where a credential was sent.
fn challenge(refusal: &Refusal) -> Option<HeaderValue> {
    let challenge = refusal.challenge.as_ref()?;
    let mut text = "Bearer ".to_owned();
    if let Some(error) = challenge.error {
        let message = &refusal.message;
        text.push_str(&format!(
            r#"error="{error}", error_description="{message}", "#
        ));
    }
    text.push_str(&format!(r#"scope="{}""#, challenge.scope));
    if let Some(url) = &challenge.resource_metadata {
        text.push_str(&format!(r#", resource_metadata="{url}""#));
    }
    HeaderValue::from_str(&text).ok()
}

/// A refusal as a REST response.
pub(crate) fn refusal(refusal: &Refusal, request_id: &str) -> HttpResponse {
    let mut response = json(refusal.status, refusal.envelope(request_id).to_string());
    advise(response.headers_mut(), refusal);
    response
}

/// What a refusal says in headers of how to go on: `WWW-Authenticate` and `Retry-After`, where it has them.
pub(crate) fn advise(headers: &mut HeaderMap, refusal: &Refusal) {
    if let Some(value) = challenge(refusal) {
        headers.insert(WWW_AUTHENTICATE, value);
    }
    if let Some(seconds) = refusal.retry_after_s {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
}

/// `X-ApiKey-*` and `X-RateLimit-*` (docs/api.md, "Limits"): what is unlimited sends none.
pub(crate) fn meters(headers: &mut HeaderMap, meters: &CallMeters) {
    let mut put = |name: &'static str, value: u64| headers.insert(name, HeaderValue::from(value));
    if let Some(window) = &meters.window {
        put("x-apikey-ratelimit-limit", window.limit.into());
        put("x-apikey-ratelimit-remaining", window.remaining.into());
        put("x-apikey-ratelimit-reset", window.reset_epoch_s);
        put("x-apikey-ratelimit-window", window.window_s.into());
    }
    if let Some(address) = &meters.address {
        put("x-ratelimit-limit", address.limit.into());
        put("x-ratelimit-remaining", address.remaining.into());
        put("x-ratelimit-reset", address.reset_epoch_s);
    }
    if let Some(month) = &meters.month {
        put("x-apikey-monthly-limit", month.limit);
        put("x-apikey-monthly-remaining", month.remaining);
        put("x-apikey-monthly-reset", month.reset_epoch_s);
    }
    if let Some(credits) = &meters.credits {
        put("x-apikey-credit-cost", credits.cost);
        put("x-apikey-credit-limit", credits.limit);
        put("x-apikey-credit-reset", credits.reset_epoch_s);
    }
}

/// What every response carries: the request's id, where its time went, and that its type is not to be guessed.
pub(crate) fn finish(
    headers: &mut HeaderMap,
    request_id: &str,
    total: Duration,
    plugin: Option<Duration>,
) {
    let id = HeaderValue::from_str(request_id).expect("a request id is a UUID");
    headers.insert(X_REQUEST_ID, id);
    set(headers, X_CONTENT_TYPE_OPTIONS, "nosniff");
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let timing = match plugin {
        Some(plugin) => format!("plugin;dur={:.3}, total;dur={:.3}", ms(plugin), ms(total)),
        None => format!("total;dur={:.3}", ms(total)),
    };
    headers.insert(
        SERVER_TIMING,
        HeaderValue::from_str(&timing).expect("digits and punctuation are a header value"),
    );
}
