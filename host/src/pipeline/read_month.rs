//! Reads where the caller's month and credits stand.
//!
//! Before anything may refuse the call for its rate, so that also a refused response tells the client what is left.

use std::time::SystemTime;

use crate::auth::Caller;
use crate::base::clock::epoch_seconds;
use crate::contract::error::{Code, Refusal};
use crate::contract::operation::CallerKind;
use crate::metering::{CallMeters, CreditStanding, UsageCounts};
use crate::records::month::Month;
use crate::records::usage::CountRow;
use crate::stores::Store;

/// Tells where the caller's month and credits stand, before anything may refuse the call. Reads the store where the month is not known
/// yet, once for each key and month.
pub(super) async fn read_month(
    usage: &UsageCounts,
    store: &Store,
    caller: &Caller,
    now: SystemTime,
    meters: &mut CallMeters,
) -> Result<(), Refusal> {
    // Addresses are many, so their calls are counted by the minute alone.
    if caller.kind() == CallerKind::FirstParty {
        return Ok(());
    }
    let month = Month::of(epoch_seconds(now));
    if !usage.is_loaded(caller.owner(), month) {
        usage.load(caller.owner(), month, stored(store, caller, month).await?);
    }
    meters.credits = caller.account().map(|_| {
        let limit = caller.credits_per_month(now);
        CreditStanding {
            cost: 0,
            limit,
            reset_epoch_s: month.ends_at(),
        }
    });
    meters.month = caller
        .limits()
        .per_month
        .and_then(|limit| usage.standing(caller.owner(), limit, month));
    Ok(())
}

/// The counts of a month as they are kept.
pub(super) async fn stored(
    store: &Store,
    caller: &Caller,
    month: Month,
) -> Result<Vec<CountRow>, Refusal> {
    let stored = store.usage_of(caller.owner(), month).await;
    stored.map_err(|error| {
        let mut refusal = Refusal::new(
            Code::ServiceUnavailable,
            "Usage cannot be read at the moment",
        );
        refusal.cause = Some(error.to_string());
        refusal.retry_after(1)
    })
}
