//! What this process serves and by which settings, for the operator to read. Nothing here changes anything.

use serde_json::{Value, json};

use crate::app::App;
use crate::operation::Operation;
use crate::registry::manifest::{Entry, InstanceMode};
use crate::registry::revision::Revision;

/// The plugins that are served now, in the manifest's order.
pub(crate) fn plugins(app: &App) -> Value {
    let catalogue = app.registry.current();
    let entry = |revision: &Revision| app.manifest.entries.iter().find(|entry| entry.name == *revision.plugin);
    let plugins: Vec<Value> = catalogue.revisions().iter().map(|revision| plugin(revision, entry(revision))).collect();
    json!({ "plugins": plugins })
}

/// The settings in effect, under the names by which they are set. There is no secret among them.
pub(crate) fn config(app: &App) -> Value {
    let (config, transport) = (&app.config, &app.config.transport);
    json!({
        "listen": config.listen,
        "operator_listen": config.operator_listen,
        "base_url": app.registry.current().base_url(),
        "data": config.data,
        "manifest": config.manifest,
        "limits": {
            "connections": transport.connections_max,
            "in_flight": config.in_flight_max,
            "instances": config.instances_max,
            "header_ms": milliseconds(transport.header),
            "body_ms": milliseconds(transport.body),
            "request_ms": milliseconds(transport.request),
            "write_ms": milliseconds(transport.write),
            "idle_ms": milliseconds(transport.idle),
            "drain_ms": milliseconds(transport.drain),
            "compile_memory": config.compile.memory_bytes,
            "compile_cpu_seconds": config.compile.cpu_seconds,
            "compile_wall_ms": milliseconds(config.compile.wall),
        },
        "credits": { "concurrency": config.credits.concurrency, "costs": config.credits.costs },
        "first_party": {
            "origins": config.first_party.origins,
            "trusted_proxies": config.first_party.trusted_proxies.iter().map(ToString::to_string).collect::<Vec<_>>(),
        },
        "mcp": { "origins": config.mcp_origins },
    })
}

fn plugin(revision: &Revision, entry: Option<&Entry>) -> Value {
    json!({
        "name": &*revision.plugin,
        "version": revision.version,
        "summary": revision.summary,
        "digest": &*revision.digest,
        "instances": entry.map(|entry| match entry.instances {
            InstanceMode::Fresh => "fresh",
            InstanceMode::Warm => "warm",
        }),
        "grants": entry.map(|entry| &entry.grants),
        "limits": entry.map(|Entry { limits, .. }| json!({
            "memoryBytes": limits.memory_bytes,
            "cpuMs": milliseconds(limits.cpu),
            "wallMs": milliseconds(limits.wall),
            "concurrency": limits.concurrency,
            "responseBytes": limits.response_bytes,
        })),
        "operations": revision.operations.iter().map(|one| operation(one)).collect::<Vec<Value>>(),
    })
}

fn operation(operation: &Operation) -> Value {
    let rest = operation
        .rest
        .as_ref()
        .map(|face| json!({ "method": face.method.as_str(), "path": face.path, "scope": face.scope.as_str() }));
    let tool = operation.tool.as_ref().map(|face| json!({ "name": face.name, "scope": face.scope.as_str() }));
    json!({
        "id": operation.id,
        "deadlineMs": milliseconds(operation.deadline),
        "rest": rest,
        "tool": tool,
    })
}

fn milliseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
