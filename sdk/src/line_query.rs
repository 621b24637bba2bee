//! One line to a server, and its answer to the end of the stream: WHOIS and what is like it.
//!
//! Using this module makes the component import `switchbay:line-query/client`. What may be asked stands in atoms such as
//! `line-query:whois.example.net:43` or `line-query:*:43`: the plugin names them with [`Plugin::wants`], the operator grants
//! them in the manifest. Nothing is reached that is not of the public network, but for
//! single destinations that the operator leads into a network of their own; those take an atom that names the host.
//!
//! ```no_run
//! use switchbay_sdk::line_query::{Error, Request, query};
//!
//! async fn lookup(domain: &str) -> Result<String, Error> {
//!     let request = Request { total_ms: Some(4000), ..Request::new("whois.example.net", 43, domain) };
//!     // Some servers answer in other character sets.
//!     Ok(String::from_utf8_lossy(&query(request).await?).into_owned())
//! }
//! ```
//!
//! [`Plugin::wants`]: crate::Plugin::wants

use crate::bindings::switchbay::line_query::client;

pub use crate::bindings::switchbay::line_query::client::{Denial, Error, Request};

impl Request {
    /// A line without its end, for a host and a port, with the host's defaults for size and times.
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

/// Asks, and gives back the bytes of the answer as they are.
///
/// # Errors
/// It was denied, or it came to no whole answer in time.
pub async fn query(request: Request) -> Result<Vec<u8>, Error> {
    client::query(request).await
}
