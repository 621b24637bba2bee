//! A request with an absolute URL, made anew: what the client wrote about its connection ends here, and what the site wrote
//! about its own does, too.
//!
//! The answer goes on as it comes, whatever its coding; a redirect is an answer like any other. No secret of the operator's
//! is added, because an answer that is not kept whole cannot be searched for it. Nor is `Via`: a site is told of no proxy.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Either, Full, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpStream;

use super::client::{PassageEnd, ProxyFlow};
use super::credential::LeaseGrant;
use super::head::{HEAD_BYTES_MAX, ProxyRequest};
use super::refusal::ProxyRefusal;
use crate::egress::audit::HopAudit;
use crate::egress::message::{
    Caps, FetchError, HEADERS_MAX, OutgoingRequest, REQUEST_BYTES_MAX, check_head,
};
use crate::egress::traffic::ProxiedPlace;

/// For the head of an answer: programs wait longer than a plugin's call may.
const FIRST_BYTE: Duration = Duration::from_secs(30);

/// Headers of a connection, in both directions; whatever `Connection` names is another. All of `proxy-` are as well.
const OF_CONNECTION: [HeaderName; 6] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];
/// Headers of a request that are written anew.
const REMADE: [HeaderName; 4] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::EXPECT,
    HeaderName::from_static("http2-settings"),
];

type ForwardedBody = Either<Full<Bytes>, Incoming>;

/// What lasts until all of an answer is sent.
struct PassageGuard<'g> {
    /// Among the plugin's requests, from the verdict on. Free again before the audit tells of the end.
    place: Option<ProxiedPlace<'g>>,
    audit: HopAudit<'g>,
}

/// Answers one request for a URL and ends the connection. What is `early` begins with a head whose target nobody reads.
pub(super) async fn serve(
    stream: TcpStream,
    early: Bytes,
    asked: &ProxyRequest,
    end: &PassageEnd<'_>,
) {
    let (grant, flow) = (end.grant, Arc::new(ProxyFlow::default()));
    // Taken for as long as the answer is made, and dropped when all of it is sent. Never held over an await.
    let passage = Mutex::new(Some(PassageGuard {
        place: None,
        audit: end.audit("request", &flow),
    }));
    let (client, kept) = (end.client(stream, early, &flow), &passage);
    let service = service_fn(move |request: http::Request<Incoming>| async move {
        let taken = kept.lock().take();
        let Some(mut passage) = taken else {
            return Ok::<_, Infallible>(ProxyRefusal::Second.response().map(Either::Left));
        };
        let answered = answer(request, asked, grant, &mut passage).await;
        let response = answered.unwrap_or_else(|refusal| {
            passage.audit.came_to(refusal.verdict());
            refusal.response().map(Either::Left)
        });
        *kept.lock() = Some(passage);
        Ok(response)
    });
    let mut builder = http1::Builder::new();
    builder
        .keep_alive(false)
        .header_read_timeout(None)
        .auto_date_header(false)
        .max_headers(HEADERS_MAX);
    let serving = builder
        .max_buf_size(2 * HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(client), service);
    tokio::select! {
        biased;
        served = serving => {
            if served.is_err() {
                flow.cut("broken");
            }
        }
        () = flow.over(end) => {}
    }
}

async fn answer<'g>(
    request: http::Request<Incoming>,
    asked: &ProxyRequest,
    grant: &'g LeaseGrant,
    PassageGuard { place, audit }: &mut PassageGuard<'g>,
) -> Result<Response<ForwardedBody>, ProxyRefusal> {
    let (door, (parts, body)) = (&grant.door, request.into_parts());
    // The verdict stands before the body is asked for.
    audit.aimed(|| asked.aim());
    let to = door.judge(asked.destination(), asked.way(), audit)?;
    // Nothing waits for a place: it would hold one of the connections, which all plugins share.
    let large = || ProxyRefusal::LargeBody(REQUEST_BYTES_MAX);
    let stated = |size: u64| {
        let size = usize::try_from(size).ok();
        size.filter(|size| *size <= REQUEST_BYTES_MAX)
            .ok_or_else(large)
    };
    stated(body.size_hint().lower())?;
    let exact = body.size_hint().exact();
    let bytes_max = exact.map_or(Ok(REQUEST_BYTES_MAX), stated)?;
    *place = Some(door.traffic.proxied(bytes_max)?);
    let body = Limited::new(body, REQUEST_BYTES_MAX).collect().await;
    let body = body.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
        Some(_) => large(),
        None => ProxyRefusal::BrokenBody,
    })?;
    let mut outgoing = OutgoingRequest {
        method: parts.method,
        headers: passed_on(&parts.headers),
        body: body.to_bytes(),
    };
    for name in &REMADE {
        outgoing.headers.remove(name);
    }
    let caps = Caps {
        first_byte: Some(FIRST_BYTE),
        ..Caps::default()
    };
    let answer = door.exchange(&to, &outgoing, &[], &caps, audit).await?;
    let (head, body) = answer.into_parts();
    audit.status = head.status.as_u16();
    check_head(&head.headers)?;
    // What only a proxy may say would be taken for this one's.
    if head.status.is_informational() || head.status == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
        return Err(FetchError::bad("its status is a proxy's").into());
    }
    audit.ended(0);
    let mut response = Response::new(Either::Right(body));
    *response.status_mut() = head.status;
    *response.headers_mut() = passed_on(&head.headers);
    Ok(response)
}

/// The headers without those of the connection that they came over.
fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let named = headers.get_all(header::CONNECTION).iter();
    let named = named.filter_map(|value| value.to_str().ok());
    let named: Vec<&str> = named
        .flat_map(|names| names.split(','))
        .map(str::trim)
        .collect();
    let is_passed = |name: &HeaderName| {
        let is_this = |one: &&str| one.eq_ignore_ascii_case(name.as_str());
        !OF_CONNECTION.contains(name)
            && !name.as_str().starts_with("proxy-")
            && !named.iter().any(is_this)
    };
    let passed = headers.iter().filter(|(name, _)| is_passed(name));
    passed
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
