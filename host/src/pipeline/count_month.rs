//! Counts a call toward its caller's month.
//!
//! After the input was found good, because a month is dear and a mistake should not cost one; before credits, because a call
//! over the month's limit must reserve nothing.

use std::time::SystemTime;

use super::read_month::stored;
use crate::auth::Caller;
use crate::base::clock::epoch_seconds;
use crate::contract::error::{Code, Refusal};
use crate::contract::operation::{CallerKind, Consumed, Operation};
use crate::metering::quota::CountedCall;
use crate::metering::{CallMeters, UsageCounts};
use crate::records::month::Month;
use crate::stores::Store;

/// Counts the call toward the caller's month, or refuses it until the month ends.
pub(super) async fn count_month(
    usage: &UsageCounts,
    store: &Store,
    caller: &Caller,
    operation: &Operation,
    now: SystemTime,
    meters: &mut CallMeters,
) -> Result<(), Refusal> {
    if caller.kind() == CallerKind::FirstParty {
        return Ok(());
    }
    let now_s = epoch_seconds(now);
    let call = CountedCall {
        owner: caller.owner(),
        operation: &operation.counted_as,
        limit: caller.limits().per_month,
        is_limited: operation.terms.consumes(Consumed::Month),
    };
    let month = Month::of(now_s);
    let counted = match usage.count(&call, month) {
        Some(counted) => counted,
        // The month ended, and was written and forgotten, since it was loaded for this call.
        None => usage.count_from(&call, month, stored(store, caller, month).await?),
    };
    match counted {
        Ok(standing) => {
            meters.month = standing;
            Ok(())
        }
        Err(refused) => {
            meters.month = Some(refused);
            let message = format!("The monthly limit of {} calls is used up", refused.limit);
            Err(Refusal::new(Code::MonthlyQuotaExceeded, message)
                .until(refused.reset_epoch_s, now_s))
        }
    }
}
