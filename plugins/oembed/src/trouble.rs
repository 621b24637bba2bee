//! Everything that keeps a post from being resolved: its code, what the client is told, and how long it stays so.
//!
//! No message repeats what a provider said: that may hold the operator's token or the id of an app.

use serde::{Deserialize, Serialize};
use switchbay_sdk::{ErrorCode, Failure};

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

const VALIDATION: ErrorCode =
    ErrorCode::validation_error("`url` is empty or longer than 2048 characters.");
const INVALID_URL: ErrorCode = ErrorCode::new(
    "OEMBED_INVALID_URL",
    400,
    "`url` is not a valid http or https URL.",
);
const UNSAFE: ErrorCode = ErrorCode::new(
    "OEMBED_SECURITY_REJECTED",
    400,
    "`url`, or the target of its short link, has credentials, a non-default port or a host that is \
     not public.",
);
const PRIVATE: ErrorCode = ErrorCode::new(
    "OEMBED_PRIVATE_CONTENT",
    403,
    "The provider denies access to the post.",
);
const NOT_FOUND: ErrorCode = ErrorCode::new(
    "OEMBED_NOT_FOUND",
    404,
    "The post is unavailable or was removed.",
);
const UNSUPPORTED_PROVIDER: ErrorCode = ErrorCode::new(
    "OEMBED_UNSUPPORTED_PROVIDER",
    422,
    "`url` does not belong to a supported network.",
);
const UNSUPPORTED_URL: ErrorCode = ErrorCode::new(
    "OEMBED_UNSUPPORTED_URL",
    422,
    "`url` belongs to a supported network, but not to a post.",
);
const UNRESOLVED: ErrorCode = ErrorCode::new(
    "OEMBED_URL_UNRESOLVED",
    422,
    "The short link does not lead to a supported post.",
);
const RATE_LIMITED: ErrorCode = ErrorCode::new(
    "OEMBED_RATE_LIMITED",
    429,
    "The provider's rate limit is reached.",
);
const UPSTREAM: ErrorCode = ErrorCode::new(
    "OEMBED_UPSTREAM_ERROR",
    502,
    "The provider failed or could not be reached.",
);
const INVALID_RESPONSE: ErrorCode = ErrorCode::new(
    "OEMBED_INVALID_RESPONSE",
    502,
    "The provider's answer cannot be used.",
);
const UNAVAILABLE: ErrorCode = ErrorCode::service_unavailable(
    "The operation cannot take the call now, or the provider refuses requests from this service.",
);
/// Also what the host answers at the operation's deadline.
pub(crate) const TIMEOUT: ErrorCode = ErrorCode::new(
    "OEMBED_UPSTREAM_TIMEOUT",
    504,
    "The provider did not answer in time.",
);

/// What the operation declares.
pub(crate) const CODES: [ErrorCode; 13] = [
    VALIDATION,
    INVALID_URL,
    UNSAFE,
    PRIVATE,
    NOT_FOUND,
    UNSUPPORTED_PROVIDER,
    UNSUPPORTED_URL,
    UNRESOLVED,
    RATE_LIMITED,
    UPSTREAM,
    INVALID_RESPONSE,
    UNAVAILABLE,
    TIMEOUT,
];

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Trouble {
    /// Nothing but space was given.
    Empty,
    /// More characters than are taken.
    TooLong,
    /// The rule that the text breaks.
    InvalidUrl(String),
    /// The rule that the address breaks.
    Unsafe(String),
    /// The host that it names.
    UnsupportedProvider(String),
    UnsupportedUrl,
    Unresolved,
    Private,
    NotFound,
    RateLimited {
        /// As the provider says, or what it is kept for.
        retry_after_s: u64,
    },
    /// It failed, or could not be reached.
    Upstream,
    /// What is wrong with the answer.
    InvalidResponse(String),
    /// It takes no request of ours: a credential, or a grant of the operator's.
    Unavailable,
    Timeout,
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

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Empty => Failure::new(
                &VALIDATION,
                "`url` must have 1 to 2048 characters; it is empty",
            )
            .detail("field", "url")
            .detail("min", 1),
            Trouble::TooLong => {
                Failure::new(&VALIDATION, "`url` must have at most 2048 characters")
                    .detail("field", "url")
                    .detail("max", URL_CHARACTERS_MAX)
            }
            Trouble::InvalidUrl(rule) => Failure::new(&INVALID_URL, format!("`url` {rule}")),
            Trouble::Unsafe(rule) => Failure::new(&UNSAFE, rule),
            Trouble::UnsupportedProvider(host) => Failure::new(
                &UNSUPPORTED_PROVIDER,
                format!("`url` must belong to a supported network; the host `{host}` does not"),
            ),
            Trouble::UnsupportedUrl => Failure::new(
                &UNSUPPORTED_URL,
                "`url` must be a permalink or short link of a post",
            ),
            Trouble::Unresolved => Failure::new(
                &UNRESOLVED,
                "`url` is a short link that does not lead to a supported post",
            ),
            Trouble::Private => Failure::new(&PRIVATE, "The provider denies access to this post"),
            Trouble::NotFound => Failure::new(&NOT_FOUND, "The post does not exist or was removed"),
            Trouble::RateLimited { retry_after_s } => {
                let ms = u32::try_from(retry_after_s * SECOND_MS).unwrap_or(u32::MAX);
                Failure::new(
                    &RATE_LIMITED,
                    "The provider's rate limit is reached; try again later",
                )
                .retry_after_ms(ms)
            }
            Trouble::Upstream => {
                Failure::new(&UPSTREAM, "The provider failed or could not be reached")
            }
            Trouble::InvalidResponse(what) => Failure::new(
                &INVALID_RESPONSE,
                format!("The provider's answer cannot be used: {what}"),
            ),
            Trouble::Unavailable => Failure::new(
                &UNAVAILABLE,
                "The provider refuses requests from this service at the moment",
            ),
            Trouble::Timeout => Failure::new(&TIMEOUT, "The provider did not answer in time"),
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
