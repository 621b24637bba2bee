//! API keys: a key's record by its digest, and its digest by its id.

use std::sync::Arc;

use redb::{ReadableTable, TableDefinition, WriteTransaction};

use super::embedded::{Store, StoreError, encode, get_record, list_records};
use crate::records::api_key::KeyRecord;

/// Key digest → record, as JSON.
const KEYS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("keys");
/// Key id → key digest.
const KEY_IDS: TableDefinition<'_, &str, &[u8; 32]> = TableDefinition::new("key-ids");

/// Keys that may be listed; more would be a different kind of installation.
const KEYS_LISTED_MAX: usize = 10_000;

pub(super) fn create_tables(transaction: &WriteTransaction) -> Result<(), StoreError> {
    transaction.open_table(KEYS)?;
    transaction.open_table(KEY_IDS)?;
    Ok(())
}

impl Store {
    /// The record of the key with this digest.
    pub(crate) fn key(&self, digest: &[u8; 32]) -> Result<Option<Arc<KeyRecord>>, StoreError> {
        self.key_cache.get_or_read(digest, || {
            self.read(KEYS, |table| get_record(table, digest))
        })
    }

    /// The record of the key with this id.
    pub(crate) fn key_of_id(&self, id: &str) -> Result<Option<KeyRecord>, StoreError> {
        let digest = self.read(KEY_IDS, |table| {
            Ok(table.get(id)?.map(|value| *value.value()))
        })?;
        let Some(digest) = digest else {
            return Ok(None);
        };
        self.read(KEYS, |table| get_record(table, &digest))
    }

    /// All keys, oldest first.
    pub(crate) fn keys(&self) -> Result<Vec<KeyRecord>, StoreError> {
        self.read(KEYS, |table| {
            let mut keys: Vec<KeyRecord> = list_records(table, KEYS_LISTED_MAX)?;
            keys.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
            Ok(keys)
        })
    }

    /// Writes a key's record; writing it again changes nothing.
    pub(crate) async fn put_key(
        &self,
        digest: [u8; 32],
        record: &KeyRecord,
    ) -> Result<(), StoreError> {
        let (id, bytes) = (record.id.clone(), encode(record)?);
        let change = move |transaction: &WriteTransaction| {
            let mut keys = transaction.open_table(KEYS)?;
            keys.insert(&digest, bytes.as_slice())?;
            let mut ids = transaction.open_table(KEY_IDS)?;
            ids.insert(id.as_str(), &digest)?;
            Ok(())
        };
        self.write_and_forget(change, &self.key_cache).await
    }

    /// Marks a key as revoked, and gives back its record; `None` where there is no such key. A revoked key keeps the time
    /// of its first revocation.
    pub(crate) async fn revoke_key(
        &self,
        id: &str,
        now_s: u64,
    ) -> Result<Option<KeyRecord>, StoreError> {
        let id = id.to_owned();
        let change = move |transaction: &WriteTransaction| {
            let ids = transaction.open_table(KEY_IDS)?;
            let Some(digest) = ids.get(id.as_str())?.map(|value| *value.value()) else {
                return Ok(None);
            };
            let mut keys = transaction.open_table(KEYS)?;
            let Some(mut record) = get_record::<_, KeyRecord>(&keys, &digest)? else {
                return Ok(None);
            };
            record.revoked_at.get_or_insert(now_s);
            keys.insert(&digest, encode(&record)?.as_slice())?;
            Ok(Some(record))
        };
        self.write_and_forget(change, &self.key_cache).await
    }
}
