//! Peers: whose a connection or a request is, as far as addresses tell.
//!
//! An address is the other end's, or what trusted proxies say of it; an IPv6 client is its /64.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use http::HeaderMap;
use ipnet::IpNet;

const FORWARDED_FOR: &str = "x-forwarded-for";
/// Bits of an IPv6 address that are one client's.
const IPV6_BITS: u32 = 64;
/// Proxies in a row that are looked through.
const HOPS_MAX: usize = 16;

/// A client's address, as far as it tells clients apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Address(IpAddr);

/// The proxies whose word on a client's address counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrustedProxies(Vec<IpNet>);

impl Address {
    /// The network that counts as one client.
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(IpAddr::V4(address)),
            IpAddr::V6(address) => {
                let network = u128::from(address) & (u128::MAX << (128 - IPV6_BITS));
                Self(IpAddr::V6(Ipv6Addr::from(network)))
            }
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(address) => write!(f, "{address}"),
            IpAddr::V6(address) => write!(f, "{address}/{IPV6_BITS}"),
        }
    }
}

impl TrustedProxies {
    pub(crate) fn new(trusted: Vec<IpNet>) -> Self {
        Self(trusted)
    }

    /// Who sent a request: the nearest address that is no trusted proxy's. What stands before that in `X-Forwarded-For`
    /// anybody may have written; a proxy that names none speaks for itself.
    pub(crate) fn client(&self, headers: &HeaderMap, peer: IpAddr) -> Address {
        let values = headers.get_all(FORWARDED_FOR).iter();
        let named: Vec<&[u8]> = values
            .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
            .collect();
        let mut client = peer.to_canonical();
        for name in named.iter().rev().take(HOPS_MAX) {
            if !self.trusts(client) {
                break;
            }
            let Some(address) = std::str::from_utf8(name)
                .ok()
                .and_then(|name| address(name.trim()))
            else {
                break;
            };
            client = address;
        }
        Address::of(client)
    }

    /// Whether an address, in its canonical form, is one of them.
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|proxies| proxies.contains(&address))
    }
}

/// An address with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let bracketed = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(text);
    let plain = bracketed.parse::<IpAddr>().ok();
    let address = plain.or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn check(peer: &str, forwarded: &[&'static str], expected: &str) {
        let trusted = ["10.0.0.0/8", "fd00::/8"].map(|text| text.parse().expect("a network"));
        let proxies = TrustedProxies::new(trusted.to_vec());
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(
                FORWARDED_FOR,
                HeaderValue::from_bytes(value.as_bytes()).expect("a value"),
            );
        }
        let client = proxies.client(&headers, peer.parse().expect("an address"));
        assert_eq!(client.to_string(), expected, "{peer} {forwarded:?}");
    }

    #[test]
    fn the_client_is_the_nearest_address_that_is_no_trusted_proxy() {
        check("203.0.113.7", &[], "203.0.113.7");
        check("203.0.113.7", &["198.51.100.1"], "203.0.113.7");
        check("10.0.0.1", &["198.51.100.1"], "198.51.100.1");
        check("10.0.0.1", &["192.0.2.66, 198.51.100.1"], "198.51.100.1");
        check(
            "10.0.0.1",
            &["192.0.2.66", "198.51.100.1, 10.0.0.2"],
            "198.51.100.1",
        );
        check("10.0.0.1", &["198.51.100.1:4711"], "198.51.100.1");
        check("10.0.0.1", &["\u{e9}, 198.51.100.1"], "198.51.100.1");
        check("10.0.0.1", &["198.51.100.1, \u{e9}"], "10.0.0.1");
        check("10.0.0.1", &[], "10.0.0.1");
        check("10.0.0.1", &["unknown"], "10.0.0.1");
        check("10.0.0.1", &["198.51.100.1, unknown, 10.0.0.2"], "10.0.0.2");
        check("10.0.0.1", &[""], "10.0.0.1");
        check("::ffff:10.0.0.1", &["::ffff:198.51.100.1"], "198.51.100.1");
    }

    #[test]
    fn an_ipv6_client_is_its_network() {
        check("2001:db8:1:2:3:4:5:6", &[], "2001:db8:1:2::/64");
        check("fd00::1", &["2001:db8:1:2:ffff::1"], "2001:db8:1:2::/64");
        check(
            "fd00::1",
            &["[2001:db8:1:3::9]:443, fd00::2"],
            "2001:db8:1:3::/64",
        );
        check("fd00::1", &["[2001:db8:1:3::9]"], "2001:db8:1:3::/64");
    }
}
