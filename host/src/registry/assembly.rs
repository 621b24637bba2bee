//! A revision put together from what is kept of it: its record, its description and its component.
//!
//! Must not know whether it is to be served.

use super::lifecycle::{PluginRecord, RevisionRecord};
use super::revision_parts::{self, Whole};
use super::{Registry, RegistryError};
use crate::catalogue::revision::Revision;
use crate::runtime::instance::Off;
use crate::runtime::loader;

impl Registry {
    /// Puts a recorded revision together as its plugin stands: with its rights, or off where the operator says so.
    pub(super) async fn build(
        &self,
        life: &PluginRecord,
        record: &RevisionRecord,
    ) -> Result<Revision, RegistryError> {
        self.put_together(life, self.whole(life, record).await?)
            .await
    }

    /// The same of what was read already.
    pub(super) async fn put_together(
        &self,
        life: &PluginRecord,
        whole: Whole,
    ) -> Result<Revision, RegistryError> {
        let plugin = life.plugin();
        if life.disabled().is_some() {
            return Ok(revision_parts::off(whole, Off::Disabled));
        }
        let slots = self.slots(plugin, &whole.record.settings.limits);
        let (runtime, components) = (&self.runtime, &self.components);
        let loaded = revision_parts::load(runtime, components, whole, &slots).await;
        loaded.map_err(|error| RegistryError::load(plugin, error))
    }

    /// As [`Registry::build`]; what cannot be loaded is off, with the reason.
    pub(super) async fn build_or_off(
        &self,
        life: &PluginRecord,
        record: &RevisionRecord,
    ) -> Result<Revision, RegistryError> {
        let error = match self.build(life, record).await {
            Ok(revision) => return Ok(revision),
            Err(error) => error,
        };
        let (plugin, revision) = (life.plugin(), record.number);
        tracing::error!(plugin, revision, %error, "a revision cannot be loaded; its routes answer that it is unavailable");
        self.off(life, record, Off::Unloadable(error.to_string()))
            .await
    }

    /// A recorded revision that is known and not run.
    pub(super) async fn off(
        &self,
        life: &PluginRecord,
        record: &RevisionRecord,
        off: Off,
    ) -> Result<Revision, RegistryError> {
        Ok(revision_parts::off(self.whole(life, record).await?, off))
    }

    async fn whole(
        &self,
        life: &PluginRecord,
        record: &RevisionRecord,
    ) -> Result<Whole, RegistryError> {
        let plugin = life.plugin().to_owned();
        let text = self.description(&plugin, &record.digest).await?;
        let description = loader::read(text, &plugin)
            .await
            .map_err(|error| RegistryError::load(&plugin, error))?;
        Ok(Whole {
            plugin,
            record: record.clone(),
            description,
            rights: life.rights(record),
        })
    }

    /// What a component said of itself when it was staged.
    async fn description(&self, plugin: &str, digest: &str) -> Result<String, RegistryError> {
        let found = self.store.description(digest).await?;
        found.ok_or_else(|| RegistryError::NoDescription {
            plugin: plugin.to_owned(),
            digest: digest.to_owned(),
        })
    }
}
