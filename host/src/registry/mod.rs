//! The plugins: what the operator wants, what became of it, and the one snapshot that calls are served from.
//!
//! Writers take turns; readers never wait: they take the current [`Catalogue`] and keep it. Every change is written to the
//! store before it is served, so that a process which is killed at any moment comes back with the last one that was
//! written. Must not know what a transport is.

pub(crate) mod background;
pub(crate) mod build;
pub(crate) mod call_places;
mod changes;
mod compare;
pub(crate) mod compiler;
pub(crate) mod components;
pub(crate) mod description;
mod drain;
pub(crate) mod engine;
pub(crate) mod faces;
mod follow;
pub(crate) mod grants;
mod guest_store;
pub(crate) mod instance;
pub(crate) mod lifecycle;
pub(crate) mod loader;
pub(crate) mod manifest;
pub(crate) mod pattern;
pub(crate) mod processor;
pub(crate) mod profile;
pub(crate) mod revision;
pub(crate) mod run_queue;
pub(crate) mod schema;
mod shares;
mod stage;
mod standings;
mod terms;
pub(crate) mod watcher;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwap;
use tokio::sync::{Mutex as AsyncMutex, MutexGuard, broadcast};
use tokio_util::sync::CancellationToken;

use self::call_places::Occupancy;
pub(crate) use self::changes::PluginAction;
use self::components::Components;
use self::drain::Drains;
use self::engine::Runtime;
pub(crate) use self::follow::{BroughtIn, Followed};
use self::lifecycle::{LifeError, OperatorNote, PluginRecord, RevisionRecord, RevisionState};
use self::loader::{LoadError, Slots, Whole};
use self::manifest::{Manifest, ManifestError};
use self::revision::{Off, Revision};
pub(crate) use self::stage::{ComponentSource, Order, component_path};
use crate::auth::api_key::epoch_seconds;
use crate::catalogue::{Catalogue, CollisionError};
use crate::config::Shares;
use crate::published::Site;
use crate::stores::{KeptEvent, Store, StoreError};

/// Events that a slow listener may lag behind before it must read the history.
const EVENTS_WAITING_MAX: usize = 256;

/// A change that was not made. What runs serves on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RegistryError {
    #[error("there is no plugin `{name}` in plugin-manifest.toml")]
    NoPlugin { name: String },
    #[error("plugin `{plugin}`: {source}")]
    Load { plugin: String, source: Box<LoadError> },
    #[error(transparent)]
    Collision(#[from] CollisionError),
    #[error(transparent)]
    Life(#[from] LifeError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error("plugin `{plugin}`: revision {number} was rejected while it was prepared")]
    Rejected { plugin: String, number: u64 },
    #[error("plugin `{plugin}`: what the component {digest} says of itself is not in the store")]
    NoDescription { plugin: String, digest: String },
    #[error(
        "the plugins may run {wanted} calls at once by their manifest entries; the instance pool has {room}, half of \
             which is kept for revisions that are draining: raise `limits.instances` or lower `limits.concurrency`"
    )]
    Pool { wanted: usize, room: u32 },
}

impl RegistryError {
    /// What keeps a component of the plugin's from becoming a revision.
    fn load(plugin: &str, source: impl Into<LoadError>) -> Self {
        Self::Load { plugin: plugin.to_owned(), source: Box::new(source.into()) }
    }
}

/// Runs work that blocks on a thread that may.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Does something to its end, even where nobody waits for it any more: a change that was written must be served.
pub(crate) async fn spawn_uncancellable<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// The records of all plugins, held by whoever changes one.
type RecordsGuard<'r> = MutexGuard<'r, BTreeMap<String, PluginRecord>>;

/// What a registry is opened with.
pub(crate) struct RegistryParts {
    pub(crate) runtime: Runtime,
    pub(crate) store: Arc<Store>,
    pub(crate) data: PathBuf,
    pub(crate) manifest: Manifest,
    pub(crate) manifest_path: PathBuf,
    pub(crate) instances_max: u32,
    /// What one tenant may have of each plugin.
    pub(crate) shares: Shares,
    /// How long the body of a request may take.
    pub(crate) body: Duration,
    pub(crate) site: Site,
    /// Serve the last revisions that are known to be good, and take nothing new from the manifest.
    pub(crate) safe_mode: bool,
}

/// All plugins of this process.
pub(crate) struct Registry {
    runtime: Arc<Runtime>,
    store: Arc<Store>,
    components: Components,
    manifest_path: PathBuf,
    instances_max: u32,
    shares: Shares,
    safe_mode: bool,
    manifest: ArcSwap<Manifest>,
    current: ArcSwap<Catalogue>,
    lives: AsyncMutex<BTreeMap<String, PluginRecord>>,
    /// What the revisions of each plugin share. Never held over an await.
    slots: Mutex<HashMap<String, Arc<Slots>>>,
    drains: Drains,
    /// Ends the preparing of a revision that is rejected meanwhile. Never held over an await.
    under_way: Mutex<HashMap<(String, u64), CancellationToken>>,
    events: broadcast::Sender<Arc<KeptEvent>>,
}

impl Registry {
    /// Serves what was committed before, and brings in from the manifest what was never here. A plugin that cannot be
    /// loaded is off on its own routes. The first failure is the error where nothing at all can be served.
    pub(crate) async fn open(parts: RegistryParts) -> Result<Arc<Self>, RegistryError> {
        let RegistryParts {
            runtime,
            store,
            data,
            manifest,
            manifest_path,
            instances_max,
            shares,
            body,
            site,
            safe_mode,
        } = parts;
        pool(&manifest, instances_max)?;
        let components = Components::open(&data).map_err(|error| RegistryError::load("all", error))?;
        let records: Vec<PluginRecord> = store.plugins()?;
        let lives = records.into_iter().map(|life| (life.plugin().to_owned(), life)).collect();
        let registry = Arc::new(Self {
            runtime: Arc::new(runtime),
            store,
            components,
            manifest_path,
            instances_max,
            shares,
            safe_mode,
            manifest: ArcSwap::from_pointee(manifest),
            current: ArcSwap::from_pointee(Catalogue::empty(&site)),
            lives: AsyncMutex::new(lives),
            slots: Mutex::default(),
            drains: Drains::new(body),
            under_way: Mutex::default(),
            events: broadcast::channel(EVENTS_WAITING_MAX).0,
        });
        registry.restore_revisions().await?;
        if !safe_mode {
            registry.bring_in().await?;
            // Last, so that compiled code is used which came here before its record did.
            registry.tidy(&registry.lives.lock().await).await;
        }
        tokio::spawn(Arc::clone(&registry).keep_compiled());
        Ok(registry)
    }

    /// Compiles what is kept for a rollback and has no code of this engine, as after an upgrade of the host: a rollback must
    /// not wait for a compiler.
    async fn keep_compiled(self: Arc<Self>) {
        let kept: Vec<(String, u64, String)> = {
            let lives = self.lives.lock().await;
            let ready = |record: &&RevisionRecord| record.state.is_ready() || record.state.is_candidate();
            let of = |life: &PluginRecord| {
                let named = |record: &RevisionRecord| (life.plugin().to_owned(), record.number, record.digest.clone());
                life.revisions().iter().filter(ready).map(named).collect::<Vec<_>>()
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
    pub(crate) fn current(&self) -> Arc<Catalogue> {
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
        for revision in current.revisions().iter().chain(&self.draining()) {
            revision.sweep(now);
        }
        let proven: Vec<&Arc<Revision>> =
            current.revisions().iter().filter(|revision| revision.has_answered()).collect();
        if proven.is_empty() {
            return;
        }
        let mut turn = self.lives.lock().await;
        for revision in proven {
            let Some(life) = turn.get(&*revision.plugin) else { continue };
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
            let Some(life) = turn.get(&entry.name) else { continue };
            let mut next = life.clone();
            next.recover(&mark);
            next.edit(&entry.grants, manifest_mark("the manifest grants something else"));
            let served = if self.safe_mode { next.last_known_good() } else { next.active() };
            if let Some(record) = served {
                match self.build_or_off(&next, record).await {
                    Ok(revision) => self.put(revision).await,
                    Err(error) => tracing::error!(plugin = entry.name, %error, "a plugin cannot be served"),
                }
            }
            self.commit(&mut turn, next).await?;
        }
        Ok(())
    }

    /// Adds a revision to what is served, or leaves it out where it collides with what is there already.
    async fn put(&self, revision: Revision) {
        let plugin = Arc::clone(&revision.plugin);
        match self.with(Arc::new(revision)).await {
            Ok(catalogue) => self.current.store(Arc::new(catalogue)),
            Err(error) => tracing::error!(plugin = &*plugin, %error, "a plugin cannot be served"),
        }
    }

    /// What would be served with this revision in the place of its plugin's other one. Printing the documents takes a while,
    /// so it is done on a thread that may.
    async fn with(&self, revision: Arc<Revision>) -> Result<Catalogue, CollisionError> {
        let current = self.current();
        blocking(move || {
            let mut revisions = current.revisions().to_vec();
            match revisions.iter_mut().find(|r| r.plugin == revision.plugin) {
                Some(place) => *place = revision,
                None => revisions.push(revision),
            }
            Catalogue::new(revisions, current.site())
        })
        .await
    }

    /// Serves a revision that no store knows.
    pub(crate) async fn insert(&self, revision: Revision) -> Result<(), RegistryError> {
        self.current.store(Arc::new(self.with(Arc::new(revision)).await?));
        Ok(())
    }

    /// Puts a recorded revision together as its plugin stands: with its rights, or off where the operator says so.
    async fn build(&self, life: &PluginRecord, record: &RevisionRecord) -> Result<Revision, RegistryError> {
        self.put_together(life, self.whole(life, record).await?).await
    }

    /// The same of what was read already.
    async fn put_together(&self, life: &PluginRecord, whole: Whole) -> Result<Revision, RegistryError> {
        let plugin = life.plugin();
        if life.disabled().is_some() {
            return Ok(loader::off(whole, Off::Disabled));
        }
        let slots = self.slots(plugin, &whole.record.settings.limits);
        let loaded = loader::load(&self.runtime, &self.components, whole, slots, &self.store).await;
        loaded.map_err(|error| RegistryError::load(plugin, error))
    }

    /// As [`Registry::build`]; what cannot be loaded is off, with the reason.
    async fn build_or_off(&self, life: &PluginRecord, record: &RevisionRecord) -> Result<Revision, RegistryError> {
        let error = match self.build(life, record).await {
            Ok(revision) => return Ok(revision),
            Err(error) => error,
        };
        let (plugin, revision) = (life.plugin(), record.number);
        tracing::error!(plugin, revision, %error, "a revision cannot be loaded; its routes answer that it is off");
        Ok(loader::off(self.whole(life, record).await?, Off::Unloadable(error.to_string())))
    }

    async fn whole(&self, life: &PluginRecord, record: &RevisionRecord) -> Result<Whole, RegistryError> {
        let plugin = life.plugin().to_owned();
        let text = self.description(&plugin, &record.digest).await?;
        let description = loader::read(text, &plugin).await.map_err(|error| RegistryError::load(&plugin, error))?;
        Ok(Whole { plugin, record: record.clone(), description, rights: life.rights(record) })
    }

    /// What a component said of itself when it was staged.
    async fn description(&self, plugin: &str, digest: &str) -> Result<String, RegistryError> {
        let (store, named) = (Arc::clone(&self.store), digest.to_owned());
        let found = blocking(move || store.description(&named)).await?;
        found.ok_or_else(|| RegistryError::NoDescription { plugin: plugin.to_owned(), digest: digest.to_owned() })
    }

    /// Writes a changed record with what happened to it, and tells whoever listens.
    async fn commit(&self, turn: &mut RecordsGuard<'_>, next: PluginRecord) -> Result<(), RegistryError> {
        let events = self.write(turn, next).await?;
        self.tell(events);
        Ok(())
    }

    async fn write(
        &self,
        turn: &mut RecordsGuard<'_>,
        mut next: PluginRecord,
    ) -> Result<Vec<KeptEvent>, RegistryError> {
        let events = next.take_events();
        let kept = self.store.put_plugin(next.plugin(), &next, &events).await?;
        turn.insert(next.plugin().to_owned(), next);
        Ok(kept)
    }

    /// Tells of what is so by now.
    fn tell(&self, events: Vec<KeptEvent>) {
        for event in events {
            let told = |name: &str| event.event[name].as_str().unwrap_or_default().to_owned();
            let (plugin, happened, by, why) = (told("plugin"), told("event"), told("by"), told("why"));
            let revision = event.event["revision"].as_u64();
            match RevisionState::STEPS.iter().any(|step| step.name() == happened) {
                true => tracing::debug!(plugin, revision, event = happened, "a revision is being prepared"),
                false => tracing::info!(plugin, revision, event = happened, by, why, "a plugin changed"),
            }
            // Nobody may be listening.
            self.events.send(Arc::new(event)).ok();
        }
    }

    /// Writes a changed record and serves its revision. The one that it replaces drains.
    async fn flip(
        self: &Arc<Self>,
        turn: &mut RecordsGuard<'_>,
        mut next: PluginRecord,
        revision: Revision,
    ) -> Result<(), RegistryError> {
        let plugin = Arc::clone(&revision.plugin);
        let catalogue = self.with(Arc::new(revision)).await?;
        let current = self.current();
        let replaced = current.revisions().iter().find(|revision| revision.plugin == plugin).cloned();
        if let Some(replaced) = replaced.as_ref().filter(|replaced| replaced.has_answered()) {
            next.prove(replaced.number);
        }
        let events = self.write(turn, next).await?;
        self.current.store(Arc::new(catalogue));
        self.tell(events);
        // The copy that was looked at would keep the replaced revision alive.
        drop(current);
        if let Some(replaced) = replaced {
            self.drain(replaced);
        }
        Ok(())
    }

    fn entry(&self, plugin: &str) -> Result<manifest::ManifestEntry, RegistryError> {
        let manifest = self.manifest();
        let found = manifest.entries.iter().find(|entry| entry.name == plugin);
        found.cloned().ok_or_else(|| RegistryError::NoPlugin { name: plugin.to_owned() })
    }

    fn slots(&self, plugin: &str, limits: &manifest::PluginLimits) -> Arc<Slots> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let known = slots.entry(plugin.to_owned());
        Arc::clone(known.or_insert_with(|| Arc::new(Slots::new(plugin, self.shares, limits))))
    }

    /// How the places of each plugin stand.
    pub(crate) fn occupancies(&self, now: Instant) -> BTreeMap<String, Occupancy> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.iter().map(|(plugin, slots)| (plugin.clone(), slots.places.occupancy(now))).collect()
    }

    /// Removes files and descriptions that no record names.
    async fn tidy(&self, turn: &RecordsGuard<'_>) {
        let digests: HashSet<String> = turn
            .values()
            .flat_map(|life| life.revisions())
            .filter(|record| record.state != RevisionState::Rejected)
            .map(|record| record.digest.clone())
            .collect();
        let (components, runtime, named) = (self.components.clone(), Arc::clone(&self.runtime), digests.clone());
        let removed = blocking(move || components.keep_only(&named).and_then(|()| runtime.keep_only(&named))).await;
        let tidied = match removed {
            Ok(()) => self.store.keep_components(digests).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = tidied {
            tracing::warn!(error, "components that nobody needs are left");
        }
    }
}

fn pool(manifest: &Manifest, instances_max: u32) -> Result<(), RegistryError> {
    let wanted: usize = manifest.entries.iter().map(|entry| entry.settings.limits.concurrency).sum();
    match wanted > usize::try_from(instances_max / 2).unwrap_or(usize::MAX) {
        true => Err(RegistryError::Pool { wanted, room: instances_max }),
        false => Ok(()),
    }
}

/// A mark of this moment.
pub(crate) fn mark(by: &str, why: &str) -> OperatorNote {
    OperatorNote { at: epoch_seconds(SystemTime::now()), by: by.to_owned(), why: why.to_owned() }
}

fn manifest_mark(why: &str) -> OperatorNote {
    mark("manifest", why)
}
