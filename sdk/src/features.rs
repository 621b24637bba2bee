//! Calls the operations of other plugins.
//!
//! Using this module makes the component import `switchbay:features/client`. An atom such as
//! `features:bank-qr.banks` grants one operation: the plugin asks for it with [`Plugin::wants`], the
//! operator grants it in the manifest. The other plugin sees the caller of this call, whose credential
//! needs no scope for it and pays nothing for it.
//!
//! ```no_run
//! use serde::{Deserialize, Serialize};
//! use switchbay_sdk::features::{self, FeatureError};
//!
//! #[derive(Serialize)]
//! struct NoInput {}
//!
//! #[derive(Deserialize)]
//! struct Banks {
//!     count: u32,
//! }
//!
//! async fn count() -> Result<u32, FeatureError> {
//!     let banks: Banks = features::call("bank-qr", "banks", &NoInput {}).await?;
//!     Ok(banks.count)
//! }
//! ```
//!
//! A plugin that is called may call another, and that one nobody. An operation may have inputs that only
//! other plugins may send: [`Operation::feature_input`].
//!
//! [`Plugin::wants`]: crate::Plugin::wants
//! [`Operation::feature_input`]: crate::Operation::feature_input

use std::error::Error;
use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::switchbay::features::client;
use crate::{ErrorCode, Failure};

pub use crate::bindings::switchbay::features::client::{Answer, Failure as FeatureFailure};

/// Why another plugin's operation did not answer.
#[derive(Debug)]
pub enum FeatureError {
    /// No grant names the operation.
    NotGranted(String),
    /// The input does not fit the operation: which field breaks which rule.
    NotAcceptable(String),
    /// There is no such plugin or operation now, or it is the operator's alone.
    Absent(String),
    /// The call that makes this one was made by two others.
    TooDeep,
    /// The operation failed, or the host refused the call, with what a client would have been told.
    Failed(FeatureFailure),
    /// The call has 4 calls under way.
    Busy,
    /// The answer is not of the expected type.
    Unexpected(String),
}

impl FeatureError {
    /// The error code of a failure.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Failed(failure) => Some(&failure.code),
            Self::NotGranted(_)
            | Self::NotAcceptable(_)
            | Self::Absent(_)
            | Self::TooDeep
            | Self::Busy
            | Self::Unexpected(_) => None,
        }
    }

    /// This failure as one of your own operation, if its code is one of `codes`. Keeps the message and the time to wait, not
    /// the details.
    pub fn failure_of<'c>(
        &self,
        codes: impl IntoIterator<Item = &'c ErrorCode>,
    ) -> Option<Failure> {
        let Self::Failed(failed) = self else {
            return None;
        };
        let code = codes.into_iter().find(|code| code.code == failed.code)?;
        let failure = code.failure(failed.message.clone());
        Some(match failed.retry_after_ms {
            Some(milliseconds) => failure.retry_after_ms(milliseconds),
            None => failure,
        })
    }
}

impl fmt::Display for FeatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGranted(told) | Self::NotAcceptable(told) | Self::Absent(told) => {
                f.write_str(told)
            }
            Self::TooDeep => f.write_str("a call that two plugins led to may call nobody"),
            Self::Failed(failure) => write!(f, "{}: {}", failure.code, failure.message),
            Self::Busy => f.write_str("4 calls of other plugins are under way"),
            Self::Unexpected(why) => write!(f, "the answer is not of the expected type: {why}"),
        }
    }
}

impl Error for FeatureError {}

impl From<client::Error> for FeatureError {
    fn from(error: client::Error) -> Self {
        match error {
            client::Error::NotGranted(told) => Self::NotGranted(told),
            client::Error::NotAcceptable(told) => Self::NotAcceptable(told),
            client::Error::Absent(told) => Self::Absent(told),
            client::Error::TooDeep => Self::TooDeep,
            client::Error::Failed(failure) => Self::Failed(failure),
            client::Error::Busy => Self::Busy,
        }
    }
}

/// Calls an operation of another plugin, and returns the data of its answer.
///
/// # Errors
/// If there is no success, the input cannot be serialized ([`FeatureError::NotAcceptable`]), or the data is
/// not of this type ([`FeatureError::Unexpected`]).
pub async fn call<O: DeserializeOwned>(
    plugin: &str,
    operation: &str,
    input: &impl Serialize,
) -> Result<O, FeatureError> {
    let input = serde_json::to_string(input)
        .map_err(|error| FeatureError::NotAcceptable(error.to_string()))?;
    let answer = call_json(plugin, operation, input).await?;
    serde_json::from_str(&answer.data).map_err(|error| FeatureError::Unexpected(error.to_string()))
}

/// The same in JSON, with the outcome of the answer.
///
/// # Errors
/// If there is no success.
pub async fn call_json(
    plugin: &str,
    operation: &str,
    input: impl Into<String>,
) -> Result<Answer, FeatureError> {
    let (plugin, operation) = (plugin.to_owned(), operation.to_owned());
    Ok(client::call(plugin, operation, input.into()).await?)
}
