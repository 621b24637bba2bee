//! What a plugin answers, taken only as far as its operation declares it, and a refusal in the operation's own words where it
//! answers nothing.
//!
//! Pure: must not know who called, nor what the call costs.

use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::catalogue::Bound;
use crate::contract::error::{Code, Refusal, sentence};
use crate::contract::operation::{DeclaredFailure, Operation, PluginFailure, PluginReply, Success};
use crate::runtime::instance::{CallError, Off};

/// A failure's message is cut to this many characters.
const MESSAGE_CHARACTERS_MAX: usize = 1000;
/// A longer name of a plugin's is none.
const NAME_BYTES_MAX: usize = 64;
/// Members of the envelope's `data` that only the host writes.
const HOST_DETAILS: [&str; 3] = ["requestId", "retryAfter", "resetAt"];

/// Takes a plugin's success only as far as its operation declares it.
pub(super) fn checked_success(bound: &Bound, success: Success) -> Result<PluginReply, Refusal> {
    let operation = &bound.operation;
    let (outcome, data) = (success.outcome, success.data);
    let declared = match &operation.rest {
        Some(face) => face.outcomes.contains_key(&outcome),
        None => outcome == "ok",
    };
    if !declared {
        return Err(Refusal::internal(format!(
            "the plugin returned the undeclared outcome {}",
            named(&outcome)
        )));
    }
    if success.attachments > 0 {
        return Err(Refusal::internal(
            "the plugin attached stored bytes without having a store",
        ));
    }
    let headers = checked_headers(operation, success.headers)?;
    let digest: [u8; 32] = Sha256::digest(data.as_bytes()).into();
    let narrowed = operation
        .rest
        .as_ref()
        .and_then(|face| face.narrowed.get(&outcome));
    // What is remembered of a reply is that it fits the output.
    let is_known = narrowed.is_none() && bound.state.has_checked(&digest);
    if !is_known {
        let parsed: Value = serde_json::from_str(&data).map_err(|error| {
            Refusal::internal(format!(
                "the plugin's data is not valid JSON: {}",
                place(&error)
            ))
        })?;
        for schema in [Some(&operation.output), narrowed].into_iter().flatten() {
            schema.check(&parsed).map_err(|broken| {
                Refusal::internal(format!(
                    "the plugin's data does not match its output schema: {broken}"
                ))
            })?;
        }
        bound.state.remember_checked(digest);
    }
    let has_etag = operation.rest.as_ref().is_some_and(|face| face.etag);
    let digest = has_etag.then_some(digest);
    Ok(PluginReply {
        outcome,
        data,
        headers,
        digest,
    })
}

fn checked_headers(
    operation: &Operation,
    headers: Vec<(String, String)>,
) -> Result<Vec<(HeaderName, HeaderValue)>, Refusal> {
    let declared = operation
        .rest
        .as_ref()
        .map_or(&[][..], |face| &face.headers);
    let mut checked = Vec::with_capacity(headers.len());
    for (name, value) in headers {
        let Some(name) = declared
            .iter()
            .find(|declared| declared.as_str().eq_ignore_ascii_case(&name))
        else {
            return Err(Refusal::internal(format!(
                "the plugin sent the undeclared header {}",
                named(&name)
            )));
        };
        let value = HeaderValue::from_str(&value).map_err(|_| {
            Refusal::internal(format!(
                "the plugin's value for the header `{name}` is invalid"
            ))
        })?;
        checked.push((name.clone(), value));
    }
    Ok(checked)
}

/// Takes a plugin's failure only if its operation declares the code.
pub(super) fn checked_failure(operation: &Operation, failure: PluginFailure) -> Refusal {
    let code = failure.code;
    let Some(declared) = operation.errors.iter().find(|error| error.code == code) else {
        return Refusal::internal(format!(
            "the plugin failed with the undeclared code {}",
            named(&code)
        ));
    };
    let details = failure.details.as_deref();
    let details = match details.map(serde_json::from_str::<Map<String, Value>>) {
        None => Map::new(),
        Some(Ok(details)) => details,
        Some(Err(error)) => {
            return Refusal::internal(format!(
                "the plugin's details are not a JSON object: {}",
                place(&error)
            ));
        }
    };
    if let Some(name) = details
        .keys()
        .find(|name| HOST_DETAILS.contains(&name.as_str()))
    {
        return Refusal::internal(format!(
            "the plugin's details name `{name}`, which is reserved for the host"
        ));
    }
    let message = failure.message.chars().take(MESSAGE_CHARACTERS_MAX);
    Refusal {
        status: declared.status,
        message: sentence(message.collect::<String>()),
        retry_after_s: (failure.retry_after_ms)
            .map(|milliseconds| u64::from(milliseconds.div_ceil(1000).max(1))),
        reset_at: None,
        details,
        challenge: None,
        cause: None,
        code: code.into(),
    }
}

/// A call that ended without an answer of the plugin's, in the operation's own words where it declared some.
pub(super) fn failed(operation: &Operation, error: &CallError) -> Refusal {
    let cause = error.to_string();
    let unavailable =
        |message, retry_after_s| declared(&operation.on_unavailable, message, Some(retry_after_s));
    let unavailable_for =
        |message, seconds| after(declared(&operation.on_unavailable, message, None), seconds);
    let late = |message| declared(&operation.on_deadline, message, None);
    let mut refusal = match error {
        CallError::Busy { .. } => unavailable("The operation is at capacity; try again shortly", 1),
        CallError::OwnShare { .. } => {
            unavailable_for("Too many of your calls are running; try again shortly", 1)
        }
        CallError::Crowded { .. } => {
            unavailable_for("Too many of your calls are waiting; try again shortly", 1)
        }
        CallError::NoRoom(_) => unavailable("The service is at capacity; try again shortly", 1),
        CallError::PluginPaused { seconds } => unavailable_for(
            "The operation is paused: calls of several callers used up their processor time",
            *seconds,
        ),
        CallError::Paused { seconds } => unavailable_for(
            "The operation is paused for you: your last calls used up their processor time",
            *seconds,
        ),
        CallError::OverBudget { seconds } => {
            let message = "Your processor time per minute for this operation and those that share its tag is used up";
            after(Refusal::new(Code::RateLimited, message), *seconds)
        }
        CallError::JobSpent(_) => {
            Refusal::new(Code::RateLimited, "The job used up its processor time")
        }
        CallError::Deadline(_) => late("The operation did not finish by its deadline"),
        CallError::CpuSpent(_) => {
            late("The operation used up its processor time before it finished")
        }
        CallError::Stopped => unavailable(
            "The operation was replaced while this call ran; try again",
            1,
        ),
        CallError::Off(Off::Disabled) => {
            unavailable("The operator has disabled this operation", 60)
        }
        CallError::Off(Off::Unloadable(_)) => {
            unavailable("The operation cannot be served at the moment", 30)
        }
        CallError::MemorySpent { .. } => {
            let mut refusal = Refusal::internal("");
            refusal.message = "The operation ran out of memory on this input".into();
            refusal
        }
        CallError::Trapped { .. }
        | CallError::Exited(_)
        | CallError::TooLarge { .. }
        | CallError::NoWorker
        | CallError::CallerUnknown { .. } => Refusal::internal(""),
    };
    refusal.cause = Some(cause);
    refusal
}

/// The time that is told is how long it takes, whatever the operation says of its usual one.
fn after(mut refusal: Refusal, seconds: u64) -> Refusal {
    refusal.retry_after_s = Some(seconds);
    refusal
}

fn declared(
    failure: &DeclaredFailure,
    message: &'static str,
    retry_after_s: Option<u64>,
) -> Refusal {
    Refusal {
        code: failure.code.clone().into(),
        status: failure.status,
        message: message.into(),
        retry_after_s: failure.retry_after_s.or(retry_after_s),
        reset_at: None,
        details: Map::new(),
        challenge: None,
        cause: None,
    }
}

/// A plugin's name for something, in a cause: quoted only where it can be a name, because it may be made of the input.
fn named(name: &str) -> String {
    let is_name = (1..=NAME_BYTES_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if is_name {
        format!("`{name}`")
    } else {
        format!("of {} bytes, which is not a name", name.len())
    }
}

/// Where a text is no JSON, and not why: the reason would quote the text.
pub(super) fn place(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
}
