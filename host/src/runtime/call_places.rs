//! The places of one plugin: a call waits here for its turn, and pays here for the processor time that it used.
//!
//! Whose turn it is is [`PlaceShares`]' to say, and who may not call at all [`TenantStandings`]'; here is the lock that both stand under,
//! the waiting, and the guard that gives a place back however its call ends. Shared by all revisions of the plugin, so that a
//! swap does not double what it may use. Must not know what a call does.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::processor::CpuMeter;
pub(crate) use super::shares::ShareLimits;
use super::shares::{EntryOutcome, PlaceShares};
pub(crate) use super::standings::{Barred, Ended};
use super::standings::{Paused, TenantStandings};
use crate::contract::tenant::Tenant;

/// The places of one plugin.
pub(crate) struct CallPlaces {
    plugin: Arc<str>,
    /// Guards who holds, waits and owes; never held over an await.
    state: Mutex<PlacesState>,
}

struct PlacesState {
    shares: PlaceShares<oneshot::Sender<()>>,
    standings: TenantStandings,
    /// Of all calls and jobs.
    used: Duration,
}

/// Why a call has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    Barred(Barred),
    /// As many calls of its tenant wait already as may.
    Crowded {
        most: usize,
    },
    /// It waited behind its tenant's own until its deadline.
    OwnShare {
        most: usize,
    },
    /// All places were taken until then.
    Taken {
        places: usize,
    },
}

/// What a plugin's places are like now, for the operator.
pub(crate) struct Occupancy {
    pub(crate) taken: usize,
    pub(crate) waiting: usize,
    /// Tenants that are paused.
    pub(crate) paused: usize,
    /// Processor time since the process began.
    pub(crate) used: Duration,
}

/// A call or a run of a job, until it is dropped: it then gives its place back and pays for its processor time.
pub(crate) struct CallTab {
    places: Arc<CallPlaces>,
    tenant: Tenant,
    began: Instant,
    holds_place: bool,
    /// Set once it is known; before that nothing was used.
    meter: Mutex<Option<Arc<CpuMeter>>>,
    /// What was paid for, in nanoseconds.
    charged_ns: AtomicU64,
    ended: OnceLock<Ended>,
}

impl CallPlaces {
    pub(crate) fn new(plugin: &str, limits: ShareLimits, per_minute: Duration) -> Arc<Self> {
        let (shares, standings) = (PlaceShares::new(limits), TenantStandings::new(per_minute));
        let state = Mutex::new(PlacesState {
            shares,
            standings,
            used: Duration::ZERO,
        });
        Arc::new(Self {
            plugin: plugin.into(),
            state,
        })
    }

    /// Other limits from now on.
    pub(crate) fn resize(&self, limits: ShareLimits) {
        let mut state = self.state.lock();
        state.shares.resize(limits);
        state.let_in();
    }

    /// Whether a tenant's call may begin, its place aside.
    pub(crate) fn judge(&self, tenant: &Tenant, now: Instant) -> Result<(), Barred> {
        self.state.lock().standings.judge(tenant, now)
    }

    /// Takes a place, waiting for it at most so long.
    pub(crate) async fn take(
        self: &Arc<Self>,
        tenant: &Tenant,
        at_most: Duration,
    ) -> Result<CallTab, NoPlace> {
        let Some((number, rung)) = self.enter(tenant)? else {
            return Ok(self.tab(tenant, true));
        };
        let mut waiting = WaitingCall {
            places: self,
            tenant,
            number,
            has_place: false,
        };
        // Where the bell is gone without a ring, nobody holds the places any more.
        let given = tokio::time::timeout(at_most, rung).await;
        if !matches!(given, Ok(Ok(()))) {
            let state = self.state.lock();
            let ShareLimits { places, each, .. } = state.shares.limits();
            return Err(if state.shares.is_at_share(tenant) {
                NoPlace::OwnShare { most: each }
            } else {
                NoPlace::Taken { places }
            });
        }
        waiting.has_place = true;
        drop(waiting);
        let tab = self.tab(tenant, true);
        // It may have been paused, or have used up its time, by the calls that this one waited for.
        self.judge(tenant, tab.began).map_err(NoPlace::Barred)?;
        Ok(tab)
    }

    /// A tab without a place, for what has its turn elsewhere.
    pub(crate) fn open(self: &Arc<Self>, tenant: &Tenant) -> CallTab {
        self.tab(tenant, false)
    }

    /// How the places stand.
    pub(crate) fn occupancy(&self, now: Instant) -> Occupancy {
        let state = self.state.lock();
        let (taken, waiting) = state.shares.counts();
        Occupancy {
            taken,
            waiting,
            paused: state.standings.paused(now),
            used: state.used,
        }
    }

    /// Forgets who has nothing that counts any more.
    pub(crate) fn sweep(&self, now: Instant) {
        self.state.lock().standings.sweep(now);
    }

    /// Takes a place at once, or gives the number that the call waits under and the bell that it waits for.
    fn enter(&self, tenant: &Tenant) -> Result<Option<(u64, oneshot::Receiver<()>)>, NoPlace> {
        let mut state = self.state.lock();
        state
            .standings
            .judge(tenant, Instant::now())
            .map_err(NoPlace::Barred)?;
        let mut rung = None;
        let entered = state.shares.enter(tenant, || {
            let (bell, told) = oneshot::channel();
            rung = Some(told);
            bell
        });
        match entered {
            EntryOutcome::Begun => Ok(None),
            EntryOutcome::Waits(number) => Ok(rung.map(|rung| (number, rung))),
            EntryOutcome::Full => Err(NoPlace::Crowded {
                most: state.shares.limits().waiting_each,
            }),
        }
    }

    fn tab(self: &Arc<Self>, tenant: &Tenant, holds_place: bool) -> CallTab {
        CallTab {
            places: Arc::clone(self),
            tenant: tenant.clone(),
            began: Instant::now(),
            holds_place,
            meter: Mutex::default(),
            charged_ns: AtomicU64::new(0),
            ended: OnceLock::new(),
        }
    }

    fn tell(&self, tenant: &Tenant, paused: Paused) {
        let plugin = &*self.plugin;
        if let Some(pause) = paused.tenant {
            let seconds = pause.as_secs();
            tracing::warn!(plugin, %tenant, seconds, "a caller is paused: its calls used up their processor time");
        }
        if let Some(pause) = paused.plugin {
            let seconds = pause.as_secs();
            tracing::warn!(
                plugin,
                seconds,
                "the plugin is paused: calls of several callers used up their processor time"
            );
        }
    }
}

impl PlacesState {
    /// Gives free places to those whose turn it is. One that went away meanwhile gives its place back itself.
    fn let_in(&mut self) {
        while let Some(bell) = self.shares.next() {
            bell.send(()).ok();
        }
    }

    fn charge(&mut self, tenant: &Tenant, used: Duration, now: Instant) {
        self.used += used;
        self.standings.charge(tenant, used, now);
    }
}

/// A call that waits for a place. Dropped, it leaves; a place that it was given meanwhile is free again.
struct WaitingCall<'p> {
    places: &'p CallPlaces,
    tenant: &'p Tenant,
    number: u64,
    /// Whether it has one, and is to keep it.
    has_place: bool,
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        if self.has_place {
            return;
        }
        let mut state = self.places.state.lock();
        if !state.shares.leave(self.tenant, self.number) {
            state.shares.end(self.tenant);
            state.let_in();
        }
    }
}

impl CallTab {
    /// What is paid for.
    pub(crate) fn meter(&self, meter: &Arc<CpuMeter>) {
        *self.meter.lock() = Some(Arc::clone(meter));
    }

    /// How it ended; without a word it was dropped.
    pub(crate) fn end(&self, how: Ended) {
        self.ended.get_or_init(|| how);
    }

    /// Whether the call computes in turn with others.
    pub(crate) fn computes_long(&self) -> bool {
        self.meter
            .lock()
            .as_ref()
            .is_some_and(|meter| meter.is_long())
    }

    /// Pays for all that was used, for good: what the meter counts from now on is another call's.
    pub(crate) fn settle(&self) {
        self.charge();
        *self.meter.lock() = None;
    }

    /// Pays for what was used so far. Within a poll it must be asked on the polling thread.
    pub(crate) fn charge(&self) {
        let used = self.unpaid();
        self.places
            .state
            .lock()
            .charge(&self.tenant, used, Instant::now());
    }

    fn unpaid(&self) -> Duration {
        let Some(meter) = self.meter.lock().clone() else {
            return Duration::ZERO;
        };
        let total_ns = u64::try_from(meter.total().as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(
            total_ns.saturating_sub(self.charged_ns.fetch_max(total_ns, Ordering::Relaxed)),
        )
    }
}

impl Drop for CallTab {
    fn drop(&mut self) {
        let (used, now) = (self.unpaid(), Instant::now());
        let how = self.ended.get().copied().unwrap_or(Ended::Dropped);
        let paused = {
            let mut state = self.places.state.lock();
            state.charge(&self.tenant, used, now);
            let paused = state.standings.ended(&self.tenant, how, self.began, now);
            if self.holds_place {
                state.shares.end(&self.tenant);
                state.let_in();
            }
            paused
        };
        self.places.tell(&self.tenant, paused);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The instance of a call serves the next one before this call's tab is closed.
    #[test]
    fn a_settled_tab_pays_nothing_for_the_call_that_has_its_meter_next() {
        let limits = ShareLimits {
            places: 1,
            each: 1,
            waiting_each: 1,
        };
        let places = CallPlaces::new("p", limits, Duration::from_secs(30));
        let (tab, meter) = (
            places.open(&Tenant::key("k")),
            Arc::new(CpuMeter::default()),
        );
        tab.meter(&meter);
        tab.settle();
        let paid = places.occupancy(Instant::now()).used;
        meter.used_by_another(Duration::from_secs(600));
        drop(tab);
        assert_eq!(places.occupancy(Instant::now()).used, paid);
    }
}
