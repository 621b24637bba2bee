//! Everything that keeps a search from being answered: its code and what the client is told.
//!
//! No message repeats what a provider said, or what the operator set: that may hold a key.

use switchbay_sdk::{ErrorCode, Failure};

use super::QUERY_CHARACTERS_MAX;

const VALIDATION: ErrorCode =
    ErrorCode::validation_error("`query` is empty or longer than 1000 characters.");
const BAD_RESPONSE: ErrorCode =
    ErrorCode::upstream_bad_response("The search provider failed or returned no usable response.");
const UNAVAILABLE: ErrorCode = ErrorCode::service_unavailable(
    "No search provider is configured, or it refuses requests from this service at the moment.",
);
const LATE: ErrorCode = ErrorCode::upstream_timeout("The search provider did not answer in time.");

/// What the operation declares.
pub(super) const CODES: [ErrorCode; 4] = [VALIDATION, BAD_RESPONSE, UNAVAILABLE, LATE];

/// What a client is told to wait where the provider does not say, and the longest, in seconds.
const WAIT_S: u64 = 10;
const WAIT_S_MAX: u64 = 3600;

/// Why there are no results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nothing but space was given.
    Empty,
    TooLong,
    /// The operator named no provider.
    Unset,
    /// The setting that cannot be used.
    Setting(&'static str),
    /// The gate lets no request out to the provider.
    Denied,
    /// The provider takes no request with this key, or with none.
    Refused,
    /// The plan is used up.
    Exhausted,
    /// It asks to wait.
    Throttled {
        wait_s: u64,
    },
    /// Too much is being fetched.
    Busy,
    /// It says that it failed.
    Failed,
    Unreached,
    TooLarge,
    Unreadable,
    /// It found nothing because what it asks did not answer.
    Outage,
    Late,
}

impl Trouble {
    /// The provider asks to wait, for so many seconds if it says so.
    pub(super) fn throttled(said_s: Option<u64>) -> Self {
        Self::Throttled {
            wait_s: said_s.unwrap_or(WAIT_S).clamp(1, WAIT_S_MAX),
        }
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Empty => Failure::new(
                &VALIDATION,
                "`query` must have 1 to 1000 characters; it is empty",
            )
            .detail("field", "query")
            .detail("min", 1),
            Trouble::TooLong => {
                Failure::new(&VALIDATION, "`query` must have at most 1000 characters")
                    .detail("field", "query")
                    .detail("max", QUERY_CHARACTERS_MAX)
            }
            Trouble::Unset => Failure::new(
                &UNAVAILABLE,
                "no search provider is configured; the operator must set `search.provider`",
            ),
            Trouble::Setting(setting) => Failure::new(
                &UNAVAILABLE,
                format!("the setting `{setting}` of this service is invalid"),
            ),
            Trouble::Denied => Failure::new(
                &UNAVAILABLE,
                "this service's settings or grants do not allow requests to the search provider",
            ),
            Trouble::Refused => Failure::new(
                &UNAVAILABLE,
                "the search provider rejected this service's credentials",
            ),
            Trouble::Exhausted => Failure::new(
                &UNAVAILABLE,
                "this service's plan with the search provider is used up",
            ),
            Trouble::Throttled { wait_s } => {
                let ms = u32::try_from(wait_s * 1000).unwrap_or(u32::MAX);
                Failure::new(
                    &UNAVAILABLE,
                    "the search provider's rate limit is reached; try again later",
                )
                .retry_after_ms(ms)
            }
            Trouble::Busy => Failure::new(
                &UNAVAILABLE,
                "too many requests are under way; try again later",
            ),
            Trouble::Failed => Failure::new(&BAD_RESPONSE, "the search provider failed"),
            Trouble::Unreached => Failure::new(
                &BAD_RESPONSE,
                "the search provider could not be reached or closed the connection early",
            ),
            Trouble::TooLarge => {
                Failure::new(&BAD_RESPONSE, "the search provider's response is too large")
            }
            Trouble::Unreadable => Failure::new(
                &BAD_RESPONSE,
                "the search provider's response could not be read",
            ),
            Trouble::Outage => Failure::new(
                &BAD_RESPONSE,
                "the search provider found nothing because its engines did not respond",
            ),
            Trouble::Late => Failure::new(&LATE, "the search provider did not answer in time"),
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
