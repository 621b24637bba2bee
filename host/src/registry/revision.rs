//! One revision of a plugin: an immutable snapshot of what it serves and how it is run.
//!
//! A call takes the snapshot once and finishes on it, whatever is swapped meanwhile.

use std::sync::Arc;
use std::time::Instant;

use super::instance::{CallError, Instances};
use crate::metrics::{Calls, Outcome, Vitals};
use crate::operation::{Answer, Call, Operation};

/// A loaded revision.
pub(crate) struct Revision {
    /// The plugin's name in the manifest.
    pub(crate) plugin: Arc<str>,
    /// What the plugin says its version is.
    pub(crate) version: String,
    pub(crate) summary: String,
    /// SHA-256 of the component, in hexadecimal: the revision's name.
    pub(crate) digest: Arc<str>,
    pub(crate) operations: Vec<Arc<Operation>>,
    pub(crate) runner: Runner,
    /// What its calls came to, for the operator.
    pub(crate) calls: Calls,
}

/// What runs a revision's calls.
pub(crate) enum Runner {
    Component(Box<Instances>),
    /// The benchmarks' yardstick: a function of this process on the same road. No manifest can name one.
    Native(Box<NativeHandler>),
}

/// Answers a call in the host's own process.
pub(crate) type NativeHandler = dyn Fn(Call) -> Answer + Send + Sync;

impl Revision {
    /// Runs one call. Only the pipeline calls this.
    pub(crate) async fn invoke(&self, call: Call) -> Result<Answer, CallError> {
        let running = self.calls.begin(Instant::now());
        let ended = match &self.runner {
            Runner::Component(instances) => instances.invoke(call).await,
            Runner::Native(handler) => Ok(handler(call)),
        };
        running.end(outcome(&ended));
        ended
    }

    /// What its instances use; a native one has none.
    pub(crate) fn vitals(&self) -> Option<&Vitals> {
        match &self.runner {
            Runner::Component(instances) => Some(instances.vitals()),
            Runner::Native(_) => None,
        }
    }

    /// Drops what has grown old.
    pub(crate) fn sweep(&self, now: Instant) {
        if let Runner::Component(instances) = &self.runner {
            instances.sweep(now);
        }
    }
}

/// The one place where an end becomes what is counted.
fn outcome(ended: &Result<Answer, CallError>) -> Outcome {
    match ended {
        Ok(Answer::Success(_)) => Outcome::Ok,
        Ok(Answer::Failure(_)) => Outcome::Failure,
        Err(CallError::Busy { .. }) => Outcome::Busy,
        Err(CallError::Paused { .. }) => Outcome::Paused,
        Err(CallError::NoRoom(_)) => Outcome::NoRoom,
        Err(CallError::Deadline(_)) => Outcome::Deadline,
        Err(CallError::CpuSpent(_)) => Outcome::CpuSpent,
        Err(CallError::MemorySpent { .. }) => Outcome::MemorySpent,
        Err(CallError::Trapped { .. }) => Outcome::Trap,
        Err(CallError::Exited(_)) => Outcome::Exit,
        Err(CallError::TooLarge { .. }) => Outcome::TooLarge,
    }
}
