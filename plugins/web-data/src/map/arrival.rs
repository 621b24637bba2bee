//! Goes to where a site is: asks for its robots.txt, then for the page that was named, and follows the page's redirects.
//!
//! It must know nothing of what the page holds. Redirects are followed one by one, because each leads where the robots.txt of
//! its own host is asked first.

use switchbay_sdk::Failure;
use switchbay_sdk::http::{Error, Response};
use url::Url;

use super::visitor::{Request, Visitor};
use crate::robots::{self, Robots, Unreachable};
use crate::{BAD_RESPONSE, scrape, site};

const REDIRECTS_MAX: usize = 10;
const ACCEPT: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.5";
/// Bytes of a page; a larger one is not read.
pub(super) const PAGE_BYTES_MAX: u32 = 4 << 20;

/// Where the named page led.
#[derive(Debug)]
pub(super) struct Arrival {
    /// Its address after redirects.
    pub(super) start: Url,
    pub(super) robots: Robots,
    /// Its answer; none, where robots.txt forbids to ask for it.
    pub(super) answer: Option<Result<Response, Error>>,
}

/// Goes to a page.
///
/// # Errors
/// What its site asks of robots cannot be known, or it redirects without end or to where nobody may go.
pub(super) async fn arrive(start: Url, visitor: &mut Visitor) -> Result<Arrival, Failure> {
    let mut robots = rules(&start, visitor)
        .await
        .map_err(|unreachable| failure(&start, unreachable))?;
    let mut start = start;
    for hop in 0..=REDIRECTS_MAX {
        if !robots.allows(&start) {
            return Ok(Arrival {
                start,
                robots,
                answer: None,
            });
        }
        let answer = visitor.ask(&[page(&start)]).await.pop();
        let next = answer
            .as_ref()
            .and_then(|answer| redirect(&start, answer.as_ref().ok()?));
        let Some(next) = next else {
            let answer = answer.map(|answer| {
                answer.map_err(|error| {
                    if hop == 0 {
                        error
                    } else {
                        scrape::sent_on(error)
                    }
                })
            });
            return Ok(Arrival {
                start,
                robots,
                answer,
            });
        };
        if !site::is_askable_as_named(&next) {
            return Err(scrape::astray());
        }
        if next.origin() != start.origin() {
            robots = rules(&next, visitor)
                .await
                .map_err(|unreachable| match unreachable {
                    // That it was named is the server's doing, not the caller's.
                    Unreachable::NoAnswer(error) => {
                        scrape::failure(scrape::sent_on(error), PAGE_BYTES_MAX)
                    }
                    unreachable @ Unreachable::Status(_) => failure(&next, unreachable),
                })?;
        }
        start = next;
    }
    Err(scrape::failure(Error::TooManyRedirects, PAGE_BYTES_MAX))
}

/// How a page is asked for.
pub(super) fn page(url: &Url) -> Request<'_> {
    Request {
        url,
        accept: ACCEPT,
        redirects: 0,
        bytes_max: PAGE_BYTES_MAX,
    }
}

/// Where an answer that came from `url` sends on to.
pub(super) fn redirect(url: &Url, answer: &Response) -> Option<Url> {
    url.join(answer.redirect()?).ok().map(site::plain)
}

async fn rules(page: &Url, visitor: &mut Visitor) -> Result<Robots, Unreachable> {
    let robots = robots::fetch(page, visitor.request_ms()).await?;
    visitor.heed(robots.crawl_delay());
    Ok(robots)
}

fn failure(page: &Url, unreachable: Unreachable) -> Failure {
    match unreachable {
        Unreachable::NoAnswer(error) => scrape::failure(error, PAGE_BYTES_MAX),
        Unreachable::Status(status) => {
            let host = page.host_str().unwrap_or_default();
            let message = format!(
                "{host} returned status {status} for robots.txt, so the site cannot be mapped now"
            );
            BAD_RESPONSE.failure(message)
        }
    }
}
