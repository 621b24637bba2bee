//! Takes a call's slots: of the key's minute, or of the key's and its account's second, and of the operation's own minute for
//! each owner (docs/api.md, "Limits").
//!
//! Before the input is looked at, so that malformed requests use up what well-formed ones do; after the month is read, so that
//! a refusal can say where the month stands.

use std::time::SystemTime;

use crate::auth::Caller;
use crate::base::clock::epoch_seconds;
use crate::contract::error::{Code, Refusal};
use crate::contract::operation::{CallerKind, Consumed, Operation};
use crate::metering::window::{Slot, SubjectKind, WindowLength};
use crate::metering::{CallMeters, Windows};

/// Takes the call's slots, or refuses with the time to wait. Either way the meters say where it stands.
pub(super) fn take_slots(
    windows: &Windows,
    caller: &Caller,
    plugin: &str,
    operation: &Operation,
    now: SystemTime,
    meters: &mut CallMeters,
) -> Result<(), Refusal> {
    let (slots, told) = match caller.kind() {
        CallerKind::ApiKey | CallerKind::OAuth => {
            (slots(caller, plugin, operation), &mut meters.window)
        }
        CallerKind::FirstParty => (allowance(caller, plugin, operation), &mut meters.address),
        CallerKind::Operator => return Ok(()),
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
    let length = if refused.window_s == WindowLength::Second.seconds() {
        "second"
    } else {
        "minute"
    };
    let message = format!(
        "The limit of {} calls per {length} is used up",
        refused.limit
    );
    Err(Refusal::new(Code::RateLimited, message).until(refused.reset_epoch_s, now_s))
}

/// The subjects begin with a letter of their kind, and no id has a zero byte.
fn slots(caller: &Caller, plugin: &str, operation: &Operation) -> Vec<Slot> {
    let mut slots = Vec::new();
    let mut add = |subject: String, limit: Option<u32>, length: WindowLength| {
        slots.extend(limit.map(|limit| Slot {
            subject,
            kind: SubjectKind::Credential,
            limit,
            length,
        }));
    };
    if operation.terms.consumes(Consumed::Window) {
        let limits = caller.limits();
        let credential = || format!("k{}", caller.owner());
        add(credential(), limits.per_minute, WindowLength::Minute);
        add(credential(), limits.per_second, WindowLength::Second);
        if let Some(account) = caller.account() {
            let subject = format!("a{}", account.id);
            add(subject, account.per_second, WindowLength::Second);
        }
    }
    let of_operation = caller
        .per_minute_of(plugin, &operation.id)
        .or(operation.terms.per_minute);
    let subject = format!("o{}\0{plugin}\0{}", caller.owner(), operation.id);
    add(subject, of_operation, WindowLength::Minute);
    slots
}

/// The operation's minute of each address.
fn allowance(caller: &Caller, plugin: &str, operation: &Operation) -> Vec<Slot> {
    let limit = operation.terms.first_party_per_minute.into_iter();
    let subject = || format!("i{}\0{plugin}\0{}", caller.owner(), operation.id);
    let slot = |limit| Slot {
        subject: subject(),
        kind: SubjectKind::Address,
        limit,
        length: WindowLength::Minute,
    };
    limit.map(slot).collect()
}
