//! Bytes of answers that were made and are not sent: counted by connection, by peer and altogether.
//!
//! Who does not read pays: its connection and its address are refused first. Where all of it is taken, by many, the connection
//! that holds the most is cut.

use std::sync::Arc;

use super::{ListenerPlaces, PeerConnection, PeerShare, PlacesFull};

/// Answers up to this many bytes are taken always, so that a refusal is told: their number has a limit of its own.
const SMALL_BYTES: usize = 4096;

/// The bytes of one answer, until they are sent or thrown away.
pub(crate) struct Unsent {
    places: ListenerPlaces,
    guest: Arc<PeerConnection>,
    share: Arc<PeerShare>,
    bytes: u64,
}

impl Unsent {
    pub(super) fn hold(
        places: &ListenerPlaces,
        guest: &Arc<PeerConnection>,
        share: &Arc<PeerShare>,
        bytes: usize,
    ) -> Result<Self, PlacesFull> {
        let (limits, peers) = (&places.0.limits, &places.0.peers);
        let above = |before: u64, max: usize| before > 0 && before + bytes as u64 > max as u64;
        if bytes > SMALL_BYTES {
            // A proxy's connection has the answers of many.
            let connection =
                guest.is_peers() && above(guest.unsent.get(), limits.connection_unsent_bytes);
            if connection || above(share.unsent.get(), peers.unsent_bytes) {
                return Err(PlacesFull::Unsent);
            }
            if above(places.0.unsent.get(), limits.unsent_bytes) && !places.cut_heaviest(guest) {
                return Err(PlacesFull::Unsent);
            }
        }
        let held = Self {
            places: places.clone(),
            guest: Arc::clone(guest),
            share: Arc::clone(share),
            bytes: bytes as u64,
        };
        held.of_all(|gauge| {
            gauge.add(held.bytes);
        });
        Ok(held)
    }

    /// The answer became smaller.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let less = self.bytes.saturating_sub(bytes as u64);
        self.bytes -= less;
        self.of_all(|gauge| gauge.sub(less));
    }

    fn of_all(&self, change: impl Fn(&crate::observe::instrument::Gauge)) {
        change(&self.guest.unsent);
        change(&self.share.unsent);
        change(&self.places.0.unsent);
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.of_all(|gauge| gauge.sub(self.bytes));
    }
}
