//! When a crawl may ask its site again.
//!
//! It waits by the host's clock and holds up nothing else. It must know nothing of pages.

use std::time::{Duration, Instant};

use switchbay_sdk::Failure;
use switchbay_sdk::jobs;

/// The longest pause between two requests that a robots.txt can ask for.
const DELAY_MAX: Duration = Duration::from_secs(5);
/// The longest that a server's `Retry-After` is waited for.
pub(super) const RETRY_AFTER_MAX: Duration = Duration::from_secs(10);

/// The pauses of one crawl.
#[derive(Debug, Default)]
pub(super) struct Pace {
    delay: Duration,
    not_before: Option<Instant>,
}

impl Pace {
    /// A robots.txt wants a pause after each request. Of several the longest counts.
    pub(super) fn slow_down(&mut self, delay: Duration) {
        self.delay = self.delay.max(delay.min(DELAY_MAX));
    }

    /// Whether requests are made one at a time.
    pub(super) fn is_slow(&self) -> bool {
        !self.delay.is_zero()
    }

    /// An answer came.
    pub(super) fn answered(&mut self, now: Instant) {
        self.pause(self.delay, now);
    }

    /// No request before this is over.
    pub(super) fn pause(&mut self, pause: Duration, now: Instant) {
        self.not_before = self.not_before.max(Some(now + pause.min(RETRY_AFTER_MAX)));
    }

    /// How long until there may be another request.
    pub(super) fn left(&self, now: Instant) -> Duration {
        self.not_before.map_or(Duration::ZERO, |not_before| {
            not_before.saturating_duration_since(now)
        })
    }

    /// Waits until there may be. The run's own job is what is waited for: it does not end before its run, and where it is
    /// cancelled the run is dropped here.
    pub(super) async fn wait(&self, job: &str) -> Result<(), Failure> {
        loop {
            let left = self.left(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let ms = u32::try_from(left.as_millis())
                .unwrap_or(u32::MAX)
                .saturating_add(1);
            jobs::wait(job, ms).await.map_err(super::unread)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_as_long_as_is_asked_within_bounds() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        pace.answered(now);
        assert_eq!((pace.left(now), pace.is_slow()), (Duration::ZERO, false));
        pace.slow_down(Duration::from_secs(2));
        pace.slow_down(Duration::from_secs(1));
        pace.answered(now);
        assert_eq!(
            (pace.left(now), pace.is_slow()),
            (Duration::from_secs(2), true)
        );
        pace.pause(Duration::from_secs(1), now);
        assert_eq!(pace.left(now), Duration::from_secs(2));
        pace.pause(Duration::from_secs(3600), now);
        assert_eq!(pace.left(now), Duration::from_secs(10));
        pace.slow_down(Duration::MAX);
        pace.answered(now + Duration::from_secs(8));
        assert_eq!(
            pace.left(now + Duration::from_secs(11)),
            Duration::from_secs(2)
        );
    }
}
