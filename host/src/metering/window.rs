//! Fixed windows, aligned to the clock, counted in this process.
//!
//! All windows of one length end at the same time, so the counts of a window are one map that is thrown away as a whole: no
//! entry outlives its window. A call takes a slot in all of its windows or in none, so that one limit does not eat another's.
//! Time is passed in; must not know whose a subject is.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::WindowStanding;

/// Subjects of one kind counted in one window; one more is refused, as if it had used up its limit.
const SUBJECTS_MAX: usize = 1 << 20;

/// What a subject is. Each kind has room of its own: anybody may come from many addresses, and fills no caller's with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubjectKind {
    Credential,
    Address,
}

/// How long a window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    Second,
    Minute,
}

impl Length {
    pub(crate) fn seconds(self) -> u32 {
        match self {
            Length::Second => 1,
            Length::Minute => 60,
        }
    }
}

/// A slot that a call needs.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    /// Whatever is counted, under a name that nothing else of its kind has.
    pub(crate) subject: String,
    pub(crate) kind: SubjectKind,
    pub(crate) limit: u32,
    pub(crate) length: Length,
}

/// The counts of the current second and minute.
#[derive(Default)]
pub(crate) struct Windows {
    /// Guards both counts, so that a call takes its slots at once; never held over an await.
    counts: Mutex<WindowCounts>,
}

#[derive(Default)]
struct WindowCounts {
    second: Aligned,
    minute: Aligned,
}

/// The current window of one length, and what was counted in it.
#[derive(Default)]
struct Aligned {
    /// Windows of this length since 1970.
    number: u64,
    credentials: HashMap<String, u32>,
    addresses: HashMap<String, u32>,
}

impl Windows {
    /// Takes all the slots, or none of them where one is not free. Gives the window with the least left, or else the one
    /// that refused: of several, the one that lasts longest.
    pub(crate) fn take(&self, slots: Vec<Slot>, now_s: u64) -> Result<Option<WindowStanding>, WindowStanding> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.second.turn(Length::Second, now_s);
        counts.minute.turn(Length::Minute, now_s);
        let refused = slots.iter().filter_map(|slot| counts.of(slot.length).refusal(slot));
        if let Some(standing) = refused.max_by_key(|standing| standing.reset_epoch_s) {
            return Err(standing);
        }
        let taken = slots.into_iter().map(|slot| counts.of(slot.length).take(slot));
        Ok(taken.min_by_key(|standing| (standing.remaining, u64::MAX - standing.reset_epoch_s)))
    }
}

impl WindowCounts {
    fn of(&mut self, length: Length) -> &mut Aligned {
        match length {
            Length::Second => &mut self.second,
            Length::Minute => &mut self.minute,
        }
    }
}

impl Aligned {
    /// Opens the window of this time. A clock that is set back by less than a window opens none, and neither does a call
    /// that read the clock before another and comes after it.
    fn turn(&mut self, length: Length, now_s: u64) {
        let number = now_s / u64::from(length.seconds());
        if number > self.number || self.number > number + 1 {
            *self = Self { number, ..Self::default() };
        }
    }

    /// Where the window stands, if it has no slot left.
    fn refusal(&self, slot: &Slot) -> Option<WindowStanding> {
        let of_kind = match slot.kind {
            SubjectKind::Credential => &self.credentials,
            SubjectKind::Address => &self.addresses,
        };
        let has_room = match of_kind.get(&slot.subject) {
            Some(taken) => *taken < slot.limit,
            None => slot.limit > 0 && of_kind.len() < SUBJECTS_MAX,
        };
        (!has_room).then(|| self.standing(slot, slot.limit))
    }

    fn take(&mut self, slot: Slot) -> WindowStanding {
        let of_kind = match slot.kind {
            SubjectKind::Credential => &mut self.credentials,
            SubjectKind::Address => &mut self.addresses,
        };
        let taken = match of_kind.get_mut(&slot.subject) {
            Some(taken) => {
                *taken += 1;
                *taken
            }
            None => {
                of_kind.insert(slot.subject.clone(), 1);
                1
            }
        };
        self.standing(&slot, taken)
    }

    fn standing(&self, slot: &Slot, taken: u32) -> WindowStanding {
        let window_s = slot.length.seconds();
        WindowStanding {
            limit: slot.limit,
            remaining: slot.limit.saturating_sub(taken),
            reset_epoch_s: (self.number + 1) * u64::from(window_s),
            window_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use arbtest::arbitrary::{Result, Unstructured};
    use arbtest::arbtest;

    use super::*;

    fn slot(subject: &str, limit: u32, length: Length) -> Slot {
        Slot { subject: subject.to_owned(), kind: SubjectKind::Credential, limit, length }
    }

    #[test]
    fn as_many_addresses_as_there_is_room_for_fill_nobody_elses() {
        let windows = Windows::default();
        let take = |kind, subject: usize| {
            let slot = Slot { subject: subject.to_string(), kind, limit: 1, length: Length::Minute };
            windows.take(vec![slot], 60).is_ok()
        };
        assert!((0..SUBJECTS_MAX).all(|subject| take(SubjectKind::Address, subject)));
        assert!(!take(SubjectKind::Address, SUBJECTS_MAX), "there is no room for one more address");
        assert!(take(SubjectKind::Credential, SUBJECTS_MAX));
    }

    #[test]
    fn a_window_is_aligned_and_counts_each_subject_apart() {
        let windows = Windows::default();
        let take = |subject, now_s| match windows.take(vec![slot(subject, 2, Length::Minute)], now_s) {
            Ok(standing) => (true, standing.expect("one window").remaining, standing.expect("one").reset_epoch_s),
            Err(standing) => (false, standing.remaining, standing.reset_epoch_s),
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
        let take = |now_s| windows.take(vec![slot("a", 1, Length::Minute)], now_s).is_ok();
        assert_eq!([take(120), take(119), take(120), take(180), take(179)], [true, false, false, true, false]);
    }

    #[test]
    fn the_window_that_refused_is_told_or_the_one_with_the_least_left() {
        let windows = Windows::default();
        let slots = |key| vec![slot("key", key, Length::Second), slot("operation", 3, Length::Minute)];
        let told = |standing: WindowStanding| (standing.window_s, standing.remaining);
        assert_eq!(windows.take(slots(9), 60).map(|s| s.map(told)), Ok(Some((60, 2))));
        assert_eq!(windows.take(slots(2), 60).map(|s| s.map(told)), Ok(Some((1, 0))));
        assert_eq!(windows.take(slots(2), 60).map_err(told), Err((1, 0)));
        assert_eq!(windows.take(slots(9), 61).map(|s| s.map(told)), Ok(Some((60, 0))));
        assert_eq!(windows.take(slots(9), 61).map_err(told), Err((60, 0)));
        assert_eq!(windows.take(Vec::new(), 61), Ok(None));
    }

    /// Against a list of everything that was ever admitted: while time goes on, a call is admitted exactly when each of its
    /// windows has room, and a refused call takes nothing.
    #[test]
    fn exactly_the_limit_is_admitted_in_every_aligned_window() {
        arbtest(|u: &mut Unstructured<'_>| -> Result<()> {
            let windows = Windows::default();
            let limits: [u32; 4] = [u.int_in_range(0..=4)?, u.int_in_range(1..=9)?, u.int_in_range(0..=3)?, 5];
            let mut admitted: Vec<(usize, u64)> = Vec::new();
            let mut now_s: u64 = u.int_in_range(0..=200)?;
            while !u.is_empty() {
                now_s += u.choose(&[0, 0, 0, 0, 1, 2, 30, 3600])?;
                let chosen: u8 = u.int_in_range(0..=15)?;
                let subjects: Vec<usize> = (0..4).filter(|subject| chosen & (1 << subject) != 0).collect();
                let length = |subject: usize| {
                    if subject < 2 { Length::Second } else { Length::Minute }
                };
                let window = |subject: usize, at: u64| at / u64::from(length(subject).seconds());
                let used = |subject: usize| {
                    let same =
                        |one: &&(usize, u64)| one.0 == subject && window(subject, one.1) == window(subject, now_s);
                    u32::try_from(admitted.iter().filter(same).count()).expect("few")
                };
                let fits = subjects.iter().all(|subject| used(*subject) < limits[*subject]);
                let slots =
                    subjects.iter().map(|subject| slot(&subject.to_string(), limits[*subject], length(*subject)));
                let taken = windows.take(slots.collect(), now_s);
                assert_eq!(taken.is_ok(), fits);
                if fits {
                    let least = subjects.iter().map(|subject| limits[*subject] - used(*subject) - 1).min();
                    assert_eq!(taken.ok().flatten().map(|standing| standing.remaining), least);
                    admitted.extend(subjects.iter().map(|subject| (*subject, now_s)));
                }
            }
            Ok(())
        });
    }
}
