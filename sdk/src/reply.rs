//! What an operation returns: a typed success, or a failure that the operation declares.

use std::marker::PhantomData;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::bindings::switchbay::plugin0_2_0::types as wire;

/// A way in which an operation may fail. Declare it with [`crate::Operation::error`]; the host replaces
/// undeclared codes with `INTERNAL_ERROR`. Codes that the host has too have a constructor here, which knows
/// their status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode {
    pub(crate) code: &'static str,
    pub(crate) status: u16,
    pub(crate) when: &'static str,
}

impl ErrorCode {
    /// `code` is upper-case words with underscores, `status` an HTTP status from 400 to 599, `when` a
    /// sentence for the published documents.
    pub const fn new(code: &'static str, status: u16, when: &'static str) -> Self {
        Self { code, status, when }
    }

    /// `VALIDATION_ERROR`, 400: the input breaks a rule that its schema does not tell.
    pub const fn validation_error(when: &'static str) -> Self {
        Self::new("VALIDATION_ERROR", 400, when)
    }

    /// `NOT_FOUND`, 404: what the caller names does not exist, or is not the caller's.
    pub const fn not_found(when: &'static str) -> Self {
        Self::new("NOT_FOUND", 404, when)
    }

    /// `CONFLICT`, 409: the call does not fit the present state of what it is about.
    pub const fn conflict(when: &'static str) -> Self {
        Self::new("CONFLICT", 409, when)
    }

    /// `DUPLICATE_REQUEST`, 409: the caller used this request id before.
    pub const fn duplicate_request(when: &'static str) -> Self {
        Self::new("DUPLICATE_REQUEST", 409, when)
    }

    /// `UPSTREAM_BAD_RESPONSE`, 502: who is asked for the answer failed or cannot be understood.
    pub const fn upstream_bad_response(when: &'static str) -> Self {
        Self::new("UPSTREAM_BAD_RESPONSE", 502, when)
    }

    /// `SERVICE_UNAVAILABLE`, 503: the operation cannot take the call now.
    pub const fn service_unavailable(when: &'static str) -> Self {
        Self::new("SERVICE_UNAVAILABLE", 503, when)
    }

    /// `UPSTREAM_TIMEOUT`, 504: who is asked for the answer did not give it in time.
    pub const fn upstream_timeout(when: &'static str) -> Self {
        Self::new("UPSTREAM_TIMEOUT", 504, when)
    }

    /// The code, as in the failure of a job.
    pub const fn code(&self) -> &'static str {
        self.code
    }

    /// A failure with this code. For `message` see [`Failure::new`].
    pub fn failure(&self, message: impl Into<String>) -> Failure {
        Failure::new(self, message)
    }
}

/// A failure of one call, shown to the client.
#[derive(Debug)]
pub struct Failure {
    code: &'static str,
    message: String,
    retry_after_ms: Option<u32>,
    details: Map<String, Value>,
}

impl Failure {
    /// `message` names the thing, the rule and the value found; it never contains a secret.
    pub fn new(code: &ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code: code.code,
            message: message.into(),
            retry_after_ms: None,
            details: Map::new(),
        }
    }

    /// Adds a member to the envelope's `data`: `field`, `max`, `min` or one that the operation defines.
    #[must_use]
    pub fn detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// Names the input property that is wrong: the detail `field`.
    #[must_use]
    pub fn field(self, name: &str) -> Self {
        self.detail("field", name)
    }

    /// Sets when to retry, in milliseconds; the client gets whole seconds, rounded up.
    #[must_use]
    pub fn retry_after_ms(mut self, milliseconds: u32) -> Self {
        self.retry_after_ms = Some(milliseconds);
        self
    }

    /// The same as a duration; beyond the range of milliseconds it is the longest.
    #[must_use]
    pub fn retry_after(self, wait: Duration) -> Self {
        self.retry_after_ms(u32::try_from(wait.as_millis()).unwrap_or(u32::MAX))
    }

    pub(crate) fn into_wire(self) -> wire::Failure {
        wire::Failure {
            code: self.code.to_owned(),
            message: self.message,
            retry_after_ms: self.retry_after_ms,
            details: (!self.details.is_empty()).then(|| Value::Object(self.details).to_string()),
        }
    }
}

/// A success with data of the operation's output type.
pub struct Reply<T> {
    outcome: &'static str,
    data: String,
    headers: Vec<(String, String)>,
    output: PhantomData<T>,
}

impl<T: Serialize> Reply<T> {
    /// A reply with the outcome `ok`.
    pub fn ok(data: T) -> Self {
        Self::outcome("ok", data)
    }

    /// A reply with another outcome that the REST face declares, such as `accepted`.
    pub fn outcome(outcome: &'static str, data: T) -> Self {
        let data = serde_json::to_string(&data)
            .expect("an output type has string keys, so it always serialises");
        Self::text(outcome, data)
    }
}

impl<T> Reply<T> {
    /// A reply with the outcome `ok` whose data is already JSON text of the output type, for example from
    /// a cache. The host checks it like all data.
    pub fn ok_text(data: String) -> Self {
        Self::text("ok", data)
    }

    fn text(outcome: &'static str, data: String) -> Self {
        Self {
            outcome,
            data,
            headers: Vec::new(),
            output: PhantomData,
        }
    }

    /// Adds a response header that the REST face declares.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn into_wire(self) -> wire::Reply {
        wire::Reply {
            outcome: self.outcome.to_owned(),
            data: self.data,
            headers: self.headers,
            attachments: Vec::new(),
        }
    }
}
