//! Key records in memory, so that a call does not open a transaction to learn whose it is.
//!
//! One process owns the store, so the cache is exact: every write to the keys forgets all of it, and a record that was read
//! before a write is not kept after it.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::StoreError;
use crate::auth::api_key::KeyRecord;

/// Records kept at most; a full cache is started anew.
const RECORDS_MAX: usize = 10_000;

/// The cache. Unknown digests are not kept: anybody can make them up.
#[derive(Default)]
pub(super) struct KeyCache {
    /// Never held over a read of the store.
    kept: RwLock<Kept>,
}

#[derive(Default)]
struct Kept {
    /// Counts the writes to the keys.
    writes: u64,
    records: HashMap<[u8; 32], Arc<KeyRecord>>,
}

impl KeyCache {
    /// The kept record, or the one that `read` finds, which is then kept.
    pub(super) fn get_or_read(
        &self,
        digest: &[u8; 32],
        read: impl FnOnce() -> Result<Option<KeyRecord>, StoreError>,
    ) -> Result<Option<Arc<KeyRecord>>, StoreError> {
        let writes = {
            let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(record) = kept.records.get(digest) {
                return Ok(Some(Arc::clone(record)));
            }
            kept.writes
        };
        let Some(record) = read()?.map(Arc::new) else { return Ok(None) };
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        if kept.writes == writes {
            if kept.records.len() >= RECORDS_MAX {
                kept.records.clear();
            }
            kept.records.insert(*digest, Arc::clone(&record));
        }
        Ok(Some(record))
    }

    /// Forgets everything; called after each write to the keys, successful or not.
    pub(super) fn forget(&self) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        kept.writes += 1;
        kept.records.clear();
    }
}
