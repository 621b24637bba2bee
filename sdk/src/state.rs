//! The plugin's permanent storage: records that survive swaps and restarts.
//!
//! Using this module makes the component import `switchbay:state/records`. An atom such as `state:1MiB`
//! sets the size: the plugin asks for it with [`Plugin::wants`], the operator grants it in the manifest.
//! A write is on disk when it returns.
//!
//! Instances run concurrently, so a change that depends on the old value is written with the version
//! that was read. [`update_json`] does that, and starts over if another instance was faster:
//!
//! ```no_run
//! use switchbay_sdk::state;
//!
//! async fn count() -> Result<u64, state::Error> {
//!     state::update_json("count", |count: Option<u64>| count.unwrap_or(0) + 1).await
//! }
//! ```
//!
//! [`Plugin::wants`]: crate::Plugin::wants

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::switchbay::state0_2_0::records::{self, Change, NewEntry, WriteOne};

pub use crate::bindings::switchbay::state0_2_0::records::{Error, Expected, Listed, Mismatch};

/// How often [`update_json`] tries.
const TRIES_MAX: usize = 256;

/// A record's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<T = Vec<u8>> {
    /// The value.
    pub value: T,
    /// Increases with each write of the plugin; a record never has the same version twice.
    pub version: u64,
    /// When the record expires, in milliseconds since 1970-01-01 UTC; `None` if it does not.
    pub expires_ms: Option<u64>,
}

/// A write of one record, to be made with [`write`].
#[derive(Clone, Debug)]
pub struct Write(WriteOne);

impl Write {
    /// Replaces the record with this key, or makes it.
    #[must_use]
    pub fn put(key: &str, value: impl Into<Vec<u8>>) -> Self {
        let entry = NewEntry {
            value: value.into(),
            expires_ms: None,
        };
        Self::of(key, Change::Put(entry))
    }

    /// The same, with a value as JSON.
    ///
    /// # Errors
    /// If the value cannot be serialized as JSON ([`Error::NotAcceptable`]).
    pub fn put_json(key: &str, value: &impl Serialize) -> Result<Self, Error> {
        let json = serde_json::to_vec(value).map_err(|error| not_json(&error))?;
        Ok(Self::put(key, json))
    }

    /// Deletes the record with this key, if there is one.
    #[must_use]
    pub fn delete(key: &str) -> Self {
        Self::of(key, Change::Delete)
    }

    /// Makes the write only if the stored record is as expected.
    #[must_use]
    pub fn expect(mut self, expected: Expected) -> Self {
        self.0.expected = expected;
        self
    }

    /// Lets the record expire, at a time in milliseconds since 1970-01-01 UTC. A record that is deleted has no such time.
    #[must_use]
    pub fn expire_at(mut self, unix_ms: u64) -> Self {
        if let Change::Put(entry) = &mut self.0.change {
            entry.expires_ms = Some(unix_ms);
        }
        self
    }

    fn of(key: &str, change: Change) -> Self {
        Self(WriteOne {
            key: key.to_owned(),
            expected: Expected::Any,
            change,
        })
    }
}

/// Returns the record with this key.
///
/// # Errors
/// If `state` is not granted, the key is empty or longer than 512 bytes, the call has more than 32
/// operations under way, or the store fails.
pub async fn get(key: &str) -> Result<Option<Entry>, Error> {
    let found = records::get(key.to_owned()).await?;
    let entry = |found: records::Entry| Entry {
        value: found.value,
        version: found.version,
        expires_ms: found.expires_ms,
    };
    Ok(found.map(entry))
}

/// Writes a record that does not expire if the stored one is as expected, and returns its new version.
///
/// # Errors
/// As for [`write`].
pub async fn put(key: &str, value: impl Into<Vec<u8>>, expected: Expected) -> Result<u64, Error> {
    write([Write::put(key, value).expect(expected)]).await
}

/// Makes all of these writes or none: from 1 to 64, with different keys and values of at most 1 MiB
/// together. Returns the version of the records that were put.
///
/// # Errors
/// As for [`get`]; also if the stored records are not as expected ([`Error::Conflict`], with each write
/// that met another record), a value is larger than 256 KiB, or the records do not fit the grant
/// ([`Error::Full`]).
pub async fn write(writes: impl IntoIterator<Item = Write>) -> Result<u64, Error> {
    let writes = writes.into_iter().map(|Write(write)| write).collect();
    records::write(writes).await
}

/// Deletes a record if the stored one is as expected.
///
/// # Errors
/// As for [`get`]; also if it is not as expected ([`Error::Conflict`]).
pub async fn delete(key: &str, expected: Expected) -> Result<(), Error> {
    write([Write::delete(key).expect(expected)]).await?;
    Ok(())
}

/// Lists records whose keys start with a prefix, in byte order of the keys: those after the key `after`,
/// at most `limit` of them (1 to 1,000).
///
/// # Errors
/// As for [`get`]; also if the limit is out of range.
pub async fn list(prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<Listed>, Error> {
    records::list(prefix.to_owned(), after.map(str::to_owned), limit).await
}

/// Returns the record with this key, deserialized from JSON.
///
/// # Errors
/// As for [`get`]; also if the record is not JSON of this type ([`Error::NotAcceptable`]), so that nobody
/// takes it for absent and overwrites it.
pub async fn get_json<T: DeserializeOwned>(key: &str) -> Result<Option<Entry<T>>, Error> {
    let Some(found) = get(key).await? else {
        return Ok(None);
    };
    let value = serde_json::from_slice(&found.value).map_err(|error| not_json(&error))?;
    Ok(Some(Entry {
        value,
        version: found.version,
        expires_ms: found.expires_ms,
    }))
}

/// Writes a record as JSON if the stored one is as expected, and returns its new version.
///
/// # Errors
/// As for [`put`]; also if the value cannot be serialized as JSON ([`Error::NotAcceptable`]).
pub async fn put_json(key: &str, value: &impl Serialize, expected: Expected) -> Result<u64, Error> {
    write([Write::put_json(key, value)?.expect(expected)]).await
}

/// Replaces a record with what `next` makes of it, and returns the new value. The record expires when it
/// would have. `next` runs again if another instance was faster.
///
/// # Errors
/// As for [`get_json`] and [`put_json`]; [`Error::Conflict`] if others were faster 256 times.
pub async fn update_json<T: DeserializeOwned + Serialize>(
    key: &str,
    mut next: impl FnMut(Option<T>) -> T,
) -> Result<T, Error> {
    let mut last = Vec::new();
    for _ in 0..TRIES_MAX {
        let found: Option<Entry<T>> = get_json(key).await?;
        let expected = found
            .as_ref()
            .map_or(Expected::Absent, |found| Expected::Version(found.version));
        let expires_ms = found.as_ref().and_then(|found| found.expires_ms);
        let value = next(found.map(|found| found.value));
        let put = Write::put_json(key, &value)?.expect(expected);
        let put = match expires_ms {
            Some(at) => put.expire_at(at),
            None => put,
        };
        match write([put]).await {
            Ok(_) => return Ok(value),
            Err(Error::Conflict(found)) => last = found,
            Err(error) => return Err(error),
        }
    }
    Err(Error::Conflict(last))
}

fn not_json(error: &serde_json::Error) -> Error {
    Error::NotAcceptable(format!(
        "the record cannot be converted from or to JSON: {error}"
    ))
}
