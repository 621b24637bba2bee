//! How plugins reach the network, and what of the operator's own network they are sent to.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;

settings! {
    /// How plugins reach the network.
    EgressSettings "egress" {
        /// Destinations that are sent somewhere else: `"api.example.com:443" = "10.0.0.5:8443"`. The address is not
        /// judged, and only a grant that names the host reaches it; `{ to = "10.0.0.5:8443", public = true }` opens it
        /// to `public` and wildcards too.
        connect_to: BTreeMap<String, Redirection> = BTreeMap::new(), by destinations;
        /// Name servers, such as `9.9.9.9:53`. Without any, those of the system are used.
        dns_servers: Vec<SocketAddr> = Vec::new();
        /// PEM files with root certificates that are trusted beside those of the system.
        extra_roots: Vec<PathBuf> = Vec::new();
    }
}

/// Where requests for a host and a port are sent.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(from = "WrittenConnectTo")]
pub(crate) struct Redirection {
    to: SocketAddr,
    public: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected an address and a port, such as \"10.0.0.5:8443\", or a table with `to` and optionally \
        `public`"
)]
enum WrittenConnectTo {
    Address(SocketAddr),
    Row {
        to: SocketAddr,
        #[serde(default)]
        public: bool,
    },
}

impl From<WrittenConnectTo> for Redirection {
    fn from(written: WrittenConnectTo) -> Self {
        match written {
            WrittenConnectTo::Address(to) => Self { to, public: false },
            WrittenConnectTo::Row { to, public } => Self { to, public },
        }
    }
}

/// Requests for a host and a port go to an address.
#[derive(Clone, Debug)]
pub(crate) struct ConnectTo {
    /// In lower case, international labels encoded.
    pub(crate) host: String,
    /// As the URL has it.
    pub(crate) port: u16,
    /// Where they are sent.
    pub(crate) address: SocketAddr,
    /// Whether `public` and wildcards reach it. Otherwise it takes a grant that names the host.
    pub(crate) public: bool,
}

impl EgressSettings {
    /// Destinations that are somewhere else than their names say. Nothing else may have an address that is not public.
    pub(crate) fn redirected(&self) -> impl Iterator<Item = ConnectTo> {
        self.connect_to.iter().filter_map(connect_to)
    }
}

/// A host name as a URL has it, and a port.
fn connect_to((from, redirection): (&String, &Redirection)) -> Option<ConnectTo> {
    let (host, port) = from.rsplit_once(':')?;
    let is_name = matches!(url::Host::parse(host), Ok(url::Host::Domain(name)) if name == host);
    Some(ConnectTo {
        host: host.to_owned(),
        port: port.parse().ok().filter(|_| is_name)?,
        address: redirection.to,
        public: redirection.public,
    })
}

fn destinations(
    name: &'static str,
    written: &BTreeMap<String, Redirection>,
) -> Result<(), ConfigError> {
    match written.iter().find(|row| connect_to(*row).is_none()) {
        Some((wrong, _)) => {
            let rule = "a host name in lower case and a port, such as api.example.com:443";
            Err(ConfigError::value(name, wrong, rule))
        }
        None => Ok(()),
    }
}
