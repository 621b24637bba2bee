//! Credits: what an account may still spend in a month, and the two phases in which it does.
//!
//! A reservation is made when a call is admitted and resolved exactly once when it ends: settled (the credits are spent),
//! released (they are given back), or expired (nobody resolved it in time; they are given back too). The records are
//! immutable; a balance is only their sum. Values in, values out: knows no clock, no store and no call.

use serde::{Deserialize, Serialize};

use super::month::Month;

/// What an account spent and holds reserved in one month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Balance {
    pub(crate) posted: u64,
    pub(crate) pending: u64,
}

/// A call's claim on its account's credits. Its id makes every write of it idempotent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reservation {
    /// A UUID, unique among all accounts.
    pub(crate) id: u128,
    pub(crate) account: String,
    /// The month that pays, whenever the call ends.
    pub(crate) month: Month,
    pub(crate) amount: u64,
    /// The key that called.
    pub(crate) key: String,
    /// Plugin and operation, with a slash between.
    pub(crate) operation: String,
    pub(crate) request_id: String,
    /// What the caller calls the operation by, which may be used once; kept by itself, for a day.
    #[serde(skip)]
    pub(crate) identifier: Option<String>,
    /// Unix seconds.
    pub(crate) made_at: u64,
}

/// How a reservation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ReservationOutcome {
    Settled,
    Released,
    Expired,
}

/// Why there is no reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReservationRefused {
    #[error("not enough credits: {amount} needed, {} of {limit} left", .limit.saturating_sub(*.held))]
    Exceeded { limit: u64, held: u64, amount: u64 },
    /// The identifier's call runs or has ended.
    #[error(
        "the operation with this Idempotency-Key has already been handled, or is still running"
    )]
    Handled,
    /// The identifier's call was never resolved.
    #[error("the reservation of the operation with this Idempotency-Key expired")]
    Lapsed,
}

impl Balance {
    /// With the amount reserved, or why it cannot be.
    pub(crate) fn reserve(self, amount: u64, limit: u64) -> Result<Self, ReservationRefused> {
        let held = self.posted.saturating_add(self.pending);
        if limit.checked_sub(held).is_some_and(|left| amount <= left) {
            Ok(Self {
                pending: self.pending + amount,
                ..self
            })
        } else {
            Err(ReservationRefused::Exceeded {
                limit,
                held,
                amount,
            })
        }
    }

    /// With a reservation of the amount resolved.
    pub(crate) fn resolve(self, amount: u64, resolution: ReservationOutcome) -> Self {
        let pending = self.pending.saturating_sub(amount);
        match resolution {
            ReservationOutcome::Settled => Self {
                posted: self.posted.saturating_add(amount),
                pending,
            },
            ReservationOutcome::Released | ReservationOutcome::Expired => Self { pending, ..self },
        }
    }
}

impl ReservationOutcome {
    /// All of them.
    pub(crate) const ALL: [ReservationOutcome; 3] = [
        ReservationOutcome::Settled,
        ReservationOutcome::Released,
        ReservationOutcome::Expired,
    ];

    /// For people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ReservationOutcome::Settled => "settled",
            ReservationOutcome::Released => "released",
            ReservationOutcome::Expired => "expired",
        }
    }
}
