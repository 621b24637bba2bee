//! Records in memory, so that a call does not open a transaction to learn whose it is.
//!
//! One process owns the store, so a cache is exact: every write to its space forgets all of it, and a record that was read
//! before a write is not kept after it.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::RwLock;

use super::StoreError;

/// Records kept at most; a full cache is started anew.
const RECORDS_MAX: usize = 10_000;

/// The cache of one space. Unknown names are not kept: anybody can make them up.
pub(super) struct RecordCache<K, V> {
    /// Never held over an await.
    kept: RwLock<KeptValue<K, V>>,
}

struct KeptValue<K, V> {
    /// Counts the writes to the space.
    writes: u64,
    records: HashMap<K, Arc<V>>,
}

impl<K, V> Default for RecordCache<K, V> {
    fn default() -> Self {
        Self {
            kept: RwLock::new(KeptValue {
                writes: 0,
                records: HashMap::new(),
            }),
        }
    }
}

impl<K: Eq + Hash, V> RecordCache<K, V> {
    /// The kept record, or the one that `read` finds, which is then kept.
    pub(super) async fn get_or_read<Q>(
        &self,
        name: &Q,
        read: impl Future<Output = Result<Option<V>, StoreError>>,
    ) -> Result<Option<Arc<V>>, StoreError>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        let writes = {
            let kept = self.kept.read();
            if let Some(record) = kept.records.get(name) {
                return Ok(Some(Arc::clone(record)));
            }
            kept.writes
        };
        let Some(record) = read.await?.map(Arc::new) else {
            return Ok(None);
        };
        let mut kept = self.kept.write();
        if kept.writes == writes {
            if kept.records.len() >= RECORDS_MAX {
                kept.records.clear();
            }
            kept.records.insert(name.to_owned(), Arc::clone(&record));
        }
        Ok(Some(record))
    }

    /// Forgets everything; called after each write to the space, successful or not.
    pub(super) fn forget(&self) {
        let mut kept = self.kept.write();
        kept.writes += 1;
        kept.records.clear();
    }
}
