//! Jobs that are submitted: each has a place on the board before it is written, and keeps that only where it was.
//!
//! Must not know when a job has its turn, nor who reads a submission from a plugin.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use uuid::Uuid;

use super::JobQueue;
use super::board::QueuedJob;
use crate::base::clock::{epoch_ms, milliseconds};
use crate::contract::operation::{CallerKind, Owner};
use crate::contract::tenant::Tenant;
use crate::records::job::{Job, JobName, JobProgress, JobState};
use crate::records::job_rules::Earlier;
use crate::stores::StoreError;

/// Who submits.
#[derive(Clone, Debug)]
pub(crate) struct JobSubmitter {
    pub(crate) owner: Owner,
    /// Whose share the job takes.
    pub(crate) tenant: Tenant,
    /// The id of its API key.
    pub(crate) key: Option<Arc<str>>,
    pub(crate) plugin: Arc<str>,
    pub(crate) caller: CallerKind,
    pub(crate) operation: String,
    pub(crate) request_id: String,
}

/// What is submitted; whoever reads it from a plugin has checked it.
#[derive(Clone, Debug)]
pub(crate) struct JobSubmission {
    pub(crate) request_id: String,
    pub(crate) fingerprint: String,
    pub(crate) input: String,
    pub(crate) ttl: Duration,
    pub(crate) budget: Duration,
}

/// A submission that made no job.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SubmitError {
    #[error("the request id is already used by {0:?}")]
    Duplicate(Earlier),
    #[error("there is no room for another job")]
    Full,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl JobQueue {
    /// Keeps a job, and lets it wait for its turn.
    pub(crate) async fn submit(
        self: &Arc<Self>,
        from: JobSubmitter,
        submission: JobSubmission,
        now: SystemTime,
    ) -> Result<Uuid, SubmitError> {
        let name = JobName {
            owner: from.owner,
            plugin: Arc::clone(&from.plugin),
            id: Uuid::now_v7(),
        };
        let (tenant, key) = (from.tenant.clone(), from.key.clone());
        let (taken, fingerprint) = (
            submission.request_id.clone(),
            submission.fingerprint.clone(),
        );
        let job = job(from, submission, epoch_ms(now));
        let submitted_ms = job.submitted_ms;
        let queued = QueuedJob::of(&job, name.clone(), tenant, key);
        if !self.board.lock().admit(queued) {
            // A request id that is taken is told before there is no room: it will not be free when there is some.
            let earlier = self
                .store
                .earlier_job(&name, &taken, &fingerprint, submitted_ms);
            return Err(earlier
                .await?
                .map_or(SubmitError::Full, SubmitError::Duplicate));
        }
        // Where the caller goes away while this is written, the job must not be lost on the board.
        let place = BoardPlace {
            jobs: Arc::clone(self),
            name: Some(name.clone()),
        };
        self.tasks
            .spawn_uncancellable(async move {
                let store = Arc::clone(&place.jobs.store);
                let earlier = store
                    .submit_job(name.clone(), taken, fingerprint, job)
                    .await?;
                match earlier {
                    Some(earlier) => Err(SubmitError::Duplicate(earlier)),
                    None => {
                        place.keep();
                        Ok(name.id)
                    }
                }
            })
            .await
    }
}

/// A job that was submitted at a time and has not begun.
fn job(from: JobSubmitter, submission: JobSubmission, submitted_ms: u64) -> Job {
    let later = |time: Duration| submitted_ms.saturating_add(milliseconds(time));
    Job {
        operation: from.operation,
        caller: from.caller,
        tenant: Some(from.tenant),
        key: from.key.as_deref().map(str::to_owned),
        request_id: from.request_id,
        bytes: u64::try_from(submission.input.len()).unwrap_or(u64::MAX),
        input: submission.input,
        submitted_ms,
        due_ms: later(submission.budget.min(submission.ttl)),
        expires_ms: later(submission.ttl),
        state: JobState::Pending,
        attempt: 0,
        run: None,
        progress: JobProgress::default(),
        items: 0,
        checkpoint_bytes: Some(0),
        cpu_ms: 0,
        output: None,
        failure: None,
    }
}

/// A place on the board for a job that is being written. Dropped, it is free again.
struct BoardPlace {
    jobs: Arc<JobQueue>,
    /// `None` once it is kept.
    name: Option<JobName>,
}

impl BoardPlace {
    /// The job was kept: it waits for its turn.
    fn keep(mut self) {
        if let Some(name) = self.name.take() {
            self.jobs.board.lock().wait(name, Instant::now());
            self.jobs.wake.notify_one();
        }
    }
}

impl Drop for BoardPlace {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            self.jobs.board.lock().forget(name);
        }
    }
}
