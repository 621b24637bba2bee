//! Access tokens in the form of RFC 9068: read, verified and judged, from values alone.
//!
//! A token is a stranger's text until its signature is verified, so its header is read strictly, and its claims only
//! afterwards. No error here holds anything of the token's, and none is shown to a client in these words.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::keys::{Algorithm, KID_BYTES_MAX, Key};
use crate::base::json::strict_json;

/// How far the issuer's clock may be from ours, in seconds (docs/api.md, "Authentication").
const SKEW_S: u64 = 30;
/// Header members that say where a key is, or that the token is to be read in a way which is not known here. Any other
/// unknown member is ignored, as RFC 7515 wants.
const REFUSED_MEMBERS: [&str; 9] = [
    "crit", "b64", "zip", "enc", "cty", "jku", "jwk", "x5u", "x5c",
];

/// Why a text is no access token for this service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    #[error(
        "it is not three base64url parts, the first two of them JSON objects without duplicate members"
    )]
    Form,
    #[error("its header has a member that is not supported")]
    Member,
    #[error("its `typ` is not that of an access token")]
    Type,
    #[error("its algorithm is neither RS256 nor ES256, or does not match its key")]
    Algorithm,
    #[error("its header names no key, or a key that the issuer does not publish")]
    Key,
    #[error("its signature does not match its key")]
    Signature,
    #[error("a required claim is missing or malformed")]
    Claim,
    #[error("it is bound to a key of its client and cannot be used as a bearer token")]
    Bound,
    #[error("it is from another issuer")]
    Issuer,
    #[error("it is for another audience")]
    Audience,
    #[error("it is not valid yet")]
    NotYet,
    #[error("it has expired")]
    Expired,
}

/// A token's text, taken apart.
pub(super) struct UnverifiedToken<'t> {
    pub(super) kid: String,
    pub(super) algorithm: Algorithm,
    message: &'t str,
    claims: &'t str,
    signature: Vec<u8>,
}

/// What a verified token says. Whether it is for here and now is judged anew at each call.
#[derive(Debug)]
pub(crate) struct AccessToken {
    /// Stands for issuer, client and subject together. No API key's id looks like it.
    pub(crate) owner: String,
    pub(crate) scopes: Vec<String>,
    audiences: Vec<String>,
    not_before: u64,
    expires_at: u64,
}

/// Whether a credential is meant as a token: API keys begin otherwise and have no dots.
pub(crate) fn is_token(credential: &str) -> bool {
    credential.bytes().filter(|byte| *byte == b'.').count() == 2
}

impl<'t> UnverifiedToken<'t> {
    /// Reads the header of a text with two dots.
    pub(super) fn parse(text: &'t str) -> Result<Self, TokenError> {
        let (message, signature) = text.rsplit_once('.').ok_or(TokenError::Form)?;
        let (header, claims) = message.split_once('.').ok_or(TokenError::Form)?;
        let header = object(header)?;
        if REFUSED_MEMBERS
            .iter()
            .any(|member| header.contains_key(*member))
        {
            return Err(TokenError::Member);
        }
        let kind = text_of(&header, "typ")
            .ok_or(TokenError::Type)?
            .to_ascii_lowercase();
        if kind.strip_prefix("application/").unwrap_or(&kind) != "at+jwt" {
            return Err(TokenError::Type);
        }
        let algorithm = text_of(&header, "alg")
            .and_then(Algorithm::from_name)
            .ok_or(TokenError::Algorithm)?;
        let kid = text_of(&header, "kid")
            .filter(|kid| kid.len() <= KID_BYTES_MAX)
            .ok_or(TokenError::Key)?
            .to_owned();
        let signature = URL_SAFE_NO_PAD
            .decode(signature)
            .map_err(|_| TokenError::Form)?;
        Ok(Self {
            kid,
            algorithm,
            message,
            claims,
            signature,
        })
    }

    /// Takes the claims, if the key made the signature and the issuer is this one.
    pub(super) fn verify(self, key: &Key, issuer: &str) -> Result<AccessToken, TokenError> {
        if !key.made(&self.signature, self.message.as_bytes()) {
            return Err(TokenError::Signature);
        }
        let claims = object(self.claims)?;
        let text = |name: &str| {
            text_of(&claims, name)
                .filter(|text| !text.is_empty())
                .ok_or(TokenError::Claim)
        };
        let seconds = |name: &str| {
            claims
                .get(name)
                .and_then(Value::as_u64)
                .ok_or(TokenError::Claim)
        };
        if text("iss")? != issuer {
            return Err(TokenError::Issuer);
        }
        if claims.contains_key("cnf") {
            return Err(TokenError::Bound);
        }
        text("jti")?;
        let not_before = if claims.contains_key("nbf") {
            seconds("nbf")?
        } else {
            0
        };
        let scopes = match claims.get("scope") {
            None => Vec::new(),
            Some(Value::String(scopes)) => scopes
                .split(' ')
                .filter(|scope| !scope.is_empty())
                .map(str::to_owned)
                .collect(),
            Some(_) => return Err(TokenError::Claim),
        };
        Ok(AccessToken {
            owner: owner(issuer, text("client_id")?, text("sub")?),
            scopes,
            audiences: audiences(claims.get("aud"))?,
            // A token from the future is from another clock, or from nobody.
            not_before: not_before.max(seconds("iat")?),
            expires_at: seconds("exp")?,
        })
    }
}

impl AccessToken {
    /// Whether the token is for one of these audiences, at this second. Expiry comes last, because it alone tells a client
    /// that another token of the same kind will do.
    pub(super) fn judge(&self, audiences: &[String], now_s: u64) -> Result<(), TokenError> {
        if !self
            .audiences
            .iter()
            .any(|audience| audiences.contains(audience))
        {
            return Err(TokenError::Audience);
        }
        if self.not_before > now_s.saturating_add(SKEW_S) {
            return Err(TokenError::NotYet);
        }
        if self.expires_at.saturating_add(SKEW_S) <= now_s {
            return Err(TokenError::Expired);
        }
        Ok(())
    }
}

/// A part of a token that must be an object. Its members are named once each, or two readers could read two tokens.
fn object(part: &str) -> Result<Map<String, Value>, TokenError> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Form)?;
    match strict_json(&bytes) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) | Err(_) => Err(TokenError::Form),
    }
}

fn text_of<'m>(members: &'m Map<String, Value>, name: &str) -> Option<&'m str> {
    members.get(name).and_then(Value::as_str)
}

fn audiences(claim: Option<&Value>) -> Result<Vec<String>, TokenError> {
    let text = |value: &Value| value.as_str().map(str::to_owned).ok_or(TokenError::Claim);
    match claim {
        Some(Value::Array(audiences)) => audiences.iter().map(text).collect(),
        Some(audience) => Ok(vec![text(audience)?]),
        None => Err(TokenError::Claim),
    }
}

/// One name for issuer, client and subject, of one length whatever theirs are.
fn owner(issuer: &str, client: &str, subject: &str) -> String {
    let mut digest = Sha256::new();
    for part in [issuer, client, subject] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    format!("oauth:{}", URL_SAFE_NO_PAD.encode(digest.finalize()))
}
