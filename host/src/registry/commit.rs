//! What is served changes here: a record is written first, then its revision takes the place of the other one.
//!
//! Must not know why, nor how a revision was made.

use std::sync::Arc;

use super::lifecycle::{PluginRecord, RevisionRecord, RevisionState};
use super::{RecordsGuard, Registry, RegistryError};
use crate::base::tasks::blocking;
use crate::catalogue::CollisionError;
use crate::catalogue::revision::Revision;
use crate::published::Snapshot;
use crate::records::plugin_life::{EventHistory, KeptEvent, PluginCommit};
use crate::runtime::instance::Off;
use crate::stores::StoreError;

impl Registry {
    /// Adds a revision to what is served. One that closes a circle of grants is off, with the reason; one that collides with
    /// what is there already is left out.
    pub(super) async fn put(
        &self,
        life: &PluginRecord,
        record: &RevisionRecord,
        revision: Revision,
    ) -> Result<(), RegistryError> {
        let plugin = life.plugin();
        let mut put = self.with(Arc::new(revision)).await;
        if let Err(error @ CollisionError::Circle(_)) = &put {
            tracing::error!(plugin, %error, "a plugin cannot be served; its routes answer that it is unavailable");
            let off = Off::Unloadable(error.to_string());
            put = self
                .with(Arc::new(self.off(life, record, off).await?))
                .await;
        }
        match put {
            Ok(snapshot) => self.current.store(Arc::new(snapshot)),
            Err(error) => tracing::error!(plugin, %error, "a plugin cannot be served"),
        }
        Ok(())
    }

    /// What would be served with this revision in the place of its plugin's other one. Printing the documents takes a while,
    /// so it is done on a thread that may.
    pub(super) async fn with(&self, revision: Arc<Revision>) -> Result<Snapshot, CollisionError> {
        let current = self.current();
        blocking(move || {
            let mut revisions = current.catalogue.revisions().to_vec();
            match revisions.iter_mut().find(|r| r.plugin == revision.plugin) {
                Some(place) => *place = revision,
                None => revisions.push(revision),
            }
            Snapshot::new(revisions, current.site())
        })
        .await
    }

    /// Serves a revision that no store knows.
    pub(crate) async fn insert(&self, revision: Revision) -> Result<(), RegistryError> {
        self.current
            .store(Arc::new(self.with(Arc::new(revision)).await?));
        Ok(())
    }

    /// Writes a changed record with what happened to it, and tells whoever listens.
    pub(super) async fn commit(
        &self,
        turn: &mut RecordsGuard<'_>,
        next: PluginRecord,
    ) -> Result<(), RegistryError> {
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
        let mut commit =
            PluginCommit::new(next.plugin(), &next, &events).map_err(StoreError::from)?;
        if events.iter().any(|event| event.operation.is_some()) {
            commit.history = EventHistory::Calls;
        }
        let kept = Box::pin(self.store.put_plugin(commit)).await?;
        turn.insert(next.plugin().to_owned(), next);
        Ok(kept)
    }

    /// Tells of what is so by now.
    fn tell(&self, events: Vec<KeptEvent>) {
        for event in events {
            let told = |name: &str| event.event[name].as_str().unwrap_or_default().to_owned();
            let [plugin, happened, by, why] = ["plugin", "event", "by", "why"].map(told);
            let [operation, outcome] = ["operation", "outcome"].map(told);
            let revision = event.event["revision"].as_u64();
            if RevisionState::STEPS
                .iter()
                .any(|step| step.name() == happened)
            {
                tracing::debug!(
                    plugin,
                    revision,
                    event = happened,
                    "a revision is being prepared"
                );
            } else if !operation.is_empty() {
                tracing::info!(
                    plugin,
                    revision,
                    event = happened,
                    operation,
                    outcome,
                    by,
                    why,
                    "an operator's call"
                );
            } else {
                tracing::info!(
                    plugin,
                    revision,
                    event = happened,
                    by,
                    why,
                    "a plugin changed"
                );
            }
            // Nobody may be listening.
            self.events.send(Arc::new(event)).ok();
        }
    }

    /// Writes a changed record and serves its revision. The one that it replaces drains.
    pub(super) async fn flip(
        self: &Arc<Self>,
        turn: &mut RecordsGuard<'_>,
        mut next: PluginRecord,
        revision: Revision,
    ) -> Result<(), RegistryError> {
        let plugin = Arc::clone(&revision.plugin);
        let snapshot = self.with(Arc::new(revision)).await?;
        let replaced = self.serving(&plugin);
        if let Some(replaced) = replaced.as_ref().filter(|replaced| replaced.has_answered()) {
            next.prove(replaced.number);
        }
        let events = self.write(turn, next).await?;
        self.current.store(Arc::new(snapshot));
        self.tell(events);
        if let Some(replaced) = replaced {
            self.drain(replaced);
        }
        Ok(())
    }
}
