//! Fetches one page and has it read.
//!
//! This alone reaches out. It must know nothing of markup; what it follows besides redirects is a page that sends its reader
//! on at once.

use switchbay_sdk::http::{self, Denial, Error, Response};
use switchbay_sdk::{Failure, log};

use crate::page::{self, FetchedPage};
use crate::{BAD_RESPONSE, Document, Format, LATE, NOT_PUBLIC, UNAVAILABLE};
use crate::{outside, target};

/// Redirects of one fetch.
const REDIRECTS_MAX: u32 = 10;
/// Times that a page may send its reader on by itself.
const REFRESHES_MAX: usize = 2;
/// Seconds after which a page that sends its reader on is one to be read.
pub(crate) const REFRESH_SECONDS_MAX: u32 = 5;
/// Bytes of a page.
const PAGE_BYTES_MAX: u32 = 8 << 20;
/// What is left of the budget is for reading the page.
const FETCH_MS: u32 = 20_000;
pub(crate) const ACCEPT: &str = "text/html,application/xhtml+xml,text/markdown,text/plain,application/json,application/xml;q=0.9,*/*;q=0.5";

/// The page at `url` as a document.
///
/// # Errors
/// The URL is not public, or its server gave no answer. An answer with a status of failure is a document.
pub(crate) async fn fetch(url: &str, format: Format) -> Result<Document, Failure> {
    let mut url = String::from(target::read(url)?);
    let mut hop = 0;
    loop {
        let response = get(&url).await.map_err(|error| match hop {
            0 => failure(error, PAGE_BYTES_MAX),
            // The caller named no such place; a page did.
            _ => failure(sent_on(error), PAGE_BYTES_MAX),
        })?;
        let read = read(&response, format);
        match &read.refresh {
            Some((seconds, next))
                if hop < REFRESHES_MAX
                    && *seconds <= REFRESH_SECONDS_MAX
                    && *next != response.url() =>
            {
                url.clone_from(next);
                hop += 1;
            }
            Some(_) | None => return Ok(document(&response, read)),
        }
    }
}

async fn get(url: &str) -> Result<Response, Error> {
    let complete = |request: http::Request| {
        request
            .header("accept", ACCEPT)
            .redirects(REDIRECTS_MAX)
            .response_bytes(PAGE_BYTES_MAX)
            .total_ms(FETCH_MS)
    };
    outside::get(url, complete).await
}

/// Reads an answer's body.
pub(crate) fn read(response: &Response, format: Format) -> page::PageContent {
    page::read(&answer(response), format)
}

/// What there is to read of an answer.
pub(crate) fn answer(response: &Response) -> FetchedPage<'_> {
    FetchedPage {
        url: response.url(),
        status: response.status(),
        content_type: response.header("content-type"),
        body: response.bytes(),
    }
}

/// What was read, as it is shown.
pub(crate) fn document(response: &Response, read: page::PageContent) -> Document {
    if let Some(reason) = read.needs_browser {
        // Without its address: where callers go is not the log's to keep.
        log::info(&format!(
            "a page shows its content only in a browser: {reason:?}"
        ));
    }
    Document {
        url: response.url().to_owned(),
        title: read.title,
        description: read.description,
        content_format: read.content.is_some().then_some(read.format),
        content: read.content,
        content_truncated: read.truncated,
        http_status: Some(response.status()),
    }
}

pub(crate) fn not_public(message: &str) -> Failure {
    NOT_PUBLIC.failure(message).field("url")
}

/// The error of a request for where a page or its server sent us on to: what may not be asked for was not the caller's to name.
pub(crate) fn sent_on(error: Error) -> Error {
    match error {
        Error::Denied(denial) => Error::RedirectDenied(denial),
        Error::InvalidRequest(rule) => Error::RedirectDenied(Denial::NotAcceptable(rule)),
        error => error,
    }
}

/// A page that is elsewhere, where nobody may ask for it.
pub(crate) fn astray() -> Failure {
    BAD_RESPONSE.failure("the page redirects to a destination that is not a public page")
}

/// Why there is no page, as its caller is told; so many bytes of one were taken. What the gate says of a denial names a host and
/// the rule, and no address that the caller did not write.
pub(crate) fn failure(error: Error, bytes_max: u32) -> Failure {
    let unavailable = |message: &str| UNAVAILABLE.failure(message);
    let message = match error {
        Error::Denied(Denial::NotPublic(rule)) => {
            let rule = format!("`url` must be a public http or https address: {rule}");
            return not_public(&rule);
        }
        Error::Denied(Denial::NotAcceptable(rule)) => {
            return not_public(&format!("`url` cannot be fetched: {rule}"));
        }
        Error::InvalidRequest(_) => return not_public("`url` must be a valid http or https URL"),
        Error::Denied(Denial::NotGranted(_)) => {
            return unavailable("this plugin is not granted access to web pages");
        }
        Error::Busy => return unavailable("too many pages are being fetched; try again later"),
        Error::RedirectDenied(_) => return astray(),
        Error::FirstByteLate | Error::TotalLate => {
            return LATE.failure("the page's server did not answer in time");
        }
        Error::Unresolved => "the page's host name could not be resolved",
        Error::Unreachable => {
            "the page's server could not be reached, or its certificate is not trusted"
        }
        Error::TooManyRedirects => "the page redirects more than ten times",
        Error::HeadersTooLarge => "the response headers are too large",
        Error::BodyTooLarge => &format!("the page is larger than {} MiB", bytes_max >> 20),
        Error::Idle => "the page's server stopped sending before its response was complete",
        Error::BadResponse(_) => {
            "the page's server closed the connection early or sent an invalid response"
        }
    };
    BAD_RESPONSE.failure(message)
}
