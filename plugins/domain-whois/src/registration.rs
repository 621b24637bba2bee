//! What is told of a registration. The members are all that can ever leave: no member is free text but the registrar
//! and the organisation, and both pass `public`.

use serde::{Deserialize, Serialize};
use switchbay_sdk::host_name::ends_in_number;
use switchbay_sdk::schemars::{self, JsonSchema};

use crate::name::host_name;
use crate::status::{self, Standing};

/// Values of a list.
const LIST_MAX: usize = 32;

// A registration as it is told and kept. A comment of documentation would be published as one of the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Registration {
    /// The registrar's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) registrar: Option<String>,
    /// The registrant, if it is an organization and published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) organization: Option<String>,
    /// When the domain was registered. A date without a time is given as midnight UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub(crate) creation_date: Option<String>,
    /// When the registration last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub(crate) updated_date: Option<String>,
    /// When the registration ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub(crate) expiration_date: Option<String>,
    /// Statuses by their EPP names, such as `clientTransferProhibited`; `reserved` marks a name that nobody can register.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) status: Vec<String>,
    /// `signedDelegation` or `unsigned`, if the registry reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dnssec: Option<String>,
    /// Host names of the name servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) name_servers: Vec<String>,
}

/// What a registry answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Registered {
        registration: Registration,
        /// Where the registrar may say more: a host of port 43, or a URL of RDAP.
        referral: Option<String>,
    },
    /// Nobody has the name.
    Free,
    /// Nobody has the name, and nobody may have it.
    Reserved,
    /// The registry answers no more questions for a while.
    Throttled,
    /// Nothing that could be read, and why.
    Unusable(&'static str),
}

impl Registration {
    /// Adds the statuses that a text holds.
    pub(crate) fn add_status(&mut self, text: &str) {
        for name in status::read(text) {
            if self.status.len() < LIST_MAX && !self.status.iter().any(|known| known == name) {
                self.status.push(name.to_owned());
            }
        }
    }

    /// Adds a name server; addresses and what is no host name are left out.
    pub(crate) fn add_name_server(&mut self, text: &str) {
        let Some(name) = host_name(text.trim()) else {
            return;
        };
        let a_name = name.contains('.') && !ends_in_number(&name);
        if a_name && self.name_servers.len() < LIST_MAX && !self.name_servers.contains(&name) {
            self.name_servers.push(name);
        }
    }

    /// The answer that these statuses make of a name which nobody has.
    pub(crate) fn of_nobody<'t>(
        &self,
        statuses: impl IntoIterator<Item = &'t str>,
    ) -> Option<Answer> {
        match statuses.into_iter().find_map(status::standing)? {
            Standing::Free => Some(Answer::Free),
            // Some registries call a name that somebody has "not available".
            Standing::Reserved => (self.name_servers.is_empty() && self.registrar.is_none())
                .then_some(Answer::Reserved),
        }
    }

    /// Whether anything was found at all.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
