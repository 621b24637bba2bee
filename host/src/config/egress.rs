//! How plugins reach the network, and what of the operator's own network they are sent to.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::written::{WrittenConnectTo, WrittenDns, WrittenEgress};
use super::{ConfigError, ResolverSettings, resolvers};

/// How plugins reach the network. Empty is the usual.
#[derive(Clone, Debug, Default)]
pub struct EgressSettings {
    /// Destinations that are somewhere else than their names say. Nothing else may have an address that is not public.
    pub connect_to: Vec<ConnectTo>,
    /// Name servers; none are those of the system.
    pub dns_servers: Vec<SocketAddr>,
    /// PEM files with root certificates that are trusted beside those of the system.
    pub extra_roots: Vec<PathBuf>,
    /// DNS resolvers by the names that plugins are granted them by.
    pub resolvers: BTreeMap<String, ResolverSettings>,
}

/// Requests for a host and a port go to an address.
#[derive(Clone, Debug)]
pub struct ConnectTo {
    /// In lower case, international labels encoded.
    pub host: String,
    /// As the URL has it.
    pub port: u16,
    /// Where they are sent.
    pub address: SocketAddr,
    /// Whether `public` and wildcards reach it. Otherwise it takes a grant that names the host.
    pub public: bool,
}

impl EgressSettings {
    pub(super) fn read(written: WrittenEgress, dns: WrittenDns) -> Result<Self, ConfigError> {
        Ok(Self {
            connect_to: written
                .connect_to
                .iter()
                .map(connect_to)
                .collect::<Result<_, _>>()?,
            dns_servers: written.dns_servers,
            extra_roots: written.extra_roots,
            resolvers: resolvers::resolvers(dns)?,
        })
    }
}

/// A host name as a URL has it, and a port.
fn connect_to((from, row): (&String, &WrittenConnectTo)) -> Result<ConnectTo, ConfigError> {
    let (address, public) = match row {
        WrittenConnectTo::Address(address) => (*address, false),
        WrittenConnectTo::Row { to, public } => (*to, *public),
    };
    let read = || {
        let (host, port) = from.rsplit_once(':')?;
        let is_name = matches!(url::Host::parse(host), Ok(url::Host::Domain(name)) if name == host);
        Some(ConnectTo {
            host: host.to_owned(),
            port: port.parse().ok().filter(|_| is_name)?,
            address,
            public,
        })
    };
    read().ok_or_else(|| {
        let rule = "a host name in lower case and a port, such as api.example.com:443";
        ConfigError::value("egress.connect_to", from, rule)
    })
}
