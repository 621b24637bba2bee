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
    if let Some(origin) = origin {
        expose(headers, origin, EXPOSED);
    }
}

/// Lets a page of this origin read an answer, with these headers and those that tell the caller's meters.
pub(crate) fn expose(headers: &mut HeaderMap, origin: HeaderValue, exposed: &str) {
    let exposed = HeaderValue::try_from(format!("{exposed}, {}", envelope::METERS));
    let exposed = exposed.expect("names are a header value");
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    headers.append(VARY, HeaderValue::from_static("Origin"));
}

/// An answer that lets a browser call by a method and with these headers.
pub(crate) fn permission(methods: HeaderValue, allowed: &'static str) -> HttpResponse {
    let mut response = envelope::empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    envelope::set(headers, ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    envelope::set(headers, ACCESS_CONTROL_MAX_AGE, "600");
    response
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
    let asked = Method::from_bytes(method.as_bytes()).ok()?;
    let RouteMatch::Operation(bound, _) = routes.find(&asked, parts.uri.path()) else {
        return None;
    };
    let origin = allowed_origin(pages, bound, &parts.headers)?;
    let mut response = permission(method.clone(), ALLOWED);
    allow(response.headers_mut(), Some(origin));
    Some(response)
}
