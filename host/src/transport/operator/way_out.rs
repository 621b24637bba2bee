//! A way out for the operator: the proxy, lent for a short time with the rights of one plugin.
//!
//! What a plugin can reach is then tried with any program, as the plugin and its programs would. The credential is in the answer
//! and nowhere else.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::plugins::{ActRequest, entry, invalid};
use super::request::timestamp;
use crate::base::clock::epoch_seconds;
use crate::catalogue::revision::{CallRunner, Revision};
use crate::contract::error::{Code, Refusal};
use crate::egress::Egress;
use crate::egress::proxy::{Proxy, ProxyLease};
use crate::registry::Registry;

/// For how long a way out is lent, by default and at most, in seconds.
pub(crate) const SECONDS: (u64, u64) = (60, 600);

/// What lends a way out.
pub(crate) struct ProxyLender {
    pub(crate) registry: Arc<Registry>,
    pub(crate) egress: Arc<Egress>,
    pub(crate) proxy: Arc<Proxy>,
}

impl ProxyLender {
    /// Lends the rights of what serves, as they are now: they end with the revision, too.
    pub(crate) fn lend(&self, name: &str, asked: &ActRequest) -> Result<Value, Refusal> {
        let (mark, seconds) = (asked.mark()?, asked.seconds.unwrap_or(SECONDS.0));
        if !(1..=SECONDS.1).contains(&seconds) {
            let rule = format!("must be from 1 to {}", SECONDS.1);
            return Err(invalid("seconds", &rule));
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
        let told = json!({
            "plugin": name,
            "revision": serving.number,
            "rights": serving.rights,
            "proxy": format!("http://{address}"),
            "user": user,
            "password": password,
            "url": format!("http://{user}:{password}@{address}"),
            "seconds": seconds,
            "expiresAt": timestamp(epoch_seconds(SystemTime::now()).saturating_add(seconds)),
        });
        self.proxy.hold(lease, time);
        Ok(told)
    }
}
