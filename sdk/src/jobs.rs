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
//! use switchbay_sdk::jobs::{self, Page, Submission};
//! use switchbay_sdk::{Call, ErrorCode, Failure, Operation, Reply};
//!
//! # const BUSY: ErrorCode = ErrorCode::new("SERVICE_UNAVAILABLE", 503, "There are too many jobs.");
//! #[derive(Deserialize, Serialize, JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Count {
//!     /// How far to count.
//!     #[schemars(range(min = 1, max = 9))]
//!     to: u32,
//! }
//!
//! /// Answers at once.
//! async fn start(call: Call, count: Count) -> Result<Reply<String>, Failure> {
//!     let input = serde_json::to_string(&count).expect("a number has a JSON form");
//!     let job = Submission { request_id: call.request_id, fingerprint: String::new(), input, ttl_ms: 60_000, budget_ms: 5_000 };
//!     let id = jobs::submit(&job).await.map_err(|_| Failure::new(&BUSY, "there are too many jobs"))?;
//!     Ok(Reply::ok(id))
//! }
//!
//! /// Runs later, perhaps more than once: each number is emitted under its own key.
//! async fn count(_call: Call, Count { to }: Count) -> Result<Reply<()>, Failure> {
//!     for number in 1..=to {
//!         if jobs::emit(&number.to_string(), "{}", None).await.is_err() {
//!             return Err(Failure::new(&BUSY, "a number could not be stored"));
//!         }
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

use crate::bindings::switchbay::jobs::{queue, work};

pub use crate::bindings::switchbay::jobs::queue::{
    Earlier, Error, Failed, Item, Page, Snapshot, State, Submission, SubmitError,
};
pub use crate::bindings::switchbay::jobs::work::Error as WorkError;

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
