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
pub(super) struct Rules(Vec<(String, RobotsOutcome)>);

/// What is known of one.
type RobotsOutcome = Result<Robots, Unreachable>;

/// Whether a page may be asked for.
#[derive(Clone, Debug)]
pub(super) enum Verdict {
    Allowed,
    Forbidden,
    /// Nobody knows what its site asks, so it may not (RFC 9309, 2.3.1.4).
    Unknown(Unreachable),
}

impl Rules {
    /// Whether the rules for a page are known.
    pub(super) fn know(&self, page: &Url) -> bool {
        self.of(page).is_some()
    }

    /// Whether a page may be asked for.
    pub(super) async fn judge(
        &mut self,
        page: &Url,
        pace: &mut Pace,
        job: &str,
    ) -> Result<Verdict, Failure> {
        if let Some(known) = self.of(page) {
            return Ok(verdict(known, page));
        }
        let known = fetch(page, pace, job).await?;
        pace.slow_down(
            known
                .as_ref()
                .ok()
                .and_then(Robots::crawl_delay)
                .unwrap_or_default(),
        );
        pace.answered(Instant::now());
        let verdict = verdict(&known, page);
        self.0.push((page.origin().ascii_serialization(), known));
        Ok(verdict)
    }

    fn of(&self, page: &Url) -> Option<&RobotsOutcome> {
        let origin = page.origin().ascii_serialization();
        self.0
            .iter()
            .find(|(known, _)| *known == origin)
            .map(|(_, known)| known)
    }
}

fn verdict(known: &RobotsOutcome, page: &Url) -> Verdict {
    match known {
        Ok(robots) if robots.allows(page) => Verdict::Allowed,
        Ok(_) => Verdict::Forbidden,
        Err(unreachable) => Verdict::Unknown(unreachable.clone()),
    }
}

async fn fetch(page: &Url, pace: &mut Pace, job: &str) -> Result<RobotsOutcome, Failure> {
    let mut tries = 0;
    loop {
        pace.wait(job).await?;
        tries += 1;
        match robots::fetch(page, FETCH_MS).await {
            Ok(robots) => return Ok(Ok(robots)),
            // Its pages are denied as well, and say why.
            Err(Unreachable::NoAnswer(Error::Denied(_) | Error::InvalidRequest(_))) => {
                return Ok(Ok(Robots::default()));
            }
            Err(
                Unreachable::Status(_) | Unreachable::NoAnswer(Error::BadResponse(_) | Error::Idle),
            ) if tries < TRIES_MAX => {
                pace.pause(PAUSE, Instant::now());
            }
            Err(unreachable) => return Ok(Err(unreachable)),
        }
    }
}
