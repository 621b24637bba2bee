//! What one tenant may have of a plugin, beside its share of the places, which the plugin's entry in the manifest says.

use std::time::Duration;

use super::written::WrittenShares;
use super::{ConfigError, within};

/// What one tenant may have of each plugin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TenantShares {
    /// Calls that wait for a place.
    pub(crate) waiting: usize,
    /// Processor time in a minute.
    pub(crate) cpu: Duration,
}

impl TenantShares {
    /// Checks what was written.
    pub(super) fn read(written: &WrittenShares) -> Result<Self, ConfigError> {
        let cpu_seconds = within("shares.cpu_seconds", written.cpu_seconds, 1, 1_000_000)?;
        Ok(Self {
            waiting: within("shares.waiting", written.waiting, 0, 10_000)?,
            cpu: Duration::from_secs(cpu_seconds),
        })
    }
}
