//! Tavily: its request and its answer.
//!
//! The key goes into `authorization`, by the operator's binding. A page's content comes where the operator asks for it. Pure.

use serde::{Deserialize, Serialize};
use switchbay_sdk::http::{self, Request};
use switchbay_sdk::lenient::Text;

use super::answer::{FirstHits, Hit, SearchAnswer};
use super::query;
use super::settings::ContentSetting;
use crate::Format;

/// Where it answers.
pub(super) const HOST: &str = "api.tavily.com";
const ENDPOINT: &str = "https://api.tavily.com/search";
/// What it takes of a query. It counts no words.
const QUERY_CHARACTERS_MAX: usize = 400;

#[derive(Serialize)]
struct TavilyQuery {
    query: String,
    max_results: u32,
    search_depth: &'static str,
    topic: &'static str,
    include_answer: bool,
    include_raw_content: RawContent,
    include_images: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum RawContent {
    No(bool),
    As(Format),
}

/// The request for so many results, at most 20.
pub(super) fn request(asked: &str, count: u32, content: ContentSetting) -> Request {
    let asked = TavilyQuery {
        query: query::cut(asked, QUERY_CHARACTERS_MAX, usize::MAX),
        max_results: count,
        search_depth: "basic",
        topic: "general",
        include_answer: false,
        include_raw_content: content
            .format()
            .map_or(RawContent::No(false), RawContent::As),
        include_images: false,
    };
    let request =
        http::post_json(ENDPOINT, &asked).expect("its keys are strings, so it has a JSON form");
    request.header("accept", "application/json")
}

#[derive(Deserialize)]
struct TavilyAnswer {
    results: FirstHits<TavilyResult>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TavilyResult {
    url: Text,
    title: Text,
    content: Text,
    raw_content: Text,
}

/// What a success says. Content that was not asked for is text of no known form.
pub(super) fn read(
    body: &[u8],
    content: ContentSetting,
) -> Result<SearchAnswer, serde_json::Error> {
    let said: TavilyAnswer = serde_json::from_slice(body)?;
    let format = content.format().unwrap_or(Format::Text);
    let hit = |found: TavilyResult| Hit {
        url: found.url.0,
        title: found.title.0,
        snippet: found.content.0,
        content: Some((found.raw_content.0, format)).filter(|(text, _)| !text.is_empty()),
    };
    Ok(SearchAnswer {
        hits: said.results.0.into_iter().map(hit).collect(),
        is_outage: false,
    })
}
