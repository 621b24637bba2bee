//! API keys: their form, their checksum, and what is stored of them.
//!
//! A key is `sb_`, its kind, `_`, 32 random base62 characters and 6 characters of CRC-32 (docs/api.md,
//! "Authentication"). Only its SHA-256 is stored: the key is shown once.

use std::collections::BTreeMap;
use std::time::SystemTime;

use rand::RngExt as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::rows::{Decision, Reads, Row, RowFault, RowName, RowQuery, RowRange, Space, decode};
use crate::base::clock::epoch_seconds;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_CHARACTERS: usize = 32;
const CHECK_CHARACTERS: usize = 6;
const ADMINISTRATOR_PREFIX: &str = "sb_adm_";
const SELF_SERVICE_PREFIX: &str = "sb_self_";

/// In a key's scopes: every scope, those of future plugins too.
pub(crate) const ALL_SCOPES: &str = "*";

/// Who issues a key, and so how its calls are limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyKind {
    /// Issued by the operator, with limits a minute and a month.
    Administrator,
    /// Of an account, with limits a second and the account's credits.
    SelfService,
}

/// A well-formed key. Its text is a secret: it has no `Debug` and no `Display`.
pub(crate) struct ApiKey(String);

/// What is stored of a key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KeyRecord {
    /// A UUID; what the operator names the key by.
    pub(crate) id: String,
    /// What the operator calls it.
    pub(crate) label: String,
    /// The key's visible start.
    pub(crate) prefix: String,
    /// The key's last four characters.
    pub(crate) last4: String,
    /// Scopes, or [`ALL_SCOPES`].
    pub(crate) scopes: Vec<String>,
    /// The account that pays for a self-service key; an administrator key has none.
    #[serde(default)]
    pub(crate) account: Option<String>,
    /// Calls a minute of an administrator key; `None` is no limit.
    pub(crate) per_minute: Option<u32>,
    /// Calls a calendar month in UTC of an administrator key; `None` is no limit.
    #[serde(default)]
    pub(crate) per_month: Option<u64>,
    /// Calls a second of a self-service key; `None` is no limit but its account's.
    #[serde(default)]
    pub(crate) per_second: Option<u32>,
    /// Calls a minute of an operation (`PLUGIN.OPERATION`), in the place of what its description says.
    #[serde(default)]
    pub(crate) windows: BTreeMap<String, u32>,
    /// Unix seconds.
    pub(crate) created_at: u64,
    pub(crate) expires_at: Option<u64>,
    pub(crate) revoked_at: Option<u64>,
}

impl KeyKind {
    /// What a key of this kind begins with.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            KeyKind::Administrator => ADMINISTRATOR_PREFIX,
            KeyKind::SelfService => SELF_SERVICE_PREFIX,
        }
    }
}

impl ApiKey {
    /// A new key.
    pub(crate) fn generate(kind: KeyKind) -> Self {
        let mut rng = rand::rng();
        let mut text = kind.prefix().to_owned();
        text.extend(
            (0..RANDOM_CHARACTERS)
                .map(|_| char::from(ALPHABET[rng.random_range(0..ALPHABET.len())])),
        );
        let check = checksum(&text);
        text.push_str(&check);
        Self(text)
    }

    /// Takes a text of the right form and checksum.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let rest = text
            .strip_prefix(ADMINISTRATOR_PREFIX)
            .or_else(|| text.strip_prefix(SELF_SERVICE_PREFIX))?;
        let well_formed = rest.len() == RANDOM_CHARACTERS + CHECK_CHARACTERS
            && rest.bytes().all(|b| b.is_ascii_alphanumeric());
        if !well_formed {
            return None;
        }
        let (body, check) = text.split_at(text.len() - CHECK_CHARACTERS);
        (checksum(body) == check).then(|| Self(text.to_owned()))
    }

    pub(crate) fn kind(&self) -> KeyKind {
        if self.0.starts_with(SELF_SERVICE_PREFIX) {
            KeyKind::SelfService
        } else {
            KeyKind::Administrator
        }
    }

    pub(crate) fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// The key itself, for the one time that it is shown.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    pub(crate) fn last4(&self) -> String {
        self.0[self.0.len() - 4..].to_owned()
    }
}

impl KeyRecord {
    /// Calls of an operation in a minute, where the key has a number of its own.
    pub(crate) fn per_minute_of(&self, plugin: &str, operation: &str) -> Option<u32> {
        if self.windows.is_empty() {
            return None;
        }
        self.windows.get(&format!("{plugin}.{operation}")).copied()
    }

    pub(crate) fn has_expired(&self, now: SystemTime) -> bool {
        self.expires_at
            .is_some_and(|expiry| expiry <= epoch_seconds(now))
    }
}

/// Key → [`KeptKey`], with the key's digest as its alias.
const KEYS: Space = Space::new("key");

/// Keys that may be listed; more would be a different kind of installation.
const KEYS_LISTED_MAX: usize = 10_000;

/// A key's record as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeptKey {
    digest: [u8; 32],
    record: KeyRecord,
}

/// The record of the key with this digest.
pub(crate) fn key(read: &mut dyn Reads, digest: &[u8; 32]) -> Result<Option<KeyRecord>, RowFault> {
    let kept: Option<KeptKey> = read.one(RowQuery::Alias(KEYS, digest), decode)?;
    Ok(kept.map(|kept| kept.record))
}

/// The record of the key with this id.
pub(crate) fn key_of_id(read: &mut dyn Reads, id: &str) -> Result<Option<KeyRecord>, RowFault> {
    let kept: Option<KeptKey> = read.record(&RowName::of(KEYS, id))?;
    Ok(kept.map(|kept| kept.record))
}

/// All keys, oldest first.
pub(crate) fn keys(read: &mut dyn Reads) -> Result<Vec<KeyRecord>, RowFault> {
    let all = RowRange::all(KEYS, KEYS_LISTED_MAX);
    let kept: Vec<KeptKey> = read.records(RowQuery::Range(&all))?;
    let mut keys: Vec<KeyRecord> = kept.into_iter().map(|kept| kept.record).collect();
    keys.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
    Ok(keys)
}

/// Keeps a new key's record. One that is kept already stands, whatever became of it since.
pub(crate) fn issue(
    read: &mut dyn Reads,
    digest: &[u8; 32],
    record: &KeyRecord,
) -> Result<Decision<()>, RowFault> {
    if read.has(&RowName::of(KEYS, &record.id))? {
        return Ok(Decision::unchanged(()));
    }
    Ok(Decision::write((), vec![row(digest, record)?.into()]))
}

/// The row of a key.
pub(crate) fn row(digest: &[u8; 32], record: &KeyRecord) -> Result<Row, RowFault> {
    let kept = KeptKey {
        digest: *digest,
        record: record.clone(),
    };
    let row = Row::record(RowName::of(KEYS, &record.id), &kept)?;
    Ok(row.alias(digest))
}

/// Marks a key as revoked. The outcome is its record; `None` where there is no such key. A revoked key keeps the time of its
/// first revocation.
pub(crate) fn revoke(
    read: &mut dyn Reads,
    id: &str,
    now_s: u64,
) -> Result<Decision<Option<KeyRecord>>, RowFault> {
    let kept: Option<KeptKey> = read.record(&RowName::of(KEYS, id))?;
    let Some(KeptKey { digest, mut record }) = kept else {
        return Ok(Decision::unchanged(None));
    };
    record.revoked_at.get_or_insert(now_s);
    let writes = vec![row(&digest, &record)?.into()];
    Ok(Decision::write(Some(record), writes))
}

/// The CRC-32 of the text in base62, six characters (62⁶ is above 2³²).
fn checksum(text: &str) -> String {
    let mut rest = crc32fast::hash(text.as_bytes()) as usize;
    let mut check = [b'0'; CHECK_CHARACTERS];
    for place in check.iter_mut().rev() {
        *place = ALPHABET[rest % ALPHABET.len()];
        rest /= ALPHABET.len();
    }
    check.iter().map(|byte| char::from(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_with_any_character_changed_is_malformed() {
        for kind in [KeyKind::Administrator, KeyKind::SelfService] {
            let key = ApiKey::generate(kind);
            let text = key.reveal();
            assert!(text.starts_with(kind.prefix()) && ApiKey::parse(text).is_some());
            for place in 0..text.len() {
                for other in ['0', 'a', 'Z', '_', 'é'] {
                    let changed = format!("{}{other}{}", &text[..place], &text[place + 1..]);
                    assert_eq!(
                        ApiKey::parse(&changed).is_some(),
                        changed == text,
                        "{place} {other}"
                    );
                }
            }
        }
    }
}
