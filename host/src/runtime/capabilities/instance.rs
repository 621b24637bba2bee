//! What one instance carries on the host's side: its WASI context, what it was lent, and what it may still use.
//!
//! A warm instance keeps its state between calls; [`GuestState::begin`] resets what belongs to one call.

use std::sync::Arc;

use wasmtime::ResourceLimiter;
use wasmtime::component::{Accessor, HasSelf, ResourceTable};
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use super::{GrantedCapabilities, LogScope};
use crate::contract::feature_call::FeatureDoor;
use crate::contract::operation::{CallerKind, Owner};
use crate::contract::tenant::Tenant;
use crate::observe::instrument::Held;
use crate::observe::metrics::InstanceMetrics;
use crate::runtime::call_places::CallTab;
use crate::runtime::in_flight::ActsInFlight;
use crate::runtime::job_run::JobRun;

/// Bytes of standard error that are kept, for the text of a panic.
const STDERR_BYTES_MAX: usize = 4096;
/// Resources (pollables, streams, errors) that a guest may hold at once.
const RESOURCES_MAX: usize = 1024;
/// Random bytes that one call of the interface may ask for.
const RANDOM_BYTES_MAX: u64 = 64 * 1024;

/// The call that an instance runs, as far as a capability must know it.
#[derive(Clone, Debug)]
pub(crate) struct OnBehalf {
    pub(crate) owner: Owner,
    pub(crate) tenant: Tenant,
    pub(crate) key: Option<Arc<str>>,
    pub(crate) caller: CallerKind,
    pub(crate) operation: String,
    pub(crate) request_id: String,
}

/// The job that an instance works on.
#[derive(Clone)]
pub(crate) struct JobWorker {
    pub(crate) run: Arc<JobRun>,
    /// What is used is paid for with each thing that is kept.
    pub(crate) tab: Arc<CallTab>,
}

/// Why a call of a capability is not made.
pub(crate) enum CallRefused {
    /// It was not lent, in words. That is counted.
    Ungranted(String),
    /// As many of one call are under way as may be.
    Busy,
}

/// How an interface's own error says that a call was refused, in the interface's file.
macro_rules! refused_calls {
    ($($error:ty => $ungranted:expr),+ $(,)?) => {$(
        impl From<CallRefused> for $error {
            fn from(refused: CallRefused) -> Self {
                match refused {
                    CallRefused::Ungranted(told) => $ungranted(told),
                    CallRefused::Busy => Self::Busy,
                }
            }
        }
    )+};
}

pub(super) use refused_calls;

/// Counts a request that the gate denied.
pub(super) fn count_denial<T: Send + 'static>(accessor: &Accessor<T, HasSelf<GuestState>>) {
    accessor.with(|mut access| access.get().count_denial());
}

/// The store's data.
pub(crate) struct GuestState {
    pub(crate) lent: Arc<GrantedCapabilities>,
    pub(crate) log: LogScope,
    /// Absent while a plugin describes itself.
    pub(crate) on_behalf: Option<OnBehalf>,
    /// Where it works on a job.
    pub(crate) worker: Option<JobWorker>,
    /// The way of the call that it runs to other plugins' operations.
    pub(crate) features: Option<Arc<dyn FeatureDoor>>,
    /// What it has under way, of each kind that is bounded.
    pub(crate) in_flight: ActsInFlight,
    wasi: WasiCtx,
    table: ResourceTable,
    stderr: MemoryOutputPipe,
    /// How much of it earlier calls wrote.
    stderr_before: usize,
    memory: MemoryLimit,
    /// Counts this instance among the living.
    _living: Held,
}

impl GuestState {
    /// A state for one instance, with a limit on its linear memory in bytes.
    pub(crate) fn new(
        lent: Arc<GrantedCapabilities>,
        log: LogScope,
        on_behalf: Option<OnBehalf>,
        memory_bytes_max: usize,
        vitals: Arc<InstanceMetrics>,
    ) -> Self {
        let stderr = MemoryOutputPipe::new(STDERR_BYTES_MAX);
        let wasi = WasiCtx::builder()
            .stderr(stderr.clone())
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            .max_random_size(RANDOM_BYTES_MAX)
            .build();
        let mut table = ResourceTable::new();
        table.set_max_capacity(RESOURCES_MAX);
        let living = vitals.instances.hold();
        let memory = MemoryLimit {
            bytes_max: memory_bytes_max,
            bytes: 0,
            denied: false,
            vitals,
        };
        Self {
            lent,
            log,
            on_behalf,
            worker: None,
            features: None,
            in_flight: ActsInFlight::default(),
            wasi,
            table,
            stderr,
            stderr_before: 0,
            memory,
            _living: living,
        }
    }

    /// The instance works on a job from here on.
    pub(crate) fn works(&mut self, worker: JobWorker) {
        self.worker = Some(worker);
    }

    /// Lets go of what only a call that runs may hold: an instance that is idle would keep alive what was served then.
    pub(crate) fn rest(&mut self) {
        self.features = None;
    }

    /// Readies the state for another call.
    pub(crate) fn begin(&mut self, log: LogScope, on_behalf: OnBehalf) {
        (self.log, self.on_behalf) = (log, Some(on_behalf));
        self.stderr_before = self.stderr.contents().len();
    }

    /// Who pays for the call that it runs.
    pub(crate) fn tenant(&self) -> Option<&Tenant> {
        self.on_behalf.as_ref().map(|on_behalf| &on_behalf.tenant)
    }

    /// Whether the revision has any right to an interface, named as in atoms. A no is counted.
    pub(crate) fn may(&self, interface: &str) -> bool {
        let may = self.lent.rights.any_of(interface);
        if !may {
            self.count_denial();
        }
        may
    }

    /// What a guest is told that was not lent what an atom names, counted.
    pub(crate) fn denied(&self, atom: &str) -> String {
        self.count_denial();
        format!("`{atom}` is not granted")
    }

    pub(crate) fn count_denial(&self) {
        self.vitals().denials.increment();
    }

    /// What is counted of the revision's instances.
    pub(crate) fn vitals(&self) -> &InstanceMetrics {
        &self.memory.vitals
    }

    /// The linear memory that the instance has. It never has less again.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory.bytes
    }

    /// Whether the guest was denied memory since it was made.
    pub(crate) fn memory_was_denied(&self) -> bool {
        self.memory.denied
    }

    /// Hands what the guest wrote to standard error in this call to the log, and gives back what a cause may tell of it.
    pub(crate) fn last_words(&mut self) -> String {
        let written = self.stderr.contents();
        let text = String::from_utf8_lossy(written.get(self.stderr_before..).unwrap_or_default());
        self.log.last_words(text.trim())
    }

    /// The limiter for [`wasmtime::Store::limiter`].
    pub(crate) fn limiter(&mut self) -> &mut dyn ResourceLimiter {
        &mut self.memory
    }
}

impl WasiView for GuestState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

/// Bounds what an instance may grow to, and remembers a denial so that the trap which follows is told by its name.
struct MemoryLimit {
    bytes_max: usize,
    bytes: usize,
    denied: bool,
    vitals: Arc<InstanceMetrics>,
}

impl MemoryLimit {
    fn hold(&mut self, bytes: usize) {
        self.vitals
            .memory_held
            .change(self.bytes as u64, bytes as u64);
        self.bytes = bytes;
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        self.hold(0);
    }
}

/// Elements of one table. A Rust guest has a few hundred.
const TABLE_ELEMENTS_MAX: usize = 20_000;
/// Core instances, tables and memories that one component instance may be made of.
const PARTS_MAX: usize = 64;

impl ResourceLimiter for MemoryLimit {
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let granted = desired <= self.bytes_max;
        self.denied |= !granted;
        if granted {
            self.vitals.memory_bytes.seen(desired as u64);
            self.hold(desired);
        }
        Ok(granted)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_ELEMENTS_MAX)
    }

    fn instances(&self) -> usize {
        PARTS_MAX
    }

    fn tables(&self) -> usize {
        PARTS_MAX
    }

    /// One: the limit on bytes is for each memory, so a second memory would double it.
    fn memories(&self) -> usize {
        1
    }
}
