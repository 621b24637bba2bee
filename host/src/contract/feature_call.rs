//! A call of one plugin's operation by another plugin: what is asked, what is answered, and the door that such a call goes
//! through.
//!
//! The door is a trait so that whoever runs a plugin can hand its calls on without knowing what is served, nor what a call is
//! judged by.

use std::pin::Pin;

use super::error::Refusal;

/// An operation as grants name it.
pub(crate) fn feature_name(plugin: &str, operation: &str) -> String {
    format!("{plugin}.{operation}")
}

/// An operation that a plugin calls.
pub(crate) struct FeatureRequest {
    pub(crate) plugin: String,
    pub(crate) operation: String,
    /// As the calling plugin wrote it.
    pub(crate) input: String,
}

/// A success, checked as for any client.
#[derive(Debug)]
pub(crate) struct FeatureAnswer {
    pub(crate) outcome: String,
    /// JSON text that fits the operation's output schema.
    pub(crate) data: String,
}

/// Why there is none.
#[derive(Debug)]
pub(crate) enum FeatureError {
    /// The input breaks this rule, told without its value.
    NotAcceptable(String),
    /// There is no such plugin or operation.
    Absent,
    /// The call that asks was made by as many others as may be.
    TooDeep,
    /// What a client would have been told.
    Refused(Box<Refusal>),
}

/// What came of a call, when it is there.
pub(crate) type FeatureEnd = Result<FeatureAnswer, FeatureError>;

/// The way of one call to the operations of other plugins.
pub(crate) trait FeatureDoor: Send + Sync {
    /// Begins a call whose grant is there. It runs by itself, never within a poll of whoever waits for it, and ends when the
    /// future is dropped. The future holds nothing of the door: a guest that forgets it keeps nothing alive.
    fn call(&self, request: FeatureRequest) -> Pin<Box<dyn Future<Output = FeatureEnd> + Send>>;
}
