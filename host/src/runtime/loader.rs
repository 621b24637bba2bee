//! From a component to one that can be instantiated, one step at a time: compile, check imports, link, describe.
//!
//! Anything that fails leaves no trace but its error; what runs is not touched. Must not know of routes in use (whether two
//! plugins collide is the catalogue's to say), nor who granted what.

use std::sync::Arc;

use wasmtime::component::{Component, InstancePre, Linker};

use super::capabilities;
use super::capabilities::{GuestState, ImportStanding};
use super::components::{ComponentError, ComponentFolder};
use super::engine::{EngineError, Runtime};
use super::exports::{ExportError, PluginExports};
use super::instance::{CallError, Instances};
use crate::base::tasks::blocking;
use crate::contract::description::{Description, DescriptionError};
use crate::contract::manifest::PluginLimits;
use crate::contract::operation::CallerKind;
use crate::egress::SecretError;

/// The most imports that a component may have.
const IMPORTS_MAX: usize = 256;

/// A component that cannot become a revision. The plugin's name stands before each message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error(transparent)]
    Component(#[from] ComponentError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("it imports `{import}`, which this host does not have")]
    UnknownImport { import: String },
    #[error(
        "it imports `switchbay:jobs` and does not export `switchbay:plugin/worker`, which runs jobs"
    )]
    NoWorker,
    #[error("it has more than {IMPORTS_MAX} imports")]
    TooManyImports,
    #[error("it imports `{import}` but does not list `{interface}` in its `wants`")]
    NotWanted {
        import: String,
        interface: &'static str,
    },
    #[error("it does not fit the world `switchbay:worlds/guest`: {0}")]
    World(String),
    #[error(transparent)]
    Exports(#[from] ExportError),
    #[error("reading its description failed: {0}")]
    Describe(#[source] CallError),
    #[error(
        "its operation `{operation}` has the face `operator`, which `switchbay:plugin@{version}` does not have: rebuild it \
         with a newer SDK"
    )]
    OperatorFace {
        operation: String,
        version: &'static str,
    },
    #[error("its description differs between two reads")]
    Unstable,
    #[error(transparent)]
    Description(#[from] DescriptionError),
    #[error(transparent)]
    Secret(#[from] SecretError),
}

/// A component whose imports are all known, ready to be instantiated.
pub(crate) struct Linked {
    pub(crate) pre: InstancePre<GuestState>,
    pub(crate) exports: PluginExports,
    /// The imports that an operator must grant, each with the interface's name in atoms.
    lent: Vec<(String, &'static str)>,
}

/// The compiled form of a kept component, from the cache where it is there.
pub(crate) async fn compile(
    runtime: &Runtime,
    components: &ComponentFolder,
    digest: &str,
) -> Result<Component, LoadError> {
    if let Some(component) = runtime.cached(digest).await {
        return Ok(component);
    }
    let (components, named) = (components.clone(), digest.to_owned());
    let bytes = blocking(move || components.read(&named)).await?;
    Ok(runtime.compile(&bytes, digest).await?)
}

/// A kept component, linked. Linking takes a while, so it is done on a thread that may.
pub(crate) async fn linked(
    runtime: &Arc<Runtime>,
    components: &ComponentFolder,
    digest: &str,
) -> Result<Linked, LoadError> {
    let component = compile(runtime, components, digest).await?;
    let runtime = Arc::clone(runtime);
    blocking(move || link(&runtime, &component)).await
}

/// Links the base set and every capability that the component imports. What a revision may do with it is decided at each
/// call, by the rights that it was put together with: an approval is taken back without loading anything.
pub(crate) fn link(runtime: &Runtime, component: &Component) -> Result<Linked, LoadError> {
    let engine = &runtime.engine;
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
            ImportStanding::Base => {}
            ImportStanding::Lent(capability) => {
                capability.link(&mut linker).map_err(world)?;
                lent.push((import.to_owned(), capability.atom));
            }
            ImportStanding::Unknown => {
                return Err(LoadError::UnknownImport {
                    import: import.to_owned(),
                });
            }
        }
    }
    let pre = linker.instantiate_pre(component).map_err(world)?;
    let exports = PluginExports::find(engine, &kind, &pre)?;
    if !exports.has_worker() && lent.iter().any(|(_, atom)| *atom == "jobs") {
        return Err(LoadError::NoWorker);
    }
    Ok(Linked { pre, exports, lent })
}

/// Reads what a component says of itself, twice, in instances to which every capability is denied.
pub(crate) async fn describe(
    runtime: &Runtime,
    linked: &Linked,
    limits: &PluginLimits,
    plugin: &str,
) -> Result<(String, Description), LoadError> {
    let read = || Instances::describe(&runtime.engine, linked, limits);
    let text = read().await.map_err(LoadError::Describe)?;
    if read().await.map_err(LoadError::Describe)? != text {
        return Err(LoadError::Unstable);
    }
    let description = self::read(text.clone(), plugin).await?;
    let mut operations = description.operations.iter();
    let operators = operations.find(|operation| operation.operator.is_some());
    if let Some(operation) = operators.filter(|_| !linked.exports.knows(CallerKind::Operator)) {
        return Err(LoadError::OperatorFace {
            operation: operation.id.clone(),
            version: linked.exports.version(),
        });
    }
    for (import, interface) in &linked.lent {
        if !description.wanted().any_of(interface) {
            return Err(LoadError::NotWanted {
                import: import.clone(),
                interface,
            });
        }
    }
    Ok((text, description))
}

/// Reads what a component said of itself. Its schemas take a while, so it is done on a thread that may.
pub(crate) async fn read(text: String, plugin: &str) -> Result<Description, LoadError> {
    let named = plugin.to_owned();
    Ok(blocking(move || Description::read(&text, &named)).await?)
}
