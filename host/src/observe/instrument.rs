//! Counters, gauges and histograms: atomics, read one by one.
//!
//! A reader may see a call in one of them and not yet in another; each alone only ever tells what happened.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Goes up.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn increment(&self) {
        self.add(1);
    }

    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How many are held now.
#[derive(Default)]
pub(crate) struct Gauge(AtomicU64);

/// One of those that a gauge counts, until it is dropped.
pub(crate) struct Held(Arc<Gauge>);

impl Gauge {
    pub(crate) fn hold(self: &Arc<Self>) -> Held {
        self.0.fetch_add(1, Ordering::Relaxed);
        Held(Arc::clone(self))
    }

    /// Adds, and tells how many are held with that.
    pub(crate) fn add(&self, count: u64) -> u64 {
        self.0.fetch_add(count, Ordering::Relaxed) + count
    }

    pub(crate) fn sub(&self, count: u64) {
        self.0.fetch_sub(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What several have together now.
#[derive(Default)]
pub(crate) struct SumGauge(AtomicU64);

impl SumGauge {
    /// One of them has another value than before.
    pub(crate) fn change(&self, before: u64, after: u64) {
        // In the ring of 64 bits less is as good as more.
        self.0
            .fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The highest value that was ever seen.
#[derive(Default)]
pub(crate) struct PeakGauge(AtomicU64);

impl PeakGauge {
    pub(crate) fn seen(&self, value: u64) {
        self.0.fetch_max(value, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Upper bounds of the buckets, in microseconds: from a call that only looks something up to the longest wall clock that a
/// manifest may give.
const BOUNDS_US: [u64; 18] = [
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    150_000_000,
];

/// Times, counted in buckets.
#[derive(Default)]
pub(crate) struct Histogram {
    /// Each observation stands in one bucket alone; the sums are made when it is read.
    buckets: [AtomicU64; BOUNDS_US.len()],
    beyond: AtomicU64,
    sum_ns: AtomicU64,
}

/// A histogram as it was at one moment. Its count is made of its buckets, so that they agree.
pub(crate) struct Distribution {
    /// Upper bound and how many were at most that.
    pub(crate) buckets: [(Duration, u64); BOUNDS_US.len()],
    pub(crate) count: u64,
    pub(crate) sum: Duration,
}

impl Histogram {
    pub(crate) fn observe(&self, time: Duration) {
        let place = BOUNDS_US.partition_point(|bound| Duration::from_micros(*bound) < time);
        self.buckets
            .get(place)
            .unwrap_or(&self.beyond)
            .fetch_add(1, Ordering::Relaxed);
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Distribution {
        let mut count = 0;
        let buckets = std::array::from_fn(|index| {
            count += self.buckets[index].load(Ordering::Relaxed);
            (Duration::from_micros(BOUNDS_US[index]), count)
        });
        count += self.beyond.load(Ordering::Relaxed);
        Distribution {
            buckets,
            count,
            sum: Duration::from_nanos(self.sum_ns.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_in_every_bucket_from_its_own_upwards() {
        let histogram = Histogram::default();
        for us in [0, 250, 251, 150_000_001] {
            histogram.observe(Duration::from_micros(us));
        }
        let Distribution {
            buckets,
            count,
            sum,
        } = histogram.read();
        assert_eq!(
            (buckets[0].1, buckets[1].1, buckets[17].1, count),
            (2, 3, 3, 4)
        );
        assert_eq!(sum, Duration::from_micros(150_000_502));
    }
}
