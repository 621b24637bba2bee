//! What the operator may set: whom to ask about a network, and how long one request may take.
//!
//! `config = { request_ms = 8000, facebook = { version = "v25.0" } }` in the manifest. Tokens are no settings: the operator
//! binds them as secrets, and the plugin never sees one.

use serde::Deserialize;
use switchbay_sdk::config::{self, SettingError};
use switchbay_sdk::log;

use crate::networks::Network;
use crate::trouble::Trouble;

/// What one request to a provider may take, in milliseconds (docs/api.md, "Social posts").
const REQUEST_MS: u32 = 8000;

/// Those of one network.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// In the place of the provider's own, with a slash at its end. The grants must cover it.
    #[serde(default)]
    pub(crate) base_url: Option<String>,
    /// In the place of the provider's own version.
    #[serde(default)]
    pub(crate) version: Option<String>,
    /// In the place of the host's own name.
    #[serde(default)]
    pub(crate) user_agent: Option<String>,
    #[serde(skip)]
    request_ms: Option<u32>,
}

impl Settings {
    /// # Errors
    /// The operator wrote what cannot be used; the log says it.
    pub(crate) fn read(network: &Network) -> Result<Self, Trouble> {
        let unusable = |error: SettingError| {
            log::error(&error.to_string());
            Trouble::Unavailable
        };
        let settings: Option<Self> = config::value(network.name).map_err(unusable)?;
        Ok(Self {
            request_ms: config::value("request_ms").map_err(unusable)?,
            ..settings.unwrap_or_default()
        })
    }

    /// What one request may take, never more than the specification says.
    pub(crate) fn request_ms(&self) -> u32 {
        self.request_ms.unwrap_or(REQUEST_MS).min(REQUEST_MS)
    }
}
