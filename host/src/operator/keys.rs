//! API keys as the operator handles them: issued, listed, revoked. The same functions serve the operator's API and, while no
//! server runs, the command line.

use std::time::SystemTime;

use serde::Deserialize;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use crate::auth::api_key::{ALL_SCOPES, ApiKey, KeyRecord, epoch_seconds};
use crate::error::{Code, Refusal};
use crate::operation::Scope;
use crate::stores::{Store, StoreError};

const LABEL_CHARACTERS_MAX: usize = 100;
const SCOPES_MAX: usize = 64;

/// A key that cannot be issued or found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyError {
    #[error("the body is no key request: {0}")]
    Malformed(#[source] serde_json::Error),
    #[error("`{field}` {rule}")]
    Invalid { field: &'static str, rule: String },
    #[error("there is no key with the id {0}")]
    Unknown(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What the operator asks for.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct KeyRequest {
    pub(crate) label: String,
    /// Scopes such as `domain:dns`, or `*` for all.
    pub(crate) scopes: Vec<String>,
    /// Calls a minute; absent is no limit.
    #[serde(default)]
    pub(crate) per_minute: Option<u32>,
    /// RFC 3339; absent is never.
    #[serde(default)]
    pub(crate) expires_at: Option<String>,
}

/// Reads a request for a key.
pub(crate) fn read(body: &[u8]) -> Result<KeyRequest, KeyError> {
    serde_json::from_slice(body).map_err(KeyError::Malformed)
}

/// Makes a key. The answer is the only place that shows it.
pub(crate) async fn issue(store: &Store, request: &KeyRequest, now: SystemTime) -> Result<Value, KeyError> {
    let expires_at = check(request, now)?;
    let key = ApiKey::generate();
    let record = KeyRecord {
        id: Uuid::now_v7().to_string(),
        label: request.label.clone(),
        prefix: key.prefix(),
        last4: key.last4(),
        scopes: request.scopes.clone(),
        per_minute: request.per_minute,
        created_at: epoch_seconds(now),
        expires_at,
        revoked_at: None,
    };
    store.put_key(key.digest(), &record).await?;
    let mut view = view(&record);
    view["key"] = json!(key.reveal());
    Ok(view)
}

/// All keys, oldest first.
pub(crate) fn list(store: &Store) -> Result<Value, KeyError> {
    let keys: Vec<Value> = store.keys()?.iter().map(view).collect();
    Ok(json!({ "keys": keys }))
}

/// Revokes a key for ever. Revoking it again changes nothing.
pub(crate) async fn revoke(store: &Store, id: &str, now: SystemTime) -> Result<Value, KeyError> {
    let revoked = store.revoke_key(id, epoch_seconds(now)).await?;
    revoked.as_ref().map(view).ok_or_else(|| KeyError::Unknown(id.to_owned()))
}

fn check(request: &KeyRequest, now: SystemTime) -> Result<Option<u64>, KeyError> {
    let invalid = |field, rule: String| Err(KeyError::Invalid { field, rule });
    let characters = request.label.chars().count();
    if !(1..=LABEL_CHARACTERS_MAX).contains(&characters) || request.label.chars().any(char::is_control) {
        return invalid("label", format!("must have 1 to {LABEL_CHARACTERS_MAX} printable characters"));
    }
    if !(1..=SCOPES_MAX).contains(&request.scopes.len()) {
        return invalid("scopes", format!("must have 1 to {SCOPES_MAX} scopes, or `*` alone"));
    }
    let all = request.scopes.iter().any(|scope| scope == ALL_SCOPES);
    if all && request.scopes.len() > 1 {
        return invalid("scopes", "must have `*` alone or not at all".to_owned());
    }
    if let Some(scope) = request.scopes.iter().find(|scope| !all && Scope::parse(scope).is_none()) {
        return invalid("scopes", format!("has `{scope}`, which is no scope; write `area:action`"));
    }
    if request.per_minute == Some(0) {
        return invalid("perMinute", "must be at least 1".to_owned());
    }
    let Some(text) = &request.expires_at else { return Ok(None) };
    let expiry = OffsetDateTime::parse(text, &Rfc3339).ok().and_then(|at| u64::try_from(at.unix_timestamp()).ok());
    match expiry {
        Some(expiry) if expiry > epoch_seconds(now) => Ok(Some(expiry)),
        Some(_) => invalid("expiresAt", format!("is {text}, which is past")),
        None => invalid("expiresAt", format!("is {text}; write a time such as 2027-01-31T00:00:00Z")),
    }
}

fn view(record: &KeyRecord) -> Value {
    json!({
        "id": record.id,
        "label": record.label,
        "display": format!("{}…{}", record.prefix, record.last4),
        "scopes": record.scopes,
        "perMinute": record.per_minute,
        "createdAt": timestamp(record.created_at),
        "expiresAt": record.expires_at.map(timestamp),
        "revokedAt": record.revoked_at.map(timestamp),
    })
}

fn timestamp(epoch_s: u64) -> String {
    let at = i64::try_from(epoch_s).ok().and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    at.and_then(|at| at.format(&Rfc3339).ok()).unwrap_or_default()
}

impl KeyError {
    pub(crate) fn refusal(self) -> Refusal {
        match self {
            KeyError::Malformed(_) => Refusal::new(Code::ValidationError, self.to_string()),
            KeyError::Invalid { field, .. } => {
                Refusal::new(Code::ValidationError, self.to_string()).with("field", field)
            }
            KeyError::Unknown(_) => Refusal::new(Code::NotFound, self.to_string()),
            KeyError::Store(source) => {
                let mut refusal = Refusal::new(Code::ServiceUnavailable, "The store fails").retry_after(1);
                refusal.cause = Some(source.to_string());
                refusal
            }
        }
    }
}
