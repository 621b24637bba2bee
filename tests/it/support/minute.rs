//! The rate limit's minute, which a test must not straddle.

use std::time::{SystemTime, UNIX_EPOCH};

/// Makes calls again where a minute ended among them; gives back the second they began and their answers.
pub(crate) async fn in_one_minute<T>(calls: impl AsyncFn() -> T) -> (u64, T) {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    loop {
        let started = now();
        let answers = calls().await;
        if now() / 60 == started / 60 {
            return (started, answers);
        }
    }
}
