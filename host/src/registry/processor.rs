//! The processor time of a call: the thread's clock over each poll of the call's future. A guest that waits is not charged,
//! and neither is one that was preempted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts one slice of work: a call, or what a job does from one item that it keeps to the next.
#[derive(Default)]
pub(crate) struct CpuMeter {
    used_ns: AtomicU64,
    poll_began_ns: AtomicU64,
}

impl CpuMeter {
    /// Begins a new slice; within a poll it must be asked on the polling thread.
    pub(crate) fn begin(&self) {
        self.used_ns.store(0, Ordering::Relaxed);
        self.poll_began_ns.store(thread_ns(), Ordering::Relaxed);
    }

    /// Including the poll that is under way, so it must be asked on the polling thread.
    pub(super) fn used(&self) -> Duration {
        let poll = thread_ns().saturating_sub(self.poll_began_ns.load(Ordering::Relaxed));
        Duration::from_nanos(self.used_ns.load(Ordering::Relaxed) + poll)
    }

    fn poll_begins(&self) {
        self.poll_began_ns.store(thread_ns(), Ordering::Relaxed);
    }

    fn poll_ends(&self) {
        let now = thread_ns();
        let poll = now.saturating_sub(self.poll_began_ns.swap(now, Ordering::Relaxed));
        self.used_ns.fetch_add(poll, Ordering::Relaxed);
    }
}

fn thread_ns() -> u64 {
    u64::try_from(thread_time().as_nanos()).unwrap_or(u64::MAX)
}

/// What the thread that asks has used of a processor.
pub(crate) fn thread_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Runs a future with its polls metered.
pub(super) async fn metered<F: Future>(cpu: &CpuMeter, future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| {
        cpu.poll_begins();
        let polled = future.as_mut().poll(context);
        cpu.poll_ends();
        polled
    })
    .await
}
