//! Runs the operation on the revision that the request found, and settles what it reserved.
//!
//! A call that is paid for runs to its deadline and settles by its outcome, whether its client waits or not.

use std::time::{Duration, Instant, SystemTime};

use super::check_reply::{checked_failure, checked_success, failed};
use super::settle::CallCharge;
use crate::base::tasks::Tasks;
use crate::catalogue::Bound;
use crate::contract::error::Refusal;
use crate::contract::operation::{Call, PluginReply, UncheckedAnswer};

/// Invokes the plugin. Gives back what it answered and the time that it took.
pub(super) async fn invoke(
    calls: &Tasks,
    bound: &Bound,
    call: Call,
    charge: Option<CallCharge>,
) -> (Result<PluginReply, Refusal>, Duration) {
    match charge {
        None => run(bound, call).await,
        Some(charge) => {
            let paid = run_charged(bound.clone(), call, charge);
            let ended = calls.run_to_end(paid).await;
            ended
                .unwrap_or_else(|error| (Err(Refusal::internal(error.to_string())), Duration::ZERO))
        }
    }
}

/// The plugin's part, and the time that it took.
pub(super) async fn run(bound: &Bound, call: Call) -> (Result<PluginReply, Refusal>, Duration) {
    let started = Instant::now();
    let answer = bound.revision.invoke(call).await;
    let plugin_time = started.elapsed();
    let answered = match answer {
        Ok(UncheckedAnswer::Success(success)) => checked_success(bound, success),
        Ok(UncheckedAnswer::Failure(failure)) => Err(checked_failure(&bound.operation, failure)),
        Err(error) => Err(failed(&bound.operation, &error)),
    };
    (answered, plugin_time)
}

/// The same, paid for by its outcome before anybody hears of it.
async fn run_charged(
    bound: Bound,
    call: Call,
    charge: CallCharge,
) -> (Result<PluginReply, Refusal>, Duration) {
    let (answered, plugin_time) = run(&bound, call).await;
    let now = SystemTime::now();
    let answered = match answered {
        Ok(reply) => charge.settle(now).await.map(|()| reply),
        Err(refusal) => {
            charge.release(now).await;
            Err(refusal)
        }
    };
    (answered, plugin_time)
}
