//! What is kept of each plugin: its record, its history, and of its components the descriptions and the digests of their
//! compiled code.

use std::collections::HashSet;

use serde::de::DeserializeOwned;

use super::{Store, StoreError};
use crate::records::plugin_life::{
    self, CompiledDigest, ComponentDescription, INSTANCE, KeptEvent, PluginCommit,
};
use crate::records::rows::{Decision, Reads, unreadable};

impl Store {
    /// The record of every plugin, in the order of their names.
    pub(crate) async fn plugins<T: DeserializeOwned>(&self) -> Result<Vec<T>, StoreError> {
        let records = self
            .engine
            .survey(|read| plugin_life::plugins(read))
            .await?;
        let records = records.into_iter().map(serde_json::from_value);
        let records: Result<_, _> = records.collect();
        Ok(records.map_err(unreadable)?)
    }

    /// Writes a plugin's record and the events that made it so, all or nothing; the same commit made again writes nothing. Gives
    /// back the events with their numbers.
    pub(crate) async fn put_plugin(
        &self,
        commit: PluginCommit,
    ) -> Result<Vec<KeptEvent>, StoreError> {
        self.change(INSTANCE, move |read| plugin_life::commit(read, &commit))
            .await
    }

    /// Kept events after a number, oldest first; of one plugin where it is named.
    pub(crate) async fn plugin_events(
        &self,
        plugin: Option<String>,
        after: u64,
    ) -> Result<Vec<KeptEvent>, StoreError> {
        self.engine
            .survey(move |read| plugin_life::events(read, plugin.as_deref(), after))
            .await
    }

    /// What the component with this digest says of itself.
    pub(crate) async fn description(&self, component: &str) -> Result<Option<String>, StoreError> {
        let component = component.to_owned();
        self.engine
            .survey(move |read| plugin_life::description(read, &component))
            .await
    }

    /// Keeps what a component says of itself; keeping it again changes nothing.
    pub(crate) async fn put_description(
        &self,
        component: &str,
        text: &str,
    ) -> Result<(), StoreError> {
        let kept = ComponentDescription {
            component: component.to_owned(),
            text: text.to_owned(),
        };
        self.change(component, move |_| {
            Ok(Decision::write((), vec![kept.row()?.into()]))
        })
        .await
    }

    /// The digest of the code that was compiled of a component for an engine.
    pub(crate) async fn code(
        &self,
        engine: &str,
        component: &str,
    ) -> Result<Option<[u8; 32]>, StoreError> {
        let code = |read: &mut dyn Reads| plugin_life::code(read, engine, component);
        self.engine.view(code).await
    }

    /// Keeps the digest of the code that was compiled of a component for an engine.
    pub(crate) async fn put_code(
        &self,
        engine: &str,
        component: &str,
        code: &[u8; 32],
    ) -> Result<(), StoreError> {
        let kept = CompiledDigest {
            component: component.to_owned(),
            engine: engine.to_owned(),
            code: *code,
        };
        self.change(component, move |_| {
            Ok(Decision::write((), vec![kept.row()?.into()]))
        })
        .await
    }

    /// Forgets what is kept of components that are not among these.
    pub(crate) async fn keep_components(&self, named: HashSet<String>) -> Result<(), StoreError> {
        let mut kept = self
            .engine
            .survey(|read| plugin_life::components(read))
            .await?;
        kept.retain(|component| !named.contains(component));
        let forgotten = kept.into_iter().map(|component| {
            let named = component.clone();
            let forget = move |read: &mut dyn Reads| plugin_life::forget_component(read, &named);
            (component, forget)
        });
        self.change_each(forgotten).await.map(drop)
    }
}
