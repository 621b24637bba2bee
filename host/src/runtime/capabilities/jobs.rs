//! `switchbay:jobs`: submitting, reading and cancelling jobs on behalf of a caller, and keeping what a job's run emits.
//!
//! Checks what a plugin hands over and translates; whose job is whose, and when it runs, is `jobs`' to say.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use uuid::Uuid;
use wasmtime::component::{Accessor, HasSelf};

use super::bindings::switchbay::jobs::{queue, work};
use super::instance::{CallRefused, refused_calls};
use super::{GuestState, JobWorker, LendingOrder, OnBehalf};
use crate::queue::{JobQueue, JobSubmission, JobSubmitter, SubmitError};
use crate::records::job::{Job, JobName, JobProgress, JobState};
use crate::records::job_rules::{ItemPage, KeepOutcome};
use crate::runtime::in_flight::ActPlace;
use crate::stores::StoreError;

/// Calls of one call about jobs under way at once; the next is refused, because each holds its input or its value here.
const IN_FLIGHT_MAX: usize = 32;
/// Of a request id, in characters.
const REQUEST_ID_MAX: usize = 80;
const FINGERPRINT_BYTES_MAX: usize = 256;
const INPUT_BYTES_MAX: usize = 64 << 10;
/// The shortest and the longest that a job lives, in milliseconds.
const TTL_MS: (u32, u32) = (1000, 24 * 3600 * 1000);
/// The shortest and the longest that a job may take, in milliseconds.
const BUDGET_MS: (u32, u32) = (1000, 3600 * 1000);
/// The longest that a call waits for a job's end.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// Items of one page.
const PAGE_ITEMS_MAX: u32 = 100;
/// Values of one page, in bytes.
const PAGE_BYTES_MAX: u32 = 4 << 20;
const KEY_BYTES_MAX: usize = 2048;
/// A value, or a checkpoint.
const VALUE_BYTES_MAX: usize = 1 << 20;

/// The interface in atoms.
const ATOM: &str = "jobs";

/// The jobs of one plugin.
pub(crate) struct JobsOf {
    jobs: Arc<JobQueue>,
    plugin: Arc<str>,
}

/// The jobs of the process, as the plugin's.
pub(super) fn lend(order: &mut LendingOrder<'_>) -> Option<JobsOf> {
    Some(JobsOf {
        jobs: Arc::clone(&order.runtime.lendable.jobs),
        plugin: order.plugin.into(),
    })
}

refused_calls! {
    queue::Error => Self::NotGranted,
    queue::SubmitError => Self::NotGranted,
    work::Error => Self::NotGranted,
}

/// The jobs, on whose behalf they are asked for, and a place for one call.
struct JobsCall {
    jobs: Arc<JobQueue>,
    plugin: Arc<str>,
    on_behalf: OnBehalf,
    _place: ActPlace,
}

impl GuestState {
    fn place(&self) -> Result<ActPlace, CallRefused> {
        let place = self.in_flight.place(ATOM, IN_FLIGHT_MAX);
        place.ok_or(CallRefused::Busy)
    }

    fn asked(&self) -> Result<JobsCall, CallRefused> {
        match (&self.lent.jobs, &self.on_behalf) {
            (Some(JobsOf { jobs, plugin }), Some(on_behalf)) if self.lent.rights.any_of(ATOM) => {
                Ok(JobsCall {
                    jobs: Arc::clone(jobs),
                    plugin: Arc::clone(plugin),
                    on_behalf: on_behalf.clone(),
                    _place: self.place()?,
                })
            }
            _ => Err(CallRefused::Ungranted(self.denied(ATOM))),
        }
    }

    /// The job that the instance works on.
    fn working(&self) -> Result<&JobWorker, work::Error> {
        if self.lent.rights.any_of(ATOM) {
            self.worker.as_ref().ok_or(work::Error::Ended)
        } else {
            Err(work::Error::NotGranted(self.denied(ATOM)))
        }
    }
}

fn asked<T: Send + 'static>(
    accessor: &Accessor<T, HasSelf<GuestState>>,
) -> Result<JobsCall, CallRefused> {
    accessor.with(|mut access| access.get().asked())
}

impl queue::Host for GuestState {}

impl<T: Send + 'static> queue::HostWithStore<T> for HasSelf<GuestState> {
    async fn submit(
        accessor: &Accessor<T, Self>,
        submission: queue::Submission,
    ) -> Result<String, queue::SubmitError> {
        let JobsCall {
            jobs,
            plugin,
            on_behalf,
            _place,
        } = asked(accessor)?;
        let submission = read_submission(submission).map_err(queue::SubmitError::NotAcceptable)?;
        let from = JobSubmitter {
            owner: on_behalf.owner,
            tenant: on_behalf.tenant,
            key: on_behalf.key,
            plugin,
            caller: on_behalf.caller,
            operation: on_behalf.operation,
            request_id: on_behalf.request_id,
        };
        match jobs.submit(from, submission, SystemTime::now()).await {
            Ok(id) => Ok(id.to_string()),
            Err(SubmitError::Duplicate(earlier)) => {
                Err(queue::SubmitError::Duplicate(queue::Earlier {
                    job: earlier.id.to_string(),
                    is_same: earlier.is_same,
                }))
            }
            Err(SubmitError::Full) => Err(queue::SubmitError::Full),
            Err(SubmitError::Store(error)) => {
                tell(&error);
                Err(queue::SubmitError::Unavailable)
            }
        }
    }

    async fn read(
        accessor: &Accessor<T, Self>,
        job: String,
        page: queue::Page,
    ) -> Result<queue::Snapshot, queue::Error> {
        let (jobs, name, _place) = named(accessor, &job)?;
        for (member, found, most) in [
            ("items-max", page.items_max, PAGE_ITEMS_MAX),
            ("bytes-max", page.bytes_max, PAGE_BYTES_MAX),
        ] {
            if !(1..=most).contains(&found) {
                let rule = format!("`{member}` is {found}; it must be from 1 to {most}");
                return Err(queue::Error::NotAcceptable(rule));
            }
        }
        let bytes_max = usize::try_from(page.bytes_max).unwrap_or(usize::MAX);
        let page = (page.offset, page.items_max, bytes_max);
        let read = jobs.read(name, page, SystemTime::now()).await;
        found(read).map(|(job, page)| snapshot(job, page))
    }

    async fn wait(
        accessor: &Accessor<T, Self>,
        job: String,
        at_most_ms: u32,
    ) -> Result<queue::State, queue::Error> {
        let (jobs, name, _place) = named(accessor, &job)?;
        let at_most = Duration::from_millis(u64::from(at_most_ms)).min(WAIT_MAX);
        found(jobs.wait(name, at_most).await).map(state)
    }

    async fn cancel(
        accessor: &Accessor<T, Self>,
        job: String,
    ) -> Result<queue::State, queue::Error> {
        let (jobs, name, _place) = named(accessor, &job)?;
        found(jobs.cancel(name, SystemTime::now()).await).map(state)
    }
}

/// The job that a text names, among those of the caller, and a place for one call.
fn named<T: Send + 'static>(
    accessor: &Accessor<T, HasSelf<GuestState>>,
    job: &str,
) -> Result<(Arc<JobQueue>, JobName, ActPlace), queue::Error> {
    let JobsCall {
        jobs,
        plugin,
        on_behalf: OnBehalf { owner, .. },
        _place,
    } = asked(accessor)?;
    let id = Uuid::try_parse(job).map_err(|_| queue::Error::NotFound)?;
    Ok((jobs, JobName { owner, plugin, id }, _place))
}

fn found<V>(read: Result<Option<V>, StoreError>) -> Result<V, queue::Error> {
    match read {
        Ok(found) => found.ok_or(queue::Error::NotFound),
        Err(error) => {
            tell(&error);
            Err(queue::Error::Unavailable)
        }
    }
}

fn tell(error: &StoreError) {
    tracing::error!(%error, "jobs cannot be read or written");
}

fn read_submission(submission: queue::Submission) -> Result<JobSubmission, String> {
    let queue::Submission {
        request_id,
        fingerprint,
        input,
        ttl_ms,
        budget_ms,
    } = submission;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !(1..=REQUEST_ID_MAX).contains(&request_id.len()) || !request_id.bytes().all(is_plain) {
        return Err(format!(
            "`request-id` must be 1 to {REQUEST_ID_MAX} characters of A-Z, a-z, 0-9, - and _"
        ));
    }
    let bounded = |member: &str, bytes: usize, most: usize| {
        if bytes > most {
            Err(format!(
                "`{member}` has {bytes} bytes; at most {most} are allowed"
            ))
        } else {
            Ok(())
        }
    };
    bounded("fingerprint", fingerprint.len(), FINGERPRINT_BYTES_MAX)?;
    bounded("input", input.len(), INPUT_BYTES_MAX)?;
    if !serde_json::from_str::<serde_json::Value>(&input).is_ok_and(|value| value.is_object()) {
        return Err("`input` must be a JSON object".to_owned());
    }
    let time = |member: &str, ms: u32, (least, most): (u32, u32)| {
        if (least..=most).contains(&ms) {
            Ok(Duration::from_millis(u64::from(ms)))
        } else {
            Err(format!(
                "`{member}` is {ms}; it must be from {least} to {most}"
            ))
        }
    };
    let (ttl, budget) = (
        time("ttl-ms", ttl_ms, TTL_MS)?,
        time("budget-ms", budget_ms, BUDGET_MS)?,
    );
    Ok(JobSubmission {
        request_id,
        fingerprint,
        input,
        ttl,
        budget,
    })
}

fn snapshot(job: Job, page: ItemPage) -> queue::Snapshot {
    queue::Snapshot {
        state: state(job.state),
        total: job.progress.total,
        completed: job.progress.completed,
        items: page
            .items
            .into_iter()
            .map(|(key, value)| queue::Item { key, value })
            .collect(),
        next_offset: page.next,
        expires_at_ms: job.expires_ms,
        output: job.output,
        failure: job.failure.map(|failure| queue::Failed {
            code: failure.code,
            message: failure.message,
        }),
    }
}

fn state(state: JobState) -> queue::State {
    match state {
        JobState::Pending => queue::State::Pending,
        JobState::Running => queue::State::Running,
        JobState::Completed => queue::State::Completed,
        JobState::Failed => queue::State::Failed,
        JobState::Cancelled => queue::State::Cancelled,
    }
}

/// The job that the instance works on, and a place for one call.
fn working<T: Send + 'static>(
    accessor: &Accessor<T, HasSelf<GuestState>>,
) -> Result<(JobWorker, ActPlace), work::Error> {
    accessor.with(|mut access| {
        let state: &mut GuestState = access.get();
        Ok((state.working()?.clone(), state.place()?))
    })
}

impl work::Host for GuestState {
    fn progress(&mut self, total: Option<u32>, completed: u32) -> Result<(), work::Error> {
        self.working()
            .map(|worker| worker.run.tell(JobProgress { total, completed }))
    }
}

impl<T: Send + 'static> work::HostWithStore<T> for HasSelf<GuestState> {
    async fn emit(
        accessor: &Accessor<T, Self>,
        key: String,
        value: String,
        checkpoint: Option<String>,
    ) -> Result<bool, work::Error> {
        if !(1..=KEY_BYTES_MAX).contains(&key.len()) {
            let rule = format!(
                "the key has {} bytes; it must have 1 to {KEY_BYTES_MAX}",
                key.len()
            );
            return Err(work::Error::NotAcceptable(rule));
        }
        keep(accessor, Some((key, value)), checkpoint).await
    }

    async fn checkpoint(accessor: &Accessor<T, Self>, text: String) -> Result<(), work::Error> {
        keep(accessor, None, Some(text)).await.map(|_| ())
    }

    async fn emitted(accessor: &Accessor<T, Self>) -> Result<Vec<String>, work::Error> {
        let (worker, _place) = working(accessor)?;
        worker.run.keys().await.map_err(|error| unkept(&error))
    }
}

async fn keep<T: Send + 'static>(
    accessor: &Accessor<T, HasSelf<GuestState>>,
    item: Option<(String, String)>,
    checkpoint: Option<String>,
) -> Result<bool, work::Error> {
    let (worker, _place) = working(accessor)?;
    let sizes = [
        ("value", item.as_ref().map(|(_, value)| value.len())),
        ("checkpoint", checkpoint.as_ref().map(String::len)),
    ];
    for (what, bytes) in sizes {
        if let Some(bytes) = bytes.filter(|bytes| *bytes > VALUE_BYTES_MAX) {
            return Err(work::Error::NotAcceptable(format!(
                "the {what} has {bytes} bytes; at most {VALUE_BYTES_MAX} are allowed"
            )));
        }
    }
    // Within the guest's poll, so on its thread, as below.
    accessor.with(|_| worker.tab.charge());
    let kept = worker
        .run
        .keep(item, checkpoint)
        .await
        .map_err(|error| unkept(&error))?;
    match kept {
        KeepOutcome::Done { is_new, .. } => {
            accessor.with(|_| worker.run.cpu.begin());
            Ok(is_new)
        }
        KeepOutcome::Ended => Err(work::Error::Ended),
        KeepOutcome::Full => Err(work::Error::Full),
    }
}

fn unkept(error: &StoreError) -> work::Error {
    tell(error);
    work::Error::Unavailable
}
