//! Crawls: a site's pages as documents, found by following its links (docs/api.md, "Web data").
//!
//! A crawl is a job of the host's. This file is the index: the three operations over jobs, their types and rows. `walk` is the
//! run of a job, `frontier` what it decides by, `visit` how it asks for one page, `unreached` what it says of those without an
//! answer.
//!
//! What is wrong with a submission is said before there is a job, and takes no request id; what goes wrong with a job does.

mod frontier;
mod pace;
mod rules;
mod unreached;
mod visit;
mod walk;

use serde::{Deserialize, Serialize};
use serde_json::json;
use switchbay_sdk::http::Error;
use switchbay_sdk::jobs::{self, Page, Snapshot, State, Submission, SubmitError};
use switchbay_sdk::schemars::{self, JsonSchema};
use switchbay_sdk::{Call, Deadline, ErrorCode, Failure, Operation, Reply, Rest, Timestamp, Tool};

use crate::{
    BAD_RESPONSE, BUDGET_MS, Document, Format, LATE, NOT_PUBLIC, UNAVAILABLE, outside, scrape,
    target,
};

const SCOPE: &str = "web:crawl";
const UUID: &str = "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$";

/// What a read or a cancellation may take (docs/api.md, "Web data"), and how many of each a credential has in a minute.
const READ_BUDGET_MS: u32 = 20_000;
const CRAWLS_PER_MINUTE: u32 = 2;
const READS_PER_MINUTE: u32 = 60;
const CANCELLATIONS_PER_MINUTE: u32 = 20;

/// A crawl that is done within this is answered at once: the lookup of its host's name before it is submitted included.
const AT_ONCE_MS: u32 = 2000;
/// How long a crawl can be read. A credential may submit 480 in this time, and 512 are kept of all that a caller has
/// (`jobs.owner_kept`).
const LIFE_MS: u32 = 4 * 3600 * 1000;
/// The longest that a crawl takes, the time that it waits for its turn included.
const CRAWL_MS: u32 = 3600 * 1000;
/// Documents of one page of a read, and their bytes.
const PAGE_DOCUMENTS_MAX: u32 = 5;
const PAGE_BYTES_MAX: u32 = 1 << 20;
/// Documents of a crawl, and the bytes of those that are answered at once.
const DOCUMENTS_MAX: u32 = 20;
const AT_ONCE_BYTES_MAX: u32 = 2 << 20;
/// When to come again where there is no room.
const FULL_RETRY_MS: u32 = 10_000;

const DUPLICATE: ErrorCode = ErrorCode::duplicate_request(
    "The credential already used this `requestId` within the last 24 hours.",
);
const NOT_FOUND: ErrorCode =
    ErrorCode::not_found("The crawl does not exist, has expired or belongs to another credential.");
const OVER: ErrorCode =
    ErrorCode::conflict("The crawl has completed or failed and cannot be cancelled.");

/// Starts a crawl; its worker runs it.
pub(crate) fn start_operation() -> Operation {
    Operation::new("start_crawl", start)
        .worker(walk::run)
        .title("Crawl a website")
        .description(
            "Fetches a page and, breadth first, the pages of its site that it links to, and \
             returns their main content. `maxDepth` counts links from the first page. robots.txt \
             is followed; links to other hosts are not (`www.` counts as the same host). A short \
             crawl is returned complete, with `id` null. Otherwise read it by its `id`, at least \
             two seconds apart, until it has ended and `nextOffset` is null. A page that failed is \
             a document without content; if the first page cannot be reached, the crawl fails. \
             Send a new UUID as `requestId`, and the same one again if in doubt: it never starts a \
             second crawl.",
        )
        .rest(
            Rest::post("/api/v1/web/crawls", SCOPE)
                .outcome("accepted", 202)
                .narrows("ok", crawled_at_once())
                .narrows("accepted", crawl_accepted()),
        )
        .tool(Tool::new("start_web_crawl", SCOPE).open_world().choice::<Format>(
                    "format",
                    "The format of the content of all documents; Markdown by default.",
                ))
        .deadline_ms(BUDGET_MS)
        .window_per_minute(CRAWLS_PER_MINUTE)
        .named_by_request_id()
        .errors([NOT_PUBLIC, DUPLICATE, BAD_RESPONSE, UNAVAILABLE, LATE])
        .example(
            "Up to five pages",
            r#"{ "url": "http://example.com/", "requestId": "0b6f3f0a-6c0e-4f3c-9d0b-5d1b8b6f7a21", "limit": 5 }"#,
        )
}

/// A crawl that was answered whole.
fn crawled_at_once() -> serde_json::Value {
    json!({
        "id": { "type": "null" },
        "status": { "type": "string", "enum": ["completed"] },
        "total": { "type": "integer", "minimum": 0, "maximum": DOCUMENTS_MAX },
        "nextOffset": { "type": "null" },
        "expiresAt": { "type": "null" },
    })
}

/// A crawl that goes on.
fn crawl_accepted() -> serde_json::Value {
    json!({
        "id": { "type": "string", "format": "uuid" },
        "status": { "type": "string", "enum": ["pending"] },
        "total": { "type": "null" },
        "completed": { "type": "integer", "enum": [0] },
        "documents": { "type": "array", "maxItems": 0 },
        "nextOffset": { "type": "null" },
        "expiresAt": { "type": "string", "format": "date-time" },
    })
}

/// Reads a crawl, a page at a time.
pub(crate) fn read_operation() -> Operation {
    Operation::new("read_crawl", read)
        .title("Read a crawl")
        .description(
            "Returns the state of a crawl and its documents from `offset` on, at most five \
             documents or 1 MiB. While `nextOffset` is not null, continue there, even if the crawl \
             has ended. While it is null and the crawl has not ended, read the same offset again \
             after at least two seconds.",
        )
        .rest(Rest::get("/api/v1/web/crawls/{id}", SCOPE).narrows("ok", crawl_kept()))
        .tool(Tool::new("get_web_crawl", SCOPE).read_only())
        .deadline_ms(READ_BUDGET_MS)
        .window_per_minute(READS_PER_MINUTE)
        .example(
            "The first documents",
            r#"{ "id": "0193b3a4-7c55-7d2e-9c1f-3d5a6b7c8d9e", "offset": 0 }"#,
        )
        .errors([NOT_FOUND, UNAVAILABLE])
}

/// A crawl that can be read.
fn crawl_kept() -> serde_json::Value {
    json!({
        "id": { "type": "string", "format": "uuid" },
        "expiresAt": { "type": "string", "format": "date-time" },
    })
}

/// Cancels a crawl.
pub(crate) fn cancel_operation() -> Operation {
    Operation::new("cancel_crawl", cancel)
        .title("Cancel a crawl")
        .description(
            "Cancels a crawl that has not ended, with all its open requests. Documents found so \
             far can still be read. Cancelling it again has no effect.",
        )
        .rest(Rest::delete("/api/v1/web/crawls/{id}", SCOPE))
        .tool(
            Tool::new("cancel_web_crawl", SCOPE)
                .destructive()
                .idempotent(),
        )
        .deadline_ms(READ_BUDGET_MS)
        .window_per_minute(CANCELLATIONS_PER_MINUTE)
        .example(
            "A running crawl",
            r#"{ "id": "0193b3a4-7c55-7d2e-9c1f-3d5a6b7c8d9e" }"#,
        )
        .errors([NOT_FOUND, OVER, UNAVAILABLE])
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Start {
    /// The first page's URL: http or https, public, port 80 or 443, without credentials.
    #[schemars(length(min = 1, max = 2048), extend("format" = "uri"))]
    url: String,
    /// A UUID that the caller chooses for this submission; each starts at most one crawl in 24 hours.
    #[schemars(title = "UUID", regex(pattern = UUID), extend("format" = "uuid"))]
    request_id: String,
    /// The maximum number of documents.
    #[serde(default = "switchbay_sdk::number::<10>")]
    #[schemars(range(min = 1, max = 20))]
    limit: u32,
    /// The maximum number of links from the first page, which is at depth 0.
    #[serde(default = "switchbay_sdk::number::<1>")]
    #[schemars(range(min = 1, max = 3))]
    max_depth: u32,
    #[serde(default)]
    #[schemars(skip)]
    format: Format,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Read {
    /// The crawl's id: `data.id` of the response that started it.
    #[schemars(title = "UUID", regex(pattern = UUID), extend("format" = "uuid"))]
    id: String,
    /// The number of documents to skip.
    #[serde(default)]
    #[schemars(range(max = 1_000_000))]
    offset: u32,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Cancel {
    /// The crawl's id: `data.id` of the response that started it.
    #[schemars(title = "UUID", regex(pattern = UUID), extend("format" = "uuid"))]
    id: String,
}

/// A crawl and some of its documents.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Crawl {
    /// The id to read and cancel the crawl with; null if the crawl is returned complete.
    #[schemars(extend("format" = "uuid"))]
    id: Option<String>,
    /// The state of the crawl.
    status: State,
    /// The expected number of documents, if known.
    total: Option<u32>,
    /// The number of documents so far.
    completed: u32,
    /// Documents in the order in which they were found; the order never changes.
    documents: Vec<Document>,
    /// The offset of the next documents, or null if there are no more yet.
    next_offset: Option<u32>,
    /// When the crawl expires; null if the crawl is returned complete.
    expires_at: Option<Timestamp>,
}

#[derive(Serialize, JsonSchema)]
struct Cancelled {
    /// The crawl's id.
    #[schemars(extend("format" = "uuid"))]
    id: String,
    /// The state of the crawl.
    status: Ended,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Ended {
    Cancelled,
}

async fn start(_call: Call, mut start: Start) -> Result<Reply<Crawl>, Failure> {
    let at_once = Deadline::in_ms(AT_ONCE_MS);
    let url = target::read(&start.url)?;
    match outside::judge(&url, AT_ONCE_MS).await {
        // Whoever has no address now, or none in time, is asked for by the crawl all the same.
        Ok(()) | Err(Error::Unresolved | Error::TotalLate) => {}
        Err(error) => return Err(scrape::failure(error, visit::PAGE_BYTES_MAX)),
    }
    start.url = url.into();
    // One UUID may be written in two ways.
    let submission = Submission::new(start.request_id.to_ascii_lowercase(), &start)
        .ttl_ms(LIFE_MS)
        .budget_ms(CRAWL_MS);
    let id = jobs::submit(&submission).await.map_err(unsubmitted)?;
    let state = jobs::wait(&id, at_once.left_ms()).await.map_err(unread)?;
    let whole = Page {
        offset: 0,
        items_max: DOCUMENTS_MAX,
        bytes_max: AT_ONCE_BYTES_MAX,
    };
    let found = jobs::read(&id, whole).await.map_err(unread)?;
    // Only these are something that a submission is answered with.
    let failure = found.failure_of([&BAD_RESPONSE, &LATE, &UNAVAILABLE]);
    if let (true, Some(failure)) = (found.items.is_empty(), failure) {
        return Err(failure);
    }
    match (state, found.next_offset) {
        (State::Completed, None) => {
            let documents = documents(&found)?;
            let total = u32::try_from(documents.len()).unwrap_or(u32::MAX);
            Ok(Reply::ok(Crawl {
                id: None,
                status: State::Completed,
                total: Some(total),
                completed: total,
                documents,
                next_offset: None,
                expires_at: None,
            }))
        }
        _ => Ok(Reply::outcome(
            "accepted",
            Crawl {
                id: Some(id),
                status: State::Pending,
                total: None,
                completed: 0,
                documents: Vec::new(),
                next_offset: None,
                expires_at: Some(found.expires_at()),
            },
        )),
    }
}

async fn read(_call: Call, Read { id, offset }: Read) -> Result<Reply<Crawl>, Failure> {
    let page = Page {
        offset,
        items_max: PAGE_DOCUMENTS_MAX,
        bytes_max: PAGE_BYTES_MAX,
    };
    let found = jobs::read(&id, page).await.map_err(unread)?;
    Ok(Reply::ok(Crawl {
        id: Some(id.to_ascii_lowercase()),
        status: found.state,
        total: found.total,
        completed: found.completed,
        documents: documents(&found)?,
        next_offset: found.next_offset,
        expires_at: Some(found.expires_at()),
    }))
}

async fn cancel(_call: Call, Cancel { id }: Cancel) -> Result<Reply<Cancelled>, Failure> {
    match jobs::cancel(&id).await.map_err(unread)? {
        State::Cancelled => Ok(Reply::ok(Cancelled {
            id: id.to_ascii_lowercase(),
            status: Ended::Cancelled,
        })),
        State::Pending | State::Running | State::Completed | State::Failed => {
            Err(OVER.failure("the crawl has already ended"))
        }
    }
}

fn documents(found: &Snapshot) -> Result<Vec<Document>, Failure> {
    found
        .values()
        .map_err(|_| unavailable("the crawl's documents could not be read"))
}

const NOT_GRANTED: &str = "this plugin is not granted access to jobs";

fn unavailable(message: &str) -> Failure {
    UNAVAILABLE.failure(message)
}

fn unsubmitted(error: SubmitError) -> Failure {
    match error {
        SubmitError::Duplicate(_) => {
            DUPLICATE.failure("`requestId` was used within the last 24 hours")
        }
        SubmitError::Full | SubmitError::Busy => {
            unavailable("there are too many crawls; try again later").retry_after_ms(FULL_RETRY_MS)
        }
        SubmitError::Unavailable => {
            unavailable("crawls cannot be stored at the moment; this one may have been started")
        }
        SubmitError::NotGranted(_) => unavailable(NOT_GRANTED),
        SubmitError::NotAcceptable(rule) => {
            unavailable(&format!("the crawl was not accepted: {rule}"))
        }
    }
}

fn unread(error: jobs::Error) -> Failure {
    match error {
        jobs::Error::NotFound => NOT_FOUND.failure("the crawl does not exist or has expired"),
        jobs::Error::Unavailable | jobs::Error::Busy => {
            unavailable("crawls cannot be read at the moment; try again later")
        }
        jobs::Error::NotGranted(_) => unavailable(NOT_GRANTED),
        jobs::Error::NotAcceptable(rule) => {
            unavailable(&format!("the crawl cannot be read: {rule}"))
        }
    }
}
