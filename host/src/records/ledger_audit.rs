//! An account's balances and sums recomputed from the entries that they claim to be the sum of.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use super::credits::{Balance, ReservationOutcome};
use super::ledger::{BALANCES, ENTRIES, LedgerEntry, MonthBalance, SPENT, Spent};
use super::month::Month;
use super::rows::{Reads, RowFault, RowName, RowQuery, RowRange, decode};

/// Disagreements that are told; all are counted.
const TOLD_MAX: usize = 100;

/// What an audit found.
#[derive(Debug, Default)]
pub(crate) struct LedgerAudit {
    /// Records that were read.
    pub(crate) reservations: u64,
    /// Those that have not ended.
    pub(crate) pending: u64,
    pub(crate) disagreements: u64,
    /// The first of them, in words.
    pub(crate) told: Vec<String>,
}

/// Month, key and operation → credits settled.
type SpentSums = BTreeMap<(Month, String, String), u64>;

impl LedgerAudit {
    /// Adds what another account's audit found.
    pub(crate) fn add(&mut self, other: Self) {
        self.reservations += other.reservations;
        self.pending += other.pending;
        self.disagreements += other.disagreements;
        let room = TOLD_MAX - self.told.len().min(TOLD_MAX);
        self.told.extend(other.told.into_iter().take(room));
    }

    fn tell(&mut self, disagreement: impl FnOnce() -> String) {
        self.disagreements += 1;
        if self.told.len() < TOLD_MAX {
            self.told.push(disagreement());
        }
    }

    /// Compares the open entries with those that are found by when they are due.
    fn compare_due(&mut self, account: &str, mut open: BTreeSet<RowName>, due: Vec<RowName>) {
        for name in due {
            if !open.remove(&name) {
                self.tell(|| {
                    format!("an entry of {account} that has ended is still listed as open")
                });
            }
        }
        for _ in open {
            self.tell(|| format!("an open entry of {account} is not listed as open"));
        }
    }

    /// Compares what the entries add up to with what is stored under the same names.
    fn compare<K: Ord + std::fmt::Debug, V: PartialEq + Default + std::fmt::Debug>(
        &mut self,
        what: &str,
        mut summed: BTreeMap<K, V>,
        stored: impl IntoIterator<Item = (K, V)>,
    ) {
        for (name, value) in stored {
            let sum = summed.remove(&name).unwrap_or_default();
            if sum != value {
                self.tell(|| {
                    format!("the {what} {name:?} is {value:?}, but its records add up to {sum:?}")
                });
            }
        }
        for (name, sum) in summed.into_iter().filter(|(_, sum)| *sum != V::default()) {
            self.tell(|| {
                format!("the {what} {name:?} is missing, but its records add up to {sum:?}")
            });
        }
    }
}

/// Recomputes every balance and sum of an account, and looks whether its open entries are found when they are to be given
/// back.
pub(crate) fn audit(read: &mut dyn Reads, account: &str) -> Result<LedgerAudit, RowFault> {
    let all = |space| RowRange::under(&RowName::of(space, account), usize::MAX);
    let mut found = LedgerAudit::default();
    let mut balances: BTreeMap<Month, Balance> = BTreeMap::new();
    let mut sums = SpentSums::new();
    let mut open = BTreeSet::new();
    read.ask(RowQuery::Range(&all(ENTRIES)), &mut |value| {
        let LedgerEntry {
            reservation,
            resolution,
        } = decode(value)?;
        let outcome = resolution.map(|(outcome, _)| outcome);
        found.reservations += 1;
        if outcome.is_none() {
            found.pending += 1;
            open.insert(LedgerEntry::row_name(account, reservation.id));
        }
        let balance = balances.entry(reservation.month).or_default();
        balance.pending += reservation.amount;
        if let Some(outcome) = outcome {
            *balance = balance.resolve(reservation.amount, outcome);
        }
        if outcome == Some(ReservationOutcome::Settled) {
            let name = (reservation.month, reservation.key, reservation.operation);
            *sums.entry(name).or_default() += reservation.amount;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let mut due = read.due_names(ENTRIES, u64::MAX, usize::MAX)?;
    due.retain(|name| name.partition_text() == account);
    found.compare_due(account, open, due);
    let stored: Vec<MonthBalance> = read.records(RowQuery::Range(&all(BALANCES)))?;
    let stored = stored.into_iter().map(|row| (row.month, row.balance));
    found.compare(&format!("balance of {account} in month"), balances, stored);
    let stored: Vec<Spent> = read.records(RowQuery::Range(&all(SPENT)))?;
    let stored = stored
        .into_iter()
        .map(|row| ((row.month, row.key, row.operation), row.credits));
    let what = format!("sum spent by {account} in month, by key and operation");
    found.compare(&what, sums, stored);
    Ok(found)
}
