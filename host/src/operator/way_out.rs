//! A way out for the operator: the proxy, lent for a short time with the rights of one plugin.
//!
//! What a plugin can reach is then tried with any program, as the plugin and its programs would. The credential is in the answer
//! and nowhere else.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::plugins::{ActRequest, invalid, refusal};
use super::request::timestamp;
use crate::app::App;
use crate::auth::api_key::epoch_seconds;
use crate::egress::proxy::ProxyLease;
use crate::error::{Code, Refusal};
use crate::registry::RegistryError;
use crate::registry::revision::Runner;

/// For how long a way out is lent, by default and at most, in seconds.
pub(super) const SECONDS: (u64, u64) = (60, 600);

/// Lends the rights of what serves, as they are now: they end with the revision, too.
pub(super) fn lend(app: &App, name: &str, asked: &ActRequest) -> Result<Value, Refusal> {
    let (mark, seconds) = (asked.mark()?, asked.seconds.unwrap_or(SECONDS.0));
    if !(1..=SECONDS.1).contains(&seconds) {
        return Err(invalid("seconds", &format!("must be from 1 to {}", SECONDS.1)));
    }
    if !app.registry.manifest().entries.iter().any(|entry| entry.name == name) {
        return Err(refusal(&RegistryError::NoPlugin { name: name.to_owned() }));
    }
    let catalogue = app.registry.current();
    let serving = catalogue.revisions().iter().find(|revision| *revision.plugin == *name);
    let Some(serving) = serving.filter(|revision| !matches!(revision.runner, Runner::Off(_))) else {
        return Err(Refusal::new(Code::Conflict, format!("no revision of `{name}` runs whose rights could be lent")));
    };
    // The operator's secrets are bound to what the plugin asks for itself.
    let door = app.egress.door(name, serving.number, serving.rights.clone(), Vec::new());
    let (time, lent_to) = (Duration::from_secs(seconds), format!("operator:{}", mark.by));
    let lease = app.proxy.lend(door, &lent_to, time, &serving.gone());
    let lease = lease.map_err(|error| Refusal::new(Code::ServiceUnavailable, error.to_string()).retry_after(1))?;
    let ProxyLease { user, password, .. } = &lease;
    let address = app.proxy.address();
    tracing::info!(
        target: "egress", plugin = name, revision = serving.number, by = mark.by, why = mark.why, seconds,
        "a way out was lent",
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
    app.proxy.hold(lease, time);
    Ok(told)
}
