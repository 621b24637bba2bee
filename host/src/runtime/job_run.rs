//! One run of a job, as its plugin reaches it. Knows no plugin and no turn.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use uuid::Uuid;

use super::processor::CpuMeter;
use crate::base::clock::milliseconds;
use crate::queue::{JobQueue, RunReport};
use crate::records::job::{Job, JobName, JobProgress, RunEnd};
use crate::records::job_rules::{Keep, KeepOutcome};
use crate::stores::StoreError;

/// One run of a job, as its plugin reaches it.
pub(crate) struct JobRun {
    jobs: Arc<JobQueue>,
    pub(crate) name: JobName,
    id: Uuid,
    pub(crate) attempt: u32,
    /// Counts the processor time of the run.
    pub(crate) cpu: Arc<CpuMeter>,
    /// Of the runs before, and of all that may be.
    cpu_before: Duration,
    cpu_max: Duration,
    /// As it was told last. Never held over an await.
    progress: Mutex<JobProgress>,
}

impl JobRun {
    /// A run that begins now, by this id.
    pub(crate) fn new(jobs: &Arc<JobQueue>, name: JobName, id: Uuid, job: &Job) -> Self {
        Self {
            jobs: Arc::clone(jobs),
            name,
            id,
            attempt: job.attempt,
            cpu: Arc::default(),
            cpu_before: Duration::from_millis(job.cpu_ms),
            cpu_max: jobs.cpu_max(),
            progress: Mutex::new(job.progress),
        }
    }

    /// How it ended, with how far it came.
    pub(crate) fn report(&self, end: RunEnd) -> RunReport {
        RunReport {
            run: self.id,
            end,
            progress: self.progress(),
            cpu_ms: self.cpu_ms(),
        }
    }

    /// Keeps an item, a checkpoint or both, with the progress as it was told last.
    pub(crate) async fn keep(
        &self,
        item: Option<(String, String)>,
        checkpoint: Option<String>,
    ) -> Result<KeepOutcome, StoreError> {
        let keep = Keep {
            id: Uuid::now_v7(),
            run: self.id,
            item,
            checkpoint,
            progress: self.progress(),
            cpu_ms: self.cpu_ms(),
        };
        self.jobs.keep(&self.name, keep).await
    }

    /// The keys of what the job emitted, in their order.
    pub(crate) async fn keys(&self) -> Result<Vec<String>, StoreError> {
        self.jobs.item_keys(&self.name).await
    }

    /// The processor time that the job may still use.
    pub(crate) fn cpu_left(&self) -> Duration {
        self.cpu_max.saturating_sub(self.cpu_before)
    }

    /// The processor time that the whole job may use.
    pub(crate) fn cpu_max(&self) -> Duration {
        self.cpu_max
    }

    /// What all runs used so far. Within a poll it must be asked on the polling thread.
    fn cpu_ms(&self) -> u64 {
        milliseconds(self.cpu_before + self.cpu.total())
    }

    /// Tells how far the work is.
    pub(crate) fn tell(&self, progress: JobProgress) {
        *self.progress.lock() = progress;
    }

    fn progress(&self) -> JobProgress {
        *self.progress.lock()
    }
}
