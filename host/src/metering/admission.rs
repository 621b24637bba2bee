//! What a call takes of its caller's limits (decisions, "Credentials and owners"): slots of the key's minute, or of the key's
//! and its account's second, and of the operation's own minute for each owner; and a call of the key's month.

use std::time::SystemTime;

use time::OffsetDateTime;

use super::month::Month;
use super::quota::{CountRow, CountedCall};
use super::window::{Length, Slot, SubjectKind};
use super::{CreditStanding, Meters, UsageCounts, Windows};
use crate::auth::Caller;
use crate::auth::api_key::epoch_seconds;
use crate::error::{Code, Refusal};
use crate::operation::{CallerKind, Consumed, Operation};
use crate::stores::Store;

/// Takes the call's slots, or refuses with the time to wait. Either way the meters say where it stands.
pub(crate) fn take_slots(
    windows: &Windows,
    caller: &Caller,
    plugin: &str,
    operation: &Operation,
    now: SystemTime,
    meters: &mut Meters,
) -> Result<(), Refusal> {
    let (slots, told) = match caller.kind() {
        CallerKind::ApiKey | CallerKind::OAuth => (slots(caller, plugin, operation), &mut meters.window),
        CallerKind::FirstParty => (allowance(caller, plugin, operation), &mut meters.address),
    };
    if slots.is_empty() {
        return Ok(());
    }
    let now_s = epoch_seconds(now);
    let refused = match windows.take(slots, now_s) {
        Ok(standing) => {
            *told = standing;
            return Ok(());
        }
        Err(refused) => *told.insert(refused),
    };
    let length = if refused.window_s == Length::Second.seconds() { "second" } else { "minute" };
    let message = format!("The {} calls a {length} that are allowed here are used up", refused.limit);
    Err(until(Refusal::new(Code::RateLimited, message), refused.reset_epoch_s, now_s))
}

/// Tells where the caller's month and credits stand, before anything may refuse the call. Reads the store where the month is not known
/// yet, once for each key and month.
pub(crate) fn read_month(
    usage: &UsageCounts,
    store: &Store,
    caller: &Caller,
    now: SystemTime,
    meters: &mut Meters,
) -> Result<(), Refusal> {
    // Addresses are many, so their calls are counted by the minute alone.
    if caller.kind() == CallerKind::FirstParty {
        return Ok(());
    }
    let month = Month::of(epoch_seconds(now));
    if !usage.is_loaded(caller.owner(), month) {
        usage.load(caller.owner(), month, stored(store, caller, month)?);
    }
    meters.credits = caller.account().map(|_| {
        let limit = caller.credits_per_month(now);
        CreditStanding { cost: 0, limit, reset_epoch_s: month.ends_at() }
    });
    meters.month = caller.limits().per_month.and_then(|limit| usage.standing(caller.owner(), limit, month));
    Ok(())
}

fn stored(store: &Store, caller: &Caller, month: Month) -> Result<Vec<CountRow>, Refusal> {
    store.usage_of(caller.owner(), month).map_err(|error| {
        let mut refusal = Refusal::new(Code::ServiceUnavailable, "Usage cannot be read at the moment");
        refusal.cause = Some(error.to_string());
        refusal.retry_after(1)
    })
}

/// Counts the call toward the caller's month, or refuses it until the month ends.
pub(crate) fn count_month(
    usage: &UsageCounts,
    store: &Store,
    caller: &Caller,
    operation: &Operation,
    now: SystemTime,
    meters: &mut Meters,
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
        None => usage.count_from(&call, month, stored(store, caller, month)?),
    };
    match counted {
        Ok(standing) => {
            meters.month = standing;
            Ok(())
        }
        Err(refused) => {
            meters.month = Some(refused);
            let message = format!("The {} calls that the key has for this month are used up", refused.limit);
            Err(until(Refusal::new(Code::MonthlyQuotaExceeded, message), refused.reset_epoch_s, now_s))
        }
    }
}

/// A refusal that ends at a time in Unix seconds.
pub(super) fn until(refusal: Refusal, reset_epoch_s: u64, now_s: u64) -> Refusal {
    let mut refusal = refusal.retry_after(reset_epoch_s.saturating_sub(now_s));
    refusal.reset_at = i64::try_from(reset_epoch_s).ok().and_then(|s| OffsetDateTime::from_unix_timestamp(s).ok());
    refusal
}

/// The subjects begin with a letter of their kind, and no id has a zero byte.
fn slots(caller: &Caller, plugin: &str, operation: &Operation) -> Vec<Slot> {
    let mut slots = Vec::new();
    let mut add = |subject: String, limit: Option<u32>, length: Length| {
        slots.extend(limit.map(|limit| Slot { subject, kind: SubjectKind::Credential, limit, length }));
    };
    if operation.terms.consumes(Consumed::Window) {
        let limits = caller.limits();
        add(format!("k{}", caller.owner()), limits.per_minute, Length::Minute);
        add(format!("k{}", caller.owner()), limits.per_second, Length::Second);
        if let Some(account) = caller.account() {
            add(format!("a{}", account.id), account.per_second, Length::Second);
        }
    }
    let of_operation = caller.per_minute_of(plugin, &operation.id).or(operation.terms.per_minute);
    add(format!("o{}\0{plugin}\0{}", caller.owner(), operation.id), of_operation, Length::Minute);
    slots
}

/// The operation's minute of each address.
fn allowance(caller: &Caller, plugin: &str, operation: &Operation) -> Vec<Slot> {
    let limit = operation.terms.first_party_per_minute.into_iter();
    let subject = || format!("i{}\0{plugin}\0{}", caller.owner(), operation.id);
    let slot = |limit| Slot { subject: subject(), kind: SubjectKind::Address, limit, length: Length::Minute };
    limit.map(slot).collect()
}
