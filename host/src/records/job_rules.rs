//! The rules of what is kept of jobs: their records, what they emitted, and the request ids that are taken.
//!
//! All rows are the job's owner's, and each write is idempotent by the job's id and the item's key. Must not know how a job is
//! run.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::job::{BYTES_MAX, ITEMS_MAX, Job, JobName, JobProgress};
use super::rows::{
    Decision, Reads, Row, RowFault, RowName, RowQuery, RowRange, RowWrite, Space,
    counted_unreadable, decode, encode,
};
use crate::contract::operation::Owner;

/// Owner, plugin, id → [`KeptJob`].
pub(crate) const JOBS: Space = Space::new("job");
/// With the place of an item → its key and value.
pub(crate) const ITEMS: Space = Space::new("job.item");
/// With the key of an item → [`ItemKey`].
pub(crate) const ITEM_KEYS: Space = Space::new("job.item-key");
/// Owner, plugin, id → where the job has come to.
pub(crate) const CHECKPOINTS: Space = Space::new("job.checkpoint");
/// Owner, plugin, request id → [`TakenRequestId`]; due when it is free again.
pub(crate) const REQUEST_IDS: Space = Space::new("job.request-id");

/// How long a request id is taken.
const TAKEN_MS: u64 = 24 * 3600 * 1000;

/// A job as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeptJob {
    owner: String,
    plugin: String,
    id: Uuid,
    job: Job,
}

/// A request id that was used for a submission.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TakenRequestId {
    pub(crate) owner: String,
    pub(crate) plugin: String,
    pub(crate) request_id: String,
    /// The job that it was used for.
    pub(crate) id: Uuid,
    pub(crate) fingerprint: String,
    pub(crate) until_ms: u64,
}

/// A submission that was made before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Earlier {
    pub(crate) id: Uuid,
    pub(crate) is_same: bool,
}

/// What came of keeping something for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeepOutcome {
    /// Whether it is new, and how many bytes the job has by now.
    Done { is_new: bool, bytes: u64 },
    /// The run is not the job's any more.
    Ended,
    /// There is no room for it.
    Full,
}

/// What a run keeps: an item, a checkpoint, or both.
#[derive(Clone, Debug)]
pub(crate) struct Keep {
    /// Unique: an item that is kept again by the same id is as new as it was.
    pub(crate) id: Uuid,
    pub(crate) run: Uuid,
    pub(crate) item: Option<(String, String)>,
    pub(crate) checkpoint: Option<String>,
    pub(crate) progress: JobProgress,
    /// Processor time of all its runs so far, in milliseconds.
    pub(crate) cpu_ms: u64,
}

/// What is stored of an item under its key.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ItemKey {
    place: u32,
    key: String,
    /// What kept it.
    #[serde(default)]
    keep: Uuid,
}

/// A page of what a job emitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ItemPage {
    /// Key and value.
    pub(crate) items: Vec<(String, String)>,
    /// Where the next one begins, if there are more items.
    pub(crate) next: Option<u32>,
}

impl Keep {
    /// Of what is kept.
    pub(crate) fn bytes(&self) -> usize {
        let item = self.item.as_ref();
        item.map_or(0, |(key, value)| key.len() + value.len())
            + self.checkpoint.as_ref().map_or(0, String::len)
    }
}

impl JobName {
    /// What the job's rows are called.
    fn row_name(&self, space: Space) -> RowName {
        let name = RowName::of(space, self.owner.as_str());
        name.text(&self.plugin).id(self.id.as_u128())
    }

    /// The row of the job.
    pub(crate) fn row(&self, job: &Job) -> Result<Row, RowFault> {
        let kept = KeptJob {
            owner: self.owner.as_str().to_owned(),
            plugin: self.plugin.to_string(),
            id: self.id,
            job: job.clone(),
        };
        Row::record(self.row_name(JOBS), &kept)
    }

    /// The rows of an item.
    pub(crate) fn item_rows(
        &self,
        place: u32,
        key: &str,
        value: &str,
        keep: Uuid,
    ) -> Result<[Row; 2], RowFault> {
        let item = Row::record(self.row_name(ITEMS).number(place), &(key, value))?;
        let name = self.row_name(ITEM_KEYS).text(key);
        let key = key.to_owned();
        Ok([item, Row::record(name, &ItemKey { place, key, keep })?])
    }

    /// The row of the checkpoint.
    pub(crate) fn checkpoint_row(&self, checkpoint: &str) -> Result<Row, RowFault> {
        Ok(Row::bytes(self.row_name(CHECKPOINTS), encode(&checkpoint)?))
    }
}

impl TakenRequestId {
    fn row_name(owner: &str, plugin: &str, request_id: &str) -> RowName {
        RowName::of(REQUEST_IDS, owner)
            .text(plugin)
            .text(request_id)
    }

    pub(crate) fn name(&self) -> RowName {
        Self::row_name(&self.owner, &self.plugin, &self.request_id)
    }

    pub(crate) fn row(&self) -> Result<Row, RowFault> {
        Ok(Row::record(self.name(), self)?.due(self.until_ms))
    }
}

/// Keeps a new job and takes its request id for a day; the outcome is what the id was taken for.
pub(crate) fn submit(
    read: &mut dyn Reads,
    name: &JobName,
    request_id: &str,
    fingerprint: &str,
    job: &Job,
) -> Result<Decision<Option<Earlier>>, RowFault> {
    if let Some(earlier) = earlier(read, name, request_id, fingerprint, job.submitted_ms)? {
        // This very submission, made again.
        let outcome = Some(earlier).filter(|earlier| earlier.id != name.id);
        return Ok(Decision::unchanged(outcome));
    }
    let taken = TakenRequestId {
        owner: name.owner.as_str().to_owned(),
        plugin: name.plugin.to_string(),
        request_id: request_id.to_owned(),
        id: name.id,
        fingerprint: fingerprint.to_owned(),
        until_ms: job.submitted_ms.saturating_add(TAKEN_MS),
    };
    let writes = vec![taken.row()?.into(), name.row(job)?.into()];
    Ok(Decision::write(None, writes))
}

/// What a request id is taken for at a moment.
pub(crate) fn earlier(
    read: &mut dyn Reads,
    name: &JobName,
    request_id: &str,
    fingerprint: &str,
    now_ms: u64,
) -> Result<Option<Earlier>, RowFault> {
    let row = TakenRequestId::row_name(name.owner.as_str(), &name.plugin, request_id);
    let taken: Option<TakenRequestId> = read.record(&row)?;
    let taken = taken.filter(|taken| taken.until_ms > now_ms);
    Ok(taken.map(|taken| Earlier {
        id: taken.id,
        is_same: taken.fingerprint == fingerprint,
    }))
}

/// The record of a job.
pub(crate) fn job(read: &mut dyn Reads, name: &JobName) -> Result<Option<Job>, RowFault> {
    let kept: Option<KeptJob> = read.record(&name.row_name(JOBS))?;
    Ok(kept.map(|kept| kept.job))
}

/// Every job, in no order that means something, and how many rows cannot be read.
pub(crate) fn jobs(read: &mut dyn Reads) -> Result<(Vec<(JobName, Job)>, usize), RowFault> {
    let all = RowRange::all(JOBS, usize::MAX);
    let (kept, unreadable): (Vec<KeptJob>, _) = read.readable(RowQuery::Range(&all))?;
    let named = kept.into_iter().filter_map(|kept| {
        let name = JobName {
            owner: Owner::read(&kept.owner)?,
            plugin: Arc::from(kept.plugin),
            id: kept.id,
        };
        Some((name, kept.job))
    });
    Ok((named.collect(), unreadable))
}

/// Changes the record of a job; the outcome is `None` where there is none. Changing it again must change nothing.
pub(crate) fn change<T>(
    read: &mut dyn Reads,
    name: &JobName,
    change: &mut impl FnMut(&mut Job) -> T,
) -> Result<Decision<Option<T>>, RowFault> {
    let Some(mut job) = job(read, name)? else {
        return Ok(Decision::unchanged(None));
    };
    let changed = change(&mut job);
    let writes = vec![name.row(&job)?.into()];
    Ok(Decision::write(Some(changed), writes))
}

/// Keeps what a run emits, all of it or nothing.
pub(crate) fn keep(
    read: &mut dyn Reads,
    name: &JobName,
    keep: &Keep,
) -> Result<Decision<KeepOutcome>, RowFault> {
    let Some(mut job) = job(read, name)?.filter(|job| job.is_run(keep.run)) else {
        return Ok(Decision::unchanged(KeepOutcome::Ended));
    };
    let mut item = keep.item.as_ref();
    if let Some((key, _)) = item {
        let known: Option<ItemKey> = read.record(&name.row_name(ITEM_KEYS).text(key))?;
        if known.as_ref().is_some_and(|known| known.keep == keep.id) {
            // Made before: what was kept since then stands.
            let bytes = job.bytes;
            return Ok(Decision::unchanged(KeepOutcome::Done {
                is_new: true,
                bytes,
            }));
        }
        item = item.filter(|_| known.is_none());
    }
    let mut bytes = job.bytes;
    if let Some((key, value)) = item {
        bytes += as_u64(2 * key.len() + value.len());
    }
    if let Some(new) = &keep.checkpoint {
        let replaced = match job.checkpoint_bytes {
            Some(bytes) => bytes,
            None => checkpoint(read, name)?.map_or(0, |old| as_u64(old.len())),
        };
        bytes = bytes.saturating_sub(replaced) + as_u64(new.len());
        job.checkpoint_bytes = Some(as_u64(new.len()));
    }
    if bytes > BYTES_MAX || (item.is_some() && job.items >= ITEMS_MAX) {
        return Ok(Decision::unchanged(KeepOutcome::Full));
    }
    let mut writes = Vec::with_capacity(4);
    if let Some((key, value)) = item {
        let rows = name.item_rows(job.items, key, value, keep.id)?;
        writes.extend(rows.map(RowWrite::from));
        job.items += 1;
    }
    if let Some(checkpoint) = &keep.checkpoint {
        writes.push(name.checkpoint_row(checkpoint)?.into());
    }
    (job.bytes, job.progress, job.cpu_ms) = (bytes, keep.progress, keep.cpu_ms);
    writes.push(name.row(&job)?.into());
    let is_new = item.is_some();
    Ok(Decision::write(KeepOutcome::Done { is_new, bytes }, writes))
}

/// Where a job has come to.
pub(crate) fn checkpoint(read: &mut dyn Reads, name: &JobName) -> Result<Option<String>, RowFault> {
    read.record(&name.row_name(CHECKPOINTS))
}

/// What a job emitted, from a place on: at most so many items and, but for the first, bytes of values.
pub(crate) fn items(
    read: &mut dyn Reads,
    name: &JobName,
    offset: u32,
    items_max: u32,
    bytes_max: usize,
) -> Result<ItemPage, RowFault> {
    let all = name.row_name(ITEMS);
    // One more, to know whether there is one.
    let rows_max = usize::try_from(items_max).map_or(usize::MAX, |max| max.saturating_add(1));
    let range = RowRange::under(&all, rows_max).from(&all.number(offset));
    let (mut page, mut bytes) = (ItemPage::default(), 0);
    read.ask(RowQuery::Range(&range), &mut |row| {
        let (key, value): (String, String) = decode(row)?;
        let taken = u32::try_from(page.items.len()).unwrap_or(u32::MAX);
        if taken == items_max || (taken > 0 && bytes + value.len() > bytes_max) {
            page.next = Some(offset.saturating_add(taken));
            return Ok(ControlFlow::Break(()));
        }
        bytes += value.len();
        page.items.push((key, value));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(page)
}

/// The keys of all that a job emitted, in their order.
pub(crate) fn item_keys(read: &mut dyn Reads, name: &JobName) -> Result<Vec<String>, RowFault> {
    let all = RowRange::under(&name.row_name(ITEM_KEYS), usize::MAX);
    let mut keys: Vec<ItemKey> = read.records(RowQuery::Range(&all))?;
    keys.sort_unstable_by_key(|key| key.place);
    Ok(keys.into_iter().map(|key| key.key).collect())
}

/// Forgets a job with all that it emitted. Its request id stays taken.
pub(crate) fn forget(read: &mut dyn Reads, name: &JobName) -> Result<Decision<()>, RowFault> {
    let mut names = vec![name.row_name(JOBS), name.row_name(CHECKPOINTS)];
    for (key, place) in item_keys(read, name)?.into_iter().zip(0..) {
        names.push(name.row_name(ITEMS).number(place));
        names.push(name.row_name(ITEM_KEYS).text(&key));
    }
    let writes = names.into_iter().map(RowWrite::Delete).collect();
    Ok(Decision::write((), writes))
}

/// Frees those of an owner's request ids whose day is over; one that was taken anew since then stands. The outcome is how many
/// rows cannot be read, which are left.
pub(crate) fn free_request_ids(
    read: &mut dyn Reads,
    names: &[RowName],
    now_ms: u64,
) -> Result<Decision<usize>, RowFault> {
    let (mut writes, mut unreadable) = (Vec::new(), 0);
    for name in names {
        let taken = read.record(name);
        let taken: Option<TakenRequestId> = taken.or_else(counted_unreadable(&mut unreadable))?;
        if taken.is_some_and(|taken| taken.until_ms <= now_ms) {
            writes.push(RowWrite::Delete(name.clone()));
        }
    }
    Ok(Decision::write(unreadable, writes))
}

fn as_u64(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
