//! How many jobs there may be.

use super::written::WrittenJobs;
use super::{ConfigError, within};

/// How many jobs each plugin, and each caller of it, may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobLimits {
    /// That run at once.
    pub(crate) running: usize,
    /// That have not ended.
    pub(crate) open: usize,
    /// That run at once for one owner.
    pub(crate) owner_running: usize,
    /// That have not ended, of one owner.
    pub(crate) owner_open: usize,
    /// That are kept for one owner, ended or not.
    pub(crate) owner_kept: usize,
    /// Bytes that are kept for one owner; with more, nothing new is taken.
    pub(crate) owner_bytes: u64,
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
        })
    }
}
