//! Accounts as the operator handles them: opened, listed, entitled to calls and not any more. The same functions serve the
//! operator's API and, while no server runs, the command line.

use std::sync::Arc;
use std::time::SystemTime;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::request;
use super::request::{RequestError, Timestamp};
use crate::base::clock::epoch_seconds;
use crate::records::account::{Account, Entitlement};
use crate::records::month::Month;
use crate::records::recent::RecentChanges;
use crate::stores::Store;

/// The account that the operator asks for.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AccountRequest {
    /// Who it belongs to, in 1 to 100 printable characters.
    pub(crate) label: String,
    /// Calls a second of all its keys; absent is no limit.
    #[schemars(range(min = 1))]
    pub(crate) per_second: Option<u32>,
    /// Calls at once of all its keys; absent is the configured default.
    #[schemars(range(min = 1))]
    pub(crate) concurrency: Option<u32>,
    /// Absent denies every call until there is one.
    pub(crate) entitlement: Option<EntitlementTerms>,
}

/// What an account is entitled to, as the operator asks for it and is told of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct EntitlementTerms {
    /// The plan's name, in 1 to 100 printable characters.
    pub(crate) plan: String,
    pub(crate) credits_per_month: u64,
    /// Absent is until it is withdrawn.
    pub(crate) expires_at: Option<Timestamp>,
}

/// An account as the operator reads it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AccountView {
    pub(crate) id: String,
    pub(crate) label: String,
    pub(crate) per_second: Option<u32>,
    pub(crate) concurrency: Option<u32>,
    pub(crate) entitlement: Option<EntitlementTerms>,
    pub(crate) created_at: Timestamp,
    /// Of the current month, where one account is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) credits: Option<MonthCredits>,
}

/// The credits of an account in one calendar month (UTC).
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct MonthCredits {
    pub(crate) month: String,
    pub(crate) spent: u64,
    /// Held by calls that have not ended.
    pub(crate) reserved: u64,
}

/// All accounts, oldest first.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct AccountList {
    pub(crate) accounts: Vec<AccountView>,
}

/// Opens an account.
pub(crate) async fn open(
    store: &Store,
    request: &AccountRequest,
    now: SystemTime,
) -> Result<AccountView, RequestError> {
    request::label("label", &request.label)?;
    request::limit("perSecond", request.per_second)?;
    request::limit("concurrency", request.concurrency)?;
    let account = Account {
        id: Uuid::now_v7().to_string(),
        label: request.label.clone(),
        per_second: request.per_second,
        concurrency: request.concurrency,
        entitlement: entitlement(request.entitlement.as_ref(), now)?,
        created_at: epoch_seconds(now),
        changes: RecentChanges::default(),
    };
    store.put_account(&account).await?;
    Ok(view(&account))
}

/// All accounts, oldest first.
pub(crate) async fn list(store: &Arc<Store>) -> Result<AccountList, RequestError> {
    let accounts = store.accounts().await?;
    let accounts = accounts.iter().map(view).collect();
    Ok(AccountList { accounts })
}

/// One account, with what it spent and holds reserved in the current month.
pub(crate) async fn show(
    store: &Arc<Store>,
    id: &str,
    now: SystemTime,
) -> Result<AccountView, RequestError> {
    let month = Month::of(epoch_seconds(now));
    let account = store.account(id).await?.ok_or_else(|| unknown(id))?;
    let balance = store.balance(id, month).await?;
    let credits = MonthCredits {
        month: month.to_string(),
        spent: balance.posted,
        reserved: balance.pending,
    };
    Ok(AccountView {
        credits: Some(credits),
        ..view(&account)
    })
}

/// Gives an account an entitlement in the place of the one it had, or takes it away: then its keys are refused.
pub(crate) async fn entitle(
    store: &Store,
    id: &str,
    request: Option<&EntitlementTerms>,
    now: SystemTime,
) -> Result<AccountView, RequestError> {
    let (change, entitlement) = (Uuid::now_v7(), entitlement(request, now)?);
    let account = store.entitle(id, change, entitlement).await?;
    account.as_ref().map(view).ok_or_else(|| unknown(id))
}

/// Refuses an account that does not exist.
pub(super) fn unknown(id: &str) -> RequestError {
    RequestError::Unknown {
        what: "account",
        id: id.to_owned(),
    }
}

fn entitlement(
    request: Option<&EntitlementTerms>,
    now: SystemTime,
) -> Result<Option<Entitlement>, RequestError> {
    let Some(request) = request else {
        return Ok(None);
    };
    request::label("plan", &request.plan)?;
    Ok(Some(Entitlement {
        plan: request.plan.clone(),
        credits_per_month: request.credits_per_month,
        expires_at: request::expiry(request.expires_at.as_ref(), now)?,
    }))
}

fn view(account: &Account) -> AccountView {
    let terms = |entitlement: &Entitlement| EntitlementTerms {
        plan: entitlement.plan.clone(),
        credits_per_month: entitlement.credits_per_month,
        expires_at: entitlement.expires_at.map(Timestamp::of),
    };
    AccountView {
        id: account.id.clone(),
        label: account.label.clone(),
        per_second: account.per_second,
        concurrency: account.concurrency,
        entitlement: account.entitlement.as_ref().map(terms),
        created_at: Timestamp::of(account.created_at),
        credits: None,
    }
}
