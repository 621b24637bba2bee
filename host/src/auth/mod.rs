//! Who calls, and whether it may.
//!
//! Reads credentials from headers, finds whose they are, and compares scopes. Must not know what an operation does or how
//! a refusal is printed on either face.

pub(crate) mod first_party;
pub(crate) mod oauth;

use std::sync::Arc;
use std::time::SystemTime;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};

use self::oauth::{AccessToken, OAuth, OAuthError, TokenError};
use crate::contract::error::{AuthChallenge, Code, Refusal, sentence};
use crate::contract::operation::{CallerKind, Face, Scope};
use crate::contract::tenant::Tenant;
use crate::places::peer::Address;
use crate::records::account::Account;
use crate::records::api_key::{ALL_SCOPES, ApiKey, KeyKind, KeyRecord};
use crate::stores::{Store, StoreError};

/// The header that carries an API key beside `Authorization: Bearer`.
const API_KEY_HEADER: &str = "x-service-api-key";
/// No credential is longer.
const CREDENTIAL_BYTES_MAX: usize = 8192;

/// What a request's headers present.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PresentedCredential {
    Nothing,
    /// One credential (perhaps in both headers).
    One(String),
    /// Two different credentials, or one that its header may not hold.
    Unusable,
}

impl PresentedCredential {
    /// Reads both header forms.
    pub(crate) fn read<'h>(headers: &'h HeaderMap) -> Self {
        let mut found: Option<String> = None;
        // An access token is a bearer's (docs/api.md, "Authentication").
        let key =
            |value: &'h HeaderValue| value.to_str().ok().filter(|text| !oauth::is_token(text));
        let keys = headers.get_all(API_KEY_HEADER).iter().map(key);
        let bearers = headers
            .get_all(AUTHORIZATION)
            .iter()
            .map(|value| value.to_str().ok().and_then(bearer));
        for credential in keys.chain(bearers) {
            let usable = credential
                .map(str::trim)
                .filter(|text| !text.is_empty() && text.len() <= CREDENTIAL_BYTES_MAX);
            match (usable, &found) {
                (None, _) => return Self::Unusable,
                (Some(text), Some(other)) if text != other => return Self::Unusable,
                (Some(text), _) => found = Some(text.to_owned()),
            }
        }
        found.map_or(Self::Nothing, Self::One)
    }

    /// Whether it has the form of a self-service key; nobody was asked yet whether it is one.
    pub(crate) fn is_self_service(&self) -> bool {
        match self {
            Self::One(text) => {
                ApiKey::parse(text).is_some_and(|key| key.kind() == KeyKind::SelfService)
            }
            Self::Nothing | Self::Unusable => false,
        }
    }
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, credential) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(credential)
}

/// A caller whose credential is good.
#[derive(Debug)]
pub(crate) struct Caller {
    /// Whose limits and jobs these are.
    owner: String,
    known_by: KnownBy,
}

#[derive(Debug)]
enum KnownBy {
    Key {
        key: Arc<KeyRecord>,
        /// Who pays, for a self-service key.
        account: Option<Arc<Account>>,
    },
    Token {
        token: Arc<AccessToken>,
        limits: CallerLimits,
    },
    Address,
}

/// What a credential allows; `None` is no limit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallerLimits {
    pub(crate) per_second: Option<u32>,
    pub(crate) per_minute: Option<u32>,
    /// A calendar month in UTC.
    pub(crate) per_month: Option<u64>,
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
    #[error("the account's plan does not allow calls")]
    Plan,
    #[error("the credential store failed")]
    Store(#[source] StoreError),
    #[error("the identity provider's keys could not be fetched")]
    Keys { retry_after_s: u64 },
}

/// Finds whose credential it is (docs/api.md, "Authentication": unknown is 401; revoked, expired or of a denied plan is 403).
/// Without an identity provider a token is an unknown credential.
pub(crate) async fn identify(
    store: &Store,
    oauth: Option<&OAuth>,
    presented: &PresentedCredential,
    face: Face,
    now: SystemTime,
) -> Result<Caller, AuthError> {
    let credential = match presented {
        PresentedCredential::Nothing => return Err(AuthError::Missing),
        PresentedCredential::Unusable => return Err(AuthError::Invalid),
        PresentedCredential::One(credential) => credential,
    };
    let Some(oauth) = oauth.filter(|_| oauth::is_token(credential)) else {
        return by_key(store, credential, now).await;
    };
    match oauth.identify(credential, face).await {
        Ok(token) => {
            let (owner, limits) = (token.owner.clone(), oauth.limits);
            let known_by = KnownBy::Token { token, limits };
            Ok(Caller { owner, known_by })
        }
        Err(OAuthError::Token(TokenError::Expired)) => Err(AuthError::TokenExpired),
        Err(OAuthError::Token(_)) => Err(AuthError::Invalid),
        Err(OAuthError::Keys { retry_after }) => Err(AuthError::Keys {
            retry_after_s: retry_after.as_secs() + 1,
        }),
    }
}

/// Finds whose API key it is.
pub(crate) async fn by_key(
    store: &Store,
    credential: &str,
    now: SystemTime,
) -> Result<Caller, AuthError> {
    // The checksum sorts out what was mistyped or made up before the store is asked.
    let key = ApiKey::parse(credential).ok_or(AuthError::Invalid)?;
    let record = store
        .key(&key.digest())
        .await
        .map_err(AuthError::Store)?
        .ok_or(AuthError::Invalid)?;
    if record.revoked_at.is_some() {
        return Err(AuthError::Revoked);
    }
    if record.has_expired(now) {
        return Err(AuthError::Expired);
    }
    let account = match &record.account {
        None => None,
        Some(id) => {
            let account = store.account(id).await.map_err(AuthError::Store)?;
            Some(
                account
                    .filter(|account| account.entitlement(now).is_some())
                    .ok_or(AuthError::Plan)?,
            )
        }
    };
    Ok(Caller {
        owner: record.id.clone(),
        known_by: KnownBy::Key {
            key: record,
            account,
        },
    })
}

impl Caller {
    /// A first-party browser, for an operation that has an allowance for those.
    pub(crate) fn of_address(address: Address) -> Self {
        Self {
            owner: address.to_string(),
            known_by: KnownBy::Address,
        }
    }

    /// Whether the credential carries the scope. The allowance for an address is a scope of its own.
    pub(crate) fn authorize(&self, scope: &Scope) -> Result<(), AuthError> {
        let is_held = match &self.known_by {
            KnownBy::Key { key, .. } => key
                .scopes
                .iter()
                .any(|held| held == scope.as_str() || held == ALL_SCOPES),
            KnownBy::Token { token, .. } => token.scopes.iter().any(|held| held == scope.as_str()),
            KnownBy::Address => true,
        };
        if is_held {
            Ok(())
        } else {
            Err(AuthError::Scope(scope.clone()))
        }
    }

    /// Whose limits and jobs these are: the key's id, a name of client and subject, or the address.
    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }

    /// Who pays: the account of a self-service key, or else the caller alone.
    pub(crate) fn tenant(&self) -> Tenant {
        match &self.known_by {
            KnownBy::Key {
                account: Some(account),
                ..
            } => Tenant::account(&account.id),
            KnownBy::Key { account: None, .. } => Tenant::key(&self.owner),
            KnownBy::Token { .. } => Tenant::client(&self.owner),
            KnownBy::Address => Tenant::address(&self.owner),
        }
    }

    /// The id of its API key.
    pub(crate) fn key(&self) -> Option<Arc<str>> {
        match &self.known_by {
            KnownBy::Key { key, .. } => Some(key.id.as_str().into()),
            KnownBy::Token { .. } | KnownBy::Address => None,
        }
    }

    pub(crate) fn kind(&self) -> CallerKind {
        match self.known_by {
            KnownBy::Key { .. } => CallerKind::ApiKey,
            KnownBy::Token { .. } => CallerKind::OAuth,
            KnownBy::Address => CallerKind::FirstParty,
        }
    }

    /// The account of a self-service key.
    pub(crate) fn account(&self) -> Option<&Arc<Account>> {
        match &self.known_by {
            KnownBy::Key { account, .. } => account.as_ref(),
            KnownBy::Token { .. } | KnownBy::Address => None,
        }
    }

    /// The credits of its account; none without one.
    pub(crate) fn credits_per_month(&self, now: SystemTime) -> u64 {
        let entitlement = self.account().and_then(|account| account.entitlement(now));
        entitlement.map_or(0, |entitlement| entitlement.credits_per_month)
    }

    /// What the credential itself allows.
    pub(crate) fn limits(&self) -> CallerLimits {
        match &self.known_by {
            KnownBy::Key { key, .. } => CallerLimits {
                per_second: key.per_second,
                per_minute: key.per_minute,
                per_month: key.per_month,
            },
            KnownBy::Token { limits, .. } => *limits,
            KnownBy::Address => CallerLimits::default(),
        }
    }

    /// Its API key.
    pub(crate) fn key_record(&self) -> Option<&Arc<KeyRecord>> {
        match &self.known_by {
            KnownBy::Key { key, .. } => Some(key),
            KnownBy::Token { .. } | KnownBy::Address => None,
        }
    }
}

impl AuthError {
    /// As a client of this face reads it. An access token that has expired is a 401 on /mcp, whose clients get another on no
    /// other status, and a 403 on REST, as the specification has it.
    pub(crate) fn refusal(
        self,
        face: Face,
        scope: &Scope,
        resource_metadata: Option<&str>,
    ) -> Refusal {
        let (code, error) = match &self {
            AuthError::Missing => (Code::Unauthorized, None),
            AuthError::Invalid => (Code::Unauthorized, Some("invalid_token")),
            AuthError::TokenExpired => match face {
                Face::Rest => (Code::Forbidden, Some("invalid_token")),
                Face::Tool => (Code::Unauthorized, Some("invalid_token")),
            },
            // RFC 6750, 3.1: a credential that is no good any more is an invalid one, whatever the status.
            AuthError::Revoked | AuthError::Expired => (Code::Forbidden, Some("invalid_token")),
            AuthError::Scope(_) => (Code::Forbidden, Some("insufficient_scope")),
            // No error of the RFC's: the credential is good, and a wider one would not help.
            AuthError::Plan => (Code::Forbidden, None),
            AuthError::Store(source) => {
                let mut refusal = uncheckable(1);
                refusal.cause = Some(source.to_string());
                return refusal;
            }
            AuthError::Keys { retry_after_s } => return uncheckable(*retry_after_s),
        };
        let mut refusal = Refusal::new(code, sentence(self.to_string()));
        let resource_metadata = resource_metadata.map(str::to_owned);
        refusal.challenge = Some(AuthChallenge {
            scope: scope.clone(),
            error,
            resource_metadata,
        });
        refusal
    }
}

fn uncheckable(retry_after_s: u64) -> Refusal {
    Refusal::new(
        Code::ServiceUnavailable,
        "Credentials cannot be checked at the moment",
    )
    .retry_after(retry_after_s)
}
