//! What outlives the process: keys, accounts, counts of calls, credits, jobs, the life of each plugin and its records, and the
//! instance's own secret.
//!
//! What a record means stands in `records`, as rules; here is what keeps rows and runs rules on them: an engine, behind the
//! contract of [`engine`]. One today, embedded. Time is passed in.

mod accounts;
mod cache;
mod credits;
mod embedded;
mod engine;
mod jobs;
mod large_writes;
mod plugins;
mod state;
mod usage;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use rand::RngExt as _;

use self::cache::RecordCache;
use self::embedded::EmbeddedEngine;
pub(crate) use self::engine::StoreError;
use self::engine::{CHANGES_AT_ONCE_MAX, ChangeRule, Engine};
use self::large_writes::LargeWrites;
use crate::records::account::Account;
use crate::records::api_key::KeyRecord;
use crate::records::instance;
use crate::records::plugin_life::INSTANCE;
use crate::records::rows::{Reads, RowFault, RowName, Space};

/// The open store. What is read is of one moment; what is written is durable when it is told.
pub(crate) struct Store {
    engine: Engine,
    owner_secret: [u8; 32],
    large_writes: LargeWrites,
    key_cache: Arc<RecordCache<[u8; 32], KeyRecord>>,
    account_cache: Arc<RecordCache<String, Account>>,
}

impl Store {
    /// Makes sure that a data folder, which is made where it is missing, is this user's alone: whoever serves from it runs the
    /// code that is there.
    pub(crate) fn secure(folder: &Path) -> Result<(), StoreError> {
        embedded::secure(folder)
    }

    /// Opens the embedded store in a data folder, where there is one.
    pub(crate) async fn open_existing(folder: &Path) -> Result<Self, StoreError> {
        Self::of(Engine::Embedded(EmbeddedEngine::open_existing(folder)?)).await
    }

    /// Opens or creates the embedded store in a data folder.
    pub(crate) async fn open(folder: &Path) -> Result<Self, StoreError> {
        Self::of(Engine::Embedded(EmbeddedEngine::open(folder)?)).await
    }

    async fn of(engine: Engine) -> Result<Self, StoreError> {
        let found = engine
            .change(INSTANCE, instance::keep_format, || {})
            .await?;
        if found > instance::FORMAT {
            return Err(StoreError::Newer { found });
        }
        let secret: [u8; 32] = rand::rng().random();
        let keep = move |read: &mut dyn Reads| instance::keep_owner_secret(read, &secret);
        let owner_secret = engine.change(INSTANCE, keep, || {}).await?;
        Ok(Self {
            engine,
            owner_secret,
            large_writes: LargeWrites::default(),
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
        self.engine.is_healthy()
    }

    /// Makes a change that is durable when this returns, even where the caller went away.
    async fn change<T: Send + 'static>(
        &self,
        partition: &str,
        rule: impl ChangeRule<T>,
    ) -> Result<T, StoreError> {
        self.engine.change(partition, rule, || {}).await
    }

    /// The same for a change that holds so many bytes: it waits for room for them, and holds that until it is made.
    async fn change_large<T: Send + 'static>(
        &self,
        partition: &str,
        bytes: usize,
        mut rule: impl ChangeRule<T>,
    ) -> Result<T, StoreError> {
        let room = self.large_writes.room(partition, bytes).await;
        let rule = move |read: &mut dyn Reads| {
            let _ = &room;
            rule(read)
        };
        self.change(partition, rule).await
    }

    /// Makes a change of each of some partitions, a bounded number of them at once. One whose rule fails keeps no other from
    /// being made; the first of these faults is told when all have had their turn.
    async fn change_each<T: Send + 'static>(
        &self,
        changes: impl IntoIterator<Item = (String, impl ChangeRule<T>)>,
    ) -> Result<Vec<T>, StoreError> {
        let mut changes = changes.into_iter();
        let (mut outcomes, mut failed) = (Vec::new(), None);
        loop {
            let some = Vec::from_iter(changes.by_ref().take(CHANGES_AT_ONCE_MAX));
            if some.is_empty() {
                return failed.map_or(Ok(outcomes), |fault: RowFault| Err(fault.into()));
            }
            for outcome in self.engine.change_each(some).await? {
                match outcome {
                    Ok(outcome) => outcomes.push(outcome),
                    Err(fault) => drop(failed.get_or_insert(fault)),
                }
            }
        }
    }
}

/// Names of rows, by whose they are.
fn by_partition(names: Vec<RowName>) -> BTreeMap<String, Vec<RowName>> {
    let mut by_partition: BTreeMap<String, Vec<RowName>> = BTreeMap::new();
    for name in names {
        let partition = name.partition_text();
        by_partition.entry(partition).or_default().push(name);
    }
    by_partition
}

/// Tells of rows that were left out. Neither what they hold nor whose they are: both may be a caller's.
fn tell_unreadable(space: Space, rows: usize) {
    if rows > 0 {
        tracing::error!(
            space = space.name(),
            rows,
            "stored records cannot be read; skipped"
        );
    }
}
