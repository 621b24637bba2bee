//! A way out for the operator: the proxy, lent for a short time with the rights of one plugin.
//!
//! What a plugin can reach is then tried with any program, as the plugin and its programs would. The credential is in the answer
//! and nowhere else.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::plugins::{ActRequest, entry};
use super::request::Timestamp;
use crate::base::clock::epoch_seconds;
use crate::catalogue::revision::{CallRunner, Revision};
use crate::contract::error::{Code, Refusal};
use crate::contract::grants::Grants;
use crate::egress::Egress;
use crate::egress::proxy::{Proxy, ProxyLease};
use crate::registry::Registry;

/// For how long a way out is lent, in seconds.
const SECONDS_DEFAULT: u64 = 60;
const SECONDS_MAX: u64 = 600;

/// For how long.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LendOrder {
    /// How long the credential is valid, from 1 to 600. Default: 60.
    #[schemars(range(min = 1, max = SECONDS_MAX))]
    pub(crate) seconds: Option<u64>,
}

/// A way out, with its credential.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LentProxy {
    pub(crate) plugin: String,
    pub(crate) revision: u64,
    pub(crate) rights: Grants,
    proxy: String,
    user: String,
    password: String,
    /// The proxy with the credential in it.
    pub(crate) url: String,
    seconds: u64,
    pub(crate) expires_at: Timestamp,
}

/// What lends a way out.
pub(crate) struct ProxyLender {
    pub(crate) registry: Arc<Registry>,
    pub(crate) egress: Arc<Egress>,
    pub(crate) proxy: Arc<Proxy>,
}

impl ProxyLender {
    /// Lends the rights of what serves, as they are now: they end with the revision, too.
    pub(crate) fn lend(
        &self,
        name: &str,
        asked: &ActRequest<LendOrder>,
    ) -> Result<LentProxy, Refusal> {
        let mark = asked.mark()?;
        let seconds = asked.order.seconds.unwrap_or(SECONDS_DEFAULT);
        if !(1..=SECONDS_MAX).contains(&seconds) {
            let rule = format!("must be from 1 to {SECONDS_MAX}");
            return Err(Refusal::invalid(Some("seconds"), &rule));
        }
        entry(&self.registry.manifest(), name)?;
        let snapshot = self.registry.current();
        let serving = snapshot.catalogue.revision_of(name);
        let is_running = |revision: &&Revision| !matches!(revision.runner, CallRunner::Off(_));
        let Some(serving) = serving.filter(is_running) else {
            let message = format!(
                "plugin `{name}` has no running revision whose rights a proxy credential could carry"
            );
            return Err(Refusal::new(Code::Conflict, message));
        };
        // The operator's secrets are bound to what the plugin asks for itself.
        let door = self
            .egress
            .door(name, serving.number, serving.rights.clone(), Vec::new());
        let time = Duration::from_secs(seconds);
        let lent_to = format!("operator:{}", mark.by);
        let lease = self.proxy.lend(door, &lent_to, time, &serving.gone());
        let lease = lease.map_err(|error| {
            Refusal::new(Code::ServiceUnavailable, error.to_string()).retry_after(1)
        })?;
        let ProxyLease { user, password, .. } = &lease;
        let address = self.proxy.address();
        tracing::info!(
            target: "egress", plugin = name, revision = serving.number, by = mark.by, why = mark.why, seconds,
            "a proxy credential was issued",
        );
        let expiry = epoch_seconds(SystemTime::now()).saturating_add(seconds);
        let lent = LentProxy {
            plugin: name.to_owned(),
            revision: serving.number,
            rights: serving.rights.all(),
            proxy: format!("http://{address}"),
            url: format!("http://{user}:{password}@{address}"),
            user: user.clone(),
            password: password.clone(),
            seconds,
            expires_at: Timestamp::of(expiry),
        };
        self.proxy.hold(lease, time);
        Ok(lent)
    }
}
