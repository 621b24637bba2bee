//! `switchbay:state/records`: what a plugin keeps for good, within its grant.
//!
//! Checks and translates; the store compares, sets and counts. Must not know what a record means, nor log any of it.

use std::sync::Arc;
use std::time::SystemTime;

use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;
use wasmtime::component::{Accessor, HasSelf};

use super::GuestState;
use super::bindings::switchbay::state::records::{
    self as wire, Entry, Error, Host, HostWithStore, Listed,
};
use crate::base::clock::epoch_ms;
use crate::records::plugin_state::{
    ExpectedVersion, KeptRecord, ListedRecord, RecordChange, RecordWrite, StateBatch, WriteRefusal,
};
use crate::stores::{Store, StoreError};

/// Reads and writes of one call under way at once; the next is refused, because each holds its value here.
pub(crate) const IN_FLIGHT_MAX: usize = 32;
const KEY_BYTES_MAX: usize = 512;
const VALUE_BYTES_MAX: usize = 256 * 1024;
/// Records in one listing.
const LISTED_MAX: u32 = 1000;

/// A plugin's records as one revision may use them.
pub(crate) struct PluginRecords {
    store: Arc<Store>,
    plugin: Arc<str>,
    bytes_max: u64,
}

/// A key, value or limit that breaks a rule.
#[derive(Debug, thiserror::Error)]
enum UnacceptableRecord {
    #[error("the key is empty")]
    EmptyKey,
    #[error("the {what} has {bytes} bytes; at most {KEY_BYTES_MAX} are allowed")]
    LongKey { what: &'static str, bytes: usize },
    #[error("the value has {0} bytes; at most {VALUE_BYTES_MAX} are allowed")]
    LargeValue(usize),
    #[error("the limit is {0}; it must be from 1 to {LISTED_MAX}")]
    Limit(u32),
}

impl PluginRecords {
    /// For a revision that may keep so many bytes.
    pub(crate) fn new(store: &Arc<Store>, plugin: &str, bytes_max: u64) -> Self {
        Self {
            store: Arc::clone(store),
            plugin: plugin.into(),
            bytes_max,
        }
    }

    /// Makes one write, and gives back the version that the record has where it was put.
    async fn write(&self, write: RecordWrite) -> Result<u64, Error> {
        let batch = StateBatch {
            id: Uuid::now_v7(),
            plugin: Arc::clone(&self.plugin),
            writes: vec![write],
            bytes_max: self.bytes_max,
            now_ms: epoch_ms(SystemTime::now()),
        };
        let written = self.store.write_records(batch).await;
        let written = written.map_err(|error| self.failed(&error))?;
        written.map_err(refusal)
    }

    fn failed(&self, error: &StoreError) -> Error {
        tracing::error!(plugin = &*self.plugin, %error, "a plugin's records cannot be read or written");
        Error::Unavailable
    }
}

impl Host for GuestState {}

impl<T: Send + 'static> HostWithStore<T> for HasSelf<GuestState> {
    async fn get(accessor: &Accessor<T, Self>, key: String) -> Result<Option<Entry>, Error> {
        let granted = admit(accessor)?;
        check_key(&key)?;
        let records = granted.records();
        let (plugin, now_ms) = (Arc::clone(&records.plugin), epoch_ms(SystemTime::now()));
        let found = records.store.record(plugin, key, now_ms).await;
        let found = found.map_err(|error| records.failed(&error))?;
        Ok(found.map(|KeptRecord { value, version, .. }| Entry { value, version }))
    }

    async fn put(
        accessor: &Accessor<T, Self>,
        key: String,
        value: Vec<u8>,
        expected: wire::Expected,
    ) -> Result<u64, Error> {
        let granted = admit(accessor)?;
        check_key(&key)?;
        if value.len() > VALUE_BYTES_MAX {
            return Err(UnacceptableRecord::LargeValue(value.len()).into());
        }
        let write = RecordWrite {
            key,
            expected: from_wire(expected),
            change: RecordChange::Put {
                value,
                expires_ms: None,
            },
        };
        granted.records().write(write).await
    }

    async fn delete(
        accessor: &Accessor<T, Self>,
        key: String,
        expected: wire::Expected,
    ) -> Result<(), Error> {
        let granted = admit(accessor)?;
        check_key(&key)?;
        let write = RecordWrite {
            key,
            expected: from_wire(expected),
            change: RecordChange::Delete,
        };
        granted.records().write(write).await.map(drop)
    }

    async fn list(
        accessor: &Accessor<T, Self>,
        prefix: String,
        after: Option<String>,
        limit: u32,
    ) -> Result<Vec<Listed>, Error> {
        let granted = admit(accessor)?;
        check_length("prefix", &prefix)?;
        check_length("key", after.as_deref().unwrap_or_default())?;
        let most = usize::try_from(limit)
            .ok()
            .filter(|_| (1..=LISTED_MAX).contains(&limit));
        let most = most.ok_or(UnacceptableRecord::Limit(limit))?;
        let records = granted.records();
        let (plugin, now_ms) = (Arc::clone(&records.plugin), epoch_ms(SystemTime::now()));
        let found = records
            .store
            .records(plugin, (prefix, after), most, now_ms)
            .await;
        let found = found.map_err(|error| records.failed(&error))?;
        Ok(found.into_iter().map(listed).collect())
    }
}

/// The right to the plugin's records, and a place for one act on them.
struct RecordAccess {
    lent: Arc<super::GrantedCapabilities>,
    _place: OwnedSemaphorePermit,
}

impl RecordAccess {
    fn records(&self) -> &PluginRecords {
        self.lent
            .records
            .as_ref()
            .expect("it was there when this was made, and what is lent never changes")
    }
}

fn admit<T: Send + 'static>(
    accessor: &Accessor<T, HasSelf<GuestState>>,
) -> Result<RecordAccess, Error> {
    accessor.with(|mut access| {
        let state: &mut GuestState = access.get();
        if state.lent.records.is_none() {
            return Err(Error::NotGranted(state.denied("state")));
        }
        let place = Arc::clone(&state.records)
            .try_acquire_owned()
            .map_err(|_| Error::Busy)?;
        Ok(RecordAccess {
            lent: Arc::clone(&state.lent),
            _place: place,
        })
    })
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

impl From<UnacceptableRecord> for Error {
    fn from(refused: UnacceptableRecord) -> Self {
        Error::NotAcceptable(refused.to_string())
    }
}

fn from_wire(expected: wire::Expected) -> ExpectedVersion {
    match expected {
        wire::Expected::Any => ExpectedVersion::Any,
        wire::Expected::Absent => ExpectedVersion::Absent,
        wire::Expected::Version(version) => ExpectedVersion::Version(version),
    }
}

fn listed(record: ListedRecord) -> Listed {
    Listed {
        key: record.key,
        version: record.version,
        bytes: u32::try_from(record.bytes).unwrap_or(u32::MAX),
    }
}

fn refusal(unwritten: WriteRefusal) -> Error {
    match unwritten {
        // There was one write.
        WriteRefusal::Conflict(conflicts) => {
            Error::Conflict(conflicts.first().and_then(|(_, found)| *found))
        }
        WriteRefusal::NoBytes { .. } | WriteRefusal::NoRecords => {
            Error::Full(unwritten.to_string())
        }
    }
}
