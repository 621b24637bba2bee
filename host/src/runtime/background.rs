//! Threads for long computations, to which the kernel gives what everything else of this process leaves.
//!
//! A call runs where it was asked for, as most are over in milliseconds. One that computes for long goes on here, so that
//! whoever only passes something on never stands behind it. Must not know what is computed.

use std::io;
use std::pin::pin;
use std::task::Poll;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::task::AbortOnDropHandle;

/// The threads are as much nicer than the others: with all processors taken they have about a tenth.
const NICE: i32 = 10;

/// The threads.
pub(crate) struct Background {
    /// Taken when this is dropped.
    runtime: Option<Runtime>,
}

impl Background {
    /// Starts so many.
    pub(crate) fn start(threads: usize) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("background")
            .on_thread_start(|| {
                if let Err(error) = rustix::process::nice(NICE) {
                    tracing::warn!(%error, "the priority of long computations cannot be lowered");
                }
            })
            .build()?;
        Ok(Self {
            runtime: Some(runtime),
        })
    }

    /// Runs a future here until it is said to be long, and the rest of it in the background. Dropped, it ends at its next
    /// pause. `None` where the process ends.
    pub(crate) async fn run<F>(&self, future: F, is_long: impl Fn() -> bool) -> Option<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        // On the heap, so that it can be handed over.
        let mut future = Box::pin(future);
        let done = std::future::poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if is_long() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await;
        match done {
            Some(done) => Some(done),
            None => self.run_all(future).await,
        }
    }

    /// Runs all of a future in the background.
    pub(crate) async fn run_all<F>(&self, future: F) -> Option<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let runtime = self.runtime.as_ref()?;
        let ended = AbortOnDropHandle::new(runtime.spawn(within(Handle::current(), future))).await;
        match ended.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(done) => Some(done),
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            Err(Err(_)) => None,
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Whoever drops this may not wait.
            runtime.shutdown_background();
        }
    }
}

/// What the future waits for and starts stays where it came from: connections are shared with what is not long.
async fn within<F: Future>(home: Handle, future: F) -> F::Output {
    let mut future = pin!(future);
    std::future::poll_fn(|context| {
        let _entered = home.enter();
        future.as_mut().poll(context)
    })
    .await
}
