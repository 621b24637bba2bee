//! Jobs: work that outlives the call which submitted it.
//!
//! The store holds them, the board decides whose turn it is, and the runner hands each to the one road
//! (`pipeline::run_job`). Whatever is not written did not happen: a process that is killed at any moment takes its jobs up again
//! from their last checkpoints. Must not know what a plugin does in a job, nor how it is run.

mod board;
mod keys;
pub(crate) mod record;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use self::board::{After, Board, NextJob, QueuedJob};
use self::record::{Job, JobFailure, JobName, JobState, Progress, RunEnd};
use crate::auth::tenant::Tenant;
use crate::config::JobLimits;
use crate::operation::{CallerKind, Owner};
use crate::pipeline;
use crate::registry::processor::CpuMeter;
use crate::registry::{Registry, blocking};
use crate::stores::{Earlier, Keep, KeepOutcome, Page, Store, StoreError};
use crate::telemetry::milliseconds;

/// How often expired jobs are looked for.
const SWEEP: Duration = Duration::from_secs(1);
/// How often those that wait are looked at, whether they are late.
const LATE: Duration = Duration::from_secs(1);
/// Jobs that are forgotten in one sweep.
const FORGOTTEN_AT_ONCE: usize = 64;
/// Ends that a call which waits for one may lag behind; it looks into the store then.
const ENDS_WAITING_MAX: usize = 256;

/// All jobs of this process.
pub(crate) struct Jobs {
    store: Arc<Store>,
    /// Never held over an await.
    board: Mutex<Board>,
    /// Told when a job may have its turn.
    wake: Notify,
    /// Told when a key may not be good any more.
    keys_changed: Notify,
    cpu_max: Duration,
    /// Ids of jobs that ended.
    ended: broadcast::Sender<Uuid>,
}

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

/// One run of a job, as its plugin reaches it.
pub(crate) struct JobRun {
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) name: JobName,
    pub(crate) attempt: u32,
    /// Counts the processor time of the run.
    pub(crate) cpu: Arc<CpuMeter>,
    /// Of the runs before, and of all that may be.
    cpu_before: Duration,
    cpu_max: Duration,
    /// As it was told last. Never held over an await.
    progress: Mutex<Progress>,
}

impl Jobs {
    /// The jobs that the store holds. Those that ran when their process ended wait for a new run.
    pub(crate) fn open(store: Arc<Store>, limits: JobLimits) -> Result<Arc<Self>, StoreError> {
        let mut board = Board::new(limits);
        let mut jobs = store.jobs()?;
        jobs.sort_by_key(|(name, job)| (job.submitted_ms, name.id));
        let (now, mut open) = (Instant::now(), 0_usize);
        for (name, job) in jobs {
            let is_open = !job.state.is_over();
            let tenant = job.tenant(name.owner);
            let Job { due_ms, expires_ms, bytes, key, .. } = job;
            let key = key.map(Into::into);
            board.take_in(QueuedJob { name: name.clone(), tenant, key, due_ms, expires_ms, bytes }, is_open);
            if is_open {
                open += 1;
                board.wait(name, now);
            }
        }
        if open > 0 {
            tracing::info!(jobs = open, "jobs of an earlier process are taken up");
        }
        let (wake, keys_changed, ended) = (Notify::new(), Notify::new(), broadcast::channel(ENDS_WAITING_MAX).0);
        Ok(Arc::new(Self { store, board: Mutex::new(board), wake, keys_changed, cpu_max: limits.cpu, ended }))
    }

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
        let Job { due_ms, expires_ms, bytes, .. } = job;
        if !self.board().admit(QueuedJob { name: name.clone(), tenant, key, due_ms, expires_ms, bytes }) {
            // A request id that is taken is told before there is no room: it will not be free when there is some.
            let store = Arc::clone(&self.store);
            let earlier = blocking(move || store.earlier_job(&name, &taken, &fingerprint, submitted_ms)).await?;
            return Err(earlier.map_or(SubmitError::Full, SubmitError::Duplicate));
        }
        // Where the caller goes away while this is written, the job must not be lost on the board.
        let place = BoardPlace { jobs: Arc::clone(self), name: Some(name.clone()) };
        crate::registry::spawn_uncancellable(async move {
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

    /// The record of a job with a page of what it emitted. `None` where there is no such job of this owner any more.
    pub(crate) async fn read(
        &self,
        name: JobName,
        (offset, items_max, bytes_max): (u32, u32, usize),
        now: SystemTime,
    ) -> Result<Option<(Job, Page)>, StoreError> {
        let (store, now_ms) = (Arc::clone(&self.store), epoch_ms(now));
        blocking(move || {
            let Some(job) = store.job(&name)?.filter(|job| now_ms < job.expires_ms) else { return Ok(None) };
            // After the record: a job that had ended has no item that is not on a page.
            let page = store.job_items(&name, offset, items_max, bytes_max)?;
            Ok(Some((job, page)))
        })
        .await
    }

    /// Waits until a job has ended, or so long, and gives back how it stands.
    pub(crate) async fn wait(&self, name: JobName, at_most: Duration) -> Result<Option<JobState>, StoreError> {
        let mut ended = self.ended.subscribe();
        let deadline = tokio::time::Instant::now() + at_most;
        loop {
            let Some((job, _)) = self.read(name.clone(), (u32::MAX, 1, 1), SystemTime::now()).await? else {
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
    pub(crate) async fn cancel(&self, name: JobName, now: SystemTime) -> Result<Option<JobState>, StoreError> {
        let now_ms = epoch_ms(now);
        let cancelled = self.store.change_job(name.clone(), move |job| {
            let is_there = now_ms < job.expires_ms;
            is_there.then(|| job.cancel())
        });
        let stands = cancelled.await?.flatten();
        if stands == Some(JobState::Cancelled) {
            self.board().end(&name);
            self.tell_of_end(name.id);
        }
        Ok(stands)
    }

    /// Jobs of each plugin that wait, and that run.
    pub(crate) fn counts(&self) -> Vec<(Arc<str>, usize, usize)> {
        self.board().counts().map(|(plugin, waiting, running)| (Arc::clone(plugin), waiting, running)).collect()
    }

    /// Runs jobs whose turn it is, until the process stops. What runs then is cut off and waits for the next process.
    pub(crate) async fn work(self: Arc<Self>, registry: Arc<Registry>, stop: CancellationToken) {
        let runs = TaskTracker::new();
        // Beside the runner: nobody's turn waits for what is written here.
        runs.spawn(Arc::clone(&self).keep_swept(stop.clone()));
        while !stop.is_cancelled() {
            let turn = self.board().next(Instant::now(), epoch_ms(SystemTime::now()));
            if let Some(turn) = turn {
                runs.spawn(Arc::clone(&self).take_up(Arc::clone(&registry), turn, stop.clone()));
                continue;
            }
            let pause = self.board().pause(Instant::now()).unwrap_or(LATE).min(LATE);
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.wake.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        runs.close();
        runs.wait().await;
    }

    /// Sweeps until the process stops.
    async fn keep_swept(self: Arc<Self>, stop: CancellationToken) {
        let mut sweeps = tokio::time::interval(SWEEP);
        sweeps.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = sweeps.tick() => {}
                () = self.keys_changed.notified() => {}
            }
            self.end_of_bad_keys().await;
            self.sweep(&stop).await;
        }
    }

    /// Forgets what has expired, and frees request ids. What is left when the process stops is the next one's.
    async fn sweep(&self, stop: &CancellationToken) {
        let now_ms = epoch_ms(SystemTime::now());
        let expired = self.board().expired(now_ms, FORGOTTEN_AT_ONCE);
        for name in expired {
            if stop.is_cancelled() {
                return;
            }
            match self.store.forget_job(name.clone()).await {
                Ok(()) => {
                    self.board().forget(&name);
                    self.tell_of_end(name.id);
                }
                Err(error) => return tracing::error!(%error, "expired jobs cannot be forgotten; they are tried again"),
            }
        }
        let store = Arc::clone(&self.store);
        let freed = match blocking(move || store.has_request_ids_to_free(now_ms)).await {
            Ok(true) => self.store.free_request_ids(now_ms).await,
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = freed {
            tracing::error!(%error, "request ids of jobs cannot be freed; they are tried again");
        }
    }

    /// One turn of a job: a run, and how it ended, written.
    async fn take_up(self: Arc<Self>, registry: Arc<Registry>, turn: NextJob, stop: CancellationToken) {
        let NextJob { name, key, cancelled } = turn;
        let ran = match self.is_good(key).await {
            Ok(true) => self.run(&registry, &name, &cancelled, &stop).await,
            Ok(false) => self.cancel(name.clone(), SystemTime::now()).await.map(|_| After::Over),
            Err(error) => Err(error),
        };
        let after = match ran {
            Ok(after) => after,
            Err(error) => {
                tracing::error!(plugin = &*name.plugin, job = %name.id, %error, "a job cannot be read or written");
                After::Failed
            }
        };
        self.board().ran(&name, after, Instant::now());
        if after == After::Over {
            self.tell_of_end(name.id);
        }
        self.wake.notify_one();
    }

    async fn run(
        self: &Arc<Self>,
        registry: &Registry,
        name: &JobName,
        cancelled: &CancellationToken,
        stop: &CancellationToken,
    ) -> Result<After, StoreError> {
        let now = SystemTime::now();
        let begun = self.store.change_job(name.clone(), move |job| job.begin(epoch_ms(now)).then(|| job.clone()));
        let Some(job) = begun.await?.flatten() else { return Ok(After::Over) };
        let (store, named) = (Arc::clone(&self.store), name.clone());
        let checkpoint = blocking(move || store.job_checkpoint(&named)).await?;
        let attempt = job.attempt;
        let left = Duration::from_millis(job.due_ms.saturating_sub(epoch_ms(now)));
        let run = Arc::new(JobRun {
            jobs: Arc::clone(self),
            name: name.clone(),
            attempt,
            cpu: Arc::default(),
            cpu_before: Duration::from_millis(job.cpu_ms),
            cpu_max: self.cpu_max,
            progress: Mutex::new(job.progress),
        });
        let began = Instant::now();
        let end = tokio::select! {
            biased;
            // Whoever cancels has written the end.
            () = cancelled.cancelled() => return Ok(After::Over),
            () = stop.cancelled() => RunEnd::CutOff,
            end = pipeline::run_job(registry, job, checkpoint, left, Arc::clone(&run)) => end,
        };
        let told = match &end {
            RunEnd::Completed(_) => "completed",
            RunEnd::Failed(JobFailure { code, .. }) => code.as_str(),
            RunEnd::CutOff => "cut off",
        };
        tracing::debug!(
            plugin = &*name.plugin, job = %name.id, owner = name.owner.as_str(), attempt, end = told,
            elapsed_us = crate::telemetry::microseconds(began.elapsed()), "a run of a job ended",
        );
        let (progress, cpu_ms, now_ms) = (run.progress(), run.cpu_ms(), epoch_ms(SystemTime::now()));
        let ended = self.store.change_job(name.clone(), move |job| {
            if job.is_run(attempt) {
                (job.progress, job.cpu_ms) = (progress, cpu_ms);
            }
            let before = job.bytes;
            job.end(attempt, end.clone(), now_ms);
            (job.state, job.bytes.saturating_sub(before))
        });
        let Some((state, grown)) = ended.await? else { return Ok(After::Over) };
        self.board().grew(name, i64::try_from(grown).unwrap_or(i64::MAX));
        Ok(if state.is_over() { After::Over } else { After::CutOff })
    }

    fn tell_of_end(&self, id: Uuid) {
        // Nobody may be waiting.
        self.ended.send(id).ok();
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn cpu_ms(&self) -> u64 {
        milliseconds(self.cpu_before + self.cpu.total())
    }

    /// Tells how far the work is.
    pub(crate) fn tell(&self, progress: Progress) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = progress;
    }

    fn progress(&self) -> Progress {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn epoch_ms(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH).map_or(0, milliseconds)
}
