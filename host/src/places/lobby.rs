//! A request's way in: into the lobby, and from there to a place among those in flight.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::peer::Address;
use super::{ListenerPlaces, PeerConnection, PeerShare, PlacesFull, Unsent};
use crate::base::shared_stock::StockPortion;

/// How long a request waits for the lobby. Its peer's own requests, whose bodies are being read, stand before it.
const WAIT: Duration = Duration::from_secs(5);

/// A request, from its head to the end of its answer, as far as it takes room.
pub(crate) struct RequestPlace {
    places: ListenerPlaces,
    guest: Arc<PeerConnection>,
    share: Arc<PeerShare>,
    address: Address,
    /// Never held over an await.
    held: Mutex<HeldPlace>,
}

#[derive(Default)]
struct HeldPlace {
    counted: Option<CountedRequest>,
    lobby: Option<StockPortion>,
    place: Option<OwnedSemaphorePermit>,
    unsent: Option<Unsent>,
}

/// One of the requests of a peer.
struct CountedRequest(Arc<PeerShare>);

impl Drop for CountedRequest {
    fn drop(&mut self) {
        self.0.requests.sub(1);
    }
}

impl RequestPlace {
    pub(super) fn new(
        places: &ListenerPlaces,
        guest: &Arc<PeerConnection>,
        share: Arc<PeerShare>,
        address: Address,
    ) -> Self {
        Self {
            places: places.clone(),
            guest: Arc::clone(guest),
            share,
            address,
            held: Mutex::default(),
        }
    }

    /// Who sent the request, as far as addresses tell.
    pub(crate) fn address(&self) -> Address {
        self.address
    }

    /// Takes a place in the lobby. Waits a while where the peer's share of it, or all of it, is taken.
    pub(crate) async fn enter(&self) -> Result<(), PlacesFull> {
        let entered = self.try_enter().await;
        self.counted(entered)
    }

    async fn try_enter(&self) -> Result<(), PlacesFull> {
        let peers = &self.places.0.peers;
        if self.share.requests.add(1) > peers.in_flight as u64 {
            self.share.requests.sub(1);
            return Err(PlacesFull::Peer);
        }
        let counted = CountedRequest(Arc::clone(&self.share));
        let lobby = match self.places.0.lobby.try_take(&self.share.lobby, 1) {
            Some(lobby) => lobby,
            None => self.wait().await?,
        };
        let mut held = self.held.lock();
        held.counted = Some(counted);
        held.lobby = Some(lobby);
        Ok(())
    }

    async fn wait(&self) -> Result<StockPortion, PlacesFull> {
        let _waiting = self
            .places
            .0
            .waiting
            .try_acquire()
            .map_err(|_| PlacesFull::Listener)?;
        // The peer's own share first, so that nobody waits for the common part with another's place in hand.
        let (until, share, lobby) = (
            Instant::now() + WAIT,
            &self.share.lobby,
            &self.places.0.lobby,
        );
        let own = timeout_at(until, Arc::clone(share).acquire_owned())
            .await
            .ok()
            .and_then(Result::ok);
        let own = own.ok_or(PlacesFull::Peer)?;
        timeout_at(until, lobby.add(share, own, 1))
            .await
            .ok()
            .flatten()
            .ok_or(PlacesFull::Listener)
    }

    /// Leaves the lobby for a place among the requests in flight, because the caller is known. Does nothing the second time.
    pub(crate) fn identified(&self) -> Result<(), PlacesFull> {
        let mut held = self.held.lock();
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
                self.counted(Err(PlacesFull::Listener))
            }
        }
    }

    /// Counts the bytes of the answer, where its peer and its connection may have so many more.
    pub(crate) fn answer_with(&self, bytes: usize) -> Result<(), PlacesFull> {
        match Unsent::hold(&self.places, &self.guest, &self.share, bytes) {
            Ok(unsent) => {
                self.held.lock().unsent = Some(unsent);
                Ok(())
            }
            Err(full) => self.counted(Err(full)),
        }
    }

    /// What [`RequestPlace::answer_with`] counted.
    pub(crate) fn unsent(&self) -> Option<Unsent> {
        self.held.lock().unsent.take()
    }

    /// Counts an answer that stands outside all places, such as a refusal for want of one; `None` where its connection has
    /// too many of them.
    pub(crate) fn outside(&self) -> Option<UnplacedAnswer> {
        self.guest
            .outside()
            .then(|| UnplacedAnswer(Arc::clone(&self.guest)))
    }

    pub(crate) fn is_inside(&self) -> bool {
        self.held.lock().counted.is_some()
    }

    fn counted<T>(&self, result: Result<T, PlacesFull>) -> Result<T, PlacesFull> {
        let counts = self.places.counts();
        match &result {
            Ok(_) => {}
            Err(PlacesFull::Peer) => counts.refused_peer.increment(),
            Err(PlacesFull::Listener) => counts.refused_listener.increment(),
            Err(PlacesFull::Unsent) => counts.refused_unsent.increment(),
        }
        result
    }
}

/// An answer that is sent without a place.
pub(crate) struct UnplacedAnswer(Arc<PeerConnection>);

impl Drop for UnplacedAnswer {
    fn drop(&mut self) {
        self.0.inside();
    }
}

fn try_acquire(places: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    Arc::clone(places).try_acquire_owned().ok()
}
