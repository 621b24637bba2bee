//! Fixed windows of a minute, aligned to the clock, counted in this process.
//!
//! All windows end at the same time, so the counts of a minute are one map that is thrown away as a whole: no entry
//! outlives its minute, and the map holds at most one for each key that called in it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use time::OffsetDateTime;

use super::{Meters, WindowStanding};
use crate::auth::Caller;
use crate::auth::api_key::epoch_seconds;
use crate::error::{Code, Refusal};

const WINDOW_S: u32 = 60;

/// The counts of the current minute.
#[derive(Default)]
pub(crate) struct Windows {
    /// Guards the minute and its counts; never held over an await.
    minute: Mutex<Minute>,
}

#[derive(Default)]
struct Minute {
    number: u64,
    counts: HashMap<String, u32>,
}

impl Windows {
    /// Takes a slot of the caller's minute, or refuses with the time to wait. Either way the meters say where it stands.
    pub(crate) fn admit(&self, caller: &Caller, now: SystemTime, meters: &mut Meters) -> Result<(), Refusal> {
        let Some(limit) = caller.per_minute() else { return Ok(()) };
        let now_s = epoch_seconds(now);
        let (admitted, standing) = self.take(caller.owner(), limit, now_s);
        meters.window = Some(standing);
        if admitted {
            return Ok(());
        }
        let wait = standing.reset_epoch_s.saturating_sub(now_s);
        let message = format!("The caller's {limit} calls a minute are used up");
        let mut refusal = Refusal::new(Code::RateLimited, message).retry_after(wait);
        refusal.reset_at =
            i64::try_from(standing.reset_epoch_s).ok().and_then(|s| OffsetDateTime::from_unix_timestamp(s).ok());
        Err(refusal)
    }

    fn take(&self, owner: &str, limit: u32, now_s: u64) -> (bool, WindowStanding) {
        let number = now_s / u64::from(WINDOW_S);
        let mut minute = self.minute.lock().unwrap_or_else(PoisonError::into_inner);
        // A clock that is set back opens no new window before the old one's minute has passed again.
        if number > minute.number || minute.number > number + 1 {
            *minute = Minute { number, counts: HashMap::new() };
        }
        let count = match minute.counts.get_mut(owner) {
            Some(count) => count,
            None => minute.counts.entry(owner.to_owned()).or_insert(0),
        };
        let admitted = *count < limit;
        if admitted {
            *count += 1;
        }
        let remaining = limit - (*count).min(limit);
        let reset_epoch_s = (number + 1) * u64::from(WINDOW_S);
        (admitted, WindowStanding { limit, remaining, reset_epoch_s, window_s: WINDOW_S })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_aligned_and_counts_each_owner_apart() {
        let windows = Windows::default();
        let take = |owner, now_s| {
            let (admitted, standing) = windows.take(owner, 2, now_s);
            (admitted, standing.remaining, standing.reset_epoch_s)
        };
        assert_eq!(take("a", 119), (true, 1, 120));
        assert_eq!(take("a", 119), (true, 0, 120));
        assert_eq!(take("a", 119), (false, 0, 120));
        assert_eq!(take("b", 119), (true, 1, 120));
        assert_eq!(take("a", 120), (true, 1, 180));
    }

    #[test]
    fn a_clock_set_back_within_a_minute_gives_no_second_window() {
        let windows = Windows::default();
        assert!(windows.take("a", 1, 120).0);
        assert!(!windows.take("a", 1, 119).0);
        assert!(!windows.take("a", 1, 120).0);
    }
}
