//! Requests to the outside.
//!
//! Using this module makes the component import `switchbay:http/client`. What may be asked for stands in atoms such as
//! `http:GET https://api.example.com/v1/` or `http:GET public`: the plugin names them with [`Plugin::wants`], the operator
//! grants them in the manifest. Nothing is reached that is not of the public network, but for
//! single destinations that the operator leads into a network of their own; those take an atom that names the host.
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

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::switchbay::http::client;

pub use crate::bindings::switchbay::http::client::{Denial, Error};

/// A request that is being put together.
#[derive(Clone, Debug)]
#[must_use = "a request is made by `send`"]
pub struct Request(client::Request);

/// A whole answer, whatever its status.
#[derive(Clone, Debug)]
pub struct Response(client::Response);

/// A GET.
pub fn get(url: impl Into<String>) -> Request {
    Request::new("GET", url)
}

/// A POST with a body in JSON.
///
/// # Errors
/// The value has no JSON form.
pub fn post_json(
    url: impl Into<String>,
    body: &impl Serialize,
) -> Result<Request, serde_json::Error> {
    let body = serde_json::to_vec(body)?;
    Ok(Request::new("POST", url)
        .header("content-type", "application/json")
        .body(body))
}

/// Judges a request without making it, as it would be judged now, with the lookup of its host's name within so many milliseconds
/// (5,000 at most). Nothing is connected to.
///
/// # Errors
/// It would be refused; or its name has no address ([`Error::Unresolved`]), or none in time ([`Error::TotalLate`]).
pub async fn judge(method: &str, url: &str, at_most_ms: u32) -> Result<(), Error> {
    client::judge(method.to_owned(), url.to_owned(), at_most_ms).await
}

impl Request {
    /// A request by any method, without headers and body, that follows no redirect.
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

    /// One more header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.0.headers.push((name.into(), value.into()));
        self
    }

    /// The body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.0.body = body.into();
        self
    }

    /// How many redirects are followed: none, if this is not said, and at most 10.
    pub fn redirects(mut self, redirects: u32) -> Self {
        self.0.caps.redirects = redirects;
        self
    }

    /// The most bytes of a body, decoded.
    pub fn response_bytes(mut self, bytes: u32) -> Self {
        self.0.caps.response_bytes = Some(bytes);
        self
    }

    /// The time for all of it, in milliseconds.
    pub fn total_ms(mut self, ms: u32) -> Self {
        self.0.caps.total_ms = Some(ms);
        self
    }

    /// The time until the answer begins, in milliseconds.
    pub fn first_byte_ms(mut self, ms: u32) -> Self {
        self.0.caps.first_byte_ms = Some(ms);
        self
    }

    /// The time between two pieces of a body, in milliseconds.
    pub fn idle_ms(mut self, ms: u32) -> Self {
        self.0.caps.idle_ms = Some(ms);
        self
    }

    /// Makes the request.
    ///
    /// # Errors
    /// It was denied, or it came to no whole answer. An answer with a status of failure is an answer.
    pub async fn send(self) -> Result<Response, Error> {
        client::fetch(self.0).await.map(Response)
    }
}

impl Response {
    /// The status.
    pub fn status(&self) -> u16 {
        self.0.status
    }

    /// Whether the status is of success.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.0.status)
    }

    /// Where it came from, after redirects.
    pub fn url(&self) -> &str {
        &self.0.url
    }

    /// The first value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.0
            .headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// All headers, names in lower case.
    pub fn headers(&self) -> &[(String, String)] {
        &self.0.headers
    }

    /// The body, decoded.
    pub fn bytes(&self) -> &[u8] {
        &self.0.body
    }

    /// The body, decoded.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0.body
    }

    /// The body as text; bytes that are no UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.body).into_owned()
    }

    /// The body read as JSON.
    ///
    /// # Errors
    /// It is none of this type: [`Error::BadResponse`].
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.0.body)
            .map_err(|error| Error::BadResponse(format!("its JSON: {error}")))
    }
}
