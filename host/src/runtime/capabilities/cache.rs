//! `switchbay:cache/store`: what a plugin remembers for a while, in memory and within its grant.
//!
//! One store a plugin, held by the leases of its revisions: it goes with the last of them. Its bound is the largest lease, so
//! a smaller grant counts when the last call under the larger one has ended, and a revision that comes to nothing changes
//! nothing for long. The order of use decides what goes, not the ages: what has expired is not asked for with success any
//! more and so comes to the end by itself, and nobody has to sweep. Must not know what a value means.

use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use lru::LruCache;
use parking_lot::Mutex;

use super::bindings::switchbay::cache::store::{self as wire, Ages, Error, Host};
use super::{GuestState, LendingOrder};
use crate::base::clock::milliseconds;

const KEY_BYTES_MAX: usize = 512;
const VALUE_BYTES_MAX: usize = 4 << 20;
/// What an entry counts beside its key and value: about what it takes in the map, the list and the allocator.
const ENTRY_BYTES: u64 = 256;
/// Entries of one plugin.
const ENTRIES_MAX: usize = 1 << 18;
const AGE_MAX: Duration = Duration::from_secs(31 * 24 * 60 * 60);

/// The caches of all plugins.
#[derive(Default)]
pub(crate) struct PluginCaches {
    /// Never held over an await.
    plugins: Mutex<HashMap<Arc<str>, Weak<SharedCache>>>,
}

/// A plugin's cache as one revision may use it.
pub(crate) struct PluginCache {
    shared: Arc<SharedCache>,
    bytes_max: u64,
}

/// What the revisions of one plugin share. Held for one look or one change, and never over an await.
type SharedCache = Mutex<CachedItem>;

struct CachedItem {
    /// In the order of use.
    entries: LruCache<Box<str>, CacheEntry, RandomState>,
    bytes: u64,
    /// What each living lease is for, in bytes.
    leases: Vec<u64>,
}

#[derive(Clone)]
struct CacheEntry {
    value: Arc<[u8]>,
    put: Instant,
    fresh: Duration,
    /// How long it is kept altogether.
    kept: Duration,
}

/// What a plugin finds under a key.
struct CachedValue {
    value: Arc<[u8]>,
    age: Duration,
    is_stale: bool,
}

/// Why something is not kept.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum UnacceptableEntry {
    #[error("the key is empty")]
    EmptyKey,
    #[error("the key has {0} bytes; at most {KEY_BYTES_MAX} are allowed")]
    LongKey(usize),
    #[error("the value has {0} bytes; at most {VALUE_BYTES_MAX} are allowed")]
    LargeValue(usize),
    #[error("the entry takes {bytes} bytes; {bytes_max} are granted")]
    OverGrant { bytes: u64, bytes_max: u64 },
    #[error("`{name}` is {ms}; it must be at most {}", AGE_MAX.as_millis())]
    LongAge { name: &'static str, ms: u64 },
}

/// The plugin's cache, as large as it is granted.
pub(super) fn lend(order: &mut LendingOrder<'_>) -> Option<PluginCache> {
    let bytes = order.rights.bytes_of("cache")?;
    Some(order.runtime.caches.lease(order.plugin, bytes))
}

impl PluginCaches {
    /// A plugin's cache for a revision that may have so many bytes of it.
    fn lease(&self, plugin: &str, bytes_max: u64) -> PluginCache {
        let mut plugins = self.plugins.lock();
        plugins.retain(|_, shared| shared.strong_count() > 0);
        let shared = plugins
            .get(plugin)
            .and_then(Weak::upgrade)
            .unwrap_or_else(|| {
                let made = Arc::<SharedCache>::default();
                plugins.insert(plugin.into(), Arc::downgrade(&made));
                made
            });
        shared.lock().leases.push(bytes_max);
        PluginCache { shared, bytes_max }
    }
}

impl PluginCache {
    /// The bytes that the plugin's entries count.
    pub(crate) fn bytes(&self) -> u64 {
        self.shared.lock().bytes
    }

    fn get(&self, key: &str, now: Instant) -> Option<CachedValue> {
        let mut kept = self.shared.lock();
        let entry = kept.entries.get(key)?;
        let age = now.saturating_duration_since(entry.put);
        if age >= entry.kept {
            kept.remove(key);
            return None;
        }
        Some(CachedValue {
            value: Arc::clone(&entry.value),
            age,
            is_stale: age >= entry.fresh,
        })
    }

    fn put(
        &self,
        key: &str,
        value: Vec<u8>,
        ages: Ages,
        now: Instant,
    ) -> Result<(), UnacceptableEntry> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(UnacceptableEntry::LargeValue(value.len()));
        }
        let bytes = counted(key, &value);
        if bytes > self.bytes_max {
            return Err(UnacceptableEntry::OverGrant {
                bytes,
                bytes_max: self.bytes_max,
            });
        }
        let (fresh, stale) = (
            age("fresh-ms", ages.fresh_ms)?,
            age("stale-ms", ages.stale_ms)?,
        );
        let entry = CacheEntry {
            value: value.into(),
            put: now,
            fresh,
            kept: fresh + stale,
        };
        let key = key.into();
        self.shared.lock().put(key, entry);
        Ok(())
    }

    fn remove(&self, key: &str) {
        self.shared.lock().remove(key);
    }
}

impl Drop for PluginCache {
    fn drop(&mut self) {
        let mut kept = self.shared.lock();
        if let Some(place) = kept
            .leases
            .iter()
            .position(|bytes| *bytes == self.bytes_max)
        {
            kept.leases.swap_remove(place);
        }
        kept.shrink();
    }
}

impl Default for CachedItem {
    fn default() -> Self {
        // Keys may be of a caller's making, so they are hashed with a secret.
        Self {
            entries: LruCache::unbounded_with_hasher(RandomState::new()),
            bytes: 0,
            leases: Vec::new(),
        }
    }
}

impl CachedItem {
    fn put(&mut self, key: Box<str>, entry: CacheEntry) {
        self.remove(&key);
        self.bytes += counted(&key, &entry.value);
        self.entries.put(key, entry);
        self.shrink();
    }

    fn remove(&mut self, key: &str) {
        if let Some(entry) = self.entries.pop(key) {
            self.bytes -= counted(key, &entry.value);
        }
    }

    fn shrink(&mut self) {
        let bytes_max = self.leases.iter().copied().max().unwrap_or(0);
        while self.bytes > bytes_max || self.entries.len() > ENTRIES_MAX {
            let Some((key, entry)) = self.entries.pop_lru() else {
                return;
            };
            self.bytes -= counted(&key, &entry.value);
        }
    }
}

fn counted(key: &str, value: &[u8]) -> u64 {
    u64::try_from(key.len() + value.len())
        .map_or(u64::MAX, |bytes| bytes.saturating_add(ENTRY_BYTES))
}

fn age(name: &'static str, ms: u64) -> Result<Duration, UnacceptableEntry> {
    let age = Duration::from_millis(ms);
    if age > AGE_MAX {
        return Err(UnacceptableEntry::LongAge { name, ms });
    }
    Ok(age)
}

fn check_key(key: &str) -> Result<(), UnacceptableEntry> {
    match key.len() {
        0 => Err(UnacceptableEntry::EmptyKey),
        1..=KEY_BYTES_MAX => Ok(()),
        bytes => Err(UnacceptableEntry::LongKey(bytes)),
    }
}

impl Host for GuestState {
    fn get(&mut self, key: String) -> Result<Option<wire::Entry>, Error> {
        self.cache(&key).map(|cache| {
            let found = cache.get(&key, Instant::now());
            let reads = &self.vitals().cache;
            match &found {
                None => reads.misses.increment(),
                Some(found) if found.is_stale => reads.stale.increment(),
                Some(_) => reads.hits.increment(),
            }
            found.map(answer)
        })
    }

    fn put(&mut self, key: String, value: Vec<u8>, ages: Ages) -> Result<(), Error> {
        let put = |cache: &PluginCache| {
            cache
                .put(&key, value, ages, Instant::now())
                .map_err(refusal)
        };
        self.cache(&key).and_then(put)
    }

    fn remove(&mut self, key: String) -> Result<(), Error> {
        self.cache(&key).map(|cache| cache.remove(&key))
    }
}

impl GuestState {
    /// The plugin's cache, for a key that can be asked for.
    fn cache(&self, key: &str) -> Result<&PluginCache, Error> {
        let Some(cache) = &self.lent.cache else {
            return Err(Error::NotGranted(self.denied("cache")));
        };
        check_key(key).map_err(refusal)?;
        Ok(cache)
    }
}

fn answer(found: CachedValue) -> wire::Entry {
    wire::Entry {
        value: found.value.to_vec(),
        age_ms: milliseconds(found.age),
        stale: found.is_stale,
    }
}

fn refusal(refused: UnacceptableEntry) -> Error {
    Error::NotAcceptable(refused.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGES: Ages = Ages {
        fresh_ms: 1000,
        stale_ms: 500,
    };

    #[test]
    fn an_age_ends_at_its_last_millisecond() {
        let (cache, put) = (
            PluginCaches::default().lease("plugin", 1 << 20),
            Instant::now(),
        );
        cache
            .put("key", b"value".to_vec(), AGES, put)
            .expect("it is kept");
        let found = |ms| {
            let found = cache.get("key", put + Duration::from_millis(ms));
            found.map(|found| (found.age, found.is_stale))
        };
        let after = |ms, is_stale| Some((Duration::from_millis(ms), is_stale));
        assert_eq!((found(0), found(999)), (after(0, false), after(999, false)));
        assert_eq!(
            (found(1000), found(1499)),
            (after(1000, true), after(1499, true))
        );
        assert_eq!(
            (cache.bytes(), found(1500), cache.bytes()),
            (ENTRY_BYTES + 8, None, 0)
        );
    }

    #[test]
    fn the_entries_are_bounded_by_number_too() {
        let (cache, now) = (
            PluginCaches::default().lease("plugin", u64::MAX),
            Instant::now(),
        );
        for number in 0..=ENTRIES_MAX {
            cache
                .put(&number.to_string(), Vec::new(), AGES, now)
                .expect("it is kept");
        }
        assert_eq!(cache.shared.lock().entries.len(), ENTRIES_MAX);
        assert!(cache.get("0", now).is_none() && cache.get("1", now).is_some());
    }

    #[test]
    fn the_largest_lease_is_the_bound_and_the_last_takes_everything_along() {
        let (caches, now) = (PluginCaches::default(), Instant::now());
        let (large, small) = (
            caches.lease("plugin", 3 * ENTRY_BYTES + 3),
            caches.lease("plugin", ENTRY_BYTES + 1),
        );
        for key in ["a", "b", "c", "d"] {
            large.put(key, Vec::new(), AGES, now).expect("it is kept");
        }
        assert_eq!(small.bytes(), 3 * ENTRY_BYTES + 3);
        let over = UnacceptableEntry::OverGrant {
            bytes: ENTRY_BYTES + 2,
            bytes_max: ENTRY_BYTES + 1,
        };
        assert_eq!(small.put("d", vec![0], AGES, now), Err(over));
        drop(large);
        assert_eq!(
            (small.bytes(), small.get("d", now).is_some()),
            (ENTRY_BYTES + 1, true)
        );
        drop(small);
        assert_eq!(caches.lease("plugin", ENTRY_BYTES + 1).bytes(), 0);
    }
}
