//! Queries to DNS resolvers.
//!
//! Using this module makes the component import `switchbay:dns/resolver`. The operator's configuration
//! names the resolvers, and an atom such as `dns:cloudflare` permits one of them: the plugin asks for it
//! with [`Plugin::wants`], the operator grants it. The answer is a DNS message in wire format, which the
//! plugin parses with a library of its choice.
//!
//! ```no_run
//! use switchbay_sdk::dns::{self, Question};
//! # async fn addresses() -> Result<Vec<u8>, dns::Error> {
//! const AAAA: u16 = 28;
//! let message = dns::query(Question::new("cloudflare", "www.example.com", AAAA).within_ms(2000)).await?;
//! # Ok(message) }
//! ```
//!
//! [`Plugin::wants`]: crate::Plugin::wants

use crate::bindings::switchbay::dns::resolver;

pub use crate::bindings::switchbay::dns::resolver::{Denial, Error, Question};

impl Question {
    /// A query to a resolver, by its name in the operator's configuration, with the default time limit of
    /// 5 seconds.
    pub fn new(resolver: impl Into<String>, name: impl Into<String>, record_type: u16) -> Self {
        Self {
            resolver: resolver.into(),
            name: name.into(),
            record_type,
            timeout_ms: None,
        }
    }

    /// Sets the total time limit in milliseconds, at most 10,000.
    #[must_use]
    pub fn within_ms(self, ms: u32) -> Self {
        Self {
            timeout_ms: Some(ms),
            ..self
        }
    }
}

/// Sends one query and returns the resolver's complete message, whatever its response code. Several
/// queries may be under way at once.
///
/// # Errors
/// If the query was denied or no message answered it.
pub async fn query(question: Question) -> Result<Vec<u8>, Error> {
    resolver::query(question).await
}
