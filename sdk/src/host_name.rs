//! What a host name tells by itself, before anybody is asked for it. Pure: using it imports nothing.
//!
//! Names come in lower case or not, with a dot at their end or not, and in ASCII: what IDNA makes of other letters, full-width
//! digits and ideographic stops among them, must be judged, and not what stood there before.

/// Names that, with all below them, never lead to a public address: reserved ones, and those that private networks take for
/// themselves and that the public root does not delegate. The host's gate and grants go by the same ones.
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

/// Whether a name, in lower case, can never lead to a public address. One of a single label is looked up in whatever network
/// the host stands in.
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

/// Whether a URL's host of this spelling is an IPv4 address, or a broken one, in whatever form: its last label is a number,
/// decimal or hexadecimal (the URL standard's "ends in a number").
pub fn ends_in_number(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let last = name.rsplit('.').next().unwrap_or_default();
    let hexadecimal = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()),
    }
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
}
