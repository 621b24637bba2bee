//! Reserves what a call of a self-service key will cost: a place among its account's calls, and credits (docs/api.md,
//! "Credits").
//!
//! The last step before the plugin runs: whatever can refuse the call has had its say, so a reservation is made only for a call
//! that will be dispatched.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use uuid::Uuid;

use super::settle::{CallCharge, unavailable};
use crate::auth::Caller;
use crate::base::clock::epoch_seconds;
use crate::config::Credits;
use crate::contract::error::{Code, Refusal, sentence};
use crate::contract::operation::{Consumed, Operation};
use crate::metering::identifier::Identifier;
use crate::metering::reservations::Reservations;
use crate::metering::{CallMeters, CreditStanding};
use crate::records::credits::{Reservation, ReservationRefused};
use crate::records::month::Month;
use crate::stores::Store;

/// A reservation outlives its call's deadline by this.
const GRACE: Duration = Duration::from_secs(60);

/// The call of a self-service key.
pub(super) struct ChargedCall<'c> {
    pub(super) caller: &'c Caller,
    pub(super) plugin: &'c str,
    pub(super) operation: &'c Operation,
    pub(super) identifier: &'c Identifier,
    pub(super) request_id: &'c str,
    pub(super) now: SystemTime,
}

/// Admits the call, or refuses it; `None` where it pays nothing. The order is identifier, places, credits; what is refused
/// retains nothing.
pub(super) async fn reserve(
    reservations: &Arc<Reservations>,
    store: &Store,
    prices: &Credits,
    call: ChargedCall<'_>,
    meters: &mut CallMeters,
) -> Result<Option<CallCharge>, Refusal> {
    let ChargedCall {
        caller,
        plugin,
        operation,
        identifier,
        now,
        ..
    } = call;
    let Some(account) = caller.account() else {
        return Ok(None);
    };
    let identifier = identifier.given();
    let amount = if operation.terms.consumes(Consumed::Credits) {
        let price = prices.cost(plugin, &operation.id);
        price.unwrap_or(operation.terms.cost)
    } else if identifier.is_some() {
        0
    } else {
        return Ok(None);
    };
    let now_s = epoch_seconds(now);
    let Some(place) = reservations.place(
        &account.id,
        account.concurrency.unwrap_or(prices.concurrency),
    ) else {
        let burnt = match identifier {
            Some(identifier) => store
                .burnt(&account.id, caller.owner(), identifier, now_s)
                .await
                .map_err(|e| unavailable(&e))?,
            None => None,
        };
        return Err(burnt.map_or_else(too_many_at_once, |refused| {
            refusal(&refused, Month::of(now_s), now_s)
        }));
    };
    if amount == 0 && identifier.is_none() {
        return Ok(Some(CallCharge::new(None, place)));
    }
    let month = Month::of(now_s);
    let limit = caller.credits_per_month(now);
    let reservation = reservation(&call, &account.id, amount);
    let reserved = reservations
        .reserve(reservation, limit, operation.deadline + GRACE)
        .await;
    match reserved.map_err(|error| unavailable(&error))? {
        Ok(hold) => {
            meters.credits = Some(CreditStanding {
                cost: u64::from(amount),
                limit,
                reset_epoch_s: month.ends_at(),
            });
            Ok(Some(CallCharge::new(Some(hold), place)))
        }
        Err(refused) => Err(refusal(&refused, month, now_s)),
    }
}

fn reservation(call: &ChargedCall<'_>, account: &str, amount: u32) -> Reservation {
    let now_s = epoch_seconds(call.now);
    Reservation {
        id: Uuid::now_v7().as_u128(),
        account: account.to_owned(),
        month: Month::of(now_s),
        amount: u64::from(amount),
        key: call.caller.owner().to_owned(),
        operation: call.operation.counted_as.clone(),
        request_id: call.request_id.to_owned(),
        identifier: call.identifier.given().map(str::to_owned),
        made_at: now_s,
    }
}

fn too_many_at_once() -> Refusal {
    let message = "Too many calls of the account are running; try again with the same Idempotency-Key and input";
    Refusal::new(Code::UsageConcurrencyExceeded, message).retry_after(1)
}

fn refusal(refused: &ReservationRefused, month: Month, now_s: u64) -> Refusal {
    let message = sentence(refused.to_string());
    match refused {
        ReservationRefused::Exceeded { .. } => {
            Refusal::new(Code::ApiCreditsExceeded, message).until(month.ends_at(), now_s)
        }
        ReservationRefused::Handled => Refusal::new(Code::UsageReservationConflict, message),
        ReservationRefused::Lapsed => Refusal::new(Code::UsageReservationExpired, message),
    }
}
