//! The runner: hands each job whose turn it is to the one road, writes how its run ended, and forgets what has expired.
//!
//! Must not know whose turn it is, nor what a plugin does in a job.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::board::{After, NextJob};
use super::record::{JobFailure, JobName, RunEnd};
use super::run::JobRun;
use super::{Jobs, epoch_ms};
use crate::pipeline;
use crate::registry::{Registry, blocking};
use crate::stores::StoreError;

/// How often expired jobs are looked for.
const SWEEP: Duration = Duration::from_secs(1);
/// How often those that wait are looked at, whether they are late.
const LATE: Duration = Duration::from_secs(1);
/// Jobs that are forgotten in one sweep.
const FORGOTTEN_AT_ONCE: usize = 64;

impl Jobs {
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
                Err(error) => {
                    return tracing::error!(%error, "expired jobs cannot be forgotten; they are tried again");
                }
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
        let Some(job) = begun.await?.flatten() else {
            return Ok(After::Over);
        };
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
        let Some((state, grown)) = ended.await? else {
            return Ok(After::Over);
        };
        self.board().grew(name, i64::try_from(grown).unwrap_or(i64::MAX));
        Ok(if state.is_over() { After::Over } else { After::CutOff })
    }
}
