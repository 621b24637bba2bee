//! HTTP requests.
//!
//! Using this module makes the component import `switchbay:http/client`. Atoms such as `http:GET public`
//! or `http:GET https://api.example.com/v1/` say what may be requested: the plugin asks for them with
//! [`Plugin::wants`], the operator grants them in the manifest. Only public destinations are reached,
//! except for single destinations that the operator routes into a private network; those require an
//! atom that names the host.
//!
//! ```no_run
//! use switchbay_sdk::http;
//! # #[derive(serde::Deserialize)] struct Zone {}
//! # async fn zone() -> Result<Zone, http::Error> {
//! let zone: Zone = http::get("https://api.example.com/v1/zone").total_ms(2000).send().await?.json()?;
//! # Ok(zone) }
//! ```
//!
//! [`Plugin::wants`]: crate::Plugin::wants

use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::switchbay::http::client;

pub use crate::bindings::switchbay::http::client::{Denial, Error};

/// A request under construction.
#[derive(Clone, Debug)]
#[must_use = "a request is only made by `send`"]
pub struct Request(client::Request);

/// A complete response, whatever its status.
#[derive(Clone, Debug)]
pub struct Response(client::Response);

/// A GET request.
pub fn get(url: impl Into<String>) -> Request {
    Request::new("GET", url)
}

/// A POST request with a JSON body.
///
/// # Errors
/// If the value cannot be serialized as JSON.
pub fn post_json(
    url: impl Into<String>,
    body: &impl Serialize,
) -> Result<Request, serde_json::Error> {
    let body = serde_json::to_vec(body)?;
    Ok(Request::new("POST", url)
        .header("content-type", "application/json")
        .body(body))
}

/// Checks whether a request would be permitted now, without making it. The host name is looked up within
/// `at_most_ms` milliseconds (at most 5,000); nothing is connected to.
///
/// # Errors
/// If the request would be refused, or its host name has no address ([`Error::Unresolved`]) or was not
/// resolved in time ([`Error::TotalLate`]).
pub async fn judge(method: &str, url: &str, at_most_ms: u32) -> Result<(), Error> {
    client::judge(method.to_owned(), url.to_owned(), at_most_ms).await
}

impl Request {
    /// A request with any method, without headers or body, that follows no redirects.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        let caps = client::Caps {
            redirects: 0,
            response_bytes: None,
            total_ms: None,
            first_byte_ms: None,
            idle_ms: None,
        };
        let (method, url) = (method.into(), url.into());
        Self(client::Request {
            method,
            url,
            headers: Vec::new(),
            body: Vec::new(),
            caps,
        })
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.0.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.0.body = body.into();
        self
    }

    /// Sets how many redirects are followed, at most 10. The default is none.
    pub fn redirects(mut self, redirects: u32) -> Self {
        self.0.caps.redirects = redirects;
        self
    }

    /// Limits the size of the decoded response body, in bytes.
    pub fn response_bytes(mut self, bytes: u32) -> Self {
        self.0.caps.response_bytes = Some(bytes);
        self
    }

    /// Sets the total time limit in milliseconds.
    pub fn total_ms(mut self, ms: u32) -> Self {
        self.0.caps.total_ms = Some(ms);
        self
    }

    /// Limits the time until the response begins, in milliseconds.
    pub fn first_byte_ms(mut self, ms: u32) -> Self {
        self.0.caps.first_byte_ms = Some(ms);
        self
    }

    /// Limits the time between two pieces of the body, in milliseconds.
    pub fn idle_ms(mut self, ms: u32) -> Self {
        self.0.caps.idle_ms = Some(ms);
        self
    }

    /// Sets one limit for everything: in total, until the response begins, and between two pieces of it.
    pub fn within_ms(self, ms: u32) -> Self {
        self.total_ms(ms).first_byte_ms(ms).idle_ms(ms)
    }

    /// Makes the request.
    ///
    /// # Errors
    /// If the request was denied or there is no complete response. A response with an error status is a
    /// response.
    pub async fn send(self) -> Result<Response, Error> {
        client::fetch(self.0).await.map(Response)
    }
}

impl Response {
    /// The status.
    pub fn status(&self) -> u16 {
        self.0.status
    }

    /// Whether the status is a success (2xx).
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.0.status)
    }

    /// The URL that the response came from, after redirects.
    pub fn url(&self) -> &str {
        &self.0.url
    }

    /// The first value of the header with this lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.0
            .headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// All headers, with lower-case names.
    pub fn headers(&self) -> &[(String, String)] {
        &self.0.headers
    }

    /// Where the response redirects to (301, 302, 303, 307 or 308), as the server wrote it.
    pub fn redirect(&self) -> Option<&str> {
        self.header("location")
            .filter(|_| matches!(self.0.status, 301 | 302 | 303 | 307 | 308))
    }

    /// The seconds of `Retry-After`. A date counts as nothing: see [`Response::retry_after`].
    pub fn retry_after_s(&self) -> Option<u64> {
        self.header("retry-after")?.trim().parse().ok()
    }

    /// How long `Retry-After` asks to wait, by seconds or by a date; a date that has passed is no time.
    pub fn retry_after(&self) -> Option<Duration> {
        retry_after(self.header("retry-after")?, SystemTime::now())
    }

    /// The decoded body.
    pub fn bytes(&self) -> &[u8] {
        &self.0.body
    }

    /// The decoded body.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0.body
    }

    /// The body as text; invalid UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.body).into_owned()
    }

    /// The body, deserialized from JSON.
    ///
    /// # Errors
    /// [`Error::BadResponse`] if the body is not JSON of this type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.0.body).map_err(|error| {
            Error::BadResponse(format!(
                "the body is not JSON of the expected type: {error}"
            ))
        })
    }
}

/// What an [`Error`] comes to, for those who do not tell all of them apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A time limit was reached.
    Late,
    /// There is no response, or none that is complete and valid; or it redirects too often.
    Unreached,
    /// The headers of the response are too large.
    HeadersTooLarge,
    /// The body of the response is too large.
    BodyTooLarge,
    /// The call has too many requests under way.
    Busy,
    /// The host does not make the request, or does not follow a redirect. The text tells why: `was denied: …` or
    /// `is invalid: …`. It is for the operator's log.
    Refused(String),
}

impl Error {
    /// What it comes to.
    pub fn cause(self) -> Cause {
        match self {
            Self::FirstByteLate | Self::Idle | Self::TotalLate => Cause::Late,
            Self::Unresolved
            | Self::Unreachable
            | Self::BadResponse(_)
            | Self::TooManyRedirects => Cause::Unreached,
            Self::HeadersTooLarge => Cause::HeadersTooLarge,
            Self::BodyTooLarge => Cause::BodyTooLarge,
            Self::Busy => Cause::Busy,
            Self::Denied(denial) | Self::RedirectDenied(denial) => {
                let (Denial::NotGranted(rule)
                | Denial::NotPublic(rule)
                | Denial::NotAcceptable(rule)) = denial;
                Cause::Refused(format!("was denied: {rule}"))
            }
            Self::InvalidRequest(rule) => Cause::Refused(format!("is invalid: {rule}")),
        }
    }
}

/// The media type that a `Content-Type` names, in lower case and without parameters. Empty if there is none.
pub fn media_type(content_type: &str) -> String {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// A parameter of a `Content-Type`, such as `charset`, without its quotes.
pub fn media_parameter<'h>(content_type: &'h str, name: &str) -> Option<&'h str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (known, value) = parameter.split_once('=')?;
        let is_it = known.trim().eq_ignore_ascii_case(name);
        is_it.then(|| value.trim().trim_matches(['"', '\'']))
    })
}

/// How long a `Retry-After` asks to wait (RFC 9110, 10.2.3).
fn retry_after(written: &str, now: SystemTime) -> Option<Duration> {
    let written = written.trim();
    if let Ok(seconds) = written.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(written).ok()?;
    Some(at.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, name: &str, value: &str) -> Response {
        Response(client::Response {
            status,
            url: "https://a.example/".to_owned(),
            headers: vec![(name.to_owned(), value.to_owned())],
            body: Vec::new(),
        })
    }

    #[test]
    fn a_server_says_when_to_come_again_by_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let seconds = |written| retry_after(written, now).map(|pause| pause.as_secs());
        assert_eq!(seconds(" 120 "), Some(120));
        assert_eq!(seconds("18446744073709551615"), Some(u64::MAX));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:40 GMT"), Some(3));
        assert_eq!(seconds("Sunday, 06-Nov-94 08:49:40 GMT"), Some(3));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:30 GMT"), Some(0));
        for written in ["", "-1", "1.5", "soon", "Sun, 06 Nov 1994"] {
            assert_eq!(seconds(written), None, "{written}");
        }
    }

    #[test]
    fn seconds_alone_are_no_date() {
        let said = |value| response(429, "retry-after", value).retry_after_s();
        assert_eq!(said("75"), Some(75));
        assert_eq!(said("Sun, 06 Nov 1994 08:49:40 GMT"), None);
        assert_eq!(response(429, "date", "75").retry_after_s(), None);
    }

    #[test]
    fn a_location_is_a_redirect_by_its_status() {
        for status in [301, 302, 303, 307, 308] {
            assert_eq!(response(status, "location", "/a").redirect(), Some("/a"));
        }
        for status in [200, 201, 300, 304, 305, 400] {
            assert_eq!(
                response(status, "location", "/a").redirect(),
                None,
                "{status}"
            );
        }
        assert_eq!(response(302, "x-location", "/a").redirect(), None);
    }

    #[test]
    fn a_content_type_is_taken_apart() {
        let written = " Text/HTML ;a; Charset = \"utf-8\";charset=x";
        assert_eq!(media_type(written), "text/html");
        assert_eq!(media_parameter(written, "charset"), Some("utf-8"));
        assert_eq!(media_parameter(written, "a"), None);
        assert_eq!(
            (media_type(""), media_type(";a=b")),
            (String::new(), String::new())
        );
    }

    #[test]
    fn a_denial_tells_its_rule() {
        let rule = || "it is private".to_owned();
        let denied = Error::RedirectDenied(Denial::NotPublic(rule()));
        assert_eq!(
            denied.cause(),
            Cause::Refused("was denied: it is private".to_owned())
        );
        let invalid = Error::InvalidRequest(rule());
        assert_eq!(
            invalid.cause(),
            Cause::Refused("is invalid: it is private".to_owned())
        );
        assert_eq!(Error::Idle.cause(), Cause::Late);
        assert_eq!(Error::TooManyRedirects.cause(), Cause::Unreached);
    }
}
