//! What a host name says by itself, before it is resolved. Pure: using it imports nothing.
//!
//! Names are in ASCII, with or without a trailing dot. Convert other letters with IDNA first, full-width
//! digits and ideographic full stops among them: check the result, not the original text.

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
