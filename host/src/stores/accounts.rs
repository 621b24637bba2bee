//! Keys and accounts, with the caches that stand before them on the calls' road.

use std::sync::Arc;

use uuid::Uuid;

use super::{Store, StoreError};
use crate::records::account::{self, Account, Entitlement};
use crate::records::api_key::{self, KeyRecord};
use crate::records::rows::Reads;

impl Store {
    /// The record of the key with this digest.
    pub(crate) async fn key(
        &self,
        digest: &[u8; 32],
    ) -> Result<Option<Arc<KeyRecord>>, StoreError> {
        let read = self.engine.view(|read| api_key::key(read, digest));
        self.key_cache.get_or_read(digest, read).await
    }

    /// The record of the key with this id.
    pub(crate) async fn key_of_id(&self, id: &str) -> Result<Option<KeyRecord>, StoreError> {
        self.engine.view(|read| api_key::key_of_id(read, id)).await
    }

    /// All keys, oldest first.
    pub(crate) async fn keys(&self) -> Result<Vec<KeyRecord>, StoreError> {
        self.engine.survey(|read| api_key::keys(read)).await
    }

    /// Keeps a new key's record. One that is kept already stands, whatever became of it since.
    pub(crate) async fn put_key(
        &self,
        digest: [u8; 32],
        record: &KeyRecord,
    ) -> Result<(), StoreError> {
        let (id, record) = (record.id.clone(), record.clone());
        let issue = move |read: &mut dyn Reads| api_key::issue(read, &digest, &record);
        let cache = Arc::clone(&self.key_cache);
        self.engine.change(&id, issue, move || cache.forget()).await
    }

    /// Marks a key as revoked, and gives back its record; `None` where there is no such key. A revoked key keeps the time
    /// of its first revocation.
    pub(crate) async fn revoke_key(
        &self,
        id: &str,
        now_s: u64,
    ) -> Result<Option<KeyRecord>, StoreError> {
        let named = id.to_owned();
        let revoke = move |read: &mut dyn Reads| api_key::revoke(read, &named, now_s);
        let cache = Arc::clone(&self.key_cache);
        self.engine.change(id, revoke, move || cache.forget()).await
    }

    /// The account with this id.
    pub(crate) async fn account(&self, id: &str) -> Result<Option<Arc<Account>>, StoreError> {
        let read = self.engine.view(|read| account::account(read, id));
        self.account_cache.get_or_read(id, read).await
    }

    /// All accounts, oldest first.
    pub(crate) async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        self.engine.survey(|read| account::accounts(read)).await
    }

    /// Keeps a new account's record. One that is kept already stands, whatever became of it since.
    pub(crate) async fn put_account(&self, account: &Account) -> Result<(), StoreError> {
        let (id, account) = (account.id.clone(), account.clone());
        let open = move |read: &mut dyn Reads| account::open(read, &account);
        let cache = Arc::clone(&self.account_cache);
        self.engine.change(&id, open, move || cache.forget()).await
    }

    /// Gives an account an entitlement in the place of the one it had, or takes it away; the same change made again does
    /// neither. Gives back the account; `None` where there is no such account.
    pub(crate) async fn entitle(
        &self,
        id: &str,
        change: Uuid,
        entitlement: Option<Entitlement>,
    ) -> Result<Option<Account>, StoreError> {
        let named = id.to_owned();
        let entitle = move |read: &mut dyn Reads| {
            account::entitle(read, &named, change, entitlement.as_ref())
        };
        let cache = Arc::clone(&self.account_cache);
        self.engine
            .change(id, entitle, move || cache.forget())
            .await
    }
}
