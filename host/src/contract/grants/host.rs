//! The hosts of an atom: one name, all names below one, or any.
//!
//! Names alone. An address would be a promise about a machine that nobody reads, and the resolver's answer is judged at
//! each call in any case; so a name that can never have a public address is refused here, and no other.

use std::fmt;

use super::atom::AtomRule;

/// Names, and all below them, that never lead to a public address: reserved ones, and those that private networks take
/// for themselves and that the public root does not delegate. The SDK tells plugins of the same ones.
pub(crate) const NEVER_PUBLIC: [&str; 14] = [
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

/// Whether a name, in lower case and without a last dot, can never lead to a public address. One of a single label is
/// looked up in whatever network this host stands in.
pub(crate) fn is_never_public(name: &str) -> bool {
    !name.contains('.')
        || NEVER_PUBLIC
            .iter()
            .any(|never| name == *never || is_below(name, never))
}

/// Which hosts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum HostPattern {
    /// `*`: any public host.
    Any,
    /// `*.example.com`: every name below this one, at any depth, and not the name itself.
    Below(String),
    /// `example.com`.
    Name(String),
}

impl HostPattern {
    /// A host name, or `*.` and one.
    pub(crate) fn read(text: &str) -> Result<Self, AtomRule> {
        let wildcard = || AtomRule::Wildcard {
            value: text.to_owned(),
        };
        match text.strip_prefix("*.") {
            Some(above) if above.contains('*') || !above.contains('.') => Err(wildcard()),
            Some(above) => name(above).map(HostPattern::Below),
            None if text.contains('*') => Err(wildcard()),
            None => name(text).map(HostPattern::Name),
        }
    }

    /// As [`HostPattern::read`], where `*` may stand for any public host.
    pub(crate) fn read_or_any(text: &str) -> Result<Self, AtomRule> {
        match text {
            "*" => Ok(HostPattern::Any),
            _ => Self::read(text),
        }
    }

    /// The hosts that are in both. Two sets of names overlap only where one is within the other.
    pub(crate) fn meet<'p>(&'p self, other: &'p HostPattern) -> Option<&'p HostPattern> {
        if self.contains(other) {
            return Some(other);
        }
        other.contains(self).then_some(self)
    }

    /// Whether a name is one of these hosts.
    pub(crate) fn has(&self, name: &str) -> bool {
        match self {
            HostPattern::Any => true,
            HostPattern::Below(above) => is_below(name, above),
            HostPattern::Name(one) => one == name,
        }
    }

    /// Whether this is one host and no more.
    pub(crate) fn is_one(&self) -> bool {
        match self {
            HostPattern::Name(_) => true,
            HostPattern::Any | HostPattern::Below(_) => false,
        }
    }

    fn contains(&self, other: &HostPattern) -> bool {
        match (self, other) {
            (HostPattern::Any, _) => true,
            (HostPattern::Below(above), HostPattern::Name(name)) => is_below(name, above),
            (HostPattern::Below(above), HostPattern::Below(name)) => {
                name == above || is_below(name, above)
            }
            (HostPattern::Name(one), HostPattern::Name(two)) => one == two,
            (HostPattern::Below(_) | HostPattern::Name(_), HostPattern::Any)
            | (HostPattern::Name(_), HostPattern::Below(_)) => false,
        }
    }
}

fn is_below(name: &str, above: &str) -> bool {
    name.strip_suffix(above)
        .is_some_and(|labels| labels.ends_with('.'))
}

/// A host name as a resolver takes it: in lower case, international labels encoded.
fn name(text: &str) -> Result<String, AtomRule> {
    let broken = || AtomRule::Host {
        host: text.to_owned(),
    };
    let name = match url::Host::parse(text).map_err(|_| broken())? {
        url::Host::Domain(name) => name,
        url::Host::Ipv4(_) | url::Host::Ipv6(_) => {
            return Err(AtomRule::Address {
                address: text.to_owned(),
            });
        }
    };
    if name.len() > 253 || !name.split('.').all(is_label) {
        return Err(broken());
    }
    if is_never_public(&name) {
        return Err(AtomRule::NotPublic {
            host: text.to_owned(),
        });
    }
    Ok(name)
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// A port in decimal, without a sign or a leading zero.
pub(crate) fn port(text: &str) -> Result<u16, AtomRule> {
    let decimal = !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
    let port = text.parse().ok().filter(|_| decimal);
    port.ok_or_else(|| AtomRule::Port {
        port: text.to_owned(),
    })
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostPattern::Any => f.write_str("*"),
            HostPattern::Below(above) => write!(f, "*.{above}"),
            HostPattern::Name(name) => f.write_str(name),
        }
    }
}
