//! The windows of the rate limits, which a test must not straddle.

use std::time::{SystemTime, UNIX_EPOCH};

/// Makes calls again where a minute ended among them; gives back the second they began and their answers.
pub(crate) async fn in_one_minute<T>(calls: impl AsyncFn() -> T) -> (u64, T) {
    in_one(60, calls).await
}

/// The same for a second.
pub(crate) async fn in_one_second<T>(calls: impl AsyncFn() -> T) -> (u64, T) {
    in_one(1, calls).await
}

async fn in_one<T>(seconds: u64, calls: impl AsyncFn() -> T) -> (u64, T) {
    let now = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("after 1970")
            .as_secs()
    };
    loop {
        let started = now();
        let answers = calls().await;
        if now() / seconds == started / seconds {
            return (started, answers);
        }
    }
}
