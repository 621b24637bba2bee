//! Places: how much of a listener a peer may have at once. Connections, requests and bytes of answers.
//!
//! A request comes in through the lobby: there its body is read and its caller is identified, and there stays whatever has no
//! good credential. A request whose caller is known leaves the lobby for a place among those in flight. So what a stranger
//! can fill is the lobby, and of that a peer's share; callers pass through it in the time that their bodies take.
//!
//! Each listener has places of its own. Must not know what a request is about or how a refusal is printed.

mod crowd;
mod lobby;
pub(crate) mod peer;
mod unsent;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderMap;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use self::crowd::ConnectionTable;
pub(crate) use self::crowd::{ConnectionPlace, ConnectionRefused, PeerConnection};
pub(crate) use self::lobby::{RequestPlace, UnplacedAnswer};
use self::peer::{Address, TrustedProxies};
pub(crate) use self::unsent::Unsent;
use crate::base::shared_stock::SharedStock;
use crate::config::{LimitSettings, PeerSettings};
use crate::contract::error::{Code, Refusal};
use crate::observe::instrument::{Counter, Gauge};

/// The lobby is this part of the requests in flight, and so is a peer's share of it.
const LOBBY_PART: usize = 4;
/// Shares of peers that are gone are forgotten once there are so many.
const SHARES_MIN: usize = 1024;

/// What of one listener is taken: shared with whoever tells the operator.
#[derive(Clone)]
pub(crate) struct ListenerPlaces(Arc<Listener>);

struct Listener {
    limits: LimitSettings,
    peers: PeerSettings,
    proxies: TrustedProxies,
    in_flight: Arc<Semaphore>,
    lobby: SharedStock,
    /// A place for each request that waits for the lobby.
    waiting: Semaphore,
    /// By peer, for as long as anything of it is here. Never held over an await.
    shares: Mutex<HashMap<Address, Arc<PeerShare>>>,
    crowd: ConnectionTable,
    unsent: Gauge,
    counts: PlaceCounts,
}

/// What of the listener one peer has.
struct PeerShare {
    requests: Gauge,
    lobby: Arc<Semaphore>,
    unsent: Gauge,
}

/// What was refused or ended for want of places.
#[derive(Default)]
pub(crate) struct PlaceCounts {
    /// Connections that were closed so that others could be served.
    pub(crate) closed: Counter,
    /// Connections that were turned away because their peer has its share and uses all of it.
    pub(crate) turned_away: Counter,
    pub(crate) refused_peer: Counter,
    pub(crate) refused_listener: Counter,
    pub(crate) refused_unsent: Counter,
    /// Answers that were ended because their peer took nothing of them.
    pub(crate) given_up: Counter,
}

/// Why there is no place for a request or its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlacesFull {
    /// The peer has its share of requests.
    Peer,
    Listener,
    /// Of unsent bytes.
    Unsent,
}

impl PlacesFull {
    /// As a client reads it.
    pub(crate) fn refusal(self) -> Refusal {
        let message = match self {
            PlacesFull::Peer => {
                "Too many requests from this address are in flight; try again shortly"
            }
            PlacesFull::Listener => "Too many requests are in flight; try again shortly",
            PlacesFull::Unsent => {
                "Too many bytes of responses are waiting to be read by this client; read them and try again"
            }
        };
        Refusal::new(Code::ServiceUnavailable, message).retry_after(1)
    }
}

impl ListenerPlaces {
    pub(crate) fn new(limits: LimitSettings, peers: PeerSettings) -> Self {
        let (lobby, own) = (part(limits.in_flight), part(peers.in_flight));
        Self(Arc::new(Listener {
            limits,
            proxies: TrustedProxies::new(peers.trusted_networks()),
            peers,
            in_flight: Arc::new(Semaphore::new(limits.in_flight)),
            lobby: SharedStock::new(lobby, own),
            waiting: Semaphore::new(lobby),
            shares: Mutex::default(),
            crowd: ConnectionTable::default(),
            unsent: Gauge::default(),
            counts: PlaceCounts::default(),
        }))
    }

    /// Requests whose answers are not sent yet, in the lobby and beyond.
    pub(crate) fn in_flight(&self) -> usize {
        self.0.limits.in_flight - self.0.in_flight.available_permits() + self.in_lobby()
    }

    /// Requests in the lobby.
    pub(crate) fn in_lobby(&self) -> usize {
        self.0.lobby.taken()
    }

    /// Bytes of answers that were made and are not sent.
    pub(crate) fn unsent_bytes(&self) -> u64 {
        self.0.unsent.get()
    }

    pub(crate) fn counts(&self) -> &PlaceCounts {
        &self.0.counts
    }

    /// Whose a request is, and its way in. What a connection says of itself counts for all its requests, what a trusted
    /// proxy says for the one.
    pub(crate) fn visit(&self, member: &ConnectionPlace, headers: &HeaderMap) -> RequestPlace {
        match member.share() {
            Some((address, share)) => {
                RequestPlace::new(self, member.guest(), Arc::clone(share), address)
            }
            None => {
                let address = self.0.proxies.client(headers, member.address());
                RequestPlace::new(self, member.guest(), self.share(address), address)
            }
        }
    }

    fn share(&self, address: Address) -> Arc<PeerShare> {
        let mut shares = self.0.shares.lock();
        if let Some(share) = shares.get(&address) {
            return Arc::clone(share);
        }
        // What is here is bounded by connections and requests, so this is done once for many that come and go.
        if shares.len() >= SHARES_MIN && shares.len() == shares.capacity() {
            shares.retain(|_, share| Arc::strong_count(share) > 1);
        }
        let share = Arc::new(PeerShare {
            requests: Gauge::default(),
            lobby: self.0.lobby.share(),
            unsent: Gauge::default(),
        });
        shares.insert(address, Arc::clone(&share));
        share
    }

    fn is_trusted(&self, address: IpAddr) -> bool {
        self.0.proxies.trusts(address)
    }
}

fn part(of: usize) -> usize {
    (of / LOBBY_PART).max(1)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn the_shares_of_peers_that_are_gone_are_forgotten() {
        let places = ListenerPlaces::new(LimitSettings::default(), PeerSettings::default());
        let kept = places.share(Address::of(Ipv4Addr::LOCALHOST.into()));
        for number in 0..100_000_u32 {
            places.share(Address::of(Ipv4Addr::from(0x0a00_0000 + number).into()));
        }
        let shares = places.0.shares.lock();
        assert!(shares.len() <= 4 * SHARES_MIN, "{} shares", shares.len());
        drop(shares);
        assert!(Arc::ptr_eq(
            &kept,
            &places.share(Address::of(Ipv4Addr::LOCALHOST.into()))
        ));
    }
}
