//! Which jobs wait, which run, and how much every tenant has: what the runner decides by.
//!
//! A picture in memory of what the store holds, made at the start and kept by every change. Pure: time is passed in, and
//! nothing here waits, writes or runs.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::config::JobLimits;
use crate::contract::tenant::Tenant;
use crate::records::job::{Job, JobName};

/// The longest that a job waits before it is tried again.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// All jobs of this process.
pub(crate) struct JobBoard {
    limits: JobLimits,
    lanes: BTreeMap<Arc<str>, PluginLane>,
    /// By when they are forgotten.
    expiries: BTreeSet<(u64, JobName)>,
    /// Those that have not ended, by the API key that submitted them.
    keyed: BTreeSet<(Arc<str>, JobName)>,
}

/// A job as the board takes it in.
#[derive(Clone, Debug)]
pub(crate) struct QueuedJob {
    pub(crate) name: JobName,
    pub(crate) tenant: Tenant,
    /// The id of the API key that submitted it.
    pub(crate) key: Option<Arc<str>>,
    pub(crate) due_ms: u64,
    pub(crate) expires_ms: u64,
    pub(crate) bytes: u64,
}

impl QueuedJob {
    pub(crate) fn of(job: &Job, name: JobName, tenant: Tenant, key: Option<Arc<str>>) -> Self {
        Self {
            name,
            tenant,
            key,
            due_ms: job.due_ms,
            expires_ms: job.expires_ms,
            bytes: job.bytes,
        }
    }
}

/// The jobs of one plugin.
#[derive(Default)]
struct PluginLane {
    /// In the order in which their turn comes.
    waiting: VecDeque<WaitingJob>,
    running: HashMap<JobName, RunningJob>,
    known: HashMap<JobName, KnownJob>,
    tenants: HashMap<Tenant, TenantJobs>,
    /// Jobs that have not ended.
    open: usize,
}

struct KnownJob {
    job: QueuedJob,
    /// Whether it has not ended.
    is_open: bool,
}

struct WaitingJob {
    name: JobName,
    due_ms: u64,
    not_before: Instant,
    /// How often it was tried in vain.
    tries: u32,
    /// How the last of these ended.
    after: RunEnding,
}

/// How a run ended, as far as the board must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunEnding {
    /// With its job.
    Over,
    /// Nothing was wrong with the job.
    CutOff,
    /// The store did not let it begin or end.
    Failed,
}

struct RunningJob {
    tenant: Tenant,
    cancelled: CancellationToken,
    tries: u32,
}

/// What one tenant has of one plugin.
#[derive(Default)]
struct TenantJobs {
    jobs: usize,
    open: usize,
    running: usize,
    bytes: u64,
}

/// A job whose turn it is.
#[derive(Debug)]
pub(crate) struct NextJob {
    pub(crate) name: JobName,
    /// The id of the API key that submitted it.
    pub(crate) key: Option<Arc<str>>,
    /// Cancelled when the run is to be dropped.
    pub(crate) cancelled: CancellationToken,
}

impl JobBoard {
    pub(crate) fn new(limits: JobLimits) -> Self {
        Self {
            limits,
            lanes: BTreeMap::new(),
            expiries: BTreeSet::new(),
            keyed: BTreeSet::new(),
        }
    }

    /// Takes a place for a job that is about to be kept, unless its plugin or tenant has as many as it may. The last quarter of
    /// the plugin's is for tenants that have none.
    pub(crate) fn admit(&mut self, entry: QueuedJob) -> bool {
        let limits = self.limits;
        let lane = self
            .lanes
            .entry(Arc::clone(&entry.name.plugin))
            .or_default();
        let is_full = |has: &TenantJobs| {
            has.open >= limits.owner_open
                || has.jobs >= limits.owner_kept
                || has.bytes >= limits.owner_bytes
        };
        let has = lane.tenants.get(&entry.tenant);
        let room = left_for(limits.open, has.map_or(0, |has| has.open));
        let is_admitted = lane.open < room && !has.is_some_and(is_full);
        if is_admitted {
            self.take_in(entry, true);
        }
        is_admitted
    }

    /// Takes in a job that the store holds, whatever the limits say now.
    pub(crate) fn take_in(&mut self, entry: QueuedJob, is_open: bool) {
        let (name, plugin) = (entry.name.clone(), Arc::clone(&entry.name.plugin));
        let lane = self.lanes.entry(plugin).or_default();
        let has = lane.tenants.entry(entry.tenant.clone()).or_default();
        has.jobs += 1;
        has.open += usize::from(is_open);
        has.bytes += entry.bytes;
        lane.open += usize::from(is_open);
        if let Some(key) = entry.key.as_ref().filter(|_| is_open) {
            self.keyed.insert((Arc::clone(key), name.clone()));
        }
        self.expiries.insert((entry.expires_ms, name.clone()));
        lane.known.insert(
            name,
            KnownJob {
                job: entry,
                is_open,
            },
        );
    }

    /// The API keys that submitted jobs which have not ended.
    pub(crate) fn keys(&self) -> Vec<Arc<str>> {
        let mut keys: Vec<Arc<str>> = self.keyed.iter().map(|(key, _)| Arc::clone(key)).collect();
        keys.dedup();
        keys
    }

    /// Jobs of an API key that have not ended.
    pub(crate) fn of_key(&self, key: &str) -> Vec<JobName> {
        self.keyed
            .iter()
            .filter(|(of, _)| **of == *key)
            .map(|(_, name)| name.clone())
            .collect()
    }

    /// Lets an admitted job wait for its turn.
    pub(crate) fn wait(&mut self, name: JobName, now: Instant) {
        if let Some(lane) = self.lanes.get_mut(&name.plugin) {
            lane.queue(name, now, 0, RunEnding::CutOff);
        }
    }

    /// The next job whose turn it is: the oldest of the tenant who runs fewest and may run one more, or one that is late and
    /// has only to be told so.
    pub(crate) fn next(&mut self, now: Instant, now_ms: u64) -> Option<NextJob> {
        let limits = self.limits;
        self.lanes
            .values_mut()
            .find_map(|lane| lane.next(&limits, now, now_ms))
    }

    /// How long until a job that waits has its turn for another reason than the end of a run.
    pub(crate) fn pause(&self, now: Instant) -> Option<Duration> {
        let waiting = self.lanes.values().flat_map(|lane| &lane.waiting);
        waiting
            .map(|waiting| waiting.not_before.saturating_duration_since(now))
            .filter(|pause| !pause.is_zero())
            .min()
    }

    /// A run is over; the job too, or it waits again.
    pub(crate) fn ran(&mut self, name: &JobName, after: RunEnding, now: Instant) {
        let Some(lane) = self.lanes.get_mut(&name.plugin) else {
            return;
        };
        let Some(run) = lane.running.remove(name) else {
            return;
        };
        if let Some(has) = lane.tenants.get_mut(&run.tenant) {
            has.running -= 1;
        }
        let pause = |tries: u32| Duration::from_secs(1 << (tries - 1).min(5)).min(PAUSE_MAX);
        match (after, run.tries) {
            (RunEnding::Over, _) => lane.close(name, &mut self.keyed),
            (RunEnding::CutOff, 0) => lane.queue(name.clone(), now, 1, after),
            (RunEnding::CutOff | RunEnding::Failed, tries) => {
                lane.queue(name.clone(), now + pause(tries.max(1)), tries + 1, after);
            }
        }
        lane.let_go(&run.tenant);
    }

    /// A job ended without a run's doing: whoever runs it stops, and it does not wait any more.
    pub(crate) fn end(&mut self, name: &JobName) {
        let Some(lane) = self.lanes.get_mut(&name.plugin) else {
            return;
        };
        match lane.running.get(name) {
            // Its place is free when the run has stopped.
            Some(run) => run.cancelled.cancel(),
            None => {
                lane.waiting.retain(|waiting| waiting.name != *name);
                lane.close(name, &mut self.keyed);
            }
        }
    }

    /// A job has so many bytes by now. Told as they stand, so that what is told twice counts once.
    pub(crate) fn has_bytes(&mut self, name: &JobName, bytes: u64) {
        let Some(lane) = self.lanes.get_mut(&name.plugin) else {
            return;
        };
        let Some(known) = lane.known.get_mut(name) else {
            return;
        };
        let before = std::mem::replace(&mut known.job.bytes, bytes);
        if let Some(has) = lane.tenants.get_mut(&known.job.tenant) {
            has.bytes = (has.bytes + bytes).saturating_sub(before);
        }
    }

    /// Jobs to be forgotten, at most so many.
    pub(crate) fn expired(&self, now_ms: u64, most: usize) -> Vec<JobName> {
        let due = self
            .expiries
            .iter()
            .take_while(|(expires_ms, _)| *expires_ms <= now_ms);
        due.take(most).map(|(_, name)| name.clone()).collect()
    }

    /// A job is gone, or was never kept.
    pub(crate) fn forget(&mut self, name: &JobName) {
        self.end(name);
        let Some(lane) = self.lanes.get_mut(&name.plugin) else {
            return;
        };
        lane.close(name, &mut self.keyed);
        let Some(known) = lane.known.remove(name) else {
            return;
        };
        self.expiries.remove(&(known.job.expires_ms, name.clone()));
        if let Some(has) = lane.tenants.get_mut(&known.job.tenant) {
            (has.jobs, has.bytes) = (has.jobs - 1, has.bytes.saturating_sub(known.job.bytes));
        }
        lane.let_go(&known.job.tenant);
    }

    /// Jobs of each plugin that wait, and that run.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&Arc<str>, usize, usize)> {
        self.lanes
            .iter()
            .map(|(plugin, lane)| (plugin, lane.waiting.len(), lane.running.len()))
    }
}

impl PluginLane {
    /// Lets a job wait, unless it was forgotten meanwhile.
    fn queue(&mut self, name: JobName, not_before: Instant, tries: u32, after: RunEnding) {
        let Some(known) = self.known.get(&name) else {
            return;
        };
        let due_ms = known.job.due_ms;
        self.waiting.push_back(WaitingJob {
            name,
            due_ms,
            not_before,
            tries,
            after,
        });
    }

    /// A job is not open any more.
    fn close(&mut self, name: &JobName, keyed: &mut BTreeSet<(Arc<str>, JobName)>) {
        if let Some(known) = self.known.get_mut(name).filter(|known| known.is_open) {
            known.is_open = false;
            self.open -= 1;
            if let Some(has) = self.tenants.get_mut(&known.job.tenant) {
                has.open -= 1;
            }
            if let Some(key) = &known.job.key {
                keyed.remove(&(Arc::clone(key), name.clone()));
            }
        }
    }

    /// Forgets a tenant who has nothing.
    fn let_go(&mut self, tenant: &Tenant) {
        if self
            .tenants
            .get(tenant)
            .is_some_and(|has| has.jobs == 0 && has.running == 0)
        {
            self.tenants.remove(tenant);
        }
    }

    fn next(&mut self, limits: &JobLimits, now: Instant, now_ms: u64) -> Option<NextJob> {
        let mut chosen: Option<(usize, usize)> = None;
        for (place, waiting) in self.waiting.iter().enumerate() {
            let is_paused = waiting.not_before > now;
            // What cannot be written is not tried without a pause, however late it is.
            if is_paused && waiting.after == RunEnding::Failed {
                continue;
            }
            if waiting.due_ms <= now_ms {
                chosen = Some((0, place));
                break;
            }
            let known = self.known.get(&waiting.name);
            let runs = known
                .and_then(|known| self.tenants.get(&known.job.tenant))
                .map_or(0, |has| has.running);
            let may_run =
                runs < limits.owner_running && self.running.len() < left_for(limits.running, runs);
            if !is_paused && may_run && chosen.is_none_or(|(fewest, _)| runs < fewest) {
                chosen = Some((runs, place));
            }
        }
        let (_, place) = chosen?;
        let WaitingJob { name, tries, .. } = self.waiting.remove(place)?;
        let known = self.known.get(&name)?;
        let (tenant, key) = (known.job.tenant.clone(), known.job.key.clone());
        self.tenants.entry(tenant.clone()).or_default().running += 1;
        let cancelled = CancellationToken::new();
        self.running.insert(
            name.clone(),
            RunningJob {
                tenant,
                cancelled: cancelled.clone(),
                tries,
            },
        );
        Some(NextJob {
            name,
            key,
            cancelled,
        })
    }
}

/// How many of a plugin's there may be for one more of a tenant that has so many: the last quarter is for those who have none.
fn left_for(all: usize, has: usize) -> usize {
    if has == 0 { all } else { all - all / 4 }
}

#[cfg(test)]
mod tests;
