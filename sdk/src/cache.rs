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
//! # #[derive(serde::Deserialize, serde::Serialize)] struct Zone {}
//! # async fn fetch() -> Result<Zone, http::Error> { http::get("https://api.example.com/zone").send().await?.json() }
//! const AGES: cache::Ages = cache::Ages::fresh(60_000).then_stale(3_600_000);
//!
//! async fn zone() -> Result<Zone, http::Error> {
//!     Ok(cache::get_or_make("zone", fetch(), |_| AGES).await?.value)
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

impl Ages {
    /// Fresh for so many milliseconds, and never stale.
    pub const fn fresh(milliseconds: u64) -> Self {
        Self {
            fresh_ms: milliseconds,
            stale_ms: 0,
        }
    }

    /// Then stale for so many more.
    #[must_use]
    pub const fn then_stale(self, milliseconds: u64) -> Self {
        Self {
            stale_ms: milliseconds,
            ..self
        }
    }
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

/// A value that was kept or made: see [`get_or_make`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cached<T> {
    /// The value.
    pub value: T,
    /// Milliseconds since it was stored; `None` if it was made now.
    pub age_ms: Option<u64>,
    /// Whether it is no longer fresh, and is given because no other could be made.
    pub stale: bool,
}

impl<T> From<Entry<T>> for Cached<T> {
    fn from(entry: Entry<T>) -> Self {
        Self {
            value: entry.value,
            age_ms: Some(entry.age_ms),
            stale: entry.stale,
        }
    }
}

/// Returns the fresh entry with this key, or makes the value and stores it as JSON for as long as `ages` says: [`Ages`],
/// or `None` for a value that is not to be kept. If it cannot be made, a stale entry is the answer. A cache that is not
/// granted, or that does not take the value, is as good as an empty one.
///
/// Calls that find no entry at the same time each make it.
///
/// # Errors
/// If the value cannot be made and there is no entry.
pub async fn get_or_make<T, E, A>(
    key: &str,
    make: impl Future<Output = Result<T, E>>,
    ages: impl FnOnce(&T) -> A,
) -> Result<Cached<T>, E>
where
    T: Serialize + DeserializeOwned,
    A: Into<Option<Ages>>,
{
    match get_json(key).ok().flatten() {
        Some(fresh) if !fresh.stale => Ok(fresh.into()),
        kept => made_over(kept, make, |value| store(key, value, ages)).await,
    }
}

/// As [`get_or_make`], but makes the value although there is a fresh entry, which is the answer only if it cannot be
/// made. The answer is then marked as stale.
///
/// # Errors
/// As for [`get_or_make`].
pub async fn make_anew<T, E, A>(
    key: &str,
    make: impl Future<Output = Result<T, E>>,
    ages: impl FnOnce(&T) -> A,
) -> Result<Cached<T>, E>
where
    T: Serialize + DeserializeOwned,
    A: Into<Option<Ages>>,
{
    let kept = get_json(key).ok().flatten();
    made_over(kept, make, |value| store(key, value, ages)).await
}

async fn made_over<T, E>(
    kept: Option<Entry<T>>,
    make: impl Future<Output = Result<T, E>>,
    store: impl FnOnce(&T),
) -> Result<Cached<T>, E> {
    match (make.await, kept) {
        (Ok(value), _) => {
            store(&value);
            Ok(Cached {
                value,
                age_ms: None,
                stale: false,
            })
        }
        (Err(_), Some(kept)) => Ok(Cached {
            stale: true,
            ..kept.into()
        }),
        (Err(error), None) => Err(error),
    }
}

/// Stores a value that may as well not be stored.
fn store<T: Serialize, A: Into<Option<Ages>>>(key: &str, value: &T, ages: impl FnOnce(&T) -> A) {
    if let Some(ages) = ages(value).into() {
        put_json(key, value, ages).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn kept(value: u32) -> Option<Entry<u32>> {
        Some(Entry {
            value,
            age_ms: 70_000,
            stale: false,
        })
    }

    /// What is answered, and what is stored.
    fn made(kept: Option<Entry<u32>>, make: Result<u32, &str>) -> (Result<Cached<u32>, &str>, u32) {
        let stored = Cell::new(0);
        let making = made_over(kept, async { make }, |value| stored.set(*value));
        let Poll::Ready(answer) = pin!(making).poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("nothing is waited for");
        };
        (answer, stored.get())
    }

    #[test]
    fn what_is_made_is_stored_and_answers() {
        let expected = Cached {
            value: 7,
            age_ms: None,
            stale: false,
        };
        assert_eq!(made(None, Ok(7)), (Ok(expected.clone()), 7));
        assert_eq!(made(kept(3), Ok(7)), (Ok(expected), 7));
    }

    #[test]
    fn what_is_kept_answers_where_nothing_can_be_made() {
        let expected = Cached {
            value: 3,
            age_ms: Some(70_000),
            stale: true,
        };
        assert_eq!(made(kept(3), Err("down")), (Ok(expected), 0));
        assert_eq!(made(None, Err("down")), (Err("down"), 0));
    }

    #[test]
    fn ages_are_fresh_alone_or_fresh_and_stale() {
        let ages = |ages: Ages| (ages.fresh_ms, ages.stale_ms);
        assert_eq!(ages(Ages::fresh(60_000)), (60_000, 0));
        assert_eq!(ages(Ages::fresh(60_000).then_stale(9)), (60_000, 9));
    }
}
