//! The identity provider whose access tokens are taken.
//!
//! Must not know what a token says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;
use super::table::{Milliseconds, TIME, within};

/// The identity provider whose access tokens are accepted. Without this table none are.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OAuthSettings {
    /// The issuer, to the byte as it stands in `iss` of the tokens: https, or http on loopback.
    pub(crate) issuer: String,
    /// Audiences that are accepted beside the service's own.
    #[serde(default)]
    pub(crate) audiences: Vec<String>,
    /// Calls a minute of each client and subject.
    #[serde(default = "per_minute")]
    pub(crate) per_minute: u32,
    /// Calls in a calendar month (UTC) of each client and subject. Without it there is no limit.
    #[serde(default)]
    pub(crate) per_month: Option<u64>,
    /// Milliseconds for fetching the issuer's keys.
    #[serde(default = "fetch_ms")]
    pub(crate) fetch_ms: Milliseconds,
    /// Milliseconds after which keys are fetched again, when a token comes.
    #[serde(default = "renew_ms")]
    pub(crate) renew_ms: Milliseconds,
}

fn per_minute() -> u32 {
    60
}

fn fetch_ms() -> Milliseconds {
    Milliseconds(5000)
}

fn renew_ms() -> Milliseconds {
    Milliseconds(600_000)
}

impl OAuthSettings {
    /// Refuses the first setting that may not be.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        issuer_url(&self.issuer)?;
        within("oauth.per_minute", &self.per_minute, 1..=1_000_000)?;
        within("oauth.per_month", &self.per_month, 1..=u64::from(u32::MAX))?;
        within("oauth.fetch_ms", &self.fetch_ms, TIME)?;
        within("oauth.renew_ms", &self.renew_ms, TIME)
    }

    /// The issuer as a URL.
    pub(crate) fn issuer_url(&self) -> url::Url {
        issuer_url(&self.issuer).expect("the settings are checked when they are read")
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
