//! A token bucket: so many at once after a silence, and one more each interval. Time is passed in.

use std::time::{Duration, Instant};

/// One bucket, full at first.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    burst: u32,
    interval: Duration,
    /// When it will be full again; in the past, it is full.
    full_at: Option<Instant>,
}

impl TokenBucket {
    pub(crate) const fn new(burst: u32, interval: Duration) -> Self {
        Self {
            burst,
            interval,
            full_at: None,
        }
    }

    /// Takes one, if one is there.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let is_there = self.wait(now).is_zero();
        if is_there {
            self.full_at = Some(self.full_at.map_or(now, |at| at.max(now)) + self.interval);
        }
        is_there
    }

    /// How long until one is there.
    pub(crate) fn wait(&self, now: Instant) -> Duration {
        let empties = self
            .full_at
            .map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
        empties.saturating_sub(self.interval * (self.burst - 1))
    }
}
