//! How many jobs there may be.

use std::time::Duration;

use super::written::WrittenJobs;
use super::{ConfigError, within};

/// How many jobs each plugin, and each tenant of it, may have. The last quarter of what is open, and of what runs, is for tenants
/// that have none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobLimits {
    /// That run at once.
    pub(crate) running: usize,
    /// That have not ended.
    pub(crate) open: usize,
    /// That run at once for one tenant.
    pub(crate) owner_running: usize,
    /// That have not ended, of one tenant.
    pub(crate) owner_open: usize,
    /// That are kept for one tenant, ended or not.
    pub(crate) owner_kept: usize,
    /// Bytes that are kept for one tenant; with more, nothing new is taken.
    pub(crate) owner_bytes: u64,
    /// Processor time of one job, over all its runs.
    pub(crate) cpu: Duration,
}

impl JobLimits {
    /// Checks what was written.
    pub(super) fn read(written: &WrittenJobs) -> Result<Self, ConfigError> {
        Ok(Self {
            running: within("jobs.running", written.running, 1, 1000)?,
            open: within("jobs.open", written.open, 1, 100_000)?,
            owner_running: within("jobs.owner_running", written.owner_running, 1, 1000)?,
            owner_open: within("jobs.owner_open", written.owner_open, 1, 100_000)?,
            owner_kept: within("jobs.owner_kept", written.owner_kept, 1, 100_000)?,
            owner_bytes: within("jobs.owner_bytes", written.owner_bytes, 1 << 20, 1 << 40)?,
            cpu: Duration::from_secs(within("jobs.cpu_seconds", written.cpu_seconds, 1, 3600)?),
        })
    }
}
