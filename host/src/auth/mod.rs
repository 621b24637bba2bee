//! Who calls, and whether it may.
//!
//! Reads credentials from headers, finds whose they are, and compares scopes. Must not know what an operation does or how
//! a refusal is printed on either face.

pub(crate) mod api_key;
pub(crate) mod oauth;

use std::sync::Arc;
use std::time::SystemTime;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};

use self::api_key::{ApiKey, KeyRecord};
use self::oauth::{OAuth, OAuthError, Token, TokenError};
use crate::error::{Challenge, Code, Refusal};
use crate::operation::{CallerKind, Face, Scope};
use crate::stores::{Store, StoreError};

/// The header that carries an API key beside `Authorization: Bearer`.
const API_KEY_HEADER: &str = "x-service-api-key";
/// No credential is longer.
const CREDENTIAL_BYTES_MAX: usize = 8192;

/// What a request's headers present.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Presented {
    Nothing,
    /// One credential (perhaps in both headers).
    One(String),
    /// Two different credentials, or one that its header may not hold.
    Unusable,
}

impl Presented {
    /// Reads both header forms.
    pub(crate) fn read<'h>(headers: &'h HeaderMap) -> Self {
        let mut found: Option<String> = None;
        // An access token is a bearer's (spec, "Authentication" 2).
        let key = |value: &'h HeaderValue| value.to_str().ok().filter(|text| !oauth::is_token(text));
        let keys = headers.get_all(API_KEY_HEADER).iter().map(key);
        let bearers = headers.get_all(AUTHORIZATION).iter().map(|value| value.to_str().ok().and_then(bearer));
        for credential in keys.chain(bearers) {
            let usable =
                credential.map(str::trim).filter(|text| !text.is_empty() && text.len() <= CREDENTIAL_BYTES_MAX);
            match (usable, &found) {
                (None, _) => return Self::Unusable,
                (Some(text), Some(other)) if text != other => return Self::Unusable,
                (Some(text), _) => found = Some(text.to_owned()),
            }
        }
        found.map_or(Self::Nothing, Self::One)
    }
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, credential) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(credential)
}

/// A caller whose credential is good.
#[derive(Debug)]
pub(crate) enum Caller {
    Key(Arc<KeyRecord>),
    OAuth { token: Arc<Token>, per_minute: u32 },
}

/// Why a caller is turned away.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuthError {
    #[error("no credential: send an API key as `Authorization: Bearer` or in `x-service-api-key`")]
    Missing,
    #[error("the credential is not valid")]
    Invalid,
    #[error("the credential was revoked")]
    Revoked,
    #[error("the credential has expired")]
    Expired,
    #[error("the access token has expired")]
    TokenExpired,
    #[error("the credential does not carry the scope {0}")]
    Scope(Scope),
    #[error("the store of credentials failed")]
    Store(#[source] StoreError),
    #[error("the identity provider's keys are not to be had")]
    Keys { retry_after_s: u64 },
}

/// Finds whose credential it is (spec, "Authentication" 4: unknown is 401; revoked or expired is 403). Without an identity
/// provider a token is an unknown credential.
pub(crate) async fn identify(
    store: &Store,
    oauth: Option<&OAuth>,
    presented: &Presented,
    face: Face,
    now: SystemTime,
) -> Result<Caller, AuthError> {
    let credential = match presented {
        Presented::Nothing => return Err(AuthError::Missing),
        Presented::Unusable => return Err(AuthError::Invalid),
        Presented::One(credential) => credential,
    };
    let Some(oauth) = oauth.filter(|_| oauth::is_token(credential)) else {
        return by_key(store, credential, now);
    };
    match oauth.identify(credential, face, now).await {
        Ok(token) => Ok(Caller::OAuth { token, per_minute: oauth.per_minute() }),
        Err(OAuthError::Token(TokenError::Expired)) => Err(AuthError::TokenExpired),
        Err(OAuthError::Token(_)) => Err(AuthError::Invalid),
        Err(OAuthError::Keys { retry_after }) => Err(AuthError::Keys { retry_after_s: retry_after.as_secs() + 1 }),
    }
}

/// Finds whose API key it is.
pub(crate) fn by_key(store: &Store, credential: &str, now: SystemTime) -> Result<Caller, AuthError> {
    // The checksum sorts out what was mistyped or made up before the store is asked.
    let key = ApiKey::parse(credential).ok_or(AuthError::Invalid)?;
    let record = store.key(&key.digest()).map_err(AuthError::Store)?.ok_or(AuthError::Invalid)?;
    if record.revoked_at.is_some() {
        return Err(AuthError::Revoked);
    }
    if record.has_expired(now) {
        return Err(AuthError::Expired);
    }
    Ok(Caller::Key(record))
}

impl Caller {
    /// Whether the credential carries the scope.
    pub(crate) fn authorize(&self, scope: &Scope) -> Result<(), AuthError> {
        let is_held = match self {
            Caller::Key(key) => key.scopes.iter().any(|held| held == scope.as_str() || held == api_key::ALL_SCOPES),
            Caller::OAuth { token, .. } => token.scopes.iter().any(|held| held == scope.as_str()),
        };
        match is_held {
            true => Ok(()),
            false => Err(AuthError::Scope(scope.clone())),
        }
    }

    /// Whose limits and jobs these are: the key's id, or a name of client and subject.
    pub(crate) fn owner(&self) -> &str {
        match self {
            Caller::Key(key) => &key.id,
            Caller::OAuth { token, .. } => &token.owner,
        }
    }

    /// Calls a minute that the caller has; `None` is no limit.
    pub(crate) fn per_minute(&self) -> Option<u32> {
        match self {
            Caller::Key(key) => key.per_minute,
            Caller::OAuth { per_minute, .. } => Some(*per_minute),
        }
    }

    pub(crate) fn kind(&self) -> CallerKind {
        match self {
            Caller::Key(_) => CallerKind::ApiKey,
            Caller::OAuth { .. } => CallerKind::OAuth,
        }
    }
}

impl AuthError {
    /// As a client of this face reads it. An access token that has expired is a 401 on /mcp, whose clients get another on no
    /// other status, and a 403 on REST, as the specification has it.
    pub(crate) fn refusal(self, face: Face, scope: &Scope, resource_metadata: Option<&str>) -> Refusal {
        let (code, error) = match &self {
            AuthError::Missing => (Code::Unauthorized, None),
            AuthError::Invalid => (Code::Unauthorized, Some("invalid_token")),
            AuthError::TokenExpired => match face {
                Face::Rest => (Code::Forbidden, Some("invalid_token")),
                Face::Tool => (Code::Unauthorized, Some("invalid_token")),
            },
            AuthError::Revoked | AuthError::Expired | AuthError::Scope(_) => {
                (Code::Forbidden, Some("insufficient_scope"))
            }
            AuthError::Store(source) => {
                let mut refusal = uncheckable(1);
                refusal.cause = Some(source.to_string());
                return refusal;
            }
            AuthError::Keys { retry_after_s } => return uncheckable(*retry_after_s),
        };
        let mut message = self.to_string();
        message[..1].make_ascii_uppercase();
        let mut refusal = Refusal::new(code, message);
        let resource_metadata = resource_metadata.map(str::to_owned);
        refusal.challenge = Some(Challenge { scope: scope.clone(), error, resource_metadata });
        refusal
    }
}

fn uncheckable(retry_after_s: u64) -> Refusal {
    Refusal::new(Code::ServiceUnavailable, "Credentials cannot be checked at the moment").retry_after(retry_after_s)
}
