//! What a call of a self-service key pays: a place among its account's calls, and a reservation that its outcome settles or
//! releases (decisions, "Credits and idempotency").

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use uuid::Uuid;

use super::admission::until;
use super::credits::{Reservation, ReservationRefused, Resolution};
use super::month::Month;
use super::reservations::{AccountPlace, Hold, Reservations};
use super::{CreditStanding, Meters};
use crate::auth::Caller;
use crate::auth::api_key::epoch_seconds;
use crate::config::Credits;
use crate::error::{Code, Refusal, sentence};
use crate::operation::{Consumed, Operation};
use crate::reading::Identifier;
use crate::stores::{Store, StoreError};

/// A reservation outlives its call's deadline by this.
const GRACE: Duration = Duration::from_secs(60);

/// The call of a self-service key.
pub(crate) struct Charged<'c> {
    pub(crate) caller: &'c Caller,
    pub(crate) plugin: &'c str,
    pub(crate) operation: &'c Operation,
    pub(crate) identifier: &'c Identifier,
    pub(crate) request_id: &'c str,
    pub(crate) now: SystemTime,
}

/// What an admitted call holds until it ends. Dropped before that, everything is given back.
pub(crate) struct Charge {
    hold: Option<Hold>,
    _place: AccountPlace,
}

/// Admits the call, or refuses it; `None` where it pays nothing. The order is identifier, places, credits; what is refused
/// retains nothing.
pub(crate) async fn reserve(
    reservations: &Arc<Reservations>,
    store: &Store,
    prices: &Credits,
    call: Charged<'_>,
    meters: &mut Meters,
) -> Result<Option<Charge>, Refusal> {
    let Charged { caller, plugin, operation, identifier, now, .. } = call;
    let Some(account) = caller.account() else {
        return Ok(None);
    };
    let identifier = identifier.given();
    let amount = match operation.terms.consumes(Consumed::Credits) {
        true => prices.cost(plugin, &operation.id).unwrap_or(operation.terms.cost),
        false if identifier.is_some() => 0,
        false => return Ok(None),
    };
    let now_s = epoch_seconds(now);
    let Some(place) = reservations.place(&account.id, account.concurrency.unwrap_or(prices.concurrency)) else {
        let burnt = match identifier {
            Some(identifier) => {
                store.burnt(&account.id, caller.owner(), identifier, now_s).map_err(|e| unavailable(&e))?
            }
            None => None,
        };
        return Err(burnt.map_or_else(too_many_at_once, |refused| refusal(&refused, Month::of(now_s), now_s)));
    };
    if amount == 0 && identifier.is_none() {
        return Ok(Some(Charge { hold: None, _place: place }));
    }
    let month = Month::of(now_s);
    let limit = caller.credits_per_month(now);
    let reservation = reservation(&call, &account.id, amount);
    let reserved = reservations.reserve(reservation, limit, operation.deadline + GRACE).await;
    match reserved.map_err(|error| unavailable(&error))? {
        Ok(hold) => {
            meters.credits = Some(CreditStanding { cost: u64::from(amount), limit, reset_epoch_s: month.ends_at() });
            Ok(Some(Charge { hold: Some(hold), _place: place }))
        }
        Err(refused) => Err(refusal(&refused, month, now_s)),
    }
}

fn reservation(call: &Charged<'_>, account: &str, amount: u32) -> Reservation {
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

impl Charge {
    /// Settles what a success costs; durable when this returns.
    pub(crate) async fn settle(self, now: SystemTime) -> Result<(), Refusal> {
        let Some(hold) = self.hold else { return Ok(()) };
        match hold.resolve(Resolution::Settled, epoch_seconds(now)).await.map_err(|error| unavailable(&error))? {
            Resolution::Settled => Ok(()),
            Resolution::Released | Resolution::Expired => {
                Err(Refusal::new(Code::UsageReservationExpired, "The call's reservation expired before the call ended"))
            }
        }
    }

    /// Gives back what a failure does not cost; durable when this returns.
    pub(crate) async fn release(self, now: SystemTime) {
        let Some(hold) = self.hold else { return };
        if let Err(error) = hold.resolve(Resolution::Released, epoch_seconds(now)).await {
            tracing::error!(%error, "a reservation cannot be released; it will expire");
        }
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
            until(Refusal::new(Code::ApiCreditsExceeded, message), month.ends_at(), now_s)
        }
        ReservationRefused::Handled => Refusal::new(Code::UsageReservationConflict, message),
        ReservationRefused::Lapsed => Refusal::new(Code::UsageReservationExpired, message),
    }
}

/// Without the ledger nothing is given on credit.
fn unavailable(error: &StoreError) -> Refusal {
    let mut refusal = Refusal::new(Code::ServiceUnavailable, "Credits cannot be reserved or settled at the moment");
    refusal.cause = Some(error.to_string());
    refusal.retry_after(1)
}
