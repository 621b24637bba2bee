//! What is sent and what comes back: whole messages, checked and bounded.
//!
//! Headers that belong to the connection are the gate's, in both directions. Must not know where a message goes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

use super::decode;
use super::decode::{DecodeError, Work};
use super::policy::EgressDenial;
use super::traffic::{BEGINNING_BYTES, TrafficShare};
use crate::base::shared_stock::StockPortion;
use crate::contract::request_headers::may_be_set;

/// Headers of one message, in both directions.
pub(super) const HEADERS_MAX: usize = 128;
/// All headers of one message, in bytes.
pub(super) const HEADER_BYTES_MAX: usize = 64 * 1024;
/// The body of a request, in bytes.
pub(super) const REQUEST_BYTES_MAX: usize = 4 << 20;
/// The body of a response where the plugin asks for no other limit, and the most that it may ask for, in bytes.
pub(crate) const RESPONSE_BYTES: (usize, usize) = (4 << 20, 16 << 20);
/// Pieces of a body: one in single bytes, or in none, would cost more than all that is in it.
const PIECES_MAX: usize = 128 * 1024;
/// The redirects of one request that are followed at most.
pub(crate) const REDIRECTS_MAX: u32 = 10;
/// For a whole request with its redirects, by default and at most.
const TOTAL: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(120));
/// For the head of each answer, by default and at most.
const FIRST_BYTE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(60));
/// For each next piece of a body, by default and at most.
const IDLE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(30));

/// A request as the plugin made it.
#[derive(Clone, Debug, Default)]
pub(crate) struct PluginRequest {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) caps: Caps,
}

/// What the plugin is content with. Nothing raises a limit of the host's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Caps {
    pub(crate) redirects: u32,
    pub(crate) response_bytes: Option<usize>,
    pub(crate) total: Option<Duration>,
    pub(crate) first_byte: Option<Duration>,
    pub(crate) idle: Option<Duration>,
}

impl Caps {
    pub(super) fn redirects(&self) -> u32 {
        self.redirects.min(REDIRECTS_MAX)
    }

    pub(super) fn response_bytes(&self) -> usize {
        within(self.response_bytes, RESPONSE_BYTES)
    }

    pub(super) fn total(&self) -> Duration {
        within(self.total, TOTAL)
    }

    pub(super) fn first_byte(&self) -> Duration {
        within(self.first_byte, FIRST_BYTE)
    }

    fn idle(&self) -> Duration {
        within(self.idle, IDLE)
    }
}

/// What is asked for, as far as it may be.
pub(super) fn within<T: Ord>(asked: Option<T>, (default, most): (T, T)) -> T {
    asked.map_or(default, |asked| asked.min(most))
}

/// A whole answer, decoded.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Where it came from, after redirects.
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// Why there is no answer. No message holds a path, a query, a header or a credential.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("{0}")]
    Denied(#[from] EgressDenial),
    #[error("a redirect was not followed: {0}")]
    RedirectDenied(EgressDenial),
    #[error("the request {0}")]
    Invalid(String),
    #[error("the plugin has reached its limit of concurrent requests")]
    Busy,
    #[error(
        "the requests of the plugin, or of this caller, have reached the limit of body bytes held at once"
    )]
    Full,
    #[error("the host name could not be resolved")]
    Unresolved,
    #[error("no connection could be made")]
    Unreachable,
    #[error("{0}")]
    Late(Late),
    #[error("the response exceeds the {0} limit")]
    TooLarge(SizeExcess),
    #[error("there are more than {0} redirects")]
    TooManyRedirects(u32),
    #[error("the response cannot be used: {0}")]
    BadAnswer(String),
}

impl FetchError {
    /// An answer of which nothing can be made, for this reason.
    pub(super) fn bad(why: &str) -> Self {
        Self::BadAnswer(why.to_owned())
    }

    /// In one word, for the audit.
    pub(super) fn verdict(&self) -> &'static str {
        match self {
            Self::Denied(denial) | Self::RedirectDenied(denial) => denial.verdict(),
            Self::Unresolved => "unresolved",
            Self::Unreachable => "unreachable",
            Self::Late(_) => "late",
            Self::TooLarge(_) => "too_large",
            Self::BadAnswer(_) => "bad_answer",
            Self::Invalid(_) | Self::Busy | Self::Full | Self::TooManyRedirects(_) => "refused",
        }
    }
}

/// Which time ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Late {
    #[error("the response did not start in time")]
    FirstByte,
    #[error("the response stalled")]
    Idle,
    #[error("the response was not complete in time")]
    Total,
}

/// Of what there was too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SizeExcess {
    #[error("header")]
    Headers,
    #[error("body size")]
    Body,
}

/// Headers that say who asks. They do not go along to another origin.
pub(super) const CREDENTIALS: [HeaderName; 2] = [header::AUTHORIZATION, header::COOKIE];

/// What is sent, but for where to.
#[derive(Clone, Debug)]
pub(super) struct OutgoingRequest {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl OutgoingRequest {
    /// Checks what the plugin made.
    pub(super) fn read(request: PluginRequest) -> Result<Self, FetchError> {
        let invalid = |rule: &str| FetchError::Invalid(rule.to_owned());
        let method = Method::from_bytes(request.method.as_bytes());
        let method = method.map_err(|_| invalid("has an invalid method"))?;
        let count = request.headers.len();
        let each = request.headers.iter();
        let header_bytes: usize = each.map(|(name, value)| name.len() + value.len()).sum();
        let body_bytes = request.body.len();
        let excess = if count > HEADERS_MAX {
            Some(format!(
                "has {count} headers; at most {HEADERS_MAX} are allowed"
            ))
        } else if header_bytes > HEADER_BYTES_MAX {
            let most = HEADER_BYTES_MAX;
            Some(format!(
                "has {header_bytes} bytes of headers; at most {most} are allowed"
            ))
        } else if body_bytes > REQUEST_BYTES_MAX {
            let most = REQUEST_BYTES_MAX;
            Some(format!(
                "has a body of {body_bytes} bytes; at most {most} are allowed"
            ))
        } else {
            None
        };
        if let Some(rule) = excess {
            return Err(FetchError::Invalid(rule));
        }
        let mut headers = HeaderMap::with_capacity(count + 2);
        for (name, value) in request.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            let name = name.map_err(|_| invalid("has an invalid header name"))?;
            if !may_be_set(&name) {
                let rule = format!("sets the header `{name}`, which only the host may set");
                return Err(FetchError::Invalid(rule));
            }
            let Ok(value) = HeaderValue::from_str(&value) else {
                let rule = format!("has an invalid value for the header `{name}`");
                return Err(FetchError::Invalid(rule));
            };
            headers.append(name, value);
        }
        let accepted = HeaderValue::from_static(decode::ACCEPTED);
        headers.insert(header::ACCEPT_ENCODING, accepted);
        let agent = HeaderValue::from_static(concat!("switchbay/", env!("CARGO_PKG_VERSION")));
        headers.entry(header::USER_AGENT).or_insert(agent);
        Ok(Self {
            method,
            headers,
            body: request.body.into(),
        })
    }

    /// As it goes on after a redirect with this status.
    pub(super) fn redirected(&mut self, status: u16, to_another_origin: bool) {
        let becomes_get = status == 303 && self.method != Method::HEAD
            || matches!(status, 301 | 302) && self.method == Method::POST;
        if becomes_get {
            self.method = Method::GET;
            self.body = Bytes::new();
            self.headers.remove(header::CONTENT_TYPE);
            self.headers.remove(header::CONTENT_LANGUAGE);
            self.headers.remove(header::CONTENT_LOCATION);
        }
        if to_another_origin {
            CREDENTIALS.iter().for_each(|name| {
                self.headers.remove(name);
            });
        }
    }
}

/// Whether the head of an answer is within the limits, which HTTP/2 counts otherwise.
pub(super) fn check_head(headers: &HeaderMap) -> Result<(), FetchError> {
    let bytes: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum();
    if headers.len() > HEADERS_MAX || bytes > HEADER_BYTES_MAX {
        return Err(FetchError::TooLarge(SizeExcess::Headers));
    }
    Ok(())
}

/// The headers that the plugin sees: not the connection's, and none that was true of the encoded body alone.
pub(super) fn visible(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let shown = headers.iter().filter(|(name, _)| may_be_set(name));
    shown
        .map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes())))
        .collect()
}

/// Reads a body to its end and undoes its codings, within the share of the tenant that it is for.
pub(super) async fn read_body(
    headers: &HeaderMap,
    body: Incoming,
    caps: &Caps,
    share: &TrafficShare,
) -> Result<Vec<u8>, FetchError> {
    let values = headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .map(|value| value.to_str().unwrap_or("unreadable"));
    let codings = decode::codings(values).map_err(undecoded)?;
    let bytes_max = caps.response_bytes();
    // A coded body may become as long as may be.
    let stated = body
        .size_hint()
        .exact()
        .filter(|_| codings.is_empty())
        .and_then(|bytes| usize::try_from(bytes).ok());
    let expected = stated.unwrap_or(bytes_max).min(bytes_max);
    let mut room = BodyRoom {
        share,
        expected,
        taken: None,
    };
    let body = collect(body, bytes_max, caps.idle(), &mut room).await?;
    if codings.is_empty() || body.is_empty() {
        return Ok(body);
    }
    room.grow().await?;
    let _turn = share.decoder().await?;
    // Ends the work as soon as nobody waits for it any more.
    let wanted = Arc::new(());
    let work = Work::wanted_by(&wanted);
    let decoding =
        tokio::task::spawn_blocking(move || decode::decode(&codings, body, bytes_max, &work));
    let failed = |_| FetchError::bad("decoding it failed");
    decoding.await.map_err(failed)?.map_err(undecoded)
}

/// Room for a body, of which the beginning has some without a word.
struct BodyRoom<'t> {
    share: &'t TrafficShare,
    /// What the whole body may come to, in bytes.
    expected: usize,
    taken: Option<StockPortion>,
}

impl BodyRoom<'_> {
    /// Makes room for the whole body.
    async fn grow(&mut self) -> Result<(), FetchError> {
        if self.taken.is_none() {
            self.taken = Some(self.share.answer(self.expected).await?);
        }
        Ok(())
    }
}

fn undecoded(error: DecodeError) -> FetchError {
    match error {
        DecodeError::TooLarge { .. } => FetchError::TooLarge(SizeExcess::Body),
        DecodeError::TooMany
        | DecodeError::Unknown
        | DecodeError::Malformed
        | DecodeError::Work => FetchError::BadAnswer(error.to_string()),
    }
}

async fn collect(
    mut body: Incoming,
    bytes_max: usize,
    idle: Duration,
    room: &mut BodyRoom<'_>,
) -> Result<Vec<u8>, FetchError> {
    let mut collected = Vec::new();
    for _ in 0..PIECES_MAX {
        let frame = match tokio::time::timeout(idle, body.frame()).await {
            Err(_) => return Err(FetchError::Late(Late::Idle)),
            Ok(None) => return Ok(collected),
            Ok(Some(frame)) => frame.map_err(|error| broken(&error))?,
        };
        // Trailers are nobody's.
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if data.len() > bytes_max - collected.len() {
            return Err(FetchError::TooLarge(SizeExcess::Body));
        }
        if data.len() + collected.len() > BEGINNING_BYTES {
            room.grow().await?;
        }
        collected.extend_from_slice(&data);
    }
    Err(FetchError::BadAnswer(format!(
        "its body arrived in more than {PIECES_MAX} pieces"
    )))
}

/// An exchange that went wrong after the connection was there.
pub(super) fn broken(error: &hyper::Error) -> FetchError {
    if error.is_parse_too_large() {
        return FetchError::TooLarge(SizeExcess::Headers);
    }
    if error.is_timeout() {
        return FetchError::Late(Late::FirstByte);
    }
    let cause = match error {
        error if error.is_incomplete_message() => "it ended early",
        error if error.is_parse() => "it is not HTTP",
        _ => "the connection broke during the exchange",
    };
    FetchError::bad(cause)
}
