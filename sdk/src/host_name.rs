//! What a host name says by itself, before it is resolved. Pure: using it imports nothing.
//!
//! Names are in ASCII, with or without a trailing dot. Convert other letters with IDNA first, full-width
//! digits and ideographic full stops among them: check the result, not the original text.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Names that, with all names below them, never lead to a public address: reserved names, and names that
/// private networks use and the public root does not delegate. The host's gate and grants use the same
/// list.
pub const NEVER_PUBLIC: [&str; 14] = [
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "home.arpa",
    "lan",
    "svc",
    "invalid",
    "alt",
    "onion",
];

/// Whether a lower-case name can never lead to a public address. That includes single labels, which are
/// looked up in the host's own network.
pub fn is_never_public(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_below = |above: &str| {
        name.strip_suffix(above)
            .is_some_and(|labels| labels.ends_with('.'))
    };
    !name.contains('.')
        || NEVER_PUBLIC
            .iter()
            .any(|never| name == *never || is_below(never))
}

/// Whether a URL parser takes this host for an IPv4 address, valid or not: its last label is a decimal or
/// hexadecimal number (the URL standard's "ends in a number").
pub fn ends_in_number(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let last = name.rsplit('.').next().unwrap_or_default();
    let hexadecimal = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// Whether an address belongs to the public Internet, as at the gate.
pub fn is_public_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast()
        || matches!(
            (a, b, c),
            (0, _, _) | (100, 64..=127, _) | (192, 0, 0) | (192, 88, 99) | (198, 18..=19, _)
        )
        || a >= 240
        // The metadata service of a cloud.
        || address == Ipv4Addr::new(168, 63, 129, 16);
    !is_special
}

/// What the registries hand out, and of that nothing that carries another address.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    (0x2000..0x4000).contains(&a)
        && !matches!(
            (a, b),
            (0x2001, 0..=0x1ff | 0xdb8) | (0x2002, _) | (0x3fff, 0..=0xfff)
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_ends_in_a_number_is_an_address() {
        for name in [
            "1.2.3.4",
            "1.2.3.4.",
            "2130706433",
            "example.123",
            "0x7f.1",
            "0x7f000001",
            "a.0X7F",
            "a.0x",
            "09",
        ] {
            assert!(ends_in_number(name), "{name}");
        }
        for name in [
            "",
            ".",
            "example.com",
            "3com.com",
            "1.2.3.4.example",
            "a.0xg",
            "a.12b",
            "1.2.3.4..",
            "a.-1",
        ] {
            assert!(!ends_in_number(name), "{name}");
        }
    }
    #[test]
    fn names_of_no_public_network_are_known_by_their_end() {
        for name in [
            "localhost",
            "intranet",
            "a.b.svc",
            "a.alt.",
            "printer.local",
            "home.arpa",
            "a.home.arpa",
            "",
        ] {
            assert!(is_never_public(name), "{name}");
        }
        for name in [
            "example.com",
            "svc.example.com",
            "a.notlocal",
            "1.0.0.127.in-addr.arpa",
            "localhost.example.",
        ] {
            assert!(!is_never_public(name), "{name}");
        }
    }

    #[test]
    fn an_address_is_public_or_of_a_special_network() {
        let is_public = |text: &str| is_public_address(text.parse().expect("an address"));
        for address in [
            "8.8.8.8",
            "100.63.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "2001:200::",
        ] {
            assert!(is_public(address), "{address}");
        }
        for address in [
            "0.0.0.1",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:8.8.8.8",
            "64:ff9b::1",
            "2001::1",
            "2001:db8::1",
            "2002::1",
            "3fff::1",
            "fc00::1",
            "fe80::1",
            "ff02::1",
        ] {
            assert!(!is_public(address), "{address}");
        }
    }
}
