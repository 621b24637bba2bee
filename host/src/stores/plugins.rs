//! What is kept of each plugin: one record, the history of what happened to it, and of its components the descriptions and
//! the digests of their compiled code.
//!
//! A record and the events that belong to it are one transaction, so that the history never tells of something that is not
//! so. Must not know what a record means: it is JSON that the registry reads and writes.

use std::collections::HashSet;
use std::sync::Arc;

use redb::{ReadableTable, TableDefinition, WriteTransaction};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::embedded::{Store, StoreError, decode, encode, list_records};

/// Plugin → its record.
const PLUGINS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("plugins");
/// Plugin and number of the event → the event.
const EVENTS: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("plugin-events");
/// Digest of a component, in hexadecimal → what it says of itself.
const DESCRIPTIONS: TableDefinition<'_, &str, &str> = TableDefinition::new("plugin-descriptions");
/// Engine and digest of a component, in hexadecimal → SHA-256 of its compiled code.
const CODES: TableDefinition<'_, (&str, &str), [u8; 32]> = TableDefinition::new("compiled-code");
/// The number of the last event of all.
const LAST_EVENT: TableDefinition<'_, (), u64> = TableDefinition::new("last-event");

/// Events kept of one plugin.
const EVENTS_MAX: usize = 1000;

/// An event as it is kept: its number counts over all plugins and never goes back.
#[derive(Clone, Debug)]
pub(crate) struct KeptEvent {
    pub(crate) id: u64,
    pub(crate) event: Value,
}

pub(super) fn create_tables(transaction: &WriteTransaction) -> Result<(), StoreError> {
    transaction.open_table(PLUGINS)?;
    transaction.open_table(EVENTS)?;
    transaction.open_table(DESCRIPTIONS)?;
    transaction.open_table(CODES)?;
    transaction.open_table(LAST_EVENT)?;
    Ok(())
}

impl Store {
    /// The record of every plugin, in the order of their names.
    pub(crate) fn plugins<T: DeserializeOwned>(&self) -> Result<Vec<T>, StoreError> {
        self.read(PLUGINS, |table| list_records(table, usize::MAX))
    }

    /// Writes a plugin's record and the events that made it so, all or nothing. Gives back the events with their numbers.
    pub(crate) async fn put_plugin<T: Serialize, E: Serialize>(
        &self,
        plugin: &str,
        record: &T,
        events: &[E],
    ) -> Result<Vec<KeptEvent>, StoreError> {
        let (plugin, record) = (plugin.to_owned(), encode(record)?);
        let events = events.iter().map(serde_json::to_value);
        let events: Vec<Value> = events
            .collect::<Result<_, _>>()
            .map_err(|error| StoreError::Record(Arc::new(error)))?;
        self.write(move |transaction| put(transaction, &plugin, &record, &events))
            .await
    }

    /// Kept events after a number, oldest first; of one plugin where it is named.
    pub(crate) fn plugin_events(
        &self,
        plugin: Option<&str>,
        after: u64,
    ) -> Result<Vec<KeptEvent>, StoreError> {
        self.read(EVENTS, |table| {
            let entries = match plugin {
                Some(plugin) => table.range((plugin, after.saturating_add(1))..=(plugin, u64::MAX)),
                None => table.range::<(&str, u64)>(..),
            };
            let mut kept = Vec::new();
            for entry in entries? {
                let (key, value) = entry?;
                let (_, id) = key.value();
                if id > after {
                    kept.push(KeptEvent {
                        id,
                        event: decode(value.value())?,
                    });
                }
            }
            kept.sort_unstable_by_key(|event| event.id);
            Ok(kept)
        })
    }

    /// What the component with this digest says of itself.
    pub(crate) fn description(&self, digest: &str) -> Result<Option<String>, StoreError> {
        self.read(DESCRIPTIONS, |table| {
            Ok(table.get(digest)?.map(|value| value.value().to_owned()))
        })
    }

    /// Keeps what a component says of itself; keeping it again changes nothing.
    pub(crate) async fn put_description(&self, digest: &str, text: &str) -> Result<(), StoreError> {
        let (digest, text) = (digest.to_owned(), text.to_owned());
        self.write(move |transaction| {
            let mut table = transaction.open_table(DESCRIPTIONS)?;
            table.insert(digest.as_str(), text.as_str())?;
            Ok(())
        })
        .await
    }

    /// The digest of the code that was compiled of a component for an engine.
    pub(crate) fn code(
        &self,
        engine: &str,
        component: &str,
    ) -> Result<Option<[u8; 32]>, StoreError> {
        self.read(CODES, |table| {
            Ok(table.get((engine, component))?.map(|digest| digest.value()))
        })
    }

    /// Keeps the digest of the code that was compiled of a component for an engine.
    pub(crate) async fn put_code(
        &self,
        engine: &str,
        component: &str,
        code: &[u8; 32],
    ) -> Result<(), StoreError> {
        let (engine, component, code) = (engine.to_owned(), component.to_owned(), *code);
        self.write(move |transaction| {
            let mut table = transaction.open_table(CODES)?;
            table.insert((engine.as_str(), component.as_str()), code)?;
            Ok(())
        })
        .await
    }

    /// Forgets the descriptions, and the digests of the code, of components that are not among these.
    pub(crate) async fn keep_components(&self, named: HashSet<String>) -> Result<(), StoreError> {
        self.write(move |transaction| {
            let mut table = transaction.open_table(DESCRIPTIONS)?;
            table.retain(|digest, _| named.contains(digest))?;
            let mut table = transaction.open_table(CODES)?;
            table.retain(|(_, component), _| named.contains(component))?;
            Ok(())
        })
        .await
    }
}

fn put(
    transaction: &WriteTransaction,
    plugin: &str,
    record: &[u8],
    events: &[Value],
) -> Result<Vec<KeptEvent>, StoreError> {
    let mut plugins = transaction.open_table(PLUGINS)?;
    plugins.insert(plugin, record)?;
    let mut last = transaction.open_table(LAST_EVENT)?;
    let mut id = last.get(())?.map_or(0, |value| value.value());
    let mut table = transaction.open_table(EVENTS)?;
    let mut kept = Vec::with_capacity(events.len());
    for event in events {
        id += 1;
        table.insert((plugin, id), encode(event)?.as_slice())?;
        kept.push(KeptEvent {
            id,
            event: event.clone(),
        });
    }
    last.insert((), id)?;
    let mut ids = Vec::new();
    for entry in table.range((plugin, 0)..=(plugin, u64::MAX))? {
        ids.push(entry?.0.value().1);
    }
    let gone = ids.len().saturating_sub(EVENTS_MAX);
    for id in &ids[..gone] {
        table.remove((plugin, *id))?;
    }
    Ok(kept)
}
