//! Sends one line to a server and reads its answer to the end of the stream: WHOIS and similar protocols.
//!
//! Using this module makes the component import `switchbay:line-query/client`. Atoms such as
//! `line-query:whois.example.net:43` or `line-query:*:43` say what may be queried: the plugin asks for
//! them with [`Plugin::wants`], the operator grants them in the manifest. Only public destinations are
//! reached, except for single destinations that the operator routes into a private network; those
//! require an atom that names the host.
//!
//! ```no_run
//! use switchbay_sdk::line_query::{Error, Request, query};
//!
//! async fn lookup(domain: &str) -> Result<String, Error> {
//!     let request = Request { total_ms: Some(4000), ..Request::new("whois.example.net", 43, domain) };
//!     // Some servers answer in another character set.
//!     Ok(String::from_utf8_lossy(&query(request).await?).into_owned())
//! }
//! ```
//!
//! [`Plugin::wants`]: crate::Plugin::wants

use crate::bindings::switchbay::line_query::client;

pub use crate::bindings::switchbay::line_query::client::{Denial, Error, Request};

impl Request {
    /// A query of one line, without a line end, to a host and a port, with default limits.
    pub fn new(host: impl Into<String>, port: u16, line: impl Into<String>) -> Self {
        let (host, line) = (host.into(), line.into());
        Self {
            host,
            port,
            line,
            response_bytes: None,
            total_ms: None,
            idle_ms: None,
        }
    }
}

/// Sends a query and returns the bytes of the answer unchanged.
///
/// # Errors
/// If the query was denied or there was no complete answer in time.
pub async fn query(request: Request) -> Result<Vec<u8>, Error> {
    client::query(request).await
}
