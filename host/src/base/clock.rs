//! What clocks say, as the numbers that records, headers and log lines hold.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Whole seconds since 1970.
pub(crate) fn epoch_seconds(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs())
}

/// Whole milliseconds since 1970.
pub(crate) fn epoch_ms(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH).map_or(0, milliseconds)
}

/// A duration in whole milliseconds.
pub(crate) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A duration as the log has it.
pub(crate) fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// What the thread that asks has used of a processor.
pub(crate) fn thread_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or(0),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    )
}
