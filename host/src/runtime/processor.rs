//! The processor time of a call: the thread's clock over each poll of the call's future. A guest that waits is not charged,
//! and neither is one that was preempted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::run_queue::Quantum;
use crate::base::clock::thread_time;

/// Counts a call or a run of a job, and within it one slice: the call, or what a job does from one item that it keeps to the
/// next.
#[derive(Default)]
pub(crate) struct CpuMeter {
    /// Of the slices before this one.
    before_ns: AtomicU64,
    used_ns: AtomicU64,
    poll_began_ns: AtomicU64,
    is_polled: AtomicBool,
    /// It computes in turn with others.
    is_long: AtomicBool,
    /// What lets it compute, for the poll that is under way.
    quantum: Mutex<Option<Quantum>>,
}

impl CpuMeter {
    /// Begins from nothing, for another call.
    pub(crate) fn reset(&self) {
        for counted in [&self.before_ns, &self.used_ns] {
            counted.store(0, Ordering::Relaxed);
        }
        self.is_long.store(false, Ordering::Relaxed);
    }

    /// Begins a new slice; within a poll it must be asked on the polling thread.
    pub(crate) fn begin(&self) {
        let used = self.used_ns.swap(0, Ordering::Relaxed) + self.poll_ns();
        self.before_ns.fetch_add(used, Ordering::Relaxed);
        self.poll_began_ns.store(thread_ns(), Ordering::Relaxed);
    }

    /// Of the slice, including the poll that is under way, so it must be asked on the polling thread.
    pub(crate) fn used(&self) -> Duration {
        Duration::from_nanos(self.used_ns.load(Ordering::Relaxed) + self.poll_ns())
    }

    /// Of all slices; the same holds.
    pub(crate) fn total(&self) -> Duration {
        Duration::from_nanos(self.before_ns.load(Ordering::Relaxed)) + self.used()
    }

    /// The poll that is under way.
    fn poll_ns(&self) -> u64 {
        if self.is_polled.load(Ordering::Relaxed) {
            thread_ns().saturating_sub(self.poll_began_ns.load(Ordering::Relaxed))
        } else {
            0
        }
    }

    /// It computes in turn with others from now on.
    pub(crate) fn becomes_long(&self) {
        self.is_long.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_long(&self) -> bool {
        self.is_long.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(crate) fn used_by_another(&self, used: Duration) {
        self.used_ns.fetch_add(
            u64::try_from(used.as_nanos()).unwrap_or(u64::MAX),
            Ordering::Relaxed,
        );
    }

    /// The rest of the poll is computed with this.
    pub(crate) fn computes_with(&self, quantum: Quantum) {
        *self.quantum.lock() = Some(quantum);
    }

    fn poll_begins(&self) {
        self.poll_began_ns.store(thread_ns(), Ordering::Relaxed);
        self.is_polled.store(true, Ordering::Relaxed);
    }

    fn poll_ends(&self) {
        self.used_ns.fetch_add(self.poll_ns(), Ordering::Relaxed);
        self.is_polled.store(false, Ordering::Relaxed);
        drop(self.quantum.lock().take());
    }
}

fn thread_ns() -> u64 {
    u64::try_from(thread_time().as_nanos()).unwrap_or(u64::MAX)
}

/// Runs a future with its polls metered.
pub(crate) async fn metered<F: Future>(cpu: &CpuMeter, future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| {
        cpu.poll_begins();
        let polled = future.as_mut().poll(context);
        cpu.poll_ends();
        polled
    })
    .await
}
