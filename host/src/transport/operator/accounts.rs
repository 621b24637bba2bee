//! Accounts as the operator handles them: opened, listed, entitled to calls and not any more. The same functions serve the
//! operator's API and, while no server runs, the command line.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::request;
use super::request::{RequestError, timestamp};
use crate::base::clock::epoch_seconds;
use crate::records::account::{Account, Entitlement};
use crate::records::month::Month;
use crate::stores::Store;

/// Below it, an account's id, and below that `entitlement` and `entries`.
pub(crate) const PATH: &str = "/admin/v1/accounts";

/// The account that the operator asks for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AccountRequest {
    pub(crate) label: String,
    /// Calls a second of all its keys; absent is no limit.
    pub(crate) per_second: Option<u32>,
    /// Calls at once of all its keys; absent is the configured default.
    pub(crate) concurrency: Option<u32>,
    /// Absent denies every call until there is one.
    pub(crate) entitlement: Option<EntitlementRequest>,
}

/// The entitlement that the operator asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct EntitlementRequest {
    pub(crate) plan: String,
    pub(crate) credits_per_month: u64,
    /// RFC 3339; absent is until it is withdrawn.
    pub(crate) expires_at: Option<String>,
}

/// Opens an account.
pub(crate) async fn open(
    store: &Store,
    request: &AccountRequest,
    now: SystemTime,
) -> Result<Value, RequestError> {
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
    };
    store.put_account(&account).await?;
    Ok(view(&account))
}

/// All accounts, oldest first.
pub(crate) async fn list(store: &Store) -> Result<Value, RequestError> {
    let accounts: Vec<Value> = store.accounts().await?.iter().map(view).collect();
    Ok(json!({ "accounts": accounts }))
}

/// One account, with what it spent and holds reserved in the current month.
pub(crate) async fn show(store: &Store, id: &str, now: SystemTime) -> Result<Value, RequestError> {
    let account = store.account(id).await?.ok_or_else(|| unknown(id))?;
    let month = Month::of(epoch_seconds(now));
    let balance = store.balance(id, month).await?;
    let mut view = view(&account);
    view["credits"] =
        json!({ "month": month.to_string(), "spent": balance.posted, "reserved": balance.pending });
    Ok(view)
}

/// Gives an account an entitlement in the place of the one it had, or takes it away: then its keys are refused.
pub(crate) async fn entitle(
    store: &Store,
    id: &str,
    request: Option<&EntitlementRequest>,
    now: SystemTime,
) -> Result<Value, RequestError> {
    let account = store.entitle(id, entitlement(request, now)?).await?;
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
    request: Option<&EntitlementRequest>,
    now: SystemTime,
) -> Result<Option<Entitlement>, RequestError> {
    let Some(request) = request else {
        return Ok(None);
    };
    request::label("plan", &request.plan)?;
    Ok(Some(Entitlement {
        plan: request.plan.clone(),
        credits_per_month: request.credits_per_month,
        expires_at: request::expiry(request.expires_at.as_deref(), now)?,
    }))
}

fn view(account: &Account) -> Value {
    let entitlement = account.entitlement.as_ref().map(|entitlement| {
        json!({
            "plan": entitlement.plan,
            "creditsPerMonth": entitlement.credits_per_month,
            "expiresAt": entitlement.expires_at.map(timestamp),
        })
    });
    json!({
        "id": account.id,
        "label": account.label,
        "perSecond": account.per_second,
        "concurrency": account.concurrency,
        "entitlement": entitlement,
        "createdAt": timestamp(account.created_at),
    })
}
