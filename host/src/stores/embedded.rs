//! The embedded store: one redb file, owned by one process. What stands in it is said by the files beside this one.

use std::borrow::Borrow;
use std::fs::OpenOptions;
use std::hash::Hash;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::RngExt as _;
use redb::{
    Database, DatabaseError, Key, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable,
    Table, TableDefinition, Value, WriteTransaction,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::cache::RecordCache;
use super::folder;
use super::folder::{FolderFault, Unfit};
use super::writer::Writer;
use super::{accounts, idempotency, jobs, keys, ledger, plugins, state, usage};
use crate::records::account::Account;
use crate::records::api_key::KeyRecord;

/// The instance's own values.
const INSTANCE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("instance");

const FILE: &str = "switchbay.redb";

/// Names that [`free_names`] removes in one write.
const FREED_AT_ONCE: usize = 1000;

/// A store that cannot be opened, read or written.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("another switchbay process is using the data folder {folder}")]
    InUse { folder: PathBuf },
    #[error("there is no store in {folder}; name the server's data folder with --data")]
    Missing { folder: PathBuf },
    #[error("cannot use the data folder {folder}: {source}")]
    Folder {
        folder: PathBuf,
        source: Arc<std::io::Error>,
    },
    #[error(transparent)]
    Unsafe(#[from] FolderFault),
    #[error("the store failed: {0}")]
    Engine(#[source] Arc<redb::Error>),
    #[error("a stored record is unreadable: {0}")]
    Record(#[source] Arc<serde_json::Error>),
    #[error("the store's writer has stopped")]
    Ended,
}

impl<E: Into<redb::Error>> From<E> for StoreError {
    fn from(error: E) -> Self {
        Self::Engine(Arc::new(error.into()))
    }
}

pub(super) fn encode(record: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(record).map_err(|error| StoreError::Record(Arc::new(error)))
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(bytes).map_err(|error| StoreError::Record(Arc::new(error)))
}

/// The record of a name; `None` where there is none.
pub(super) fn get_record<'n, K: Key + 'static, T: DeserializeOwned>(
    table: &impl ReadableTable<K, &'static [u8]>,
    name: impl Borrow<K::SelfType<'n>>,
) -> Result<Option<T>, StoreError> {
    let stored = table.get(name)?;
    stored.map(|value| decode(value.value())).transpose()
}

/// The first records of a table, in the order of their names.
pub(super) fn list_records<K: Key + 'static, T: DeserializeOwned>(
    table: &impl ReadableTable<K, &'static [u8]>,
    count_max: usize,
) -> Result<Vec<T>, StoreError> {
    let entries = table.iter()?.take(count_max);
    entries.map(|entry| decode(entry?.1.value())).collect()
}

/// Removes names whose time is before `until`, at most [`FREED_AT_ONCE`]; one that was written anew since then stands.
pub(super) fn free_names<V: Value + 'static>(
    times: &mut Table<'_, (u64, &'static str, &'static str, &'static str), ()>,
    names: &mut Table<'_, (&'static str, &'static str, &'static str), V>,
    until: u64,
    time_of: impl Fn(V::SelfType<'_>) -> u64,
) -> Result<(), StoreError> {
    let over = times.extract_from_if(..(until, "", "", ""), |_, ()| true)?;
    for entry in over.take(FREED_AT_ONCE) {
        let (entry, _) = entry?;
        let (time, first, second, third) = entry.value();
        let name = (first, second, third);
        let stands = names
            .get(name)?
            .is_some_and(|known| time_of(known.value()) == time);
        if stands {
            names.remove(name)?;
        }
    }
    Ok(())
}

/// The open store. Reads are snapshots; writes are durable when they return.
pub(crate) struct Store {
    // Before the database, so that everything queued is written before it is closed.
    writer: Writer,
    database: Arc<Database>,
    owner_secret: [u8; 32],
    pub(super) key_cache: Arc<RecordCache<[u8; 32], KeyRecord>>,
    pub(super) account_cache: Arc<RecordCache<String, Account>>,
}

impl Store {
    /// Makes sure that a data folder, which is made where it is missing, is this user's alone: whoever serves from it runs the
    /// code that is there.
    pub(crate) fn secure(folder: &Path) -> Result<(), StoreError> {
        folder::make(folder)
            .map_err(Unfit::Io)
            .and_then(|()| folder::secure(folder, FILE))
            .map_err(|unfit| match unfit {
                Unfit::Fault(fault) => fault.into(),
                Unfit::Io(error) => StoreError::Folder {
                    folder: folder.to_owned(),
                    source: Arc::new(error),
                },
            })
    }

    /// Opens the store in a data folder, where there is one.
    pub(crate) fn open_existing(folder: &Path) -> Result<Self, StoreError> {
        if folder.join(FILE).exists() {
            return Self::open(folder);
        }
        let folder = folder.to_owned();
        Err(StoreError::Missing { folder })
    }

    /// Opens or creates the store in a data folder.
    pub(crate) fn open(folder: &Path) -> Result<Self, StoreError> {
        let unusable = |error| StoreError::Folder {
            folder: folder.to_owned(),
            source: Arc::new(error),
        };
        folder::make(folder).map_err(unusable)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(folder.join(FILE))
            .map_err(unusable)?;
        let database = Database::builder()
            .create_file(file)
            .map_err(|error| match error {
                DatabaseError::DatabaseAlreadyOpen => StoreError::InUse {
                    folder: folder.to_owned(),
                },
                other => other.into(),
            })?;
        let transaction = database.begin_write()?;
        keys::create_tables(&transaction)?;
        accounts::create_tables(&transaction)?;
        usage::create_tables(&transaction)?;
        ledger::create_tables(&transaction)?;
        idempotency::create_tables(&transaction)?;
        jobs::create_tables(&transaction)?;
        plugins::create_tables(&transaction)?;
        state::create_tables(&transaction)?;
        let owner_secret = keep_owner_secret(&transaction)?;
        transaction.commit()?;
        let database = Arc::new(database);
        let writer = Writer::start(Arc::clone(&database)).map_err(unusable)?;
        Ok(Self {
            writer,
            database,
            owner_secret,
            key_cache: Arc::default(),
            account_cache: Arc::default(),
        })
    }

    /// The secret that a caller's name within a plugin is made with; random, made once.
    pub(crate) fn owner_secret(&self) -> [u8; 32] {
        self.owner_secret
    }

    /// Whether the store can be read, and what was written last could be.
    pub(crate) fn is_healthy(&self) -> bool {
        !self.writer.fails()
            && self
                .database
                .begin_read()
                .is_ok_and(|transaction| transaction.open_table(INSTANCE).is_ok())
    }

    /// Reads a table as it is now.
    pub(super) fn read<K: Key + 'static, V: Value + 'static, T>(
        &self,
        table: TableDefinition<'_, K, V>,
        read: impl FnOnce(&ReadOnlyTable<K, V>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let transaction = self.database.begin_read()?;
        read(&transaction.open_table(table)?)
    }

    /// The whole store as it is now.
    pub(super) fn snapshot(&self) -> Result<ReadTransaction, StoreError> {
        Ok(self.database.begin_read()?)
    }

    /// Makes a change that is durable when this returns, even where the caller went away.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        change: impl FnMut(&WriteTransaction) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.writer.write(change, || {}).await
    }

    /// Makes a change to a table that a cache stands before. The cache forgets once the change is durable and before the
    /// caller hears of it, even where the caller went away.
    pub(super) async fn write_and_forget<
        T: Send + 'static,
        K: Eq + Hash + Send + Sync + 'static,
        V: Send + Sync + 'static,
    >(
        &self,
        change: impl FnMut(&WriteTransaction) -> Result<T, StoreError> + Send + 'static,
        cache: &Arc<RecordCache<K, V>>,
    ) -> Result<T, StoreError> {
        let cache = Arc::clone(cache);
        self.writer.write(change, move || cache.forget()).await
    }
}

fn keep_owner_secret(transaction: &WriteTransaction) -> Result<[u8; 32], StoreError> {
    let mut table = transaction.open_table(INSTANCE)?;
    let stored = table.get("owner-secret")?;
    if let Some(secret) = stored.and_then(|value| <[u8; 32]>::try_from(value.value()).ok()) {
        return Ok(secret);
    }
    let secret: [u8; 32] = rand::rng().random();
    table.insert("owner-secret", secret.as_slice())?;
    Ok(secret)
}
