//! Records that plugins keep.

use std::sync::Arc;

use super::{Store, StoreError, by_partition, tell_unreadable};
use crate::records::plugin_state::{
    self, KeptRecord, ListedRecord, RECORDS, StateBatch, StateUsage, WriteRefusal,
};
use crate::records::rows::Reads;

/// Records of one plugin that one look for expired ones finds.
const EXPIRED_AT_ONCE: usize = 1024;
/// Those among them that are forgotten in one change, at most.
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
        let (plugin, bytes) = (Arc::clone(&batch.plugin), batch.bytes());
        self.change_large(&plugin, bytes, move |read| {
            plugin_state::write(read, &batch)
        })
        .await
    }

    /// Forgets records that have expired, a bounded number of each plugin's. Gives back whether there may be more.
    pub(crate) async fn forget_expired_records(&self, now_ms: u64) -> Result<bool, StoreError> {
        let expired = self
            .engine
            .survey(move |read| plugin_state::expired(read, now_ms, EXPIRED_AT_ONCE))
            .await?;
        let by_plugin = by_partition(expired);
        let may_be_more = by_plugin
            .values()
            .any(|names| names.len() == EXPIRED_AT_ONCE);
        let mut unreadable = 0;
        for place in 0..EXPIRED_AT_ONCE / FORGOTTEN_AT_ONCE {
            let forgotten = by_plugin.iter().filter_map(|(plugin, names)| {
                let names = names.chunks(FORGOTTEN_AT_ONCE).nth(place)?.to_vec();
                let named = plugin.clone();
                let forget = move |read: &mut dyn Reads| {
                    plugin_state::forget_expired(read, &named, &names, now_ms)
                };
                Some((plugin.clone(), forget))
            });
            unreadable += self.change_each(forgotten).await?.iter().sum::<usize>();
        }
        tell_unreadable(RECORDS, unreadable);
        Ok(may_be_more)
    }

    /// What each plugin uses that ever kept a record, in the order of their names.
    pub(crate) async fn records_used(&self) -> Result<Vec<StateUsage>, StoreError> {
        self.engine.survey(|read| plugin_state::used(read)).await
    }
}
