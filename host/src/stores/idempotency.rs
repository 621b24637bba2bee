//! Identifiers of operations (`Idempotency-Key`) that were admitted: burnt for a day, whatever came of the call.
//!
//! Written in the transaction of the reservation that they name, so that there is never one without the other.

use redb::{ReadableTable, TableDefinition, WriteTransaction};

use super::embedded::{Store, StoreError, free_names};
use super::ledger;
use crate::records::credits::{Reservation, ReservationOutcome, ReservationRefused};

/// Account, key, identifier → the reservation, and when it was made.
const BURNT: TableDefinition<'_, (&str, &str, &str), (u128, u64)> =
    TableDefinition::new("idempotency");
/// When, account, key, identifier: the order in which they are forgotten.
const BURNT_TIMES: TableDefinition<'_, (u64, &str, &str, &str), ()> =
    TableDefinition::new("idempotency-times");

/// How long an identifier stays burnt.
const BURNT_SECONDS: u64 = 24 * 3600;

pub(super) fn create_tables(transaction: &WriteTransaction) -> Result<(), StoreError> {
    transaction.open_table(BURNT)?;
    transaction.open_table(BURNT_TIMES)?;
    Ok(())
}

/// Burns a reservation's identifier, or says why it was burnt already.
pub(super) fn burn(
    transaction: &WriteTransaction,
    reservation: &Reservation,
    identifier: &str,
) -> Result<Option<ReservationRefused>, StoreError> {
    if let Some(refused) = was_burnt(transaction, reservation, identifier)? {
        return Ok(Some(refused));
    }
    let Reservation {
        id,
        account,
        key,
        made_at,
        ..
    } = reservation;
    let name = (account.as_str(), key.as_str(), identifier);
    let mut burnt = transaction.open_table(BURNT)?;
    burnt.insert(name, (*id, *made_at))?;
    let mut times = transaction.open_table(BURNT_TIMES)?;
    times.insert((*made_at, account.as_str(), key.as_str(), identifier), ())?;
    Ok(None)
}

/// Why a reservation's identifier cannot be used, if it was burnt.
pub(super) fn was_burnt(
    transaction: &WriteTransaction,
    reservation: &Reservation,
    identifier: &str,
) -> Result<Option<ReservationRefused>, StoreError> {
    let Reservation {
        account,
        key,
        made_at,
        ..
    } = reservation;
    let burnt = transaction.open_table(BURNT)?;
    let Some(id) = burnt_by(&burnt, (account, key, identifier), *made_at)? else {
        return Ok(None);
    };
    let resolutions = transaction.open_table(ledger::RESOLUTIONS)?;
    refused(&resolutions, account, id).map(Some)
}

/// The reservation that burnt a name which is still burnt.
fn burnt_by(
    burnt: &impl ReadableTable<(&'static str, &'static str, &'static str), (u128, u64)>,
    name: (&str, &str, &str),
    now_s: u64,
) -> Result<Option<u128>, StoreError> {
    let found = burnt.get(name)?.map(|value| value.value());
    Ok(found.and_then(|(id, at)| is_burnt(at, now_s).then_some(id)))
}

fn is_burnt(at: u64, now_s: u64) -> bool {
    at.saturating_add(BURNT_SECONDS) > now_s
}

fn refused(
    resolutions: &impl ReadableTable<(&'static str, u128), (u8, u64)>,
    account: &str,
    id: u128,
) -> Result<ReservationRefused, StoreError> {
    let resolution = resolutions.get((account, id))?;
    let outcome = resolution.and_then(|value| ReservationOutcome::from_number(value.value().0));
    Ok(match outcome {
        Some(ReservationOutcome::Expired) => ReservationRefused::Lapsed,
        Some(ReservationOutcome::Settled | ReservationOutcome::Released) | None => {
            ReservationRefused::Handled
        }
    })
}

impl Store {
    /// Why an identifier cannot be used now, if it was burnt.
    pub(crate) fn burnt(
        &self,
        account: &str,
        key: &str,
        identifier: &str,
        now_s: u64,
    ) -> Result<Option<ReservationRefused>, StoreError> {
        let name = (account, key, identifier);
        let Some(id) = self.read(BURNT, |table| burnt_by(table, name, now_s))? else {
            return Ok(None);
        };
        self.read(ledger::RESOLUTIONS, |table| refused(table, account, id))
            .map(Some)
    }

    /// Forgets identifiers whose day is over, a bounded number of them.
    pub(crate) async fn forget_burnt(&self, now_s: u64) -> Result<(), StoreError> {
        let oldest = self.read(BURNT_TIMES, |table| {
            let first = table.first()?;
            Ok(first.map(|(name, _)| name.value().0))
        })?;
        match oldest {
            Some(at) if !is_burnt(at, now_s) => {
                self.write(move |transaction| forget(transaction, now_s))
                    .await
            }
            Some(_) | None => Ok(()),
        }
    }
}

fn forget(transaction: &WriteTransaction, now_s: u64) -> Result<(), StoreError> {
    let mut times = transaction.open_table(BURNT_TIMES)?;
    let mut burnt = transaction.open_table(BURNT)?;
    let until = now_s.saturating_sub(BURNT_SECONDS) + 1;
    free_names(&mut times, &mut burnt, until, |(_, at)| at)
}

#[cfg(test)]
mod tests {
    use redb::ReadableTableMetadata as _;
    use tempfile::TempDir;

    use super::*;
    use crate::records::month::Month;

    const DAY_S: u64 = 24 * 3600;

    async fn reserve(store: &Store, id: u128, made_at: u64) -> Result<(), ReservationRefused> {
        let text = |text: &str| text.to_owned();
        let (account, key, operation, request_id) = (text("a"), text("k"), text("p/o"), text("r"));
        let (month, identifier) = (Month::of(0), Some(text("name")));
        let reservation = Reservation {
            id,
            account,
            month,
            amount: 1,
            key,
            operation,
            request_id,
            identifier,
            made_at,
        };
        store.reserve(reservation, 9).await.expect("written")
    }

    #[tokio::test]
    async fn an_identifier_is_burnt_for_a_day_and_then_forgotten() {
        let folder = TempDir::new().expect("a temporary folder");
        let store = Store::open(folder.path()).expect("a store");
        let rows = || {
            let burnt = store.read(BURNT, |table| Ok(table.len()?));
            let times = store.read(BURNT_TIMES, |table| Ok(table.len()?));
            (burnt.expect("readable"), times.expect("readable"))
        };
        assert_eq!(reserve(&store, 1, 100).await, Ok(()));
        assert_eq!(
            reserve(&store, 2, 100 + DAY_S - 1).await,
            Err(ReservationRefused::Handled)
        );
        store.forget_burnt(100 + DAY_S - 1).await.expect("written");
        assert_eq!(rows(), (1, 1));
        assert_eq!(reserve(&store, 3, 100 + DAY_S).await, Ok(()));
        // The first day is over, and the second one's burning stands.
        store.forget_burnt(100 + DAY_S).await.expect("written");
        assert_eq!(rows(), (1, 1));
        assert_eq!(
            reserve(&store, 4, 101 + DAY_S).await,
            Err(ReservationRefused::Handled)
        );
        store.forget_burnt(100 + 2 * DAY_S).await.expect("written");
        assert_eq!(rows(), (0, 0));
    }
}
