//! The rules of the records that plugins keep: each with a version, and what each plugin uses of its room.
//!
//! All rows are the plugin's. A batch of writes compares and sets together with the sum that it changes, so that the sums are
//! those of the records. A record that has expired is as good as gone; its bytes count until it is forgotten.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::rows::{
    Decision, Reads, Row, RowFault, RowName, RowQuery, RowRange, RowWrite, Space, decode, encode,
};

/// Plugin, key → [`RecordHead`] in one line, and the value.
pub(crate) const RECORDS: Space = Space::new("state.record");
/// Plugin → [`StateUsage`].
pub(crate) const USED: Space = Space::new("state.used");

/// What a record counts beside its key and value: about what it takes in the tree.
const RECORD_BYTES: u64 = 64;
/// Records of one plugin.
const RECORDS_MAX: u64 = 100_000;

/// A record as it is kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeptRecord {
    pub(crate) value: Vec<u8>,
    pub(crate) version: u64,
    pub(crate) expires_ms: Option<u64>,
}

/// A record in a listing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ListedRecord {
    pub(crate) key: String,
    pub(crate) version: u64,
    /// Of the value.
    pub(crate) bytes: usize,
    pub(crate) expires_ms: Option<u64>,
}

/// What must be there for a write to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ExpectedVersion {
    Any,
    Absent,
    Version(u64),
}

/// Writes that are made together or not at all. No key is in two of them.
#[derive(Clone, Debug)]
pub(crate) struct StateBatch {
    /// Unique: the same batch made again changes nothing.
    pub(crate) id: Uuid,
    pub(crate) plugin: Arc<str>,
    pub(crate) writes: Vec<RecordWrite>,
    /// What the plugin was granted.
    pub(crate) bytes_max: u64,
    /// Unix time in milliseconds.
    pub(crate) now_ms: u64,
}

/// A write of one record.
#[derive(Clone, Debug)]
pub(crate) struct RecordWrite {
    pub(crate) key: String,
    pub(crate) expected: ExpectedVersion,
    pub(crate) change: RecordChange,
}

/// What a write makes of a record.
#[derive(Clone, Debug)]
pub(crate) enum RecordChange {
    Put {
        value: Vec<u8>,
        /// When it is gone, as Unix time in milliseconds.
        expires_ms: Option<u64>,
    },
    Delete,
}

/// Why a write was not made.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WriteRefusal {
    /// Which writes met another record than they expected, by their places, and the versions that are there.
    #[error("the stored value changed since it was read")]
    Conflict(Vec<(usize, Option<u64>)>),
    #[error("the plugin's records would take {bytes} bytes; {bytes_max} are granted")]
    NoBytes { bytes: u64, bytes_max: u64 },
    #[error("the plugin has {RECORDS_MAX} records, which is the limit")]
    NoRecords,
}

/// What the records of one plugin come to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StateUsage {
    pub(crate) plugin: String,
    pub(crate) bytes: u64,
    pub(crate) records: u64,
    pub(crate) last_version: u64,
    /// The batch that was written last.
    #[serde(default)]
    pub(crate) last_batch: Uuid,
}

/// What is stored of a record before its value.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RecordHead {
    pub(crate) plugin: String,
    pub(crate) key: String,
    pub(crate) version: u64,
    /// The batch that made it so.
    pub(crate) batch: Uuid,
    #[serde(default)]
    pub(crate) expires_ms: Option<u64>,
}

impl RecordHead {
    /// The head and the value of a stored record.
    fn split(stored: &[u8]) -> Result<(Self, &[u8]), RowFault> {
        // JSON has no bare line feed within a text.
        let end = stored.iter().position(|byte| *byte == b'\n');
        let end = end.unwrap_or(stored.len());
        let value = stored.get(end + 1..).unwrap_or_default();
        Ok((decode(&stored[..end])?, value))
    }

    /// Of what is under a key, with the bytes that the record counts.
    fn read(
        read: &mut dyn Reads,
        plugin: &str,
        key: &str,
    ) -> Result<Option<(Self, u64)>, RowFault> {
        read.one(RowQuery::Named(&record_name(plugin, key)), |stored| {
            let (head, value) = Self::split(stored)?;
            let counted = counted(&head.key, value);
            Ok((head, counted))
        })
    }

    pub(crate) fn row(&self, value: &[u8]) -> Result<Row, RowFault> {
        let mut stored = encode(self)?;
        stored.push(b'\n');
        stored.extend(value);
        let row = Row::bytes(record_name(&self.plugin, &self.key), stored);
        Ok(match self.expires_ms {
            Some(at) => row.due(at),
            None => row,
        })
    }

    fn is_there(&self, now_ms: u64) -> bool {
        self.expires_ms.is_none_or(|at| now_ms < at)
    }
}

impl StateUsage {
    fn read(read: &mut dyn Reads, plugin: &str) -> Result<Self, RowFault> {
        let stored = read.record(&RowName::of(USED, plugin))?;
        Ok(stored.unwrap_or_else(|| Self {
            plugin: plugin.to_owned(),
            ..Self::default()
        }))
    }

    pub(crate) fn row(&self) -> Result<Row, RowFault> {
        Row::record(RowName::of(USED, &self.plugin), self)
    }

    /// Counts one record in the place of another: the bytes that each counts.
    fn replace(&mut self, old: Option<u64>, new: Option<u64>) {
        self.bytes = (self.bytes + new.unwrap_or(0)).saturating_sub(old.unwrap_or(0));
        self.records =
            (self.records + u64::from(new.is_some())).saturating_sub(u64::from(old.is_some()));
    }
}

impl ExpectedVersion {
    fn is_met(self, found: Option<u64>) -> bool {
        match self {
            ExpectedVersion::Any => true,
            ExpectedVersion::Absent => found.is_none(),
            ExpectedVersion::Version(version) => found == Some(version),
        }
    }
}

/// A plugin's record, where it has not expired.
pub(crate) fn record(
    read: &mut dyn Reads,
    plugin: &str,
    key: &str,
    now_ms: u64,
) -> Result<Option<KeptRecord>, RowFault> {
    let found = read.one(RowQuery::Named(&record_name(plugin, key)), |stored| {
        let (head, value) = RecordHead::split(stored)?;
        Ok(head.is_there(now_ms).then(|| KeptRecord {
            value: value.to_vec(),
            version: head.version,
            expires_ms: head.expires_ms,
        }))
    })?;
    Ok(found.flatten())
}

/// A plugin's records whose keys begin with a prefix and that have not expired, in the order of their keys, from after a key
/// where one is named.
pub(crate) fn records(
    read: &mut dyn Reads,
    plugin: &str,
    (prefix, after): (&str, Option<&str>),
    records_max: usize,
    now_ms: u64,
) -> Result<Vec<ListedRecord>, RowFault> {
    let range = RowRange::prefixed(&RowName::of(RECORDS, plugin), prefix, usize::MAX);
    let range = match after {
        Some(after) => range.after(&record_name(plugin, after)),
        None => range,
    };
    let mut listed = Vec::new();
    read.ask(RowQuery::Range(&range), &mut |stored| {
        let (head, value) = RecordHead::split(stored)?;
        if head.is_there(now_ms) {
            listed.push(ListedRecord {
                key: head.key,
                version: head.version,
                bytes: value.len(),
                expires_ms: head.expires_ms,
            });
        }
        Ok(if listed.len() < records_max {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        })
    })?;
    Ok(listed)
}

/// Makes the writes of a batch if what is there is as expected and there is room; the outcome is the version that each record
/// has which was put.
pub(crate) fn write(
    read: &mut dyn Reads,
    batch: &StateBatch,
) -> Result<Decision<Result<u64, WriteRefusal>>, RowFault> {
    let used = StateUsage::read(read, &batch.plugin)?;
    if used.last_batch == batch.id {
        return Ok(Decision::unchanged(Ok(used.last_version)));
    }
    let mut found = Vec::with_capacity(batch.writes.len());
    for write in &batch.writes {
        let stored = RecordHead::read(read, &batch.plugin, &write.key)?;
        // Made before others wrote.
        if let Some((head, _)) = &stored
            && head.batch == batch.id
        {
            return Ok(Decision::unchanged(Ok(head.version)));
        }
        found.push(stored);
    }
    let conflicts = conflicts(batch, &found);
    if !conflicts.is_empty() {
        return Ok(Decision::unchanged(Err(WriteRefusal::Conflict(conflicts))));
    }
    let mut now = used.clone();
    now.last_version += 1;
    now.last_batch = batch.id;
    let mut writes = Vec::with_capacity(batch.writes.len() + 1);
    for (write, found) in batch.writes.iter().zip(found) {
        let old = found.map(|(_, bytes)| bytes);
        writes.push(apply(batch, write, old, &mut now)?);
    }
    if let Err(refusal) = fits(&used, &now, batch.bytes_max) {
        return Ok(Decision::unchanged(Err(refusal)));
    }
    writes.push(now.row()?.into());
    Ok(Decision::write(Ok(now.last_version), writes))
}

/// Which writes of a batch do not meet what they expect.
fn conflicts(batch: &StateBatch, found: &[Option<(RecordHead, u64)>]) -> Vec<(usize, Option<u64>)> {
    let met = batch.writes.iter().zip(found).map(|(write, found)| {
        let head = found.as_ref().map(|(head, _)| head);
        let head = head.filter(|head| head.is_there(batch.now_ms));
        let version = head.map(|head| head.version);
        (write.expected.is_met(version), version)
    });
    let unmet = met.enumerate().filter(|(_, (is_met, _))| !is_met);
    unmet
        .map(|(place, (_, version))| (place, version))
        .collect()
}

/// What a write does to its row, in the place of a record that counts so many bytes.
fn apply(
    batch: &StateBatch,
    write: &RecordWrite,
    old: Option<u64>,
    used: &mut StateUsage,
) -> Result<RowWrite, RowFault> {
    let is_over = |at: &u64| *at <= batch.now_ms;
    match &write.change {
        RecordChange::Put { value, expires_ms } if !expires_ms.as_ref().is_some_and(is_over) => {
            used.replace(old, Some(counted(&write.key, value)));
            let head = RecordHead {
                plugin: batch.plugin.to_string(),
                key: write.key.clone(),
                version: used.last_version,
                batch: batch.id,
                expires_ms: *expires_ms,
            };
            Ok(head.row(value)?.into())
        }
        // What has expired before it is there is not kept.
        RecordChange::Put { .. } | RecordChange::Delete => {
            used.replace(old, None);
            Ok(RowWrite::Delete(record_name(&batch.plugin, &write.key)))
        }
    }
}

/// Whether there is room for what a plugin would use. What makes its sums smaller always fits.
fn fits(before: &StateUsage, now: &StateUsage, bytes_max: u64) -> Result<(), WriteRefusal> {
    let bytes = now.bytes;
    if bytes > bytes_max && bytes > before.bytes {
        return Err(WriteRefusal::NoBytes { bytes, bytes_max });
    }
    if now.records > RECORDS_MAX && now.records > before.records {
        return Err(WriteRefusal::NoRecords);
    }
    Ok(())
}

/// Forgets those of a plugin's records that have expired; one that was put anew since then stands.
pub(crate) fn forget_expired(
    read: &mut dyn Reads,
    plugin: &str,
    keys: &[String],
    now_ms: u64,
) -> Result<Decision<()>, RowFault> {
    let mut used = StateUsage::read(read, plugin)?;
    let mut writes = Vec::with_capacity(keys.len() + 1);
    for key in keys {
        let found = RecordHead::read(read, plugin, key)?;
        if let Some((_, bytes)) = found.filter(|(head, _)| !head.is_there(now_ms)) {
            used.replace(Some(bytes), None);
            writes.push(RowWrite::Delete(record_name(plugin, key)));
        }
    }
    if !writes.is_empty() {
        writes.push(used.row()?.into());
    }
    Ok(Decision::write((), writes))
}

/// The plugin and key of records that have expired, at most so many.
pub(crate) fn expired(
    read: &mut dyn Reads,
    now_ms: u64,
    records_max: usize,
) -> Result<Vec<(String, String)>, RowFault> {
    let mut named = Vec::new();
    let due = RowQuery::Due(RECORDS, now_ms.saturating_add(1), records_max);
    read.ask(due, &mut |stored| {
        let (head, _) = RecordHead::split(stored)?;
        named.push((head.plugin, head.key));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(named)
}

/// What each plugin uses that ever kept a record, in the order of their names.
pub(crate) fn used(read: &mut dyn Reads) -> Result<Vec<StateUsage>, RowFault> {
    read.records(RowQuery::Range(&RowRange::all(USED, usize::MAX)))
}

fn record_name(plugin: &str, key: &str) -> RowName {
    RowName::of(RECORDS, plugin).text(key)
}

fn counted(key: &str, value: &[u8]) -> u64 {
    u64::try_from(key.len() + value.len())
        .map_or(u64::MAX, |bytes| bytes.saturating_add(RECORD_BYTES))
}
