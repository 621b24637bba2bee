//! The plugins: what the operator wants, what became of it, and the one snapshot that calls are served from.
//!
//! Writers take turns; readers never wait: they take the current [`Snapshot`] and keep it. Every change is written to the
//! store before it is served, so that a process which is killed at any moment comes back with the last one that was
//! written. Must not know what a transport is.

mod assembly;
mod changes;
mod commit;
mod compare;
pub(crate) mod crate_folder;
mod drain;
mod error;
mod follow;
pub(crate) mod lifecycle;
mod revision_parts;
mod stage;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, MutexGuard, broadcast};
use tokio_util::sync::CancellationToken;

pub(crate) use self::changes::PluginAction;
pub(crate) use self::compare::RevisionComparison;
use self::drain::DrainingRevisions;
pub(crate) use self::error::RegistryError;
pub(crate) use self::follow::{BroughtIn, FollowedEntry};
use self::lifecycle::{OperatorNote, PluginRecord, RevisionRecord, RevisionState};
use self::revision_parts::PluginSlots;
pub(crate) use self::stage::{ComponentSource, StageOrder, component_path};
use crate::base::clock::epoch_seconds;
use crate::base::tasks::{Tasks, blocking};
use crate::catalogue::revision::Revision;
use crate::config::TenantShares;
use crate::contract::manifest::{Manifest, ManifestEntry, PluginLimits};
use crate::published::{Site, Snapshot};
use crate::records::plugin_life::KeptEvent;
use crate::runtime::call_places::Occupancy;
use crate::runtime::components::ComponentFolder;
use crate::runtime::engine::Runtime;
use crate::runtime::loader;
use crate::stores::Store;

/// Events that a slow listener may lag behind before it must read the history.
const EVENTS_WAITING_MAX: usize = 256;

/// The records of all plugins, held by whoever changes one.
type RecordsGuard<'r> = MutexGuard<'r, BTreeMap<String, PluginRecord>>;

/// What a registry is opened with.
pub(crate) struct RegistryParts {
    pub(crate) tasks: Tasks,
    pub(crate) runtime: Runtime,
    pub(crate) store: Arc<Store>,
    pub(crate) data: PathBuf,
    pub(crate) manifest: Manifest,
    pub(crate) manifest_path: PathBuf,
    pub(crate) instances_max: u32,
    /// What one tenant may have of each plugin.
    pub(crate) shares: TenantShares,
    /// How long the body of a request may take.
    pub(crate) body: Duration,
    pub(crate) site: Site,
    /// Serve the last revisions that are known to be good, and take nothing new from the manifest.
    pub(crate) safe_mode: bool,
}

/// All plugins of this process.
pub(crate) struct Registry {
    tasks: Tasks,
    runtime: Arc<Runtime>,
    store: Arc<Store>,
    components: ComponentFolder,
    manifest_path: PathBuf,
    instances_max: u32,
    shares: TenantShares,
    safe_mode: bool,
    manifest: ArcSwap<Manifest>,
    current: ArcSwap<Snapshot>,
    lives: AsyncMutex<BTreeMap<String, PluginRecord>>,
    /// What the revisions of each plugin share. Never held over an await.
    slots: Mutex<HashMap<String, Arc<PluginSlots>>>,
    drains: DrainingRevisions,
    /// Ends the preparing of a revision that is rejected meanwhile. Never held over an await.
    under_way: Mutex<HashMap<(String, u64), CancellationToken>>,
    events: broadcast::Sender<Arc<KeptEvent>>,
}

impl Registry {
    /// Serves what was committed before, and brings in from the manifest what was never here. A plugin that cannot be
    /// loaded is off on its own routes. The first failure is the error where nothing at all can be served.
    pub(crate) async fn open(parts: RegistryParts) -> Result<Arc<Self>, RegistryError> {
        pool(&parts.manifest, parts.instances_max)?;
        let components = ComponentFolder::open(&parts.data)
            .map_err(|error| RegistryError::load("all", error))?;
        let records: Vec<PluginRecord> = parts.store.plugins().await?;
        let lives = records
            .into_iter()
            .map(|life| (life.plugin().to_owned(), life))
            .collect();
        let registry = Arc::new(Self {
            tasks: parts.tasks,
            runtime: Arc::new(parts.runtime),
            store: parts.store,
            components,
            manifest_path: parts.manifest_path,
            instances_max: parts.instances_max,
            shares: parts.shares,
            safe_mode: parts.safe_mode,
            manifest: ArcSwap::from_pointee(parts.manifest),
            current: ArcSwap::from_pointee(Snapshot::new(Vec::new(), &parts.site)?),
            lives: AsyncMutex::new(lives),
            slots: Mutex::default(),
            drains: DrainingRevisions::new(parts.body),
            under_way: Mutex::default(),
            events: broadcast::channel(EVENTS_WAITING_MAX).0,
        });
        registry.restore_revisions().await?;
        if !registry.safe_mode {
            registry.bring_in().await?;
            // Last, so that compiled code is used which came here before its record did.
            registry.tidy(&registry.lives.lock().await).await;
        }
        registry.tasks.spawn(Arc::clone(&registry).keep_compiled());
        Ok(registry)
    }

    /// Compiles what is kept for a rollback and has no code of this engine, as after an upgrade of the host: a rollback must
    /// not wait for a compiler.
    async fn keep_compiled(self: Arc<Self>) {
        let kept: Vec<(String, u64, String)> = {
            let lives = self.lives.lock().await;
            let ready =
                |record: &&RevisionRecord| record.state.is_ready() || record.state.is_candidate();
            let of = |life: &PluginRecord| {
                let plugin = life.plugin();
                let named = |record: &RevisionRecord| {
                    (plugin.to_owned(), record.number, record.digest.clone())
                };
                let ready = life.revisions().iter().filter(ready);
                ready.map(named).collect::<Vec<_>>()
            };
            lives.values().flat_map(of).collect()
        };
        for (plugin, revision, digest) in kept {
            if let Err(error) = loader::compile(&self.runtime, &self.components, &digest).await {
                tracing::warn!(plugin, revision, %error, "a kept revision cannot be compiled");
            }
        }
    }

    /// What is served now. A call keeps what it took.
    pub(crate) fn current(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// The manifest as it was last read.
    pub(crate) fn manifest(&self) -> Arc<Manifest> {
        self.manifest.load_full()
    }

    pub(crate) fn manifest_path(&self) -> &Path {
        &self.manifest_path
    }

    pub(crate) fn is_in_safe_mode(&self) -> bool {
        self.safe_mode
    }

    /// The record of a plugin of the manifest; `None` for one that nothing was ever staged for.
    pub(crate) async fn life(&self, plugin: &str) -> Result<Option<PluginRecord>, RegistryError> {
        self.entry(plugin)?;
        Ok(self.lives.lock().await.get(plugin).cloned())
    }

    /// Revisions that were replaced and whose last calls still run.
    pub(crate) fn draining(&self) -> Vec<Arc<Revision>> {
        self.drains.all()
    }

    /// Hears of every event from now on.
    pub(crate) fn listen(&self) -> broadcast::Receiver<Arc<KeptEvent>> {
        self.events.subscribe()
    }

    /// Drops idle instances that have grown old, and notes which revisions have answered a call well.
    pub(crate) async fn sweep(&self, now: Instant) {
        let current = self.current();
        for revision in current.catalogue.revisions().iter().chain(&self.draining()) {
            revision.sweep(now);
        }
        let proven: Vec<&Arc<Revision>> = current
            .catalogue
            .revisions()
            .iter()
            .filter(|revision| revision.has_answered())
            .collect();
        if proven.is_empty() {
            return;
        }
        let mut turn = self.lives.lock().await;
        for revision in proven {
            let Some(life) = turn.get(&*revision.plugin) else {
                continue;
            };
            let mut next = life.clone();
            if next.prove(revision.number)
                && let Err(error) = self.commit(&mut turn, next).await
            {
                tracing::error!(plugin = &*revision.plugin, %error, "cannot note that a revision is good");
            }
        }
    }

    /// Serves the committed revisions of the manifest's plugins.
    async fn restore_revisions(self: &Arc<Self>) -> Result<(), RegistryError> {
        let mut turn = self.lives.lock().await;
        let mark = mark("host", "the process started");
        for entry in &self.manifest().entries {
            let Some(life) = turn.get(&entry.name) else {
                continue;
            };
            let mut next = life.clone();
            next.recover(&mark);
            let changed = manifest_mark("the grants in the manifest changed");
            next.edit(&entry.grants, changed);
            let served = if self.safe_mode {
                next.last_known_good()
            } else {
                next.active()
            };
            if let Some(record) = served {
                let put = async {
                    let revision = self.build_or_off(&next, record).await?;
                    self.put(&next, record, revision).await
                };
                if let Err(error) = put.await {
                    tracing::error!(plugin = entry.name, %error, "a plugin cannot be served");
                }
            }
            self.commit(&mut turn, next).await?;
        }
        Ok(())
    }

    fn entry(&self, plugin: &str) -> Result<ManifestEntry, RegistryError> {
        let manifest = self.manifest();
        let found = manifest.entries.iter().find(|entry| entry.name == plugin);
        found.cloned().ok_or_else(|| RegistryError::NoPlugin {
            name: plugin.to_owned(),
        })
    }

    fn slots(&self, plugin: &str, limits: &PluginLimits) -> Arc<PluginSlots> {
        let mut slots = self.slots.lock();
        let known = slots.entry(plugin.to_owned());
        Arc::clone(known.or_insert_with(|| Arc::new(PluginSlots::new(plugin, self.shares, limits))))
    }

    /// How the places of each plugin stand.
    pub(crate) fn occupancies(&self, now: Instant) -> BTreeMap<String, Occupancy> {
        let slots = self.slots.lock();
        slots
            .iter()
            .map(|(plugin, slots)| (plugin.clone(), slots.places.occupancy(now)))
            .collect()
    }

    /// Removes files and descriptions that no record names.
    async fn tidy(&self, turn: &RecordsGuard<'_>) {
        let digests: HashSet<String> = turn
            .values()
            .flat_map(|life| life.revisions())
            .filter(|record| record.state != RevisionState::Rejected)
            .map(|record| record.digest.clone())
            .collect();
        let (components, runtime) = (self.components.clone(), Arc::clone(&self.runtime));
        let named = digests.clone();
        let removed = blocking(move || {
            components.keep_only(&named)?;
            runtime.keep_only(&named)
        });
        let tidied = async {
            removed.await.map_err(|error| error.to_string())?;
            let kept = self.store.keep_components(digests).await;
            kept.map_err(|error| error.to_string())
        };
        if let Err(error) = tidied.await {
            tracing::warn!(error, "unused components could not be removed");
        }
    }
}

fn pool(manifest: &Manifest, instances_max: u32) -> Result<(), RegistryError> {
    let wanted: usize = manifest
        .entries
        .iter()
        .map(|entry| entry.settings.limits.concurrency)
        .sum();
    if wanted > usize::try_from(instances_max / 2).unwrap_or(usize::MAX) {
        return Err(RegistryError::Pool {
            wanted,
            room: instances_max,
        });
    }
    Ok(())
}

/// A mark of this moment.
pub(crate) fn mark(by: &str, why: &str) -> OperatorNote {
    OperatorNote {
        at: epoch_seconds(SystemTime::now()),
        by: by.to_owned(),
        why: why.to_owned(),
    }
}

fn manifest_mark(why: &str) -> OperatorNote {
    mark("manifest", why)
}
