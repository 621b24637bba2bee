//! The addresses of a site (docs/api.md, "Web data").
//!
//! This file is the operation: its types and its row. `arrival` goes to where the site is, `survey` goes over it, `visitor` asks
//! for what they want to see within the call's time, `found` keeps each page once.

mod arrival;
mod found;
mod survey;
mod visitor;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use switchbay_sdk::{Call, Failure, Operation, Reply, Rest, Tool, schemars};

use crate::{BAD_RESPONSE, BUDGET_MS, LATE, NOT_PUBLIC, UNAVAILABLE, target};

/// Calls of one credential (docs/api.md, "Web data").
const MAPS_PER_MINUTE: u32 = 20;

/// The operation's row.
pub(crate) fn operation() -> Operation {
    Operation::new("map", map)
        .title("Map a website")
        .description(
            "Finds pages of one public website: the given page, then pages in the site's sitemaps, \
             then pages that its pages link to. Each page is listed once, up to `limit`; other \
             hosts and subdomains are left out (`www.` counts as the same host). robots.txt is \
             followed. `title` and `description` are null unless a fetched page, a feed or a news \
             sitemap provides them.",
        )
        .rest(Rest::post("/api/v1/web/map", "web:map"))
        .tool(Tool::lookup("map_website", "web:map"))
        .deadline_ms(BUDGET_MS)
        .window_per_minute(MAPS_PER_MINUTE)
        .errors([NOT_PUBLIC, BAD_RESPONSE, LATE, UNAVAILABLE])
        .example("A site", r#"{ "url": "http://example.com/", "limit": 50 }"#)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// A URL of the site: http or https, public, port 80 or 443, without credentials.
    #[schemars(length(min = 1, max = 2048), extend("format" = "uri"))]
    url: String,
    /// The maximum number of links.
    #[serde(default = "switchbay_sdk::number::<20>")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
}

#[derive(Serialize, JsonSchema)]
struct Mapped {
    /// The requested URL, percent-encoded and without a fragment.
    #[schemars(extend("format" = "uri"))]
    url: String,
    /// Pages of the site, each listed once.
    links: Vec<Link>,
}

/// A page of the site.
#[derive(Debug, Serialize, JsonSchema)]
struct Link {
    /// Its URL.
    #[schemars(extend("format" = "uri"))]
    url: String,
    /// Its title, if known.
    title: Option<String>,
    /// Its description, if known, at most 10,000 characters.
    description: Option<String>,
}

async fn map(_call: Call, input: Input) -> Result<Reply<Mapped>, Failure> {
    let start = target::read(&input.url)?;
    let (url, limit) = (start.to_string(), input.limit as usize);
    let links = survey::survey(start, limit).await?;
    Ok(Reply::ok(Mapped { url, links }))
}
