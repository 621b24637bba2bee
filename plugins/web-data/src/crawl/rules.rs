//! What the robots.txt of a crawl's site lets it ask for.
//!
//! Each origin's is asked for before the first page of it, once in a run. It must know nothing of pages.

use std::time::{Duration, Instant};

use switchbay_sdk::Failure;
use switchbay_sdk::http::Error;
use url::Url;

use super::pace::Pace;
use crate::robots::{self, Robots, Unreachable};

/// What one request for it may take, in milliseconds.
const FETCH_MS: u32 = 10_000;
/// Requests for it where its server fails. After them nothing may be asked for (RFC 9309, 2.3.1.4).
const TRIES_MAX: u32 = 3;
/// Between them.
const PAUSE: Duration = Duration::from_millis(500);

/// What is known of each origin.
#[derive(Debug, Default)]
pub(super) struct Rules(Vec<(String, Robots)>);

impl Rules {
    /// Whether the rules for a page are known.
    pub(super) fn know(&self, page: &Url) -> bool {
        self.of(page).is_some()
    }

    /// Whether a page may be asked for.
    pub(super) async fn allow(&mut self, page: &Url, pace: &mut Pace, job: &str) -> Result<bool, Failure> {
        if let Some(robots) = self.of(page) {
            return Ok(robots.allows(page));
        }
        let robots = fetch(page, pace, job).await?;
        pace.slow_down(robots.crawl_delay().unwrap_or_default());
        pace.answered(Instant::now());
        let allows = robots.allows(page);
        self.0.push((page.origin().ascii_serialization(), robots));
        Ok(allows)
    }

    fn of(&self, page: &Url) -> Option<&Robots> {
        let origin = page.origin().ascii_serialization();
        self.0.iter().find(|(known, _)| *known == origin).map(|(_, robots)| robots)
    }
}

async fn fetch(page: &Url, pace: &mut Pace, job: &str) -> Result<Robots, Failure> {
    for _ in 0..TRIES_MAX {
        pace.wait(job).await?;
        match robots::fetch(page, FETCH_MS).await {
            Ok(robots) => return Ok(robots),
            // Its pages are denied as well, and say why.
            Err(Unreachable::NoAnswer(Error::Denied(_) | Error::InvalidRequest(_))) => return Ok(Robots::default()),
            Err(Unreachable::Status(_) | Unreachable::NoAnswer(Error::BadResponse(_) | Error::Idle)) => {
                pace.pause(PAUSE, Instant::now());
            }
            Err(Unreachable::NoAnswer(_)) => break,
        }
    }
    Ok(Robots::closed())
}
