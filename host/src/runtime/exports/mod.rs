//! What a component exports, in each version of `switchbay:plugin` that is served: found when it is linked, and called.
//!
//! A published version never changes. A new one is a module here, and the oldest goes when a third comes: the host serves the
//! last two side by side. Must not know what a call may use, nor how its end is told.

mod v0_1;
mod v0_2;
mod version;

use wasmtime::component::types::Component as ComponentKind;
use wasmtime::component::{Accessor, Instance, InstancePre};
use wasmtime::{Engine, Store};

use super::capabilities::GuestState;
use crate::contract::operation::{Call, CallerKind, UncheckedAnswer};

const FEATURE: &str = "switchbay:plugin/feature";
const WORKER: &str = "switchbay:plugin/worker";

/// A component whose exports the host cannot call.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExportError {
    #[error(
        "it does not export `{FEATURE}`, which serves operations; this host serves its versions {}",
        ContractVersion::names()
    )]
    NoFeature,
    #[error(
        "it exports `{export}`, whose version this host does not serve; it serves {}",
        ContractVersion::names()
    )]
    Version { export: String },
    #[error("it exports `{feature}` and `{worker}`; both must have the same version")]
    Mixed { feature: String, worker: String },
    #[error("its exports do not fit `switchbay:plugin@{version}`: {source:#}")]
    Form {
        version: &'static str,
        source: wasmtime::Error,
    },
}

/// A caller of a kind that the component's version of the contract does not have.
#[derive(Debug, thiserror::Error)]
#[error("the component's version of `switchbay:plugin` does not know callers of this kind")]
pub(crate) struct CallerUnknown;

/// The job that a worker runs.
pub(crate) struct WorkedJob {
    pub(crate) id: String,
    pub(crate) attempt: u32,
    pub(crate) checkpoint: Option<String>,
}

/// A version of `switchbay:plugin`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ContractVersion {
    V0_1,
    V0_2,
}

impl ContractVersion {
    const ALL: [ContractVersion; 2] = [ContractVersion::V0_1, ContractVersion::V0_2];

    fn name(self) -> &'static str {
        match self {
            ContractVersion::V0_1 => "0.1.0",
            ContractVersion::V0_2 => "0.2.0",
        }
    }

    fn names() -> String {
        Self::ALL.map(Self::name).join(" and ")
    }

    /// That of an export such as `switchbay:plugin/feature@0.1.0`.
    fn of(export: &str) -> Result<Self, ExportError> {
        let written = export.rsplit_once('@').map_or("", |(_, version)| version);
        let version = Self::ALL.into_iter().find(|known| known.name() == written);
        version.ok_or_else(|| ExportError::Version {
            export: export.to_owned(),
        })
    }
}

/// One of each version.
macro_rules! versions {
    ($(#[$doc:meta])* $name:ident, $kind:ident) => {
        $(#[$doc])*
        pub(crate) enum $name {
            V0_1(v0_1::$kind),
            V0_2(v0_2::$kind),
        }
    };
}

versions!(
    /// Where the exports stand in a component.
    PluginExports, Indices
);
versions!(
    /// The export of an instance that serves operations.
    FeatureExport, Feature
);
versions!(
    /// The export of an instance that runs jobs.
    WorkerExport, Worker
);

/// The same expression for each version.
macro_rules! in_each {
    ($exports:expr, $one:ident => $done:expr) => {
        match $exports {
            Self::V0_1($one) => $done,
            Self::V0_2($one) => $done,
        }
    };
}

impl PluginExports {
    /// Finds the exports of a linked component.
    pub(crate) fn find(
        engine: &Engine,
        kind: &ComponentKind,
        pre: &InstancePre<GuestState>,
    ) -> Result<Self, ExportError> {
        let named = |interface: &str| {
            let is_of = |export: &str| {
                let version = export.strip_prefix(interface);
                version.is_some_and(|version| version.starts_with('@'))
            };
            let mut exports = kind.exports(engine).map(|(export, _)| export);
            exports.find(|export| is_of(export)).map(str::to_owned)
        };
        let feature = named(FEATURE).ok_or(ExportError::NoFeature)?;
        let version = ContractVersion::of(&feature)?;
        let worker = named(WORKER);
        if let Some(worker) = &worker
            && ContractVersion::of(worker)? != version
        {
            let (feature, worker) = (feature, worker.clone());
            return Err(ExportError::Mixed { feature, worker });
        }
        let found = match version {
            ContractVersion::V0_1 => v0_1::Indices::find(pre, worker.is_some()).map(Self::V0_1),
            ContractVersion::V0_2 => v0_2::Indices::find(pre, worker.is_some()).map(Self::V0_2),
        };
        let version = version.name();
        found.map_err(|source| ExportError::Form { version, source })
    }

    pub(crate) fn has_worker(&self) -> bool {
        in_each!(self, exports => exports.has_worker())
    }

    /// The version of `switchbay:plugin` that the component was built against.
    pub(crate) fn version(&self) -> &'static str {
        match self {
            Self::V0_1(_) => ContractVersion::V0_1.name(),
            Self::V0_2(_) => ContractVersion::V0_2.name(),
        }
    }

    /// Whether a call may come from such a caller.
    pub(crate) fn knows(&self, caller: CallerKind) -> bool {
        match self {
            Self::V0_1(_) => caller != CallerKind::Operator,
            Self::V0_2(_) => true,
        }
    }

    pub(crate) fn feature(
        &self,
        store: &mut Store<GuestState>,
        instance: &Instance,
    ) -> wasmtime::Result<FeatureExport> {
        match self {
            Self::V0_1(exports) => exports.feature(store, instance).map(FeatureExport::V0_1),
            Self::V0_2(exports) => exports.feature(store, instance).map(FeatureExport::V0_2),
        }
    }

    /// None where the component has no worker.
    pub(crate) fn worker(
        &self,
        store: &mut Store<GuestState>,
        instance: &Instance,
    ) -> wasmtime::Result<Option<WorkerExport>> {
        Ok(match self {
            Self::V0_1(exports) => exports.worker(store, instance)?.map(WorkerExport::V0_1),
            Self::V0_2(exports) => exports.worker(store, instance)?.map(WorkerExport::V0_2),
        })
    }
}

impl FeatureExport {
    pub(crate) async fn describe(&self, store: &mut Store<GuestState>) -> wasmtime::Result<String> {
        in_each!(self, feature => feature.describe(store).await)
    }

    pub(crate) async fn invoke(
        &self,
        accessor: &Accessor<GuestState>,
        call: Call,
    ) -> wasmtime::Result<UncheckedAnswer> {
        in_each!(self, feature => feature.invoke(accessor, call).await)
    }
}

impl WorkerExport {
    pub(crate) async fn run(
        &self,
        accessor: &Accessor<GuestState>,
        call: Call,
        job: WorkedJob,
    ) -> wasmtime::Result<UncheckedAnswer> {
        in_each!(self, worker => worker.run(accessor, call, job).await)
    }
}
