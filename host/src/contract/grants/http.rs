//! The atoms of `http`: which methods, and to which targets.
//!
//! A path that ends with a slash is a prefix and stands for all below it; any other is that one resource. An atom is
//! silent of queries, so it allows each.

use std::fmt;

use super::atom::AtomRule;
use super::host;
use super::host::HostPattern;

/// The methods that can be granted, in the order in which an atom names them.
pub(crate) const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// `GET,POST https://example.com/api/`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HttpRight {
    target: HttpTarget,
    methods: MethodSet,
}

/// A set that is never empty: bit n stands for `METHODS[n]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct MethodSet(u8);

/// Where to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum HttpTarget {
    /// `public`: any public destination on port 80 or 443.
    Public,
    /// These hosts, by this scheme, on this port, at this path or below it.
    Origin {
        secure: bool,
        hosts: HostPattern,
        port: u16,
        path: String,
    },
}

/// A request as it would be sent, in the forms of a parsed URL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestForm<'a> {
    /// In upper case.
    pub(crate) method: &'a str,
    pub(crate) secure: bool,
    /// In lower case, international labels encoded. `None` is a literal address, which no atom names.
    pub(crate) name: Option<&'a str>,
    pub(crate) port: u16,
    /// As it is sent, percent-encoded, dot segments resolved.
    pub(crate) path: &'a str,
}

impl HttpRight {
    /// Whether the request is one of these.
    pub(crate) fn allows(&self, asked: &RequestForm<'_>) -> bool {
        self.methods
            .bits()
            .any(|(_, method)| method == asked.method)
            && self.target.reaches(asked)
    }

    /// Whether a tunnel is: methods and paths within it cannot be seen, so that it takes a whole origin of https, or
    /// `public`. What is asked for in the clear can be judged one by one, and an atom of http opens none.
    pub(crate) fn allows_tunnel(&self, name: Option<&str>, port: u16) -> bool {
        match &self.target {
            HttpTarget::Public => matches!(port, 80 | 443),
            HttpTarget::Origin {
                secure,
                hosts,
                port: granted,
                path,
            } => {
                *secure
                    && *granted == port
                    && path == "/"
                    && name.is_some_and(|name| hosts.has(name))
            }
        }
    }

    /// Whether any request to the host on the port is.
    pub(crate) fn names(&self, name: &str, port: u16) -> bool {
        matches!(&self.target, HttpTarget::Origin { hosts, port: granted, .. } if *granted == port && hosts.has(name))
    }

    /// Whether the target is one host, by its name.
    pub(crate) fn names_one_host(&self) -> bool {
        matches!(&self.target, HttpTarget::Origin { hosts, .. } if hosts.is_one())
    }

    pub(crate) fn read(text: &str, form: impl Fn() -> AtomRule) -> Result<Self, AtomRule> {
        let (methods, target) = text.split_once(' ').ok_or_else(&form)?;
        if target.is_empty() || target.contains(' ') {
            return Err(form());
        }
        let target = match target {
            "public" => HttpTarget::Public,
            _ => HttpTarget::read(target, form)?,
        };
        Ok(Self {
            methods: MethodSet::read(methods)?,
            target,
        })
    }

    pub(crate) fn target(&self) -> &HttpTarget {
        &self.target
    }

    pub(crate) fn meet(&self, other: &HttpRight) -> Option<HttpRight> {
        let methods = MethodSet(self.methods.0 & other.methods.0);
        let target = self.target.meet(&other.target)?;
        (methods.0 != 0).then_some(HttpRight { methods, target })
    }

    /// One for each method.
    pub(crate) fn parts(&self) -> impl Iterator<Item = HttpRight> {
        self.methods.bits().map(|(bit, _)| HttpRight {
            methods: MethodSet(bit),
            target: self.target.clone(),
        })
    }
}

impl MethodSet {
    fn read(text: &str) -> Result<Self, AtomRule> {
        let mut methods = MethodSet(0);
        for method in text.split(',') {
            let known = METHODS.iter().position(|known| *known == method);
            let bit = 1
                << known.ok_or_else(|| AtomRule::Method {
                    method: method.to_owned(),
                })?;
            if methods.0 & bit != 0 {
                return Err(AtomRule::MethodTwice {
                    method: method.to_owned(),
                });
            }
            methods.0 |= bit;
        }
        Ok(methods)
    }

    fn bits(self) -> impl Iterator<Item = (u8, &'static str)> {
        let all = METHODS
            .iter()
            .enumerate()
            .map(|(index, method)| (1 << index, *method));
        all.filter(move |(bit, _)| self.0 & bit != 0)
    }
}

impl HttpTarget {
    fn read(text: &str, form: impl Fn() -> AtomRule) -> Result<Self, AtomRule> {
        let (scheme, rest) = text.split_once("://").ok_or_else(form)?;
        let secure = match scheme {
            "https" => true,
            "http" => false,
            other => {
                return Err(AtomRule::Scheme {
                    scheme: other.to_owned(),
                });
            }
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(AtomRule::Credentials);
        }
        if let Some(mark) = path.find(['?', '#']) {
            return Err(if path[mark..].starts_with('?') {
                AtomRule::Query
            } else {
                AtomRule::Fragment
            });
        }
        let (host, port) = match authority.rsplit_once(':') {
            // The colons of an address in brackets are its own.
            Some((host, port)) if !port.ends_with(']') => (host, host::port(port)?),
            _ => (authority, default_port(secure)),
        };
        // Without a path, the spelling that is told ends with a slash.
        let path = if path.is_empty() { "/" } else { path };
        if is_path(path) {
            Ok(HttpTarget::Origin {
                secure,
                hosts: HostPattern::read(host)?,
                port,
                path: path.to_owned(),
            })
        } else {
            Err(AtomRule::Path {
                path: path.to_owned(),
            })
        }
    }

    /// The targets that are in both. Of two sets that overlap, each part of one is within the other's.
    fn meet(&self, other: &HttpTarget) -> Option<HttpTarget> {
        match (self, other) {
            (HttpTarget::Public, HttpTarget::Public) => Some(HttpTarget::Public),
            (HttpTarget::Public, origin @ HttpTarget::Origin { port, .. })
            | (origin @ HttpTarget::Origin { port, .. }, HttpTarget::Public) => {
                matches!(port, 80 | 443).then(|| origin.clone())
            }
            (
                HttpTarget::Origin {
                    secure,
                    hosts,
                    port,
                    path,
                },
                HttpTarget::Origin {
                    secure: other_secure,
                    hosts: other_hosts,
                    port: other_port,
                    path: other_path,
                },
            ) => {
                if (secure, port) != (other_secure, other_port) {
                    return None;
                }
                let hosts = hosts.meet(other_hosts)?.clone();
                let path = narrower(path, other_path)?.to_owned();
                Some(HttpTarget::Origin {
                    secure: *secure,
                    hosts,
                    port: *port,
                    path,
                })
            }
        }
    }
}

impl HttpTarget {
    fn reaches(&self, asked: &RequestForm<'_>) -> bool {
        match self {
            HttpTarget::Public => matches!(asked.port, 80 | 443),
            HttpTarget::Origin {
                secure,
                hosts,
                port,
                path,
            } => {
                (*secure, *port) == (asked.secure, asked.port)
                    && asked.name.is_some_and(|name| hosts.has(name))
                    && is_within(asked.path, path)
            }
        }
    }
}

/// Whether a path is at or below an atom's, for every server, however often it decodes what it reads.
fn is_within(path: &str, granted: &str) -> bool {
    if granted.ends_with('/') {
        granted == "/" || path.starts_with(granted) && stays_below(path)
    } else {
        path == granted
    }
}

/// The most times over that a server is expected to decode a path.
const DECODED_MAX: usize = 3;

/// Whether no reading of a path leads upwards. A `;` begins parameters of a segment for some servers, and a backslash is a
/// slash for others.
fn stays_below(path: &str) -> bool {
    let mut read = path.as_bytes().to_vec();
    for _ in 0..=DECODED_MAX {
        let leads_up =
            |segment: &[u8]| matches!(segment.split(|b| *b == b';').next(), Some(b"." | b".."));
        if read.contains(&0) || read.split(|b| matches!(b, b'/' | b'\\')).any(leads_up) {
            return false;
        }
        let decoded: Vec<u8> = percent_encoding::percent_decode(&read).collect();
        if decoded == read {
            return true;
        }
        read = decoded;
    }
    false
}

fn default_port(secure: bool) -> u16 {
    if secure { 443 } else { 80 }
}

/// Whichever of two paths is within the other.
fn narrower<'p>(one: &'p str, two: &'p str) -> Option<&'p str> {
    let within = |path: &str, prefix: &str| {
        path == prefix || prefix.ends_with('/') && path.starts_with(prefix)
    };
    if within(two, one) {
        return Some(two);
    }
    within(one, two).then_some(one)
}

/// Nothing that a server could read in two ways: no encoding, no empty segment but a last one, no `.` and no `..`.
fn is_path(path: &str) -> bool {
    let Some(segments) = path.strip_prefix('/') else {
        return false;
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~@:+=".contains(&b);
    let segments = segments.strip_suffix('/').unwrap_or(segments);
    path == "/"
        || segments.split('/').all(|segment| {
            !segment.is_empty() && !matches!(segment, "." | "..") && segment.bytes().all(plain)
        })
}

impl fmt::Display for HttpRight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let methods: Vec<&str> = self.methods.bits().map(|(_, method)| method).collect();
        write!(f, "{} {}", methods.join(","), self.target)
    }
}

impl fmt::Display for HttpTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HttpTarget::Public => f.write_str("public"),
            HttpTarget::Origin {
                secure,
                hosts,
                port,
                path,
            } => {
                let scheme = if *secure { "https" } else { "http" };
                if *port == default_port(*secure) {
                    write!(f, "{scheme}://{hosts}{path}")
                } else {
                    write!(f, "{scheme}://{hosts}:{port}{path}")
                }
            }
        }
    }
}
