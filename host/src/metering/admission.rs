//! Which windows a call takes a slot of (decisions, "Credentials and owners"): the key's minute, or the key's and its
//! account's second, and the operation's own minute for each owner.

use std::time::SystemTime;

use time::OffsetDateTime;

use super::window::{Length, Slot};
use super::{Meters, Windows};
use crate::auth::Caller;
use crate::auth::api_key::epoch_seconds;
use crate::error::{Code, Refusal};
use crate::operation::{Consumed, Operation};

/// Takes the call's slots, or refuses with the time to wait. Either way the meters say where it stands.
pub(crate) fn admit(
    windows: &Windows,
    caller: &Caller,
    plugin: &str,
    operation: &Operation,
    now: SystemTime,
    meters: &mut Meters,
) -> Result<(), Refusal> {
    let slots = slots(caller, plugin, operation);
    if slots.is_empty() {
        return Ok(());
    }
    let now_s = epoch_seconds(now);
    let refused = match windows.take(slots, now_s) {
        Ok(standing) => {
            meters.window = standing;
            return Ok(());
        }
        Err(refused) => *meters.window.insert(refused),
    };
    let length = if refused.window_s == Length::Second.seconds() { "second" } else { "minute" };
    let message = format!("The {} calls a {length} that are allowed here are used up", refused.limit);
    let wait = refused.reset_epoch_s.saturating_sub(now_s);
    let mut refusal = Refusal::new(Code::RateLimited, message).retry_after(wait);
    refusal.reset_at =
        i64::try_from(refused.reset_epoch_s).ok().and_then(|s| OffsetDateTime::from_unix_timestamp(s).ok());
    Err(refusal)
}

/// The subjects begin with a letter of their kind, and no id has a zero byte.
fn slots(caller: &Caller, plugin: &str, operation: &Operation) -> Vec<Slot> {
    let mut slots = Vec::new();
    let mut add = |subject: String, limit: Option<u32>, length: Length| {
        slots.extend(limit.map(|limit| Slot { subject, limit, length }));
    };
    if operation.terms.consumes(Consumed::Window) {
        let limits = caller.limits();
        add(format!("k{}", caller.owner()), limits.per_minute, Length::Minute);
        add(format!("k{}", caller.owner()), limits.per_second, Length::Second);
        if let Some(account) = caller.account() {
            add(format!("a{}", account.id), account.per_second, Length::Second);
        }
    }
    add(format!("o{}\0{plugin}\0{}", caller.owner(), operation.id), operation.terms.per_minute, Length::Minute);
    slots
}
