//! The errors of Meta's Graph API, which three networks share: a code in the body says more than the status.

use serde::Deserialize;

use super::{Answered, by_status};
use crate::trouble::Trouble;

#[derive(Deserialize)]
struct Said {
    error: Error,
}

#[derive(Deserialize)]
struct Error {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    error_subcode: i64,
    #[serde(default)]
    message: String,
}

/// Of what it denies to an app as long as nobody has reviewed that.
const OF_THE_APP: [&str; 5] = [
    "must be reviewed and approved",
    "application does not have",
    "app does not have",
    "oembed read",
    "app id",
];

/// What an answer says that is none.
pub(super) fn trouble(answered: &Answered<'_>) -> Option<Trouble> {
    match serde_json::from_slice(answered.body) {
        Ok(Said { error }) => Some(coded(&error, answered)),
        Err(_) => by_status(answered),
    }
}

fn coded(error: &Error, answered: &Answered<'_>) -> Trouble {
    let message = error.message.to_ascii_lowercase();
    let is_of_app = OF_THE_APP.iter().any(|words| message.contains(words));
    match (error.code, error.error_subcode) {
        (4 | 17 | 32 | 368 | 613 | 80_000..=80_014, _) => {
            Trouble::rate_limited(answered.retry_after_s)
        }
        (104 | 190 | 200..=299, _) => Trouble::Unavailable,
        _ if is_of_app => Trouble::Unavailable,
        (24 | 2_207_046 | 400 | 10, _) | (_, 2_207_046) => Trouble::Private,
        (100 | 803, _) => Trouble::NotFound,
        (1 | 2, _) => Trouble::Upstream,
        // It has no status of success, or says so falsely.
        _ => by_status(answered).unwrap_or(Trouble::Upstream),
    }
}
