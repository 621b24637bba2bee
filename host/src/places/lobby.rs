//! A request's way in: into the lobby, and from there to a place among those in flight.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::peer::Address;
use super::{Full, Guest, Places, Share, Unsent};
use crate::stock::Portion;

/// How long a request waits for the lobby. Its peer's own requests, whose bodies are being read, stand before it.
const WAIT: Duration = Duration::from_secs(5);

/// A request, from its head to the end of its answer, as far as it takes room.
pub(crate) struct Visit {
    places: Places,
    guest: Arc<Guest>,
    share: Arc<Share>,
    address: Address,
    /// Never held over an await.
    held: Mutex<HeldPlace>,
}

#[derive(Default)]
struct HeldPlace {
    counted: Option<Counted>,
    lobby: Option<Portion>,
    place: Option<OwnedSemaphorePermit>,
    unsent: Option<Unsent>,
}

/// One of the requests of a peer.
struct Counted(Arc<Share>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.requests.sub(1);
    }
}

impl Visit {
    pub(super) fn new(places: &Places, guest: &Arc<Guest>, share: Arc<Share>, address: Address) -> Self {
        Self { places: places.clone(), guest: Arc::clone(guest), share, address, held: Mutex::default() }
    }

    /// Who sent the request, as far as addresses tell.
    pub(crate) fn address(&self) -> Address {
        self.address
    }

    /// Takes a place in the lobby. Waits a while where the peer's share of it, or all of it, is taken.
    pub(crate) async fn enter(&self) -> Result<(), Full> {
        let entered = self.try_enter().await;
        self.counted(entered)
    }

    async fn try_enter(&self) -> Result<(), Full> {
        let limits = &self.places.0.limits;
        if self.share.requests.add(1) > limits.peer_in_flight as u64 {
            self.share.requests.sub(1);
            return Err(Full::Peer);
        }
        let counted = Counted(Arc::clone(&self.share));
        let lobby = match self.places.0.lobby.try_take(&self.share.lobby, 1) {
            Some(lobby) => lobby,
            None => self.wait().await?,
        };
        let mut held = self.held();
        held.counted = Some(counted);
        held.lobby = Some(lobby);
        Ok(())
    }

    async fn wait(&self) -> Result<Portion, Full> {
        let _waiting = self.places.0.waiting.try_acquire().map_err(|_| Full::Listener)?;
        // The peer's own share first, so that nobody waits for the common part with another's place in hand.
        let (until, share, lobby) = (Instant::now() + WAIT, &self.share.lobby, &self.places.0.lobby);
        let own = timeout_at(until, Arc::clone(share).acquire_owned()).await.ok().and_then(Result::ok);
        let own = own.ok_or(Full::Peer)?;
        timeout_at(until, lobby.add(share, own, 1)).await.ok().flatten().ok_or(Full::Listener)
    }

    /// Leaves the lobby for a place among the requests in flight, because the caller is known. Does nothing the second time.
    pub(crate) fn identified(&self) -> Result<(), Full> {
        let mut held = self.held();
        if held.place.is_some() {
            return Ok(());
        }
        match try_acquire(&self.places.0.in_flight) {
            Some(place) => {
                held.place = Some(place);
                held.lobby = None;
                Ok(())
            }
            None => {
                drop(held);
                self.counted(Err(Full::Listener))
            }
        }
    }

    /// Counts the bytes of the answer, where its peer and its connection may have so many more.
    pub(crate) fn answer_with(&self, bytes: usize) -> Result<(), Full> {
        match Unsent::hold(&self.places, &self.guest, &self.share, bytes) {
            Ok(unsent) => {
                self.held().unsent = Some(unsent);
                Ok(())
            }
            Err(full) => self.counted(Err(full)),
        }
    }

    /// What [`Visit::answer_with`] counted.
    pub(crate) fn unsent(&self) -> Option<Unsent> {
        self.held().unsent.take()
    }

    /// Counts an answer that stands outside all places, such as a refusal for want of one; `None` where its connection has
    /// too many of them.
    pub(crate) fn outside(&self) -> Option<Outside> {
        self.guest.outside().then(|| Outside(Arc::clone(&self.guest)))
    }

    pub(crate) fn is_inside(&self) -> bool {
        self.held().counted.is_some()
    }

    fn counted<T>(&self, result: Result<T, Full>) -> Result<T, Full> {
        let counts = self.places.counts();
        match &result {
            Ok(_) => {}
            Err(Full::Peer) => counts.refused_peer.increment(),
            Err(Full::Listener) => counts.refused_listener.increment(),
            Err(Full::Unsent) => counts.refused_unsent.increment(),
        }
        result
    }

    fn held(&self) -> std::sync::MutexGuard<'_, HeldPlace> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer that is sent without a place.
pub(crate) struct Outside(Arc<Guest>);

impl Drop for Outside {
    fn drop(&mut self) {
        self.0.inside();
    }
}

fn try_acquire(places: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    Arc::clone(places).try_acquire_owned().ok()
}
