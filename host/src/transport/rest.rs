//! REST: reads a request into a call of an operation, and prints the answer.
//!
//! Only parses and prints: what a body means and whether the caller may call is decided on the road.

use std::sync::Arc;
use std::time::Duration;

use http::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Bytes, Incoming};

use super::http::connection::HttpResponse as Response;
use super::http::content::ResponseContent;
use super::http::envelope::TimedResponse;
use super::http::{cross_origin, envelope};
use crate::auth::PresentedCredential;
use crate::auth::first_party::FirstParty;
use crate::base::entity_tag::entity_tag;
use crate::base::media_type;
use crate::catalogue::route_table::RouteMatch;
use crate::catalogue::{Bound, Catalogue};
use crate::contract::error::{Code, Refusal};
use crate::contract::operation::{Face, PluginReply, RestFace};
use crate::metering::identifier::Identifier;
use crate::pipeline::read_input::{ArgumentSource, UnreadArguments};
use crate::pipeline::{self, CallRequest, Pipeline};
use crate::places::RequestPlace;

/// The REST face of the public listener.
pub(crate) struct RestTransport {
    pub(crate) pipeline: Arc<Pipeline>,
    /// The operator's own pages, which may call some operations without a credential.
    pub(crate) first_party: FirstParty,
    /// How long a body may take to arrive.
    pub(crate) body_time: Duration,
}

impl RestTransport {
    /// Answers a request for an operation's route.
    pub(crate) async fn answer(
        &self,
        catalogue: &Arc<Catalogue>,
        request: Request<Incoming>,
        request_id: &str,
        visit: &RequestPlace,
    ) -> TimedResponse {
        let (parts, body) = request.into_parts();
        let routes = catalogue.routes();
        match routes.find(&parts.method, parts.uri.path()) {
            RouteMatch::Operation(bound, params) => {
                let found = (catalogue, bound);
                self.call(found, params, &parts, body, request_id, visit)
                    .await
            }
            RouteMatch::OtherMethods(allow) => {
                let preflight = cross_origin::preflight(&self.first_party, routes, &parts);
                let refused = || refused_method(&allow, request_id);
                preflight.unwrap_or_else(refused).into()
            }
            RouteMatch::Nothing => envelope::refusal(&no_route(), request_id).into(),
        }
    }

    async fn call(
        &self,
        (catalogue, bound): (&Arc<Catalogue>, &Bound),
        params: Vec<(String, String)>,
        parts: &Parts,
        body: Incoming,
        request_id: &str,
        visit: &RequestPlace,
    ) -> TimedResponse {
        let face = bound
            .rest()
            .expect("the route table holds operations with a REST face alone");
        let origin = cross_origin::allowed_origin(&self.first_party, bound, &parts.headers);
        let body = read_body(&parts.headers, body, face.body_bytes_max, self.body_time).await;
        let body = match body {
            Ok(body) => body,
            Err(refusal) => {
                pipeline::refused_before(bound, Face::Rest, &refusal);
                let mut response = envelope::refusal(&refusal, request_id);
                cross_origin::allow(response.headers_mut(), origin);
                return response.into();
            }
        };
        let source = if parts.method == Method::POST {
            ArgumentSource::Body
        } else {
            ArgumentSource::Query
        };
        let call = CallRequest {
            bound,
            catalogue,
            face: Face::Rest,
            credential: PresentedCredential::read(&parts.headers),
            first_party: origin.is_some().then(|| visit.address()),
            identifier: Identifier::read(&parts.headers),
            unread: UnreadArguments::Rest {
                params,
                query: parts.uri.query(),
                body: &body,
                source,
            },
            request_id,
            visit,
        };
        let answered = self.pipeline.execute(call).await;
        let mut response = match &answered.outcome {
            Ok(reply) => success(face, reply, parts),
            Err(refusal) => envelope::refusal(refusal, request_id),
        };
        envelope::meters(response.headers_mut(), &answered.meters);
        cross_origin::allow(response.headers_mut(), origin);
        let plugin = answered.plugin_time;
        TimedResponse { response, plugin }
    }
}

/// The refusal of a path that nothing serves.
pub(crate) fn no_route() -> Refusal {
    Refusal::new(Code::NotFound, "There is no such route; see /openapi.json")
}

/// The refusal of a method that a path does not take.
pub(crate) fn method_not_allowed() -> Refusal {
    let message = "This route does not support the method; `Allow` lists those that it does";
    Refusal::new(Code::MethodNotAllowed, message)
}

/// Reads a body within its limits of size, time and type (the type counts only where there is a body).
pub(crate) async fn read_body(
    headers: &HeaderMap,
    body: Incoming,
    bytes_max: usize,
    deadline: Duration,
) -> Result<Bytes, Refusal> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let wrong_type = || {
        let message = "The body's Content-Type must be application/json";
        Refusal::new(Code::UnsupportedMediaType, message)
    };
    let is_json = is_json(headers);
    let too_large = || Refusal::too_large(bytes_max);
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(if is_json { too_large() } else { wrong_type() });
    }
    match read_bytes(body, bytes_max, deadline).await {
        Ok(bytes) if bytes.is_empty() || is_json => Ok(bytes),
        Ok(_) => Err(wrong_type()),
        // What is too long of a wrong type is refused for its type, as a stated length is.
        Err(refusal) if refusal.code == Code::PayloadTooLarge.name() && !is_json => {
            Err(wrong_type())
        }
        Err(refusal) => Err(refusal),
    }
}

/// Reads a body of any type within its limits of size and time.
pub(crate) async fn read_bytes(
    body: Incoming,
    bytes_max: usize,
    deadline: Duration,
) -> Result<Bytes, Refusal> {
    let read = tokio::time::timeout(deadline, Limited::new(body, bytes_max).collect()).await;
    let Ok(read) = read else {
        let message = format!("The body did not arrive within {} s", deadline.as_secs());
        return Err(Refusal::new(Code::RequestTimeout, message));
    };
    match read {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(Refusal::too_large(bytes_max))
        }
        Err(_) => {
            let rule = "The body ended before its announced length";
            Err(Refusal::invalid(None, rule))
        }
    }
}

/// Whether the body says that it is JSON; parameters such as a charset do not matter.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let said = headers.get(CONTENT_TYPE);
    let said = said.and_then(|value| value.to_str().ok());
    said.is_some_and(|value| media_type::is(value, "application/json"))
}

/// Whether `Accept` lists the media type by name, and not with a quality of zero.
pub(crate) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let mut ranges = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|v| v.split(','));
    ranges.any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let essence = parts.next().unwrap_or_default();
        let is_zero = |parameter: &str| {
            parameter.split_once('=').is_some_and(|(name, value)| {
                let quality = value.trim().parse::<f32>();
                name.trim().eq_ignore_ascii_case("q") && quality.is_ok_and(|q| q <= 0.0)
            })
        };
        essence.eq_ignore_ascii_case(media_type) && !parts.any(is_zero)
    })
}

fn success(face: &RestFace, reply: &PluginReply, parts: &Parts) -> Response {
    let status = face.outcomes.get(&reply.outcome);
    let status = status.copied().unwrap_or(StatusCode::OK);
    let etag = reply.digest.as_ref().filter(|_| face.etag).map(entity_tag);
    let matches = etag
        .as_ref()
        .is_some_and(|etag| if_none_match(&parts.headers, etag));
    let safe = parts.method == Method::GET || parts.method == Method::HEAD;
    let mut response = if matches && safe {
        envelope::empty(StatusCode::NOT_MODIFIED)
    } else {
        envelope::json(status, envelope::success(&reply.data))
    };
    let length = response.body().bytes();
    let headers = response.headers_mut();
    if face.decoded_length && length > 0 {
        headers.insert("x-decoded-content-length", HeaderValue::from(length));
    }
    if let Some(value) = &face.cache_control {
        headers.insert(CACHE_CONTROL, value.clone());
    }
    if let Some(etag) = etag {
        headers.insert(ETAG, etag);
    }
    for (name, value) in &reply.headers {
        headers.insert(name.clone(), value.clone());
    }
    response
}

/// Whether `If-None-Match` names the tag, by weak comparison (RFC 9110, 13.1.2).
pub(crate) fn if_none_match(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let Ok(etag) = etag.to_str().map(opaque) else {
        return false;
    };
    headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|list| list.trim() == "*" || list.split(',').any(|tag| opaque(tag) == etag))
}

fn refused_method(allow: &str, request_id: &str) -> Response {
    let mut response = envelope::refusal(&method_not_allowed(), request_id);
    if let Ok(value) = HeaderValue::from_str(allow) {
        response.headers_mut().insert(ALLOW, value);
    }
    response
}

/// Takes the body away, for HEAD, and leaves its length.
pub(crate) fn take_body(response: &mut Response) {
    let length = HeaderValue::from(response.body().bytes());
    if response.status() != StatusCode::NOT_MODIFIED {
        response.headers_mut().insert(CONTENT_LENGTH, length);
    }
    *response.body_mut() = ResponseContent::empty();
}
