//! The rules of the records that plugins keep: each with a version, and what each plugin uses of its room.
//!
//! All rows are the plugin's. A batch of writes compares and sets together with the sum that it changes, so that the sums are
//! those of the records. A record that has expired is as good as gone; its bytes count until it is forgotten.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::rows::{
    Decision, Reads, Row, RowFault, RowName, RowQuery, RowRange, RowWrite, Space,
    counted_unreadable, decode, encode,
};

/// Plugin, key → [`RecordHead`] in one line, and the value.
pub(crate) const RECORDS: Space = Space::new("state.record");
/// Plugin → [`StateUsage`] in one line, and the batches that were made last.
pub(crate) const USED: Space = Space::new("state.used");

/// What a record counts beside its key and value, as plugins are promised: about what its names and its head take beside them.
const RECORD_BYTES: u64 = 64;
/// What is read of records that are forgotten in one change, as they count.
const FORGOTTEN_BYTES_MAX: u64 = 1 << 20;
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
    #[serde(skip)]
    pub(crate) batches: RecentBatches,
}

/// The batches that a plugin made last, oldest first, each with its id and version: a batch that is made again after others is
/// known, also where others wrote over all that it put, or where it only deleted.
///
/// Read and written with each batch, and so bytes. Who makes one again does so at once: what comes between are batches of
/// calls that run at the same time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecentBatches(Vec<u8>);

/// Batches that are kept in mind.
const BATCHES_MAX: usize = 128;
/// Of an id and a version.
const BATCH_BYTES: usize = 16 + 8;

/// What is stored of a record before its value.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RecordHead {
    pub(crate) key: String,
    pub(crate) version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_ms: Option<u64>,
}

impl RecordHead {
    /// The head and the value of a stored record.
    fn split(stored: &[u8]) -> Result<(Self, &[u8]), RowFault> {
        let (line, value) = first_line(stored);
        Ok((decode(line)?, value))
    }

    /// Of what has a name, with the bytes that the record counts.
    fn read(read: &mut dyn Reads, name: &RowName) -> Result<Option<(Self, u64)>, RowFault> {
        read.one(RowQuery::Named(name), |stored| {
            let (head, value) = Self::split(stored)?;
            let counted = counted(&head.key, value);
            Ok((head, counted))
        })
    }

    pub(crate) fn row(&self, plugin: &str, value: &[u8]) -> Result<Row, RowFault> {
        let mut stored = encode(self)?;
        stored.push(b'\n');
        stored.extend(value);
        let row = Row::bytes(record_name(plugin, &self.key), stored);
        Ok(match self.expires_ms {
            Some(at) => row.due(at),
            None => row,
        })
    }

    fn is_there(&self, now_ms: u64) -> bool {
        self.expires_ms.is_none_or(|at| now_ms < at)
    }
}

impl StateBatch {
    /// Of its keys and values.
    pub(crate) fn bytes(&self) -> usize {
        let of_change = |change: &RecordChange| match change {
            RecordChange::Put { value, .. } => value.len(),
            RecordChange::Delete => 0,
        };
        let bytes = self.writes.iter();
        bytes
            .map(|write| write.key.len() + of_change(&write.change))
            .sum()
    }
}

impl RecentBatches {
    /// The version that a batch made, if it was made.
    fn version(&self, batch: Uuid) -> Option<u64> {
        let mut known = self.0.chunks_exact(BATCH_BYTES);
        let known = known.find_map(|known| known.strip_prefix(batch.as_bytes()))?;
        Some(u64::from_be_bytes(known.try_into().ok()?))
    }

    fn note(&mut self, batch: Uuid, version: u64) {
        self.0.extend(batch.as_bytes());
        self.0.extend(version.to_be_bytes());
        let over = self.0.len().saturating_sub(BATCHES_MAX * BATCH_BYTES);
        self.0.drain(..over);
    }
}

impl StateUsage {
    /// What [`StateUsage::row`] wrote.
    fn split(stored: &[u8]) -> Result<Self, RowFault> {
        let (line, batches) = first_line(stored);
        Ok(Self {
            batches: RecentBatches(batches.to_vec()),
            ..decode(line)?
        })
    }

    fn read(read: &mut dyn Reads, plugin: &str) -> Result<Self, RowFault> {
        let stored = read.one(RowQuery::Named(&RowName::of(USED, plugin)), Self::split)?;
        Ok(stored.unwrap_or_else(|| Self {
            plugin: plugin.to_owned(),
            ..Self::default()
        }))
    }

    pub(crate) fn row(&self) -> Result<Row, RowFault> {
        let mut stored = encode(self)?;
        stored.push(b'\n');
        stored.extend(&self.batches.0);
        Ok(Row::bytes(RowName::of(USED, &self.plugin), stored))
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
    if let Some(version) = used.batches.version(batch.id) {
        return Ok(Decision::unchanged(Ok(version)));
    }
    let mut found = Vec::with_capacity(batch.writes.len());
    for write in &batch.writes {
        let name = record_name(&batch.plugin, &write.key);
        found.push(RecordHead::read(read, &name)?);
    }
    let conflicts = conflicts(batch, &found);
    if !conflicts.is_empty() {
        return Ok(Decision::unchanged(Err(WriteRefusal::Conflict(conflicts))));
    }
    let is_delete = |write: &RecordWrite| matches!(write.change, RecordChange::Delete);
    if found.iter().all(Option::is_none) && batch.writes.iter().all(is_delete) {
        // There is nothing to delete.
        return Ok(Decision::unchanged(Ok(used.last_version)));
    }
    let mut now = used.clone();
    now.last_version += 1;
    now.batches.note(batch.id, now.last_version);
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
                key: write.key.clone(),
                version: used.last_version,
                expires_ms: *expires_ms,
            };
            Ok(head.row(&batch.plugin, value)?.into())
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

/// Forgets those of a plugin's records that have expired, until it has read so much of them; one that was put anew since then
/// stands. The outcome is how many rows cannot be read, which are left.
pub(crate) fn forget_expired(
    read: &mut dyn Reads,
    plugin: &str,
    names: &[RowName],
    now_ms: u64,
) -> Result<Decision<usize>, RowFault> {
    let mut used = StateUsage::read(read, plugin)?;
    let mut writes = Vec::with_capacity(names.len() + 1);
    let (mut looked_at, mut unreadable) = (0_u64, 0);
    for name in names {
        if looked_at >= FORGOTTEN_BYTES_MAX {
            break;
        }
        let Some(found) =
            RecordHead::read(read, name).or_else(counted_unreadable(&mut unreadable))?
        else {
            continue;
        };
        looked_at = looked_at.saturating_add(found.1);
        if !found.0.is_there(now_ms) {
            used.replace(Some(found.1), None);
            writes.push(RowWrite::Delete(name.clone()));
        }
    }
    if !writes.is_empty() {
        writes.push(used.row()?.into());
    }
    Ok(Decision::write(unreadable, writes))
}

/// The names of records that have expired, at most so many of each plugin.
pub(crate) fn expired(
    read: &mut dyn Reads,
    now_ms: u64,
    each_max: usize,
) -> Result<Vec<RowName>, RowFault> {
    read.due_names(RECORDS, now_ms.saturating_add(1), each_max)
}

/// What each plugin uses that ever kept a record, in the order of their names.
pub(crate) fn used(read: &mut dyn Reads) -> Result<Vec<StateUsage>, RowFault> {
    let all = RowRange::all(USED, usize::MAX);
    let mut used = Vec::new();
    read.ask(RowQuery::Range(&all), &mut |stored| {
        used.push(StateUsage::split(stored)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(used)
}

/// A stored value's JSON, and what stands behind it.
fn first_line(stored: &[u8]) -> (&[u8], &[u8]) {
    // JSON has no bare line feed within a text.
    let end = stored.iter().position(|byte| *byte == b'\n');
    let end = end.unwrap_or(stored.len());
    (&stored[..end], stored.get(end + 1..).unwrap_or_default())
}

fn record_name(plugin: &str, key: &str) -> RowName {
    RowName::of(RECORDS, plugin).text(key)
}

fn counted(key: &str, value: &[u8]) -> u64 {
    u64::try_from(key.len() + value.len())
        .map_or(u64::MAX, |bytes| bytes.saturating_add(RECORD_BYTES))
}
