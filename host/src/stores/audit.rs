//! Balances recomputed from the records that they claim to be the sum of, in one snapshot.

use std::collections::BTreeMap;

use redb::{ReadTransaction, ReadableTable as _, ReadableTableMetadata as _};

use super::embedded::{Store, StoreError};
use super::ledger::{BALANCES, PENDING, RESERVATIONS, RESOLUTIONS, SPENT};
use crate::records::credits::{Balance, ReservationOutcome};

/// Disagreements that are told; all are counted.
const TOLD_MAX: usize = 100;

/// What an audit found.
#[derive(Debug, Default)]
pub(crate) struct LedgerAudit {
    /// Records that were read.
    pub(crate) reservations: u64,
    /// Those without a resolution.
    pub(crate) pending: u64,
    pub(crate) disagreements: u64,
    /// The first of them, in words.
    pub(crate) told: Vec<String>,
}

impl LedgerAudit {
    fn tell(&mut self, disagreement: impl FnOnce() -> String) {
        self.disagreements += 1;
        if self.told.len() < TOLD_MAX {
            self.told.push(disagreement());
        }
    }

    /// Compares what the records add up to with what is stored under the same names.
    fn compare<K: Ord + std::fmt::Debug, V: PartialEq + Default + std::fmt::Debug>(
        &mut self,
        what: &str,
        mut summed: BTreeMap<K, V>,
        stored: impl Iterator<Item = Result<(K, V), StoreError>>,
    ) -> Result<(), StoreError> {
        for entry in stored {
            let (name, value) = entry?;
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
        Ok(())
    }
}

/// What the reservations add up to.
#[derive(Default)]
struct LedgerSums {
    /// Account, month → posted, pending.
    balances: BTreeMap<(String, u32), (u64, u64)>,
    /// Account, month, key, operation → credits settled.
    spent: BTreeMap<(String, u32, String, String), u64>,
    /// Reservations with a resolution.
    resolved: u64,
}

impl LedgerSums {
    /// Reads all reservations, and tells of those that are no sound records by themselves.
    fn read(snapshot: &ReadTransaction, audit: &mut LedgerAudit) -> Result<Self, StoreError> {
        let reservations = snapshot.open_table(RESERVATIONS)?;
        let resolutions = snapshot.open_table(RESOLUTIONS)?;
        let pending = snapshot.open_table(PENDING)?;
        let mut sums = Self::default();
        for entry in reservations.iter()? {
            let (name, record) = entry?;
            let ((account, id), (month, amount, _, key, operation, _)) =
                (name.value(), record.value());
            audit.reservations += 1;
            let resolution = resolutions.get((account, id))?.map(|value| value.value().0);
            let is_pending = pending.get((account, id))?.is_some();
            if is_pending == resolution.is_some() {
                audit.tell(|| format!("the reservation {id:032x} of {account} is both open and resolved, or neither"));
            }
            let sum = sums
                .balances
                .entry((account.to_owned(), month))
                .or_default();
            let balance = Balance {
                posted: sum.0,
                pending: sum.1 + amount,
            };
            let balance = match resolution.map(ReservationOutcome::from_number) {
                None => balance,
                Some(Some(resolution)) => balance.resolve(amount, resolution),
                Some(None) => {
                    audit.tell(|| {
                        format!("the reservation {id:032x} of {account} has an unknown resolution")
                    });
                    balance
                }
            };
            *sum = (balance.posted, balance.pending);
            audit.pending += u64::from(resolution.is_none());
            sums.resolved += u64::from(resolution.is_some());
            if resolution == Some(ReservationOutcome::Settled.number()) {
                let (account, key, operation) =
                    (account.to_owned(), key.to_owned(), operation.to_owned());
                *sums
                    .spent
                    .entry((account, month, key, operation))
                    .or_default() += amount;
            }
        }
        Ok(sums)
    }
}

impl Store {
    /// Recomputes every balance. Reads the whole ledger: away from the threads that serve.
    pub(crate) fn audit(&self) -> Result<LedgerAudit, StoreError> {
        let snapshot = self.snapshot()?;
        let mut audit = LedgerAudit::default();
        let sums = LedgerSums::read(&snapshot, &mut audit)?;
        let resolutions = snapshot.open_table(RESOLUTIONS)?;
        let stray = resolutions.len()? - sums.resolved;
        if stray > 0 {
            audit.tell(|| format!("{stray} resolutions have no reservation"));
        }
        let pending = snapshot.open_table(PENDING)?;
        let stray = pending.len()?.abs_diff(audit.pending);
        if stray > 0 {
            audit.tell(|| format!("the list of open reservations is wrong by {stray}"));
        }
        let table = snapshot.open_table(BALANCES)?;
        let stored = table.iter()?.map(|entry| {
            let (name, value) = entry?;
            let (account, month) = name.value();
            Ok(((account.to_owned(), month), value.value()))
        });
        let what = "balance (posted, pending) of account and month";
        audit.compare(what, sums.balances, stored)?;
        let table = snapshot.open_table(SPENT)?;
        let stored = table.iter()?.map(|entry| {
            let (name, value) = entry?;
            let (account, month, key, operation) = name.value();
            let (account, key) = (account.to_owned(), key.to_owned());
            Ok(((account, month, key, operation.to_owned()), value.value()))
        });
        let what = "sum spent by account, month, key and operation";
        audit.compare(what, sums.spent, stored)?;
        Ok(audit)
    }
}

#[cfg(test)]
mod tests {
    use redb::WriteTransaction;
    use tempfile::TempDir;

    use super::*;
    use crate::records::credits::Reservation;
    use crate::records::month::Month;

    /// Breaks a sound ledger in one place, and gives back what the audit says.
    async fn broken(
        change: impl Fn(&WriteTransaction) -> Result<(), StoreError> + Send + 'static,
    ) -> (u64, u64, Vec<String>) {
        let folder = TempDir::new().expect("a temporary folder");
        let store = Store::open(folder.path()).expect("a store");
        let text = |text: &str| text.to_owned();
        for id in 1..=4 {
            let (account, key, operation, request_id) =
                (text("a"), text("k"), text("p/o"), text("r"));
            let month = Month::of(0);
            let reservation = Reservation {
                id,
                account,
                month,
                amount: 5,
                key,
                operation,
                request_id,
                identifier: None,
                made_at: 0,
            };
            store
                .reserve(reservation, 100)
                .await
                .expect("written")
                .expect("reserved");
        }
        store
            .resolve("a", 1, ReservationOutcome::Settled, 0)
            .await
            .expect("written");
        store
            .resolve("a", 2, ReservationOutcome::Released, 0)
            .await
            .expect("written");
        store.write(change).await.expect("written");
        let audit = store.audit().expect("readable");
        assert_eq!(audit.reservations, 4);
        (audit.pending, audit.disagreements, audit.told)
    }

    #[tokio::test]
    async fn what_does_not_add_up_is_told() {
        let month = Month::of(0).number();
        assert_eq!(broken(|_| Ok(())).await, (2, 0, Vec::new()));
        let (_, count, told) = broken(move |transaction| {
            let mut table = transaction.open_table(BALANCES)?;
            table.insert(("a", month), (6, 10))?;
            Ok(())
        })
        .await;
        assert!(
            count == 1 && told[0].contains("is (6, 10), but its records add up to (5, 10)"),
            "{told:?}"
        );
        let (pending, count, _) = broken(|transaction| {
            let mut table = transaction.open_table(RESOLUTIONS)?;
            table.remove(("a", 1))?;
            Ok(())
        })
        .await;
        // Neither open nor resolved, the list of open ones, the balance, the sum spent.
        assert_eq!((pending, count), (3, 4));
        let (_, count, told) = broken(|transaction| {
            let mut table = transaction.open_table(RESOLUTIONS)?;
            table.insert(("b", 9), (1, 0))?;
            Ok(())
        })
        .await;
        assert_eq!(
            (count, told),
            (1, vec!["1 resolutions have no reservation".to_owned()])
        );
        let (_, count, _) = broken(|transaction| {
            let mut table = transaction.open_table(SPENT)?;
            table.pop_first()?;
            Ok(())
        })
        .await;
        assert_eq!(count, 1);
    }
}
