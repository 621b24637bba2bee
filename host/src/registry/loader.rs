//! From a component to a revision that can be called, one step at a time: compile, check imports, link, describe, put
//! together.
//!
//! Anything that fails leaves no trace but its error; what runs is not touched. Must not know of routes in use (whether two
//! plugins collide is the catalogue's to say), nor who granted what.

use std::sync::Arc;

use wasmtime::component::{Component, Linker};

use super::blocking;
use super::call_places::{CallPlaces, ShareLimits};
use super::components::{ComponentError, Components};
use super::description::{Description, DescriptionError};
use super::engine::{EngineError, Runtime};
use super::grants::Rights;
use super::instance::{CallError, InstanceParts, Instances};
use super::lifecycle::RevisionRecord;
use super::manifest::PluginLimits;
use super::revision::{Off, Revision, Runner};
use crate::capabilities::bindings::FeaturePluginPre;
use crate::capabilities::{self, GrantedCapabilities, GuestState, JobsOf, Records, Standing, worker};
use crate::config::{self, Shares};
use crate::egress::{Secret, SecretError};
use crate::metering::LineRate;
use crate::stores::Store;

/// The most imports that a component may have.
const IMPORTS_MAX: usize = 256;

/// What a component exports that has jobs.
const WORKER: &str = "switchbay:plugin/worker@0.1.0";

/// A component that cannot become a revision. The plugin's name stands before each message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error(transparent)]
    Component(#[from] ComponentError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("it imports `{import}`, which this host does not have")]
    UnknownImport { import: String },
    #[error("it imports `switchbay:jobs` and does not export `{WORKER}`, which runs jobs")]
    NoWorker,
    #[error("it has more than {IMPORTS_MAX} imports")]
    TooManyImports,
    #[error("it imports `{import}` but does not ask for `{interface}` in its `wants`")]
    NotWanted { import: String, interface: &'static str },
    #[error("it does not fit the world `switchbay:plugin/feature-plugin`: {0}")]
    World(String),
    #[error("reading its description failed: {0}")]
    Describe(#[source] CallError),
    #[error("its description differs between two reads")]
    Unstable,
    #[error(transparent)]
    Description(#[from] DescriptionError),
    #[error(transparent)]
    Secret(#[from] SecretError),
}

/// What all revisions of one plugin share.
pub(crate) struct Slots {
    pub(crate) places: Arc<CallPlaces>,
    pub(crate) line_rate: Arc<LineRate>,
    waiting_each: usize,
}

impl Slots {
    pub(crate) fn new(plugin: &str, shares: Shares, limits: &PluginLimits) -> Self {
        let waiting_each = shares.waiting;
        let places = CallPlaces::new(plugin, share_limits(limits, waiting_each), shares.cpu);
        Self { places, line_rate: Arc::default(), waiting_each }
    }
}

fn share_limits(limits: &PluginLimits, waiting_each: usize) -> ShareLimits {
    ShareLimits { places: limits.concurrency, each: limits.owner_concurrency(), waiting_each }
}

/// A component whose imports are all known, ready to be instantiated.
pub(crate) struct Linked {
    pre: FeaturePluginPre<GuestState>,
    worker: Option<worker::GuestIndices>,
    /// The imports that an operator must grant, each with the interface's name in atoms.
    lent: Vec<(String, &'static str)>,
}

/// The compiled form of a kept component, from the cache where it is there.
pub(crate) async fn compile(runtime: &Runtime, components: &Components, digest: &str) -> Result<Component, LoadError> {
    if let Some(component) = runtime.cached(digest).await {
        return Ok(component);
    }
    let (components, named) = (components.clone(), digest.to_owned());
    let bytes = blocking(move || components.read(&named)).await?;
    Ok(runtime.compile(&bytes, digest).await?)
}

/// Links the base set and every capability that the component imports. What a revision may do with it is decided at each
/// call, by the rights that it was put together with: an approval is taken back without loading anything.
pub(crate) fn link(runtime: &Runtime, component: &Component) -> Result<Linked, LoadError> {
    let engine = runtime.engine();
    let world = |error: wasmtime::Error| LoadError::World(format!("{error:#}"));
    let mut linker: Linker<GuestState> = Linker::new(engine);
    capabilities::link_base(&mut linker).map_err(world)?;
    let kind = component.component_type();
    if kind.imports(engine).count() > IMPORTS_MAX {
        return Err(LoadError::TooManyImports);
    }
    let mut lent = Vec::new();
    for (import, _) in kind.imports(engine) {
        match capabilities::standing(import) {
            Standing::Base => {}
            Standing::Lent(capability) => {
                capability.link(&mut linker).map_err(world)?;
                lent.push((import.to_owned(), capability.atom));
            }
            Standing::Unknown => {
                return Err(LoadError::UnknownImport { import: import.to_owned() });
            }
        }
    }
    let pre = linker.instantiate_pre(component).and_then(FeaturePluginPre::new).map_err(world)?;
    let worker = if kind.exports(engine).any(|(export, _)| export == WORKER) {
        Some(worker::GuestIndices::new(pre.instance_pre()).map_err(world)?)
    } else {
        None
    };
    if worker.is_none() && lent.iter().any(|(_, atom)| *atom == "jobs") {
        return Err(LoadError::NoWorker);
    }
    Ok(Linked { pre, worker, lent })
}

/// Reads what a component says of itself, twice, in instances to which every capability is denied.
pub(crate) async fn describe(
    runtime: &Runtime,
    linked: &Linked,
    limits: &PluginLimits,
    plugin: &str,
) -> Result<(String, Description), LoadError> {
    let read = || Instances::describe(runtime.engine(), &linked.pre, limits);
    let text = read().await.map_err(LoadError::Describe)?;
    if read().await.map_err(LoadError::Describe)? != text {
        return Err(LoadError::Unstable);
    }
    let description = self::read(text.clone(), plugin).await?;
    for (import, interface) in &linked.lent {
        if !description.wanted().any_of(interface) {
            return Err(LoadError::NotWanted { import: import.clone(), interface });
        }
    }
    Ok((text, description))
}

/// What a revision is put together from.
pub(crate) struct Whole {
    pub(crate) plugin: String,
    pub(crate) record: RevisionRecord,
    /// What it said of itself when it was staged.
    pub(crate) description: Description,
    pub(crate) rights: Rights,
}

/// Reads what a component said of itself. Its schemas take a while, so it is done on a thread that may.
pub(crate) async fn read(text: String, plugin: &str) -> Result<Description, LoadError> {
    let named = plugin.to_owned();
    Ok(blocking(move || Description::read(&text, &named)).await?)
}

/// A revision that can be called. Linking takes a while, so it is done on a thread that may.
pub(crate) async fn load(
    runtime: &Arc<Runtime>,
    components: &Components,
    whole: Whole,
    slots: Arc<Slots>,
    store: &Arc<Store>,
) -> Result<Revision, LoadError> {
    let component = compile(runtime, components, &whole.record.digest).await?;
    let (runtime, store) = (Arc::clone(runtime), Arc::clone(store));
    blocking(move || assemble(&runtime, &component, whole, &slots, &store)).await
}

fn assemble(
    runtime: &Runtime,
    component: &Component,
    whole: Whole,
    slots: &Slots,
    store: &Arc<Store>,
) -> Result<Revision, LoadError> {
    let Whole { plugin, record, description, rights } = whole;
    let linked = link(runtime, component)?;
    let settings = record.settings;
    let secrets = settings.secrets.iter().map(|binding| Secret::bind(binding, config::secret));
    let secrets = secrets.collect::<Result<_, SecretError>>()?;
    let door = runtime.egress().door(&plugin, record.number, rights.clone(), secrets);
    let lent = GrantedCapabilities {
        config: settings.config,
        door: Some(door),
        cache: rights.bytes_of("cache").map(|bytes| runtime.caches().lease(&plugin, bytes)),
        records: rights.bytes_of("state").map(|bytes| Records::new(store, &plugin, bytes)),
        jobs: Some(JobsOf { jobs: Arc::clone(runtime.jobs()), plugin: plugin.as_str().into() }),
        ip_databases: Some(Arc::clone(runtime.ip_databases())),
        rights: rights.clone(),
    };
    // Whatever could fail is done: what serves keeps its places until this one is there.
    slots.places.resize(share_limits(&settings.limits, slots.waiting_each));
    let instances = Instances::new(InstanceParts {
        engine: runtime.engine().clone(),
        run_queue: Arc::clone(runtime.run_queue()),
        background: Arc::clone(runtime.background()),
        pre: linked.pre,
        worker: linked.worker,
        lent: Arc::new(lent),
        plugin: plugin.as_str().into(),
        revision: record.number,
        limits: settings.limits,
        mode: settings.instances,
        places: Arc::clone(&slots.places),
        line_rate: Arc::clone(&slots.line_rate),
    });
    let runner = Runner::Component(Arc::new(instances));
    Ok(Revision::new(&plugin, record.number, &record.digest, description, rights, runner))
}

/// A revision that is known and not run: its routes answer that it is off.
pub(crate) fn off(whole: Whole, off: Off) -> Revision {
    let Whole { plugin, record, description, rights } = whole;
    Revision::new(&plugin, record.number, &record.digest, description, rights, Runner::Off(off))
}
