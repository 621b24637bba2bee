//! Connections: how many a peer may have, and which one is closed when there are too many.
//!
//! A full listener lets a newcomer in and closes the connection that is idle for longest, of the peer that holds the most. Only
//! where none is idle a busy one ends, and only one of a peer that holds more than the newcomer's would.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::peer::Address;
use super::{ListenerPlaces, PeerShare};
use crate::base::clock::milliseconds;
use crate::observe::instrument::Gauge;

/// Answers that a connection may be sent without a place at once.
const OUTSIDE_MAX: u64 = 16;
/// How often closed connections are told of, at most.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// All connections of a listener.
#[derive(Default)]
pub(super) struct ConnectionTable {
    /// Never held over an await.
    open: Mutex<OpenConnections>,
    left: Notify,
}

#[derive(Default)]
struct OpenConnections {
    /// By peer; those of trusted proxies are nobody's.
    peers: HashMap<Option<Address>, HashMap<u64, Arc<PeerConnection>>>,
    count: usize,
    next: u64,
    told: ClosedTally,
}

#[derive(Default)]
struct ClosedTally {
    at: Option<Instant>,
    closed: u64,
    turned_away: u64,
}

/// One connection: what it is doing, as far as it matters to others.
pub(crate) struct PeerConnection {
    id: u64,
    peer: Option<Address>,
    opened: Instant,
    under_way: Gauge,
    /// When it was last busy, in milliseconds after it was opened.
    busy_ms: AtomicU64,
    outside: Gauge,
    pub(super) unsent: Gauge,
    cut: CancellationToken,
}

/// A connection's place, until it is dropped.
pub(crate) struct ConnectionPlace {
    places: ListenerPlaces,
    guest: Arc<PeerConnection>,
    address: IpAddr,
    share: Option<Arc<PeerShare>>,
}

/// Why there is no room for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionRefused {
    /// The peer has its share, and none of it is idle.
    Peer,
    /// The listener is full, none is idle, and nobody has more than the newcomer would.
    Full,
}

impl PeerConnection {
    pub(crate) fn begin(&self) {
        self.under_way.add(1);
    }

    pub(crate) fn end(&self) {
        let busy_ms = milliseconds(self.opened.elapsed());
        self.busy_ms.store(busy_ms, Ordering::Relaxed);
        self.under_way.sub(1);
    }

    /// Ready when the connection is to be closed for others.
    pub(crate) async fn is_cut(&self) {
        self.cut.cancelled().await;
    }

    /// Whether it is a peer's own and no trusted proxy's.
    pub(super) fn is_peers(&self) -> bool {
        self.peer.is_some()
    }

    pub(super) fn outside(&self) -> bool {
        let is_room = self.outside.add(1) <= OUTSIDE_MAX;
        if !is_room {
            self.outside.sub(1);
        }
        is_room
    }

    pub(super) fn inside(&self) {
        self.outside.sub(1);
    }

    fn is_idle(&self) -> bool {
        self.under_way.get() == 0
    }

    fn busy_at(&self) -> Instant {
        self.opened + Duration::from_millis(self.busy_ms.load(Ordering::Relaxed))
    }
}

impl ConnectionPlace {
    pub(crate) fn guest(&self) -> &Arc<PeerConnection> {
        &self.guest
    }

    /// The other end.
    pub(super) fn address(&self) -> IpAddr {
        self.address
    }

    /// Whose all of its requests are, where it is no trusted proxy's.
    pub(super) fn share(&self) -> Option<(Address, &Arc<PeerShare>)> {
        Some((self.guest.peer?, self.share.as_ref()?))
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let crowd = &self.places.0.crowd;
        crowd.open.lock().remove(&self.guest);
        crowd.left.notify_one();
    }
}

impl ListenerPlaces {
    /// Lets a connection in. Where its peer has its share, or the listener is full, another is closed for it.
    pub(crate) fn admit(&self, address: IpAddr) -> Result<ConnectionPlace, ConnectionRefused> {
        let address = address.to_canonical();
        let peer = (!self.is_trusted(address)).then(|| Address::of(address));
        let limits = &self.0.limits;
        let mut open = self.0.crowd.open.lock();
        // A proxy's connections are its clients', and no share of its own.
        let own = if peer.is_some() {
            open.held_by(peer)
        } else {
            0
        };
        let victim = match peer {
            Some(_) if own >= self.0.peers.connections => {
                Some(open.longest_idle_of(peer).ok_or(ConnectionRefused::Peer))
            }
            _ if open.count >= limits.connections => {
                Some(open.spare(own).ok_or(ConnectionRefused::Full))
            }
            _ => None,
        };
        match victim.transpose() {
            Ok(Some(victim)) => {
                self.0.counts.closed.increment();
                open.told.closed += 1;
                open.cut(&victim);
            }
            Ok(None) => {}
            Err(turned) => {
                if turned == ConnectionRefused::Peer {
                    self.0.counts.turned_away.increment();
                    open.told.turned_away += 1;
                    open.tell();
                }
                return Err(turned);
            }
        }
        open.tell();
        let guest = open.insert(peer);
        drop(open);
        let share = peer.map(|peer| self.share(peer));
        Ok(ConnectionPlace {
            places: self.clone(),
            guest,
            address,
            share,
        })
    }

    /// Open connections.
    pub(crate) fn open(&self) -> usize {
        self.0.crowd.open.lock().count
    }

    /// Ready when a connection has ended since this was last asked.
    pub(crate) async fn left(&self) {
        self.0.crowd.left.notified().await;
    }

    /// Cuts the connection that holds the most unsent bytes; `false` where that is this one, or a trusted proxy's alone.
    pub(super) fn cut_heaviest(&self, newcomer: &PeerConnection) -> bool {
        let mut open = self.0.crowd.open.lock();
        let heaviest = open
            .all()
            .filter(|guest| guest.is_peers())
            .max_by_key(|guest| guest.unsent.get())
            .cloned();
        let Some(heaviest) =
            heaviest.filter(|heaviest| heaviest.unsent.get() > newcomer.unsent.get())
        else {
            return false;
        };
        self.0.counts.closed.increment();
        open.told.closed += 1;
        open.cut(&heaviest);
        open.tell();
        true
    }
}

impl OpenConnections {
    fn held_by(&self, peer: Option<Address>) -> usize {
        self.peers.get(&peer).map_or(0, HashMap::len)
    }

    fn all(&self) -> impl Iterator<Item = &Arc<PeerConnection>> {
        self.peers.values().flat_map(HashMap::values)
    }

    fn insert(&mut self, peer: Option<Address>) -> Arc<PeerConnection> {
        self.next += 1;
        self.count += 1;
        let guest = Arc::new(PeerConnection {
            id: self.next,
            peer,
            opened: Instant::now(),
            under_way: Gauge::default(),
            busy_ms: AtomicU64::new(0),
            outside: Gauge::default(),
            unsent: Gauge::default(),
            cut: CancellationToken::new(),
        });
        self.peers
            .entry(peer)
            .or_default()
            .insert(guest.id, Arc::clone(&guest));
        guest
    }

    /// Takes a connection off the books; one that was cut is off already.
    fn remove(&mut self, guest: &PeerConnection) {
        let Some(of_peer) = self.peers.get_mut(&guest.peer) else {
            return;
        };
        if of_peer.remove(&guest.id).is_some() {
            self.count -= 1;
        }
        if of_peer.is_empty() {
            self.peers.remove(&guest.peer);
        }
    }

    fn cut(&mut self, guest: &Arc<PeerConnection>) {
        self.remove(guest);
        guest.cut.cancel();
    }

    fn longest_idle_of(&self, peer: Option<Address>) -> Option<Arc<PeerConnection>> {
        let idle = self
            .peers
            .get(&peer)?
            .values()
            .filter(|guest| guest.is_idle());
        idle.min_by_key(|guest| guest.busy_at()).cloned()
    }

    /// The connection to close for a newcomer whose peer holds `own`.
    fn spare(&self, own: usize) -> Option<Arc<PeerConnection>> {
        let of_peers = self.peers.iter().filter(|(peer, _)| peer.is_some());
        let largest = of_peers.max_by_key(|(_, guests)| guests.len());
        let idle = largest.and_then(|(peer, _)| self.longest_idle_of(*peer));
        idle.or_else(|| {
            self.all()
                .filter(|guest| guest.is_idle())
                .min_by_key(|guest| guest.busy_at())
                .cloned()
        })
        .or_else(|| {
            let (_, guests) = largest.filter(|(_, guests)| guests.len() > own + 1)?;
            guests.values().min_by_key(|guest| guest.busy_at()).cloned()
        })
    }

    fn tell(&mut self) {
        let told = &mut self.told;
        let is_time = told.at.is_none_or(|at| at.elapsed() >= TELL_EVERY);
        if told.closed + told.turned_away == 0 || !is_time {
            return;
        }
        let largest = self
            .peers
            .iter()
            .filter_map(|(peer, guests)| Some(((*peer)?, guests.len())));
        let (peer, connections) = largest.max_by_key(|(_, connections)| *connections).unzip();
        tracing::warn!(
            closed = told.closed,
            turned_away = told.turned_away,
            open = self.count,
            peer = peer.map(tracing::field::display),
            connections,
            "connections were closed to make room; `peer` holds the most"
        );
        *told = ClosedTally {
            at: Some(Instant::now()),
            ..ClosedTally::default()
        };
    }
}
