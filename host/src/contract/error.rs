//! The one table of codes and statuses, and the refusal that both transports print.
//!
//! Layers below speak of their own world (a missed deadline, a key that is unknown); here they become what a client reads.
//! A [`Refusal`] keeps two texts apart: `message` is for the client, `cause` for the log alone.

use std::borrow::Cow;

use http::StatusCode;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::operation::Scope;

/// One row for each code: its variant, its name, its status, and the sentence for the published documents, so that they cannot
/// drift apart.
macro_rules! codes {
    ($($code:ident $name:literal $status:ident $when:literal)*) => {
        /// The codes that the host itself answers with. Plugins declare theirs with a status of their own; where a declared
        /// code is one of these, its status must be this one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Code {
            $($code),*
        }

        impl Code {
            const ALL: &[Code] = &[$(Code::$code),*];

            pub(crate) fn name(self) -> &'static str {
                match self { $(Code::$code => $name),* }
            }

            pub(crate) fn status(self) -> StatusCode {
                match self { $(Code::$code => StatusCode::$status),* }
            }

            /// When it comes, as one or more sentences.
            pub(crate) fn when(self) -> &'static str {
                match self { $(Code::$code => $when),* }
            }
        }
    };
}

codes! {
    ValidationError "VALIDATION_ERROR" BAD_REQUEST
        "The request is malformed, or a field is unknown, missing or invalid; `data.field` names it."
    Unauthorized "UNAUTHORIZED" UNAUTHORIZED
        "The credential is missing or invalid."
    Forbidden "FORBIDDEN" FORBIDDEN
        "The credential was revoked or has expired, its account's plan does not allow calls, or it lacks the \
        operation's scope."
    NotFound "NOT_FOUND" NOT_FOUND
        "There is no such route; or the job is unknown, has expired, or belongs to another caller."
    MethodNotAllowed "METHOD_NOT_ALLOWED" METHOD_NOT_ALLOWED
        "The route does not support this method; `Allow` lists those that it does."
    RequestTimeout "REQUEST_TIMEOUT" REQUEST_TIMEOUT
        "The request's body did not arrive in time."
    Conflict "CONFLICT" CONFLICT
        "The request conflicts with the current state."
    PayloadTooLarge "PAYLOAD_TOO_LARGE" PAYLOAD_TOO_LARGE
        "The body is larger than `data.max` bytes."
    UnsupportedMediaType "UNSUPPORTED_MEDIA_TYPE" UNSUPPORTED_MEDIA_TYPE
        "The request has a body whose type is not `application/json`."
    RateLimited "RATE_LIMITED" TOO_MANY_REQUESTS
        "A rate limit was reached, or the caller used up its processor time per minute for the operations that share \
        a tag in /openapi.json; try again after `data.retryAfter` seconds."
    MonthlyQuotaExceeded "MONTHLY_QUOTA_EXCEEDED" TOO_MANY_REQUESTS
        "The credential's calls for this calendar month (UTC) are used up."
    ApiCreditsExceeded "API_CREDITS_EXCEEDED" TOO_MANY_REQUESTS
        "The account does not have enough credits left for this calendar month (UTC)."
    UsageConcurrencyExceeded "USAGE_CONCURRENCY_EXCEEDED" TOO_MANY_REQUESTS
        "Too many calls of the account are running; try again with the same `Idempotency-Key` and input."
    UsageReservationConflict "USAGE_RESERVATION_CONFLICT" CONFLICT
        "The operation with this `Idempotency-Key` has already been handled, or is still running."
    UsageReservationExpired "USAGE_RESERVATION_EXPIRED" CONFLICT
        "The credit reservation for the operation with this `Idempotency-Key` expired."
    InternalError "INTERNAL_ERROR" INTERNAL_SERVER_ERROR
        "The service failed; `data.requestId` identifies the failure in its log."
    ServiceUnavailable "SERVICE_UNAVAILABLE" SERVICE_UNAVAILABLE
        "The service or the operation cannot take the call now: it is at capacity, was replaced or disabled, or is \
        paused (for this caller or for all) because calls used up their processor time; or the caller's own calls \
        fill the caller's share. Try again after `data.retryAfter` seconds where it is given."
    UpstreamTimeout "UPSTREAM_TIMEOUT" GATEWAY_TIMEOUT
        "The operation did not finish by its deadline."
}

impl Code {
    /// Of all codes.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().map(|code| code.name())
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.name() == name)
    }
}

/// A message as clients of the public listener read it: whoever wrote it, it begins with a capital letter unless its first word is a name such as
/// `robots.txt`, and has no full stop at its end.
pub(crate) fn sentence(text: impl Into<Cow<'static, str>>) -> Cow<'static, str> {
    let text = text.into();
    let first = text
        .split(' ')
        .next()
        .unwrap_or_default()
        .trim_end_matches([',', ':', ';']);
    let is_word = !first.is_empty()
        && first
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'\'');
    let ends = text.ends_with('.') && !text.ends_with("..");
    if !is_word && !ends {
        return text;
    }
    let mut text = text.into_owned();
    if is_word {
        text[..1].make_ascii_uppercase();
    }
    if ends {
        text.pop();
    }
    Cow::Owned(text)
}

/// Why a credential was refused: what a transport needs for its `WWW-Authenticate` challenge.
#[derive(Clone, Debug)]
pub(crate) struct AuthChallenge {
    pub(crate) scope: Scope,
    /// Absent where no credential was presented.
    pub(crate) error: Option<&'static str>,
    /// Where the client learns which identity provider to ask.
    pub(crate) resource_metadata: Option<String>,
}

/// A call that was refused or failed, as the client will read it.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: Cow<'static, str>,
    pub(crate) status: StatusCode,
    pub(crate) message: Cow<'static, str>,
    /// Whole seconds, at least 1.
    pub(crate) retry_after_s: Option<u64>,
    pub(crate) reset_at: Option<OffsetDateTime>,
    /// Members of the envelope's `data` beside the host's own.
    pub(crate) details: Map<String, Value>,
    /// Present when the credential was the reason.
    pub(crate) challenge: Option<AuthChallenge>,
    /// For the log alone.
    pub(crate) cause: Option<String>,
}

impl Refusal {
    pub(crate) fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code: Cow::Borrowed(code.name()),
            status: code.status(),
            message: message.into(),
            retry_after_s: None,
            reset_at: None,
            details: Map::new(),
            challenge: None,
            cause: None,
        }
    }

    /// A request that breaks a rule, of a field where one is at fault.
    pub(crate) fn invalid(field: Option<&str>, rule: &str) -> Self {
        match field {
            Some(field) => {
                let shown: String = field.chars().take(100).collect();
                Self::new(Code::ValidationError, format!("`{shown}` {rule}")).with("field", shown)
            }
            None => Self::new(Code::ValidationError, rule.to_owned()),
        }
    }

    /// A failure of ours: the client learns nothing but the request id, the log learns the cause.
    pub(crate) fn internal(cause: impl Into<String>) -> Self {
        let mut refusal = Self::new(
            Code::InternalError,
            "The service failed to handle this call",
        );
        refusal.cause = Some(cause.into());
        refusal
    }

    /// A body, or a tool's arguments, above the limit: the same words on both faces.
    pub(crate) fn too_large(bytes_max: usize) -> Self {
        let message = format!("The input is larger than the limit of {bytes_max} bytes");
        Self::new(Code::PayloadTooLarge, message).with("max", bytes_max)
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_s = Some(seconds.max(1));
        self
    }

    /// It ends at a time, in Unix seconds.
    pub(crate) fn until(self, reset_epoch_s: u64, now_s: u64) -> Self {
        let mut refusal = self.retry_after(reset_epoch_s.saturating_sub(now_s));
        refusal.reset_at = i64::try_from(reset_epoch_s)
            .ok()
            .and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
        refusal
    }

    /// The REST error envelope (docs/api.md, "Errors"), which MCP carries as text.
    pub(crate) fn envelope(&self, request_id: &str) -> Value {
        let mut data = Map::new();
        data.insert("requestId".to_owned(), json!(request_id));
        if let Some(seconds) = self.retry_after_s {
            data.insert("retryAfter".to_owned(), json!(seconds));
        }
        if let Some(text) = self.reset_at.and_then(|at| at.format(&Rfc3339).ok()) {
            data.insert("resetAt".to_owned(), json!(text));
        }
        for (name, value) in &self.details {
            data.entry(name.as_str()).or_insert_with(|| value.clone());
        }
        json!({ "success": false, "error": { "code": self.code, "message": self.message }, "data": data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_begins_with_a_capital_letter_and_has_no_full_stop() {
        for (written, read) in [
            ("the provider failed", "The provider failed"),
            ("no, never: not here.", "No, never: not here"),
            ("`url` has no host", "`url` has no host"),
            ("robots.txt forbids it", "robots.txt forbids it"),
            (
                "params.name must be a string",
                "params.name must be a string",
            ),
            ("The service failed", "The service failed"),
            ("it goes on...", "It goes on..."),
            ("é is no letter", "é is no letter"),
            ("", ""),
        ] {
            assert_eq!(sentence(written), read);
        }
    }

    #[test]
    fn each_code_has_a_name_of_its_own() {
        for code in Code::ALL {
            assert_eq!(Code::from_name(code.name()), Some(*code));
        }
    }
}
