//! The issuer's public keys, as its key set publishes them (RFC 7517). Each key is bound to the one algorithm that it is
//! for, so that no token can choose another.

use aws_lc_rs::signature::UnparsedPublicKey;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;

/// Keys in a set; the rotation of a busy issuer has three or four.
const KEYS_MAX: usize = 64;
/// Bytes of a key's id.
pub(super) const KID_BYTES_MAX: usize = 256;
/// Shorter RSA moduli are no keys (RFC 7518, 3.3).
const RSA_BYTES_MIN: usize = 256;
/// One coordinate of a point on P-256.
const COORDINATE_BYTES: usize = 32;

/// The algorithms that an access token may be signed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rs256,
    Es256,
}

impl Algorithm {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            _ => None,
        }
    }
}

/// A document that is no set of keys for us.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeySetError {
    #[error("the key set is not a valid JWK set")]
    Form,
    #[error("the key set has {0} keys; at most {KEYS_MAX} are allowed")]
    TooMany(usize),
    #[error("the key set has no key for RS256 or ES256 signatures")]
    None,
}

/// The keys that can have signed a token.
#[derive(PartialEq, Eq)]
pub(super) struct KeySet(Vec<Key>);

/// One public key.
#[derive(PartialEq, Eq)]
pub(super) struct Key {
    kid: String,
    material: KeyMaterial,
}

#[derive(PartialEq, Eq)]
enum KeyMaterial {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// An uncompressed point.
    P256(Vec<u8>),
}

#[derive(Deserialize)]
struct KeySetDocument {
    keys: Vec<Value>,
}

/// A key as it is published. Members that are not here do not matter.
#[derive(Deserialize)]
struct PublishedKey {
    kty: String,
    kid: String,
    alg: Option<String>,
    r#use: Option<String>,
    key_ops: Option<Vec<String>>,
    n: Option<String>,
    e: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// Takes the keys that are for our algorithms; an issuer may publish others beside them.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, KeySetError> {
        let KeySetDocument { keys } =
            serde_json::from_slice(bytes).map_err(|_| KeySetError::Form)?;
        if keys.len() > KEYS_MAX {
            return Err(KeySetError::TooMany(keys.len()));
        }
        let keys: Vec<Key> = keys
            .into_iter()
            .filter_map(|key| serde_json::from_value(key).ok())
            .filter_map(key)
            .collect();
        if keys.is_empty() {
            return Err(KeySetError::None);
        }
        Ok(Self(keys))
    }

    /// Whether some key has the id, for whatever algorithm.
    pub(super) fn knows(&self, kid: &str) -> bool {
        self.0.iter().any(|key| key.kid == kid)
    }

    pub(super) fn find(&self, kid: &str, algorithm: Algorithm) -> Option<&Key> {
        self.0
            .iter()
            .find(|key| key.kid == kid && key.algorithm() == algorithm)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Key {
    fn algorithm(&self) -> Algorithm {
        match self.material {
            KeyMaterial::Rsa { .. } => Algorithm::Rs256,
            KeyMaterial::P256(_) => Algorithm::Es256,
        }
    }

    /// Whether this key made the signature of the message.
    pub(super) fn made(&self, signature: &[u8], message: &[u8]) -> bool {
        let verified = match &self.material {
            KeyMaterial::Rsa { n, e } => RsaPublicKeyComponents { n, e }.verify(
                &RSA_PKCS1_2048_8192_SHA256,
                message,
                signature,
            ),
            KeyMaterial::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
        };
        verified.is_ok()
    }
}

/// The key, where it is one of ours.
fn key(published: PublishedKey) -> Option<Key> {
    let signs = published.r#use.is_none_or(|purpose| purpose == "sig")
        && (published.key_ops)
            .is_none_or(|operations| operations.iter().any(|operation| operation == "verify"));
    let material = match published.kty.as_str() {
        "RSA" => KeyMaterial::Rsa {
            n: decoded(published.n)?,
            e: decoded(published.e)?,
        },
        "EC" if published.crv.as_deref() == Some("P-256") => {
            let (x, y) = (decoded(published.x)?, decoded(published.y)?);
            KeyMaterial::P256([vec![4], x, y].concat())
        }
        _ => return None,
    };
    let sound = match &material {
        KeyMaterial::Rsa { n, .. } => n.len() >= RSA_BYTES_MIN,
        KeyMaterial::P256(point) => point.len() == 1 + 2 * COORDINATE_BYTES,
    };
    let (kid, alg) = (published.kid, published.alg);
    let key = Key { kid, material };
    let bound = alg.is_none_or(|name| Algorithm::from_name(&name) == Some(key.algorithm()));
    (signs && sound && bound && key.kid.len() <= KID_BYTES_MAX).then_some(key)
}

fn decoded(text: Option<String>) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text?).ok()
}
