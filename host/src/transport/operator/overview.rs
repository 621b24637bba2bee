//! What this process serves and by which settings, for the operator to read. Nothing here changes anything.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::plugins::PluginStanding;
use super::request::Timestamp;
use super::{OperatorApi, plugins};
use crate::base::clock::{epoch_seconds, milliseconds};
use crate::config::Config;
use crate::contract::error::Refusal;

/// Whether everything serves, and what waits for an operator.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServiceStatus {
    pub(crate) version: String,
    pub(crate) started_at: Timestamp,
    /// Whether the last revisions known to be good serve, and the manifest is not followed.
    pub(crate) safe_mode: bool,
    pub(crate) store_healthy: bool,
    /// Of the public listener, as are the requests.
    pub(crate) connections: usize,
    pub(crate) requests_in_flight: usize,
    /// Whether the store is healthy and every plugin is where it should be.
    pub(crate) well: bool,
    /// Plugins that have a candidate.
    pub(crate) waiting: usize,
    pub(crate) draining: Vec<DrainingRevision>,
    pub(crate) plugins: Vec<PluginStanding>,
}

/// A replaced revision that still has calls.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct DrainingRevision {
    plugin: String,
    revision: u64,
}

/// Tells whether everything serves.
pub(crate) async fn status(api: &OperatorApi) -> Result<ServiceStatus, Refusal> {
    let OperatorApi {
        registry, store, ..
    } = api;
    let (metrics, listed) = (&api.metrics, plugins::list(registry).await?);
    let plugins: Vec<PluginStanding> = listed.plugins.into_iter().map(|one| one.standing).collect();
    let at_ease = ["active", "disabled", "staged", "awaiting-approval"];
    let is_well = |plugin: &PluginStanding| at_ease.contains(&&*plugin.state);
    let draining = registry.draining();
    let draining = draining.iter().map(|revision| DrainingRevision {
        plugin: revision.plugin.to_string(),
        revision: revision.number,
    });
    Ok(ServiceStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: Timestamp::of(epoch_seconds(metrics.started_at)),
        safe_mode: registry.is_in_safe_mode(),
        store_healthy: store.is_healthy(),
        connections: metrics.public.open(),
        requests_in_flight: metrics.public.in_flight(),
        well: plugins.iter().all(is_well) && store.is_healthy(),
        waiting: plugins.iter().filter(|one| one.candidate.is_some()).count(),
        draining: draining.collect(),
        plugins,
    })
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
