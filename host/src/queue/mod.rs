//! Jobs: work that outlives the call which submitted it.
//!
//! The store holds them, the board decides whose turn it is, and the room `runner` takes each down the road. Whatever is not
//! written did not happen: a process that is killed at any moment takes its jobs up again from their last checkpoints. Must
//! not know what a plugin does in a job, nor how it is run.

mod board;
mod keys;
mod submission;
mod sweep;
mod turns;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast};
use uuid::Uuid;

use self::board::{JobBoard, QueuedJob};
pub(crate) use self::board::{NextJob, RunEnding};
pub(crate) use self::submission::{JobSubmission, JobSubmitter, SubmitError};
pub(crate) use self::turns::RunReport;
use crate::base::clock::epoch_ms;
use crate::base::tasks::Tasks;
use crate::config::JobLimits;
use crate::records::job::{Job, JobName, JobState};
use crate::records::job_rules::ItemPage;
use crate::stores::{Store, StoreError};

/// Ends that a call which waits for one may lag behind; it looks into the store then.
const ENDS_WAITING_MAX: usize = 256;

/// All jobs of this process.
pub(crate) struct JobQueue {
    store: Arc<Store>,
    tasks: Tasks,
    /// Never held over an await.
    board: Mutex<JobBoard>,
    /// Told when a job may have its turn.
    wake: Notify,
    /// Told when a key may not be good any more.
    keys_changed: Notify,
    cpu_max: Duration,
    /// Ids of jobs that ended.
    ended: broadcast::Sender<Uuid>,
}

impl JobQueue {
    /// The jobs that the store holds. Those that ran when their process ended wait for a new run.
    pub(crate) async fn open(
        store: Arc<Store>,
        limits: JobLimits,
        tasks: Tasks,
    ) -> Result<Arc<Self>, StoreError> {
        let mut board = JobBoard::new(limits);
        let mut jobs = store.jobs().await?;
        jobs.sort_by_key(|(name, job)| (job.submitted_ms, name.id));
        let (now, mut open) = (Instant::now(), 0_usize);
        for (name, job) in jobs {
            let is_open = !job.state.is_over();
            let tenant = job.tenant(name.owner);
            let key = job.key.as_deref().map(Into::into);
            board.take_in(QueuedJob::of(&job, name.clone(), tenant, key), is_open);
            if is_open {
                open += 1;
                board.wait(name, now);
            }
        }
        if open > 0 {
            tracing::info!(jobs = open, "resuming the jobs of an earlier process");
        }
        Ok(Arc::new(Self {
            store,
            tasks,
            board: Mutex::new(board),
            wake: Notify::new(),
            keys_changed: Notify::new(),
            cpu_max: limits.cpu,
            ended: broadcast::channel(ENDS_WAITING_MAX).0,
        }))
    }

    /// The record of a job with a page of what it emitted. `None` where there is no such job of this owner any more.
    pub(crate) async fn read(
        &self,
        name: JobName,
        (offset, items_max, bytes_max): (u32, u32, usize),
        now: SystemTime,
    ) -> Result<Option<(Job, ItemPage)>, StoreError> {
        let now_ms = epoch_ms(now);
        let job = self.store.job(&name).await?;
        let Some(job) = job.filter(|job| now_ms < job.expires_ms) else {
            return Ok(None);
        };
        // After the record: a job that had ended has no item that is not on a page.
        let items = self.store.job_items(&name, offset, items_max, bytes_max);
        Ok(Some((job, items.await?)))
    }

    /// Waits until a job has ended, or so long, and gives back how it stands.
    pub(crate) async fn wait(
        &self,
        name: JobName,
        at_most: Duration,
    ) -> Result<Option<JobState>, StoreError> {
        let mut ended = self.ended.subscribe();
        let deadline = tokio::time::Instant::now() + at_most;
        loop {
            let Some((job, _)) = self
                .read(name.clone(), (u32::MAX, 1, 1), SystemTime::now())
                .await?
            else {
                return Ok(None);
            };
            if job.state.is_over() {
                return Ok(Some(job.state));
            }
            loop {
                match tokio::time::timeout_at(deadline, ended.recv()).await {
                    Err(_) => return Ok(Some(job.state)),
                    Ok(Ok(id)) if id != name.id => {}
                    Ok(Ok(_) | Err(_)) => break,
                }
            }
        }
    }

    /// Cancels a job that has not ended; what runs is dropped at once. Gives back how it stands.
    pub(crate) async fn cancel(
        &self,
        name: JobName,
        now: SystemTime,
    ) -> Result<Option<JobState>, StoreError> {
        let now_ms = epoch_ms(now);
        let cancelled = self.store.change_job(name.clone(), move |job| {
            let is_there = now_ms < job.expires_ms;
            is_there.then(|| job.cancel())
        });
        let stands = cancelled.await?.flatten();
        if stands == Some(JobState::Cancelled) {
            self.board.lock().end(&name);
            self.tell_of_end(name.id);
        }
        Ok(stands)
    }

    /// Jobs of each plugin that wait, and that run.
    pub(crate) fn counts(&self) -> Vec<(Arc<str>, usize, usize)> {
        self.board
            .lock()
            .counts()
            .map(|(plugin, waiting, running)| (Arc::clone(plugin), waiting, running))
            .collect()
    }

    fn tell_of_end(&self, id: Uuid) {
        // Nobody may be waiting.
        self.ended.send(id).ok();
    }
}
