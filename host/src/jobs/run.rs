//! One run of a job, as its plugin reaches it: what it keeps, how far it is, and the processor time that it has.
//!
//! Must not know how a run begins, nor what its end means for the job.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Jobs;
use super::record::{JobName, Progress};
use crate::registry::blocking;
use crate::registry::processor::CpuMeter;
use crate::stores::{Keep, KeepOutcome, StoreError};
use crate::telemetry::milliseconds;

/// One run of a job, as its plugin reaches it.
pub(crate) struct JobRun {
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) name: JobName,
    pub(crate) attempt: u32,
    /// Counts the processor time of the run.
    pub(crate) cpu: Arc<CpuMeter>,
    /// Of the runs before, and of all that may be.
    pub(super) cpu_before: Duration,
    pub(super) cpu_max: Duration,
    /// As it was told last. Never held over an await.
    pub(super) progress: Mutex<Progress>,
}

impl JobRun {
    /// Keeps an item, a checkpoint or both, with the progress as it was told last.
    pub(crate) async fn keep(
        &self,
        item: Option<(String, String)>,
        checkpoint: Option<String>,
    ) -> Result<KeepOutcome, StoreError> {
        let (attempt, progress, cpu_ms) = (self.attempt, self.progress(), self.cpu_ms());
        let keep = Keep { attempt, item, checkpoint, progress, cpu_ms };
        let kept = self.jobs.store.keep_for_job(self.name.clone(), keep).await?;
        if let KeepOutcome::Done { grown, .. } = kept {
            self.jobs.board().grew(&self.name, grown);
        }
        Ok(kept)
    }

    /// The keys of what the job emitted, in their order.
    pub(crate) async fn keys(&self) -> Result<Vec<String>, StoreError> {
        let (store, name) = (Arc::clone(&self.jobs.store), self.name.clone());
        blocking(move || store.job_item_keys(&name)).await
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
    pub(super) fn cpu_ms(&self) -> u64 {
        milliseconds(self.cpu_before + self.cpu.total())
    }

    /// Tells how far the work is.
    pub(crate) fn tell(&self, progress: Progress) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = progress;
    }

    pub(super) fn progress(&self) -> Progress {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
