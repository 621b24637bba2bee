//! Records that plugins keep.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Store, StoreError};
use crate::records::plugin_state::{
    self, KeptRecord, ListedRecord, StateBatch, StateUsage, WriteRefusal,
};

/// Records that are forgotten together when they have expired.
const FORGOTTEN_AT_ONCE: usize = 128;

impl Store {
    /// A plugin's record.
    pub(crate) async fn record(
        &self,
        plugin: Arc<str>,
        key: String,
        now_ms: u64,
    ) -> Result<Option<KeptRecord>, StoreError> {
        self.engine
            .survey(move |read| plugin_state::record(read, &plugin, &key, now_ms))
            .await
    }

    /// A plugin's records whose keys begin with a prefix, in the order of their keys, from after a key where one is named.
    pub(crate) async fn records(
        &self,
        plugin: Arc<str>,
        (prefix, after): (String, Option<String>),
        records_max: usize,
        now_ms: u64,
    ) -> Result<Vec<ListedRecord>, StoreError> {
        self.engine
            .survey(move |read| {
                let keys = (prefix.as_str(), after.as_deref());
                plugin_state::records(read, &plugin, keys, records_max, now_ms)
            })
            .await
    }

    /// Makes the writes of a batch if what is there is as expected and there is room, and gives back the version that each
    /// record has which was put.
    pub(crate) async fn write_records(
        &self,
        batch: StateBatch,
    ) -> Result<Result<u64, WriteRefusal>, StoreError> {
        let plugin = Arc::clone(&batch.plugin);
        self.change(&plugin, move |read| plugin_state::write(read, &batch))
            .await
    }

    /// Forgets records that have expired, a bounded number of them. Gives back whether there may be more.
    pub(crate) async fn forget_expired_records(&self, now_ms: u64) -> Result<bool, StoreError> {
        let expired = self
            .engine
            .survey(move |read| plugin_state::expired(read, now_ms, FORGOTTEN_AT_ONCE))
            .await?;
        let may_be_more = expired.len() == FORGOTTEN_AT_ONCE;
        let mut by_plugin: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (plugin, key) in expired {
            by_plugin.entry(plugin).or_default().push(key);
        }
        for (plugin, keys) in by_plugin {
            let named = plugin.clone();
            self.change(&plugin, move |read| {
                plugin_state::forget_expired(read, &named, &keys, now_ms)
            })
            .await?;
        }
        Ok(may_be_more)
    }

    /// What each plugin uses that ever kept a record, in the order of their names.
    pub(crate) async fn records_used(&self) -> Result<Vec<StateUsage>, StoreError> {
        self.engine.survey(|read| plugin_state::used(read)).await
    }
}
