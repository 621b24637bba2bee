//! A revision's way in: fetched, verified, compiled, linked, described, compared, and then staged or waiting for approval.
//!
//! Each step is written before the next begins, so that an operator sees where a long one stands. Whatever fails rejects the
//! revision with its reason and touches nothing that runs.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::crate_folder::artifact;
use super::lifecycle::{
    Described, Fetched, LifeError, OperatorNote, PluginRecord, RevisionState, SeenEntry,
};
use super::revision_parts::Whole;
use super::{Registry, RegistryError, mark};
use crate::base::tasks::blocking;
use crate::catalogue::revision::{CallRunner, Revision};
use crate::contract::manifest::ManifestSource;
use crate::runtime::components::{ComponentError, digest_of, fetch};
use crate::runtime::instance::Off;
use crate::runtime::loader;
use crate::runtime::loader::LoadError;

/// Where a component is fetched from.
pub(crate) enum ComponentSource {
    /// The source of the plugin's manifest entry.
    Manifest,
    /// A file that this host can read.
    File(PathBuf),
    Upload(Bytes),
}

/// What is to be staged, and what then.
pub(crate) struct StageOrder {
    pub(crate) from: ComponentSource,
    /// The digest that the component must have, in hexadecimal.
    pub(crate) digest: Option<String>,
    /// Go live as soon as everything that it wants is granted.
    pub(crate) goes_live: bool,
    pub(crate) mark: OperatorNote,
}

impl Registry {
    /// Fetches a component and makes it a revision, with the settings of its plugin's manifest entry. Gives back its number;
    /// [`Registry::prepare`] takes it further.
    pub(crate) async fn stage(
        self: &Arc<Self>,
        plugin: &str,
        order: StageOrder,
    ) -> Result<u64, RegistryError> {
        let (registry, plugin) = (Arc::clone(self), plugin.to_owned());
        self.tasks
            .spawn_uncancellable(async move { registry.fetch(&plugin, order).await })
            .await
    }

    async fn fetch(&self, plugin: &str, order: StageOrder) -> Result<u64, RegistryError> {
        let entry = self.entry(plugin)?;
        let StageOrder {
            from,
            digest: expected,
            goes_live,
            mark,
        } = order;
        let failed = |error: ComponentError| RegistryError::load(plugin, error);
        let (path, source) = match &from {
            ComponentSource::Manifest => {
                let path = component_path(&entry.source).map_err(failed)?;
                let told = path.display().to_string();
                (Some(path), told)
            }
            ComponentSource::File(path) => (Some(path.clone()), path.display().to_string()),
            ComponentSource::Upload(_) => (None, "upload".to_owned()),
        };
        let is_manifest = matches!(from, ComponentSource::Manifest);
        let bytes = match (from, path) {
            (ComponentSource::Upload(bytes), _) => bytes,
            (_, path) => {
                let path = path.unwrap_or_default();
                Bytes::from(blocking(move || fetch(&path)).await.map_err(failed)?)
            }
        };
        let digested = bytes.clone();
        let digest = blocking(move || digest_of(&digested)).await;
        if let Some(expected) = expected.filter(|expected| *expected != digest) {
            let found = digest;
            return Err(failed(ComponentError::OtherDigest { expected, found }));
        }

        let mut turn = self.lives.lock().await;
        let mut next = self.life_in(&turn, plugin)?;
        let changed = super::manifest_mark("the grants in the manifest changed");
        next.edit(&entry.grants, changed);
        let settings = entry.settings.clone();
        if is_manifest {
            next.see(SeenEntry {
                digest: digest.clone(),
                settings: settings.clone(),
            });
        }
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let fetched = Fetched {
            digest: digest.clone(),
            bytes: size,
            source,
            settings,
            goes_live,
        };
        let number = next.begin(fetched, mark)?;
        // Kept and recorded in one turn: what no record names is removed in another.
        let components = self.components.clone();
        blocking(move || components.keep(&digest, &bytes))
            .await
            .map_err(failed)?;
        self.commit(&mut turn, next).await?;
        Ok(number)
    }

    /// Prepares a staged revision behind whoever asked for it. The revision's record tells what came of it.
    pub(crate) fn prepare_behind(self: &Arc<Self>, plugin: &str, number: u64) {
        let (registry, plugin) = (Arc::clone(self), plugin.to_owned());
        self.tasks.spawn_to_end(async move {
            if let Err(error) = registry.prepare(&plugin, number).await {
                tracing::warn!(plugin, revision = number, %error, "a staged revision was rejected");
            }
        });
    }

    /// Takes a fetched revision as far as it goes: live, staged or waiting for approval.
    pub(crate) async fn prepare(
        self: &Arc<Self>,
        plugin: &str,
        number: u64,
    ) -> Result<RevisionState, RegistryError> {
        let key = (plugin.to_owned(), number);
        let cancelled = CancellationToken::new();
        self.under_way.lock().insert(key.clone(), cancelled.clone());
        let prepared = tokio::select! {
            () = cancelled.cancelled() => Err(RegistryError::Rejected { plugin: plugin.to_owned(), number }),
            prepared = self.steps(plugin, number) => prepared,
        };
        self.under_way.lock().remove(&key);
        if let Err(error) = &prepared {
            self.refuse(plugin, number, error).await;
        }
        prepared
    }

    /// Ends the preparing of a revision that was rejected.
    pub(super) fn cancel(&self, plugin: &str, number: u64) {
        let under_way = self.under_way.lock();
        if let Some(cancelled) = under_way.get(&(plugin.to_owned(), number)) {
            cancelled.cancel();
        }
    }

    async fn steps(
        self: &Arc<Self>,
        plugin: &str,
        number: u64,
    ) -> Result<RevisionState, RegistryError> {
        let failed = |error: LoadError| RegistryError::load(plugin, error);
        let record = self.life_of(plugin).await?.revision(number)?.clone();
        let (components, digest) = (self.components.clone(), record.digest.clone());
        let bytes = blocking(move || components.read(&digest))
            .await
            .map_err(|error| failed(error.into()))?;
        self.advance(plugin, number, RevisionState::Verified)
            .await?;
        let component = match self.runtime.cached(&record.digest).await {
            Some(component) => component,
            None => self
                .runtime
                .compile(&bytes, &record.digest)
                .await
                .map_err(|error| failed(error.into()))?,
        };
        drop(bytes);
        self.advance(plugin, number, RevisionState::Compiled)
            .await?;
        let runtime = Arc::clone(&self.runtime);
        let linked = blocking(move || loader::link(&runtime, &component))
            .await
            .map_err(failed)?;
        self.advance(plugin, number, RevisionState::Linked).await?;
        let described =
            loader::describe(&self.runtime, &linked, &record.settings.limits, plugin).await;
        let (text, description) = described.map_err(failed)?;
        let told = Described {
            version: description.version.clone(),
            summary: description.summary.clone(),
            wants: description.wants.clone(),
        };
        self.store.put_description(&record.digest, &text).await?;
        let described = step(RevisionState::Described);
        self.change(plugin, |life| life.describe(number, told, described))
            .await?;

        let mut turn = self.lives.lock().await;
        let mut next = self.life_in(&turn, plugin)?;
        let record = next.revision(number)?.clone();
        let compared = RevisionState::Compared;
        next.advance(number, compared, step(compared))?;
        let staged = next.stage(number, record.staged.clone())?;
        // What goes live is compared with what serves when it is put beside that.
        if staged == RevisionState::AwaitingApproval || !record.goes_live {
            let rights = next.rights(&record);
            let runner = CallRunner::Off(Off::Disabled);
            let known = Revision::new(plugin, number, &record.digest, description, rights, runner);
            self.with(Arc::new(known)).await?;
            self.commit(&mut turn, next).await?;
            return Ok(staged);
        }
        // As `go_live` does, with the description that was just read: its schemas take the longest of all.
        next.activate(number, record.staged)?;
        let record = next.revision(number)?.clone();
        let rights = next.rights(&record);
        let whole = Whole {
            plugin: plugin.to_owned(),
            record,
            description,
            rights,
        };
        let revision = self.put_together(&next, whole).await?;
        self.flip(&mut turn, next, revision).await?;
        Ok(RevisionState::Active)
    }

    /// Activates a revision in a changed record and serves it.
    pub(super) async fn go_live(
        self: &Arc<Self>,
        turn: &mut super::RecordsGuard<'_>,
        mut next: PluginRecord,
        number: u64,
        mark: OperatorNote,
    ) -> Result<(), RegistryError> {
        next.activate(number, mark)?;
        let record = next.revision(number)?.clone();
        let revision = self.build(&next, &record).await?;
        self.flip(turn, next, revision).await
    }

    async fn advance(
        &self,
        plugin: &str,
        number: u64,
        to: RevisionState,
    ) -> Result<(), RegistryError> {
        self.change(plugin, |life| life.advance(number, to, step(to)))
            .await
    }

    /// Changes a record and writes it.
    pub(super) async fn change(
        &self,
        plugin: &str,
        change: impl FnOnce(&mut PluginRecord) -> Result<(), LifeError>,
    ) -> Result<(), RegistryError> {
        let mut turn = self.lives.lock().await;
        let mut next = self.life_in(&turn, plugin)?;
        change(&mut next)?;
        self.commit(&mut turn, next).await
    }

    pub(super) async fn life_of(&self, plugin: &str) -> Result<PluginRecord, RegistryError> {
        self.life_in(&self.lives.lock().await, plugin)
    }

    pub(super) fn life_in(
        &self,
        turn: &super::RecordsGuard<'_>,
        plugin: &str,
    ) -> Result<PluginRecord, RegistryError> {
        self.entry(plugin)?;
        Ok(turn
            .get(plugin)
            .cloned()
            .unwrap_or_else(|| PluginRecord::new(plugin)))
    }

    /// Rejects a revision that could not be prepared, with the reason.
    async fn refuse(&self, plugin: &str, number: u64, error: &RegistryError) {
        let why = error.to_string();
        if let Err(error) = self
            .change(plugin, |life| life.reject(number, mark("host", &why)))
            .await
        {
            tracing::error!(plugin, revision = number, %error, "cannot note that a revision was refused");
        }
    }
}

fn step(to: RevisionState) -> OperatorNote {
    mark("host", to.name())
}

/// Where the component of a source stands once it is built.
pub(crate) fn component_path(source: &ManifestSource) -> Result<PathBuf, ComponentError> {
    match source {
        ManifestSource::File(path) => Ok(path.clone()),
        ManifestSource::Crate(folder) => artifact(folder).ok_or_else(|| ComponentError::NoCrate {
            path: folder.clone(),
        }),
    }
}
