//! One grant atom: its grammar, its one spelling, and whether it is within another.
//!
//! An atom is the interface's name and, behind a colon, what of it. Each right has exactly one spelling and every other is
//! refused, so that what an operator reads is what holds, and two texts are one right only when they are equal.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::host::HostPattern;
use super::http::{HttpRight, RequestForm};
use super::{ATOMS_MAX, FEATURES};

/// The longest atom, in bytes.
const ATOM_BYTES_MAX: usize = 512;
/// The longest name, or half of a pair, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// How much of a wrong atom a message repeats, in characters.
const TOLD_CHARACTERS_MAX: usize = 200;

/// What stands behind the colon.
#[derive(Clone, Copy)]
enum AtomKind {
    /// Nothing: all of the interface or none of it.
    Bare,
    /// The most that is kept: `64MiB`. A larger size covers a smaller.
    Size,
    /// Methods and where to: `GET https://example.com/api/`, `GET,POST public`.
    Http,
    /// A host and a port: `whois.example.net:43`, or any public host on a port: `*:43`.
    HostPort,
    /// Something that the operator's configuration names: `cloudflare`.
    Name,
    /// Another plugin's operation: `plugin.operation`.
    Operation,
}

/// Every interface that has grants, and what its atoms look like. A new one is a row here.
const INTERFACES: [(&str, AtomKind); 13] = [
    ("blobs", AtomKind::Size),
    ("browser", AtomKind::Bare),
    ("cache", AtomKind::Size),
    ("config", AtomKind::Bare),
    ("dns", AtomKind::Name),
    (FEATURES, AtomKind::Operation),
    ("http", AtomKind::Http),
    ("ip-database", AtomKind::Name),
    ("jobs", AtomKind::Bare),
    ("line-query", AtomKind::HostPort),
    ("logging", AtomKind::Bare),
    ("media", AtomKind::Name),
    ("state", AtomKind::Size),
];

impl AtomKind {
    /// The form of a right, for messages.
    fn form(self) -> &'static str {
        match self {
            AtomKind::Bare => "only its name",
            AtomKind::Size => "a size, such as `64MiB`",
            AtomKind::Http => {
                "methods and a target, such as `GET https://example.com/api/` or `GET public`"
            }
            AtomKind::HostPort => "a host and a port, such as `whois.example.net:43` or `*:43`",
            AtomKind::Name => "a name of a-z, 0-9, - and _",
            AtomKind::Operation => "a plugin and one of its operations, such as `plugin.operation`",
        }
    }
}

/// An atom that breaks a rule: which one, and the value that breaks it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{atom}` {rule}")]
pub(crate) struct AtomError {
    /// As it was written, control characters escaped and cut to [`TOLD_CHARACTERS_MAX`].
    atom: String,
    rule: AtomRule,
}

impl AtomError {
    pub(crate) fn new(atom: &str, rule: AtomRule) -> Self {
        Self {
            atom: atom
                .chars()
                .take(TOLD_CHARACTERS_MAX)
                .flat_map(char::escape_debug)
                .collect(),
            rule,
        }
    }
}

/// What can be wrong with an atom.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AtomRule {
    #[error("is not a grant: it is empty")]
    Empty,
    #[error("has {bytes} bytes; a grant may have at most {ATOM_BYTES_MAX}")]
    TooLong { bytes: usize },
    #[error("has the character {character:?}, which is not allowed in a grant")]
    Character { character: char },
    #[error("is not a grant that this host knows; it knows {}", known())]
    Interface,
    #[error("does not have the form of its interface: `{interface}` takes {form}")]
    Form {
        interface: &'static str,
        form: &'static str,
    },
    #[error("must be spelled `{canonical}`")]
    Spelling { canonical: String },
    #[error("grants a size of zero")]
    ZeroSize,
    #[error("has the size `{size}`, which is too large for any machine")]
    LargeSize { size: String },
    #[error("has the method `{method}`; the methods are {}, in upper case", super::http::METHODS.join(", "))]
    Method { method: String },
    #[error("has the method `{method}` more than once")]
    MethodTwice { method: String },
    #[error("has the scheme `{scheme}`; it must be https or http")]
    Scheme { scheme: String },
    #[error("has credentials in its target; bind them as `secrets` instead")]
    Credentials,
    #[error("has a query; a grant ends with the path")]
    Query,
    #[error("has a fragment; a grant ends with the path")]
    Fragment,
    #[error("has the port `{port}`; it must be from 1 to 65535, in decimal")]
    Port { port: String },
    #[error(
        "has a wildcard in `{value}`; it may only stand for the whole first label, with at least two labels after it"
    )]
    Wildcard { value: String },
    #[error(
        "has the address `{address}`; write a name: its addresses are checked when it is resolved"
    )]
    Address { address: String },
    #[error("has the host `{host}`, which is not a valid host name")]
    Host { host: String },
    #[error("has the host `{host}`, which is never public")]
    NotPublic { host: String },
    #[error(
        "has the path `{path}`; its segments may have a-z, A-Z, 0-9 and -._~@:+=, and must not be only dots"
    )]
    Path { path: String },
    #[error("repeats or contradicts `{other}`")]
    Twice { other: String },
    #[error("is one too many; a plugin may have at most {ATOMS_MAX}")]
    TooMany,
}

fn known() -> String {
    INTERFACES.map(|(name, _)| name).join(", ")
}

/// A right of one plugin, parsed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Atom {
    interface: &'static str,
    right: RightKind,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum RightKind {
    Whole,
    /// In bytes, never 0.
    Size(u64),
    Http(HttpRight),
    HostPort(HostPattern, u16),
    /// A name, or the two halves of a pair with their dot.
    Name(String),
}

impl Atom {
    /// Reads an atom, which must be in its one spelling.
    pub(crate) fn parse(text: &str) -> Result<Self, AtomError> {
        let atom = read(text).map_err(|rule| AtomError::new(text, rule))?;
        let canonical = atom.to_string();
        if canonical == text {
            Ok(atom)
        } else {
            Err(AtomError::new(text, AtomRule::Spelling { canonical }))
        }
    }

    /// The word before the colon: `http`, `config`.
    pub(crate) fn interface(&self) -> &str {
        self.interface
    }

    /// What an atom of a size lends, in bytes.
    pub(crate) fn bytes(&self) -> Option<u64> {
        match self.right {
            RightKind::Size(bytes) => Some(bytes),
            RightKind::Whole
            | RightKind::Http(_)
            | RightKind::HostPort(..)
            | RightKind::Name(_) => None,
        }
    }

    /// Whether all that the other allows is allowed by this one.
    pub(crate) fn covers(&self, wanted: &Atom) -> bool {
        self.meet(wanted).as_ref() == Some(wanted)
    }

    /// What both allow.
    pub(crate) fn meet(&self, other: &Atom) -> Option<Atom> {
        if self.interface != other.interface {
            return None;
        }
        let right = match (&self.right, &other.right) {
            (RightKind::Size(one), RightKind::Size(two)) => RightKind::Size(*one.min(two)),
            (RightKind::Http(one), RightKind::Http(two)) => RightKind::Http(one.meet(two)?),
            (RightKind::HostPort(one, port), RightKind::HostPort(two, same)) if port == same => {
                RightKind::HostPort(one.meet(two)?.clone(), *port)
            }
            (one, two) if one == two => one.clone(),
            _ => return None,
        };
        Some(Atom {
            interface: self.interface,
            right,
        })
    }

    /// Whether a request is within this atom of `http`.
    pub(crate) fn allows(&self, asked: &RequestForm<'_>) -> bool {
        matches!(&self.right, RightKind::Http(fetch) if fetch.allows(asked))
    }

    /// Whether the right is this name.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        matches!(&self.right, RightKind::Name(known) if known == name)
    }

    /// The name that the right is, where it is one.
    pub(crate) fn name(&self) -> Option<&str> {
        match &self.right {
            RightKind::Name(name) => Some(name),
            RightKind::Whole
            | RightKind::Size(_)
            | RightKind::Http(_)
            | RightKind::HostPort(..) => None,
        }
    }

    /// What whoever approves the atom could not see from it.
    pub(crate) fn note(&self) -> Option<&'static str> {
        (self.interface == FEATURES).then_some("its callers need no scope for that operation")
    }

    /// Whether this atom of `http` lets a tunnel to there be opened.
    pub(crate) fn allows_tunnel(&self, name: Option<&str>, port: u16) -> bool {
        matches!(&self.right, RightKind::Http(fetch) if fetch.allows_tunnel(name, port))
    }

    /// Whether this atom of `line-query` covers the host on the port.
    pub(crate) fn allows_line(&self, host: Option<&str>, port: u16) -> bool {
        match &self.right {
            RightKind::HostPort(place, granted) => {
                *granted == port && host.map_or(*place == HostPattern::Any, |host| place.has(host))
            }
            RightKind::Whole | RightKind::Size(_) | RightKind::Http(_) | RightKind::Name(_) => {
                false
            }
        }
    }

    /// Whether this atom of `http` names the host on the port.
    pub(crate) fn names(&self, name: &str, port: u16) -> bool {
        matches!(&self.right, RightKind::Http(fetch) if fetch.names(name, port))
    }

    /// Whether this atom of `http` or `line-query` is about one host, by its name.
    pub(crate) fn names_one_host(&self) -> bool {
        match &self.right {
            RightKind::Http(fetch) => fetch.names_one_host(),
            RightKind::HostPort(place, _) => place.is_one(),
            RightKind::Whole | RightKind::Size(_) | RightKind::Name(_) => false,
        }
    }

    /// Whether the two cannot stand in one list: they are equal, or two sizes of one thing.
    pub(crate) fn excludes(&self, other: &Atom) -> bool {
        let sizes = matches!(
            (&self.right, &other.right),
            (RightKind::Size(_), RightKind::Size(_))
        );
        self == other || sizes && self.interface == other.interface
    }

    /// The same right in pieces that cannot be granted in part: one method each.
    pub(crate) fn parts(&self) -> Vec<Atom> {
        match &self.right {
            RightKind::Http(fetch) => fetch
                .parts()
                .map(|part| Atom {
                    interface: self.interface,
                    right: RightKind::Http(part),
                })
                .collect(),
            RightKind::Whole
            | RightKind::Size(_)
            | RightKind::HostPort(..)
            | RightKind::Name(_) => {
                vec![self.clone()]
            }
        }
    }

    /// Whether the two differ in size or methods alone.
    pub(crate) fn is_about_the_same_as(&self, other: &Atom) -> bool {
        self.interface == other.interface
            && match (&self.right, &other.right) {
                (RightKind::Size(_), RightKind::Size(_)) => true,
                (RightKind::Http(one), RightKind::Http(two)) => one.target() == two.target(),
                (one, two) => one == two,
            }
    }
}

fn read(text: &str) -> Result<Atom, AtomRule> {
    if text.is_empty() {
        return Err(AtomRule::Empty);
    }
    if text.len() > ATOM_BYTES_MAX {
        return Err(AtomRule::TooLong { bytes: text.len() });
    }
    // Letters of other scripts pass, so that an international name is told its one spelling.
    if let Some(character) = text
        .chars()
        .find(|c| !matches!(c, ' '..='~') && !c.is_alphanumeric())
    {
        return Err(AtomRule::Character { character });
    }
    let (word, rest) = match text.split_once(':') {
        Some((word, rest)) => (word, Some(rest)),
        None => (text, None),
    };
    let (interface, kind) = INTERFACES
        .into_iter()
        .find(|(name, _)| *name == word)
        .ok_or(AtomRule::Interface)?;
    let form = || AtomRule::Form {
        interface,
        form: kind.form(),
    };
    let right = match (kind, rest) {
        (AtomKind::Bare, None) => RightKind::Whole,
        (AtomKind::Size, Some(rest)) => RightKind::Size(size(rest, form)?),
        (AtomKind::Http, Some(rest)) => RightKind::Http(HttpRight::read(rest, form)?),
        (AtomKind::HostPort, Some(rest)) => {
            let (host, port) = rest.rsplit_once(':').ok_or_else(form)?;
            RightKind::HostPort(HostPattern::read_or_any(host)?, super::host::port(port)?)
        }
        (AtomKind::Name, Some(name)) if is_word(name) => RightKind::Name(name.to_owned()),
        (AtomKind::Operation, Some(pair))
            if pair
                .split_once('.')
                .is_some_and(|(one, two)| is_word(one) && is_word(two)) =>
        {
            RightKind::Name(pair.to_owned())
        }
        (
            AtomKind::Bare
            | AtomKind::Size
            | AtomKind::Http
            | AtomKind::HostPort
            | AtomKind::Name
            | AtomKind::Operation,
            _,
        ) => return Err(form()),
    };
    Ok(Atom { interface, right })
}

fn is_word(text: &str) -> bool {
    text.len() <= NAME_BYTES_MAX
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_'))
}

const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// `64MiB`, `512KiB` or a plain number of bytes.
fn size(text: &str, form: impl Fn() -> AtomRule) -> Result<u64, AtomRule> {
    let unit = UNITS
        .into_iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)));
    let (digits, factor) = unit.unwrap_or((text, 1));
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(form());
    }
    let bytes = digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(factor));
    match bytes.ok_or_else(|| AtomRule::LargeSize {
        size: text.to_owned(),
    })? {
        0 => Err(AtomRule::ZeroSize),
        bytes => Ok(bytes),
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interface = self.interface;
        match &self.right {
            RightKind::Whole => f.write_str(interface),
            RightKind::Size(bytes) => {
                let (unit, factor) = UNITS
                    .into_iter()
                    .find(|(_, factor)| bytes % factor == 0)
                    .unwrap_or(("", 1));
                write!(f, "{interface}:{}{unit}", bytes / factor)
            }
            RightKind::Http(fetch) => write!(f, "{interface}:{fetch}"),
            RightKind::HostPort(host, port) => write!(f, "{interface}:{host}:{port}"),
            RightKind::Name(name) => write!(f, "{interface}:{name}"),
        }
    }
}

impl Serialize for Atom {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Atom {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl JsonSchema for Atom {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Atom".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}
