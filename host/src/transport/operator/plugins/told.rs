//! Plugins and their revisions as an operator reads them, in JSON.
//!
//! It prints what the registry holds, and must not know which route asks.

use serde_json::{Value, json};

use crate::base::clock::milliseconds;
use crate::catalogue::revision::{CallRunner, Revision};
use crate::contract::error::Refusal;
use crate::contract::grants::Atom;
use crate::contract::manifest::{ManifestEntry, Settings};
use crate::contract::operation::Operation;
use crate::registry::Registry;
use crate::registry::lifecycle::{OperatorNote, PluginRecord, RevisionRecord, RevisionState};
use crate::runtime::instance::Off;
use crate::transport::operator::request::timestamp;

pub(super) async fn plugin(registry: &Registry, entry: &ManifestEntry) -> Result<Value, Refusal> {
    let life = registry.life(&entry.name).await?;
    let snapshot = registry.current();
    let serving = snapshot.catalogue.revision_of(&entry.name);
    let candidate = life.as_ref().and_then(PluginRecord::candidate);
    let approvals = life.iter().flat_map(PluginRecord::approvals);
    let mut told = json!({
        "name": entry.name,
        "state": state(life.as_ref(), serving),
        "message": serving.and_then(|revision| match &revision.runner {
            CallRunner::Off(Off::Unloadable(why)) => Some(why.as_str()),
            CallRunner::Off(Off::Disabled) | CallRunner::Component(_) | CallRunner::Native(_) => None,
        }),
        "version": serving.map(|revision| &revision.version),
        "summary": serving.map(|revision| &revision.summary),
        "revision": serving.map(|revision| revision.number),
        "active": life.as_ref().and_then(PluginRecord::active).map(|record| record.number),
        "candidate": candidate.map(|record| json!({ "revision": record.number, "state": record.state })),
        "digest": serving.map(|revision| &*revision.digest),
        "grants": entry.grants,
        "approvals": approvals.map(|(atom, mark)| approval(atom, mark)).collect::<Vec<Value>>(),
        "rights": serving.map(|revision| &revision.rights),
        "disabled": life.as_ref().and_then(PluginRecord::disabled).map(marked),
    });
    let operations = serving.into_iter().flat_map(Revision::operations);
    told["operations"] = operations.map(|(one, _)| operation(one)).collect();
    merge(&mut told, &settings(&entry.settings));
    Ok(told)
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

pub(crate) fn revisions(life: Option<&PluginRecord>) -> Vec<Value> {
    let Some(life) = life else { return Vec::new() };
    life.revisions()
        .iter()
        .rev()
        .map(|record| revision(life, record))
        .collect()
}

pub(crate) fn revision(life: &PluginRecord, record: &RevisionRecord) -> Value {
    let (granted, staged) = (life.granted(), marked(&record.staged));
    let wants = record
        .wants
        .iter()
        .map(|want| json!({ "atom": want.atom, "why": want.why, "optional": want.optional, "granted": granted.covers(&want.atom) }));
    let mut told = json!({
        "plugin": life.plugin(),
        "revision": record.number,
        "state": record.state,
        "underWay": record.state.is_under_way(),
        "version": record.version,
        "summary": record.summary,
        "digest": record.digest,
        "bytes": record.bytes,
        "source": record.source,
        "activate": record.goes_live,
        "proven": record.proven,
        "wants": wants.collect::<Vec<Value>>(),
        "missing": life.missing(record),
        "staged": staged,
        "changed": marked(&record.changed),
    });
    if record.state == RevisionState::Active {
        told["rights"] = json!(life.rights(record));
    }
    merge(&mut told, &settings(&record.settings));
    told
}

/// The settings that are no secret: of what a plugin is told, the names alone.
fn settings(settings: &Settings) -> Value {
    let limits = &settings.limits;
    json!({
        "instances": settings.instances,
        "limits": {
            "memoryBytes": limits.memory_bytes,
            "cpuMs": milliseconds(limits.cpu),
            "wallMs": milliseconds(limits.wall),
            "concurrency": limits.concurrency,
            "ownerConcurrency": limits.owner_concurrency(),
            "warmGrowthBytes": limits.warm_growth(),
            "responseBytes": limits.response_bytes,
        },
        "config": settings.config.keys().collect::<Vec<_>>(),
    })
}

fn merge(into: &mut Value, more: &Value) {
    if let (Some(into), Some(more)) = (into.as_object_mut(), more.as_object()) {
        into.extend(more.clone());
    }
}

fn approval(atom: &Atom, mark: &OperatorNote) -> Value {
    let mut told = marked(mark);
    told["atom"] = json!(atom);
    told
}

fn marked(mark: &OperatorNote) -> Value {
    json!({ "at": timestamp(mark.at), "by": mark.by, "why": mark.why })
}

fn operation(operation: &Operation) -> Value {
    let rest = operation
        .rest
        .as_ref()
        .map(|face| json!({ "method": face.method.as_str(), "path": face.path, "scope": face.scope.as_str() }));
    let tool = operation
        .tool
        .as_ref()
        .map(|face| json!({ "name": face.name, "scope": face.scope.as_str() }));
    json!({ "id": operation.id, "deadlineMs": milliseconds(operation.deadline), "rest": rest, "tool": tool })
}
