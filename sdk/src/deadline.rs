//! How much time a call has left.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use crate::Call;

/// A moment by which something must be done, by the host's monotonic clock.
///
/// ```
/// use switchbay_sdk::{Call, Deadline};
/// # use switchbay_sdk::http;
/// # async fn ask(call: Call) -> Result<(), http::Error> {
/// let deadline = call.deadline();
/// // At most 2 seconds, and nothing at all once less than 250 milliseconds are left.
/// let ms = deadline.part_ms(250..=2000).ok_or(http::Error::TotalLate)?;
/// let response = http::get("https://api.example.com/v1/zone").total_ms(ms).send().await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// So long from now. Panics if the clock does not reach that far, which is after centuries.
    pub fn after(duration: Duration) -> Self {
        Self(Instant::now() + duration)
    }

    /// So many milliseconds from now.
    pub fn in_ms(milliseconds: u32) -> Self {
        Self::after(Duration::from_millis(milliseconds.into()))
    }

    /// What is left until then; zero once it has passed.
    pub fn left(&self) -> Duration {
        self.left_at(Instant::now())
    }

    /// The same in whole milliseconds, rounded down.
    pub fn left_ms(&self) -> u32 {
        ms(self.left())
    }

    /// Milliseconds for a part of the work: those that are left, but no more than the end of the range.
    /// `None` if there are fewer than its start.
    pub fn part_ms(&self, bounds: RangeInclusive<u32>) -> Option<u32> {
        part_of(self.left(), bounds)
    }

    fn left_at(&self, now: Instant) -> Duration {
        self.0.saturating_duration_since(now)
    }
}

impl Call {
    /// When the host stops waiting. It counts from now, so take it when the call begins.
    pub fn deadline(&self) -> Deadline {
        Deadline::in_ms(self.deadline_ms)
    }
}

fn ms(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

fn part_of(left: Duration, bounds: RangeInclusive<u32>) -> Option<u32> {
    let part = ms(left).min(*bounds.end());
    (part >= *bounds.start()).then_some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_gets_less_and_never_less_than_nothing() {
        let now = Instant::now();
        let deadline = Deadline(now + Duration::from_millis(1500));
        let left = |ms| deadline.left_at(now + Duration::from_millis(ms));
        assert_eq!(left(0), Duration::from_millis(1500));
        assert_eq!(left(1499), Duration::from_millis(1));
        assert_eq!((left(1500), left(9000)), (Duration::ZERO, Duration::ZERO));
        assert!(Deadline::in_ms(u32::MAX).left_ms() > u32::MAX / 2);
        assert_eq!(Deadline::in_ms(0).left_ms(), 0);
    }

    #[test]
    fn a_part_is_within_its_bounds_or_there_is_none() {
        let part = |left: u64, bounds| part_of(Duration::from_micros(left), bounds);
        assert_eq!(part(5_000_000, 250..=2000), Some(2000));
        assert_eq!(part(1_999_999, 250..=2000), Some(1999));
        assert_eq!(part(250_000, 250..=2000), Some(250));
        assert_eq!(part(249_999, 250..=2000), None);
        assert_eq!(part(0, 1..=2000), None);
        assert_eq!(part(0, 0..=2000), Some(0));
        assert_eq!(part(5_000_000, RangeInclusive::new(1, 0)), None);
        assert_eq!(part_of(Duration::MAX, 1..=u32::MAX), Some(u32::MAX));
    }
}
