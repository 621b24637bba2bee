//! How many log lines a plugin may write over time, all its calls and revisions together.
//!
//! A bound for each call is not enough: many calls make a flood. Time is passed in; knows nothing of lines but their number.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::token_bucket::TokenBucket;

/// 50 lines a second, and so many at once after a silence.
const LINES: TokenBucket = TokenBucket::new(256, Duration::from_millis(20));
/// How often dropped lines are told of, at most.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// One plugin's bucket of lines.
#[derive(Default)]
pub(crate) struct LineRate {
    /// Guards the three fields; never held over an await.
    state: Mutex<LineRateState>,
}

struct LineRateState {
    bucket: TokenBucket,
    dropped: u64,
    reported_at: Option<Instant>,
}

impl Default for LineRateState {
    fn default() -> Self {
        Self {
            bucket: LINES,
            dropped: 0,
            reported_at: None,
        }
    }
}

impl LineRate {
    /// Whether one more line may be written. If not, `lines` are counted as dropped.
    pub(crate) fn admit(&self, lines: u64, now: Instant) -> bool {
        let mut state = self.lock();
        let admitted = state.bucket.take(now);
        if !admitted {
            state.dropped = state.dropped.saturating_add(lines);
        }
        admitted
    }

    /// How many lines were dropped since the last report, where there is something to tell and it is time.
    pub(crate) fn report(&self, now: Instant) -> Option<u64> {
        let mut state = self.lock();
        let is_time = state
            .reported_at
            .is_none_or(|at| now.saturating_duration_since(at) >= REPORT_EVERY);
        if state.dropped == 0 || !is_time {
            return None;
        }
        state.reported_at = Some(now);
        Some(std::mem::take(&mut state.dropped))
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, LineRateState> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(rate: &LineRate, tries: u32, now: Instant) -> usize {
        (0..tries).filter(|_| rate.admit(1, now)).count()
    }

    #[test]
    fn a_burst_passes_and_then_one_line_an_interval() {
        let (rate, start) = (LineRate::default(), Instant::now());
        assert_eq!(admitted(&rate, 1000, start), 256);
        assert_eq!(admitted(&rate, 10, start + Duration::from_millis(19)), 0);
        assert_eq!(admitted(&rate, 10, start + Duration::from_millis(20)), 1);
        assert_eq!(admitted(&rate, 1000, start + Duration::from_secs(1)), 49);
        assert_eq!(
            admitted(&rate, 1000, start + Duration::from_secs(3600)),
            256,
            "silence saves no more than a burst"
        );
    }

    #[test]
    fn every_dropped_line_is_told_of_once_and_at_most_once_a_second() {
        let (rate, start) = (LineRate::default(), Instant::now());
        assert_eq!(rate.report(start), None);
        admitted(&rate, 266, start);
        assert_eq!(rate.report(start), Some(10));
        assert!(!rate.admit(7, start));
        assert_eq!(rate.report(start + Duration::from_millis(999)), None);
        assert_eq!(rate.report(start + Duration::from_secs(1)), Some(7));
        assert_eq!(rate.report(start + Duration::from_secs(9)), None);
    }
}
