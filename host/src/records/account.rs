//! Accounts: who pays for self-service keys, and what its plan allows.
//!
//! An account holds the subscription and its credits; several keys may share one (docs/api.md, "Authentication").

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::recent::RecentChanges;
use super::rows::{Decision, Reads, Row, RowFault, RowName, RowQuery, RowRange, Space};
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
    /// What gave it an entitlement or took one away.
    #[serde(default)]
    pub(crate) changes: RecentChanges,
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

/// Account → [`Account`].
const ACCOUNTS: Space = Space::new("account");

/// Accounts that may be listed; more would be a different kind of installation.
const ACCOUNTS_LISTED_MAX: usize = 10_000;

/// The account with this id.
pub(crate) fn account(read: &mut dyn Reads, id: &str) -> Result<Option<Account>, RowFault> {
    read.record(&RowName::of(ACCOUNTS, id))
}

/// All accounts, oldest first.
pub(crate) fn accounts(read: &mut dyn Reads) -> Result<Vec<Account>, RowFault> {
    let all = RowRange::all(ACCOUNTS, ACCOUNTS_LISTED_MAX);
    let mut accounts: Vec<Account> = read.records(RowQuery::Range(&all))?;
    accounts.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
    Ok(accounts)
}

/// Keeps a new account's record. One that is kept already stands, whatever became of it since.
pub(crate) fn open(read: &mut dyn Reads, account: &Account) -> Result<Decision<()>, RowFault> {
    if read.has(&RowName::of(ACCOUNTS, &account.id))? {
        return Ok(Decision::unchanged(()));
    }
    Ok(Decision::write((), vec![row(account)?.into()]))
}

/// The row of an account.
pub(crate) fn row(account: &Account) -> Result<Row, RowFault> {
    Row::record(RowName::of(ACCOUNTS, &account.id), account)
}

/// Gives an account an entitlement in the place of the one it had, or takes it away; the same change made again does neither.
/// The outcome is the account; `None` where there is no such account.
pub(crate) fn entitle(
    read: &mut dyn Reads,
    id: &str,
    change: Uuid,
    entitlement: Option<&Entitlement>,
) -> Result<Decision<Option<Account>>, RowFault> {
    let Some(mut account) = account(read, id)? else {
        return Ok(Decision::unchanged(None));
    };
    if account.changes.has(change) {
        return Ok(Decision::unchanged(Some(account)));
    }
    account.changes.note(change);
    account.entitlement = entitlement.cloned();
    let writes = vec![row(&account)?.into()];
    Ok(Decision::write(Some(account), writes))
}
