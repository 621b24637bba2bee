//! Jobs, what they emitted, and the request ids that are taken.
//!
//! Every key begins with the owner, no write touches two of them, and each write is idempotent by the job's id and the
//! item's key. Must not know how a job is run.

use std::sync::Arc;

use redb::{ReadableTable, Table, TableDefinition, WriteTransaction};
use uuid::Uuid;

use super::embedded::{Store, StoreError, decode, encode, free_names, get_record};
use crate::contract::operation::Owner;
use crate::records::job::{BYTES_MAX, ITEMS_MAX, Job, JobName, JobProgress};

/// Owner, plugin, id.
type Name = (&'static str, &'static str, u128);

/// The record of a job.
const JOBS: TableDefinition<'_, Name, &[u8]> = TableDefinition::new("jobs");
/// With the place of an item → its key and value.
const ITEMS: TableDefinition<'_, (&str, &str, u128, u32), (&str, &str)> =
    TableDefinition::new("job-items");
/// With the key of an item.
const ITEM_KEYS: TableDefinition<'_, (&str, &str, u128, &str), ()> =
    TableDefinition::new("job-item-keys");
/// Where a job has come to.
const CHECKPOINTS: TableDefinition<'_, Name, &str> = TableDefinition::new("job-checkpoints");
/// Owner, plugin, request id → the job, the submission's fingerprint, and when the id is free again.
const TAKEN: TableDefinition<'_, (&str, &str, &str), (u128, &str, u64)> =
    TableDefinition::new("job-request-ids");
/// When, owner, plugin, request id: the order in which request ids are free again.
const TAKEN_UNTIL: TableDefinition<'_, (u64, &str, &str, &str), ()> =
    TableDefinition::new("job-request-id-times");

/// How long a request id is taken.
const TAKEN_MS: u64 = 24 * 3600 * 1000;

/// A submission that was made before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Earlier {
    pub(crate) id: Uuid,
    pub(crate) is_same: bool,
}

/// What came of keeping something for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeepOutcome {
    /// Whether it is new, and by how many bytes the job grew.
    Done { is_new: bool, grown: i64 },
    /// The run is not the job's any more.
    Ended,
    /// There is no room for it.
    Full,
}

/// What a run keeps: an item, a checkpoint, or both.
#[derive(Clone, Debug)]
pub(crate) struct Keep {
    pub(crate) attempt: u32,
    pub(crate) item: Option<(String, String)>,
    pub(crate) checkpoint: Option<String>,
    pub(crate) progress: JobProgress,
    /// Processor time of all its runs so far, in milliseconds.
    pub(crate) cpu_ms: u64,
}

/// A page of what a job emitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ItemPage {
    /// Key and value.
    pub(crate) items: Vec<(String, String)>,
    /// Where the next one begins, if there are more items.
    pub(crate) next: Option<u32>,
}

pub(super) fn create_tables(transaction: &WriteTransaction) -> Result<(), StoreError> {
    transaction.open_table(JOBS)?;
    transaction.open_table(ITEMS)?;
    transaction.open_table(ITEM_KEYS)?;
    transaction.open_table(CHECKPOINTS)?;
    transaction.open_table(TAKEN)?;
    transaction.open_table(TAKEN_UNTIL)?;
    Ok(())
}

impl JobName {
    fn key(&self) -> (&str, &str, u128) {
        (self.owner.as_str(), &self.plugin, self.id.as_u128())
    }
}

impl Store {
    /// Keeps a new job and takes its request id for a day, or gives back what the id was taken for.
    pub(crate) async fn submit_job(
        &self,
        name: JobName,
        request_id: String,
        fingerprint: String,
        job: Job,
    ) -> Result<Option<Earlier>, StoreError> {
        self.write(move |transaction| submit(transaction, &name, &request_id, &fingerprint, &job))
            .await
    }

    /// What a request id is taken for at this moment.
    pub(crate) fn earlier_job(
        &self,
        name: &JobName,
        request_id: &str,
        fingerprint: &str,
        now_ms: u64,
    ) -> Result<Option<Earlier>, StoreError> {
        self.read(TAKEN, |table| {
            earlier(table, name, request_id, fingerprint, now_ms)
        })
    }

    /// The record of a job.
    pub(crate) fn job(&self, name: &JobName) -> Result<Option<Job>, StoreError> {
        self.read(JOBS, |table| get_record(table, name.key()))
    }

    /// Every job, in no order that means something.
    pub(crate) fn jobs(&self) -> Result<Vec<(JobName, Job)>, StoreError> {
        self.read(JOBS, |table| {
            let mut jobs = Vec::new();
            for entry in table.iter()? {
                let (key, value) = entry?;
                let (owner, plugin, id) = key.value();
                let Some(owner) = Owner::read(owner) else {
                    continue;
                };
                let name = JobName {
                    owner,
                    plugin: Arc::from(plugin),
                    id: Uuid::from_u128(id),
                };
                jobs.push((name, decode(value.value())?));
            }
            Ok(jobs)
        })
    }

    /// Changes the record of a job. `None` where there is none.
    pub(crate) async fn change_job<T: Send + 'static>(
        &self,
        name: JobName,
        mut change: impl FnMut(&mut Job) -> T + Send + 'static,
    ) -> Result<Option<T>, StoreError> {
        self.write(move |transaction| {
            let mut jobs = transaction.open_table(JOBS)?;
            let Some(mut job) = get_record(&jobs, name.key())? else {
                return Ok(None);
            };
            let changed = change(&mut job);
            put(&mut jobs, &name, &job)?;
            Ok(Some(changed))
        })
        .await
    }

    /// Keeps what a run emits, all of it or nothing.
    pub(crate) async fn keep_for_job(
        &self,
        name: JobName,
        keep: Keep,
    ) -> Result<KeepOutcome, StoreError> {
        self.write(move |transaction| kept(transaction, &name, &keep))
            .await
    }

    /// Where a job has come to.
    pub(crate) fn job_checkpoint(&self, name: &JobName) -> Result<Option<String>, StoreError> {
        self.read(CHECKPOINTS, |table| {
            Ok(table.get(name.key())?.map(|value| value.value().to_owned()))
        })
    }

    /// What a job emitted, from a place on: at most so many items and, but for the first, bytes of values.
    pub(crate) fn job_items(
        &self,
        name: &JobName,
        offset: u32,
        items_max: u32,
        bytes_max: usize,
    ) -> Result<ItemPage, StoreError> {
        let (owner, plugin, id) = name.key();
        self.read(ITEMS, |table| {
            let mut page = ItemPage::default();
            let mut bytes = 0;
            let range = (owner, plugin, id, offset)..=(owner, plugin, id, u32::MAX);
            for (entry, place) in table.range(range)?.zip(offset..) {
                let (_, value) = entry?;
                let (key, value) = value.value();
                let taken = u32::try_from(page.items.len()).unwrap_or(u32::MAX);
                if taken == items_max || (taken > 0 && bytes + value.len() > bytes_max) {
                    page.next = Some(place);
                    break;
                }
                bytes += value.len();
                page.items.push((key.to_owned(), value.to_owned()));
            }
            Ok(page)
        })
    }

    /// The keys of all that a job emitted, in their order.
    pub(crate) fn job_item_keys(&self, name: &JobName) -> Result<Vec<String>, StoreError> {
        let (owner, plugin, id) = name.key();
        self.read(ITEMS, |table| {
            let range = (owner, plugin, id, 0)..=(owner, plugin, id, u32::MAX);
            let entries = table.range(range)?;
            entries
                .map(|entry| Ok(entry?.1.value().0.to_owned()))
                .collect()
        })
    }

    /// Forgets a job with all that it emitted. Its request id stays taken.
    pub(crate) async fn forget_job(&self, name: JobName) -> Result<(), StoreError> {
        self.write(move |transaction| forget(transaction, &name))
            .await
    }

    /// Whether the day of a request id is over.
    pub(crate) fn has_request_ids_to_free(&self, now_ms: u64) -> Result<bool, StoreError> {
        self.read(TAKEN_UNTIL, |table| {
            let first = table.first()?;
            Ok(first.is_some_and(|(name, _)| name.value().0 <= now_ms))
        })
    }

    /// Frees request ids whose day is over, a bounded number of them.
    pub(crate) async fn free_request_ids(&self, now_ms: u64) -> Result<(), StoreError> {
        self.write(move |transaction| free(transaction, now_ms))
            .await
    }
}

fn put(
    jobs: &mut Table<'_, Name, &'static [u8]>,
    name: &JobName,
    job: &Job,
) -> Result<(), StoreError> {
    jobs.insert(name.key(), encode(job)?.as_slice())?;
    Ok(())
}

fn submit(
    transaction: &WriteTransaction,
    name: &JobName,
    request_id: &str,
    fingerprint: &str,
    job: &Job,
) -> Result<Option<Earlier>, StoreError> {
    let (owner, plugin, id) = name.key();
    let mut taken = transaction.open_table(TAKEN)?;
    if let Some(earlier) = earlier(&taken, name, request_id, fingerprint, job.submitted_ms)? {
        return Ok(Some(earlier));
    }
    let until = job.submitted_ms.saturating_add(TAKEN_MS);
    taken.insert((owner, plugin, request_id), (id, fingerprint, until))?;
    let mut times = transaction.open_table(TAKEN_UNTIL)?;
    times.insert((until, owner, plugin, request_id), ())?;
    put(&mut transaction.open_table(JOBS)?, name, job)?;
    Ok(None)
}

fn earlier(
    taken: &impl ReadableTable<(&'static str, &'static str, &'static str), (u128, &'static str, u64)>,
    name: &JobName,
    request_id: &str,
    fingerprint: &str,
    now_ms: u64,
) -> Result<Option<Earlier>, StoreError> {
    let (owner, plugin, _) = name.key();
    let found = taken.get((owner, plugin, request_id))?;
    Ok(found.and_then(|value| {
        let (id, known, until) = value.value();
        let earlier = Earlier {
            id: Uuid::from_u128(id),
            is_same: known == fingerprint,
        };
        (until > now_ms).then_some(earlier)
    }))
}

fn kept(
    transaction: &WriteTransaction,
    name: &JobName,
    keep: &Keep,
) -> Result<KeepOutcome, StoreError> {
    let (owner, plugin, id) = name.key();
    let mut jobs = transaction.open_table(JOBS)?;
    let known: Option<Job> = get_record(&jobs, name.key())?;
    let Some(mut job) = known.filter(|job| job.is_run(keep.attempt)) else {
        return Ok(KeepOutcome::Ended);
    };
    let mut keys = transaction.open_table(ITEM_KEYS)?;
    let mut checkpoints = transaction.open_table(CHECKPOINTS)?;
    let item = match &keep.item {
        Some((key, _)) if keys.get((owner, plugin, id, key.as_str()))?.is_some() => None,
        Some((key, value)) => Some((key.as_str(), value.as_str())),
        None => None,
    };
    let replaced = checkpoints
        .get(name.key())?
        .map_or(0, |value| value.value().len());
    let added = item.map_or(0, |(key, value)| 2 * key.len() + value.len());
    let checkpoint = keep.checkpoint.as_ref().map_or(replaced, String::len);
    let bytes = job.bytes + as_u64(added) + as_u64(checkpoint) - as_u64(replaced).min(job.bytes);
    if bytes > BYTES_MAX || (item.is_some() && job.items >= ITEMS_MAX) {
        return Ok(KeepOutcome::Full);
    }
    if let Some((key, value)) = item {
        let mut items = transaction.open_table(ITEMS)?;
        items.insert((owner, plugin, id, job.items), (key, value))?;
        keys.insert((owner, plugin, id, key), ())?;
        job.items += 1;
    }
    if let Some(checkpoint) = &keep.checkpoint {
        checkpoints.insert(name.key(), checkpoint.as_str())?;
    }
    let grown = i64::try_from(bytes)
        .unwrap_or(i64::MAX)
        .saturating_sub_unsigned(job.bytes);
    (job.bytes, job.progress, job.cpu_ms) = (bytes, keep.progress, keep.cpu_ms);
    put(&mut jobs, name, &job)?;
    Ok(KeepOutcome::Done {
        is_new: item.is_some(),
        grown,
    })
}

fn as_u64(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

fn forget(transaction: &WriteTransaction, name: &JobName) -> Result<(), StoreError> {
    let (owner, plugin, id) = name.key();
    transaction.open_table(JOBS)?.remove(name.key())?;
    let mut checkpoints = transaction.open_table(CHECKPOINTS)?;
    checkpoints.remove(name.key())?;
    let mut items = transaction.open_table(ITEMS)?;
    let mut keys = transaction.open_table(ITEM_KEYS)?;
    let all = (owner, plugin, id, 0)..=(owner, plugin, id, u32::MAX);
    for entry in items.extract_from_if(all, |_, _| true)? {
        let (_, value) = entry?;
        keys.remove((owner, plugin, id, value.value().0))?;
    }
    Ok(())
}

fn free(transaction: &WriteTransaction, now_ms: u64) -> Result<(), StoreError> {
    let mut times = transaction.open_table(TAKEN_UNTIL)?;
    let mut taken = transaction.open_table(TAKEN)?;
    free_names(&mut times, &mut taken, now_ms + 1, |(_, _, until)| until)
}
