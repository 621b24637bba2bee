//! Writes what was counted of calls to the store, as it stands.

use std::sync::Arc;
use std::time::SystemTime;

use super::UsageCounts;
use crate::base::clock::epoch_seconds;
use crate::records::month::Month;
use crate::stores::Store;

/// How long a month that has ended is still at hand, in seconds, for calls that came before.
const MONTH_AT_HAND: u64 = 3600;
/// Counts in one write.
const USAGE_ROWS_MAX: usize = 1000;

/// The counts of this process, and where they are kept.
#[derive(Clone)]
pub(crate) struct UsageWriter {
    pub(crate) usage: Arc<UsageCounts>,
    pub(crate) store: Arc<Store>,
}

impl UsageWriter {
    /// Writes the counts that the store does not have. What cannot be written is tried again with the next.
    pub(crate) async fn write(&self) {
        let month = Month::of(epoch_seconds(SystemTime::now()).saturating_sub(MONTH_AT_HAND));
        let rows = self.usage.unwritten(month);
        for rows in rows.chunks(USAGE_ROWS_MAX) {
            if let Err(error) = self.store.put_usage(rows.to_vec()).await {
                tracing::error!(%error, rows = rows.len(), "call counts cannot be written; retrying");
                self.usage.not_written(rows);
            }
        }
    }
}
