//! Takes jobs from the queue down the road, one turn after the other.
//!
//! Must not know what a plugin does in a job, nor whose turn it is: the queue says that.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::base::clock::{epoch_ms, microseconds};
use crate::pipeline::Pipeline;
use crate::pipeline::run_job::run_job;
use crate::queue::{JobQueue, NextJob, RunEnding};
use crate::records::job::{JobFailure, JobName, RunEnd};
use crate::registry::Registry;
use crate::runtime::job_run::JobRun;
use crate::stores::StoreError;

/// What runs jobs.
pub(crate) struct JobRunner {
    jobs: Arc<JobQueue>,
    registry: Arc<Registry>,
    pipeline: Arc<Pipeline>,
    stop: CancellationToken,
}

impl JobRunner {
    /// Runs the jobs of a queue on the revisions that a registry serves, until the process stops.
    pub(crate) fn new(
        jobs: Arc<JobQueue>,
        registry: Arc<Registry>,
        pipeline: Arc<Pipeline>,
        stop: CancellationToken,
    ) -> Self {
        Self {
            jobs,
            registry,
            pipeline,
            stop,
        }
    }

    /// Runs jobs whose turn it is. What runs when the process stops is cut off and waits for the next process.
    pub(crate) async fn run(self) {
        let runs = TaskTracker::new();
        let runner = Arc::new(self);
        // Beside the runner: nobody's turn waits for what is written here.
        runs.spawn(Arc::clone(&runner.jobs).keep_swept(runner.stop.clone()));
        while !runner.stop.is_cancelled() {
            if let Some(turn) = runner.jobs.next_turn() {
                runs.spawn(Arc::clone(&runner).take_up(turn));
                continue;
            }
            tokio::select! {
                () = runner.stop.cancelled() => {}
                () = runner.jobs.turn_may_come() => {}
            }
        }
        runs.close();
        runs.wait().await;
    }

    /// One turn of a job: a run, and how it ended, written.
    async fn take_up(self: Arc<Self>, turn: NextJob) {
        let name = turn.name;
        let ran = match self.jobs.is_good(turn.key).await {
            Ok(true) => self.run_once(&name, &turn.cancelled).await,
            Ok(false) => {
                let cancelled = self.jobs.cancel(name.clone(), SystemTime::now()).await;
                cancelled.map(|_| RunEnding::Over)
            }
            Err(error) => Err(error),
        };
        let after = ran.unwrap_or_else(|error| {
            tracing::error!(plugin = &*name.plugin, job = %name.id, %error, "a job cannot be read or written");
            RunEnding::Failed
        });
        self.jobs.turn_ended(&name, after);
    }

    async fn run_once(
        &self,
        name: &JobName,
        cancelled: &CancellationToken,
    ) -> Result<RunEnding, StoreError> {
        let now = SystemTime::now();
        let Some((run, job, checkpoint)) = self.jobs.begin_run(name, now).await? else {
            return Ok(RunEnding::Over);
        };
        let left = Duration::from_millis(job.due_ms.saturating_sub(epoch_ms(now)));
        let run = Arc::new(JobRun::new(&self.jobs, name.clone(), run, &job));
        let began = Instant::now();
        let end = tokio::select! {
            biased;
            // Whoever cancels has written the end.
            () = cancelled.cancelled() => return Ok(RunEnding::Over),
            () = self.stop.cancelled() => RunEnd::CutOff,
            end = run_job(&self.pipeline, &self.registry, job, checkpoint, left, Arc::clone(&run)) => end,
        };
        let told = match &end {
            RunEnd::Completed(_) => "completed",
            RunEnd::Failed(JobFailure { code, .. }) => code.as_str(),
            RunEnd::CutOff => "cut off",
        };
        tracing::debug!(
            plugin = &*name.plugin, job = %name.id, owner = name.owner.as_str(), attempt = run.attempt, end = told,
            elapsed_us = microseconds(began.elapsed()), "a run of a job ended",
        );
        self.jobs
            .end_run(name, run.report(end), SystemTime::now())
            .await
    }
}
