//! Jobs, what they emitted, and the request ids that are taken.

use super::{Store, StoreError, by_partition, tell_unreadable};
use crate::records::job::{Job, JobName};
use crate::records::job_rules::{self, Earlier, ItemPage, JOBS, Keep, KeepOutcome, REQUEST_IDS};
use crate::records::rows::Reads;

/// Request ids of one owner that are freed together.
const FREED_AT_ONCE: usize = 1000;

impl Store {
    /// Keeps a new job and takes its request id for a day, or gives back what the id was taken for.
    pub(crate) async fn submit_job(
        &self,
        name: JobName,
        request_id: String,
        fingerprint: String,
        job: Job,
    ) -> Result<Option<Earlier>, StoreError> {
        let (owner, bytes) = (name.owner, job.input.len());
        self.change_large(owner.as_str(), bytes, move |read| {
            job_rules::submit(read, &name, &request_id, &fingerprint, &job)
        })
        .await
    }

    /// What a request id is taken for at this moment.
    pub(crate) async fn earlier_job(
        &self,
        name: &JobName,
        request_id: &str,
        fingerprint: &str,
        now_ms: u64,
    ) -> Result<Option<Earlier>, StoreError> {
        let earlier =
            |read: &mut dyn Reads| job_rules::earlier(read, name, request_id, fingerprint, now_ms);
        self.engine.view(earlier).await
    }

    /// The record of a job.
    pub(crate) async fn job(&self, name: &JobName) -> Result<Option<Job>, StoreError> {
        let name = name.clone();
        self.engine
            .survey(move |read| job_rules::job(read, &name))
            .await
    }

    /// Every job that can be read, in no order that means something.
    pub(crate) async fn jobs(&self) -> Result<Vec<(JobName, Job)>, StoreError> {
        let (jobs, unreadable) = self.engine.survey(|read| job_rules::jobs(read)).await?;
        tell_unreadable(JOBS, unreadable);
        Ok(jobs)
    }

    /// Changes the record of a job. `None` where there is none. Changing it again must change nothing.
    pub(crate) async fn change_job<T: Send + 'static>(
        &self,
        name: JobName,
        mut change: impl FnMut(&mut Job) -> T + Send + 'static,
    ) -> Result<Option<T>, StoreError> {
        let owner = name.owner;
        self.change(owner.as_str(), move |read| {
            job_rules::change(read, &name, &mut change)
        })
        .await
    }

    /// Keeps what a run emits, all of it or nothing.
    pub(crate) async fn keep_for_job(
        &self,
        name: JobName,
        keep: Keep,
    ) -> Result<KeepOutcome, StoreError> {
        let (owner, bytes) = (name.owner, keep.bytes());
        self.change_large(owner.as_str(), bytes, move |read| {
            job_rules::keep(read, &name, &keep)
        })
        .await
    }

    /// Where a job has come to.
    pub(crate) async fn job_checkpoint(
        &self,
        name: &JobName,
    ) -> Result<Option<String>, StoreError> {
        let name = name.clone();
        self.engine
            .survey(move |read| job_rules::checkpoint(read, &name))
            .await
    }

    /// What a job emitted, from a place on: at most so many items and, but for the first, bytes of values.
    pub(crate) async fn job_items(
        &self,
        name: &JobName,
        offset: u32,
        items_max: u32,
        bytes_max: usize,
    ) -> Result<ItemPage, StoreError> {
        let name = name.clone();
        self.engine
            .survey(move |read| job_rules::items(read, &name, offset, items_max, bytes_max))
            .await
    }

    /// The keys of all that a job emitted, in their order.
    pub(crate) async fn job_item_keys(&self, name: &JobName) -> Result<Vec<String>, StoreError> {
        let name = name.clone();
        self.engine
            .survey(move |read| job_rules::item_keys(read, &name))
            .await
    }

    /// Forgets a job with all that it emitted. Its request id stays taken.
    pub(crate) async fn forget_job(&self, name: JobName) -> Result<(), StoreError> {
        let owner = name.owner;
        self.change(owner.as_str(), move |read| job_rules::forget(read, &name))
            .await
    }

    /// Frees request ids whose day is over, a bounded number of each owner's.
    pub(crate) async fn free_request_ids(&self, now_ms: u64) -> Result<(), StoreError> {
        let over = now_ms.saturating_add(1);
        let over = move |read: &mut dyn Reads| read.due_names(REQUEST_IDS, over, FREED_AT_ONCE);
        let over = by_partition(self.engine.survey(over).await?);
        let freed = over.into_iter().map(|(owner, names)| {
            let free =
                move |read: &mut dyn Reads| job_rules::free_request_ids(read, &names, now_ms);
            (owner, free)
        });
        let unreadable = self.change_each(freed).await?.iter().sum();
        tell_unreadable(REQUEST_IDS, unreadable);
        Ok(())
    }
}
