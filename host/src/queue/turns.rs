//! Turns of jobs as their runner takes them: the next one, what a run begins from, and how it ended, written.
//!
//! Must not know what runs a job, nor what a plugin does in it.

use std::time::{Duration, Instant, SystemTime};

use uuid::Uuid;

use super::JobQueue;
use super::board::{NextJob, RunEnding};
use crate::base::clock::epoch_ms;
use crate::records::job::{Job, JobName, JobProgress, RunEnd};
use crate::records::job_rules::{Keep, KeepOutcome};
use crate::stores::StoreError;

/// How often those that wait are looked at, whether they are late.
const LATE: Duration = Duration::from_secs(1);

/// How a run of a job ended, and how far it came.
pub(crate) struct RunReport {
    pub(crate) run: Uuid,
    pub(crate) end: RunEnd,
    pub(crate) progress: JobProgress,
    /// What all runs used so far.
    pub(crate) cpu_ms: u64,
}

impl JobQueue {
    /// The next job whose turn it is, if it is one's.
    pub(crate) fn next_turn(&self) -> Option<NextJob> {
        self.board
            .lock()
            .next(Instant::now(), epoch_ms(SystemTime::now()))
    }

    /// Waits until a job may have its turn.
    pub(crate) async fn turn_may_come(&self) {
        let pause = self
            .board
            .lock()
            .pause(Instant::now())
            .unwrap_or(LATE)
            .min(LATE);
        tokio::select! {
            () = self.wake.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }

    /// A turn is over: the job too, or it waits for another.
    pub(crate) fn turn_ended(&self, name: &JobName, after: RunEnding) {
        self.board.lock().ran(name, after, Instant::now());
        if after == RunEnding::Over {
            self.tell_of_end(name.id);
        }
        self.wake.notify_one();
    }

    /// Notes that a run begins. Gives back its id and the job with its last checkpoint, or `None` where the job is over.
    pub(crate) async fn begin_run(
        &self,
        name: &JobName,
        now: SystemTime,
    ) -> Result<Option<(Uuid, Job, Option<String>)>, StoreError> {
        let run = Uuid::now_v7();
        let begun = self.store.change_job(name.clone(), move |job| {
            job.begin(run, epoch_ms(now)).then(|| job.clone())
        });
        let Some(job) = begun.await?.flatten() else {
            return Ok(None);
        };
        let checkpoint = self.store.job_checkpoint(name).await?;
        Ok(Some((run, job, checkpoint)))
    }

    /// Writes how a run ended, with how far it came.
    pub(crate) async fn end_run(
        &self,
        name: &JobName,
        ended: RunReport,
        now: SystemTime,
    ) -> Result<RunEnding, StoreError> {
        let now_ms = epoch_ms(now);
        let written = self.store.change_job(name.clone(), move |job| {
            if job.is_run(ended.run) {
                (job.progress, job.cpu_ms) = (ended.progress, ended.cpu_ms);
            }
            job.end(ended.run, ended.end.clone(), now_ms);
            (job.state, job.bytes)
        });
        let Some((state, bytes)) = written.await? else {
            return Ok(RunEnding::Over);
        };
        self.board.lock().has_bytes(name, bytes);
        Ok(if state.is_over() {
            RunEnding::Over
        } else {
            RunEnding::CutOff
        })
    }

    /// Keeps what a run found, where the run is still the job's.
    pub(crate) async fn keep(&self, name: &JobName, keep: Keep) -> Result<KeepOutcome, StoreError> {
        let kept = self.store.keep_for_job(name.clone(), keep).await?;
        if let KeepOutcome::Done { bytes, .. } = kept {
            self.board.lock().has_bytes(name, bytes);
        }
        Ok(kept)
    }

    /// The keys of what a job emitted, in their order.
    pub(crate) async fn item_keys(&self, name: &JobName) -> Result<Vec<String>, StoreError> {
        self.store.job_item_keys(name).await
    }

    /// The processor time that all runs of one job may use.
    pub(crate) fn cpu_max(&self) -> Duration {
        self.cpu_max
    }
}
