//! Calls and answers on the way into a guest and out of it: values of the host on one side, the WIT types on the other.
//!
//! Must not know how a guest is called.

use crate::contract::operation::{Call, CallerKind, PluginFailure, Success, UncheckedAnswer};
use crate::runtime::capabilities::bindings::switchbay::plugin::types as wire;

pub(crate) fn to_wire(call: Call, job: Option<wire::Job>) -> (wire::Call, String) {
    let deadline_ms = u32::try_from(call.deadline.as_millis()).unwrap_or(u32::MAX);
    let kind = match call.caller {
        CallerKind::ApiKey => wire::CallerKind::ApiKey,
        CallerKind::OAuth => wire::CallerKind::Oauth,
        CallerKind::FirstParty => wire::CallerKind::FirstParty,
    };
    let caller = wire::Caller {
        owner: call.owner.as_str().to_owned(),
        kind,
        subject: None,
    };
    let wired = wire::Call {
        request_id: call.request_id,
        operation: call.operation,
        caller,
        deadline_ms,
        job,
    };
    (wired, call.input)
}

pub(crate) fn from_wire(answer: Result<wire::Reply, wire::Failure>) -> UncheckedAnswer {
    match answer {
        Ok(reply) => UncheckedAnswer::Success(Success {
            outcome: reply.outcome,
            data: reply.data,
            headers: reply.headers,
            attachments: reply.attachments.len(),
        }),
        Err(failure) => UncheckedAnswer::Failure(PluginFailure {
            code: failure.code,
            message: failure.message,
            retry_after_ms: failure.retry_after_ms,
            details: failure.details,
        }),
    }
}

pub(crate) fn size(answer: &UncheckedAnswer) -> usize {
    match answer {
        UncheckedAnswer::Success(success) => {
            let headers = success.headers.iter();
            let headers = headers.map(|(name, value)| name.len() + value.len());
            success.data.len() + success.outcome.len() + headers.sum::<usize>()
        }
        UncheckedAnswer::Failure(failure) => {
            let details = failure.details.as_ref().map_or(0, String::len);
            failure.code.len() + failure.message.len() + details
        }
    }
}
