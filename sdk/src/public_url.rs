//! URLs of public web pages, as callers write them. Needs the feature `url`.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use url::{Host, Url};

use crate::host_name::{is_never_public, is_public_address};

/// Characters of a wrong scheme that a message repeats.
const SCHEME_CHARACTERS_MAX: usize = 20;

/// An absolute http or https URL, on port 80 or 443 and without credentials. In JSON it is a text with the format `uri`.
///
/// What a name leads to is not known before it is looked up, which the gate does with each request;
/// [`PublicUrl::has_public_host`] tells what the host says by itself.
///
/// ```
/// use switchbay_sdk::public_url::{NotPublicUrl, PublicUrl};
///
/// let url = PublicUrl::read(" HTTPS://Example.com/a ").expect("a public URL");
/// assert_eq!(url.to_string(), "https://example.com/a");
/// let broken = PublicUrl::read("https://me:word@example.com/").expect_err("it has credentials");
/// assert_eq!(broken, NotPublicUrl::Credentials);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl(Url);

/// The rule that a text breaks which is no [`PublicUrl`], worded to stand behind the name of the input property. No text
/// repeats what stands before an `@`, for it may be a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotPublicUrl {
    /// It contains white space or control characters.
    Space,
    /// It is not absolute.
    Relative,
    /// It has another scheme: this one, if it is short and one at all.
    Scheme(Option<String>),
    /// It contains credentials.
    Credentials,
    /// It has no host.
    NoHost,
    /// It is not a URL, for this reason.
    Invalid(String),
    /// It has another port.
    Port(u16),
}

impl PublicUrl {
    /// Reads what a caller wrote. Space around it is left out.
    ///
    /// # Errors
    /// The first rule that it breaks, in the order of [`NotPublicUrl`].
    pub fn read(written: &str) -> Result<Self, NotPublicUrl> {
        let written = written.trim();
        if written.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(NotPublicUrl::Space);
        }
        // A scheme without `//` is a path to some readers and a host to others.
        let (scheme, rest) = written.split_once("://").ok_or(NotPublicUrl::Relative)?;
        if !["http", "https"]
            .iter()
            .any(|known| scheme.eq_ignore_ascii_case(known))
        {
            return Err(NotPublicUrl::Scheme(shown(scheme)));
        }
        let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(NotPublicUrl::Credentials);
        }
        if authority.is_empty() {
            return Err(NotPublicUrl::NoHost);
        }
        let url = Url::parse(written).map_err(|error| NotPublicUrl::Invalid(error.to_string()))?;
        match url.port_or_known_default() {
            Some(80 | 443) | None => Ok(Self(url)),
            Some(port) => Err(NotPublicUrl::Port(port)),
        }
    }

    /// Whether the host may be public: see [`has_public_host`].
    pub fn has_public_host(&self) -> bool {
        has_public_host(&self.0)
    }
}

/// Whether a URL is of http or https.
pub fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// The absolute http or https URL that somebody's answer names, or nothing. Its host and port may be any.
pub fn web_url(text: &str) -> Option<Url> {
    Url::parse(text).ok().filter(is_web)
}

/// Whether the host of a URL is a public address, or a name that may lead to one.
pub fn has_public_host(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => !is_never_public(name),
        Some(Host::Ipv4(address)) => is_public_address(address.into()),
        Some(Host::Ipv6(address)) => is_public_address(address.into()),
        None => false,
    }
}

fn shown(scheme: &str) -> Option<String> {
    let is_scheme = scheme
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    (is_scheme && (1..=SCHEME_CHARACTERS_MAX).contains(&scheme.len())).then(|| scheme.to_owned())
}

impl From<PublicUrl> for Url {
    fn from(url: PublicUrl) -> Self {
        url.0
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl Serialize for PublicUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

impl JsonSchema for PublicUrl {
    fn schema_name() -> Cow<'static, str> {
        "PublicUrl".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "uri" })
    }
}

impl fmt::Display for NotPublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = match self {
            Self::Space => "must not contain white space or control characters",
            Self::Relative => {
                "must be an absolute http or https URL, such as `https://example.com/`"
            }
            Self::Scheme(Some(scheme)) => {
                return write!(f, "must have the scheme http or https, not `{scheme}`");
            }
            Self::Scheme(None) => "must have the scheme http or https",
            Self::Credentials => "must not contain credentials; remove the part before the `@`",
            Self::NoHost => "must have a host",
            Self::Invalid(why) => return write!(f, "is not a valid URL: {why}"),
            Self::Port(port) => return write!(f, "must have the port 80 or 443, not {port}"),
        };
        f.write_str(rule)
    }
}

impl std::error::Error for NotPublicUrl {}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn broken(written: &str, expected: NotPublicUrl) {
        assert_eq!(PublicUrl::read(written), Err(expected), "{written}");
    }

    #[test]
    fn a_url_is_read_with_its_host_in_ascii() {
        for (written, expected) in [
            (" https://example.com/a?b#c ", "https://example.com/a?b#c"),
            ("HTTP://EXAMPLE.com:80", "http://example.com/"),
            ("http://example.com:443", "http://example.com:443/"),
            ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ] {
            let url = PublicUrl::read(written).expect(written);
            assert_eq!(url.to_string(), expected);
            let json = serde_json::to_value(&url).expect("JSON");
            assert_eq!(json, expected);
        }
    }

    #[test]
    fn the_first_rule_that_is_broken_is_told() {
        broken("https://me@exa mple.com/", NotPublicUrl::Space);
        broken("example.com", NotPublicUrl::Relative);
        broken("mailto:me@example.com", NotPublicUrl::Relative);
        broken("ftp://a", NotPublicUrl::Scheme(Some("ftp".to_owned())));
        broken("me:word@a://", NotPublicUrl::Scheme(None));
        broken(
            &format!("{}://a", "x".repeat(21)),
            NotPublicUrl::Scheme(None),
        );
        broken("https://me@example.com:8080/", NotPublicUrl::Credentials);
        broken("http://@example.com", NotPublicUrl::Credentials);
        broken("https:///a", NotPublicUrl::NoHost);
        broken("http://?a", NotPublicUrl::NoHost);
        broken("http://example.com:8080/", NotPublicUrl::Port(8080));
        let invalid = NotPublicUrl::Invalid("invalid IPv4 address".to_owned());
        broken("http://1.2.3.4.5/", invalid.clone());
        assert_eq!(
            invalid.to_string(),
            "is not a valid URL: invalid IPv4 address"
        );
    }

    #[test]
    fn an_answer_names_a_web_page_or_nothing() {
        let read = |text| web_url(text).map(String::from);
        assert_eq!(read("HTTP://a:81").as_deref(), Some("http://a:81/"));
        for text in ["/a", "ftp://a/", "data:,a", "http://"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn a_host_says_whether_it_may_be_public() {
        let is_public = |host: &str| {
            let url = PublicUrl::read(&format!("http://{host}/")).expect(host);
            url.has_public_host()
        };
        for host in ["example.com", "8.8.8.8", "0x08080808", "[2606:4700::1111]"] {
            assert!(is_public(host), "{host}");
        }
        for host in [
            "localhost",
            "printer.local",
            "127.1",
            "[::1]",
            "169.254.169.254",
        ] {
            assert!(!is_public(host), "{host}");
        }
    }
}
