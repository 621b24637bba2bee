//! Everything that keeps a search from being answered: its code and what the client is told.
//!
//! No message repeats what a provider said, or what the operator set: that may hold a key.

use std::time::Duration;

use switchbay_sdk::{ErrorCode, failures};

use super::QUERY_CHARACTERS_MAX;

/// What a client is told to wait where the provider does not say, and the longest, in seconds.
const WAIT_S: u64 = 10;
const WAIT_S_MAX: u64 = 3600;

failures! {
    /// Why there are no results.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Trouble {
        ErrorCode::validation_error("`query` is empty or longer than 1000 characters.") => {
            /// Nothing but space was given.
            Empty => "`query` must have 1 to 1000 characters; it is empty"
                .field("query").detail("min", 1),
            TooLong => "`query` must have at most 1000 characters"
                .field("query").detail("max", QUERY_CHARACTERS_MAX),
        }
        ErrorCode::upstream_bad_response(
            "The search provider failed or returned no usable response.",
        ) => {
            /// It says that it failed.
            Failed => "the search provider failed",
            Unreached => "the search provider could not be reached or closed the connection early",
            TooLarge => "the search provider's response is too large",
            Unreadable => "the search provider's response could not be read",
            /// It found nothing because what it asks did not answer.
            Outage => "the search provider found nothing because its engines did not respond",
        }
        ErrorCode::service_unavailable(
            "No search provider is configured, or it refuses requests from this service at the \
             moment.",
        ) => {
            /// The operator named no provider.
            Unset => "no search provider is configured; the operator must set `search.provider`",
            /// The setting that cannot be used.
            Setting(setting: &'static str) => "the setting `{setting}` of this service is invalid",
            /// The gate lets no request out to the provider.
            Denied =>
                "this service's settings or grants do not allow requests to the search provider",
            /// The provider takes no request with this key, or with none.
            Refused => "the search provider rejected this service's credentials",
            /// The plan is used up.
            Exhausted => "this service's plan with the search provider is used up",
            /// It asks to wait.
            Throttled { wait_s: u64 } =>
                "the search provider's rate limit is reached; try again later"
                .retry_after(Duration::from_secs(wait_s)),
            /// Too much is being fetched.
            Busy => "too many requests are under way; try again later",
        }
        ErrorCode::upstream_timeout("The search provider did not answer in time.") => {
            Late => "the search provider did not answer in time",
        }
    }
}

impl Trouble {
    /// The provider asks to wait, for so many seconds if it says so.
    pub(super) fn throttled(said_s: Option<u64>) -> Self {
        Self::Throttled {
            wait_s: said_s.unwrap_or(WAIT_S).clamp(1, WAIT_S_MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_within_bounds() {
        let wait = |said| Trouble::throttled(said);
        assert_eq!(wait(None), Trouble::Throttled { wait_s: 10 });
        assert_eq!(wait(Some(0)), Trouble::Throttled { wait_s: 1 });
        assert_eq!(wait(Some(70)), Trouble::Throttled { wait_s: 70 });
        assert_eq!(wait(Some(u64::MAX)), Trouble::Throttled { wait_s: 3600 });
    }
}
