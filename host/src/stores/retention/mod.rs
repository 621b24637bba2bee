//! Months that are over: their entries of credits and counts of calls are forgotten, a bounded number in one write.
//!
//! An entry goes with what it added to its balance and its sum, so that these are at every moment what the kept entries add
//! up to. An entry that is still open stays. Must not know how long anything is kept.

use redb::{ReadOnlyTable, ReadableTable as _, Table, WriteTransaction};

use super::embedded::{Store, StoreError};
use super::ledger::{BALANCES, RESERVATIONS, RESOLUTIONS, SPENT};
use super::usage::USAGE;
use crate::records::credits::ReservationOutcome;
use crate::records::month::Month;

/// Rows that are looked at in one write.
const ROWS_AT_ONCE: usize = 500;
/// Accounts and owners that one look finds.
const FOUND_MAX: usize = 64;

/// Whose months are over, the first of them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Over {
    accounts: Vec<String>,
    /// Of counts.
    owners: Vec<String>,
}

impl Store {
    /// Looks for accounts and owners with rows of months before this one. Reads a row of each: away from the threads that serve.
    pub(crate) fn months_over(&self, before: Month) -> Result<Over, StoreError> {
        let accounts = self.read(BALANCES, |table| accounts_over(table, before))?;
        Ok(Over {
            accounts,
            owners: self.read(USAGE, |table| owners_over(table, before))?,
        })
    }

    /// Forgets rows of theirs, each account and owner in a write of its own, and gives back how many. What one write does not
    /// reach is there for the next look.
    pub(crate) async fn forget_months(
        &self,
        over: Over,
        before: Month,
    ) -> Result<usize, StoreError> {
        let mut forgotten = 0;
        for account in over.accounts {
            forgotten += self
                .write(move |transaction| forget_entries(transaction, &account, before))
                .await?;
        }
        for owner in over.owners {
            forgotten += self
                .write(move |transaction| forget_counts(transaction, &owner, before))
                .await?;
        }
        Ok(forgotten)
    }
}

fn accounts_over(
    table: &ReadOnlyTable<(&'static str, u32), (u64, u64)>,
    before: Month,
) -> Result<Vec<String>, StoreError> {
    let (mut over, mut last) = (Vec::new(), String::new());
    while over.len() < FOUND_MAX {
        // What follows the last month that could be is the next account.
        let mut rest = table.range((last.as_str(), u32::MAX)..)?;
        let Some(first) = rest.next() else { break };
        let (name, _) = first?;
        let (account, month) = name.value();
        if month < before.number() {
            over.push(account.to_owned());
        }
        last = account.to_owned();
    }
    Ok(over)
}

fn owners_over(
    table: &ReadOnlyTable<(&'static str, u32, &'static str), (u64, u64)>,
    before: Month,
) -> Result<Vec<String>, StoreError> {
    let (mut over, mut last) = (Vec::new(), String::new());
    while over.len() < FOUND_MAX {
        let mut rest = table.range((last.as_str(), u32::MAX, "")..)?;
        let Some(first) = rest.next() else { break };
        let (name, _) = first?;
        let (owner, month, _) = name.value();
        if month < before.number() {
            over.push(owner.to_owned());
        }
        last = owner.to_owned();
    }
    Ok(over)
}

/// An entry that goes.
struct ExpiredEntry {
    id: u128,
    month: u32,
    amount: u64,
    key: String,
    operation: String,
    is_settled: bool,
}

fn forget_entries(
    transaction: &WriteTransaction,
    account: &str,
    before: Month,
) -> Result<usize, StoreError> {
    let mut reservations = transaction.open_table(RESERVATIONS)?;
    let mut resolutions = transaction.open_table(RESOLUTIONS)?;
    let mut balances = transaction.open_table(BALANCES)?;
    let mut spent = transaction.open_table(SPENT)?;
    let (mut gone, mut looked_at) = (Vec::new(), 0);
    // Oldest first, as their ids are.
    for entry in reservations
        .range((account, 0)..=(account, u128::MAX))?
        .take(ROWS_AT_ONCE)
    {
        let (name, record) = entry?;
        let (id, (month, amount, _, key, operation, _)) = (name.value().1, record.value());
        if month >= before.number() {
            break;
        }
        looked_at += 1;
        if let Some(resolution) = resolutions.get((account, id))? {
            let (key, operation) = (key.to_owned(), operation.to_owned());
            let is_settled = resolution.value().0 == ReservationOutcome::Settled.number();
            gone.push(ExpiredEntry {
                id,
                month,
                amount,
                key,
                operation,
                is_settled,
            });
        }
    }
    for entry in &gone {
        let name = (account, entry.id);
        reservations.remove(name)?;
        resolutions.remove(name)?;
        if entry.is_settled {
            take_back(&mut balances, &mut spent, account, entry)?;
        }
    }
    // Not before: an account is found by its balances.
    if looked_at < ROWS_AT_ONCE {
        let over = (account, 0)..(account, before.number());
        balances.retain_in(over, |_, sums| sums != (0, 0))?;
        let over = (account, 0, "", "")..(account, before.number(), "", "");
        spent.retain_in(over, |_, credits| credits > 0)?;
    }
    Ok(gone.len())
}

/// Takes what a settled entry added out of its balance and its sum.
fn take_back(
    balances: &mut Table<'_, (&'static str, u32), (u64, u64)>,
    spent: &mut Table<'_, (&'static str, u32, &'static str, &'static str), u64>,
    account: &str,
    entry: &ExpiredEntry,
) -> Result<(), StoreError> {
    let name = (account, entry.month);
    let balance = balances.get(name)?.map(|sums| sums.value());
    let (posted, pending) = balance.unwrap_or_default();
    let left = (posted.saturating_sub(entry.amount), pending);
    balances.insert(name, left)?;
    let (key, operation) = (entry.key.as_str(), entry.operation.as_str());
    let name = (account, entry.month, key, operation);
    let sum = spent.get(name)?.map_or(0, |credits| credits.value());
    spent.insert(name, sum.saturating_sub(entry.amount))?;
    Ok(())
}

fn forget_counts(
    transaction: &WriteTransaction,
    owner: &str,
    before: Month,
) -> Result<usize, StoreError> {
    let mut counts = transaction.open_table(USAGE)?;
    let over = (owner, 0, "")..(owner, before.number(), "");
    let over = counts.extract_from_if(over, |_, _| true)?;
    over.take(ROWS_AT_ONCE)
        .try_fold(0, |forgotten, row| Ok(row.map(|_| forgotten + 1)?))
}

#[cfg(test)]
mod tests;
