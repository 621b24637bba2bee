//! Accounts: who pays for self-service keys, and what its plan allows.
//!
//! An account holds the subscription and its credits; several keys may share one (docs/api.md, "Authentication").

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::base::clock::epoch_seconds;

/// What is stored of an account.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Account {
    /// A UUID.
    pub(crate) id: String,
    /// What the operator calls it.
    pub(crate) label: String,
    /// Calls a second of all its keys together; `None` is no limit.
    pub(crate) per_second: Option<u32>,
    /// Calls at once of all its keys together; `None` is the configured default.
    pub(crate) concurrency: Option<u32>,
    /// `None` denies every call.
    pub(crate) entitlement: Option<Entitlement>,
    /// Unix seconds.
    pub(crate) created_at: u64,
}

/// What an account has paid for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entitlement {
    /// The plan's name.
    pub(crate) plan: String,
    /// Credits for each calendar month in UTC.
    pub(crate) credits_per_month: u64,
    /// Unix seconds; `None` is until it is withdrawn.
    pub(crate) expires_at: Option<u64>,
}

impl Account {
    /// The entitlement, where it allows calls now.
    pub(crate) fn entitlement(&self, now: SystemTime) -> Option<&Entitlement> {
        let holds = |entitlement: &&Entitlement| {
            entitlement
                .expires_at
                .is_none_or(|at| at > epoch_seconds(now))
        };
        self.entitlement.as_ref().filter(holds)
    }
}
