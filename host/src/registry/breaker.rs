//! Pauses a plugin whose calls use up their processor budget again and again.
//!
//! Epochs are fair per tick alone, so a handful of endless loops starves every neighbour: after some kills in a short time
//! the plugin is not called for a while, then tried with one call. Time is passed in; knows nothing of instances.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Kills within [`WINDOW`] that open the breaker.
const KILLS_MAX: usize = 5;
const WINDOW: Duration = Duration::from_secs(30);
/// How long an open breaker refuses before it lets one call try.
const PAUSE: Duration = Duration::from_secs(10);

/// One plugin's breaker.
#[derive(Default)]
pub(crate) struct Breaker {
    /// Guards the three fields; never held over an await.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    kills: Vec<Instant>,
    open_until: Option<Instant>,
    trying: bool,
}

/// Leave to make one call. Dropping it without [`Admitted::passed`] gives the trial to the next caller.
pub(crate) struct Admitted<'b> {
    breaker: &'b Breaker,
    trial: bool,
}

impl Breaker {
    /// Lets a call through, or says how long the plugin is still paused.
    pub(crate) fn admit(&self, now: Instant) -> Result<Admitted<'_>, Duration> {
        let mut state = self.lock();
        let Some(until) = state.open_until else { return Ok(Admitted { breaker: self, trial: false }) };
        if now < until {
            return Err(until - now);
        }
        if state.trying {
            return Err(Duration::from_secs(1));
        }
        state.trying = true;
        Ok(Admitted { breaker: self, trial: true })
    }

    /// Counts a call that used up its budget.
    pub(crate) fn spent(&self, now: Instant) {
        let mut state = self.lock();
        state.kills.retain(|kill| now.duration_since(*kill) < WINDOW);
        state.kills.push(now);
        if state.kills.len() >= KILLS_MAX || state.open_until.is_some() {
            state.kills.clear();
            state.open_until = Some(now + PAUSE);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admitted<'_> {
    /// The call ended within its budget: a trial closes the breaker.
    pub(crate) fn passed(&self) {
        if self.trial {
            *self.breaker.lock() = State::default();
        }
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        if self.trial {
            self.breaker.lock().trying = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_after_repeated_kills_and_closes_after_a_good_trial() {
        let breaker = Breaker::default();
        let start = Instant::now();
        for _ in 0..KILLS_MAX {
            assert!(breaker.admit(start).is_ok(), "it is closed until the last kill");
            breaker.spent(start);
        }
        assert_eq!(breaker.admit(start).err(), Some(PAUSE));
        let later = start + PAUSE;
        let Ok(trial) = breaker.admit(later) else { panic!("one trial is let through after the pause") };
        assert_eq!(breaker.admit(later).err(), Some(Duration::from_secs(1)), "a second trial waits for the first");
        trial.passed();
        drop(trial);
        assert!(breaker.admit(later).is_ok(), "a good trial closes it");
    }

    #[test]
    fn a_bad_trial_opens_it_again_and_old_kills_are_forgotten() {
        let breaker = Breaker::default();
        let start = Instant::now();
        for index in 0..20_u32 {
            breaker.spent(start + WINDOW * index);
        }
        let mut now = start + WINDOW * 20;
        assert!(breaker.admit(now).is_ok(), "one kill a window does not open it");
        for _ in 0..KILLS_MAX {
            breaker.spent(now);
        }
        now += PAUSE;
        let Ok(trial) = breaker.admit(now) else { panic!("one trial is let through after the pause") };
        breaker.spent(now);
        drop(trial);
        assert_eq!(breaker.admit(now).err(), Some(PAUSE));
    }
}
