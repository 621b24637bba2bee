//! Who pays: callers that share one allowance of a plugin's places, its processor time and its queue of jobs.
//!
//! Not the owner that a plugin is told: several keys of one account are several owners and one tenant, so that nobody has more
//! by having more keys.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::operation::Owner;

/// Before an address, of which anybody may have many.
const ADDRESS: &str = "address:";

/// One tenant, by a name that is kept with its jobs and stands in the log.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub(crate) struct Tenant(Arc<str>);

impl Tenant {
    /// All keys of an account.
    pub(crate) fn account(id: &str) -> Self {
        Self::named("account:", id)
    }

    /// A key without an account.
    pub(crate) fn key(id: &str) -> Self {
        Self::named("key:", id)
    }

    /// An OAuth client with a subject, by their common name.
    pub(crate) fn client(name: &str) -> Self {
        Self::named("oauth:", name)
    }

    /// A first-party browser; an IPv6 client is its /64.
    pub(crate) fn address(address: &str) -> Self {
        Self::named(ADDRESS, address)
    }

    /// The operator of the service.
    pub(crate) fn operator() -> Self {
        Self::named("operator", "")
    }

    /// The owner of a job of which nothing else is known.
    pub(crate) fn owner(owner: &Owner) -> Self {
        Self::named("owner:", owner.as_str())
    }

    /// Whether no credential stands behind it, so that one person may be many.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.0.starts_with(ADDRESS)
    }

    /// The name without its kind.
    pub(crate) fn name(&self) -> &str {
        self.0.split_once(':').map_or(&*self.0, |(_, name)| name)
    }

    fn named(kind: &str, name: &str) -> Self {
        Self(format!("{kind}{name}").into())
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Tenant {
    fn from(name: String) -> Self {
        Self(name.into())
    }
}

impl From<Tenant> for String {
    fn from(tenant: Tenant) -> Self {
        tenant.0.as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job keeps its caller by the tenant alone where there is no key.
    #[test]
    fn a_name_is_what_stands_behind_the_kind() {
        assert_eq!(Tenant::client("c1:alice").name(), "c1:alice");
        assert_eq!(Tenant::address("2001:db8::/64").name(), "2001:db8::/64");
        assert_eq!(Tenant::key("k1").name(), "k1");
    }
}
