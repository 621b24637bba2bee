//! What was found out is kept for a while, failures too, each as long as it may be.
//!
//! Without a cache the plugin asks each time.

use serde::Serialize;
use serde::de::DeserializeOwned;
use switchbay_sdk::cache::{self, Ages};

use crate::trouble::{ANSWERED_MS, Trouble};

/// What is kept under a key, or else what is made now.
///
/// # Errors
/// As it was made.
pub(crate) async fn or_made<T>(
    key: &str,
    make: impl Future<Output = Result<T, Trouble>>,
) -> Result<T, Trouble>
where
    T: Serialize + DeserializeOwned,
{
    let kept = cache::get_json::<Result<T, Trouble>>(key).ok().flatten();
    if let Some(entry) = kept.filter(|entry| !entry.stale) {
        return entry.value.map_err(|trouble| trouble.aged(entry.age_ms));
    }
    let made = make.await;
    let kept_ms = match &made {
        Ok(_) => Some(ANSWERED_MS),
        Err(trouble) => trouble.kept_ms(),
    };
    if let Some(fresh_ms) = kept_ms {
        // One that cannot be kept is found out again.
        cache::put_json(
            key,
            &made,
            Ages {
                fresh_ms,
                stale_ms: 0,
            },
        )
        .ok();
    }
    made
}
