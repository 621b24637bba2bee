//! Plugins and their revisions as an operator reads them.
//!
//! It prints what the registry holds, and must not know which route asks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::clock::milliseconds;
use crate::catalogue::revision::{CallRunner, Revision};
use crate::contract::error::Refusal;
use crate::contract::grants::{Atom, Grants};
use crate::contract::manifest::{InstanceMode, ManifestEntry, Settings};
use crate::contract::operation::Operation;
use crate::registry::Registry;
use crate::registry::lifecycle::{OperatorNote, PluginRecord, RevisionRecord, RevisionState};
use crate::runtime::instance::Off;
use crate::transport::operator::request::Timestamp;

/// Where a plugin stands.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct PluginStanding {
    pub(crate) name: String,
    /// `active`, `disabled`, `unloadable`, `not-served`, or the state of its candidate.
    pub(crate) state: String,
    /// Of what serves, as the revision is.
    pub(crate) version: Option<String>,
    pub(crate) revision: Option<u64>,
    /// The staged or waiting revision.
    pub(crate) candidate: Option<CandidateView>,
    /// Why it is unloadable.
    pub(crate) message: Option<String>,
}

/// A revision that waits for an operator.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct CandidateView {
    pub(crate) revision: u64,
    pub(crate) state: RevisionState,
}

/// A plugin of the manifest.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct PluginView {
    #[serde(flatten)]
    pub(crate) standing: PluginStanding,
    pub(crate) summary: Option<String>,
    /// The active revision's number, also where it cannot be loaded.
    pub(crate) active: Option<u64>,
    /// The component's SHA-256, in hexadecimal.
    pub(crate) digest: Option<String>,
    /// By the manifest.
    pub(crate) grants: Grants,
    pub(crate) approvals: Vec<ApprovalView>,
    pub(crate) rights: Option<Grants>,
    /// Who disabled it, where it is.
    pub(crate) disabled: Option<NoteView>,
    pub(crate) operations: Vec<OperationView>,
    #[serde(flatten)]
    pub(crate) settings: SettingsView,
    /// Newest first, where one plugin is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) revisions: Option<Vec<RevisionView>>,
}

/// All plugins of the manifest, in its order.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct PluginList {
    pub(crate) plugins: Vec<PluginView>,
}

/// One revision.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RevisionView {
    pub(crate) plugin: String,
    pub(crate) revision: u64,
    pub(crate) state: RevisionState,
    /// Whether the host is still preparing it.
    pub(crate) under_way: bool,
    pub(crate) version: String,
    pub(crate) summary: String,
    /// The component's SHA-256, in hexadecimal.
    pub(crate) digest: String,
    pub(crate) bytes: u64,
    /// Where it came from, for people.
    pub(crate) source: String,
    /// Whether it serves as soon as everything that it wants is granted.
    pub(crate) activate: bool,
    /// Whether it has answered a call well.
    pub(crate) proven: bool,
    pub(crate) wants: Vec<WantView>,
    /// What it wants and is not granted.
    pub(crate) missing: Grants,
    pub(crate) staged: NoteView,
    /// Its last step.
    pub(crate) changed: NoteView,
    /// Of the active revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rights: Option<Grants>,
    #[serde(flatten)]
    pub(crate) settings: SettingsView,
}

/// A plugin's revisions, newest first.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct RevisionList {
    pub(crate) revisions: Vec<RevisionView>,
}

/// A right that a revision asks for.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct WantView {
    atom: Atom,
    /// The plugin's own words.
    why: String,
    /// Whether it can do without.
    optional: bool,
    granted: bool,
}

/// Who did something, when and why.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct NoteView {
    pub(crate) at: Timestamp,
    pub(crate) by: String,
    pub(crate) why: String,
}

/// An atom that an operator granted beyond the manifest.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct ApprovalView {
    #[serde(flatten)]
    pub(crate) note: NoteView,
    pub(crate) atom: Atom,
}

/// The settings that are no secret.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct SettingsView {
    instances: InstanceMode,
    limits: PluginLimitsView,
    /// The names of what the plugin is told, without the values.
    config: Vec<String>,
}

/// What a plugin may use.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PluginLimitsView {
    memory_bytes: usize,
    cpu_ms: u64,
    wall_ms: u64,
    concurrency: usize,
    owner_concurrency: usize,
    warm_growth_bytes: usize,
    response_bytes: usize,
}

/// An operation with its faces.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OperationView {
    pub(crate) id: String,
    pub(crate) deadline_ms: u64,
    pub(crate) rest: Option<RouteView>,
    pub(crate) tool: Option<ToolView>,
    /// Whether it is served to the operator alone.
    pub(crate) operator: bool,
}

/// The REST route of an operation.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct RouteView {
    pub(crate) method: String,
    pub(crate) path: String,
    scope: String,
}

/// The MCP tool of an operation.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct ToolView {
    pub(crate) name: String,
    scope: String,
}

pub(super) async fn plugin(
    registry: &Registry,
    entry: &ManifestEntry,
) -> Result<PluginView, Refusal> {
    let life = registry.life(&entry.name).await?;
    let snapshot = registry.current();
    let serving = snapshot.catalogue.revision_of(&entry.name);
    let approvals = life.iter().flat_map(PluginRecord::approvals);
    let operations = serving.into_iter().flat_map(Revision::operations);
    Ok(PluginView {
        standing: standing(&entry.name, life.as_ref(), serving),
        summary: serving.map(|revision| revision.summary.clone()),
        active: life
            .as_ref()
            .and_then(PluginRecord::active)
            .map(|record| record.number),
        digest: serving.map(|revision| revision.digest.to_string()),
        grants: entry.grants.clone(),
        approvals: approvals.map(approval).collect(),
        rights: serving.map(|revision| revision.rights.all()),
        disabled: life.as_ref().and_then(PluginRecord::disabled).map(marked),
        operations: operations.map(|(one, _)| operation(one)).collect(),
        settings: settings(&entry.settings),
        revisions: None,
    })
}

fn standing(name: &str, life: Option<&PluginRecord>, serving: Option<&Revision>) -> PluginStanding {
    let candidate = life.and_then(PluginRecord::candidate);
    PluginStanding {
        name: name.to_owned(),
        state: state(life, serving).to_owned(),
        version: serving.map(|revision| revision.version.clone()),
        revision: serving.map(|revision| revision.number),
        candidate: candidate.map(|record| CandidateView {
            revision: record.number,
            state: record.state,
        }),
        message: serving.and_then(|revision| match &revision.runner {
            CallRunner::Off(Off::Unloadable(why)) => Some(why.clone()),
            CallRunner::Off(Off::Disabled) | CallRunner::Component(_) | CallRunner::Native(_) => {
                None
            }
        }),
    }
}

/// One word for where a plugin stands.
fn state(life: Option<&PluginRecord>, serving: Option<&Revision>) -> &'static str {
    match serving.map(|revision| &revision.runner) {
        Some(CallRunner::Off(Off::Disabled)) => "disabled",
        Some(CallRunner::Off(Off::Unloadable(_))) => "unloadable",
        Some(_) => "active",
        None if life.is_some_and(|life| life.disabled().is_some()) => "disabled",
        None => life
            .and_then(PluginRecord::candidate)
            .map_or("not-served", |candidate| candidate.state.name()),
    }
}

pub(super) fn revisions(life: Option<&PluginRecord>) -> Vec<RevisionView> {
    let Some(life) = life else { return Vec::new() };
    life.revisions()
        .iter()
        .rev()
        .map(|record| revision(life, record))
        .collect()
}

pub(super) fn revision(life: &PluginRecord, record: &RevisionRecord) -> RevisionView {
    let granted = life.granted();
    let wants = record.wants.iter().map(|want| WantView {
        atom: want.atom.clone(),
        why: want.why.clone(),
        optional: want.optional,
        granted: granted.covers(&want.atom),
    });
    let is_active = record.state == RevisionState::Active;
    RevisionView {
        plugin: life.plugin().to_owned(),
        revision: record.number,
        state: record.state,
        under_way: record.state.is_under_way(),
        version: record.version.clone(),
        summary: record.summary.clone(),
        digest: record.digest.clone(),
        bytes: record.bytes,
        source: record.source.clone(),
        activate: record.goes_live,
        proven: record.proven,
        wants: wants.collect(),
        missing: life.missing(record),
        staged: marked(&record.staged),
        changed: marked(&record.changed),
        rights: is_active.then(|| life.rights(record).all()),
        settings: settings(&record.settings),
    }
}

/// Of what a plugin is told, the names alone.
fn settings(settings: &Settings) -> SettingsView {
    let limits = &settings.limits;
    SettingsView {
        instances: settings.instances,
        limits: PluginLimitsView {
            memory_bytes: limits.memory_bytes,
            cpu_ms: milliseconds(limits.cpu),
            wall_ms: milliseconds(limits.wall),
            concurrency: limits.concurrency,
            owner_concurrency: limits.owner_concurrency(),
            warm_growth_bytes: limits.warm_growth(),
            response_bytes: limits.response_bytes,
        },
        config: settings.config.keys().cloned().collect(),
    }
}

fn approval((atom, mark): (&Atom, &OperatorNote)) -> ApprovalView {
    ApprovalView {
        note: marked(mark),
        atom: atom.clone(),
    }
}

fn marked(mark: &OperatorNote) -> NoteView {
    NoteView {
        at: Timestamp::of(mark.at),
        by: mark.by.clone(),
        why: mark.why.clone(),
    }
}

fn operation(operation: &Operation) -> OperationView {
    let rest = operation.rest.as_ref().map(|face| RouteView {
        method: face.method.to_string(),
        path: face.path.clone(),
        scope: face.scope.to_string(),
    });
    let tool = operation.tool.as_ref().map(|face| ToolView {
        name: face.name.clone(),
        scope: face.scope.to_string(),
    });
    OperationView {
        id: operation.id.clone(),
        deadline_ms: milliseconds(operation.deadline),
        rest,
        tool,
        operator: operation.operator.is_some(),
    }
}
