//! Jobs that are submitted: each has a place on the board before it is written, and keeps that only where it was.
//!
//! Must not know when a job has its turn, nor who reads a submission from a plugin.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use uuid::Uuid;

use super::board::QueuedJob;
use super::record::{Job, JobName, JobState, Progress};
use super::{Jobs, epoch_ms};
use crate::auth::tenant::Tenant;
use crate::operation::{CallerKind, Owner};
use crate::registry::{blocking, spawn_uncancellable};
use crate::stores::{Earlier, StoreError};
use crate::telemetry::milliseconds;

/// Who submits.
#[derive(Clone, Debug)]
pub(crate) struct Submitter {
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
pub(crate) struct Submission {
    pub(crate) request_id: String,
    pub(crate) fingerprint: String,
    pub(crate) input: String,
    pub(crate) ttl: Duration,
    pub(crate) budget: Duration,
}

/// A submission that made no job.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SubmitError {
    #[error("the request id is taken by {0:?}")]
    Duplicate(Earlier),
    #[error("there is no room for another job")]
    Full,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Jobs {
    /// Keeps a job, and lets it wait for its turn.
    pub(crate) async fn submit(
        self: &Arc<Self>,
        from: Submitter,
        submission: Submission,
        now: SystemTime,
    ) -> Result<Uuid, SubmitError> {
        let Submitter { owner, tenant, key, plugin, caller, operation, request_id } = from;
        let name = JobName { owner, plugin, id: Uuid::now_v7() };
        let Submission { request_id: taken, fingerprint, input, ttl, budget } = submission;
        let submitted_ms = epoch_ms(now);
        let later = |time: Duration| submitted_ms.saturating_add(milliseconds(time));
        let job = Job {
            operation,
            caller,
            tenant: Some(tenant.clone()),
            key: key.as_deref().map(str::to_owned),
            request_id,
            bytes: u64::try_from(input.len()).unwrap_or(u64::MAX),
            input,
            submitted_ms,
            due_ms: later(budget.min(ttl)),
            expires_ms: later(ttl),
            state: JobState::Pending,
            attempt: 0,
            progress: Progress::default(),
            items: 0,
            cpu_ms: 0,
            output: None,
            failure: None,
        };
        let queued = QueuedJob::of(&job, name.clone(), tenant, key);
        if !self.board().admit(queued) {
            // A request id that is taken is told before there is no room: it will not be free when there is some.
            let store = Arc::clone(&self.store);
            let earlier = blocking(move || store.earlier_job(&name, &taken, &fingerprint, submitted_ms)).await?;
            return Err(earlier.map_or(SubmitError::Full, SubmitError::Duplicate));
        }
        // Where the caller goes away while this is written, the job must not be lost on the board.
        let place = BoardPlace { jobs: Arc::clone(self), name: Some(name.clone()) };
        spawn_uncancellable(async move {
            let store = Arc::clone(&place.jobs.store);
            let earlier = store.submit_job(name.clone(), taken, fingerprint, job).await?;
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

/// A place on the board for a job that is being written. Dropped, it is free again.
struct BoardPlace {
    jobs: Arc<Jobs>,
    /// `None` once it is kept.
    name: Option<JobName>,
}

impl BoardPlace {
    /// The job was kept: it waits for its turn.
    fn keep(mut self) {
        if let Some(name) = self.name.take() {
            self.jobs.board().wait(name, Instant::now());
            self.jobs.wake.notify_one();
        }
    }
}

impl Drop for BoardPlace {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            self.jobs.board().forget(name);
        }
    }
}
