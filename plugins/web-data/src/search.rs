//! Web search: results of the operator's provider as standard documents.
//!
//! This file is the index: the operation, its row and its road. The road: `settings` says whom to ask, `searxng`, `brave` and
//! `tavily` know one provider's request and answer each (with `answer` and `query`), `ask` makes the request, `kept` chooses
//! among the hits (with `text`), and `trouble` says what went wrong. Keys are the gate's: nothing here ever holds one.

mod answer;
mod ask;
mod brave;
mod kept;
mod query;
mod searxng;
mod settings;
mod tavily;
mod text;
mod trouble;

use serde::{Deserialize, Serialize};
use switchbay_sdk::http::Request;
use switchbay_sdk::schemars::{self, JsonSchema};
use switchbay_sdk::{Call, Deadline, Failure, Operation, Reply, Rest, Tool, log};

use crate::{BUDGET_MS, Document};
use answer::SearchAnswer;
use kept::Kept;
use settings::{ContentSetting, Provider, Settings};
use trouble::Trouble;

pub(crate) use settings::is_provider;

/// The longest query, in characters (docs/api.md, "Web data").
const QUERY_CHARACTERS_MAX: usize = 1000;
/// Searches of one credential (docs/api.md, "Web data").
const SEARCHES_PER_MINUTE: u32 = 20;
/// Results that are asked for beside each one that is wanted: some are copies, and some are no web pages.
const SPARE: u32 = 2;

/// The operation.
pub(crate) fn operation() -> Operation {
    Operation::new("search", search)
        .errors_of::<Trouble>()
        .title("Search the web")
        .description(
            "Searches the public web with the provider configured for this service, and returns up \
             to `limit` pages, best first and each URL once, with title and a snippet as \
             `description`. An empty list means that nothing was found. To read a page, use \
             scrape_web_page: `content` is null unless the provider sends it, and `httpStatus` is \
             always null.",
        )
        .rest(Rest::post("/api/v1/web/search", "web:search"))
        .tool(Tool::lookup("search_web", "web:search"))
        .deadline_ms(BUDGET_MS)
        .window_per_minute(SEARCHES_PER_MINUTE)
        // It is measured without the space around it.
        .judges(&["query"])
        .example(
            "Three pages",
            r#"{ "query": "harbour lights", "limit": 3 }"#,
        )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    /// What to search for. Surrounding white space is ignored and not counted.
    #[schemars(length(min = 1, max = 1000))]
    query: String,
    /// The maximum number of results.
    #[serde(default = "switchbay_sdk::number::<5>")]
    #[schemars(range(min = 1, max = 10))]
    limit: u32,
}

#[derive(Serialize, JsonSchema)]
struct Searched {
    /// The query, without surrounding white space.
    query: String,
    /// The results, best first.
    results: Vec<Document>,
}

async fn search(_call: Call, input: Search) -> Result<Reply<Searched>, Failure> {
    let query = input.query.trim();
    match query.chars().count() {
        0 => return Err(Trouble::Empty.into()),
        1..=QUERY_CHARACTERS_MAX => {}
        _ => return Err(Trouble::TooLong.into()),
    }
    let results = results(&Settings::read()?, query, input.limit).await?;
    Ok(Reply::ok(Searched {
        query: query.to_owned(),
        results,
    }))
}

async fn results(settings: &Settings, query: &str, limit: u32) -> Result<Vec<Document>, Trouble> {
    let provider = &settings.provider;
    let deadline = Deadline::in_ms(settings.timeout_ms);
    let mut kept = Kept::new(limit);
    let first = ask::ask(provider, provider.request(query, limit, 1), deadline).await?;
    match (first.hits.is_empty(), first.is_outage) {
        (true, true) => return Err(Trouble::Outage),
        (true, false) => return Ok(Vec::new()),
        (false, _) => kept.add(first.hits),
    }
    if kept.is_short() && provider.has_pages() {
        match ask::ask(provider, provider.request(query, limit, 2), deadline).await {
            Ok(second) => kept.add(second.hits),
            Err(trouble) if kept.is_empty() => return Err(trouble),
            Err(trouble) => log::warn(&format!(
                "the second page of results could not be fetched: {trouble:?}"
            )),
        }
    }
    // What there is may be no web page, and then the engines that would have had some did not answer.
    if kept.is_empty() && first.is_outage {
        return Err(Trouble::Outage);
    }
    Ok(kept.into_documents())
}

impl Provider {
    /// The request for one page of results.
    fn request(&self, query: &str, limit: u32, page: u32) -> Request {
        match self {
            Self::Searxng { base } => searxng::request(base, query, page),
            Self::Brave => brave::request(query, SPARE * limit),
            Self::Tavily {
                content: ContentSetting::None,
            } => tavily::request(query, SPARE * limit, ContentSetting::None),
            // Content is large, and none is asked for that would not be sent on.
            Self::Tavily { content } => tavily::request(query, limit, *content),
        }
    }

    /// What the body of a success says.
    fn read(&self, body: &[u8]) -> Result<SearchAnswer, serde_json::Error> {
        match self {
            Self::Searxng { .. } => searxng::read(body),
            Self::Brave => brave::read(body),
            Self::Tavily { content } => tavily::read(body, *content),
        }
    }

    /// Whether it says itself how many results a page has, so that another one may be needed.
    fn has_pages(&self) -> bool {
        match self {
            Self::Searxng { .. } => true,
            Self::Brave | Self::Tavily { .. } => false,
        }
    }
}
