//! The embedded store: one redb file, owned by one process.

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::RngExt as _;
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};

use super::key_cache::KeyCache;
use crate::auth::api_key::KeyRecord;

/// Key digest → record, as JSON.
const KEYS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("keys");
/// Key id → key digest.
const KEY_IDS: TableDefinition<'_, &str, &[u8; 32]> = TableDefinition::new("key-ids");
/// The instance's own values.
const INSTANCE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("instance");

const FILE: &str = "switchbay.redb";
/// Keys that may be listed; more would be a different kind of installation.
const KEYS_LISTED_MAX: usize = 10_000;

/// A store that cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("another switchbay process uses the data folder {folder}")]
    InUse { folder: PathBuf },
    #[error("cannot use the data folder {folder}: {source}")]
    Folder { folder: PathBuf, source: std::io::Error },
    #[error("the store fails: {0}")]
    Engine(#[source] Box<redb::Error>),
    #[error("a stored record is unreadable: {0}")]
    Record(#[source] serde_json::Error),
}

impl StoreError {
    pub(super) fn engine(error: impl Into<redb::Error>) -> Self {
        Self::Engine(Box::new(error.into()))
    }
}

/// The open store. Reads are snapshots; writes are durable when they return, and block: call them on a blocking thread.
pub(crate) struct Store {
    database: Database,
    keys: KeyCache,
}

impl Store {
    /// Opens or creates the store in a data folder.
    pub(crate) fn open(folder: &Path) -> Result<Self, StoreError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|source| StoreError::Folder { folder: folder.to_owned(), source })?;
        // The folder may be one that others can read: the store holds the digests of keys and the owner secret.
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(folder.join(FILE))
            .map_err(|source| StoreError::Folder { folder: folder.to_owned(), source })?;
        let database = Database::builder().create_file(file).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => StoreError::InUse { folder: folder.to_owned() },
            other => StoreError::engine(other),
        })?;
        let store = Self { database, keys: KeyCache::default() };
        store.write(|transaction| {
            transaction.open_table(KEYS).map_err(StoreError::engine)?;
            transaction.open_table(KEY_IDS).map_err(StoreError::engine)?;
            transaction.open_table(INSTANCE).map_err(StoreError::engine)?;
            Ok(())
        })?;
        store.open_plugins()?;
        Ok(store)
    }

    /// The secret that a caller's name within a plugin is made with; random, made once.
    pub(crate) fn owner_secret(&self) -> Result<[u8; 32], StoreError> {
        self.write(|transaction| {
            let mut table = transaction.open_table(INSTANCE).map_err(StoreError::engine)?;
            let stored = table.get("owner-secret").map_err(StoreError::engine)?;
            if let Some(secret) = stored.and_then(|value| <[u8; 32]>::try_from(value.value()).ok()) {
                return Ok(secret);
            }
            let secret: [u8; 32] = rand::rng().random();
            table.insert("owner-secret", secret.as_slice()).map_err(StoreError::engine)?;
            Ok(secret)
        })
    }

    /// Whether the store can be read.
    pub(crate) fn is_healthy(&self) -> bool {
        self.database.begin_read().is_ok_and(|transaction| transaction.open_table(INSTANCE).is_ok())
    }

    /// The record of the key with this digest.
    pub(crate) fn key(&self, digest: &[u8; 32]) -> Result<Option<Arc<KeyRecord>>, StoreError> {
        self.keys.get_or_read(digest, || self.read_key(digest))
    }

    fn read_key(&self, digest: &[u8; 32]) -> Result<Option<KeyRecord>, StoreError> {
        let transaction = self.database.begin_read().map_err(StoreError::engine)?;
        let table = transaction.open_table(KEYS).map_err(StoreError::engine)?;
        let stored = table.get(digest).map_err(StoreError::engine)?;
        stored.map(|value| serde_json::from_slice(value.value()).map_err(StoreError::Record)).transpose()
    }

    /// All keys, oldest first.
    pub(crate) fn keys(&self) -> Result<Vec<KeyRecord>, StoreError> {
        let transaction = self.database.begin_read().map_err(StoreError::engine)?;
        let table = transaction.open_table(KEYS).map_err(StoreError::engine)?;
        let mut keys: Vec<KeyRecord> = Vec::new();
        for entry in table.iter().map_err(StoreError::engine)?.take(KEYS_LISTED_MAX) {
            let (_, value) = entry.map_err(StoreError::engine)?;
            keys.push(serde_json::from_slice(value.value()).map_err(StoreError::Record)?);
        }
        keys.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(keys)
    }

    /// Writes a key's record; writing it again changes nothing.
    pub(crate) fn put_key(&self, digest: &[u8; 32], record: &KeyRecord) -> Result<(), StoreError> {
        let bytes = serde_json::to_vec(record).map_err(StoreError::Record)?;
        let written = self.write(|transaction| {
            let mut keys = transaction.open_table(KEYS).map_err(StoreError::engine)?;
            keys.insert(digest, bytes.as_slice()).map_err(StoreError::engine)?;
            let mut ids = transaction.open_table(KEY_IDS).map_err(StoreError::engine)?;
            ids.insert(record.id.as_str(), digest).map_err(StoreError::engine)?;
            Ok(())
        });
        self.keys.forget();
        written
    }

    /// Marks a key as revoked, and gives back its record; `None` where there is no such key. A revoked key keeps the time
    /// of its first revocation.
    pub(crate) fn revoke_key(&self, id: &str, now_s: u64) -> Result<Option<KeyRecord>, StoreError> {
        let revoked = self.write(|transaction| {
            let ids = transaction.open_table(KEY_IDS).map_err(StoreError::engine)?;
            let Some(digest) = ids.get(id).map_err(StoreError::engine)?.map(|value| *value.value()) else {
                return Ok(None);
            };
            let mut keys = transaction.open_table(KEYS).map_err(StoreError::engine)?;
            let stored = keys.get(&digest).map_err(StoreError::engine)?.map(|value| value.value().to_vec());
            let Some(bytes) = stored else { return Ok(None) };
            let mut record: KeyRecord = serde_json::from_slice(&bytes).map_err(StoreError::Record)?;
            record.revoked_at.get_or_insert(now_s);
            let bytes = serde_json::to_vec(&record).map_err(StoreError::Record)?;
            keys.insert(&digest, bytes.as_slice()).map_err(StoreError::engine)?;
            Ok(Some(record))
        });
        self.keys.forget();
        revoked
    }

    pub(super) fn database(&self) -> &Database {
        &self.database
    }

    pub(super) fn write<T>(
        &self,
        change: impl FnOnce(&redb::WriteTransaction) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let transaction = self.database.begin_write().map_err(StoreError::engine)?;
        let value = change(&transaction)?;
        transaction.commit().map_err(StoreError::engine)?;
        Ok(value)
    }
}
