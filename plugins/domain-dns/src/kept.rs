//! Results of the last minute, as the text that was sent, by hostname and resolver.

use switchbay_sdk::cache::{self, Ages};

use crate::hostname::Hostname;
use crate::lookup::Provider;

/// How long a result answers (docs/api.md, "DNS").
const AGES: Ages = Ages::fresh(60_000);

/// The text of a result. Without a cache there is none.
pub(crate) fn get(domain: &Hostname, provider: Provider) -> Option<String> {
    let entry = cache::get(&key(domain, provider)).ok()??;
    String::from_utf8(entry.value).ok()
}

/// Keeps the text of a result. One that does not fit is not kept: the next lookup asks again.
pub(crate) fn put(domain: &Hostname, provider: Provider, data: &str) {
    cache::put(&key(domain, provider), data.as_bytes(), AGES).ok();
}

/// No hostname has a space in it.
fn key(domain: &Hostname, provider: Provider) -> String {
    format!("{} {}", provider.name(), domain.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_answers_for_60_seconds_and_no_longer() {
        assert_eq!((AGES.fresh_ms, AGES.stale_ms), (60_000, 0));
    }
}
