//! The rules of what is kept of plugins: one record of each, the history of what happened to it, and of its components the
//! descriptions and the digests of their compiled code.
//!
//! A record and the events that belong to it are written together, so that the history never tells of something that is not
//! so. Events are numbered over all plugins, so the records and events of all are rows of one owner, the instance. Must not
//! know what a record means: it is JSON that the registry reads and writes.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::recent::RecentChanges;
use super::rows::{
    Decision, Reads, Row, RowFault, RowName, RowQuery, RowRange, RowWrite, Space, unreadable,
};

/// Plugin → [`KeptPlugin`].
const PLUGINS: Space = Space::new("plugin");
/// Plugin, number of the event → [`KeptEvent`].
const EVENTS: Space = Space::new("plugin.event");
/// The same of calls by the operator, so that many of them do not push out what else happened.
const CALLS: Space = Space::new("plugin.call-event");
/// The number of the last event of all.
const LAST_EVENT: Space = Space::new("plugin.last-event");
/// Digest of a component → [`ComponentDescription`].
const DESCRIPTIONS: Space = Space::new("component.description");
/// Digest of a component, engine → [`CompiledDigest`].
const CODES: Space = Space::new("component.code");

/// The one owner of the records and events of all plugins.
pub(crate) const INSTANCE: &str = "instance";

/// Events kept of one plugin, and as many of calls.
const EVENTS_MAX: usize = 1000;

/// A plugin's record as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeptPlugin {
    /// The commits that wrote it.
    #[serde(default)]
    commits: RecentChanges,
    record: Value,
}

/// An event as it is kept: its number counts over all plugins and never goes back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KeptEvent {
    pub(crate) id: u64,
    pub(crate) event: Value,
    /// The commit that wrote it.
    commit: Uuid,
}

/// What a component says of itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ComponentDescription {
    /// Its digest, in hexadecimal.
    pub(crate) component: String,
    pub(crate) text: String,
}

/// The code that was compiled of a component for an engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CompiledDigest {
    pub(crate) component: String,
    pub(crate) engine: String,
    /// SHA-256.
    pub(crate) code: [u8; 32],
}

/// Where an event is kept. Each forgets its own oldest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventHistory {
    /// What became of the plugin.
    Changes,
    /// Calls by the operator.
    Calls,
}

impl EventHistory {
    const ALL: [EventHistory; 2] = [EventHistory::Changes, EventHistory::Calls];

    fn space(self) -> Space {
        match self {
            EventHistory::Changes => EVENTS,
            EventHistory::Calls => CALLS,
        }
    }

    fn name(self, plugin: &str) -> RowName {
        RowName::of(self.space(), INSTANCE).text(plugin)
    }
}

/// A plugin's record with the events that made it so. Its id is unique: the same commit made again changes nothing.
#[derive(Clone, Debug)]
pub(crate) struct PluginCommit {
    pub(crate) id: Uuid,
    pub(crate) plugin: String,
    pub(crate) record: Value,
    pub(crate) events: Vec<Value>,
    pub(crate) history: EventHistory,
}

impl PluginCommit {
    /// A commit that is not yet made.
    pub(crate) fn new(
        plugin: &str,
        record: &impl Serialize,
        events: &[impl Serialize],
    ) -> Result<Self, RowFault> {
        let events: Result<_, _> = events.iter().map(serde_json::to_value).collect();
        Ok(Self {
            id: Uuid::now_v7(),
            plugin: plugin.to_owned(),
            record: serde_json::to_value(record).map_err(unreadable)?,
            events: events.map_err(unreadable)?,
            history: EventHistory::Changes,
        })
    }
}

impl KeptEvent {
    pub(crate) fn row(&self, history: EventHistory, plugin: &str) -> Result<Row, RowFault> {
        Row::record(history.name(plugin).long(self.id), self)
    }
}

impl ComponentDescription {
    pub(crate) fn row(&self) -> Result<Row, RowFault> {
        Row::record(RowName::of(DESCRIPTIONS, &self.component), self)
    }
}

impl CompiledDigest {
    fn row_name(component: &str, engine: &str) -> RowName {
        RowName::of(CODES, component).text(engine)
    }

    pub(crate) fn row(&self) -> Result<Row, RowFault> {
        Row::record(Self::row_name(&self.component, &self.engine), self)
    }
}

/// The record of every plugin, in the order of their names.
pub(crate) fn plugins(read: &mut dyn Reads) -> Result<Vec<Value>, RowFault> {
    let all = RowRange::under(&RowName::of(PLUGINS, INSTANCE), usize::MAX);
    let kept: Vec<KeptPlugin> = read.records(RowQuery::Range(&all))?;
    Ok(kept.into_iter().map(|kept| kept.record).collect())
}

/// Writes a record and its events, all or nothing; the outcome is the events with their numbers.
pub(crate) fn commit(
    read: &mut dyn Reads,
    commit: &PluginCommit,
) -> Result<Decision<Vec<KeptEvent>>, RowFault> {
    let plugin = &commit.plugin;
    let stored: Option<KeptPlugin> = read.record(&plugin_name(plugin))?;
    let mut commits = stored.map_or_else(RecentChanges::default, |stored| stored.commits);
    if commits.has(commit.id) {
        let mut kept = events(read, Some(plugin), 0)?;
        kept.retain(|event| event.commit == commit.id);
        return Ok(Decision::unchanged(kept));
    }
    let last: Option<u64> = read.record(&RowName::of(LAST_EVENT, INSTANCE))?;
    let kept: Vec<KeptEvent> = commit
        .events
        .iter()
        .zip(last.unwrap_or(0) + 1..)
        .map(|(event, id)| KeptEvent {
            id,
            event: event.clone(),
            commit: commit.id,
        })
        .collect();
    commits.note(commit.id);
    let mut writes = vec![plugin_row(plugin, commits, &commit.record)?.into()];
    if let Some(last) = kept.last() {
        writes.push(last_event_row(last.id)?.into());
    }
    for event in &kept {
        writes.push(event.row(commit.history, plugin)?.into());
    }
    let events = commit.history.name(plugin);
    forget_oldest(read, &events, kept.len(), &mut writes)?;
    Ok(Decision::write(kept, writes))
}

/// The row of a plugin's record, with the commits that wrote it.
pub(crate) fn plugin_row(
    plugin: &str,
    commits: RecentChanges,
    record: &Value,
) -> Result<Row, RowFault> {
    let record = record.clone();
    Row::record(plugin_name(plugin), &KeptPlugin { commits, record })
}

/// The row of the number of the last event of all.
pub(crate) fn last_event_row(id: u64) -> Result<Row, RowFault> {
    Row::record(RowName::of(LAST_EVENT, INSTANCE), &id)
}

/// Makes room for so many new events of a plugin's history.
fn forget_oldest(
    read: &mut dyn Reads,
    events: &RowName,
    new: usize,
    writes: &mut Vec<RowWrite>,
) -> Result<(), RowFault> {
    let mut there = 0_usize;
    let all = RowRange::under(events, usize::MAX);
    read.ask(RowQuery::Range(&all), &mut |_| {
        there += 1;
        Ok(ControlFlow::Continue(()))
    })?;
    let gone = (there + new).saturating_sub(EVENTS_MAX).min(there);
    if gone == 0 {
        return Ok(());
    }
    let oldest = RowRange::under(events, gone);
    let oldest: Vec<KeptEvent> = read.records(RowQuery::Range(&oldest))?;
    let names = oldest.iter().map(|event| events.clone().long(event.id));
    writes.extend(names.map(RowWrite::Delete));
    Ok(())
}

/// Kept events after a number, oldest first; of one plugin where it is named.
pub(crate) fn events(
    read: &mut dyn Reads,
    plugin: Option<&str>,
    after: u64,
) -> Result<Vec<KeptEvent>, RowFault> {
    let mut kept: Vec<KeptEvent> = Vec::new();
    for history in EventHistory::ALL {
        let range = match plugin {
            Some(plugin) => {
                let all = history.name(plugin);
                RowRange::under(&all, usize::MAX).after(&all.long(after))
            }
            None => RowRange::under(&RowName::of(history.space(), INSTANCE), usize::MAX),
        };
        kept.extend(read.records::<KeptEvent>(RowQuery::Range(&range))?);
    }
    kept.retain(|event| event.id > after);
    kept.sort_unstable_by_key(|event| event.id);
    Ok(kept)
}

/// What the component with this digest says of itself.
pub(crate) fn description(
    read: &mut dyn Reads,
    component: &str,
) -> Result<Option<String>, RowFault> {
    let kept: Option<ComponentDescription> = read.record(&RowName::of(DESCRIPTIONS, component))?;
    Ok(kept.map(|kept| kept.text))
}

/// The digest of the code that was compiled of a component for an engine.
pub(crate) fn code(
    read: &mut dyn Reads,
    engine: &str,
    component: &str,
) -> Result<Option<[u8; 32]>, RowFault> {
    let kept: Option<CompiledDigest> = read.record(&CompiledDigest::row_name(component, engine))?;
    Ok(kept.map(|kept| kept.code))
}

/// The digests of all components of which something is kept.
pub(crate) fn components(read: &mut dyn Reads) -> Result<Vec<String>, RowFault> {
    #[derive(Deserialize)]
    struct Named {
        component: String,
    }
    let mut named = Vec::new();
    for space in [DESCRIPTIONS, CODES] {
        let all = RowRange::all(space, usize::MAX);
        let kept: Vec<Named> = read.records(RowQuery::Range(&all))?;
        named.extend(kept.into_iter().map(|kept| kept.component));
    }
    named.sort_unstable();
    named.dedup();
    Ok(named)
}

/// Forgets what is kept of a component.
pub(crate) fn forget_component(
    read: &mut dyn Reads,
    component: &str,
) -> Result<Decision<()>, RowFault> {
    let codes = RowRange::under(&RowName::of(CODES, component), usize::MAX);
    let codes: Vec<CompiledDigest> = read.records(RowQuery::Range(&codes))?;
    let names = codes
        .iter()
        .map(|kept| CompiledDigest::row_name(component, &kept.engine))
        .chain([RowName::of(DESCRIPTIONS, component)]);
    Ok(Decision::write((), names.map(RowWrite::Delete).collect()))
}

fn plugin_name(plugin: &str) -> RowName {
    RowName::of(PLUGINS, INSTANCE).text(plugin)
}

/// An event that was kept before commits had ids.
pub(crate) fn earlier_event(id: u64, event: Value) -> KeptEvent {
    KeptEvent {
        id,
        event,
        commit: Uuid::nil(),
    }
}
