//! The ledger of credits: reservations and their resolutions, both immutable, and the balances that they add up to.
//!
//! Every record names its account first and no write touches two accounts. A reservation is written with its balance, a
//! resolution with its balance, each in one transaction and each only once: the first resolution stands.

use std::ops::Bound;

use redb::{ReadableTable, TableDefinition, WriteTransaction};

use super::embedded::{Store, StoreError};
use super::idempotency;
use crate::records::credits::{Balance, Reservation, ReservationOutcome, ReservationRefused};
use crate::records::month::Month;

/// Account, id → the reservation.
pub(super) const RESERVATIONS: TableDefinition<'_, (&str, u128), LedgerRow<'_>> =
    TableDefinition::new("credit-reservations");
/// Month, amount, when it was made, key, operation, request id.
type LedgerRow<'r> = (u32, u64, u64, &'r str, &'r str, &'r str);
/// Account, id → how it ended and when.
pub(super) const RESOLUTIONS: TableDefinition<'_, (&str, u128), (u8, u64)> =
    TableDefinition::new("credit-resolutions");
/// Account, id of each reservation without a resolution.
pub(super) const PENDING: TableDefinition<'_, (&str, u128), ()> =
    TableDefinition::new("credit-pending");
/// Account, month → posted, pending.
pub(super) const BALANCES: TableDefinition<'_, (&str, u32), (u64, u64)> =
    TableDefinition::new("credit-balances");

/// Account, month, key, operation → credits settled.
pub(super) const SPENT: TableDefinition<'_, (&str, u32, &str, &str), u64> =
    TableDefinition::new("credit-spent");

/// Reservations that are expired in one write when a process starts.
const EXPIRED_AT_ONCE: usize = 256;

pub(super) fn create_tables(transaction: &WriteTransaction) -> Result<(), StoreError> {
    transaction.open_table(RESERVATIONS)?;
    transaction.open_table(RESOLUTIONS)?;
    transaction.open_table(PENDING)?;
    transaction.open_table(BALANCES)?;
    transaction.open_table(SPENT)?;
    Ok(())
}

/// A reservation and what came of it.
pub(crate) struct LedgerEntry {
    pub(crate) reservation: Reservation,
    /// How it ended and when, in Unix seconds.
    pub(crate) resolution: Option<(ReservationOutcome, u64)>,
}

/// Credits that one key's calls of one operation spent in one month.
pub(crate) struct Spent {
    /// Plugin and operation, with a slash between.
    pub(crate) operation: String,
    pub(crate) credits: u64,
}

impl Store {
    /// Reserves and burns the identifier, or says why not. Reserving again with the same id changes nothing.
    pub(crate) async fn reserve(
        &self,
        reservation: Reservation,
        limit: u64,
    ) -> Result<Result<(), ReservationRefused>, StoreError> {
        self.write(move |transaction| reserve(transaction, &reservation, limit))
            .await
    }

    /// Resolves a reservation, and gives back the resolution that stands: an earlier one, if there was one. `None` where
    /// nothing was reserved under the id.
    pub(crate) async fn resolve(
        &self,
        account: &str,
        id: u128,
        resolution: ReservationOutcome,
        now_s: u64,
    ) -> Result<Option<ReservationOutcome>, StoreError> {
        let account = account.to_owned();
        self.write(move |transaction| resolve(transaction, &account, id, resolution, now_s))
            .await
    }

    /// Gives back everything that is reserved, and how many reservations that were: no call of an earlier process can end.
    pub(crate) async fn expire_all(&self, now_s: u64) -> Result<usize, StoreError> {
        let mut expired = 0;
        loop {
            let pending = self.pending(EXPIRED_AT_ONCE)?;
            if pending.is_empty() {
                return Ok(expired);
            }
            expired += pending.len();
            self.write(move |transaction| {
                for (account, id) in &pending {
                    let expired = ReservationOutcome::Expired;
                    resolve(transaction, account, *id, expired, now_s)?;
                }
                Ok(())
            })
            .await?;
        }
    }

    /// What an account spent and holds reserved in a month.
    pub(crate) fn balance(&self, account: &str, month: Month) -> Result<Balance, StoreError> {
        self.read(BALANCES, |table| balance_in(table, account, month))
    }

    /// An account's reservations after the one with this id, oldest first.
    pub(crate) fn entries(
        &self,
        account: &str,
        after: u128,
        count_max: usize,
    ) -> Result<Vec<LedgerEntry>, StoreError> {
        let snapshot = self.snapshot()?;
        let resolutions = snapshot.open_table(RESOLUTIONS)?;
        let reservations = snapshot.open_table(RESERVATIONS)?;
        let range = (
            Bound::Excluded((account, after)),
            Bound::Included((account, u128::MAX)),
        );
        let mut entries = Vec::new();
        for entry in reservations.range::<(&str, u128)>(range)?.take(count_max) {
            let (name, record) = entry?;
            let ((account, id), (month, amount, made_at, key, operation, request_id)) =
                (name.value(), record.value());
            let resolution = resolutions.get((account, id))?.map(|value| value.value());
            let reservation = Reservation {
                id,
                account: account.to_owned(),
                month: Month::from_number(month),
                amount,
                key: key.to_owned(),
                operation: operation.to_owned(),
                request_id: request_id.to_owned(),
                identifier: None,
                made_at,
            };
            let resolution = resolution
                .and_then(|(number, at)| Some((ReservationOutcome::from_number(number)?, at)));
            entries.push(LedgerEntry {
                reservation,
                resolution,
            });
        }
        Ok(entries)
    }

    /// What an account spent by one of its keys in a month, by operation.
    pub(crate) fn spent(
        &self,
        account: &str,
        key: &str,
        month: Month,
    ) -> Result<Vec<Spent>, StoreError> {
        self.read(SPENT, |table| {
            let mut spent = Vec::new();
            for entry in table.range((account, month.number(), key, "")..)? {
                let (name, credits) = entry?;
                let (of_account, of_month, of_key, operation) = name.value();
                if (of_account, of_month, of_key) != (account, month.number(), key) {
                    break;
                }
                spent.push(Spent {
                    operation: operation.to_owned(),
                    credits: credits.value(),
                });
            }
            Ok(spent)
        })
    }

    fn pending(&self, count_max: usize) -> Result<Vec<(String, u128)>, StoreError> {
        self.read(PENDING, |table| {
            let named = table.iter()?.take(count_max).map(|entry| {
                let (name, _) = entry?;
                let (account, id) = name.value();
                Ok((account.to_owned(), id))
            });
            named.collect()
        })
    }
}

fn reserve(
    transaction: &WriteTransaction,
    reservation: &Reservation,
    limit: u64,
) -> Result<Result<(), ReservationRefused>, StoreError> {
    let Reservation {
        id,
        account,
        month,
        amount,
        key,
        operation,
        request_id,
        identifier,
        made_at,
    } = reservation;
    let name = (account.as_str(), *id);
    let mut reservations = transaction.open_table(RESERVATIONS)?;
    if reservations.get(name)?.is_some() {
        return Ok(Ok(()));
    }
    let mut balances = transaction.open_table(BALANCES)?;
    let balance = balance_in(&balances, account, *month)?;
    let reserved = balance.reserve(*amount, limit);
    // Read-only where the credits do not suffice: a call that is not admitted burns nothing.
    let refused = match (identifier, &reserved) {
        (Some(identifier), Ok(_)) => idempotency::burn(transaction, reservation, identifier)?,
        (Some(identifier), Err(_)) => idempotency::was_burnt(transaction, reservation, identifier)?,
        (None, _) => None,
    };
    let balance = match (refused, reserved) {
        (Some(refused), _) => return Ok(Err(refused)),
        (None, Err(exceeded)) => return Ok(Err(exceeded)),
        (None, Ok(balance)) => balance,
    };
    let record = (
        month.number(),
        *amount,
        *made_at,
        key.as_str(),
        operation.as_str(),
        request_id.as_str(),
    );
    reservations.insert(name, record)?;
    transaction.open_table(PENDING)?.insert(name, ())?;
    let name = (account.as_str(), month.number());
    balances.insert(name, (balance.posted, balance.pending))?;
    Ok(Ok(()))
}

fn resolve(
    transaction: &WriteTransaction,
    account: &str,
    id: u128,
    resolution: ReservationOutcome,
    now_s: u64,
) -> Result<Option<ReservationOutcome>, StoreError> {
    let name = (account, id);
    let mut resolutions = transaction.open_table(RESOLUTIONS)?;
    if let Some(standing) = resolutions.get(name)? {
        return Ok(ReservationOutcome::from_number(standing.value().0));
    }
    let reservations = transaction.open_table(RESERVATIONS)?;
    let Some(reserved) = reservations.get(name)? else {
        return Ok(None);
    };
    let (month, amount, _, key, operation, _) = reserved.value();
    if resolution == ReservationOutcome::Settled {
        let mut spent = transaction.open_table(SPENT)?;
        let name = (account, month, key, operation);
        let before = spent.get(name)?.map_or(0, |credits| credits.value());
        spent.insert(name, before + amount)?;
    }
    resolutions.insert(name, (resolution.number(), now_s))?;
    transaction.open_table(PENDING)?.remove(name)?;
    let mut balances = transaction.open_table(BALANCES)?;
    let balance = balance_in(&balances, account, Month::from_number(month))?;
    let balance = balance.resolve(amount, resolution);
    balances.insert((account, month), (balance.posted, balance.pending))?;
    Ok(Some(resolution))
}

fn balance_in(
    balances: &impl ReadableTable<(&'static str, u32), (u64, u64)>,
    account: &str,
    month: Month,
) -> Result<Balance, StoreError> {
    let stored = balances.get((account, month.number()))?;
    Ok(stored.map_or_else(Balance::default, |value| {
        let (posted, pending) = value.value();
        Balance { posted, pending }
    }))
}

#[cfg(test)]
mod tests;
