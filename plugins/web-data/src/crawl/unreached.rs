//! Pages that nobody's server had an answer for: what a crawl fails with where it is the first, and what its operator reads of
//! each.
//!
//! It must know nothing of a crawl's order. No message names an address: where callers go is not the log's to keep, and where a
//! server sends them is nobody's.

use switchbay_sdk::http::{Denial, Error};
use switchbay_sdk::{Failure, log};
use url::Url;

use super::frontier::PendingPage;
use super::visit::{PAGE_BYTES_MAX, VisitAnswer};
use super::walk::PageOutcome;
use crate::robots::Unreachable;
use crate::{BAD_RESPONSE, scrape, site};

/// Why the first page of a crawl has no answer. Its address was judged before the crawl was submitted, so whatever is wrong with
/// it now is no fault of the submission.
pub(super) fn unreached(page: &PendingPage, error: Error) -> Failure {
    match error {
        Error::Denied(Denial::NotPublic(_) | Denial::NotAcceptable(_))
        | Error::InvalidRequest(_)
            if page.is_asked_for() =>
        {
            BAD_RESPONSE.failure(
                "the page's host turned out not to be public after the crawl was submitted",
            )
        }
        error if page.is_asked_for() => scrape::failure(error, PAGE_BYTES_MAX),
        error => scrape::failure(scrape::sent_on(error), PAGE_BYTES_MAX),
    }
}

/// The same where its site did not say what it asks of robots: mostly because there is nobody.
pub(super) fn unruled(page: &PendingPage, error: Error) -> Failure {
    match error {
        Error::RedirectDenied(_)
        | Error::TooManyRedirects
        | Error::HeadersTooLarge
        | Error::BodyTooLarge
        | Error::Idle
        | Error::BadResponse(_) => BAD_RESPONSE
            .failure("the site's robots.txt could not be read, so the site cannot be crawled now"),
        error => unreached(page, error),
    }
}

/// The same where its server says that it is at an address that the crawl does not follow.
pub(super) fn moved(to: &Url) -> Failure {
    if site::is_askable_as_named(to) {
        BAD_RESPONSE.failure("the page redirects too many times")
    } else {
        scrape::astray()
    }
}

/// Tells the operator why a page has no document, or one without content.
pub(super) fn tell(asked: &PageOutcome) {
    let why = match asked {
        PageOutcome::Answered(VisitAnswer::Page(_) | VisitAnswer::Moved { .. }) => return,
        PageOutcome::Answered(VisitAnswer::Failed { status, .. }) => {
            format!("its server failed with status {status}")
        }
        PageOutcome::Answered(VisitAnswer::Astray { .. }) => {
            "it redirects to a destination that cannot be a page".to_owned()
        }
        PageOutcome::Forbidden => "robots.txt forbids it".to_owned(),
        PageOutcome::Unruled(Unreachable::Status(status)) => {
            format!("robots.txt could not be fetched: status {status}")
        }
        PageOutcome::Unruled(Unreachable::NoAnswer(error)) => {
            format!("robots.txt could not be fetched: {}", in_words(error))
        }
        PageOutcome::Unanswered(error) => in_words(error).to_owned(),
    };
    log::info(&format!("a page of the crawl was not read: {why}"));
}

fn in_words(error: &Error) -> &'static str {
    match error {
        Error::Unresolved => "its host name could not be resolved",
        Error::Unreachable => "its server could not be reached, or its certificate is not trusted",
        Error::FirstByteLate | Error::Idle | Error::TotalLate => "timed out",
        Error::Denied(Denial::NotPublic(_)) => "its host is not public",
        Error::Denied(_) | Error::InvalidRequest(_) => "it may not be fetched",
        Error::RedirectDenied(_) => "it redirects to a destination that is not a public page",
        Error::TooManyRedirects => "it redirects too many times",
        Error::HeadersTooLarge | Error::BodyTooLarge => "its response is too large",
        Error::BadResponse(_) => {
            "its server closed the connection early or sent an invalid response"
        }
        Error::Busy => "too many requests were under way",
    }
}
