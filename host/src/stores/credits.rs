//! The ledger of credits, and the identifiers that its reservations burn.

use super::{Store, StoreError, by_partition, tell_unreadable};
use crate::records::credits::{Balance, Reservation, ReservationOutcome, ReservationRefused};
use crate::records::ledger::{self, BALANCES, BURNT, ENTRIES, LedgerEntry, Spent};
use crate::records::ledger_audit::{self, LedgerAudit};
use crate::records::month::Month;
use crate::records::rows::{Reads, RowQuery};

/// Reservations that are expired together when a process starts.
const EXPIRED_AT_ONCE: usize = 256;
/// Identifiers of one account that are forgotten together.
const FORGOTTEN_AT_ONCE: usize = 1000;
/// Accounts whose months that are over one look finds.
const ACCOUNTS_AT_ONCE: usize = 64;
/// Entries that are looked at in one write.
const ENTRIES_AT_ONCE: usize = 500;

impl Store {
    /// Reserves and burns the identifier, or says why not. Reserving again with the same id changes nothing.
    pub(crate) async fn reserve(
        &self,
        reservation: Reservation,
        limit: u64,
    ) -> Result<Result<(), ReservationRefused>, StoreError> {
        let account = reservation.account.clone();
        self.change(&account, move |read| {
            ledger::reserve(read, &reservation, limit)
        })
        .await
    }

    /// Resolves a reservation, and gives back the resolution that stands: an earlier one, if there was one. `None` where
    /// nothing was reserved under the id.
    pub(crate) async fn resolve(
        &self,
        account: &str,
        id: u128,
        outcome: ReservationOutcome,
        now_s: u64,
    ) -> Result<Option<ReservationOutcome>, StoreError> {
        let named = account.to_owned();
        self.change(account, move |read| {
            ledger::resolve(read, &named, id, outcome, now_s)
        })
        .await
    }

    /// Gives back everything that is reserved, and how many reservations that were: no call of an earlier process can end. A
    /// reservation that cannot be read stays, and does not keep the process from starting.
    pub(crate) async fn expire_all(&self, now_s: u64) -> Result<usize, StoreError> {
        let mut expired = 0;
        loop {
            let open = RowQuery::Due(ENTRIES, u64::MAX, EXPIRED_AT_ONCE);
            let (open, unreadable) = self.engine.view(|read| read.readable(open)).await?;
            if open.is_empty() {
                tell_unreadable(ENTRIES, unreadable);
                return Ok(expired);
            }
            expired += open.len();
            let ends = open.into_iter().map(|entry: LedgerEntry| {
                let Reservation { account, id, .. } = entry.reservation;
                let (named, outcome) = (account.clone(), ReservationOutcome::Expired);
                let end =
                    move |read: &mut dyn Reads| ledger::resolve(read, &named, id, outcome, now_s);
                (account, end)
            });
            self.change_each(ends).await?;
        }
    }

    /// What an account spent and holds reserved in a month.
    pub(crate) async fn balance(&self, account: &str, month: Month) -> Result<Balance, StoreError> {
        let balance = |read: &mut dyn Reads| ledger::balance(read, account, month);
        self.engine.view(balance).await
    }

    /// An account's entries after the one with this id, oldest first.
    pub(crate) async fn entries(
        &self,
        account: &str,
        after: u128,
        entries_max: usize,
    ) -> Result<Vec<LedgerEntry>, StoreError> {
        let account = account.to_owned();
        self.engine
            .survey(move |read| ledger::entries(read, &account, after, entries_max))
            .await
    }

    /// What an account spent by one of its keys in a month, by operation.
    pub(crate) async fn spent(
        &self,
        account: &str,
        key: &str,
        month: Month,
    ) -> Result<Vec<Spent>, StoreError> {
        let (account, key) = (account.to_owned(), key.to_owned());
        self.engine
            .survey(move |read| ledger::spent(read, &account, &key, month))
            .await
    }

    /// Why an identifier cannot be used now, if it was burnt.
    pub(crate) async fn burnt(
        &self,
        account: &str,
        key: &str,
        identifier: &str,
        now_s: u64,
    ) -> Result<Option<ReservationRefused>, StoreError> {
        let burnt = |read: &mut dyn Reads| ledger::burnt(read, account, key, identifier, now_s);
        self.engine.view(burnt).await
    }

    /// Forgets identifiers whose day is over, a bounded number of each account's.
    pub(crate) async fn forget_burnt(&self, now_s: u64) -> Result<(), StoreError> {
        let over = now_s.saturating_add(1);
        let over = move |read: &mut dyn Reads| read.due_names(BURNT, over, FORGOTTEN_AT_ONCE);
        let over = by_partition(self.engine.survey(over).await?);
        let forgotten = over.into_iter().map(|(account, names)| {
            let forget = move |read: &mut dyn Reads| ledger::forget_burnt(read, &names, now_s);
            (account, forget)
        });
        let unreadable = self.change_each(forgotten).await?.iter().sum();
        tell_unreadable(BURNT, unreadable);
        Ok(())
    }

    /// Forgets entries of months before this one, of some accounts, and gives back how many. What is not reached is there for
    /// the next time.
    pub(crate) async fn forget_entries(&self, before: Month) -> Result<usize, StoreError> {
        let over = before.begins_at() + 1;
        let over = move |read: &mut dyn Reads| read.due_names(BALANCES, over, 1);
        let mut over = self.engine.survey(over).await?;
        over.truncate(ACCOUNTS_AT_ONCE);
        let mut forgotten = 0;
        for account in by_partition(over).into_keys() {
            let named = account.clone();
            let forget = move |read: &mut dyn Reads| {
                ledger::forget_months(read, &named, before, ENTRIES_AT_ONCE)
            };
            forgotten += self.change(&account, forget).await?;
        }
        Ok(forgotten)
    }

    /// Recomputes every balance, of one account after the other.
    pub(crate) async fn audit(&self) -> Result<LedgerAudit, StoreError> {
        let mut audit = LedgerAudit::default();
        for account in self.engine.survey(|read| ledger::accounts(read)).await? {
            let of_account = move |read: &mut dyn Reads| ledger_audit::audit(read, &account);
            audit.add(self.engine.survey(of_account).await?);
        }
        Ok(audit)
    }
}
