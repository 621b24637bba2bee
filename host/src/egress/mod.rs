//! The one gate to the network: everything that a plugin causes to leave this process goes through here.
//!
//! - `policy`: whether a request may leave. Pure.
//! - `resolver`, `dialer`: from a name to judged addresses, and connections to those alone.
//! - `overhead`: what a server may say on a connection beside its answers.
//! - `message`, `decode`: what is sent and what comes back, bounded.
//! - `own`: what is this server itself, where no plugin may go.
//! - `secret`, `redact`: what the operator adds to requests, and how it is taken out of answers.
//! - `fetch`: one request with its redirects, each hop judged anew.
//! - `question`, `doh`: what is asked of a DNS resolver, as a fetch from where the operator says that it is.
//! - `line`: one line to a server and its answer.
//! - `proxy`: the same gate for programs that run for a plugin and speak to an HTTP proxy.
//! - `traffic`: what a plugin and each of its callers may have under way.
//! - `audit`: one line for whatever leaves or was refused.
//! - `operators_own`: the operator's own traffic, exempt by name and audited too.
//!
//! No address check can be switched off. For its own network an operator names single destinations (`egress.connect_to`), which
//! only a grant that names the host leads to; what is not named is judged as ever.

mod audit;
mod decode;
mod dialer;
mod doh;
mod fetch;
mod line;
mod message;
pub(crate) mod operators_own;
mod overhead;
mod own;
mod policy;
pub(crate) mod proxy;
mod question;
mod redact;
mod resolver;
mod secret;
#[cfg(test)]
mod tests;
mod traffic;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use self::dialer::{Dialer, HttpVersions, TlsError};
use self::doh::DohEndpoints;
pub(crate) use self::doh::{QueryError, Question};
pub(crate) use self::line::LineQuery;
pub(crate) use self::message::{Caps, FetchError, Late, PluginRequest, Response, SizeExcess};
use self::own::Own;
pub(crate) use self::policy::EgressDenial;
use self::resolver::{NameResolver, ServersError};
pub(crate) use self::secret::{Secret, SecretError};
use self::traffic::{PluginTraffic, TrafficKind};
use crate::base::line_rate::LineRate;
use crate::config;
use crate::contract::grants::{AtomError, Rights};

/// A gate that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EgressError {
    #[error("egress.extra_roots: {0}")]
    Tls(#[from] TlsError),
    #[error("egress.dns_servers: {0}")]
    Servers(#[from] ServersError),
    #[error("dns.resolvers: {0}")]
    Resolvers(#[from] AtomError),
}

/// The gate of one process.
pub(crate) struct Egress {
    /// Where the operator sends requests for a host and a port instead.
    connect_to: HashMap<(String, u16), Instead>,
    own: Own,
    resolver: NameResolver,
    /// Where questions go.
    endpoints: DohEndpoints,
    dialer: Dialer,
    /// What is under way for each plugin, shared by its revisions. Never held over an await.
    traffic: Mutex<TrafficOfPlugins>,
}

/// An address that the operator named, which nobody judges.
#[derive(Clone, Copy)]
struct Instead {
    address: SocketAddr,
    /// Whether it counts as public. Otherwise it is of the operator's own network: only a grant that names the host leads there.
    public: bool,
}

type TrafficOfPlugins = HashMap<(Arc<str>, TrafficKind), Weak<PluginTraffic>>;

/// The gate as one revision of a plugin stands before it.
pub(crate) struct EgressClient {
    egress: Arc<Egress>,
    plugin: Arc<str>,
    revision: u64,
    rights: Arc<Rights>,
    secrets: Arc<[Secret]>,
    traffic: Arc<PluginTraffic>,
    questions: Arc<PluginTraffic>,
    lines: Arc<LineRate>,
    versions: HttpVersions,
}

impl Egress {
    /// `base_url` is where clients reach this server, and plugins do not.
    ///
    /// # Errors
    /// A setting names what cannot be used.
    pub(crate) fn open(
        settings: &config::EgressSettings,
        dns: &config::DnsSettings,
        base_url: &str,
    ) -> Result<Self, EgressError> {
        let mut connect_to = HashMap::new();
        for named in settings.redirected() {
            let (host, port) = (&named.host, named.port);
            let (address, public) = (named.address, named.public);
            if public {
                tracing::warn!(
                    target: "egress", host, port, %address,
                    "egress.connect_to: every plugin with `public` or a wildcard reaches this address, which is not \
                     checked",
                );
            } else {
                tracing::info!(
                    target: "egress", host, port, %address,
                    "egress.connect_to: plugins with a grant that names this host reach this address, which is not \
                     checked",
                );
            }
            connect_to.insert((host.clone(), port), Instead { address, public });
        }
        Ok(Self {
            connect_to,
            own: Own::new(base_url),
            resolver: NameResolver::new(&settings.dns_servers)?,
            endpoints: DohEndpoints::new(&dns.resolvers)?,
            dialer: Dialer::new(&settings.extra_roots)?,
            traffic: Mutex::default(),
        })
    }

    /// How often a connection was asked for.
    pub(crate) fn dials(&self) -> u64 {
        self.dialer.dials()
    }

    /// For one revision with these rights and secrets.
    pub(crate) fn door(
        self: &Arc<Self>,
        plugin: &str,
        revision: u64,
        rights: Rights,
        secrets: Vec<Secret>,
    ) -> EgressClient {
        let plugin: Arc<str> = plugin.into();
        let traffic = self.traffic(&plugin, TrafficKind::Requests);
        EgressClient {
            egress: Arc::clone(self),
            revision,
            rights: Arc::new(rights),
            secrets: secrets.into(),
            lines: Arc::clone(&traffic.lines),
            traffic,
            questions: self.traffic(&plugin, TrafficKind::Questions),
            plugin,
            versions: HttpVersions::Any,
        }
    }

    fn traffic(&self, plugin: &Arc<str>, kind: TrafficKind) -> Arc<PluginTraffic> {
        let mut all = self.traffic.lock();
        all.retain(|_, one| one.strong_count() > 0);
        let key = (Arc::clone(plugin), kind);
        if let Some(shared) = all.get(&key).and_then(Weak::upgrade) {
            return shared;
        }
        let made = Arc::new(PluginTraffic::new(kind));
        all.insert(key, Arc::downgrade(&made));
        made
    }
}

impl EgressClient {
    pub(crate) fn plugin(&self) -> &str {
        &self.plugin
    }
}
