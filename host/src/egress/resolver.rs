//! From a name to addresses that were judged.
//!
//! A name is looked up once for a request, absolutely and at name servers alone: neither the hosts file nor a search list may
//! turn a public name into something near. All of its addresses are judged, and what is dialled is one of these.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig,
    ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::Name;

use crate::base::address::{NotPublic, Public};

/// For one name altogether.
const LOOKUP: Duration = Duration::from_secs(5);
/// For one question to one server.
const QUESTION: Duration = Duration::from_secs(2);
/// Answers that are kept for as long as they say.
const CACHED_MAX: u64 = 1024;
/// No answer is kept for longer, so that a name which moves is followed.
const CACHED_FOR_MAX: Duration = Duration::from_secs(60);
/// More addresses of one name are no answer that somebody meant.
const ADDRESSES_MAX: usize = 64;

/// A name that leads nowhere.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookupError {
    #[error(transparent)]
    NotPublic(#[from] NotPublic),
    #[error("the name has no address")]
    NoAddress,
    #[error("the name has more than {ADDRESSES_MAX} addresses")]
    TooMany,
    #[error("the name was not resolved within {LOOKUP:?}")]
    Late,
}

/// Name servers that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the name servers cannot be used: {0}")]
pub(crate) struct ServersError(#[from] hickory_resolver::net::NetError);

/// Without a resolver, where the system names no servers, no name has an address.
pub(crate) struct NameResolver(Option<TokioResolver>);

impl NameResolver {
    /// Asks these servers, or where there are none, those of the system.
    ///
    /// # Errors
    /// The servers cannot be asked.
    pub(crate) fn new(servers: &[SocketAddr]) -> Result<Self, ServersError> {
        let mut builder = if servers.is_empty() {
            match TokioResolver::builder_tokio() {
                Ok(builder) => builder,
                Err(error) => {
                    tracing::warn!(target: "egress", %error, "the system configures no name servers: names cannot be resolved");
                    return Ok(Self(None));
                }
            }
        } else {
            let servers = servers.iter().map(|server| name_server(*server)).collect();
            let config = ResolverConfig::from_name_servers(servers);
            TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
        };
        restrict(builder.options_mut());
        Ok(Self(Some(builder.build()?)))
    }

    /// All public addresses of a name, at least one.
    ///
    /// # Errors
    /// One of them is not public, there are none, or nobody says.
    pub(crate) async fn addresses(&self, name: &str) -> Result<Vec<Public>, LookupError> {
        // A last dot makes the name absolute.
        let name = Name::from_ascii(format!("{name}.")).map_err(|_| LookupError::NoAddress)?;
        let resolver = self.0.as_ref().ok_or(LookupError::NoAddress)?;
        let lookup = tokio::time::timeout(LOOKUP, resolver.lookup_ip(name))
            .await
            .map_err(|_| LookupError::Late)?;
        let found: Vec<IpAddr> = match lookup {
            Ok(lookup) => lookup.iter().take(ADDRESSES_MAX + 1).collect(),
            Err(error) => {
                tracing::debug!(%error, "a name could not be resolved");
                return Err(LookupError::NoAddress);
            }
        };
        match found.len() {
            0 => Err(LookupError::NoAddress),
            1..=ADDRESSES_MAX => Ok(Public::judge_all(found)?),
            _ => Err(LookupError::TooMany),
        }
    }
}

fn name_server(server: SocketAddr) -> NameServerConfig {
    let (mut udp, mut tcp) = (ConnectionConfig::udp(), ConnectionConfig::tcp());
    (udp.port, tcp.port) = (server.port(), server.port());
    NameServerConfig::new(server.ip(), true, vec![udp, tcp])
}

fn restrict(options: &mut ResolverOpts) {
    options.use_hosts_file = ResolveHosts::Never;
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.timeout = QUESTION;
    options.attempts = 2;
    options.cache_size = CACHED_MAX;
    options.positive_max_ttl = Some(CACHED_FOR_MAX);
    options.negative_max_ttl = Some(CACHED_FOR_MAX);
}
