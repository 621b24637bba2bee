//! The reservations and places of the calls that are under way in this process.
//!
//! Whoever drops a [`ReservationHold`] gives the reservation up, however that comes about (a trap, a timeout, a client that went away
//! before dispatch): [`Reservations::tend`] then releases it. One that nobody gives up or resolves expires by a clock that
//! cannot be set. Must not know what a call is.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::observe::instrument::Counter;
use crate::records::credits::{Reservation, ReservationOutcome, ReservationRefused};
use crate::stores::{Store, StoreError};

/// All of them.
pub(crate) struct Reservations {
    store: Arc<Store>,
    /// Guards both maps, which hold an entry for each call under way; never held over an await.
    under_way: Mutex<CallsUnderWay>,
    given_up: Notify,
    counts: ReservationCounts,
}

/// What came of the reservations, for the operator.
#[derive(Default)]
pub(crate) struct ReservationCounts {
    resolved: [Counter; ReservationOutcome::ALL.len()],
    credits_settled: Counter,
}

impl ReservationCounts {
    /// How many ended in each way.
    pub(crate) fn resolved(&self) -> impl Iterator<Item = (ReservationOutcome, u64)> {
        ReservationOutcome::ALL
            .into_iter()
            .zip(self.resolved.iter().map(Counter::get))
    }

    /// Credits that were spent.
    pub(crate) fn credits_settled(&self) -> u64 {
        self.credits_settled.get()
    }

    fn count(&self, resolution: ReservationOutcome, amount: u64) {
        if let Some(counter) = ReservationOutcome::ALL
            .iter()
            .zip(&self.resolved)
            .find(|(one, _)| **one == resolution)
        {
            counter.1.increment();
        }
        if resolution == ReservationOutcome::Settled {
            self.credits_settled.add(amount);
        }
    }
}

#[derive(Default)]
struct CallsUnderWay {
    reserved: HashMap<u128, HeldCredits>,
    /// Calls at once, by account; an account without any has no entry.
    calls: HashMap<String, u32>,
}

struct HeldCredits {
    account: String,
    amount: u64,
    expires_at: Instant,
    is_given_up: bool,
}

/// A call's place among those of its account, until it is dropped.
pub(crate) struct AccountPlace {
    reservations: Arc<Reservations>,
    account: String,
}

/// A reservation, until it is resolved or dropped.
pub(crate) struct ReservationHold {
    reservations: Arc<Reservations>,
    id: u128,
    account: String,
}

impl Reservations {
    pub(crate) fn new(store: Arc<Store>) -> Arc<Self> {
        Arc::new(Self {
            store,
            under_way: Mutex::default(),
            given_up: Notify::new(),
            counts: ReservationCounts::default(),
        })
    }

    /// Takes a place of the account's, if one of `max` is free.
    pub(crate) fn place(self: &Arc<Self>, account: &str, max: u32) -> Option<AccountPlace> {
        let mut under_way = self.under_way.lock();
        match under_way.calls.get_mut(account) {
            Some(calls) if *calls >= max => return None,
            Some(calls) => *calls += 1,
            None if max == 0 => return None,
            None => drop(under_way.calls.insert(account.to_owned(), 1)),
        }
        Some(AccountPlace {
            reservations: Arc::clone(self),
            account: account.to_owned(),
        })
    }

    /// Reserves up to `limit` credits in all, for at most `lifetime`.
    pub(crate) async fn reserve(
        self: &Arc<Self>,
        reservation: Reservation,
        limit: u64,
        lifetime: Duration,
    ) -> Result<Result<ReservationHold, ReservationRefused>, StoreError> {
        let (id, account, amount) = (
            reservation.id,
            reservation.account.clone(),
            reservation.amount,
        );
        let expires_at = Instant::now() + lifetime;
        let reserved = HeldCredits {
            account: account.clone(),
            amount,
            expires_at,
            is_given_up: false,
        };
        self.under_way.lock().reserved.insert(id, reserved);
        // Made before the write, so that a caller that goes away in the middle of it gives the reservation up.
        let hold = ReservationHold {
            reservations: Arc::clone(self),
            id,
            account,
        };
        match self.store.reserve(reservation, limit).await? {
            Ok(()) => Ok(Ok(hold)),
            Err(refused) => {
                self.forget(id, None);
                Ok(Err(refused))
            }
        }
    }

    /// Returns when some reservation was given up.
    pub(crate) async fn given_up(&self) {
        self.given_up.notified().await;
    }

    /// Releases what was given up and expires what is overdue. What cannot be written stays for the next time.
    pub(crate) async fn tend(&self, now: Instant, now_s: u64) -> Result<(), StoreError> {
        let due: Vec<(u128, String, ReservationOutcome)> = {
            let under_way = self.under_way.lock();
            let resolution =
                |reserved: &HeldCredits| match (reserved.is_given_up, reserved.expires_at <= now) {
                    (true, _) => Some(ReservationOutcome::Released),
                    (false, true) => Some(ReservationOutcome::Expired),
                    (false, false) => None,
                };
            let due = |(id, one): (&u128, &HeldCredits)| {
                Some((*id, one.account.clone(), resolution(one)?))
            };
            under_way.reserved.iter().filter_map(due).collect()
        };
        for (id, account, resolution) in due {
            let stands = self.store.resolve(&account, id, resolution, now_s).await?;
            self.forget(id, stands);
        }
        Ok(())
    }

    /// How many are reserved and not resolved.
    pub(crate) fn open(&self) -> usize {
        self.under_way.lock().reserved.len()
    }

    pub(crate) fn counts(&self) -> &ReservationCounts {
        &self.counts
    }

    fn forget(&self, id: u128, stands: Option<ReservationOutcome>) {
        let reserved = self.under_way.lock().reserved.remove(&id);
        if let (Some(reserved), Some(stands)) = (reserved, stands) {
            self.counts.count(stands, reserved.amount);
        }
    }
}

impl ReservationHold {
    /// Resolves the reservation, and gives back the resolution that stands. Where it cannot be written the reservation is
    /// given up; if the write took place after all, it stands.
    pub(crate) async fn resolve(
        self,
        resolution: ReservationOutcome,
        now_s: u64,
    ) -> Result<ReservationOutcome, StoreError> {
        let stands = self
            .reservations
            .store
            .resolve(&self.account, self.id, resolution, now_s)
            .await?;
        // Dropped without an entry, this gives nothing up.
        self.reservations.forget(self.id, stands);
        Ok(stands.unwrap_or(ReservationOutcome::Expired))
    }
}

impl Drop for ReservationHold {
    fn drop(&mut self) {
        let mut under_way = self.reservations.under_way.lock();
        if let Some(reserved) = under_way.reserved.get_mut(&self.id) {
            reserved.is_given_up = true;
            self.reservations.given_up.notify_one();
        }
    }
}

impl Drop for AccountPlace {
    fn drop(&mut self) {
        let mut under_way = self.reservations.under_way.lock();
        match under_way.calls.get_mut(&self.account) {
            Some(calls) if *calls > 1 => *calls -= 1,
            Some(_) | None => drop(under_way.calls.remove(&self.account)),
        }
    }
}

#[cfg(test)]
mod tests;
