//! Settles what a call reserved by how it ended, durably, before anybody hears of the end (docs/api.md, "Credits").

use std::time::SystemTime;

use crate::base::clock::epoch_seconds;
use crate::contract::error::{Code, Refusal};
use crate::metering::reservations::{AccountPlace, ReservationHold};
use crate::records::credits::ReservationOutcome;
use crate::stores::StoreError;

/// What an admitted call holds until it ends. Dropped before that, everything is given back.
pub(super) struct CallCharge {
    hold: Option<ReservationHold>,
    _place: AccountPlace,
}

impl CallCharge {
    pub(super) fn new(hold: Option<ReservationHold>, place: AccountPlace) -> Self {
        Self {
            hold,
            _place: place,
        }
    }

    /// Settles what a success costs; durable when this returns.
    pub(super) async fn settle(self, now: SystemTime) -> Result<(), Refusal> {
        let Some(hold) = self.hold else { return Ok(()) };
        match hold
            .resolve(ReservationOutcome::Settled, epoch_seconds(now))
            .await
            .map_err(|error| unavailable(&error))?
        {
            ReservationOutcome::Settled => Ok(()),
            ReservationOutcome::Released | ReservationOutcome::Expired => Err(Refusal::new(
                Code::UsageReservationExpired,
                "The call's reservation expired before the call ended",
            )),
        }
    }

    /// Gives back what a failure does not cost; durable when this returns.
    pub(super) async fn release(self, now: SystemTime) {
        let Some(hold) = self.hold else { return };
        if let Err(error) = hold
            .resolve(ReservationOutcome::Released, epoch_seconds(now))
            .await
        {
            tracing::error!(%error, "a reservation cannot be released; it will expire");
        }
    }
}

/// Without the ledger nothing is given on credit.
pub(super) fn unavailable(error: &StoreError) -> Refusal {
    let mut refusal = Refusal::new(
        Code::ServiceUnavailable,
        "Credits cannot be reserved or settled at the moment",
    );
    refusal.cause = Some(error.to_string());
    refusal.retry_after(1)
}
