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

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Semaphore, SemaphorePermit};

pub(crate) use doh::{QueryError, Question};
pub(crate) use line::LineQuery;
pub(crate) use message::{Caps, Excess, FetchError, Late, Request, Response};
pub(crate) use policy::Denial;
pub(crate) use secret::{Binding, SECRETS_MAX, Secret, SecretError};

use crate::config;
use crate::metering::LineRate;
use crate::registry::grants::{AtomError, Rights};
use dialer::{Dialer, TlsError, Versions};
use doh::Endpoints;
use own::Own;
use resolver::{Resolver, ServersError};

/// Requests of one plugin under way at once; more wait, and through the proxy the next is refused.
const IN_FLIGHT_MAX: usize = 64;
/// Questions of one plugin to resolvers under way at once; more wait. A lookup asks many at a time, over one connection.
const QUESTIONS_MAX: usize = 512;
/// Tunnels of one plugin through the proxy at once; the next is refused.
const TUNNELS_MAX: usize = 64;
/// Bodies of one plugin whose codings are undone at once, each on a thread of its own; more wait.
const DECODERS_MAX: usize = 4;
/// The bodies of these and those that the answers to them may have, altogether, in KiB; more wait.
const BODIES_KIB_MAX: usize = 128 * 1024;
/// The bodies of requests that wait, in KiB: they are in this process's memory already. The next is refused.
const WAITING_KIB_MAX: usize = 64 * 1024;

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
    resolver: Resolver,
    /// Where questions go.
    endpoints: Endpoints,
    dialer: Dialer,
    /// What is under way for each plugin, shared by its revisions. Never held over an await.
    under_way: Mutex<Lanes>,
}

/// An address that the operator named, which nobody judges.
#[derive(Clone, Copy)]
struct Instead {
    address: SocketAddr,
    /// Whether it counts as public. Otherwise it is of the operator's own network: only a grant that names the host leads there.
    public: bool,
}

type Lanes = HashMap<(Arc<str>, Lane), Weak<UnderWay>>;

/// What does not wait for one another.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Lane {
    Requests,
    Questions,
}

/// What one plugin may have under way of a lane.
struct UnderWay {
    requests: Semaphore,
    /// A permit for each KiB, of both directions.
    bodies: Semaphore,
    /// The same of requests that have no place yet.
    waiting: Semaphore,
    tunnels: Semaphore,
    /// For the work of undoing codings.
    decoders: Semaphore,
    /// How many lines there may be of what was refused before anything was dialled.
    lines: Arc<LineRate>,
}

/// The gate as one revision of a plugin stands before it.
pub(crate) struct Door {
    egress: Arc<Egress>,
    plugin: Arc<str>,
    revision: u64,
    rights: Arc<Rights>,
    secrets: Arc<[Secret]>,
    under_way: Arc<UnderWay>,
    questions: Arc<UnderWay>,
    lines: Arc<LineRate>,
    versions: Versions,
}

impl Egress {
    /// `base_url` is where clients reach this server, and plugins do not.
    ///
    /// # Errors
    /// A setting names what cannot be used.
    pub(crate) fn open(settings: &config::Egress, base_url: &str) -> Result<Self, EgressError> {
        let mut connect_to = HashMap::new();
        for config::ConnectTo { host, port, address, public } in &settings.connect_to {
            match public {
                true => tracing::warn!(
                    target: "egress", host, port, %address,
                    "egress.connect_to: every plugin with `public` or a wildcard reaches this address, which is not judged",
                ),
                false => tracing::info!(
                    target: "egress", host, port, %address,
                    "egress.connect_to: plugins with a grant that names this host reach this address, which is not judged",
                ),
            }
            connect_to.insert((host.clone(), *port), Instead { address: *address, public: *public });
        }
        Ok(Self {
            connect_to,
            own: Own::new(base_url),
            resolver: Resolver::new(&settings.dns_servers)?,
            endpoints: Endpoints::new(&settings.resolvers)?,
            dialer: Dialer::new(&settings.extra_roots)?,
            under_way: Mutex::default(),
        })
    }

    /// How often a connection was asked for.
    pub(crate) fn dials(&self) -> u64 {
        self.dialer.dials()
    }

    /// For one revision with these rights and secrets.
    pub(crate) fn door(self: &Arc<Self>, plugin: &str, revision: u64, rights: Rights, secrets: Vec<Secret>) -> Door {
        let plugin: Arc<str> = plugin.into();
        let (under_way, questions) =
            (self.under_way(&plugin, Lane::Requests), self.under_way(&plugin, Lane::Questions));
        let (egress, rights, lines) = (Arc::clone(self), Arc::new(rights), Arc::clone(&under_way.lines));
        let (secrets, versions) = (secrets.into(), Versions::Any);
        Door { egress, plugin, revision, rights, secrets, under_way, questions, lines, versions }
    }

    fn under_way(&self, plugin: &Arc<str>, lane: Lane) -> Arc<UnderWay> {
        let mut all = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, one| one.strong_count() > 0);
        let key = (Arc::clone(plugin), lane);
        if let Some(shared) = all.get(&key).and_then(Weak::upgrade) {
            return shared;
        }
        let made = Arc::new(UnderWay {
            requests: Semaphore::new(match lane {
                Lane::Requests => IN_FLIGHT_MAX,
                Lane::Questions => QUESTIONS_MAX,
            }),
            bodies: Semaphore::new(BODIES_KIB_MAX),
            waiting: Semaphore::new(WAITING_KIB_MAX),
            tunnels: Semaphore::new(TUNNELS_MAX),
            decoders: Semaphore::new(DECODERS_MAX),
            lines: Arc::default(),
        });
        all.insert(key, Arc::downgrade(&made));
        made
    }
}

impl Door {
    pub(crate) fn plugin(&self) -> &str {
        &self.plugin
    }
}

impl UnderWay {
    /// Waits for a place for one request with a body of so many bytes, whose answer has one of at most so many.
    ///
    /// # Errors
    /// The bodies that wait are as many bytes as they may be.
    async fn place(&self, body_bytes: usize, answer_bytes_max: usize) -> Result<Place<'_>, FetchError> {
        let _waiting = self.waiting.try_acquire_many(kib(body_bytes)).map_err(|_| FetchError::Full)?;
        let request = self.requests.acquire().await.map_err(|_| FetchError::Busy)?;
        let bodies = self.bodies.acquire_many(kib(body_bytes) + kib(answer_bytes_max)).await;
        Ok((request, bodies.map_err(|_| FetchError::Busy)?))
    }
}

/// Of one request, until it is dropped.
type Place<'u> = (SemaphorePermit<'u>, SemaphorePermit<'u>);

/// The permits for so many bytes.
fn kib(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX / 2)
}
