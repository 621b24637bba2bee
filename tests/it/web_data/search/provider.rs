//! Search providers of the outside world, and a site, as the tests script them.

use crate::lab::{Reply, Sites, Visit};

pub(super) const SEARXNG: &str = "searx.lab.test";
pub(super) const BRAVE: &str = "api.search.brave.com";
pub(super) const TAVILY: &str = "api.tavily.com";
/// A site whose pages lead away.
pub(super) const PAGES: &str = "pages.lab.test";

pub(super) fn providers() -> Sites {
    Sites::start(&[SEARXNG, BRAVE, TAVILY, PAGES], true)
}

impl Reply {
    pub(super) fn said(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::body(status, "application/json", body)
    }
}

/// What a provider is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SearchRequest {
    /// `GET /path?query`.
    pub(super) line: String,
    /// Sorted.
    pub(super) headers: Vec<String>,
    pub(super) body: String,
}

impl SearchRequest {
    pub(super) fn of(visit: &Visit) -> Self {
        let headers = visit.headers.iter();
        let mut headers: Vec<String> = headers
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        headers.sort_unstable();
        Self {
            line: format!("{} {}", visit.method, visit.path),
            headers,
            body: String::from_utf8_lossy(&visit.body).into_owned(),
        }
    }
}
