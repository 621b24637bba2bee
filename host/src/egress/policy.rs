//! Whether a request may leave: one parse of its URL, one verdict, before anything happens.
//!
//! What is judged here is what is dialled: the host and the port of the one parse travel on as a [`Destination`], and nothing
//! reads the text again. Pure: a name is judged by what it says, and what it leads to by `address`, when it is resolved.

use std::fmt;

use http::Uri;
use url::Url;

use crate::base::address::{NotPublic, Public};
use crate::contract::grants::{Grants, RequestForm, is_never_public};

/// The longest URL, in bytes: one of 2,048 characters, each of which takes twelve when it is percent-encoded.
const URL_BYTES_MAX: usize = 24_576;
/// The longest host that stands alone, in bytes.
const HOST_BYTES_MAX: usize = 1024;
/// How much of a wrong scheme or host a message repeats, in characters.
const TOLD_CHARACTERS_MAX: usize = 80;

/// Why a request may not leave. Three kinds, which a plugin can tell apart. No message holds a path or a query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EgressDenial {
    /// No grant of the revision covers it.
    #[error("{way} to {host} on port {port} is not granted")]
    Ungranted {
        way: String,
        host: String,
        port: u16,
    },
    /// It would reach something that is not of the public network.
    #[error("{0}")]
    NotPublic(#[from] PrivateTarget),
    /// It is not of a form in which anything may be asked for.
    #[error("the URL {0}")]
    Unacceptable(#[from] Form),
}

/// What is not public: a name by itself, an address, or what a name leads to. The last tells no address: what a private
/// network calls its machines is not a plugin's to find out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PrivateTarget {
    #[error("the host `{0}` is never public")]
    Name(String),
    #[error(transparent)]
    Address(#[from] NotPublic),
    #[error("the host `{0}` resolves to an address that is not public")]
    Leads(String),
    #[error("the host `{0}` is this server itself")]
    Own(String),
}

/// What is wrong with a URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Form {
    #[error("has {0} bytes; at most {URL_BYTES_MAX} are allowed")]
    TooLong(usize),
    #[error("has a host of {0} bytes; at most {HOST_BYTES_MAX} are allowed")]
    LongHost(usize),
    #[error("cannot be parsed: {0}")]
    Unreadable(url::ParseError),
    #[error("has the scheme `{0}`; it must be http or https")]
    Scheme(String),
    #[error("has credentials")]
    Credentials,
    #[error("has the host `{0}`, which is not a valid host name")]
    Host(String),
    #[error("has the port {0}; only 80, 443 and ports that a grant names for the host are allowed")]
    Port(u16),
    #[error("must be only a host and a port, as a tunnel request has them")]
    Authority,
    #[error("must have a port from 1 to 65535 in decimal, as a tunnel request needs one")]
    NoPort,
    #[error("cannot be sent in a request")]
    Unwritable,
    #[error("carries a secret to another destination")]
    Secret,
    #[error("has a secret bound to it, so it cannot be requested with `range`")]
    Range,
}

impl EgressDenial {
    /// In one word: which of the three it is.
    pub(crate) fn verdict(&self) -> &'static str {
        match self {
            Self::Ungranted { .. } => "not_granted",
            Self::NotPublic(_) => "not_public",
            Self::Unacceptable(_) => "not_acceptable",
        }
    }
}

/// What is to happen at a destination.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DestinationUse<'w> {
    /// One request with this method, at the destination's path.
    Request { method: &'w str },
    /// Bytes both ways, which nobody reads.
    Tunnel,
}

/// Where a request goes, as it was judged.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    url: Url,
    host: Host,
    port: u16,
}

/// The host of a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// In lower case, international labels encoded, without a last dot.
    Name(String),
    Address(Public),
}

impl Destination {
    /// Reads a URL. What it gives back may still not be granted.
    ///
    /// # Errors
    /// The URL has a form that is never taken, or a host that is never public.
    pub(crate) fn read(text: &str) -> Result<Self, EgressDenial> {
        if text.len() > URL_BYTES_MAX {
            return Err(Form::TooLong(text.len()).into());
        }
        Self::of(Url::parse(text).map_err(Form::Unreadable)?)
    }

    /// Reads a host and a port, as a tunnel is asked for. It is the destination of a URL with these, and nothing else.
    ///
    /// # Errors
    /// As for [`Destination::read`]; and there is more in it, or no port.
    pub(crate) fn read_authority(text: &str) -> Result<Self, EgressDenial> {
        let (host, port) = text.rsplit_once(':').ok_or(Form::NoPort)?;
        let is_port = (1..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit());
        if !is_port || host.is_empty() {
            return Err(Form::NoPort.into());
        }
        if host.contains('@') {
            return Err(Form::Credentials.into());
        }
        if host.contains(['/', '\\', '?', '#']) {
            return Err(Form::Authority.into());
        }
        Self::read(&format!("https://{text}/"))
    }

    /// Where a redirect from here leads.
    ///
    /// # Errors
    /// As for [`Destination::read`].
    pub(crate) fn redirected(&self, location: &str) -> Result<Self, EgressDenial> {
        if location.len() > URL_BYTES_MAX {
            return Err(Form::TooLong(location.len()).into());
        }
        Self::of(self.url.join(location).map_err(Form::Unreadable)?)
    }

    fn of(mut url: Url) -> Result<Self, EgressDenial> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Form::Scheme(told(url.scheme())).into());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Form::Credentials.into());
        }
        let host = Host::judge(url.host().ok_or_else(|| Form::Host(String::new()))?)?;
        // Both schemes have a port of their own, so there always is one.
        let port = url.port_or_known_default().ok_or(Form::Port(0))?;
        url.set_fragment(None);
        written(&url).ok_or(Form::Unwritable)?;
        Ok(Self { url, host, port })
    }

    /// As [`aim`], of a redirect from here.
    pub(super) fn aim(&self, location: &str) -> Option<(String, u16)> {
        aim_of(&self.url.join(beginning(location)).ok()?)
    }

    /// Whether these rights let this happen there. The one judge of requests and tunnels; of lines it is [`Host::permit_line`].
    ///
    /// # Errors
    /// They do not: the port is none that may be asked for there, or no grant covers it.
    pub(crate) fn permit(
        &self,
        way: DestinationUse<'_>,
        rights: &Grants,
    ) -> Result<(), EgressDenial> {
        let name = self.host.name();
        let is_usual = matches!(self.port, 80 | 443);
        if !is_usual && !name.is_some_and(|name| rights.name(name, self.port)) {
            return Err(Form::Port(self.port).into());
        }
        let (secure, port, path) = (self.is_secure(), self.port, self.url.path());
        let (is_allowed, way) = match way {
            DestinationUse::Request { method } => (
                rights.allow(&RequestForm {
                    method,
                    secure,
                    name,
                    port,
                    path,
                }),
                told(method),
            ),
            DestinationUse::Tunnel => (rights.allow_tunnel(name, port), "a tunnel".to_owned()),
        };
        if is_allowed {
            Ok(())
        } else {
            Err(self.host.ungranted(way, port))
        }
    }

    /// Without a fragment.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// The same as a request carries it, with more of a query.
    ///
    /// # Errors
    /// It cannot be written, or would be another destination.
    pub(crate) fn uri_of(&self, url: &Url) -> Result<Uri, EgressDenial> {
        let is_here = url.origin() == self.url.origin();
        Ok(written(url).filter(|_| is_here).ok_or(Form::Unwritable)?)
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    pub(crate) fn host_text(&self) -> String {
        self.host.to_string()
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn is_secure(&self) -> bool {
        self.url.scheme() == "https"
    }
}

impl Host {
    /// Reads a host that stands alone, as the parser of URLs reads one. What it gives back may still not be granted.
    ///
    /// # Errors
    /// It is no host, or never public.
    pub(super) fn read(text: &str) -> Result<Self, EgressDenial> {
        if text.len() > HOST_BYTES_MAX {
            return Err(Form::LongHost(text.len()).into());
        }
        Self::judge(url::Host::parse(text).map_err(Form::Unreadable)?)
    }

    fn judge<S: AsRef<str>>(host: url::Host<S>) -> Result<Self, EgressDenial> {
        let address = match host {
            url::Host::Ipv4(address) => address.into(),
            url::Host::Ipv6(address) => address.into(),
            url::Host::Domain(name) => return public_name(name.as_ref()).map(Host::Name),
        };
        Ok(Host::Address(
            Public::judge(address).map_err(PrivateTarget::from)?,
        ))
    }

    /// `None` for an address.
    fn name(&self) -> Option<&str> {
        match self {
            Host::Name(name) => Some(name),
            Host::Address(_) => None,
        }
    }

    /// Whether these rights let a query of one line out to here.
    ///
    /// # Errors
    /// No grant covers the host on the port.
    pub(super) fn permit_line(&self, port: u16, rights: &Grants) -> Result<(), EgressDenial> {
        if rights.allow_line(self.name(), port) {
            Ok(())
        } else {
            Err(self.ungranted("a line".to_owned(), port))
        }
    }

    fn ungranted(&self, way: String, port: u16) -> EgressDenial {
        let host = self.to_string();
        EgressDenial::Ungranted { way, host, port }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(address) => write!(f, "{address}"),
        }
    }
}

/// A name that may lead to a public address.
fn public_name(name: &str) -> Result<String, EgressDenial> {
    let bare = name.strip_suffix('.').unwrap_or(name);
    if is_never_public(bare) {
        return Err(PrivateTarget::Name(told(name)).into());
    }
    // A last dot would be one host to a resolver and another one to the server.
    if bare.len() == name.len() && name.len() <= 253 && name.split('.').all(is_label) {
        Ok(name.to_owned())
    } else {
        Err(Form::Host(told(name)).into())
    }
}

/// What a resolver is asked for: letters, digits and hyphens, and the underscores that some names have.
fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_'))
}

/// The URL as the client library reads it, if it reads the same host and port.
fn written(url: &Url) -> Option<Uri> {
    let uri: Uri = url.as_str().parse().ok()?;
    let is_same = uri.scheme_str() == Some(url.scheme())
        && uri.host() == url.host_str()
        && uri.port_u16() == url.port();
    is_same.then_some(uri)
}

/// Host and port of a URL as it is written, also where nothing may be asked for there. For the audit alone: nobody judges by it.
pub(super) fn aim(url: &str) -> Option<(String, u16)> {
    aim_of(&Url::parse(beginning(url)).ok()?)
}

fn aim_of(url: &Url) -> Option<(String, u16)> {
    let port = url.port_or_known_default().unwrap_or(0);
    Some((told(url.host_str()?), port))
}

/// As much of a text as a URL may have.
fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(URL_BYTES_MAX)]
}

pub(super) fn told(text: &str) -> String {
    text.chars()
        .take(TOLD_CHARACTERS_MAX)
        .flat_map(char::escape_debug)
        .collect()
}
