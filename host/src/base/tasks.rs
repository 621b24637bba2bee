//! Work that runs beside whoever asked for it, and its one owner.
//!
//! A task that outlives its caller is spawned through [`Tasks`], so that its end can be waited for; listeners, the proxy and the
//! runner of jobs track theirs themselves. Bare `tokio::spawn` is a disallowed method. Knows nothing of what the tasks do.

use std::time::Duration;

use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// The owner of the process's tasks.
#[derive(Clone, Default)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    /// Runs a task until it is done or the process stops, whichever is first.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tracker.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = task => {}
            }
        });
    }

    /// Runs a task to its end, however long the process has been stopping: what it writes must be followed by what it serves.
    pub(crate) fn spawn_to_end(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(task);
    }

    /// Does something to its end, even where nobody waits for it any more and while the process stops: a change that was
    /// written must be served, and a call that is paid for must be settled.
    pub(crate) async fn spawn_uncancellable<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        match self.run_to_end(work).await {
            Ok(done) => done,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    /// The same, where a panic of the work is a failure that is answered.
    pub(crate) async fn run_to_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, JoinError> {
        self.tracker.spawn(work).await
    }

    /// Begins something on a task of its own, which ends when nobody waits for it any more.
    pub(crate) fn run_while_awaited<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> AbortOnDropHandle<T> {
        AbortOnDropHandle::new(self.tracker.spawn(work))
    }

    /// Tells all tasks that the process stops.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Cancelled when the process stops.
    pub(crate) fn stopping(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// How many run.
    pub(crate) fn running(&self) -> usize {
        self.tracker.len()
    }

    /// Ends what may be ended, and waits for the rest at most so long. Gives back whether all has ended.
    pub(crate) async fn end(&self, at_most: Duration) -> bool {
        self.stop.cancel();
        self.tracker.close();
        tokio::time::timeout(at_most, self.tracker.wait())
            .await
            .is_ok()
    }
}

/// Runs work that blocks on a thread that may.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
