//! What is this server itself: the name in its base URL, and every address of the machine that it runs on.
//!
//! A plugin that reaches it would have calls make calls, and from within the machine past whatever guards it from outside. So
//! neither is of the public network for a plugin, also where the whole world may connect to it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::OnceLock;

use url::Url;

/// Where clients reach this server.
pub(super) struct Own {
    /// The host and port of the base URL.
    base: Option<(String, u16)>,
}

impl Own {
    pub(super) fn new(base_url: &str) -> Self {
        let base = Url::parse(base_url).ok();
        Self {
            base: base
                .and_then(|url| Some((url.host_str()?.to_owned(), url.port_or_known_default()?))),
        }
    }

    /// Whether clients reach this server by that name and port. The addresses that the name leads to may be shared with others,
    /// as those of a network before it are, and are not its own for that.
    pub(super) fn is_named(&self, host: &str, port: u16) -> bool {
        self.base
            .as_ref()
            .is_some_and(|(own, own_port)| own == host && *own_port == port)
    }
}

/// Whether an address is one of this machine's. Asks the system and sends nothing: a socket can be bound to an own address alone.
/// Where the system lets it be bound to any (`ip_nonlocal_bind`), its routing is asked instead, which knows first addresses
/// and none of those beside them.
pub(super) fn is_of_this_machine(address: IpAddr) -> bool {
    static ANY_V4: OnceLock<bool> = OnceLock::new();
    static ANY_V6: OnceLock<bool> = OnceLock::new();
    // Addresses for documentation, which nobody has (RFC 5737, RFC 3849).
    let binds_to_any = match address {
        IpAddr::V4(_) => ANY_V4.get_or_init(|| can_bind(Ipv4Addr::new(192, 0, 2, 1).into())),
        IpAddr::V6(_) => {
            ANY_V6.get_or_init(|| can_bind(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into()))
        }
    };
    if *binds_to_any {
        is_source_of_its_own(address)
    } else {
        can_bind(address)
    }
}

fn can_bind(address: IpAddr) -> bool {
    UdpSocket::bind(SocketAddr::new(address, 0)).is_ok()
}

/// Whether what would go to the address would also come from it.
fn is_source_of_its_own(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Any port: none is contacted.
    let source = UdpSocket::bind(SocketAddr::new(any, 0)).and_then(|socket| {
        socket
            .connect(SocketAddr::new(address, 9))
            .and_then(|()| socket.local_addr())
    });
    source.is_ok_and(|source| source.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_own_addresses_are_told_from_all_others() {
        for own in ["127.0.0.1", "127.0.0.2", "127.255.255.254"] {
            assert!(
                is_of_this_machine(own.parse().expect("an address")),
                "{own}"
            );
        }
        // For documentation and benchmarks: nobody has these, and nothing is sent to them.
        for other in ["192.0.2.1", "198.51.100.7", "198.18.0.1", "2001:db8::1"] {
            let other: IpAddr = other.parse().expect("an address");
            assert!(
                !is_of_this_machine(other) && !is_source_of_its_own(other),
                "{other}"
            );
        }
        assert!(is_source_of_its_own(
            "127.0.0.1".parse().expect("an address")
        ));
    }

    #[test]
    fn the_base_url_names_one_host_and_one_port() {
        let own = Own::new("https://API.example.com/v1");
        assert!(own.is_named("api.example.com", 443));
        assert!(!own.is_named("api.example.com", 80) && !own.is_named("www.example.com", 443));
        assert!(Own::new("http://api.example.com:8080").is_named("api.example.com", 8080));
    }
}
