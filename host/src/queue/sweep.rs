//! What has expired is forgotten, and what a bad key submitted ends. Must not know whose turn it is.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio_util::sync::CancellationToken;

use super::JobQueue;
use crate::base::clock::epoch_ms;

/// How often expired jobs are looked for.
const SWEEP: Duration = Duration::from_secs(1);
/// Jobs that are forgotten in one sweep.
const FORGOTTEN_AT_ONCE: usize = 64;

impl JobQueue {
    /// Sweeps until the process stops.
    pub(crate) async fn keep_swept(self: Arc<Self>, stop: CancellationToken) {
        let mut sweeps = tokio::time::interval(SWEEP);
        sweeps.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = sweeps.tick() => {}
                () = self.keys_changed.notified() => {}
            }
            self.end_of_bad_keys().await;
            self.sweep(&stop).await;
        }
    }

    /// Forgets what has expired, and frees request ids. What is left when the process stops is the next one's.
    async fn sweep(&self, stop: &CancellationToken) {
        let now_ms = epoch_ms(SystemTime::now());
        let expired = self.board.lock().expired(now_ms, FORGOTTEN_AT_ONCE);
        for name in expired {
            if stop.is_cancelled() {
                return;
            }
            match self.store.forget_job(name.clone()).await {
                Ok(()) => {
                    self.board.lock().forget(&name);
                    self.tell_of_end(name.id);
                }
                Err(error) => {
                    return tracing::error!(%error, "expired jobs cannot be removed; retrying");
                }
            }
        }
        if let Err(error) = self.store.free_request_ids(now_ms).await {
            tracing::error!(%error, "request ids of jobs cannot be freed; retrying");
        }
    }
}
