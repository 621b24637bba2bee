//! The one gate to the network: everything that a plugin causes to leave this process goes through here.
//!
//! - `address`: which addresses are public. Pure.
//! - `policy`: whether a request may leave. Pure.
//! - `resolver`, `dialer`: from a name to judged addresses, and connections to those alone.
//! - `message`, `decode`: what is sent and what comes back, bounded.
//! - `secret`: what the operator adds to requests.
//! - `fetch`: one request with its redirects, each hop judged anew; one audit line each.
//! - `operators_own`: the operator's own traffic, exempt by name and audited too.
//!
//! No address check can be switched off. For its own network an operator names single destinations (`egress.connect_to`), and
//! what is not named is judged as ever.

mod address;
mod decode;
mod dialer;
mod fetch;
mod message;
pub(crate) mod operators_own;
mod policy;
mod resolver;
mod secret;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Semaphore;

pub(crate) use message::{Caps, Excess, FetchError, Late, Request, Response};
pub(crate) use policy::Denial;
pub(crate) use secret::{Binding, SECRETS_MAX, Secret, SecretError};

use crate::config;
use crate::registry::grants::Grants;
use dialer::{Dialer, TlsError};
use resolver::{Resolver, ServersError};

/// Requests of one plugin under way at once; more wait.
const IN_FLIGHT_MAX: usize = 64;

/// A gate that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EgressError {
    #[error("egress.extra_roots: {0}")]
    Tls(#[from] TlsError),
    #[error("egress.dns_servers: {0}")]
    Servers(#[from] ServersError),
}

/// The gate of one process.
pub(crate) struct Egress {
    /// Where the operator sends requests for a host and a port instead.
    connect_to: HashMap<(String, u16), SocketAddr>,
    resolver: Resolver,
    dialer: Dialer,
    /// What is under way for each plugin, shared by its revisions. Never held over an await.
    in_flight: Mutex<HashMap<Arc<str>, Weak<Semaphore>>>,
}

/// The gate as one revision of a plugin stands before it.
pub(crate) struct Door {
    egress: Arc<Egress>,
    plugin: Arc<str>,
    revision: u64,
    rights: Grants,
    secrets: Vec<Secret>,
    in_flight: Arc<Semaphore>,
}

impl Egress {
    /// # Errors
    /// A setting names what cannot be used.
    pub(crate) fn open(settings: &config::Egress) -> Result<Self, EgressError> {
        let mut connect_to = HashMap::new();
        for config::ConnectTo { host, port, address } in &settings.connect_to {
            tracing::warn!(
                target: "egress", host, port, %address,
                "egress.connect_to: requests for this destination go to this address, which is not judged",
            );
            connect_to.insert((host.clone(), *port), *address);
        }
        Ok(Self {
            connect_to,
            resolver: Resolver::new(&settings.dns_servers)?,
            dialer: Dialer::new(&settings.extra_roots)?,
            in_flight: Mutex::default(),
        })
    }

    /// How often a connection was asked for.
    pub(crate) fn dials(&self) -> u64 {
        self.dialer.dials()
    }

    /// For one revision with these rights and secrets.
    pub(crate) fn door(self: &Arc<Self>, plugin: &str, revision: u64, rights: Grants, secrets: Vec<Secret>) -> Door {
        let plugin: Arc<str> = plugin.into();
        let in_flight = self.in_flight_of(&plugin);
        Door { egress: Arc::clone(self), plugin, revision, rights, secrets, in_flight }
    }

    fn in_flight_of(&self, plugin: &Arc<str>) -> Arc<Semaphore> {
        let mut all = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, one| one.strong_count() > 0);
        if let Some(shared) = all.get(plugin).and_then(Weak::upgrade) {
            return shared;
        }
        let made = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
        all.insert(Arc::clone(plugin), Arc::downgrade(&made));
        made
    }
}
