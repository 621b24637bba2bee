//! What this process serves and by which settings, for the operator to read. Nothing here changes anything.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::plugins::PluginStanding;
use super::request::Timestamp;
use super::{OperatorApi, plugins};
use crate::base::clock::epoch_seconds;
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

/// The settings in effect, under the names by which they are set.
pub(crate) fn config(api: &OperatorApi) -> Config {
    Config {
        base_url: Some(api.base_url.clone()),
        ..Config::clone(&api.config)
    }
}
