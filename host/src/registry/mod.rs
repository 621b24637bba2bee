//! The plugins: what the operator wants, what is loaded, and the one snapshot of it that calls are served from.
//!
//! Writers (a start, a reload) take turns; readers never wait: they take the current [`Catalogue`] and keep it. Must not
//! know what a transport is.

pub(crate) mod breaker;
pub(crate) mod build;
pub(crate) mod compiler;
pub(crate) mod description;
pub(crate) mod engine;
pub(crate) mod instance;
pub(crate) mod loader;
pub(crate) mod manifest;
pub(crate) mod profile;
pub(crate) mod revision;
pub(crate) mod schema;
mod terms;
pub(crate) mod watcher;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use arc_swap::ArcSwap;
use tokio::sync::{Mutex, Semaphore};

use self::engine::Runtime;
use self::loader::{LoadError, Slots};
use self::manifest::{Entry, Manifest};
use self::revision::Revision;
use crate::catalogue::{Catalogue, CollisionError};

/// A set of plugins that cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RegistryError {
    #[error("plugin `{plugin}`: {source}")]
    Load { plugin: String, source: Box<LoadError> },
    #[error(transparent)]
    Collision(#[from] CollisionError),
    #[error(
        "the plugins may run {wanted} calls at once by their manifest entries; the instance pool has {room}, half of \
             which is kept for revisions that are draining: raise `limits.instances` or lower `limits.concurrency`"
    )]
    Pool { wanted: usize, room: u32 },
}

/// All plugins of this process.
pub(crate) struct Registry {
    runtime: Arc<Runtime>,
    current: ArcSwap<Catalogue>,
    /// Held while revisions change, so that two changes cannot lose one another.
    writer: Mutex<()>,
    /// What the revisions of each plugin share. Never held over an await.
    slots: RwLock<HashMap<String, Arc<Slots>>>,
}

impl Registry {
    /// Loads every entry; the first that fails is the error.
    pub(crate) async fn load(
        runtime: Arc<Runtime>,
        manifest: &Manifest,
        instances_max: u32,
        base_url: &str,
    ) -> Result<Self, RegistryError> {
        let wanted: usize = manifest.entries.iter().map(|entry| entry.limits.concurrency).sum();
        if wanted > usize::try_from(instances_max / 2).unwrap_or(usize::MAX) {
            return Err(RegistryError::Pool { wanted, room: instances_max });
        }
        let registry = Self {
            runtime,
            current: ArcSwap::from_pointee(Catalogue::empty(base_url)),
            writer: Mutex::new(()),
            slots: RwLock::default(),
        };
        let mut revisions = Vec::with_capacity(manifest.entries.len());
        for entry in &manifest.entries {
            revisions.push(Arc::new(registry.load_one(entry).await?));
        }
        registry.current.store(Arc::new(Catalogue::new(revisions, base_url)?));
        Ok(registry)
    }

    /// What is served now. A call keeps what it took.
    pub(crate) fn current(&self) -> Arc<Catalogue> {
        self.current.load_full()
    }

    /// Loads the entry's component anew and swaps it in. Gives back whether it was another one. On any error the running
    /// revision serves on.
    pub(crate) async fn reload(&self, entry: &Entry) -> Result<bool, RegistryError> {
        let _turn = self.writer.lock().await;
        let revision = self.load_one(entry).await?;
        self.swap(revision)
    }

    /// Adds a revision that is not from a manifest, or swaps it in.
    pub(crate) async fn insert(&self, revision: Revision) -> Result<bool, RegistryError> {
        let _turn = self.writer.lock().await;
        self.swap(revision)
    }

    /// Drops idle instances that have grown old.
    pub(crate) fn sweep(&self, now: Instant) {
        for revision in self.current().revisions() {
            revision.sweep(now);
        }
    }

    fn swap(&self, revision: Revision) -> Result<bool, RegistryError> {
        let current = self.current();
        if current.revisions().iter().any(|r| r.plugin == revision.plugin && r.digest == revision.digest) {
            return Ok(false);
        }
        let mut revisions = current.revisions().to_vec();
        let revision = Arc::new(revision);
        match revisions.iter_mut().find(|r| r.plugin == revision.plugin) {
            Some(place) => *place = revision,
            None => revisions.push(revision),
        }
        self.current.store(Arc::new(Catalogue::new(revisions, current.base_url())?));
        Ok(true)
    }

    async fn load_one(&self, entry: &Entry) -> Result<Revision, RegistryError> {
        let slots = self.slots(entry);
        loader::load(&self.runtime, entry, &slots)
            .await
            .map_err(|source| RegistryError::Load { plugin: entry.name.clone(), source: Box::new(source) })
    }

    fn slots(&self, entry: &Entry) -> Arc<Slots> {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let made = || Slots {
            permits: Arc::new(Semaphore::new(entry.limits.concurrency)),
            breaker: Arc::default(),
            line_rate: Arc::default(),
        };
        Arc::clone(slots.entry(entry.name.clone()).or_insert_with(|| Arc::new(made())))
    }
}
