//! DNS on loopback: knot with zones of all types, two of them signed, behind unbound, which validates and speaks DNS over HTTPS.
//!
//! [`start`] gives the lab, which starts once for all tests of the process. [`configuration`] is the text of a service's
//! configuration whose resolvers are these, or [`Scripted`] ones. [`Lab::kdig`] and [`Lab::dig`] are what others make of the
//! same answers. The zones stand in `tests/lab/dns`; beside them `refused.test` is refused, `silent.test` is not answered, and
//! `dropped.test` ends the connection.

mod records;
mod scripted;
mod servers;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::OnceLock;

use records::{ask, dig, exchange, kdig};

pub(crate) use records::{Record, Told};
pub(crate) use scripted::{Asked, Scripted, Speaks};

/// The types that a lookup asks for, by number and name.
pub(crate) const TYPES: [(u16, &str); 16] = [
    (1, "A"),
    (28, "AAAA"),
    (5, "CNAME"),
    (15, "MX"),
    (2, "NS"),
    (12, "PTR"),
    (33, "SRV"),
    (6, "SOA"),
    (16, "TXT"),
    (257, "CAA"),
    (43, "DS"),
    (48, "DNSKEY"),
    (52, "TLSA"),
    (35, "NAPTR"),
    (65, "HTTPS"),
    (64, "SVCB"),
];

/// Where a resolver speaks DNS over HTTPS.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    /// The name of its certificate.
    pub(crate) host: String,
    pub(crate) address: SocketAddr,
    /// The certificate, as PEM.
    pub(crate) root: PathBuf,
}

/// The servers.
pub(crate) struct Lab {
    /// The authoritative one, over UDP and TCP.
    authority: SocketAddr,
    /// The validating one, over UDP and TCP.
    resolver: SocketAddr,
    /// The same one over HTTPS, and HTTP/2 alone.
    pub(crate) endpoint: Endpoint,
}

/// The lab of this process.
pub(crate) fn start() -> &'static Lab {
    static LAB: OnceLock<Lab> = OnceLock::new();
    LAB.get_or_init(servers::start)
}

impl Lab {
    /// What kdig makes of the resolver's answer.
    pub(crate) fn kdig(&self, name: &str, record_type: &str) -> Told {
        kdig(self.resolver, name, record_type)
    }

    /// What the authoritative server, which does not recurse and does not validate, answers a message with. Its times to live
    /// are those of the zones.
    pub(crate) fn authority(&self, message: &[u8]) -> Vec<u8> {
        exchange(self.authority, message).expect("it answers")
    }

    /// What dig makes of the resolver's answer.
    pub(crate) fn dig(&self, name: &str, record_type: &str) -> Told {
        dig(self.resolver, name, record_type)
    }
}

/// The configuration of a service whose resolvers of these names are these. It ends within the table `[dns.resolvers]`.
pub(crate) fn configuration(resolvers: &[(&str, &Endpoint)]) -> String {
    let of = |line: &dyn Fn(&str, &Endpoint) -> String, between: &str| {
        let lines: Vec<String> = resolvers
            .iter()
            .map(|(name, endpoint)| line(name, endpoint))
            .collect();
        lines.join(between)
    };
    let roots = of(&|_, endpoint| format!("{:?}", endpoint.root), ", ");
    let connect_to = of(
        &|_, endpoint| format!("\"{}:443\" = \"{}\"", endpoint.host, endpoint.address),
        ", ",
    );
    let urls = of(
        &|name, endpoint| format!("{name} = \"https://{}/dns-query\"", endpoint.host),
        "\n",
    );
    format!(
        "[egress]\nextra_roots = [{roots}]\nconnect_to = {{ {connect_to} }}\n\n[dns.resolvers]\n{urls}\n"
    )
}
