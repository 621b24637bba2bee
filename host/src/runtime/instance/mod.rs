//! Instances of one revision: made, metered, called, kept warm or thrown away.
//!
//! A call runs in a store of its own, under four limits: memory (the store's limiter), processor time (epoch ticks that
//! yield and look at the thread's clock), wall clock (a timeout around everything, because epochs do not fire while a guest
//! awaits the host), and calls at once (the plugin's places, before the pool). Whatever goes wrong ends with the store dropped,
//! so nothing of a failed call is left for the next.

mod end;

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::time::error::Elapsed;
use wasmtime::component::InstancePre;
use wasmtime::{Engine, Store};

pub(crate) use self::end::CallError;
use self::end::{ended, named, unmade};
use super::background::Background;
use super::call_places::{CallPlaces, CallTab};
use super::capabilities;
use super::capabilities::{
    GrantedCapabilities, GuestState, JobWorker, LogScope, OnBehalf, PluginCache,
};
use super::exports::{FeatureExport, PluginExports, WorkedJob};
use super::guest_store::prepare;
use super::job_run::JobRun;
use super::loader::Linked;
use super::processor::{CpuMeter, metered};
use super::run_queue::RunQueue;
use crate::base::line_rate::LineRate;
use crate::contract::manifest::{InstanceMode, PluginLimits};
use crate::contract::operation::{Call, CallerKind, UncheckedAnswer};
use crate::contract::tenant::Tenant;
use crate::observe::metrics::InstanceMetrics;

/// Calls after which a warm instance is replaced.
const WARM_CALLS_MAX: u32 = 10_000;
/// Age after which a warm instance is replaced.
pub(crate) const WARM_AGE_MAX: Duration = Duration::from_secs(300);
/// After so long without a call a warm instance goes, but for the one that was used last: what a burst needed is not held for
/// the next.
const WARM_IDLE_MAX: Duration = Duration::from_secs(10);

/// Why a revision is known and not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Off {
    /// By the operator. It is not in the published documents either.
    Disabled,
    /// It could not be loaded, for this reason.
    Unloadable(String),
}

/// The instances of one revision.
pub(crate) struct Instances {
    parts: InstanceParts,
    vitals: Arc<InstanceMetrics>,
    /// Idle warm instances; at most as many as calls at once. Never held over an await.
    idle: Mutex<Vec<WarmInstance>>,
}

/// What the instances of one revision are made of.
pub(crate) struct InstanceParts {
    pub(crate) engine: Engine,
    /// Shared by all plugins.
    pub(crate) run_queue: Arc<RunQueue>,
    /// The same.
    pub(crate) background: Arc<Background>,
    pub(crate) pre: InstancePre<GuestState>,
    pub(crate) exports: PluginExports,
    pub(crate) lent: Arc<GrantedCapabilities>,
    pub(crate) plugin: Arc<str>,
    pub(crate) revision: u64,
    pub(crate) limits: PluginLimits,
    pub(crate) mode: InstanceMode,
    /// Shared by all revisions of the plugin, as the rate of its lines is.
    pub(crate) places: Arc<CallPlaces>,
    pub(crate) line_rate: Arc<LineRate>,
}

struct WarmInstance {
    store: Store<GuestState>,
    feature: FeatureExport,
    cpu: Arc<CpuMeter>,
    made: Instant,
    used: Instant,
    calls: u32,
    /// The linear memory that it had before its first call.
    bytes_made: usize,
}

impl Instances {
    pub(crate) fn new(parts: InstanceParts) -> Self {
        Self {
            parts,
            vitals: Arc::default(),
            idle: Mutex::default(),
        }
    }

    /// What the instances use.
    pub(crate) fn vitals(&self) -> &InstanceMetrics {
        &self.vitals
    }

    /// The longest that a call may take, whatever its operation says.
    pub(crate) fn wall(&self) -> Duration {
        self.parts.limits.wall
    }

    /// The bytes that the plugin's cache holds, where it is granted.
    pub(crate) fn cached_bytes(&self) -> Option<u64> {
        self.parts.lent.cache.as_ref().map(PluginCache::bytes)
    }

    /// Whether a tenant's call may begin, its place aside.
    pub(crate) fn judge(&self, tenant: &Tenant) -> Result<(), CallError> {
        Ok(self.parts.places.judge(tenant, Instant::now())?)
    }

    /// Whether a call may come from such a caller.
    pub(crate) fn knows(&self, caller: CallerKind) -> bool {
        self.parts.exports.knows(caller)
    }

    /// Runs one call, waiting for a place at most until its deadline.
    pub(crate) async fn invoke(self: &Arc<Self>, call: Call) -> Result<UncheckedAnswer, CallError> {
        let wall = call.deadline.min(self.parts.limits.wall);
        let started = Instant::now();
        let tab = Arc::new(self.parts.places.take(&call.tenant, wall).await?);
        let running = Arc::clone(self).run(call, Arc::clone(&tab));
        let running = self.parts.background.run(running, || tab.computes_long());
        let left = wall.saturating_sub(started.elapsed());
        let outcome = tokio::time::timeout(left, running).await;
        conclude(outcome, wall, &tab)
    }

    /// Runs a job, whose turn has come elsewhere, in an instance of its own. The budget of processor time is for each slice; the
    /// job has one of its own for all of them.
    pub(crate) async fn work(
        self: &Arc<Self>,
        call: Call,
        run: Arc<JobRun>,
        checkpoint: Option<String>,
    ) -> Result<UncheckedAnswer, CallError> {
        let wall = call.deadline;
        self.judge(&call.tenant)?;
        let tab = Arc::new(self.parts.places.open(&call.tenant));
        let running = Arc::clone(self).run_job(call, run, checkpoint, Arc::clone(&tab));
        let running = self.parts.background.run_all(running);
        let outcome = tokio::time::timeout(wall, running).await;
        conclude(outcome, wall, &tab)
    }

    /// Drops warm instances that are past their age or that nobody needed for a while, and tells of log lines that were dropped
    /// before a silence.
    pub(crate) fn sweep(&self, now: Instant) {
        capabilities::tell_of_dropped(&self.parts.plugin, &self.parts.line_rate, now);
        self.parts.places.sweep(now);
        if let Some(door) = &self.parts.lent.door {
            door.tell_of_left_out(now);
        }
        let mut idle = self.idle.lock();
        // The one that was used last stands last.
        let (mut at, last) = (0, idle.len());
        let is_over = |warm: &mut WarmInstance| {
            at += 1;
            let is_unneeded = at < last && now.saturating_duration_since(warm.used) > WARM_IDLE_MAX;
            is_unneeded || now.saturating_duration_since(warm.made) > WARM_AGE_MAX
        };
        let old: Vec<WarmInstance> = idle.extract_if(.., is_over).collect();
        drop(idle);
        if !old.is_empty() {
            let (plugin, instances) = (&*self.parts.plugin, old.len());
            tracing::debug!(plugin, instances, "idle warm instances were dropped");
        }
    }

    /// Reads the plugin's description in an instance that is denied everything.
    pub(crate) async fn describe(
        engine: &Engine,
        linked: &Linked,
        limits: &PluginLimits,
    ) -> Result<String, CallError> {
        let (lent, vitals) = (Arc::default(), Arc::default());
        let state = GuestState::new(lent, LogScope::silent(), None, limits.memory_bytes, vitals);
        let wall = Duration::from_secs(5);
        let read = async {
            let cpu = Arc::default();
            let store = prepare(engine, None, state, limits, &cpu, None);
            let mut warm = instantiate(&linked.pre, &linked.exports, store, limits, cpu).await?;
            let WarmInstance {
                store,
                feature,
                cpu,
                ..
            } = &mut warm;
            cpu.begin();
            let described = metered(cpu, feature.describe(store)).await;
            described.map_err(|error| named(&error, store, limits, cpu))
        };
        tokio::time::timeout(wall, read)
            .await
            .unwrap_or(Err(CallError::Deadline(wall)))
    }

    async fn run(
        self: Arc<Self>,
        mut call: Call,
        tab: Arc<CallTab>,
    ) -> Result<UncheckedAnswer, CallError> {
        self.check_caller(&call)?;
        let (log, on_behalf) = self.scope(&call);
        let mut warm = match self.take_idle() {
            Some(mut warm) => {
                warm.store.data_mut().begin(log, on_behalf);
                warm.cpu.reset();
                tab.meter(&warm.cpu);
                warm
            }
            None => {
                let cpu = Arc::default();
                tab.meter(&cpu);
                let store = self.store(log, on_behalf, &cpu, None);
                let InstanceParts {
                    pre,
                    exports,
                    limits,
                    ..
                } = &self.parts;
                instantiate(pre, exports, store, limits, cpu).await?
            }
        };
        let WarmInstance {
            store,
            feature,
            cpu,
            ..
        } = &mut warm;
        store.data_mut().features = call.features.take();
        cpu.begin();
        let running = store.run_concurrent(async |accessor| feature.invoke(accessor, call).await);
        let ended = metered(cpu, running).await;
        let answer = match ended.and_then(|answer| answer) {
            Ok(answer) => answer,
            Err(error) => return Err(named(&error, store, &self.parts.limits, cpu)),
        };
        let answer = self.sized(answer)?;
        if self.parts.mode == InstanceMode::Warm {
            // Another call may have the instance, and its meter, from here on.
            tab.settle();
            self.put_idle(warm);
        }
        Ok(answer)
    }

    async fn run_job(
        self: Arc<Self>,
        mut call: Call,
        run: Arc<JobRun>,
        checkpoint: Option<String>,
        tab: Arc<CallTab>,
    ) -> Result<UncheckedAnswer, CallError> {
        self.check_caller(&call)?;
        let (log, on_behalf) = self.scope(&call);
        let cpu = Arc::clone(&run.cpu);
        tab.meter(&cpu);
        let budget = Some((run.cpu_left(), run.cpu_max()));
        let mut store = self.store(log, on_behalf, &cpu, budget);
        let instance = metered(&cpu, self.parts.pre.instantiate_async(&mut store)).await;
        let instance =
            instance.map_err(|error| unmade(&error, &mut store, &self.parts.limits, &cpu))?;
        let worker = self.parts.exports.worker(&mut store, &instance);
        let worker = worker
            .map_err(|error| named(&error, &mut store, &self.parts.limits, &cpu))?
            .ok_or(CallError::NoWorker)?;
        let job = WorkedJob {
            id: run.name.id.to_string(),
            attempt: run.attempt,
            checkpoint,
        };
        store.data_mut().works(JobWorker { run, tab });
        store.data_mut().features = call.features.take();
        cpu.begin();
        let running = store.run_concurrent(async |accessor| worker.run(accessor, call, job).await);
        let ended = metered(&cpu, running).await;
        match ended.and_then(|answer| answer) {
            Ok(answer) => self.sized(answer),
            Err(error) => Err(named(&error, &mut store, &self.parts.limits, &cpu)),
        }
    }

    fn check_caller(&self, call: &Call) -> Result<(), CallError> {
        let exports = &self.parts.exports;
        if exports.knows(call.caller) {
            return Ok(());
        }
        let version = exports.version();
        Err(CallError::CallerUnknown { version })
    }

    fn scope(&self, call: &Call) -> (LogScope, OnBehalf) {
        let log = LogScope::call(
            &self.parts.plugin,
            self.parts.revision,
            &self.parts.line_rate,
            call,
        );
        let on_behalf = OnBehalf {
            owner: call.owner,
            tenant: call.tenant.clone(),
            key: call.key.clone(),
            caller: call.caller,
            operation: call.operation.clone(),
            request_id: call.request_id.clone(),
        };
        (log, on_behalf)
    }

    fn store(
        &self,
        log: LogScope,
        on_behalf: OnBehalf,
        cpu: &Arc<CpuMeter>,
        job_budget: Option<(Duration, Duration)>,
    ) -> Store<GuestState> {
        let (lent, vitals) = (Arc::clone(&self.parts.lent), Arc::clone(&self.vitals));
        let state = GuestState::new(
            lent,
            log,
            Some(on_behalf),
            self.parts.limits.memory_bytes,
            vitals,
        );
        let run_queue = Some(&self.parts.run_queue);
        let (engine, limits) = (&self.parts.engine, &self.parts.limits);
        prepare(engine, run_queue, state, limits, cpu, job_budget)
    }

    fn sized(&self, answer: UncheckedAnswer) -> Result<UncheckedAnswer, CallError> {
        let (bytes, bytes_max) = (answer.bytes(), self.parts.limits.response_bytes);
        if bytes > bytes_max {
            return Err(CallError::TooLarge { bytes, bytes_max });
        }
        Ok(answer)
    }

    fn take_idle(&self) -> Option<WarmInstance> {
        self.idle.lock().pop()
    }

    /// Keeps an instance for the next call. One whose memory has grown is not worth what it holds: linear memory never shrinks.
    /// One whose guest has answered and left something under way is dropped, and that with it.
    fn put_idle(&self, mut warm: WarmInstance) {
        warm.store.data_mut().rest();
        (warm.calls, warm.used) = (warm.calls + 1, Instant::now());
        let grown = warm
            .store
            .data()
            .memory_bytes()
            .saturating_sub(warm.bytes_made);
        let is_small = grown <= self.parts.limits.warm_growth();
        let is_done = warm.store.data().in_flight.is_idle();
        if is_small && is_done && warm.calls < WARM_CALLS_MAX && warm.made.elapsed() < WARM_AGE_MAX
        {
            self.idle.lock().push(warm);
        }
    }
}

async fn instantiate(
    pre: &InstancePre<GuestState>,
    exports: &PluginExports,
    mut store: Store<GuestState>,
    limits: &PluginLimits,
    cpu: Arc<CpuMeter>,
) -> Result<WarmInstance, CallError> {
    let made = metered(&cpu, pre.instantiate_async(&mut store)).await;
    let instance = made.map_err(|error| unmade(&error, &mut store, limits, &cpu))?;
    let feature = exports.feature(&mut store, &instance);
    let feature = feature.map_err(|error| named(&error, &mut store, limits, &cpu))?;
    let (made, bytes_made) = (Instant::now(), store.data().memory_bytes());
    Ok(WarmInstance {
        store,
        feature,
        cpu,
        made,
        used: made,
        calls: 0,
        bytes_made,
    })
}

/// The outcome of what ran for at most `wall`, noted on its tab.
fn conclude(
    outcome: Result<Option<Result<UncheckedAnswer, CallError>>, Elapsed>,
    wall: Duration,
    tab: &CallTab,
) -> Result<UncheckedAnswer, CallError> {
    let outcome = match outcome {
        Ok(outcome) => outcome.unwrap_or(Err(CallError::Stopped)),
        Err(_) => Err(CallError::Deadline(wall)),
    };
    tab.end(ended(&outcome));
    outcome
}
