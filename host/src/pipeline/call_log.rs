//! One line a call, here alone.

use std::time::Instant;

use crate::base::clock::microseconds;
use crate::contract::error::Refusal;
use crate::contract::operation::PluginReply;
use crate::observe::log_lines::{CallFields, about_call};

/// Tells, when it is dropped, of a call that ended with its request: the client went away, or the request's time was up.
pub(super) struct AbandonedCallLog<'a> {
    pub(super) about: CallFields<'a>,
    pub(super) started: Instant,
}

impl Drop for AbandonedCallLog<'_> {
    fn drop(&mut self) {
        let about = self.about;
        about_call!(
            debug,
            module_path!(),
            about,
            elapsed_us = microseconds(self.started.elapsed()),
            "a call was abandoned"
        );
    }
}

/// How loudly a failure is told that is the operator's concern.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureNotice {
    Warning,
    /// One like it was told of the same request.
    OnRequest,
}

/// Tells of a call that has ended. Failures of ours are the operator's concern; what a client did is told on request.
pub(super) fn log(
    outcome: &Result<PluginReply, Refusal>,
    about: CallFields<'_>,
    started: Instant,
    notice: FailureNotice,
) {
    match outcome {
        Ok(reply) => {
            about_call!(
                debug,
                module_path!(),
                about,
                outcome = reply.outcome,
                elapsed_us = microseconds(started.elapsed()),
                "a call was answered"
            );
        }
        Err(refusal) => {
            let (code, status) = (refusal.code.as_ref(), refusal.status.as_u16());
            match &refusal.cause {
                Some(cause) if notice == FailureNotice::OnRequest => {
                    about_call!(
                        debug,
                        module_path!(),
                        about,
                        code,
                        status,
                        elapsed_us = microseconds(started.elapsed()),
                        cause,
                        "a call failed"
                    );
                }
                Some(cause) => {
                    about_call!(
                        warn,
                        module_path!(),
                        about,
                        code,
                        status,
                        elapsed_us = microseconds(started.elapsed()),
                        cause,
                        "a call failed"
                    );
                }
                None => {
                    about_call!(
                        debug,
                        module_path!(),
                        about,
                        code,
                        status,
                        elapsed_us = microseconds(started.elapsed()),
                        "a call was refused"
                    );
                }
            }
        }
    }
}
