//! The ledger of credits, and the identifiers that its reservations burn.

use std::collections::{BTreeMap, BTreeSet};

use super::{Store, StoreError};
use crate::records::credits::{Balance, Reservation, ReservationOutcome, ReservationRefused};
use crate::records::ledger::{
    self, BALANCES, BURNT, BurntIdentifier, ENTRIES, LedgerEntry, MonthBalance, Spent,
};
use crate::records::ledger_audit::{self, LedgerAudit};
use crate::records::month::Month;
use crate::records::rows::{Reads, RowName, RowQuery};

/// Reservations that are expired together when a process starts.
const EXPIRED_AT_ONCE: usize = 256;
/// Identifiers that are forgotten together.
const FORGOTTEN_AT_ONCE: usize = 1000;
/// Accounts that one look for months that are over finds.
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

    /// Gives back everything that is reserved, and how many reservations that were: no call of an earlier process can end.
    pub(crate) async fn expire_all(&self, now_s: u64) -> Result<usize, StoreError> {
        let mut expired = 0;
        loop {
            let open = RowQuery::Due(ENTRIES, u64::MAX, EXPIRED_AT_ONCE);
            let open = self.engine.view(|read| read.records(open)).await?;
            if open.is_empty() {
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

    /// Forgets identifiers whose day is over, a bounded number of them.
    pub(crate) async fn forget_burnt(&self, now_s: u64) -> Result<(), StoreError> {
        let over = RowQuery::Due(BURNT, now_s.saturating_add(1), FORGOTTEN_AT_ONCE);
        let over = self.engine.survey(move |read| read.records(over));
        let over: Vec<BurntIdentifier> = over.await?;
        let mut by_account: BTreeMap<String, Vec<RowName>> = BTreeMap::new();
        for burnt in over {
            let name = burnt.name();
            by_account.entry(burnt.account).or_default().push(name);
        }
        let forgotten = by_account.into_iter().map(|(account, names)| {
            let forget = move |read: &mut dyn Reads| ledger::forget_burnt(read, &names, now_s);
            (account, forget)
        });
        self.change_each(forgotten).await.map(drop)
    }

    /// Forgets entries of months before this one, of some accounts, and gives back how many. What is not reached is there for
    /// the next time.
    pub(crate) async fn forget_entries(&self, before: Month) -> Result<usize, StoreError> {
        let over = RowQuery::Due(BALANCES, before.begins_at() + 1, ACCOUNTS_AT_ONCE);
        let over: Vec<MonthBalance> = self.engine.view(|read| read.records(over)).await?;
        let accounts: BTreeSet<String> = over.into_iter().map(|row| row.account).collect();
        let mut forgotten = 0;
        for account in accounts {
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
