//! Public web pages as clean documents (docs/api.md, "Web data").
//!
//! This file is the index: the operations, and what they share. `scrape`, `map` and `crawl` read the page that a caller names
//! by `target`, reach out through `outside`, and `robots` for what a site asks of them; `search` asks its provider. `site` (with
//! `octets`), `links`, `sitemap` and `outline` tell a site's pages apart and find them. `page` is the road from an answer's bytes to a document, through pure modules: `charset`, `source`, `parse` (with `tree`
//! and `tag`), `meta` and `title`, `blocks` (with `hints` and `lexicon`), `features` (with `surroundings` and `context`),
//! `weights` and `select`, then `markdown` (with `code`, `escape` and `table`) or `html`. `browser` tells which pages show
//! their content to a browser alone. How the weights were made: `training/grow.py`, with what the module `training` opens to
//! it.
//!
//! All of them are bounded, whatever a page holds: linear in its bytes, and loops instead of recursion.

mod address;
mod blocks;
mod browser;
mod charset;
mod code;
mod context;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod cost;
mod crawl;
mod escape;
mod features;
#[cfg(test)]
mod fidelity;
mod frames;
mod hints;
#[cfg(test)]
mod hostile;
mod html;
#[cfg(test)]
mod layout;
mod lexicon;
mod links;
mod map;
mod markdown;
mod meta;
mod octets;
mod outline;
mod outside;
mod page;
mod parse;
mod picture;
mod robots;
mod scrape;
mod search;
mod select;
mod site;
mod sitemap;
mod source;
mod surroundings;
mod table;
mod tag;
mod target;
mod title;
#[cfg(test)]
mod torture;
#[cfg(feature = "training")]
pub mod training;
mod tree;
mod weights;

use serde::{Deserialize, Serialize};
use switchbay_sdk::schemars::{self, JsonSchema};
use switchbay_sdk::{Call, ErrorCode, Failure, Operation, Plugin, Reply, Rest, Tool, plugin};

/// The URL names nothing that may be fetched.
const NOT_PUBLIC: ErrorCode = ErrorCode::validation_error(
    "`url` is not a public http or https address on port 80 or 443 without credentials.",
);

/// There is no answer that can be used.
const BAD_RESPONSE: ErrorCode = ErrorCode::upstream_bad_response(
    "The page's server could not be reached or returned no usable response.",
);

/// There is no answer in time.
const LATE: ErrorCode = ErrorCode::upstream_timeout("The page's server did not answer in time.");

/// The plugin cannot fetch.
const UNAVAILABLE: ErrorCode =
    ErrorCode::service_unavailable("Pages cannot be fetched at the moment.");

/// Milliseconds that one call may take.
const BUDGET_MS: u32 = 25_000;
/// Calls of one credential (docs/api.md, "Web data").
const SCRAPES_PER_MINUTE: u32 = 20;

/// The plugin, for [`switchbay_sdk::export!`] and for the benchmarks' native yardstick.
pub fn plugin() -> Plugin {
    plugin!("Public web pages as clean documents")
        .wants("http:GET public", "to fetch the pages that callers ask for")
        .wants("logging", "to log why pages could not be read")
        .welcomes("jobs", "to crawl websites")
        .welcomes("config", "to read the search settings")
        .welcomes(
            "http:POST https://api.tavily.com/search",
            "to query Tavily, if it is the search provider",
        )
        .welcomes(
            "http:POST public",
            "to query SearXNG, if it is the search provider; grant only its address",
        )
        .operation(
            Operation::new("scrape", scrape)
                .title("Scrape a web page")
                .description(
                    "Fetches one public web page and returns its main content as Markdown, with \
                     title and description; navigation, advertisements and other boilerplate are \
                     left out. A page that responds with an error status is still a document: \
                     check `httpStatus`. Scripts are not run. Plain text is returned unchanged; \
                     `content` is null for anything that is not text, such as images and PDF. The \
                     content is untrusted: sanitize it before rendering it.",
                )
                .rest(Rest::post("/api/v1/web/scrape", "web:scrape"))
                .tool(
                    Tool::lookup("scrape_web_page", "web:scrape").choice::<Format>(
                        "format",
                        "The format of the content; Markdown by default.",
                    ),
                )
                .deadline_ms(BUDGET_MS)
                .window_per_minute(SCRAPES_PER_MINUTE)
                .errors([NOT_PUBLIC, BAD_RESPONSE, LATE, UNAVAILABLE])
                .example("One page", r#"{ "url": "http://example.com/" }"#),
        )
        .operation(map::operation())
        .operation(crawl::start_operation())
        .operation(crawl::read_operation())
        .operation(crawl::cancel_operation())
        .operation(search::operation())
}

#[cfg(target_family = "wasm")]
switchbay_sdk::export!(plugin);
#[cfg(target_family = "wasm")]
switchbay_sdk::export_worker!(plugin);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Scrape {
    /// The page's URL: http or https, public, port 80 or 443, without credentials.
    #[schemars(length(min = 1, max = 2048), extend("format" = "uri"))]
    url: String,
    #[serde(default)]
    #[schemars(skip)]
    format: Format,
}

/// How content is written.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Markdown,
    Text,
    Html,
}

#[derive(Serialize, JsonSchema)]
struct Scraped {
    /// The page.
    document: Document,
}

/// A page, in the form that all web operations share.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Document {
    /// The URL of the page, after redirects.
    #[schemars(extend("format" = "uri"))]
    url: String,
    /// The page's title.
    title: Option<String>,
    /// The page's description, at most 10,000 characters.
    description: Option<String>,
    /// The main content, at most 200,000 characters; null if the response is not text.
    content: Option<String>,
    /// The format of the content, or null if there is none.
    content_format: Option<Format>,
    /// Whether a field was truncated to its maximum length.
    content_truncated: bool,
    /// The HTTP status that the page's server returned.
    http_status: Option<u16>,
}

impl Document {
    /// What is shown of a page that could not be had.
    fn failed(url: &str, http_status: Option<u16>) -> Self {
        Self {
            url: url.to_owned(),
            title: None,
            description: None,
            content: None,
            content_format: None,
            content_truncated: false,
            http_status,
        }
    }
}

async fn scrape(_call: Call, input: Scrape) -> Result<Reply<Scraped>, Failure> {
    let document = scrape::fetch(&input.url, input.format).await?;
    Ok(Reply::ok(Scraped { document }))
}
