//! What the plugin keeps for good: records that outlive swaps and restarts.
//!
//! Using this module makes the component import `switchbay:state/records`. How much may be kept stands in an atom such as
//! `state:1MiB`: the plugin names it with [`Plugin::wants`], the operator grants it in the manifest. A write is on disk when
//! it returns.
//!
//! Instances run side by side, so a record that is changed by what it was is written with the version that was read.
//! [`update_json`] does that, and begins again where another one was faster:
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

use crate::bindings::switchbay::state::records;

pub use crate::bindings::switchbay::state::records::{Error, Expected, Listed};

/// How often [`update_json`] begins again.
const TRIES_MAX: usize = 256;

/// A record's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<T = Vec<u8>> {
    /// The value.
    pub value: T,
    /// Goes up with each write of the plugin; no record has the same one twice.
    pub version: u64,
}

/// The record with this key.
///
/// # Errors
/// No `state` is granted, the key is empty or longer than 512 bytes, more than 32 of a call are under way, or the store fails.
pub async fn get(key: &str) -> Result<Option<Entry>, Error> {
    let found = records::get(key.to_owned()).await?;
    Ok(found.map(|records::Entry { value, version }| Entry { value, version }))
}

/// Writes a record if what is there is as expected, and gives back its new version.
///
/// # Errors
/// As for [`get`]; it is not ([`Error::Conflict`], with what is there), the value has more than 256 KiB, or there is no room
/// for it in what is granted ([`Error::Full`]).
pub async fn put(key: &str, value: impl Into<Vec<u8>>, expected: Expected) -> Result<u64, Error> {
    records::put(key.to_owned(), value.into(), expected).await
}

/// Deletes a record if what is there is as expected.
///
/// # Errors
/// As for [`get`], and it is not ([`Error::Conflict`]).
pub async fn delete(key: &str, expected: Expected) -> Result<(), Error> {
    records::delete(key.to_owned(), expected).await
}

/// Records whose keys begin with a prefix, in the order of the keys' bytes: those after a key, and at most so many (1 to
/// 1,000).
///
/// # Errors
/// As for [`get`], and the limit is another one.
pub async fn list(prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<Listed>, Error> {
    records::list(prefix.to_owned(), after.map(str::to_owned), limit).await
}

/// The record with this key, read as JSON.
///
/// # Errors
/// As for [`get`], and where it is none of this type ([`Error::NotAcceptable`]): nothing may take it for absent and write
/// over it.
pub async fn get_json<T: DeserializeOwned>(key: &str) -> Result<Option<Entry<T>>, Error> {
    let Some(Entry { value, version }) = get(key).await? else {
        return Ok(None);
    };
    let value = serde_json::from_slice(&value).map_err(|error| not_json(&error))?;
    Ok(Some(Entry { value, version }))
}

/// Writes a record as JSON if what is there is as expected, and gives back its new version.
///
/// # Errors
/// As for [`put`], and where the value has no JSON form ([`Error::NotAcceptable`]).
pub async fn put_json(key: &str, value: &impl Serialize, expected: Expected) -> Result<u64, Error> {
    put(
        key,
        serde_json::to_vec(value).map_err(|error| not_json(&error))?,
        expected,
    )
    .await
}

/// Makes a record of what it was, and gives back what it is then. `next` runs again where another instance was faster.
///
/// # Errors
/// As for [`get_json`] and [`put_json`]; [`Error::Conflict`] where others were faster 256 times.
pub async fn update_json<T: DeserializeOwned + Serialize>(
    key: &str,
    mut next: impl FnMut(Option<T>) -> T,
) -> Result<T, Error> {
    let mut last = None;
    for _ in 0..TRIES_MAX {
        let (found, expected) = match get_json(key).await? {
            Some(Entry { value, version }) => (Some(value), Expected::Version(version)),
            None => (None, Expected::Absent),
        };
        let value = next(found);
        match put_json(key, &value, expected).await {
            Ok(_) => return Ok(value),
            Err(Error::Conflict(found)) => last = found,
            Err(error) => return Err(error),
        }
    }
    Err(Error::Conflict(last))
}

fn not_json(error: &serde_json::Error) -> Error {
    Error::NotAcceptable(format!("its JSON: {error}"))
}
