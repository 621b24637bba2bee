//! Calls counted by calendar month: for the monthly limits of keys, and for the operator's view of usage.
//!
//! Counted in this process and written out every second as they stand, so that a crash may lose a second of counts and never
//! adds one. Time is passed in; the store is reached through what is given and taken here ([`UsageCounts::load`],
//! [`UsageCounts::unwritten`]), and one entry is kept for each key and operation that called in a month.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::records::month::Month;
use crate::records::usage::{CountRow, UsageCount};

/// Where an owner stands with its month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MonthStanding {
    pub(crate) limit: u64,
    pub(crate) remaining: u64,
    /// When the month ends, in Unix seconds.
    pub(crate) reset_epoch_s: u64,
}

/// A call to be counted.
pub(crate) struct CountedCall<'c> {
    pub(crate) owner: &'c str,
    pub(crate) operation: &'c str,
    /// The owner's limit, where the call counts toward it.
    pub(crate) limit: Option<u64>,
    pub(crate) is_limited: bool,
}

/// The counts of the months that are current or not written yet.
#[derive(Default)]
pub(crate) struct UsageCounts {
    /// Guards the counts; never held over an await or a read of the store.
    months: Mutex<HashMap<Month, HashMap<String, OwnerMonth>>>,
}

#[derive(Default)]
struct OwnerMonth {
    /// The sum of the counts toward the limit.
    limited: u64,
    operations: HashMap<String, (UsageCount, WrittenState)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WrittenState {
    Yes,
    No,
}

impl UsageCounts {
    /// Where an owner's month stands, if it is loaded.
    pub(crate) fn standing(&self, owner: &str, limit: u64, month: Month) -> Option<MonthStanding> {
        let months = self.months.lock();
        let counts = months.get(&month)?.get(owner)?;
        Some(counts.standing(limit, month))
    }

    /// Whether the month of an owner was loaded; a call cannot be counted before.
    pub(crate) fn is_loaded(&self, owner: &str, month: Month) -> bool {
        let months = self.months.lock();
        let owners = months.get(&month);
        owners.is_some_and(|owners| owners.contains_key(owner))
    }

    /// Takes what the store has of an owner's month. What was counted here already stands.
    pub(crate) fn load(&self, owner: &str, month: Month, rows: Vec<CountRow>) {
        let mut months = self.months.lock();
        months
            .entry(month)
            .or_default()
            .entry(owner.to_owned())
            .or_insert_with(|| OwnerMonth::of(rows));
    }

    /// Counts a call, or refuses it where the month's limit is reached. Gives where the month then stands, if it is limited.
    /// `None` where the owner's month is not loaded: a count that began from nothing would be written over the stored one.
    pub(crate) fn count(
        &self,
        call: &CountedCall<'_>,
        month: Month,
    ) -> Option<Result<Option<MonthStanding>, MonthStanding>> {
        let mut months = self.months.lock();
        Some(
            months
                .get_mut(&month)?
                .get_mut(call.owner)?
                .count(call, month),
        )
    }

    /// The same with what the store has of the owner's month, where it is not loaded.
    pub(crate) fn count_from(
        &self,
        call: &CountedCall<'_>,
        month: Month,
        rows: Vec<CountRow>,
    ) -> Result<Option<MonthStanding>, MonthStanding> {
        let mut months = self.months.lock();
        let owners = months.entry(month).or_default();
        owners
            .entry(call.owner.to_owned())
            .or_insert_with(|| OwnerMonth::of(rows))
            .count(call, month)
    }

    /// The counts that the store does not have as they stand; they count as written until [`UsageCounts::not_written`] takes them
    /// back. Months before `current` of which everything is written are forgotten.
    pub(crate) fn unwritten(&self, current: Month) -> Vec<CountRow> {
        let mut months = self.months.lock();
        months.retain(|month, owners| {
            *month >= current || owners.values().any(OwnerMonth::has_unwritten)
        });
        let mut rows = Vec::new();
        for (month, owners) in months.iter_mut() {
            for (owner, counts) in owners
                .iter_mut()
                .filter(|(_, counts)| counts.has_unwritten())
            {
                for (operation, (count, written)) in &mut counts.operations {
                    if *written == WrittenState::No {
                        *written = WrittenState::Yes;
                        let (owner, operation) = (owner.clone(), operation.clone());
                        rows.push(CountRow {
                            owner,
                            month: *month,
                            operation,
                            count: *count,
                        });
                    }
                }
            }
        }
        rows
    }

    /// Marks counts that could not be written, for the next time.
    pub(crate) fn not_written(&self, rows: &[CountRow]) {
        let mut months = self.months.lock();
        for row in rows {
            let owners = months.get_mut(&row.month);
            let counts = owners.and_then(|owners| owners.get_mut(&row.owner));
            if let Some((_, written)) =
                counts.and_then(|counts| counts.operations.get_mut(&row.operation))
            {
                *written = WrittenState::No;
            }
        }
    }
}

impl OwnerMonth {
    fn of(rows: Vec<CountRow>) -> Self {
        Self {
            limited: rows.iter().map(|row| row.count.limited).sum(),
            operations: rows
                .into_iter()
                .map(|row| (row.operation, (row.count, WrittenState::Yes)))
                .collect(),
        }
    }

    fn count(
        &mut self,
        call: &CountedCall<'_>,
        month: Month,
    ) -> Result<Option<MonthStanding>, MonthStanding> {
        if let Some(limit) = call
            .limit
            .filter(|limit| call.is_limited && self.limited >= *limit)
        {
            return Err(self.standing(limit, month));
        }
        let (count, written) = match self.operations.get_mut(call.operation) {
            Some(known) => known,
            None => self
                .operations
                .entry(call.operation.to_owned())
                .or_insert((UsageCount::default(), WrittenState::No)),
        };
        *written = WrittenState::No;
        count.calls += 1;
        count.limited += u64::from(call.is_limited);
        self.limited += u64::from(call.is_limited);
        Ok(call.limit.map(|limit| self.standing(limit, month)))
    }

    fn standing(&self, limit: u64, month: Month) -> MonthStanding {
        MonthStanding {
            limit,
            remaining: limit.saturating_sub(self.limited),
            reset_epoch_s: month.ends_at(),
        }
    }

    fn has_unwritten(&self) -> bool {
        self.operations
            .values()
            .any(|(_, written)| *written == WrittenState::No)
    }
}

#[cfg(test)]
mod tests;
