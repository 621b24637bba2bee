//! Fixed windows, aligned to the clock, counted in this process.
//!
//! All windows of one length end at the same time, so the counts of a window are one map that is thrown away as a whole: no
//! entry outlives its window. A call takes a slot in all of its windows or in none, so that one limit does not eat another's.
//! Time is passed in; must not know whose a subject is.

use std::collections::HashMap;

use parking_lot::Mutex;

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
pub(crate) enum WindowLength {
    Second,
    Minute,
}

impl WindowLength {
    pub(crate) fn seconds(self) -> u32 {
        match self {
            WindowLength::Second => 1,
            WindowLength::Minute => 60,
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
    pub(crate) length: WindowLength,
}

/// The counts of the current second and minute.
#[derive(Default)]
pub(crate) struct Windows {
    /// Guards both counts, so that a call takes its slots at once; never held over an await.
    counts: Mutex<WindowCounts>,
}

#[derive(Default)]
struct WindowCounts {
    second: AlignedWindow,
    minute: AlignedWindow,
}

/// The current window of one length, and what was counted in it.
#[derive(Default)]
struct AlignedWindow {
    /// Windows of this length since 1970.
    number: u64,
    credentials: HashMap<String, u32>,
    addresses: HashMap<String, u32>,
}

impl Windows {
    /// Takes all the slots, or none of them where one is not free. Gives the window with the least left, or else the one
    /// that refused: of several, the one that lasts longest.
    pub(crate) fn take(
        &self,
        slots: Vec<Slot>,
        now_s: u64,
    ) -> Result<Option<WindowStanding>, WindowStanding> {
        let mut counts = self.counts.lock();
        counts.second.turn(WindowLength::Second, now_s);
        counts.minute.turn(WindowLength::Minute, now_s);
        let refused = slots
            .iter()
            .filter_map(|slot| counts.of(slot.length).refusal(slot));
        if let Some(standing) = refused.max_by_key(|standing| standing.reset_epoch_s) {
            return Err(standing);
        }
        let taken = slots
            .into_iter()
            .map(|slot| counts.of(slot.length).take(slot));
        Ok(taken.min_by_key(|standing| (standing.remaining, u64::MAX - standing.reset_epoch_s)))
    }
}

impl WindowCounts {
    fn of(&mut self, length: WindowLength) -> &mut AlignedWindow {
        match length {
            WindowLength::Second => &mut self.second,
            WindowLength::Minute => &mut self.minute,
        }
    }
}

impl AlignedWindow {
    /// Opens the window of this time. A clock that is set back by less than a window opens none, and neither does a call
    /// that read the clock before another and comes after it.
    fn turn(&mut self, length: WindowLength, now_s: u64) {
        let number = now_s / u64::from(length.seconds());
        if number > self.number || self.number > number + 1 {
            *self = Self {
                number,
                ..Self::default()
            };
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
mod tests;
