//! What the plugin remembers for a while, in the host's memory.
//!
//! Using this module makes the component import `switchbay:cache/store`. How much is kept stands in an atom such as
//! `cache:64MiB`: the plugin names it with [`Plugin::wants`], the operator grants it in the manifest. All instances and
//! revisions of the plugin share one cache; any entry may be gone at any time, and everything is when the process ends.
//!
//! An entry has two ages. While it is fresh it is the answer; while it is stale it is the answer if there is no better one:
//!
//! ```no_run
//! use switchbay_sdk::{cache, http};
//! # #[derive(Clone, serde::Deserialize, serde::Serialize)] struct Zone {}
//! # async fn fetch() -> Result<Zone, http::Error> { http::get("https://api.example.com/zone").send().await?.json() }
//! const AGES: cache::Ages = cache::Ages { fresh_ms: 60_000, stale_ms: 3_600_000 };
//!
//! async fn zone() -> Result<Zone, http::Error> {
//!     // A plugin that is granted no cache works on without one.
//!     let kept = cache::get_json::<Zone>("zone").unwrap_or(None);
//!     if let Some(kept) = kept.as_ref().filter(|kept| !kept.stale) {
//!         return Ok(kept.value.clone());
//!     }
//!     match fetch().await {
//!         Ok(zone) => {
//!             cache::put_json("zone", &zone, AGES).ok();
//!             Ok(zone)
//!         }
//!         Err(error) => kept.map(|kept| kept.value).ok_or(error),
//!     }
//! }
//! ```
//!
//! [`Plugin::wants`]: crate::Plugin::wants

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::switchbay::cache::store;

pub use crate::bindings::switchbay::cache::store::{Ages, Error};

/// A kept value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<T = Vec<u8>> {
    /// The value.
    pub value: T,
    /// Milliseconds since it was put.
    pub age_ms: u64,
    /// Whether it is past its freshness: good enough while a better one cannot be had.
    pub stale: bool,
}

/// The entry with this key, fresh or stale.
///
/// # Errors
/// No `cache` is granted, or the key is empty or longer than 512 bytes.
pub fn get(key: &str) -> Result<Option<Entry>, Error> {
    let found = store::get(key)?;
    Ok(found.map(
        |store::Entry {
             value,
             age_ms,
             stale,
         }| Entry {
            value,
            age_ms,
            stale,
        },
    ))
}

/// Keeps a value, in the place of what was there under this key.
///
/// # Errors
/// No `cache` is granted, the entry is larger than the grant or 4 MiB, an age is longer than 31 days, or the key is empty or
/// longer than 512 bytes.
pub fn put(key: &str, value: &[u8], ages: Ages) -> Result<(), Error> {
    store::put(key, value, ages)
}

/// Forgets what is kept under this key.
///
/// # Errors
/// As for [`get`].
pub fn remove(key: &str) -> Result<(), Error> {
    store::remove(key)
}

/// The entry with this key, read as JSON. One that is none of this type counts as none: another revision of the plugin may
/// have put it.
///
/// # Errors
/// As for [`get`].
pub fn get_json<T: DeserializeOwned>(key: &str) -> Result<Option<Entry<T>>, Error> {
    let found = get(key)?;
    Ok(found.and_then(
        |Entry {
             value,
             age_ms,
             stale,
         }| {
            let value = serde_json::from_slice(&value).ok()?;
            Some(Entry {
                value,
                age_ms,
                stale,
            })
        },
    ))
}

/// Keeps a value as JSON.
///
/// # Errors
/// As for [`put`], and where the value has no JSON form ([`Error::NotAcceptable`]).
pub fn put_json(key: &str, value: &impl Serialize, ages: Ages) -> Result<(), Error> {
    let json = serde_json::to_vec(value)
        .map_err(|error| Error::NotAcceptable(format!("its JSON: {error}")))?;
    put(key, &json, ages)
}
