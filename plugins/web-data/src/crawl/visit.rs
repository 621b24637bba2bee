//! One request for a page, and what its answer comes to.
//!
//! A redirect is an answer here: where it leads is the crawl's to decide, because another host has another robots.txt and another
//! page may be known. It must know nothing of a crawl's order.

use std::time::Duration;

use switchbay_sdk::http::{Error, Response};
use switchbay_sdk::public_url::is_web;
use url::Url;

use crate::scrape::ACCEPT;
use crate::{outside, site};

/// Bytes of a page. Two are in memory at once, one of them being read.
pub(super) const PAGE_BYTES_MAX: u32 = 4 << 20;
/// What one page may take.
const PAGE_MS: u32 = 15_000;
/// Until its answer begins.
const FIRST_BYTE_MS: u32 = 10_000;

/// What a page's server answered.
#[derive(Debug)]
pub(super) enum VisitAnswer {
    /// What can be read, whatever its status.
    Page(Response),
    /// It is elsewhere.
    Moved { status: u16, to: Url },
    /// It is elsewhere, where no page can be.
    Astray { status: u16 },
    /// The server has no answer at present; how long it wants to be left alone.
    Failed {
        status: u16,
        pause: Option<Duration>,
    },
}

/// Asks for a page.
pub(super) async fn visit(url: Url) -> Result<VisitAnswer, Error> {
    let response = outside::get(url.as_str(), |request| {
        let request = request
            .header("accept", ACCEPT)
            .response_bytes(PAGE_BYTES_MAX);
        request.total_ms(PAGE_MS).first_byte_ms(FIRST_BYTE_MS)
    });
    Ok(answer(&url, response.await?))
}

fn answer(url: &Url, response: Response) -> VisitAnswer {
    let status = response.status();
    if let Some(location) = response.redirect() {
        return match moved(url, location) {
            Some(to) => VisitAnswer::Moved { status, to },
            None => VisitAnswer::Astray { status },
        };
    }
    match status {
        429 | 503 => VisitAnswer::Failed {
            status,
            pause: response.retry_after(),
        },
        500.. => VisitAnswer::Failed {
            status,
            pause: None,
        },
        _ => VisitAnswer::Page(response),
    }
}

fn moved(url: &Url, location: &str) -> Option<Url> {
    url.join(location).ok().filter(is_web).map(site::plain)
}
