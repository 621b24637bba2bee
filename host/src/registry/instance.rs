//! Instances of one revision: made, metered, called, kept warm or thrown away.
//!
//! A call runs in a store of its own, under four limits: memory (the store's limiter), processor time (epoch ticks that
//! yield and look at the thread's clock), wall clock (a timeout around everything, because epochs do not fire while a guest
//! awaits the host), and calls at once (a semaphore before the pool). Whatever goes wrong ends with the store dropped, so
//! nothing of a failed call is left for the next.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use wasmtime::{Engine, Store, Trap, UpdateDeadline};
use wasmtime_wasi::I32Exit;

use super::breaker::Breaker;
use super::manifest::{InstanceMode, Limits};
use super::revision::Off;
use crate::capabilities::bindings::switchbay::plugin::types as wire;
use crate::capabilities::bindings::{FeaturePlugin, FeaturePluginPre};
use crate::capabilities::{self, Lease, Lent, LogScope, State};
use crate::metering::LineRate;
use crate::metrics::Vitals;
use crate::operation::{Answer, Call, CallerKind, Failure, Success};

/// Calls after which a warm instance is replaced.
const WARM_CALLS_MAX: u32 = 10_000;
/// Age after which a warm instance is replaced.
pub(crate) const WARM_AGE_MAX: Duration = Duration::from_secs(300);

/// What one host call may copy out of the guest, in units of about a byte, where its answers may not be larger: the largest
/// body or cached value with what stands beside it. More ends the call.
const HOST_CALL_BYTES_MIN: usize = 5 << 20;

/// How a call ended without an answer of the plugin's.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("all {limit} places of the plugin stayed taken until the deadline")]
    Busy { limit: usize },
    #[error("the plugin used up its processor budget several times and is paused for {seconds} s")]
    Paused { seconds: u64 },
    #[error("the host has no room for another instance: {0}")]
    NoRoom(String),
    #[error("the call did not finish within its {0:?}")]
    Deadline(Duration),
    #[error("the call used up its processor budget of {0:?}")]
    CpuSpent(Duration),
    #[error("the plugin ran out of its memory of {bytes_max} bytes: {last_words}")]
    MemorySpent { bytes_max: usize, last_words: String },
    #[error("the plugin trapped: {cause}: {last_words}")]
    Trapped { cause: String, last_words: String },
    #[error("the plugin exited with code {0} instead of answering")]
    Exited(i32),
    #[error("the plugin answered {bytes} bytes where {bytes_max} are allowed")]
    TooLarge { bytes: usize, bytes_max: usize },
    #[error("the call was ended with its revision, which another one has replaced")]
    Stopped,
    #[error("the plugin is off: {}", match .0 { Off::Disabled => "the operator disabled it", Off::Unloadable(why) => why })]
    Off(Off),
}

/// The instances of one revision.
pub(crate) struct Instances {
    engine: Engine,
    pre: FeaturePluginPre<State>,
    lent: Arc<Lent>,
    plugin: Arc<str>,
    revision: u64,
    limits: Limits,
    mode: InstanceMode,
    permits: Arc<Semaphore>,
    breaker: Arc<Breaker>,
    line_rate: Arc<LineRate>,
    vitals: Arc<Vitals>,
    /// Idle warm instances; at most as many as calls at once. Never held over an await.
    idle: Mutex<Vec<Warm>>,
}

/// What [`Instances::new`] is made of.
pub(crate) struct Parts {
    pub(crate) engine: Engine,
    pub(crate) pre: FeaturePluginPre<State>,
    pub(crate) lent: Arc<Lent>,
    pub(crate) plugin: Arc<str>,
    pub(crate) revision: u64,
    pub(crate) limits: Limits,
    pub(crate) mode: InstanceMode,
    /// Shared by all revisions of the plugin, so that a swap does not double what it may use.
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) breaker: Arc<Breaker>,
    pub(crate) line_rate: Arc<LineRate>,
}

struct Warm {
    store: Store<State>,
    guest: FeaturePlugin,
    cpu: Arc<CpuMeter>,
    made: Instant,
    calls: u32,
}

impl Instances {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { engine, pre, lent, plugin, revision, limits, mode, permits, breaker, line_rate } = parts;
        let (vitals, idle) = (Arc::default(), Mutex::new(Vec::new()));
        Self { engine, pre, lent, plugin, revision, limits, mode, permits, breaker, line_rate, vitals, idle }
    }

    /// What the instances use.
    pub(crate) fn vitals(&self) -> &Vitals {
        &self.vitals
    }

    /// The bytes that the plugin's cache holds, where it is granted.
    pub(crate) fn cached_bytes(&self) -> Option<u64> {
        self.lent.cache.as_ref().map(Lease::bytes)
    }

    /// Runs one call, waiting for a place at most until its deadline.
    pub(crate) async fn invoke(&self, call: Call) -> Result<Answer, CallError> {
        let wall = call.deadline.min(self.limits.wall);
        let started = Instant::now();
        let trial = self.breaker.admit(started).map_err(|wait| CallError::Paused { seconds: wait.as_secs().max(1) })?;
        let waited = tokio::time::timeout(wall, self.permits.acquire()).await;
        let _permit = match waited {
            Ok(permit) => permit.expect("the semaphore lives as long as the plugin and is never closed"),
            Err(_) => return Err(CallError::Busy { limit: self.limits.concurrency }),
        };
        let outcome = match tokio::time::timeout(wall.saturating_sub(started.elapsed()), self.run(call)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(CallError::Deadline(wall)),
        };
        match &outcome {
            Err(CallError::CpuSpent(_)) => self.breaker.spent(Instant::now()),
            _ => trial.passed(),
        }
        outcome
    }

    /// Drops warm instances that are past their age, and tells of log lines that were dropped before a silence.
    pub(crate) fn sweep(&self, now: Instant) {
        capabilities::tell_of_dropped(&self.plugin, &self.line_rate, now);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let old: Vec<Warm> = idle.extract_if(.., |warm| now.duration_since(warm.made) > WARM_AGE_MAX).collect();
        drop(idle);
        drop(old);
    }

    /// Reads the plugin's description in an instance that is denied everything.
    pub(crate) async fn describe(
        engine: &Engine,
        pre: &FeaturePluginPre<State>,
        limits: &Limits,
    ) -> Result<String, CallError> {
        let (lent, vitals) = (Arc::default(), Arc::default());
        let state = State::new(lent, LogScope::silent(), limits.memory_bytes, vitals);
        let wall = Duration::from_secs(5);
        let read = async {
            let mut warm = instantiate(engine, pre, state, limits).await?;
            let Warm { store, guest, cpu, .. } = &mut warm;
            cpu.begin();
            let described = metered(cpu, guest.switchbay_plugin_feature().call_describe(&mut *store)).await;
            described.map_err(|error| named(&error, store, limits, cpu))
        };
        tokio::time::timeout(wall, read).await.unwrap_or(Err(CallError::Deadline(wall)))
    }

    async fn run(&self, call: Call) -> Result<Answer, CallError> {
        let log = LogScope::call(&self.plugin, self.revision, &self.line_rate, &call);
        let mut warm = match self.take_idle() {
            Some(mut warm) => {
                warm.store.data_mut().begin(log);
                warm
            }
            None => {
                let state = State::new(Arc::clone(&self.lent), log, self.limits.memory_bytes, Arc::clone(&self.vitals));
                instantiate(&self.engine, &self.pre, state, &self.limits).await?
            }
        };
        let Warm { store, guest, cpu, .. } = &mut warm;
        cpu.begin();
        let (call, input) = to_wire(call);
        let running = store
            .run_concurrent(async |accessor| guest.switchbay_plugin_feature().call_invoke(accessor, call, input).await);
        let ended = metered(cpu, running).await;
        let answer = match ended.and_then(|answer| answer) {
            Ok(answer) => answer,
            Err(error) => return Err(named(&error, store, &self.limits, cpu)),
        };
        let answer = from_wire(answer);
        let bytes = size(&answer);
        if bytes > self.limits.response_bytes {
            return Err(CallError::TooLarge { bytes, bytes_max: self.limits.response_bytes });
        }
        if self.mode == InstanceMode::Warm {
            self.put_idle(warm);
        }
        Ok(answer)
    }

    fn take_idle(&self) -> Option<Warm> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn put_idle(&self, mut warm: Warm) {
        warm.calls += 1;
        if warm.calls < WARM_CALLS_MAX && warm.made.elapsed() < WARM_AGE_MAX {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(warm);
        }
    }
}

async fn instantiate(
    engine: &Engine,
    pre: &FeaturePluginPre<State>,
    state: State,
    limits: &Limits,
) -> Result<Warm, CallError> {
    let cpu = Arc::new(CpuMeter::default());
    let mut store = Store::new(engine, state);
    store.limiter(|state| state.limiter());
    store.set_hostcall_fuel(limits.response_bytes.saturating_mul(2).max(HOST_CALL_BYTES_MIN));
    store.set_epoch_deadline(1);
    let (meter, budget) = (Arc::clone(&cpu), limits.cpu);
    store.epoch_deadline_callback(move |_| match meter.used() >= budget {
        true => Err(wasmtime::Error::new(CpuBudgetSpent)),
        false => Ok(UpdateDeadline::Yield(1)),
    });
    cpu.begin();
    let guest = metered(&cpu, pre.instantiate_async(&mut store)).await;
    match guest {
        Ok(guest) => Ok(Warm { store, guest, cpu, made: Instant::now(), calls: 0 }),
        Err(error) if error.is::<wasmtime::PoolConcurrencyLimitError>() => Err(CallError::NoRoom(error.to_string())),
        Err(error) => Err(named(&error, &mut store, limits, &cpu)),
    }
}

/// Gives what ended a call its name.
fn named(error: &wasmtime::Error, store: &mut Store<State>, limits: &Limits, cpu: &CpuMeter) -> CallError {
    let state = store.data_mut();
    if error.is::<CpuBudgetSpent>() || cpu.used() >= limits.cpu {
        return CallError::CpuSpent(limits.cpu);
    }
    if let Some(exit) = error.downcast_ref::<I32Exit>() {
        return CallError::Exited(exit.0);
    }
    if state.memory_was_denied() {
        return CallError::MemorySpent { bytes_max: limits.memory_bytes, last_words: state.last_words() };
    }
    let cause = match error.downcast_ref::<Trap>() {
        Some(trap) => trap.to_string(),
        None => format!("{error:#}"),
    };
    CallError::Trapped { cause, last_words: state.last_words() }
}

fn to_wire(call: Call) -> (wire::Call, String) {
    let deadline_ms = u32::try_from(call.deadline.as_millis()).unwrap_or(u32::MAX);
    let kind = match call.caller {
        CallerKind::ApiKey => wire::CallerKind::ApiKey,
        CallerKind::OAuth => wire::CallerKind::Oauth,
        CallerKind::FirstParty => wire::CallerKind::FirstParty,
    };
    let caller = wire::Caller { owner: call.owner.as_str().to_owned(), kind, subject: None };
    let wired = wire::Call { request_id: call.request_id, operation: call.operation, caller, deadline_ms, job: None };
    (wired, call.input)
}

fn from_wire(answer: Result<wire::Reply, wire::Failure>) -> Answer {
    match answer {
        Ok(wire::Reply { outcome, data, headers, attachments }) => {
            Answer::Success(Success { outcome, data, headers, attachments: attachments.len() })
        }
        Err(wire::Failure { code, message, retry_after_ms, details }) => {
            Answer::Failure(Failure { code, message, retry_after_ms, details })
        }
    }
}

fn size(answer: &Answer) -> usize {
    match answer {
        Answer::Success(success) => {
            let headers: usize = success.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
            success.data.len() + success.outcome.len() + headers
        }
        Answer::Failure(failure) => {
            failure.code.len() + failure.message.len() + failure.details.as_ref().map_or(0, String::len)
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the processor budget is used up")]
struct CpuBudgetSpent;

/// The processor time of one call: the thread's clock over each poll of the call's future. A guest that waits is not
/// charged, and neither is one that was preempted.
#[derive(Default)]
struct CpuMeter {
    used_ns: AtomicU64,
    poll_began_ns: AtomicU64,
}

impl CpuMeter {
    fn begin(&self) {
        self.used_ns.store(0, Ordering::Relaxed);
        self.poll_began_ns.store(thread_ns(), Ordering::Relaxed);
    }

    /// Including the poll that is under way, so it must be asked on the polling thread.
    fn used(&self) -> Duration {
        let poll = thread_ns().saturating_sub(self.poll_began_ns.load(Ordering::Relaxed));
        Duration::from_nanos(self.used_ns.load(Ordering::Relaxed) + poll)
    }

    fn poll_begins(&self) {
        self.poll_began_ns.store(thread_ns(), Ordering::Relaxed);
    }

    fn poll_ends(&self) {
        let now = thread_ns();
        let poll = now.saturating_sub(self.poll_began_ns.swap(now, Ordering::Relaxed));
        self.used_ns.fetch_add(poll, Ordering::Relaxed);
    }
}

fn thread_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Runs a future with its polls metered.
async fn metered<F: Future>(cpu: &CpuMeter, future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| {
        cpu.poll_begins();
        let polled = future.as_mut().poll(context);
        cpu.poll_ends();
        polled
    })
    .await
}
