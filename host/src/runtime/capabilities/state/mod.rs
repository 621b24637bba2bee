//! `switchbay:state/records`: what a plugin keeps for good, within its grant, in each version that is served.
//!
//! Checks; the store compares, sets and counts; a file for each version translates. Must not know what a record means, nor log
//! any of it.

mod v0_1;
mod v0_2;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::SystemTime;

use uuid::Uuid;
use wasmtime::component::{Accessor, HasSelf};

use super::{GrantedCapabilities, GuestState, LendingOrder};
use crate::base::clock::epoch_ms;
use crate::records::plugin_state::{
    KeptRecord, ListedRecord, RecordChange, RecordWrite, StateBatch, WriteRefusal,
};
use crate::runtime::in_flight::ActPlace;
use crate::stores::{Store, StoreError};

/// Reads and writes of one call under way at once; the next is refused, because each holds its value here.
const IN_FLIGHT_MAX: usize = 32;
/// The interface in atoms.
const ATOM: &str = "state";
const KEY_BYTES_MAX: usize = 512;
const VALUE_BYTES_MAX: usize = 256 * 1024;
/// Of all values that are written together.
const BATCH_BYTES_MAX: usize = 1 << 20;
/// Writes that are made together.
const WRITES_MAX: usize = 64;
/// Records in one listing.
const LISTED_MAX: u32 = 1000;

/// A plugin's records as one revision may use them.
pub(crate) struct PluginRecords {
    store: Arc<Store>,
    plugin: Arc<str>,
    bytes_max: u64,
}

/// A key, value, limit or batch that breaks a rule.
#[derive(Debug, thiserror::Error)]
enum UnacceptableRecord {
    #[error("the key is empty")]
    EmptyKey,
    #[error("the {what} has {bytes} bytes; at most {KEY_BYTES_MAX} are allowed")]
    LongKey { what: &'static str, bytes: usize },
    #[error("the value has {0} bytes; at most {VALUE_BYTES_MAX} are allowed")]
    LargeValue(usize),
    #[error("the values have {0} bytes together; at most {BATCH_BYTES_MAX} are allowed")]
    LargeBatch(usize),
    #[error("there are {0} writes; there must be from 1 to {WRITES_MAX}")]
    Writes(usize),
    #[error("the writes at {0} and {1} have the same key")]
    SameKey(usize, usize),
    #[error("the limit is {0}; it must be from 1 to {LISTED_MAX}")]
    Limit(u32),
}

/// Why nothing was read or written.
enum RecordsRefusal {
    NotGranted(String),
    NotAcceptable(UnacceptableRecord),
    Unwritten(WriteRefusal),
    Busy,
    Unavailable,
}

/// The plugin's records, of as many bytes as are granted.
pub(super) fn lend(order: &mut LendingOrder<'_>) -> Option<PluginRecords> {
    Some(PluginRecords {
        bytes_max: order.rights.bytes_of(ATOM)?,
        store: Arc::clone(&order.runtime.store),
        plugin: order.plugin.into(),
    })
}

impl PluginRecords {
    fn failed(&self, error: &StoreError) -> RecordsRefusal {
        tracing::error!(plugin = &*self.plugin, %error, "a plugin's records cannot be read or written");
        RecordsRefusal::Unavailable
    }
}

/// The right to the plugin's records, and a place for one act on them.
struct RecordAccess {
    lent: Arc<GrantedCapabilities>,
    _place: ActPlace,
}

impl RecordAccess {
    fn admit<T: Send + 'static>(
        accessor: &Accessor<T, HasSelf<GuestState>>,
    ) -> Result<Self, RecordsRefusal> {
        accessor.with(|mut access| {
            let state: &mut GuestState = access.get();
            if state.lent.records.is_none() {
                return Err(RecordsRefusal::NotGranted(state.denied(ATOM)));
            }
            let place = state.in_flight.place(ATOM, IN_FLIGHT_MAX);
            let place = place.ok_or(RecordsRefusal::Busy)?;
            Ok(Self {
                lent: Arc::clone(&state.lent),
                _place: place,
            })
        })
    }

    fn records(&self) -> &PluginRecords {
        self.lent
            .records
            .as_ref()
            .expect("it was there when this was made, and what is lent never changes")
    }

    async fn get(&self, key: String) -> Result<Option<KeptRecord>, RecordsRefusal> {
        check_key(&key)?;
        let records = self.records();
        let (plugin, now_ms) = (Arc::clone(&records.plugin), epoch_ms(SystemTime::now()));
        let found = records.store.record(plugin, key, now_ms).await;
        found.map_err(|error| records.failed(&error))
    }

    /// Makes all of the writes or none, and gives back the version of what was put.
    async fn write(&self, writes: Vec<RecordWrite>) -> Result<u64, RecordsRefusal> {
        check_batch(&writes)?;
        let records = self.records();
        let batch = StateBatch {
            id: Uuid::now_v7(),
            plugin: Arc::clone(&records.plugin),
            writes,
            bytes_max: records.bytes_max,
            now_ms: epoch_ms(SystemTime::now()),
        };
        let written = records.store.write_records(batch).await;
        written
            .map_err(|error| records.failed(&error))?
            .map_err(RecordsRefusal::Unwritten)
    }

    async fn list(
        &self,
        prefix: String,
        after: Option<String>,
        limit: u32,
    ) -> Result<Vec<ListedRecord>, RecordsRefusal> {
        check_length("prefix", &prefix)?;
        check_length("key", after.as_deref().unwrap_or_default())?;
        let most = usize::try_from(limit)
            .ok()
            .filter(|_| (1..=LISTED_MAX).contains(&limit));
        let most = most.ok_or(UnacceptableRecord::Limit(limit))?;
        let records = self.records();
        let (plugin, now_ms) = (Arc::clone(&records.plugin), epoch_ms(SystemTime::now()));
        let found = records
            .store
            .records(plugin, (prefix, after), most, now_ms)
            .await;
        found.map_err(|error| records.failed(&error))
    }
}

fn check_batch(writes: &[RecordWrite]) -> Result<(), UnacceptableRecord> {
    if !(1..=WRITES_MAX).contains(&writes.len()) {
        return Err(UnacceptableRecord::Writes(writes.len()));
    }
    let (mut bytes, mut keys) = (0, HashSet::with_capacity(writes.len()));
    for (place, write) in writes.iter().enumerate() {
        check_key(&write.key)?;
        if let RecordChange::Put { value, .. } = &write.change {
            if value.len() > VALUE_BYTES_MAX {
                return Err(UnacceptableRecord::LargeValue(value.len()));
            }
            bytes += value.len();
        }
        if !keys.insert(&write.key) {
            let first = writes.iter().position(|other| other.key == write.key);
            return Err(UnacceptableRecord::SameKey(first.unwrap_or(place), place));
        }
    }
    if bytes > BATCH_BYTES_MAX {
        return Err(UnacceptableRecord::LargeBatch(bytes));
    }
    Ok(())
}

fn check_key(key: &str) -> Result<(), UnacceptableRecord> {
    if key.is_empty() {
        Err(UnacceptableRecord::EmptyKey)
    } else {
        check_length("key", key)
    }
}

fn check_length(what: &'static str, text: &str) -> Result<(), UnacceptableRecord> {
    if text.len() > KEY_BYTES_MAX {
        return Err(UnacceptableRecord::LongKey {
            what,
            bytes: text.len(),
        });
    }
    Ok(())
}

impl From<UnacceptableRecord> for RecordsRefusal {
    fn from(refused: UnacceptableRecord) -> Self {
        Self::NotAcceptable(refused)
    }
}

fn bytes_of(record: &ListedRecord) -> u32 {
    u32::try_from(record.bytes).unwrap_or(u32::MAX)
}
