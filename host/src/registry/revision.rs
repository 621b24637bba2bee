//! One revision of a plugin: an immutable snapshot of what it serves and how it is run.
//!
//! A call takes the snapshot once and finishes on it, whatever is swapped meanwhile.

use std::sync::Arc;
use std::time::Instant;

use super::instance::{CallError, Instances};
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
        match &self.runner {
            Runner::Component(instances) => instances.invoke(call).await,
            Runner::Native(handler) => Ok(handler(call)),
        }
    }

    /// Drops what has grown old.
    pub(crate) fn sweep(&self, now: Instant) {
        if let Runner::Component(instances) = &self.runner {
            instances.sweep(now);
        }
    }
}
