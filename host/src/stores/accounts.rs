//! Accounts, by their id.

use std::sync::Arc;

use redb::{TableDefinition, WriteTransaction};

use super::embedded::{Store, StoreError, encode, get_record, list_records};
use crate::records::account::{Account, Entitlement};

/// Account id → record, as JSON.
const ACCOUNTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("accounts");

/// Accounts that may be listed; more would be a different kind of installation.
const ACCOUNTS_LISTED_MAX: usize = 10_000;

pub(super) fn create_tables(transaction: &WriteTransaction) -> Result<(), StoreError> {
    transaction.open_table(ACCOUNTS)?;
    Ok(())
}

impl Store {
    /// The account with this id.
    pub(crate) fn account(&self, id: &str) -> Result<Option<Arc<Account>>, StoreError> {
        self.account_cache
            .get_or_read(id, || self.read(ACCOUNTS, |table| get_record(table, id)))
    }

    /// All accounts, oldest first.
    pub(crate) fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        self.read(ACCOUNTS, |table| {
            let mut accounts: Vec<Account> = list_records(table, ACCOUNTS_LISTED_MAX)?;
            accounts.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
            Ok(accounts)
        })
    }

    /// Writes an account's record; writing it again changes nothing.
    pub(crate) async fn put_account(&self, account: &Account) -> Result<(), StoreError> {
        let (id, bytes) = (account.id.clone(), encode(account)?);
        let change = move |transaction: &WriteTransaction| {
            let mut accounts = transaction.open_table(ACCOUNTS)?;
            accounts.insert(id.as_str(), bytes.as_slice())?;
            Ok(())
        };
        self.write_and_forget(change, &self.account_cache).await
    }

    /// Gives an account an entitlement in the place of the one it had, or takes it away. Gives back the account; `None`
    /// where there is no such account.
    pub(crate) async fn entitle(
        &self,
        id: &str,
        entitlement: Option<Entitlement>,
    ) -> Result<Option<Account>, StoreError> {
        let id = id.to_owned();
        let change = move |transaction: &WriteTransaction| {
            let mut accounts = transaction.open_table(ACCOUNTS)?;
            let Some(mut account) = get_record::<_, Account>(&accounts, id.as_str())? else {
                return Ok(None);
            };
            account.entitlement.clone_from(&entitlement);
            accounts.insert(id.as_str(), encode(&account)?.as_slice())?;
            Ok(Some(account))
        };
        self.write_and_forget(change, &self.account_cache).await
    }
}
