//! What this process serves and by which settings, for the operator to read. Nothing here changes anything.

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Value, json};

use super::plugins;
use super::request::timestamp;
use crate::base::clock::epoch_seconds;
use crate::base::clock::milliseconds;
use crate::config::Config;
use crate::contract::error::Refusal;
use crate::places::ListenerPlaces;
use crate::registry::Registry;
use crate::stores::Store;

/// Whether everything serves, and what waits for an operator.
pub(crate) async fn status(
    registry: &Arc<Registry>,
    store: &Store,
    public: &ListenerPlaces,
    started_at: SystemTime,
) -> Result<Value, Refusal> {
    let plugins = plugins::list(registry).await?;
    let plugins = plugins["plugins"].as_array().cloned().unwrap_or_default();
    let at_ease = ["active", "disabled", "staged", "awaiting-approval"];
    let is_well = |plugin: &Value| at_ease.iter().any(|state| plugin["state"] == *state);
    let waits = |plugin: &Value| !plugin["candidate"].is_null();
    let draining = registry.draining();
    let told = plugins.iter().map(|plugin| {
        json!({
            "name": plugin["name"],
            "state": plugin["state"],
            "version": plugin["version"],
            "revision": plugin["revision"],
            "candidate": plugin["candidate"],
            "message": plugin["message"],
        })
    });
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "startedAt": timestamp(epoch_seconds(started_at)),
        "safeMode": registry.is_in_safe_mode(),
        "storeHealthy": store.is_healthy(),
        "connections": public.open(),
        "requestsInFlight": public.in_flight(),
        "well": plugins.iter().all(is_well) && store.is_healthy(),
        "waiting": plugins.iter().filter(|plugin| waits(plugin)).count(),
        "draining": draining
            .iter()
            .map(|revision| json!({ "plugin": &*revision.plugin, "revision": revision.number }))
            .collect::<Vec<Value>>(),
        "plugins": told.collect::<Vec<Value>>(),
    }))
}

/// The settings in effect, under the names by which they are set. There is no secret among them.
pub(crate) fn config(config: &Config, base_url: &str) -> Value {
    let transport = &config.transport;
    json!({
        "listen": config.listen,
        "operator_listen": config.operator_listen,
        "base_url": base_url,
        "data": config.data,
        "manifest": config.manifest,
        "safe_mode": config.safe_mode,
        "limits": {
            "connections": config.places.connections,
            "in_flight": config.places.in_flight,
            "unsent_bytes": config.places.unsent_bytes,
            "connection_unsent_bytes": config.places.connection_unsent_bytes,
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
        "shares": { "waiting": config.shares.waiting, "cpu_seconds": config.shares.cpu.as_secs() },
        "credits": { "concurrency": config.credits.concurrency, "costs": config.credits.costs },
        "peers": {
            "trusted_proxies": config.trusted_proxies.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "connections": config.places.peer_connections,
            "in_flight": config.places.peer_in_flight,
            "unsent_bytes": config.places.peer_unsent_bytes,
        },
        "first_party": { "origins": config.first_party.origins },
        "mcp": { "origins": config.mcp_origins },
        "oauth": config.oauth.as_ref().map(|oauth| json!({
            "issuer": oauth.issuer,
            "audiences": oauth.audiences,
            "per_minute": oauth.per_minute,
            "per_month": oauth.per_month,
            "fetch_ms": milliseconds(oauth.fetch),
            "renew_ms": milliseconds(oauth.renew),
        })),
        "egress": {
            "connect_to": config
                .egress
                .connect_to
                .iter()
                .map(|one| (format!("{}:{}", one.host, one.port), json!({ "to": one.address, "public": one.public })))
                .collect::<serde_json::Map<String, Value>>(),
            "dns_servers": config.egress.dns_servers,
            "extra_roots": config.egress.extra_roots,
        },
        "proxy": {
            "listen": config.proxy.listen,
            "connections": config.proxy.connections_max,
            "head_ms": milliseconds(config.proxy.head),
            "idle_ms": milliseconds(config.proxy.idle),
            "total_ms": milliseconds(config.proxy.total),
            "bytes": config.proxy.bytes_max,
        },
    })
}
