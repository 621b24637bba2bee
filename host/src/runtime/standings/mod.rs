//! Where each tenant stands with a plugin: the processor time that it used, and whether it is paused.
//!
//! Epochs are fair per tick alone, so a handful of endless loops starves every neighbour. A tenant whose calls are killed for
//! their processor time again and again is not called for a while, and longer each time that it goes on. The plugin as a whole
//! is paused only where the fault must be its own: where calls of several tenants were killed, and those are more than the
//! tenants that were served. Addresses without a credential count as one there, because anybody may have many.
//!
//! A tenant that is forgotten loses nothing but what it owed, so the tables are bounded by forgetting who was not seen for the
//! longest time; addresses have a table of their own and push nobody else out. Pure: time is passed in.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use lru::LruCache;

use crate::contract::tenant::Tenant;

/// Kills within [`WINDOW`] that pause a tenant, or the plugin.
const KILLS_MAX: usize = 5;
const WINDOW: Duration = Duration::from_secs(30);
/// The first pause of a tenant, and each of a plugin. A tenant's next one is twice as long.
const PAUSE: Duration = Duration::from_secs(10);
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// After so long without a pause the next one is a first one.
const FORGIVEN: Duration = Duration::from_secs(300);
/// Tenants whose calls were killed within [`WINDOW`], for the plugin to be paused. Two may be two who send the same page.
const TENANTS_HIT: usize = 3;
/// Kills that are remembered for that.
const HITS_MAX: usize = 64;
/// Tenants that are remembered, with and without a credential each.
const TENANTS_MAX: NonZeroUsize = NonZeroUsize::new(8192).expect("it is not zero");
/// What processor time is counted by.
const MINUTE: Duration = Duration::from_secs(60);

/// Why a call or a job does not begin, and how long that will be so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barred {
    /// The tenant is paused.
    Tenant(Duration),
    /// The plugin is.
    Plugin(Duration),
    /// The tenant used up its processor time.
    OverBudget(Duration),
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Within its budget of processor time.
    Within,
    /// It was killed because it used that up.
    Killed,
    /// It was dropped, or did not end in time.
    Dropped,
}

/// A pause that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paused {
    /// Of the tenant.
    pub(crate) tenant: Option<Duration>,
    /// Of the plugin.
    pub(crate) plugin: Option<Duration>,
}

/// All tenants of one plugin, as far as there is something to remember.
pub(crate) struct TenantStandings {
    /// Processor time of one tenant in a minute.
    per_minute: Duration,
    known: LruCache<Tenant, TenantStanding>,
    addresses: LruCache<Tenant, TenantStanding>,
    /// Kills of late, for the pause of the plugin.
    hits: VecDeque<Hit>,
    paused: Option<PauseSpan>,
}

/// One tenant.
#[derive(Default)]
struct TenantStanding {
    /// When all of its minute's processor time is there again; in the past, it is. Each use puts it off by as long as it takes
    /// to come back.
    whole_at: Option<Instant>,
    kills: Vec<Instant>,
    pause: Option<PauseSpan>,
    /// Whether it was paused and no call of it has ended well since: then one kill pauses it again.
    is_on_trial: bool,
    /// When a call of it ended well.
    served_at: Option<Instant>,
}

#[derive(Clone, Copy)]
struct PauseSpan {
    began: Instant,
    until: Instant,
    /// How many came before it, one soon after the other.
    before: u32,
}

struct Hit {
    at: Instant,
    /// `None` for an address.
    tenant: Option<Tenant>,
}

impl TenantStandings {
    pub(crate) fn new(per_minute: Duration) -> Self {
        let (known, addresses) = (LruCache::sparse(TENANTS_MAX), LruCache::sparse(TENANTS_MAX));
        Self {
            per_minute,
            known,
            addresses,
            hits: VecDeque::new(),
            paused: None,
        }
    }

    /// Whether a tenant's call may begin.
    pub(crate) fn judge(&self, tenant: &Tenant, now: Instant) -> Result<(), Barred> {
        if let Some(left) = left(self.paused, now) {
            return Err(Barred::Plugin(left));
        }
        let Some(standing) = self.table(tenant).peek(tenant) else {
            return Ok(());
        };
        if let Some(left) = left(standing.pause, now) {
            return Err(Barred::Tenant(left));
        }
        let owes = standing.owes(now);
        if owes < MINUTE {
            Ok(())
        } else {
            Err(Barred::OverBudget(owes - MINUTE))
        }
    }

    /// Counts processor time that a tenant used.
    pub(crate) fn charge(&mut self, tenant: &Tenant, used: Duration, now: Instant) {
        if used.is_zero() {
            return;
        }
        // What a minute gives comes back within a minute.
        let comes_back = used.mul_f64(MINUTE.as_secs_f64() / self.per_minute.as_secs_f64());
        let standing = self.standing(tenant);
        let whole_at = standing.whole_at.map_or(now, |at| at.max(now));
        standing.whole_at = whole_at.checked_add(comes_back).or(standing.whole_at);
    }

    /// Notes how a call ended that began at a certain time, and gives back the pauses that it brings about.
    pub(crate) fn ended(
        &mut self,
        tenant: &Tenant,
        how: Ended,
        began: Instant,
        now: Instant,
    ) -> Paused {
        let mut paused = Paused {
            tenant: None,
            plugin: None,
        };
        let standing = self.standing(tenant);
        // What began before a pause tells nothing of what came after it.
        let is_of_before = standing.pause.is_some_and(|pause| began < pause.began);
        match how {
            Ended::Dropped => {}
            Ended::Within => {
                standing.served_at = Some(now);
                standing.is_on_trial &= is_of_before;
            }
            Ended::Killed if is_of_before => {}
            Ended::Killed => {
                paused.tenant = standing.kill(now);
                paused.plugin = self.hit(tenant, began, now);
            }
        }
        paused
    }

    /// Tenants that are paused.
    pub(crate) fn paused(&self, now: Instant) -> usize {
        let all = self.known.iter().chain(self.addresses.iter());
        all.filter(|(_, standing)| left(standing.pause, now).is_some())
            .count()
    }

    /// Forgets who has nothing that counts any more.
    pub(crate) fn sweep(&mut self, now: Instant) {
        for table in [&mut self.known, &mut self.addresses] {
            while table
                .peek_lru()
                .is_some_and(|(_, standing)| standing.is_clean(now))
            {
                table.pop_lru();
            }
        }
    }

    /// Notes a kill for the plugin, and pauses it where it must be at fault.
    fn hit(&mut self, tenant: &Tenant, began: Instant, now: Instant) -> Option<Duration> {
        if self.paused.is_some_and(|pause| began < pause.until) {
            return None;
        }
        self.hits
            .retain(|hit| now.saturating_duration_since(hit.at) < WINDOW);
        if self.hits.len() == HITS_MAX {
            self.hits.pop_front();
        }
        self.hits.push_back(Hit {
            at: now,
            tenant: (!tenant.is_anonymous()).then(|| tenant.clone()),
        });
        let mut hit: Vec<Option<&Tenant>> =
            self.hits.iter().map(|hit| hit.tenant.as_ref()).collect();
        hit.sort_unstable();
        hit.dedup();
        if self.hits.len() < KILLS_MAX || hit.len() < TENANTS_HIT {
            return None;
        }
        let was_served = |standing: &TenantStanding| {
            standing
                .served_at
                .is_some_and(|at| now.saturating_duration_since(at) < WINDOW)
        };
        let all = self.known.iter().chain(self.addresses.iter());
        let others =
            all.filter(|(tenant, standing)| was_served(standing) && !hit.contains(&Some(*tenant)));
        if others.take(hit.len()).count() == hit.len() {
            return None;
        }
        self.hits.clear();
        self.paused = Some(PauseSpan {
            began: now,
            until: now + PAUSE,
            before: 0,
        });
        Some(PAUSE)
    }

    fn table(&self, tenant: &Tenant) -> &LruCache<Tenant, TenantStanding> {
        if tenant.is_anonymous() {
            &self.addresses
        } else {
            &self.known
        }
    }

    /// What is remembered of a tenant. Whoever was not seen for the longest time is forgotten where there are too many.
    fn standing(&mut self, tenant: &Tenant) -> &mut TenantStanding {
        let table = if tenant.is_anonymous() {
            &mut self.addresses
        } else {
            &mut self.known
        };
        table.get_or_insert_mut_ref(tenant, TenantStanding::default)
    }
}

impl TenantStanding {
    /// How long until all processor time is there again.
    fn owes(&self, now: Instant) -> Duration {
        self.whole_at
            .map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }

    fn kill(&mut self, now: Instant) -> Option<Duration> {
        self.kills
            .retain(|kill| now.saturating_duration_since(*kill) < WINDOW);
        self.kills.push(now);
        if self.kills.len() < KILLS_MAX && !self.is_on_trial {
            return None;
        }
        self.kills.clear();
        self.is_on_trial = true;
        let last = self
            .pause
            .filter(|pause| now.saturating_duration_since(pause.until) < FORGIVEN);
        let before = last.map_or(0, |pause| pause.before.saturating_add(1));
        let length = PAUSE.saturating_mul(1 << before.min(8)).min(PAUSE_MAX);
        self.pause = Some(PauseSpan {
            began: now,
            until: now + length,
            before,
        });
        Some(length)
    }

    fn is_clean(&self, now: Instant) -> bool {
        let is_over = |at: Instant, after: Duration| now.saturating_duration_since(at) >= after;
        self.owes(now).is_zero()
            && self.kills.iter().all(|kill| is_over(*kill, WINDOW))
            && self
                .pause
                .is_none_or(|pause| is_over(pause.until, FORGIVEN))
            && self.served_at.is_none_or(|at| is_over(at, WINDOW))
    }
}

fn left(pause: Option<PauseSpan>, now: Instant) -> Option<Duration> {
    pause
        .map(|pause| pause.until.saturating_duration_since(now))
        .filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests;
