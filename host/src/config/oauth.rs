//! The identity provider whose access tokens are taken.
//!
//! Must not know what a token says.

use std::time::Duration;

use super::written::WrittenOAuth;
use super::{ConfigError, time, within};

/// The identity provider, and what its tokens may do here.
#[derive(Clone, Debug)]
pub struct OAuthSettings {
    /// As it was written: it must equal the `iss` of every token, to the byte.
    pub issuer: String,
    /// The same as a URL.
    pub issuer_url: url::Url,
    /// Audiences of tokens beside our own.
    pub audiences: Vec<String>,
    /// Calls a minute of each client and subject.
    pub per_minute: u32,
    /// Calls in a calendar month of each client and subject; `None` is no limit.
    pub per_month: Option<u64>,
    /// For fetching the issuer's keys.
    pub fetch: Duration,
    /// After which keys are fetched again, when a token comes.
    pub renew: Duration,
}

impl OAuthSettings {
    /// Checks what was written.
    pub(super) fn read(written: WrittenOAuth) -> Result<Self, ConfigError> {
        Ok(Self {
            issuer_url: issuer_url(&written.issuer)?,
            issuer: written.issuer,
            audiences: written.audiences,
            per_minute: within("oauth.per_minute", written.per_minute, 1, 1_000_000)?,
            per_month: (written.per_month)
                .map(|calls| within("oauth.per_month", calls, 1, u64::from(u32::MAX)))
                .transpose()?,
            fetch: time("oauth.fetch_ms", written.fetch_ms)?,
            renew: time("oauth.renew_ms", written.renew_ms)?,
        })
    }
}

/// What may be an issuer (RFC 8414, 2); without TLS only where nobody else can answer.
fn issuer_url(text: &str) -> Result<url::Url, ConfigError> {
    let is_loopback = |url: &url::Url| match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    };
    let is_safe =
        |url: &url::Url| url.scheme() == "https" || (url.scheme() == "http" && is_loopback(url));
    let is_plain = |url: &url::Url| {
        url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    };
    url::Url::parse(text)
        .ok()
        .filter(|url| is_safe(url) && is_plain(url))
        .ok_or_else(|| {
            let rule = "an https URL (or http on loopback) without credentials, query or fragment";
            ConfigError::value("oauth.issuer", text, rule)
        })
}
