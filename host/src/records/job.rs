//! A job: what is kept of it, and the states that it can go through.
//!
//! Pure: time is passed in. Must not know how a job is run or stored.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::contract::operation::{CallerKind, Owner};
use crate::contract::tenant::Tenant;

/// Runs of one job. The process that runs it may die this often, less one.
pub(crate) const ATTEMPTS_MAX: u32 = 5;
/// Items of one job.
pub(crate) const ITEMS_MAX: u32 = 1000;
/// Input, keys, items, checkpoint and output of one job, in bytes.
pub(crate) const BYTES_MAX: u64 = 64 << 20;

/// Whose job it is, and which. Nobody else's calls lead to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct JobName {
    pub(crate) owner: Owner,
    pub(crate) plugin: Arc<str>,
    pub(crate) id: Uuid,
}

/// How a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum JobState {
    Pending,
    Running,
    Completed,
    Failed,
    Cancelled,
}

impl JobState {
    /// Whether it will not change any more.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// The record of a job. Times are in milliseconds since 1970-01-01 UTC: a job outlives its process, and so every clock
/// that cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The operation whose call submitted it.
    pub(crate) operation: String,
    pub(crate) caller: CallerKind,
    /// Whose share it takes. Jobs of earlier versions have none.
    #[serde(default)]
    pub(crate) tenant: Option<Tenant>,
    /// The id of the API key that submitted it: once that is revoked or has expired, the job ends. The same holds.
    #[serde(default)]
    pub(crate) key: Option<String>,
    /// The correlation id of the call that submitted it.
    pub(crate) request_id: String,
    /// A JSON object.
    pub(crate) input: String,
    pub(crate) submitted_ms: u64,
    /// When it fails if it is not done.
    pub(crate) due_ms: u64,
    /// When it is forgotten.
    pub(crate) expires_ms: u64,
    pub(crate) state: JobState,
    /// Runs that were begun.
    pub(crate) attempt: u32,
    /// The last of them. What a run writes names it: attempts are counted anew where nothing was wrong with the work.
    #[serde(default)]
    pub(crate) run: Option<Uuid>,
    pub(crate) progress: JobProgress,
    pub(crate) items: u32,
    pub(crate) bytes: u64,
    /// Those among them that the checkpoint has. Jobs of earlier versions do not tell.
    #[serde(default)]
    pub(crate) checkpoint_bytes: Option<u64>,
    /// Processor time of all its runs so far, in milliseconds.
    #[serde(default)]
    pub(crate) cpu_ms: u64,
    pub(crate) output: Option<String>,
    pub(crate) failure: Option<JobFailure>,
}

/// How far a job says that it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JobProgress {
    pub(crate) total: Option<u32>,
    pub(crate) completed: u32,
}

/// Why a job failed, as its owner reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JobFailure {
    pub(crate) code: String,
    pub(crate) message: String,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RunEnd {
    Completed(String),
    Failed(JobFailure),
    /// Nothing was wrong with the work: it is to be taken up again from its checkpoint.
    CutOff,
}

impl Job {
    /// Whose share it takes: where that is not known, its owner's own.
    pub(crate) fn tenant(&self, owner: Owner) -> Tenant {
        self.tenant.clone().unwrap_or_else(|| Tenant::owner(&owner))
    }

    /// Begins a run, if there may be another one. A job that stands as running is one whose runner died. Gives back whether
    /// there is a run now.
    pub(crate) fn begin(&mut self, run: Uuid, now_ms: u64) -> bool {
        if self.state.is_over() {
            return false;
        }
        if self.run == Some(run) {
            // Begun before: it is begun once, however often that is asked for.
            return self.state == JobState::Running;
        }
        if self.fail_if_late(now_ms) {
            return false;
        }
        if self.attempt >= ATTEMPTS_MAX {
            self.fail("INTERNAL_ERROR", "the job was interrupted too often");
            return false;
        }
        (self.state, self.attempt) = (JobState::Running, self.attempt + 1);
        self.run = Some(run);
        true
    }

    /// Whether this is the job's run.
    pub(crate) fn is_run(&self, run: Uuid) -> bool {
        self.state == JobState::Running && self.run == Some(run)
    }

    /// Ends a run, if it is the job's.
    pub(crate) fn end(&mut self, run: Uuid, end: RunEnd, now_ms: u64) {
        if !self.is_run(run) {
            return;
        }
        match end {
            RunEnd::Completed(output) => {
                let bytes = self
                    .bytes
                    .saturating_add(u64::try_from(output.len()).unwrap_or(u64::MAX));
                if bytes > BYTES_MAX {
                    self.fail("INTERNAL_ERROR", "the job's output is too large to store");
                } else {
                    (self.state, self.output, self.bytes) =
                        (JobState::Completed, Some(output), bytes);
                }
            }
            RunEnd::Failed(failure) => {
                (self.state, self.failure) = (JobState::Failed, Some(failure));
            }
            // A run that was cut off by this process is none that it died of.
            RunEnd::CutOff => {
                (self.state, self.attempt) = (JobState::Pending, self.attempt.saturating_sub(1));
                self.fail_if_late(now_ms);
            }
        }
    }

    /// Cancels what has not ended, and gives back how it stands.
    pub(crate) fn cancel(&mut self) -> JobState {
        if !self.state.is_over() {
            self.state = JobState::Cancelled;
        }
        self.state
    }

    /// Fails a job that has not ended by when it should have. Gives back whether it did.
    pub(crate) fn fail_if_late(&mut self, now_ms: u64) -> bool {
        let is_late = !self.state.is_over() && now_ms >= self.due_ms;
        if is_late {
            self.fail("UPSTREAM_TIMEOUT", "the job did not finish in time");
        }
        is_late
    }

    fn fail(&mut self, code: &str, message: &str) {
        let failure = JobFailure {
            code: code.to_owned(),
            message: message.to_owned(),
        };
        (self.state, self.failure) = (JobState::Failed, Some(failure));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Job {
        let (operation, request_id, input) = ("crawl".to_owned(), "r".to_owned(), "{}".to_owned());
        Job {
            operation,
            caller: CallerKind::ApiKey,
            tenant: None,
            key: None,
            request_id,
            input,
            submitted_ms: 0,
            due_ms: 100,
            expires_ms: 1000,
            state: JobState::Pending,
            attempt: 0,
            run: None,
            progress: JobProgress::default(),
            items: 0,
            bytes: 0,
            checkpoint_bytes: Some(0),
            cpu_ms: 0,
            output: None,
            failure: None,
        }
    }

    #[test]
    fn a_job_that_is_cut_off_is_taken_up_and_one_that_kills_its_process_is_not_for_ever() {
        let mut job = job();
        for _ in 0..20 {
            let run = Uuid::now_v7();
            assert!(job.begin(run, 1));
            job.end(run, RunEnd::CutOff, 1);
            assert!(!job.begin(run, 1), "begun again after its end");
            assert_eq!((job.state, job.attempt), (JobState::Pending, 0));
        }
        for attempt in 1..=ATTEMPTS_MAX {
            let (run, before) = (Uuid::now_v7(), job.run);
            assert!(job.begin(run, 1));
            assert_eq!(job.attempt, attempt);
            assert!(job.is_run(run) && !before.is_some_and(|before| job.is_run(before)));
        }
        assert!(!job.begin(Uuid::now_v7(), 1));
        assert_eq!(
            (job.state, job.failure.map(|failure| failure.code)),
            (JobState::Failed, Some("INTERNAL_ERROR".into()))
        );
    }

    #[test]
    fn an_end_stands() {
        let mut done = job();
        let run = Uuid::now_v7();
        assert!(done.begin(run, 1));
        done.end(run, RunEnd::Completed("{}".to_owned()), 2);
        let as_it_ended = done.clone();
        done.end(run, RunEnd::CutOff, 3);
        assert!(!done.begin(Uuid::now_v7(), 3) && !done.fail_if_late(5000));
        assert_eq!(done.cancel(), JobState::Completed);
        assert_eq!(done, as_it_ended);
        let mut cancelled = job();
        assert!(cancelled.begin(run, 1));
        assert_eq!(
            (cancelled.cancel(), cancelled.cancel()),
            (JobState::Cancelled, JobState::Cancelled)
        );
        cancelled.end(run, RunEnd::Completed("{}".to_owned()), 2);
        assert_eq!(
            (cancelled.state, cancelled.output),
            (JobState::Cancelled, None)
        );
    }

    #[test]
    fn a_run_that_was_cut_off_does_not_end_the_one_after_it() {
        let (mut job, slow, later) = (job(), Uuid::now_v7(), Uuid::now_v7());
        assert!(job.begin(slow, 1));
        job.end(slow, RunEnd::CutOff, 1);
        assert!(job.begin(later, 1));
        assert_eq!(job.attempt, 1, "the same attempt, and another run");
        for end in [RunEnd::CutOff, RunEnd::Completed("{}".to_owned())] {
            job.end(slow, end, 2);
            assert!(job.is_run(later) && !job.is_run(slow));
        }
    }

    #[test]
    fn a_job_that_is_late_fails_waiting_or_running_or_cut_off() {
        let (mut waiting, mut running) = (job(), job());
        assert!(!waiting.begin(Uuid::now_v7(), 100));
        let run = Uuid::now_v7();
        assert!(running.begin(run, 99));
        running.end(run, RunEnd::CutOff, 100);
        for late in [waiting, running] {
            assert_eq!(
                (late.state, late.failure.map(|f| f.code)),
                (JobState::Failed, Some("UPSTREAM_TIMEOUT".into()))
            );
        }
    }
}
