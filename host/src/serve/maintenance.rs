//! What is done again and again while anything is served: sweeping, writing counts, giving credits back, forgetting months.
//!
//! Decides nothing: each room says what is old.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::base::clock::{epoch_ms, epoch_seconds};
use crate::base::tasks::Tasks;
use crate::egress::proxy::Proxy;
use crate::metering::reservations::Reservations;
use crate::metering::usage_writer::UsageWriter;
use crate::records::month::Month;
use crate::registry::Registry;
use crate::stores::{Store, StoreError};

/// How often idle instances are looked at.
const SWEEP: Duration = Duration::from_secs(5);
/// How often expired records are looked for in one sweep, as long as there may be more.
const EXPIRED_ROUNDS_MAX: usize = 8;
/// How often months that are over are looked for.
const MONTHS: Duration = Duration::from_secs(3600);
/// Months beside the current one of which entries of credits and counts of calls are kept: a year and the same month again.
const MONTHS_KEPT: u32 = 13;
/// How often counts of calls are written: what a crash may lose of them.
const WRITE_USAGE: Duration = Duration::from_secs(1);

/// What is maintained.
pub(super) struct PeriodicMaintenance {
    pub(super) registry: Arc<Registry>,
    pub(super) proxy: Arc<Proxy>,
    pub(super) store: Arc<Store>,
    pub(super) reservations: Arc<Reservations>,
    pub(super) usage: UsageWriter,
}

impl PeriodicMaintenance {
    /// Sweeps, writes and gives back, as long as anything is served: also while the process drains.
    pub(super) async fn run_maintenance(&self, served: &CancellationToken) {
        let mut sweeps = tokio::time::interval(SWEEP);
        let mut writes = tokio::time::interval(WRITE_USAGE);
        loop {
            tokio::select! {
                () = served.cancelled() => return,
                _ = sweeps.tick() => {
                    self.registry.sweep(Instant::now()).await;
                    self.proxy.tell_of_left_out(Instant::now());
                    self.forget_expired(SystemTime::now()).await;
                }
                _ = writes.tick() => {
                    self.tend_reservations().await;
                    self.usage.write().await;
                }
                () = self.reservations.given_up() => self.tend_reservations().await,
            }
        }
    }

    async fn forget_expired(&self, now: SystemTime) {
        if let Err(error) = self.store.forget_burnt(epoch_seconds(now)).await {
            tracing::error!(%error, "expired identifiers cannot be removed");
        }
        for _ in 0..EXPIRED_ROUNDS_MAX {
            match self.store.forget_expired_records(epoch_ms(now)).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    tracing::error!(%error, "expired records of plugins cannot be removed");
                    break;
                }
            }
        }
    }

    /// Forgets what is of months that are over, as long as anything is served.
    pub(super) async fn keep_months(&self, served: &CancellationToken) {
        let mut looks = tokio::time::interval(MONTHS);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = served.cancelled() => return,
                _ = looks.tick() => {}
            }
            while !served.is_cancelled() {
                match self.forget_months().await {
                    Ok(0) => break,
                    Ok(rows) => {
                        tracing::debug!(rows, "rows of past months were removed");
                    }
                    Err(error) => {
                        tracing::error!(%error, "past months cannot be removed; retrying");
                        break;
                    }
                }
            }
        }
    }

    async fn forget_months(&self) -> Result<usize, StoreError> {
        let before = Month::of(epoch_seconds(SystemTime::now())).earlier(MONTHS_KEPT);
        let entries = self.store.forget_entries(before).await?;
        Ok(entries + self.store.forget_counts(before).await?)
    }

    /// The last thing that a process does: waits for paid calls, gives back what is left, and writes the counts.
    pub(super) async fn finish(&self, calls: &Tasks, at_most: Duration) {
        if !calls.end(at_most).await {
            let calls = calls.running();
            tracing::warn!(
                calls,
                "paid calls did not end in time; their credits are returned"
            );
        }
        self.tend_reservations().await;
        self.usage.write().await;
    }

    async fn tend_reservations(&self) {
        let tended = self
            .reservations
            .tend(Instant::now(), epoch_seconds(SystemTime::now()))
            .await;
        if let Err(error) = tended {
            tracing::error!(%error, "reservations of credits cannot be resolved; retrying");
        }
    }
}
