//! One revision of a plugin: an immutable snapshot of what it serves and how it is run.
//!
//! A call takes the snapshot once and finishes on it, whatever is swapped meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::operation_state::OperationState;
use crate::contract::description::Description;
use crate::contract::grants::{FEATURES, Rights};
use crate::contract::operation::{Call, CallerKind, Operation, UncheckedAnswer};
use crate::contract::tenant::Tenant;
use crate::observe::metrics::{CallMetrics, CallOutcome, InstanceMetrics};
use crate::runtime::instance::Off;
use crate::runtime::instance::{CallError, Instances};
use crate::runtime::job_run::JobRun;

/// A loaded revision.
pub(crate) struct Revision {
    /// The plugin's name in the manifest.
    pub(crate) plugin: Arc<str>,
    /// Its number within the plugin; 0 for one that no store knows.
    pub(crate) number: u64,
    /// What the plugin says its version is.
    pub(crate) version: String,
    pub(crate) summary: String,
    /// SHA-256 of the component, in hexadecimal.
    pub(crate) digest: Arc<str>,
    /// What it may do: wanted and granted.
    pub(crate) rights: Rights,
    /// Whether it may call any operation of another plugin.
    pub(crate) calls_features: bool,
    operations: Vec<(Arc<Operation>, Arc<OperationState>)>,
    pub(crate) runner: CallRunner,
    /// What its calls came to, for the operator.
    pub(crate) calls: CallMetrics,
    /// Cancelled when its calls are to end whether they are done or not.
    stop: CancellationToken,
    /// Cancelled when nobody holds it any more.
    gone: CancellationToken,
}

/// What runs a revision's calls.
pub(crate) enum CallRunner {
    Component(Arc<Instances>),
    /// The benchmarks' yardstick: a function of this process on the same road. No manifest can name one.
    Native(Box<NativeHandler>),
    /// Nothing: the operations are known and cannot be called.
    Off(Off),
}

/// Answers a call in the host's own process.
pub(crate) type NativeHandler = dyn Fn(Call) -> UncheckedAnswer + Send + Sync;

impl Revision {
    pub(crate) fn new(
        plugin: &str,
        number: u64,
        digest: &str,
        description: Description,
        rights: Rights,
        runner: CallRunner,
    ) -> Self {
        Self {
            plugin: plugin.into(),
            number,
            version: description.version,
            summary: description.summary,
            digest: digest.into(),
            calls_features: rights.any_of(FEATURES),
            rights,
            operations: description.operations.into_iter().map(with_state).collect(),
            runner,
            calls: CallMetrics::default(),
            stop: CancellationToken::new(),
            gone: CancellationToken::new(),
        }
    }

    /// Its operations, each with what stands beside its row.
    pub(crate) fn operations(
        &self,
    ) -> impl Iterator<Item = (&Arc<Operation>, &Arc<OperationState>)> {
        self.operations
            .iter()
            .map(|(operation, state)| (operation, state))
    }

    /// Whether a tenant's call may begin, its place aside. One that may not counts as a call that ended so.
    pub(crate) fn judge(&self, tenant: &Tenant) -> Result<(), CallError> {
        let CallRunner::Component(instances) = &self.runner else {
            return Ok(());
        };
        instances
            .judge(tenant)
            .inspect_err(|error| self.calls.begin(Instant::now()).end(outcome_of(error)))
    }

    /// Runs one call. Only the pipeline calls this.
    pub(crate) async fn invoke(&self, call: Call) -> Result<UncheckedAnswer, CallError> {
        let running = self.calls.begin(Instant::now());
        let ended = match &self.runner {
            CallRunner::Component(instances) => tokio::select! {
                biased;
                () = self.stop.cancelled() => Err(CallError::Stopped),
                ended = instances.invoke(call) => ended,
            },
            CallRunner::Native(handler) => Ok(handler(call)),
            CallRunner::Off(off) => Err(CallError::Off(off.clone())),
        };
        running.end(outcome(&ended));
        ended
    }

    /// Runs a job. Only the pipeline calls this.
    pub(crate) async fn work(
        &self,
        call: Call,
        run: Arc<JobRun>,
        checkpoint: Option<String>,
    ) -> Result<UncheckedAnswer, CallError> {
        match &self.runner {
            CallRunner::Component(instances) => tokio::select! {
                biased;
                () = self.stop.cancelled() => Err(CallError::Stopped),
                ended = instances.work(call, run, checkpoint) => ended,
            },
            CallRunner::Native(_) => Err(CallError::NoWorker),
            CallRunner::Off(off) => Err(CallError::Off(off.clone())),
        }
    }

    /// Whether it has answered a call well.
    pub(crate) fn has_answered(&self) -> bool {
        self.calls
            .ended()
            .any(|(outcome, count)| outcome == CallOutcome::Ok && count > 0)
    }

    /// Whether the published documents name its operations.
    pub(crate) fn is_published(&self) -> bool {
        !matches!(self.runner, CallRunner::Off(Off::Disabled))
    }

    /// The longest that a call of one of its operations may take.
    pub(crate) fn time_of(&self, operation: &Operation) -> Duration {
        match &self.runner {
            CallRunner::Component(instances) => operation.deadline.min(instances.wall()),
            CallRunner::Native(_) | CallRunner::Off(_) => operation.deadline,
        }
    }

    /// Whether a call may come from such a caller.
    pub(crate) fn knows(&self, caller: CallerKind) -> bool {
        match &self.runner {
            CallRunner::Component(instances) => instances.knows(caller),
            CallRunner::Native(_) | CallRunner::Off(_) => true,
        }
    }

    /// The longest that one of its calls may take.
    pub(crate) fn longest_call(&self) -> Duration {
        let times = self
            .operations()
            .map(|(operation, _)| self.time_of(operation));
        times.max().unwrap_or_default()
    }

    /// Ends all its calls, and every later one.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Cancelled when nobody holds the revision any more.
    pub(crate) fn gone(&self) -> CancellationToken {
        self.gone.clone()
    }

    /// What its instances use; one that is not a component has none.
    pub(crate) fn vitals(&self) -> Option<&InstanceMetrics> {
        match &self.runner {
            CallRunner::Component(instances) => Some(instances.vitals()),
            CallRunner::Native(_) | CallRunner::Off(_) => None,
        }
    }

    /// The bytes that the plugin's cache holds, where it is granted.
    pub(crate) fn cached_bytes(&self) -> Option<u64> {
        match &self.runner {
            CallRunner::Component(instances) => instances.cached_bytes(),
            CallRunner::Native(_) | CallRunner::Off(_) => None,
        }
    }

    /// Drops what has grown old.
    pub(crate) fn sweep(&self, now: Instant) {
        if let CallRunner::Component(instances) = &self.runner {
            instances.sweep(now);
        }
    }
}

impl Drop for Revision {
    fn drop(&mut self) {
        self.gone.cancel();
    }
}

fn with_state(operation: Operation) -> (Arc<Operation>, Arc<OperationState>) {
    let state = OperationState::new(&operation);
    (Arc::new(operation), Arc::new(state))
}

/// The one place where an end becomes what is counted.
fn outcome(ended: &Result<UncheckedAnswer, CallError>) -> CallOutcome {
    match ended {
        Ok(UncheckedAnswer::Success(_)) => CallOutcome::Ok,
        Ok(UncheckedAnswer::Failure(_)) => CallOutcome::Failure,
        Err(error) => outcome_of(error),
    }
}

fn outcome_of(error: &CallError) -> CallOutcome {
    match error {
        CallError::Busy { .. } => CallOutcome::Busy,
        CallError::OwnShare { .. } | CallError::Crowded { .. } => CallOutcome::OwnShare,
        CallError::Paused { .. } | CallError::PluginPaused { .. } => CallOutcome::Paused,
        CallError::OverBudget { .. } => CallOutcome::OverBudget,
        CallError::NoRoom(_) => CallOutcome::NoRoom,
        CallError::Deadline(_) => CallOutcome::Deadline,
        CallError::CpuSpent(_) | CallError::JobSpent(_) => CallOutcome::CpuSpent,
        CallError::MemorySpent { .. } => CallOutcome::MemorySpent,
        CallError::Trapped { .. } | CallError::NoWorker | CallError::CallerUnknown { .. } => {
            CallOutcome::Trap
        }
        CallError::Exited(_) => CallOutcome::Exit,
        CallError::TooLarge { .. } => CallOutcome::TooLarge,
        CallError::Stopped => CallOutcome::Stopped,
        CallError::Off(_) => CallOutcome::Off,
    }
}
