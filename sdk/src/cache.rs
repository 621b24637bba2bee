//! A cache in the host's memory.
//!
//! Using this module makes the component import `switchbay:cache/store`. An atom such as `cache:64MiB`
//! sets the size: the plugin asks for it with [`Plugin::wants`], the operator grants it in the manifest.
//! All instances and revisions of the plugin share one cache. Any entry may disappear at any time, and
//! all do when the process ends.
//!
//! An entry is first fresh, then stale. Use a fresh entry as it is, and a stale one only if no better
//! answer can be obtained:
//!
//! ```no_run
//! use switchbay_sdk::{cache, http};
//! # #[derive(Clone, serde::Deserialize, serde::Serialize)] struct Zone {}
//! # async fn fetch() -> Result<Zone, http::Error> { http::get("https://api.example.com/zone").send().await?.json() }
//! const AGES: cache::Ages = cache::Ages { fresh_ms: 60_000, stale_ms: 3_600_000 };
//!
//! async fn zone() -> Result<Zone, http::Error> {
//!     // Without a granted cache, the plugin still works.
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

/// A cached value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<T = Vec<u8>> {
    /// The value.
    pub value: T,
    /// Milliseconds since it was stored.
    pub age_ms: u64,
    /// Whether it is no longer fresh: usable if no fresh value can be obtained.
    pub stale: bool,
}

/// Returns the entry with this key, fresh or stale.
///
/// # Errors
/// If `cache` is not granted, or the key is empty or longer than 512 bytes.
pub fn get(key: &str) -> Result<Option<Entry>, Error> {
    Ok(store::get(key)?.map(|found| Entry {
        value: found.value,
        age_ms: found.age_ms,
        stale: found.stale,
    }))
}

/// Stores a value under this key and replaces any earlier one.
///
/// # Errors
/// If `cache` is not granted, the entry is larger than the grant or 4 MiB, an age is longer than 31
/// days, or the key is empty or longer than 512 bytes.
pub fn put(key: &str, value: &[u8], ages: Ages) -> Result<(), Error> {
    store::put(key, value, ages)
}

/// Removes the entry with this key.
///
/// # Errors
/// As for [`get`].
pub fn remove(key: &str) -> Result<(), Error> {
    store::remove(key)
}

/// Returns the entry with this key, deserialized from JSON. An entry that is not JSON of this type counts
/// as absent: another revision of the plugin may have stored it.
///
/// # Errors
/// As for [`get`].
pub fn get_json<T: DeserializeOwned>(key: &str) -> Result<Option<Entry<T>>, Error> {
    Ok(store::get(key)?.and_then(|found| {
        Some(Entry {
            value: serde_json::from_slice(&found.value).ok()?,
            age_ms: found.age_ms,
            stale: found.stale,
        })
    }))
}

/// Stores a value as JSON.
///
/// # Errors
/// As for [`put`]; also if the value cannot be serialized as JSON ([`Error::NotAcceptable`]).
pub fn put_json(key: &str, value: &impl Serialize, ages: Ages) -> Result<(), Error> {
    let json = serde_json::to_vec(value).map_err(|error| {
        Error::NotAcceptable(format!("the value cannot be serialized as JSON: {error}"))
    })?;
    put(key, &json, ages)
}
