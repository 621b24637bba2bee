//! Everything that keeps a post from being resolved: its code, what the client is told, and how long it stays so.
//!
//! No message repeats what a provider said: that may hold the operator's token or the id of an app.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use switchbay_sdk::{ErrorCode, failures};

/// The longest URL, in characters (docs/api.md, "Social posts").
pub(crate) const URL_CHARACTERS_MAX: usize = 2048;

const SECOND_MS: u64 = 1000;
/// How long an unavailable, private or unsupported result is kept (docs/api.md, "Social posts").
const REFUSED_MS: u64 = 60 * SECOND_MS;
/// How long a provider's rate limit is kept (docs/api.md, "Social posts").
const LIMITED_MS: u64 = 10 * SECOND_MS;
/// How long a success is kept (docs/api.md, "Social posts").
pub(crate) const ANSWERED_MS: u64 = 3600 * SECOND_MS;
/// The longest that a provider may tell a client to wait.
const RETRY_AFTER_S_MAX: u64 = 3600;

/// Also what the host answers at the operation's deadline.
pub(crate) const TIMEOUT: ErrorCode = ErrorCode::new(
    "OEMBED_UPSTREAM_TIMEOUT",
    504,
    "The provider did not answer in time.",
);

failures! {
    /// Why there is no result.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub(crate) enum Trouble {
        ErrorCode::validation_error("`url` is empty or longer than 2048 characters.") => {
            /// Nothing but space was given.
            Empty => "`url` must have 1 to 2048 characters; it is empty"
                .field("url").detail("min", 1),
            /// More characters than are taken.
            TooLong => "`url` must have at most 2048 characters"
                .field("url").detail("max", URL_CHARACTERS_MAX),
        }
        ErrorCode::new("OEMBED_INVALID_URL", 400, "`url` is not a valid http or https URL.") => {
            /// The rule that the text breaks.
            InvalidUrl(rule: String) => "`url` {rule}",
        }
        ErrorCode::new(
            "OEMBED_SECURITY_REJECTED",
            400,
            "`url`, or the target of its short link, has credentials, a non-default port or a host \
             that is not public.",
        ) => {
            /// The rule that the address breaks.
            Unsafe(rule: String) => "{rule}",
        }
        ErrorCode::new("OEMBED_PRIVATE_CONTENT", 403, "The provider denies access to the post.") => {
            Private => "The provider denies access to this post",
        }
        ErrorCode::new("OEMBED_NOT_FOUND", 404, "The post is unavailable or was removed.") => {
            NotFound => "The post does not exist or was removed",
        }
        ErrorCode::new(
            "OEMBED_UNSUPPORTED_PROVIDER",
            422,
            "`url` does not belong to a supported network.",
        ) => {
            /// The host that it names.
            UnsupportedProvider(host: String) =>
                "`url` must belong to a supported network; the host `{host}` does not",
        }
        ErrorCode::new(
            "OEMBED_UNSUPPORTED_URL",
            422,
            "`url` belongs to a supported network, but not to a post.",
        ) => {
            UnsupportedUrl => "`url` must be a permalink or short link of a post",
        }
        ErrorCode::new(
            "OEMBED_URL_UNRESOLVED",
            422,
            "The short link does not lead to a supported post.",
        ) => {
            Unresolved => "`url` is a short link that does not lead to a supported post",
        }
        ErrorCode::new("OEMBED_RATE_LIMITED", 429, "The provider's rate limit is reached.") => {
            /// As the provider says, or what it is kept for.
            RateLimited { retry_after_s: u64 } =>
                "The provider's rate limit is reached; try again later"
                .retry_after(Duration::from_secs(retry_after_s)),
        }
        ErrorCode::new(
            "OEMBED_UPSTREAM_ERROR",
            502,
            "The provider failed or could not be reached.",
        ) => {
            /// It failed, or could not be reached.
            Upstream => "The provider failed or could not be reached",
        }
        ErrorCode::new("OEMBED_INVALID_RESPONSE", 502, "The provider's answer cannot be used.") => {
            /// What is wrong with the answer.
            InvalidResponse(what: String) => "The provider's answer cannot be used: {what}",
        }
        ErrorCode::service_unavailable(
            "The operation cannot take the call now, or the provider refuses requests from this \
             service.",
        ) => {
            /// It takes no request of ours: a credential, or a grant of the operator's.
            Unavailable => "The provider refuses requests from this service at the moment",
        }
        TIMEOUT => {
            Timeout => "The provider did not answer in time",
        }
    }
}

impl Trouble {
    /// The provider asks to wait, for so many seconds if it says so.
    pub(crate) fn rate_limited(retry_after_s: Option<u64>) -> Self {
        let least = LIMITED_MS / SECOND_MS;
        Self::RateLimited {
            retry_after_s: retry_after_s
                .unwrap_or(least)
                .clamp(least, RETRY_AFTER_S_MAX),
        }
    }

    /// How long it is kept, in milliseconds; `None` is not at all, because the next call may go well.
    pub(crate) fn kept_ms(&self) -> Option<u64> {
        match self {
            Self::Private | Self::NotFound | Self::UnsupportedUrl | Self::Unresolved => {
                Some(REFUSED_MS)
            }
            Self::RateLimited { .. } => Some(LIMITED_MS),
            Self::Empty
            | Self::TooLong
            | Self::InvalidUrl(_)
            | Self::Unsafe(_)
            | Self::UnsupportedProvider(_) => None,
            Self::Upstream | Self::InvalidResponse(_) | Self::Unavailable | Self::Timeout => None,
        }
    }

    /// The same after it was kept for so long.
    pub(crate) fn aged(self, age_ms: u64) -> Self {
        match self {
            Self::RateLimited { retry_after_s } => Self::RateLimited {
                retry_after_s: retry_after_s.saturating_sub(age_ms / SECOND_MS).max(1),
            },
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_kept_as_long_as_the_specification_says() {
        for minute in [
            Trouble::Private,
            Trouble::NotFound,
            Trouble::UnsupportedUrl,
            Trouble::Unresolved,
        ] {
            assert_eq!(minute.kept_ms(), Some(60_000), "{minute:?}");
        }
        assert_eq!(Trouble::rate_limited(None).kept_ms(), Some(10_000));
        assert_eq!(
            Trouble::rate_limited(Some(120)).kept_ms(),
            Some(10_000),
            "the provider's wish changes nothing"
        );
        let told = String::new;
        for passing in [
            Trouble::Upstream,
            Trouble::Timeout,
            Trouble::Unavailable,
            Trouble::InvalidResponse(told()),
            Trouble::Unsafe(told()),
            Trouble::UnsupportedProvider(told()),
            Trouble::InvalidUrl(told()),
        ] {
            assert_eq!(passing.kept_ms(), None, "{passing:?}");
        }
        assert_eq!(ANSWERED_MS, 3_600_000);
    }

    #[test]
    fn a_wait_gets_shorter_while_it_is_kept() {
        let wait = |said: Option<u64>, age_ms: u64| Trouble::rate_limited(said).aged(age_ms);
        assert_eq!(wait(None, 0), Trouble::RateLimited { retry_after_s: 10 });
        assert_eq!(wait(None, 3999), Trouble::RateLimited { retry_after_s: 7 });
        assert_eq!(
            wait(None, 99_000),
            Trouble::RateLimited { retry_after_s: 1 }
        );
        assert_eq!(
            wait(Some(120), 5000),
            Trouble::RateLimited { retry_after_s: 115 }
        );
        assert_eq!(wait(Some(1), 0), Trouble::RateLimited { retry_after_s: 10 });
        assert_eq!(
            wait(Some(u64::MAX), 0),
            Trouble::RateLimited {
                retry_after_s: 3600
            }
        );
    }
}
