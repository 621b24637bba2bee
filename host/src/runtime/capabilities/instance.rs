//! What one instance carries on the host's side: its WASI context, what it was lent, and what it may still use.
//!
//! A warm instance keeps its state between calls; [`GuestState::begin`] resets what belongs to one call.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::ResourceLimiter;
use wasmtime::component::{Accessor, HasSelf, ResourceTable};
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use super::bindings::switchbay::dns::resolver;
use super::bindings::switchbay::jobs::{queue, work};
use super::bindings::switchbay::{http, line_query};
use super::{JobsOf, LogScope, PluginCache, PluginRecords};
use crate::contract::grants::Rights;
use crate::contract::operation::{CallerKind, Owner};
use crate::contract::tenant::Tenant;
use crate::egress::EgressClient;
use crate::lookup::IpDatabases;
use crate::observe::instrument::Held;
use crate::observe::metrics::InstanceMetrics;
use crate::runtime::call_places::CallTab;
use crate::runtime::job_run::JobRun;

/// Bytes of standard error that are kept, for the text of a panic.
const STDERR_BYTES_MAX: usize = 4096;
/// Resources (pollables, streams, errors) that a guest may hold at once.
const RESOURCES_MAX: usize = 1024;
/// Random bytes that one call of the interface may ask for.
const RANDOM_BYTES_MAX: u64 = 64 * 1024;

/// What a plugin was lent, the same for all its instances of one revision.
#[derive(Default)]
pub(crate) struct GrantedCapabilities {
    /// The settings of `wasi:config/store`.
    pub(crate) config: BTreeMap<String, String>,
    /// What the revision may do.
    pub(crate) rights: Rights,
    /// The way out, for all but a revision that describes itself.
    pub(crate) door: Option<EgressClient>,
    /// The plugin's cache, where it is granted.
    pub(crate) cache: Option<PluginCache>,
    /// The plugin's records, where they are granted.
    pub(crate) records: Option<PluginRecords>,
    /// Its jobs, for all but a revision that describes itself.
    pub(crate) jobs: Option<JobsOf>,
    /// What is known of addresses, for all but the same.
    pub(crate) ip_databases: Option<Arc<IpDatabases>>,
}

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

/// How an interface's own error says that a call was refused.
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

refused_calls! {
    resolver::Error => |told| Self::Denied(resolver::Denial::NotGranted(told)),
    http::client::Error => |told| Self::Denied(http::client::Denial::NotGranted(told)),
    line_query::client::Error => |told| Self::Denied(line_query::client::Denial::NotGranted(told)),
    queue::Error => Self::NotGranted,
    queue::SubmitError => Self::NotGranted,
    work::Error => Self::NotGranted,
}

/// The way out for one request, and its place among those of one call.
pub(crate) struct AdmittedRequest {
    lent: Arc<GrantedCapabilities>,
    /// Who pays.
    pub(crate) tenant: Tenant,
    _place: OwnedSemaphorePermit,
}

impl AdmittedRequest {
    pub(crate) fn door(&self) -> &EgressClient {
        self.lent
            .door
            .as_ref()
            .expect("it was there when this was made, and what is lent never changes")
    }
}

/// Admits one request by an interface, named as in atoms.
pub(crate) fn admit<T: Send + 'static>(
    accessor: &Accessor<T, HasSelf<GuestState>>,
    interface: &str,
) -> Result<AdmittedRequest, CallRefused> {
    accessor.with(|mut access| {
        let state: &mut GuestState = access.get();
        let may = state.lent.door.is_some() && state.lent.rights.any_of(interface);
        let Some(OnBehalf { tenant, .. }) = state.on_behalf.as_ref().filter(|_| may) else {
            return Err(CallRefused::Ungranted(state.denied(interface)));
        };
        let tenant = tenant.clone();
        let place = Arc::clone(&state.requests)
            .try_acquire_owned()
            .map_err(|_| CallRefused::Busy)?;
        Ok(AdmittedRequest {
            lent: Arc::clone(&state.lent),
            tenant,
            _place: place,
        })
    })
}

/// Counts a request that the gate denied.
pub(crate) fn count_denial<T: Send + 'static>(accessor: &Accessor<T, HasSelf<GuestState>>) {
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
    /// A place for each request of one call.
    pub(crate) requests: Arc<Semaphore>,
    /// A place for each of its reads and writes of records.
    pub(crate) records: Arc<Semaphore>,
    /// A place for each of its calls about jobs.
    pub(crate) jobs: Arc<Semaphore>,
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
            requests: Arc::new(Semaphore::new(super::http::IN_FLIGHT_MAX)),
            records: Arc::new(Semaphore::new(super::state::IN_FLIGHT_MAX)),
            jobs: Arc::new(Semaphore::new(super::jobs::IN_FLIGHT_MAX)),
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
