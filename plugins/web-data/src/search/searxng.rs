//! SearXNG, an engine of engines that operators host themselves: its request and its answer.
//!
//! It has no number of results to ask for, and answers 200 without a result when its engines are down. It is asked by a form,
//! because a long query in letters beyond ASCII makes an address that servers refuse. Pure.

use serde::Deserialize;
use serde::de::IgnoredAny;
use switchbay_sdk::http::Request;
use switchbay_sdk::lenient::Text;
use url::{Url, form_urlencoded};

use super::answer::{FirstHits, Hit, SearchAnswer};

/// The request for a page of results, from 1 on.
pub(super) fn request(base: &Url, query: &str, page: u32) -> Request {
    let url = base
        .join("search")
        .expect("the base is a web URL, so a path joins it");
    let form = form_urlencoded::Serializer::new(String::new())
        .append_pair("q", query)
        .append_pair("format", "json")
        .append_pair("pageno", &page.to_string())
        .finish();
    let request =
        Request::new("POST", url).header("content-type", "application/x-www-form-urlencoded");
    request.header("accept", "application/json").body(form)
}

#[derive(Deserialize)]
struct SearxngAnswer {
    results: FirstHits<SearxngResult>,
    #[serde(default)]
    unresponsive_engines: Option<FirstHits<IgnoredAny>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SearxngResult {
    url: Text,
    title: Text,
    content: Text,
}

/// What a success says.
pub(super) fn read(body: &[u8]) -> Result<SearchAnswer, serde_json::Error> {
    let said: SearxngAnswer = serde_json::from_slice(body)?;
    let hit = |found: SearxngResult| Hit {
        url: found.url.0,
        title: found.title.0,
        snippet: found.content.0,
        content: None,
    };
    Ok(SearchAnswer {
        hits: said.results.0.into_iter().map(hit).collect(),
        is_outage: said
            .unresponsive_engines
            .is_some_and(|engines| !engines.0.is_empty()),
    })
}
