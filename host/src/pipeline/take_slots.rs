//! Takes a call's slots: of the key's minute, or of the key's and its account's second, and of the operation's own minute for
//! each owner (docs/api.md, "Limits").
//!
//! Before the input is looked at, so that malformed requests use up what well-formed ones do; after the month is read, so that
//! a refusal can say where the month stands.

use std::sync::Arc;
use std::time::SystemTime;

use super::feature_door::FeatureCaller;
use crate::auth::Caller;
use crate::base::clock::epoch_seconds;
use crate::contract::error::{Code, Refusal};
use crate::contract::operation::{CallerKind, Consumed, Operation};
use crate::metering::window::{Slot, SubjectKind, WindowLength};
use crate::metering::{CallMeters, WindowStanding, Windows};
use crate::records::api_key::KeyRecord;

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
        CallerKind::FirstParty => {
            let slot = allowance(caller.owner(), plugin, operation);
            (slot.into_iter().collect(), &mut meters.address)
        }
        CallerKind::Operator => return Ok(()),
    };
    take(windows, slots, now, told)
}

/// Takes the slot of the operation's own minute alone, for a call that another plugin makes.
pub(super) fn take_operation_slot(
    windows: &Windows,
    caller: &FeatureCaller,
    plugin: &str,
    operation: &Operation,
    now: SystemTime,
) -> Result<(), Refusal> {
    let (name, key) = (&caller.name, caller.key_record.as_deref());
    let slot = match caller.kind {
        CallerKind::ApiKey | CallerKind::OAuth => minute(name, key, plugin, operation),
        // Where the operation has no allowance for addresses, an address has what any caller has.
        CallerKind::FirstParty => {
            allowance(name, plugin, operation).or_else(|| minute(name, None, plugin, operation))
        }
        CallerKind::Operator => None,
    };
    take(windows, slot.into_iter().collect(), now, &mut None)
}

fn take(
    windows: &Windows,
    slots: Vec<Slot>,
    now: SystemTime,
    told: &mut Option<WindowStanding>,
) -> Result<(), Refusal> {
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
    let key = caller.key_record().map(Arc::as_ref);
    slots.extend(minute(caller.owner(), key, plugin, operation));
    slots
}

/// The operation's own minute of each owner.
fn minute(
    owner: &str,
    key: Option<&KeyRecord>,
    plugin: &str,
    operation: &Operation,
) -> Option<Slot> {
    let limit = key.and_then(|key| key.per_minute_of(plugin, &operation.id));
    Some(Slot {
        subject: format!("o{owner}\0{plugin}\0{}", operation.id),
        kind: SubjectKind::Credential,
        limit: limit.or(operation.terms.per_minute)?,
        length: WindowLength::Minute,
    })
}

/// The operation's minute of each address.
fn allowance(address: &str, plugin: &str, operation: &Operation) -> Option<Slot> {
    Some(Slot {
        subject: format!("i{address}\0{plugin}\0{}", operation.id),
        kind: SubjectKind::Address,
        limit: operation.terms.first_party_per_minute?,
        length: WindowLength::Minute,
    })
}
