//! Cross-origin calls of operations that have an allowance for first-party browsers: what a browser must be told before it
//! lets a page call, and read the answer.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
    VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::connection::HttpResponse;
use super::envelope;
use crate::auth::first_party::FirstParty;
use crate::catalogue::Bound;
use crate::catalogue::route_table::{RouteMatch, RouteTable};

const ALLOWED: &str =
    "Content-Type, Authorization, x-service-api-key, Idempotency-Key, If-None-Match";
const EXPOSED: &str = "X-Request-Id, Retry-After, ETag, WWW-Authenticate";

/// The request's origin, where pages of it may call the operation.
pub(crate) fn allowed_origin(
    pages: &FirstParty,
    bound: &Bound,
    headers: &HeaderMap,
) -> Option<HeaderValue> {
    let origin = headers.get(ORIGIN)?;
    let has_allowance = bound.operation.terms.first_party_per_minute.is_some();
    (has_allowance && pages.allows(origin)).then(|| origin.clone())
}

/// Lets the page read an answer.
pub(crate) fn allow(headers: &mut HeaderMap, origin: Option<HeaderValue>) {
    let Some(origin) = origin else { return };
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    let exposed = format!("{EXPOSED}, {}", envelope::METERS);
    headers.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::try_from(exposed).expect("names are a header value"),
    );
    headers.append(VARY, HeaderValue::from_static("Origin"));
}

/// Answers a browser that asks whether a page may make a call, if it may.
pub(crate) fn preflight(
    pages: &FirstParty,
    routes: &RouteTable,
    parts: &Parts,
) -> Option<HttpResponse> {
    if parts.method != Method::OPTIONS {
        return None;
    }
    let method = parts.headers.get(ACCESS_CONTROL_REQUEST_METHOD)?;
    let RouteMatch::Operation(bound, _) = routes.find(
        &Method::from_bytes(method.as_bytes()).ok()?,
        parts.uri.path(),
    ) else {
        return None;
    };
    let origin = allowed_origin(pages, bound, &parts.headers)?;
    let mut response = envelope::empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, method.clone());
    headers.insert(
        ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static(ALLOWED),
    );
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    allow(headers, Some(origin));
    Some(response)
}
