//! Following the manifest: what it says is a stage by the actor `manifest` (`dev` while a person edits), like any other.
//!
//! What was brought in once is not brought in again, so that a rollback outlives a restart; an entry that names another
//! component or other settings is. Grants that an entry adds or takes away count at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::lifecycle::{LifeError, RevisionState, SeenEntry};
use super::stage::component_path;
use super::{ComponentSource, Registry, RegistryError, StageOrder, manifest_mark, mark, pool};
use crate::base::tasks::blocking;
use crate::contract::manifest::{Manifest, ManifestEntry};
use crate::published::Snapshot;
use crate::runtime::components::{digest_of, fetch};

/// What became of one entry.
pub(crate) struct FollowedEntry {
    pub(crate) plugin: String,
    pub(crate) outcome: Result<BroughtIn, RegistryError>,
    pub(crate) took: Duration,
}

/// What an entry brought in.
pub(crate) enum BroughtIn {
    /// Nothing that was not there.
    Nothing,
    /// A revision that serves.
    Live,
    /// A revision that waits, for this reason.
    Waits(LifeError),
}

impl Registry {
    /// [`Registry::follow`], to its end also where nobody waits for it any more: what it stages must be prepared.
    pub(crate) async fn follow_to_end(
        self: &Arc<Self>,
        by: &'static str,
    ) -> Result<Vec<FollowedEntry>, RegistryError> {
        let registry = Arc::clone(self);
        let following = async move { registry.follow(by).await };
        self.tasks.spawn_uncancellable(following).await
    }

    /// Reads the manifest again and brings in what it says anew.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        by: &str,
    ) -> Result<Vec<FollowedEntry>, RegistryError> {
        let path = self.manifest_path.clone();
        let manifest = blocking(move || Manifest::read(&path)).await?;
        pool(&manifest, self.instances_max)?;
        {
            let _turn = self.lives.lock().await;
            self.manifest.store(Arc::new(manifest));
            self.drop_unnamed()?;
        }
        Ok(self.bring_in_all(by).await)
    }

    /// At a start: what is already served is left to [`Registry::follow`], the rest is brought in now. The first failure is
    /// the error where nothing can be served and nothing waits for an operator.
    pub(super) async fn bring_in(self: &Arc<Self>) -> Result<(), RegistryError> {
        let mut failures = Vec::new();
        let manifest = self.manifest();
        for entry in &manifest.entries {
            let known = self
                .lives
                .lock()
                .await
                .get(&entry.name)
                .is_some_and(|life| life.active().is_some());
            if known {
                continue;
            }
            if let Err(error) = self.bring_in_one(entry, "manifest").await {
                failures.push((entry.name.as_str(), error));
            }
        }
        let waits = self
            .lives
            .lock()
            .await
            .values()
            .any(|life| life.candidate().is_some());
        if self.current().catalogue.revisions().is_empty() && !waits && !failures.is_empty() {
            return Err(failures.swap_remove(0).1);
        }
        for (plugin, error) in failures {
            tracing::error!(plugin, %error, "a plugin cannot be served");
        }
        Ok(())
    }

    async fn bring_in_all(self: &Arc<Self>, by: &str) -> Vec<FollowedEntry> {
        let mut all = Vec::new();
        for entry in &self.manifest().entries {
            let started = Instant::now();
            let outcome = self.bring_in_one(entry, by).await;
            all.push(FollowedEntry {
                plugin: entry.name.clone(),
                outcome,
                took: started.elapsed(),
            });
        }
        all
    }

    async fn bring_in_one(
        self: &Arc<Self>,
        entry: &ManifestEntry,
        by: &str,
    ) -> Result<BroughtIn, RegistryError> {
        let plugin = entry.name.as_str();
        if self.grants_changed(entry).await? {
            return Ok(BroughtIn::Live);
        }
        if !self.is_new(entry).await? {
            return Ok(if self.comes_back(plugin).await? {
                BroughtIn::Live
            } else {
                BroughtIn::Nothing
            });
        }
        let why = if by == "manifest" {
            "the manifest names it"
        } else {
            "its source changed"
        };
        let order = StageOrder {
            from: ComponentSource::Manifest,
            digest: None,
            goes_live: true,
            mark: mark(by, why),
        };
        let number = self.stage(plugin, order).await?;
        let state = self.prepare(plugin, number).await?;
        if state != RevisionState::AwaitingApproval {
            return Ok(BroughtIn::Live);
        }
        let life = self.life_of(plugin).await?;
        let missing = life.lacking(life.revision(number)?);
        let why = LifeError::NotGranted {
            plugin: plugin.to_owned(),
            number,
            missing,
        };
        tracing::warn!(plugin, revision = number, %why, "a revision is waiting for approval");
        Ok(BroughtIn::Waits(why))
    }

    /// Serves what is active of a plugin that the manifest names again. Gives back whether it was not served.
    async fn comes_back(self: &Arc<Self>, plugin: &str) -> Result<bool, RegistryError> {
        let mut turn = self.lives.lock().await;
        let next = self.life_in(&turn, plugin)?;
        if self.serving(plugin).is_some() || next.active().is_none() {
            return Ok(false);
        }
        self.rebuild(&mut turn, next).await?;
        Ok(true)
    }

    /// Takes over what the entry grants. Gives back whether a waiting revision went live by it.
    async fn grants_changed(
        self: &Arc<Self>,
        entry: &ManifestEntry,
    ) -> Result<bool, RegistryError> {
        let mut turn = self.lives.lock().await;
        let mut next = self.life_in(&turn, &entry.name)?;
        let mark = manifest_mark("the grants in the manifest changed");
        if !next.edit(&entry.grants, mark.clone()) {
            return Ok(false);
        }
        let candidate = next
            .candidate()
            .filter(|candidate| candidate.state == RevisionState::Staged && candidate.goes_live);
        match candidate.map(|candidate| candidate.number) {
            Some(number) => {
                self.go_live(&mut turn, next, number, mark).await?;
                Ok(true)
            }
            None => {
                self.refresh(&mut turn, next).await?;
                Ok(false)
            }
        }
    }

    /// Whether the entry's component or settings are not what it last brought in.
    async fn is_new(&self, entry: &ManifestEntry) -> Result<bool, RegistryError> {
        let failed = |error| RegistryError::load(&entry.name, error);
        let path = component_path(&entry.source).map_err(failed)?;
        let digest = blocking(move || fetch(&path).map(|bytes| digest_of(&bytes)))
            .await
            .map_err(failed)?;
        let now = SeenEntry {
            digest,
            settings: entry.settings.clone(),
        };
        let turn = self.lives.lock().await;
        let Some(life) = turn.get(&entry.name) else {
            return Ok(true);
        };
        let stands = life.active().is_some() || life.candidate().is_some();
        Ok(!stands || life.seen() != Some(&now))
    }

    /// Serves no plugin that the manifest no longer names. Its record stays, in case it is named again.
    fn drop_unnamed(self: &Arc<Self>) -> Result<(), RegistryError> {
        let (manifest, current) = (self.manifest(), self.current());
        let (kept, gone): (Vec<_>, Vec<_>) = current
            .catalogue
            .revisions()
            .iter()
            .cloned()
            .partition(|revision| {
                manifest
                    .entries
                    .iter()
                    .any(|entry| entry.name == *revision.plugin)
            });
        if gone.is_empty() {
            return Ok(());
        }
        self.current
            .store(Arc::new(Snapshot::new(kept, current.site())?));
        drop(current);
        for revision in gone {
            tracing::info!(
                plugin = &*revision.plugin,
                revision = revision.number,
                "the manifest no longer names a plugin"
            );
            self.drain(revision);
        }
        Ok(())
    }
}
