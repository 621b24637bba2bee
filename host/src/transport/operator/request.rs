//! What the operator's requests share: what a label and a time may be, how a time is told, and how a request fails.

use std::fmt;
use std::time::SystemTime;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::base::clock::epoch_seconds;
use crate::contract::error::{Code, Refusal};
use crate::stores::StoreError;

const LABEL_CHARACTERS_MAX: usize = 100;

/// A request of the operator's that cannot be done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("the body does not have the expected form: {0}")]
    Malformed(#[source] serde_json::Error),
    #[error("`{field}` {rule}")]
    Invalid { field: &'static str, rule: String },
    #[error("there is no {what} with the id {id}")]
    Unknown { what: &'static str, id: String },
    #[error("the key {0} was revoked; issue a new one instead")]
    Revoked(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Refuses a field's value.
pub(crate) fn invalid<T>(field: &'static str, rule: impl Into<String>) -> Result<T, RequestError> {
    Err(RequestError::Invalid {
        field,
        rule: rule.into(),
    })
}

/// Checks a text that people read.
pub(crate) fn label(field: &'static str, text: &str) -> Result<(), RequestError> {
    let characters = text.chars().count();
    if (1..=LABEL_CHARACTERS_MAX).contains(&characters) && !text.chars().any(char::is_control) {
        Ok(())
    } else {
        invalid(
            field,
            format!("must have 1 to {LABEL_CHARACTERS_MAX} printable characters"),
        )
    }
}

/// Checks a limit, which cannot be zero: what may never call is revoked instead.
pub(crate) fn limit<T: Default + PartialEq>(
    field: &'static str,
    limit: Option<T>,
) -> Result<(), RequestError> {
    match limit {
        Some(limit) if limit == T::default() => invalid(field, "must be at least 1"),
        Some(_) | None => Ok(()),
    }
}

/// A time as people read and write it: RFC 3339, in UTC where it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Timestamp(#[schemars(extend("format" = "date-time"))] String);

impl Timestamp {
    /// Of Unix seconds.
    pub(crate) fn of(epoch_s: u64) -> Self {
        let at = i64::try_from(epoch_s)
            .ok()
            .and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
        let text = at.and_then(|at| at.format(&Rfc3339).ok());
        Self(text.unwrap_or_default())
    }

    /// As somebody wrote it; whether it is a time is found out when it is read.
    pub(crate) fn written(text: String) -> Self {
        Self(text)
    }

    pub(crate) fn read(&self) -> Option<OffsetDateTime> {
        OffsetDateTime::parse(&self.0, &Rfc3339).ok()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads a time that must be to come, as Unix seconds.
pub(crate) fn expiry(
    written: Option<&Timestamp>,
    now: SystemTime,
) -> Result<Option<u64>, RequestError> {
    let Some(written) = written else {
        return Ok(None);
    };
    let expiry = written.read().map(OffsetDateTime::unix_timestamp);
    match expiry.and_then(|at| u64::try_from(at).ok()) {
        Some(expiry) if expiry > epoch_seconds(now) => Ok(Some(expiry)),
        Some(_) => invalid("expiresAt", format!("is {written}, which is in the past")),
        None => invalid(
            "expiresAt",
            format!("is {written}; write a time such as 2027-01-31T00:00:00Z"),
        ),
    }
}

impl From<RequestError> for Refusal {
    fn from(error: RequestError) -> Self {
        let (code, field) = match &error {
            RequestError::Malformed(_) => (Code::ValidationError, None),
            RequestError::Invalid { field, .. } => (Code::ValidationError, Some(*field)),
            RequestError::Unknown { .. } => (Code::NotFound, None),
            RequestError::Revoked(_) => (Code::ValidationError, Some("id")),
            RequestError::Store(source) => {
                let mut refusal = Self::new(Code::ServiceUnavailable, "The store failed");
                refusal.cause = Some(source.to_string());
                return refusal.retry_after(1);
            }
        };
        let refusal = Self::new(code, error.to_string());
        match field {
            Some(field) => refusal.with("field", field),
            None => refusal,
        }
    }
}
