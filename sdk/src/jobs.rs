//! Work that outlives the call that started it.
//!
//! An operation submits a job and answers. The host runs the operation's [worker], resumes it if a run
//! was cut off, and keeps what it emits for its caller alone. Using this module makes the component
//! import `switchbay:jobs`: the plugin asks for the atom `jobs` with [`Plugin::wants`], and calls
//! [`export_worker!`] in addition to [`export!`].
//!
//! ```no_run
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use switchbay_sdk::jobs::{self, Run, RunError, Submission, SubmitError, WorkError};
//! use switchbay_sdk::{Call, ErrorCode, Failure, Operation, Reply};
//!
//! # const BUSY: ErrorCode = ErrorCode::service_unavailable("There are too many jobs.");
//! # fn refused(_: SubmitError) -> Failure { BUSY.failure("there are too many jobs") }
//! # fn unread(_: RunError) -> Failure { BUSY.failure("the count cannot be resumed") }
//! # fn unkept(_: WorkError) -> Failure { BUSY.failure("a number could not be stored") }
//! #[derive(Deserialize, Serialize, JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Count {
//!     /// How far to count.
//!     #[schemars(range(min = 1, max = 9))]
//!     to: u32,
//! }
//!
//! #[derive(Serialize)]
//! struct Counted {
//!     number: u32,
//! }
//!
//! /// Answers at once.
//! async fn start(call: Call, count: Count) -> Result<Reply<String>, Failure> {
//!     let job = Submission::new(call.request_id, &count).ttl_ms(60_000).budget_ms(5_000);
//!     Ok(Reply::ok(jobs::submit(&job).await.map_err(refused)?))
//! }
//!
//! /// Runs later, perhaps more than once: it goes on behind the last number that it emitted.
//! async fn count(call: Call, Count { to }: Count) -> Result<Reply<()>, Failure> {
//!     let run: Run<u32> = Run::of(&call).map_err(unread)?;
//!     for number in run.checkpoint.unwrap_or(0) + 1..=to {
//!         run.emit(&number.to_string(), &Counted { number }, &number).await.map_err(unkept)?;
//!     }
//!     Ok(Reply::ok(()))
//! }
//!
//! # fn operation() -> Operation {
//! Operation::new("count", start).worker(count)
//! # }
//! ```
//!
//! [worker]: crate::Operation::worker
//! [`Plugin::wants`]: crate::Plugin::wants
//! [`export_worker!`]: crate::export_worker
//! [`export!`]: crate::export

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};

use crate::bindings::switchbay::jobs::{queue, work};
use crate::{Call, ErrorCode, Failure, Timestamp};

pub use crate::bindings::switchbay::jobs::queue::{
    Earlier, Error, Failed, Item, Page, Snapshot, State, Submission, SubmitError,
};
pub use crate::bindings::switchbay::jobs::work::Error as WorkError;

/// The longest that a job is kept, and the longest that it may take, in milliseconds.
const TTL_MS_MAX: u32 = 86_400_000;
const BUDGET_MS_MAX: u32 = 3_600_000;

impl Submission {
    /// A job under the client's name for the submission, with the input of its worker. It has no fingerprint, one hour to
    /// be done in, and is kept for 24 hours.
    pub fn new(request_id: impl Into<String>, input: &impl Serialize) -> Self {
        Self {
            request_id: request_id.into(),
            fingerprint: String::new(),
            input: json(input),
            ttl_ms: TTL_MS_MAX,
            budget_ms: BUDGET_MS_MAX,
        }
    }

    /// Sets how long the job and what it emits are kept, in milliseconds: 1,000 to 86,400,000.
    #[must_use]
    pub fn ttl_ms(self, ttl_ms: u32) -> Self {
        Self { ttl_ms, ..self }
    }

    /// Sets how long the job may take, its wait included, in milliseconds: 1,000 to 3,600,000.
    #[must_use]
    pub fn budget_ms(self, budget_ms: u32) -> Self {
        Self { budget_ms, ..self }
    }

    /// Sets what tells whether two submissions ask for the same: at most 256 bytes.
    #[must_use]
    pub fn fingerprint(self, fingerprint: impl Into<String>) -> Self {
        let fingerprint = fingerprint.into();
        Self {
            fingerprint,
            ..self
        }
    }
}

impl Snapshot {
    /// The values of the items on this page.
    ///
    /// # Errors
    /// If an item is not of this type: another revision of the plugin may have emitted it.
    pub fn values<T: DeserializeOwned>(&self) -> Result<Vec<T>, serde_json::Error> {
        let values = self.items.iter();
        values
            .map(|item| serde_json::from_str(&item.value))
            .collect()
    }

    /// How the job failed, as a failure of this call: if it did, and by one of these codes.
    pub fn failure_of<'c>(
        &self,
        codes: impl IntoIterator<Item = &'c ErrorCode>,
    ) -> Option<Failure> {
        let failed = self.failure.as_ref()?;
        let code = codes.into_iter().find(|code| code.code == failed.code)?;
        Some(code.failure(failed.message.clone()))
    }

    /// When the job expires with everything that it emitted.
    pub fn expires_at(&self) -> Timestamp {
        Timestamp::from_unix_ms(self.expires_at_ms)
    }
}

impl State {
    /// In lower case, as in JSON.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl JsonSchema for State {
    fn schema_name() -> Cow<'static, str> {
        "State".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let states = [
            Self::Pending,
            Self::Running,
            Self::Completed,
            Self::Failed,
            Self::Cancelled,
        ];
        json_schema!({ "type": "string", "enum": states })
    }
}

/// A run of a job, in its worker. `C` is the type of its checkpoints: what the next run needs to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run<C> {
    /// The job's id, a UUID.
    pub id: String,
    /// 1 in the first run, and one more in each that resumes the job.
    pub attempt: u32,
    /// The last checkpoint of the run before this one.
    pub checkpoint: Option<C>,
}

/// Why a worker has no [`Run`].
#[derive(Debug)]
pub enum RunError {
    /// The call is not a run of a job.
    NoRun,
    /// The checkpoint is of another type: another revision of the plugin may have stored it.
    Checkpoint(serde_json::Error),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRun => f.write_str("the call is not a run of a job"),
            Self::Checkpoint(error) => write!(f, "the checkpoint cannot be read: {error}"),
        }
    }
}

impl std::error::Error for RunError {}

impl<C: Serialize + DeserializeOwned> Run<C> {
    /// The run that a worker was called for.
    ///
    /// # Errors
    /// If the call is not one, or the checkpoint cannot be read.
    pub fn of(call: &Call) -> Result<Self, RunError> {
        let job = call.job.as_ref().ok_or(RunError::NoRun)?;
        let checkpoint = job.checkpoint.as_deref().map(serde_json::from_str);
        Ok(Self {
            id: job.id.clone(),
            attempt: job.attempt,
            checkpoint: checkpoint.transpose().map_err(RunError::Checkpoint)?,
        })
    }

    /// Stores an item together with a checkpoint: both or neither. Returns whether the key is new.
    ///
    /// # Errors
    /// As for [`emit`].
    pub async fn emit(
        &self,
        key: &str,
        item: &impl Serialize,
        checkpoint: &C,
    ) -> Result<bool, WorkError> {
        emit(key, &json(item), Some(&json(checkpoint))).await
    }

    /// Stores a checkpoint.
    ///
    /// # Errors
    /// As for [`emit`].
    pub async fn keep(&self, checkpoint: &C) -> Result<(), WorkError> {
        work::checkpoint(json(checkpoint)).await
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a type of a job has string keys, so it always serialises")
}

/// Submits a job and returns its id, a UUID.
///
/// # Errors
/// If the job was not accepted. If the store failed, it is not known whether it was.
pub async fn submit(submission: &Submission) -> Result<String, SubmitError> {
    queue::submit(submission.clone()).await
}

/// Returns the current state of one of the caller's jobs, with a page of its items.
///
/// # Errors
/// If the caller has no such job, or the store fails.
pub async fn read(job: &str, page: Page) -> Result<Snapshot, Error> {
    queue::read(job.to_owned(), page).await
}

/// Waits until one of the caller's jobs has ended, for up to `at_most_ms` milliseconds (at most 30,000),
/// and returns its state.
///
/// # Errors
/// If the caller has no such job, or the store fails.
pub async fn wait(job: &str, at_most_ms: u32) -> Result<State, Error> {
    queue::wait(job.to_owned(), at_most_ms).await
}

/// Cancels one of the caller's jobs if it has not ended, and returns its state.
///
/// # Errors
/// If the caller has no such job, or the store fails.
pub async fn cancel(job: &str) -> Result<State, Error> {
    queue::cancel(job.to_owned()).await
}

/// Stores an item of the job that this worker runs, together with a checkpoint: both or neither. Returns
/// whether the key is new: an item is stored once, however often its job is resumed.
///
/// # Errors
/// If the item was not stored. After [`WorkError::Ended`] no item will be: the worker should return.
pub async fn emit(key: &str, value: &str, checkpoint: Option<&str>) -> Result<bool, WorkError> {
    let checkpoint = checkpoint.map(str::to_owned);
    work::emit(key.to_owned(), value.to_owned(), checkpoint).await
}

/// Stores the position of the work, which the next run gets in `call.job`.
///
/// # Errors
/// As for [`emit`].
pub async fn checkpoint(text: &str) -> Result<(), WorkError> {
    work::checkpoint(text.to_owned()).await
}

/// Reports progress.
///
/// # Errors
/// If this is not a run of a job.
pub fn progress(total: Option<u32>, completed: u32) -> Result<(), WorkError> {
    work::progress(total, completed)
}

/// Returns the keys of all items that the job has emitted, in order.
///
/// # Errors
/// If this is not a run of a job, or the store fails.
pub async fn emitted() -> Result<Vec<String>, WorkError> {
    work::emitted().await
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::bindings::switchbay::plugin0_2_0::types::{Caller, CallerKind, Job};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Position {
        page: u32,
    }

    fn call(job: Option<Job>) -> Call {
        Call {
            request_id: String::new(),
            operation: String::new(),
            caller: Caller {
                owner: String::new(),
                kind: CallerKind::ApiKey,
                subject: None,
            },
            deadline_ms: 1000,
            job,
        }
    }

    fn run(checkpoint: Option<&str>) -> Result<Run<Position>, RunError> {
        let job = Job {
            id: "a".to_owned(),
            attempt: 2,
            checkpoint: checkpoint.map(str::to_owned),
        };
        Run::of(&call(Some(job)))
    }

    #[test]
    fn a_run_goes_on_from_its_checkpoint() {
        let resumed = run(Some(r#"{"page":3}"#)).expect("a run");
        assert_eq!(resumed.checkpoint, Some(Position { page: 3 }));
        assert_eq!((resumed.id.as_str(), resumed.attempt), ("a", 2));
        assert_eq!(run(None).expect("a run").checkpoint, None);
        assert!(matches!(run(Some("3")), Err(RunError::Checkpoint(_))));
        assert!(matches!(
            Run::<Position>::of(&call(None)),
            Err(RunError::NoRun)
        ));
    }

    #[test]
    fn a_submission_has_the_longest_times_and_its_input_as_json() {
        let submission = Submission::new("r", &Position { page: 1 });
        assert_eq!(submission.input, r#"{"page":1}"#);
        assert_eq!(
            (submission.ttl_ms, submission.budget_ms),
            (86_400_000, 3_600_000)
        );
        let shorter = submission.ttl_ms(9000).budget_ms(8000).fingerprint("f");
        assert_eq!((shorter.ttl_ms, shorter.budget_ms), (9000, 8000));
        assert_eq!(
            (shorter.fingerprint.as_str(), shorter.request_id.as_str()),
            ("f", "r")
        );
    }

    #[test]
    fn items_are_read_as_their_type() {
        let item = |value: &str| Item {
            key: "k".to_owned(),
            value: value.to_owned(),
        };
        let snapshot = |items| Snapshot {
            state: State::Running,
            total: None,
            completed: 0,
            items,
            next_offset: None,
            expires_at_ms: 1000,
            output: None,
            failure: None,
        };
        let found = snapshot(vec![item(r#"{"page":1}"#), item(r#"{"page":2}"#)]);
        let read: Vec<Position> = found.values().expect("positions");
        assert_eq!(read, [Position { page: 1 }, Position { page: 2 }]);
        assert_eq!(found.expires_at().to_string(), "1970-01-01T00:00:01Z");
        assert!(snapshot(vec![item("1")]).values::<Position>().is_err());
        let failed = Snapshot {
            failure: Some(Failed {
                code: "UPSTREAM_TIMEOUT".to_owned(),
                message: "late".to_owned(),
            }),
            ..snapshot(Vec::new())
        };
        let (late, down) = (
            ErrorCode::upstream_timeout("It is late."),
            ErrorCode::service_unavailable("It is down."),
        );
        let failure = failed.failure_of([&down, &late]).expect("a failure");
        assert_eq!(failure.into_wire().message, "late");
        assert!(failed.failure_of([&down]).is_none() && found.failure_of([&late]).is_none());
    }

    #[test]
    fn a_state_is_written_as_its_schema_says() {
        let schema = crate::schema::of_output::<State>();
        let written = serde_json::to_value(State::Cancelled).expect("JSON");
        assert_eq!(schema["enum"][4], written);
        assert_eq!(
            (schema["type"].as_str(), written.as_str()),
            (Some("string"), Some("cancelled"))
        );
    }
}
