//! API keys as the operator handles them: issued, listed, rotated, revoked. The same functions serve the operator's API and,
//! while no server runs, the command line.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::request;
use super::request::{RequestError, Timestamp, invalid};
use crate::base::clock::epoch_seconds;
use crate::contract::operation::Scope;
use crate::records::api_key::{ALL_SCOPES, ApiKey, KeyKind, KeyRecord};
use crate::stores::Store;

const SCOPES_MAX: usize = 64;
/// Operations that one key has windows of its own for.
const WINDOWS_MAX: usize = 64;

/// What the operator asks for. With an account it is a self-service key, otherwise an administrator key.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct KeyRequest {
    /// What the key is for, in 1 to 100 printable characters.
    pub(crate) label: String,
    /// Scopes such as `domain:dns`, or `*` for all.
    pub(crate) scopes: Vec<String>,
    /// The account that pays; makes it a self-service key.
    pub(crate) account: Option<String>,
    /// Calls a minute of an administrator key; absent is no limit.
    #[schemars(range(min = 1))]
    pub(crate) per_minute: Option<u32>,
    /// Calls a calendar month (UTC) of an administrator key; absent is no limit.
    #[schemars(range(min = 1))]
    pub(crate) per_month: Option<u64>,
    /// Calls a second of a self-service key; absent is no limit but its account's.
    #[schemars(range(min = 1))]
    pub(crate) per_second: Option<u32>,
    /// Calls a minute of operations (`PLUGIN.OPERATION`), in the place of what their descriptions say.
    pub(crate) windows: Option<BTreeMap<String, u32>>,
    /// Absent is never.
    pub(crate) expires_at: Option<Timestamp>,
}

/// A key as the operator reads it, without its secret.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeyView {
    pub(crate) id: String,
    pub(crate) label: String,
    /// Its visible start and its last four characters.
    pub(crate) display: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) account: Option<String>,
    pub(crate) per_minute: Option<u32>,
    pub(crate) per_month: Option<u64>,
    pub(crate) per_second: Option<u32>,
    pub(crate) windows: BTreeMap<String, u32>,
    pub(crate) created_at: Timestamp,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) revoked_at: Option<Timestamp>,
}

/// A new key.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct IssuedKey {
    #[serde(flatten)]
    pub(crate) view: KeyView,
    /// The key itself, which nothing else shows.
    pub(crate) key: String,
}

/// All keys, oldest first.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct KeyList {
    pub(crate) keys: Vec<KeyView>,
}

/// Makes a key. The answer is the only place that shows it.
pub(crate) async fn issue(
    store: &Store,
    request: &KeyRequest,
    now: SystemTime,
) -> Result<IssuedKey, RequestError> {
    let expires_at = check(store, request, now).await?;
    let kind = kind(request.account.as_ref());
    let key = ApiKey::generate(kind);
    let record = KeyRecord {
        id: Uuid::now_v7().to_string(),
        label: request.label.clone(),
        prefix: kind.prefix().to_owned(),
        last4: key.last4(),
        scopes: request.scopes.clone(),
        account: request.account.clone(),
        per_minute: request.per_minute,
        per_month: request.per_month,
        per_second: request.per_second,
        windows: request.windows.clone().unwrap_or_default(),
        created_at: epoch_seconds(now),
        expires_at,
        revoked_at: None,
    };
    store.put_key(key.digest(), &record).await?;
    Ok(shown(&key, &record))
}

/// All keys, oldest first.
pub(crate) async fn list(store: &Arc<Store>) -> Result<KeyList, RequestError> {
    let keys = store.keys().await?;
    let keys = keys.iter().map(view).collect();
    Ok(KeyList { keys })
}

/// Makes a key with the settings of another, and revokes that one. The new key is a new owner: the limits that the old one
/// used up and the jobs that it started stay with it.
pub(crate) async fn rotate(
    store: &Store,
    id: &str,
    now: SystemTime,
) -> Result<IssuedKey, RequestError> {
    let Some(old) = store.key_of_id(id).await? else {
        return Err(unknown(id));
    };
    if old.revoked_at.is_some() {
        return Err(RequestError::Revoked(id.to_owned()));
    }
    let key = ApiKey::generate(kind(old.account.as_ref()));
    let record = KeyRecord {
        id: Uuid::now_v7().to_string(),
        last4: key.last4(),
        created_at: epoch_seconds(now),
        ..old
    };
    // In this order a failure in between leaves two good keys, and the operator may try again.
    store.put_key(key.digest(), &record).await?;
    store.revoke_key(id, epoch_seconds(now)).await?;
    Ok(shown(&key, &record))
}

/// Revokes a key for ever. Revoking it again changes nothing.
pub(crate) async fn revoke(
    store: &Store,
    id: &str,
    now: SystemTime,
) -> Result<KeyView, RequestError> {
    let revoked = store.revoke_key(id, epoch_seconds(now)).await?;
    revoked.as_ref().map(view).ok_or_else(|| unknown(id))
}

fn kind(account: Option<&String>) -> KeyKind {
    match account {
        Some(_) => KeyKind::SelfService,
        None => KeyKind::Administrator,
    }
}

fn unknown(id: &str) -> RequestError {
    RequestError::Unknown {
        what: "key",
        id: id.to_owned(),
    }
}

async fn check(
    store: &Store,
    request: &KeyRequest,
    now: SystemTime,
) -> Result<Option<u64>, RequestError> {
    request::label("label", &request.label)?;
    if !(1..=SCOPES_MAX).contains(&request.scopes.len()) {
        let rule = format!("must have 1 to {SCOPES_MAX} scopes, or `*` alone");
        return invalid("scopes", rule);
    }
    let all = request.scopes.iter().any(|scope| scope == ALL_SCOPES);
    if all && request.scopes.len() > 1 {
        return invalid("scopes", "must have either `*` alone or no `*`");
    }
    let is_none = |scope: &&String| !all && Scope::parse(scope).is_none();
    if let Some(scope) = request.scopes.iter().find(is_none) {
        let rule = format!("has `{scope}`, which is not a scope; write `area:action`");
        return invalid("scopes", rule);
    }
    request::limit("perMinute", request.per_minute)?;
    request::limit("perMonth", request.per_month)?;
    request::limit("perSecond", request.per_second)?;
    windows(request.windows.as_ref())?;
    match &request.account {
        Some(_) if request.per_minute.is_some() => {
            invalid("perMinute", "is for keys without an account")?;
        }
        Some(_) if request.per_month.is_some() => {
            invalid("perMonth", "is for keys without an account")?;
        }
        None if request.per_second.is_some() => {
            invalid("perSecond", "is for keys with an account")?;
        }
        Some(account) if store.account(account).await?.is_none() => {
            invalid("account", format!("is {account}, which does not exist"))?;
        }
        Some(_) | None => {}
    }
    request::expiry(request.expires_at.as_ref(), now)
}

/// Operations of any plugin may be named, also of one that is to come.
fn windows(windows: Option<&BTreeMap<String, u32>>) -> Result<(), RequestError> {
    let Some(windows) = windows else {
        return Ok(());
    };
    if windows.len() > WINDOWS_MAX {
        let count = windows.len();
        let rule = format!("has {count} operations; at most {WINDOWS_MAX} are allowed");
        return invalid("windows", rule);
    }
    let is_name = |part: &str| {
        let is_plain = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
        };
        (1..=64).contains(&part.len()) && part.bytes().all(is_plain)
    };
    for (operation, per_minute) in windows {
        let names = operation.split_once('.');
        if !names.is_some_and(|(plugin, operation)| is_name(plugin) && is_name(operation)) {
            let rule = format!("has `{operation}`, which is not a `PLUGIN.OPERATION`");
            return invalid("windows", rule);
        }
        request::limit("windows", Some(*per_minute))?;
    }
    Ok(())
}

fn shown(key: &ApiKey, record: &KeyRecord) -> IssuedKey {
    IssuedKey {
        view: view(record),
        key: key.reveal().to_owned(),
    }
}

fn view(record: &KeyRecord) -> KeyView {
    KeyView {
        id: record.id.clone(),
        label: record.label.clone(),
        display: format!("{}…{}", record.prefix, record.last4),
        scopes: record.scopes.clone(),
        account: record.account.clone(),
        per_minute: record.per_minute,
        per_month: record.per_month,
        per_second: record.per_second,
        windows: record.windows.clone(),
        created_at: Timestamp::of(record.created_at),
        expires_at: record.expires_at.map(Timestamp::of),
        revoked_at: record.revoked_at.map(Timestamp::of),
    }
}
