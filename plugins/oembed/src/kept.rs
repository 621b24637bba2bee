//! What was found out is kept for a while, failures too, each as long as it may be.
//!
//! Without a cache the plugin asks each time.

use std::convert::Infallible;

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
    let made = async { Ok::<_, Infallible>(make.await) };
    let Ok(kept) = cache::get_or_make(key, made, ages).await;
    kept.value
        .map_err(|trouble| trouble.aged(kept.age_ms.unwrap_or_default()))
}

fn ages<T>(made: &Result<T, Trouble>) -> Option<Ages> {
    match made {
        Ok(_) => Some(Ages::fresh(ANSWERED_MS)),
        Err(trouble) => trouble.kept_ms().map(Ages::fresh),
    }
}
