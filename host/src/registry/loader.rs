//! From a manifest entry to a revision that can be called: read, digest, compile, check imports, link, describe.
//!
//! Anything that fails leaves no trace but its error; what runs is not touched. Must not know of routes in use: whether
//! two plugins collide is the catalogue's to say.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use wasmtime::component::{Component, Linker};

use super::breaker::Breaker;
use super::description::{Description, DescriptionError};
use super::engine::{EngineError, Runtime};
use super::instance::{CallError, Instances, Parts};
use super::manifest::{Entry, Source};
use super::revision::{Revision, Runner};
use crate::capabilities::bindings::FeaturePluginPre;
use crate::capabilities::{self, Lent, Standing, State};
use crate::metering::LineRate;
use crate::metrics::Calls;

/// The largest component file, in bytes.
pub(super) const COMPONENT_BYTES_MAX: u64 = 64 << 20;
/// The most imports that a component may have.
const IMPORTS_MAX: usize = 256;

/// A component that cannot become a revision. The plugin's name stands before each message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("its component {path} is missing: build it with `switchbay build`")]
    Missing { path: PathBuf },
    #[error("its component {path} cannot be read: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("its component {path} has {bytes} bytes; at most {COMPONENT_BYTES_MAX} are loaded")]
    TooLarge { path: PathBuf, bytes: u64 },
    #[error("its crate folder {path} has no Cargo.toml")]
    NoCrate { path: PathBuf },
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(
        "it imports `{import}`, which its entry in plugin-manifest.toml does not grant: add \"{atom}\" to its grants"
    )]
    NotGranted { import: String, atom: &'static str },
    #[error("it imports `{import}`, which this host does not have")]
    UnknownImport { import: String },
    #[error("it has more than {IMPORTS_MAX} imports")]
    TooManyImports,
    #[error("it imports `{import}` but does not ask for `{atom}` in its `wants`")]
    NotWanted { import: String, atom: &'static str },
    #[error("it does not fit the world `switchbay:plugin/feature-plugin`: {0}")]
    World(String),
    #[error("reading its description failed: {0}")]
    Describe(#[source] CallError),
    #[error("its description differs between two reads")]
    Unstable,
    #[error(transparent)]
    Description(#[from] DescriptionError),
}

/// What all revisions of one plugin share.
pub(crate) struct Slots {
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) breaker: Arc<Breaker>,
    pub(crate) line_rate: Arc<LineRate>,
}

/// Loads the component that a manifest entry names, from where `switchbay build` put it.
pub(crate) async fn load(runtime: &Arc<Runtime>, entry: &Entry, slots: &Slots) -> Result<Revision, LoadError> {
    let path = component_path(&entry.source)?;
    let bytes = read(&path).await?;
    let digest: Arc<str> = hex(&Sha256::digest(&bytes)).into();
    let component = runtime.component(&bytes, &digest).await?;
    let plugin: Arc<str> = entry.name.as_str().into();
    let (pre, lent) = link(runtime, &component, entry)?;

    let describe = || Instances::describe(runtime.engine(), &pre, &entry.limits);
    let text = describe().await.map_err(LoadError::Describe)?;
    if describe().await.map_err(LoadError::Describe)? != text {
        return Err(LoadError::Unstable);
    }
    let description = Description::read(&text, &entry.name)?;
    let wanted = description.wanted();
    for (import, atom) in &lent {
        if !wanted.any_of(atom) {
            return Err(LoadError::NotWanted { import: import.clone(), atom });
        }
    }
    let instances = Instances::new(Parts {
        engine: runtime.engine().clone(),
        pre,
        lent: Arc::new(Lent { config: entry.config.clone() }),
        plugin: Arc::clone(&plugin),
        revision: Arc::clone(&digest),
        limits: entry.limits.clone(),
        mode: entry.instances,
        permits: Arc::clone(&slots.permits),
        breaker: Arc::clone(&slots.breaker),
        line_rate: Arc::clone(&slots.line_rate),
    });
    Ok(Revision {
        plugin,
        version: description.version,
        summary: description.summary,
        digest,
        operations: description.operations.into_iter().map(Arc::new).collect(),
        runner: Runner::Component(Box::new(instances)),
        calls: Calls::default(),
    })
}

/// Where the component of a source stands once it is built.
pub(crate) fn component_path(source: &Source) -> Result<PathBuf, LoadError> {
    match source {
        Source::File(path) => Ok(path.clone()),
        Source::Crate(folder) => {
            super::build::artifact(folder).ok_or_else(|| LoadError::NoCrate { path: folder.clone() })
        }
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    let failed = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => LoadError::Missing { path: path.to_owned() },
        _ => LoadError::Read { path: path.to_owned(), source },
    };
    let bytes = tokio::fs::metadata(path).await.map_err(failed)?.len();
    if bytes > COMPONENT_BYTES_MAX {
        return Err(LoadError::TooLarge { path: path.to_owned(), bytes });
    }
    tokio::fs::read(path).await.map_err(failed)
}

type Linked = (FeaturePluginPre<State>, Vec<(String, &'static str)>);

/// Links the base set and what is granted, and nothing else. Gives back the granted imports with their atoms.
fn link(runtime: &Runtime, component: &Component, entry: &Entry) -> Result<Linked, LoadError> {
    let engine = runtime.engine();
    let world = |error: wasmtime::Error| LoadError::World(format!("{error:#}"));
    let mut linker: Linker<State> = Linker::new(engine);
    capabilities::link_base(&mut linker).map_err(world)?;
    let kind = component.component_type();
    if kind.imports(engine).count() > IMPORTS_MAX {
        return Err(LoadError::TooManyImports);
    }
    let mut lent = Vec::new();
    for (import, _) in kind.imports(engine) {
        match capabilities::standing(import, &entry.grants) {
            Standing::Base => {}
            Standing::Granted(capability) => {
                capability.link(&mut linker).map_err(world)?;
                lent.push((import.to_owned(), capability.atom));
            }
            Standing::NotGranted(capability) => {
                return Err(LoadError::NotGranted { import: import.to_owned(), atom: capability.atom });
            }
            Standing::Unknown => return Err(LoadError::UnknownImport { import: import.to_owned() }),
        }
    }
    let pre = linker.instantiate_pre(component).and_then(FeaturePluginPre::new).map_err(world)?;
    Ok((pre, lent))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a String does not fail");
        text
    })
}
