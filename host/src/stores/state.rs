//! Records that plugins keep: by plugin and key, each with a version, and what each plugin uses of its room.
//!
//! A write compares and sets in one transaction of the one writer, together with the sum that it changes, so that the sums
//! are those of the records. No write touches two plugins.

use std::ops::Bound;

use redb::{ReadableTable as _, TableDefinition, WriteTransaction};

use super::embedded::{Store, StoreError};

/// Plugin, key → version and value.
const RECORDS: TableDefinition<'_, (&str, &str), (u64, &[u8])> =
    TableDefinition::new("plugin-records");
/// Plugin → bytes, number of records, last version.
const USED: TableDefinition<'_, &str, (u64, u64, u64)> =
    TableDefinition::new("plugin-records-used");

/// What a record counts beside its key and value: about what it takes in the tree.
const RECORD_BYTES: u64 = 64;
/// Records of one plugin.
const RECORDS_MAX: u64 = 100_000;

/// A record as it is kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeptRecord {
    pub(crate) value: Vec<u8>,
    pub(crate) version: u64,
}

/// A record in a listing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ListedRecord {
    pub(crate) key: String,
    pub(crate) version: u64,
    /// Of the value.
    pub(crate) bytes: usize,
}

/// What must be there for a write to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ExpectedVersion {
    Any,
    Absent,
    Version(u64),
}

/// Why a write was not made.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WriteRefusal {
    #[error("the stored value changed since it was read")]
    Conflict { found: Option<u64> },
    #[error("the plugin's records would take {bytes} bytes; {bytes_max} are granted")]
    NoBytes { bytes: u64, bytes_max: u64 },
    #[error("the plugin has {RECORDS_MAX} records, which is the limit")]
    NoRecords,
}

/// What the records of one plugin come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StateUsage {
    pub(crate) bytes: u64,
    pub(crate) records: u64,
    last_version: u64,
}

pub(super) fn create_tables(transaction: &WriteTransaction) -> Result<(), StoreError> {
    transaction.open_table(RECORDS)?;
    transaction.open_table(USED)?;
    Ok(())
}

impl Store {
    /// A plugin's record.
    pub(crate) fn record(&self, plugin: &str, key: &str) -> Result<Option<KeptRecord>, StoreError> {
        self.read(RECORDS, |table| {
            let stored = table.get((plugin, key))?;
            Ok(stored.map(|stored| {
                let (version, value) = stored.value();
                KeptRecord {
                    value: value.to_vec(),
                    version,
                }
            }))
        })
    }

    /// A plugin's records whose keys begin with a prefix, in the order of their keys, from after a key where one is named.
    pub(crate) fn records(
        &self,
        plugin: &str,
        prefix: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<ListedRecord>, StoreError> {
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded((plugin, after)),
            _ => Bound::Included((plugin, prefix)),
        };
        self.read(RECORDS, |table| {
            let mut listed = Vec::new();
            for entry in table.range::<(&str, &str)>((from, Bound::Unbounded))? {
                let (name, record) = entry?;
                let ((owner, key), (version, value)) = (name.value(), record.value());
                if listed.len() == most || owner != plugin || !key.starts_with(prefix) {
                    break;
                }
                listed.push(ListedRecord {
                    key: key.to_owned(),
                    version,
                    bytes: value.len(),
                });
            }
            Ok(listed)
        })
    }

    /// Writes a plugin's record if what is there is as expected and there is room, and gives back its version.
    pub(crate) async fn put_record(
        &self,
        plugin: &str,
        key: &str,
        value: Vec<u8>,
        expected: ExpectedVersion,
        bytes_max: u64,
    ) -> Result<Result<u64, WriteRefusal>, StoreError> {
        let (plugin, key) = (plugin.to_owned(), key.to_owned());
        self.write(move |transaction| put(transaction, &plugin, &key, &value, expected, bytes_max))
            .await
    }

    /// Deletes a plugin's record if what is there is as expected.
    pub(crate) async fn delete_record(
        &self,
        plugin: &str,
        key: &str,
        expected: ExpectedVersion,
    ) -> Result<Result<(), WriteRefusal>, StoreError> {
        let (plugin, key) = (plugin.to_owned(), key.to_owned());
        self.write(move |transaction| delete(transaction, &plugin, &key, expected))
            .await
    }

    /// What each plugin uses that ever kept a record, in the order of their names.
    pub(crate) fn records_used(&self) -> Result<Vec<(String, StateUsage)>, StoreError> {
        self.read(USED, |table| {
            let entries = table.iter()?;
            entries
                .map(|entry| {
                    let (plugin, used) = entry?;
                    Ok((plugin.value().to_owned(), StateUsage::of(used.value())))
                })
                .collect()
        })
    }
}

impl StateUsage {
    fn of((bytes, records, last_version): (u64, u64, u64)) -> Self {
        Self {
            bytes,
            records,
            last_version,
        }
    }

    /// With one record in the place of another: the bytes that each counts.
    fn with(self, old: Option<u64>, new: Option<u64>) -> Self {
        Self {
            bytes: (self.bytes + new.unwrap_or(0)).saturating_sub(old.unwrap_or(0)),
            records: (self.records + u64::from(new.is_some()))
                .saturating_sub(u64::from(old.is_some())),
            last_version: self.last_version + 1,
        }
    }

    fn row(self) -> (u64, u64, u64) {
        (self.bytes, self.records, self.last_version)
    }
}

impl ExpectedVersion {
    fn meets(self, found: Option<u64>) -> Result<(), WriteRefusal> {
        let is_met = match self {
            ExpectedVersion::Any => true,
            ExpectedVersion::Absent => found.is_none(),
            ExpectedVersion::Version(version) => found == Some(version),
        };
        if is_met {
            Ok(())
        } else {
            Err(WriteRefusal::Conflict { found })
        }
    }
}

fn put(
    transaction: &WriteTransaction,
    plugin: &str,
    key: &str,
    value: &[u8],
    expected: ExpectedVersion,
    bytes_max: u64,
) -> Result<Result<u64, WriteRefusal>, StoreError> {
    let mut records = transaction.open_table(RECORDS)?;
    let mut all = transaction.open_table(USED)?;
    let found = found(&records, plugin, key)?;
    if let Err(unwritten) = expected.meets(found.map(|(version, _)| version)) {
        return Ok(Err(unwritten));
    }
    let used = used(&all, plugin)?;
    let now = used.with(found.map(|(_, bytes)| bytes), Some(counted(key, value)));
    if now.bytes > bytes_max && now.bytes > used.bytes {
        return Ok(Err(WriteRefusal::NoBytes {
            bytes: now.bytes,
            bytes_max,
        }));
    }
    if now.records > RECORDS_MAX {
        return Ok(Err(WriteRefusal::NoRecords));
    }
    records.insert((plugin, key), (now.last_version, value))?;
    all.insert(plugin, now.row())?;
    Ok(Ok(now.last_version))
}

fn delete(
    transaction: &WriteTransaction,
    plugin: &str,
    key: &str,
    expected: ExpectedVersion,
) -> Result<Result<(), WriteRefusal>, StoreError> {
    let mut records = transaction.open_table(RECORDS)?;
    let mut all = transaction.open_table(USED)?;
    let found = found(&records, plugin, key)?;
    if let Err(unwritten) = expected.meets(found.map(|(version, _)| version)) {
        return Ok(Err(unwritten));
    }
    if let Some((_, bytes)) = found {
        let now = used(&all, plugin)?.with(Some(bytes), None);
        records.remove((plugin, key))?;
        all.insert(plugin, now.row())?;
    }
    Ok(Ok(()))
}

/// The version of what is under a key, and the bytes that it counts.
fn found(
    records: &redb::Table<'_, (&str, &str), (u64, &[u8])>,
    plugin: &str,
    key: &str,
) -> Result<Option<(u64, u64)>, StoreError> {
    let stored = records.get((plugin, key))?;
    Ok(stored.map(|stored| {
        let (version, value) = stored.value();
        (version, counted(key, value))
    }))
}

fn used(
    all: &redb::Table<'_, &str, (u64, u64, u64)>,
    plugin: &str,
) -> Result<StateUsage, StoreError> {
    let stored = all.get(plugin)?;
    Ok(stored.map_or_else(StateUsage::default, |stored| StateUsage::of(stored.value())))
}

fn counted(key: &str, value: &[u8]) -> u64 {
    u64::try_from(key.len() + value.len())
        .map_or(u64::MAX, |bytes| bytes.saturating_add(RECORD_BYTES))
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[tokio::test]
    async fn the_records_are_bounded_by_number_too() {
        let folder = TempDir::new().expect("a temporary folder");
        let store = Store::open(folder.path()).expect("a store");
        let put = async |key| {
            store
                .put_record("plugin", key, Vec::new(), ExpectedVersion::Any, u64::MAX)
                .await
                .expect("the store works")
        };
        put("a").await.expect("there is room");
        // As if the others were there: to write them takes minutes.
        store
            .write(|transaction| {
                let mut all = transaction.open_table(USED)?;
                all.insert("plugin", (65, RECORDS_MAX, 1))?;
                Ok(())
            })
            .await
            .expect("written");
        assert_eq!(put("b").await, Err(WriteRefusal::NoRecords));
        assert_eq!(put("a").await, Ok(2), "in the place of what was there");
        store
            .delete_record("plugin", "a", ExpectedVersion::Version(2))
            .await
            .expect("the store works")
            .expect("deleted");
        assert_eq!(put("b").await, Ok(4));
    }
}
