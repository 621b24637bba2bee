//! Brave Search: its request and its answer.
//!
//! The key goes into `x-subscription-token`, by the operator's binding. Pure.

use serde::Deserialize;
use serde::de::Error as _;
use switchbay_sdk::http::{self, Request, Response};
use switchbay_sdk::lenient::Text;
use url::Url;

use super::answer::{FirstHits, Hit, SearchAnswer};
use super::query;

/// Where it answers.
pub(super) const HOST: &str = "api.search.brave.com";
const ENDPOINT: &str = "https://api.search.brave.com/res/v1/web/search";
/// What it takes of a query.
const QUERY_CHARACTERS_MAX: usize = 400;
const QUERY_WORDS_MAX: usize = 50;

/// The request for so many results, at most 20.
pub(super) fn request(asked: &str, count: u32) -> Request {
    let parameters = [
        (
            "q",
            &*query::cut(asked, QUERY_CHARACTERS_MAX, QUERY_WORDS_MAX),
        ),
        ("count", &*count.to_string()),
        ("text_decorations", "false"),
        ("result_filter", "web"),
    ];
    let url = Url::parse_with_params(ENDPOINT, parameters).expect("the endpoint is a URL");
    http::get(url).header("accept", "application/json")
}

#[derive(Deserialize)]
struct BraveAnswer {
    #[serde(default, rename = "type")]
    kind: Text,
    #[serde(default)]
    web: Option<Web>,
}

#[derive(Deserialize)]
struct Web {
    results: FirstHits<BraveResult>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BraveResult {
    url: Text,
    title: Text,
    description: Text,
}

/// What a success says. Nothing was found where there is no `web`.
pub(super) fn read(body: &[u8]) -> Result<SearchAnswer, serde_json::Error> {
    let said: BraveAnswer = serde_json::from_slice(body)?;
    if said.kind.0 != "search" {
        return Err(serde_json::Error::custom(
            "it is not a response to a search",
        ));
    }
    let hit = |found: BraveResult| Hit {
        url: found.url.0,
        title: found.title.0,
        snippet: found.description.0,
        content: None,
    };
    let hits = said.web.map(|web| web.results.0).unwrap_or_default();
    Ok(SearchAnswer {
        hits: hits.into_iter().map(hit).collect(),
        is_outage: false,
    })
}

#[derive(Deserialize)]
struct Refused {
    error: Cause,
}

#[derive(Deserialize)]
struct Cause {
    #[serde(default)]
    code: Text,
}

/// Whether a 422 is about the key. For some time that was its status for every wrong one.
pub(super) fn refuses_key(body: &[u8]) -> bool {
    serde_json::from_slice::<Refused>(body)
        .is_ok_and(|refused| refused.error.code.0 == "SUBSCRIPTION_TOKEN_INVALID")
}

/// Seconds until the last of its windows that are used up opens: it has one a second and one a month, in a list each.
pub(super) fn reset_s(response: &Response) -> Option<u64> {
    let list = |name: &str| -> Vec<u64> {
        let written = response.header(name).unwrap_or_default();
        written
            .split(',')
            .map_while(|number| number.trim().parse().ok())
            .collect()
    };
    let (remaining, reset) = (list("x-ratelimit-remaining"), list("x-ratelimit-reset"));
    remaining
        .into_iter()
        .zip(reset)
        .filter(|(remaining, _)| *remaining == 0)
        .map(|(_, reset)| reset)
        .max()
}
