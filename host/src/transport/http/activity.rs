//! What a connection is doing: how many requests are under way, how many answers are being sent, and whether anything moves.
//!
//! The requests, their answers and the socket write it; the connection's own task reads it, and closes what is idle and
//! cuts what is stuck. It counts and keeps no clock: looking at it now and then costs a busy connection nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::places::{PeerConnection, RequestPlace};

/// How often a time is looked at while it passes; it is exceeded by at most this part.
pub(crate) const LOOKS: u32 = 4;

/// The counters of one connection.
pub(crate) struct ConnectionActivity {
    /// The same connection, as far as it matters to others.
    guest: Arc<PeerConnection>,
    begun: AtomicU64,
    ended: AtomicU64,
    /// Answers over HTTP/1 alone: those of streams are watched one by one.
    sending: AtomicU64,
    /// Pieces of answers handed on, and writes taken after a stall.
    moved: AtomicU64,
}

impl ConnectionActivity {
    pub(crate) fn of(guest: Arc<PeerConnection>) -> Self {
        let zero = AtomicU64::default;
        Self {
            guest,
            begun: zero(),
            ended: zero(),
            sending: zero(),
            moved: zero(),
        }
    }

    /// Ready when the connection is to be closed for others.
    pub(crate) async fn is_cut(&self) {
        self.guest.is_cut().await;
    }

    /// How many requests were ever begun.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.begun() == self.ended.load(Ordering::Relaxed)
    }

    /// Something went on that only the socket can see.
    pub(crate) fn moved(&self) {
        self.moved.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns once no request was under way for the whole of `time`.
    pub(crate) async fn idle_for(&self, time: Duration) {
        self.unchanged_for(time, Self::is_idle).await;
    }

    /// Returns once answers were being sent for the whole of `time` and the peer took nothing of them.
    pub(crate) async fn stuck_for(&self, time: Duration) {
        self.unchanged_for(time, |activity| {
            activity.sending.load(Ordering::Relaxed) > 0
        })
        .await;
    }

    async fn unchanged_for(&self, time: Duration, holds: impl Fn(&Self) -> bool) {
        let changes = || {
            [&self.begun, &self.ended, &self.moved].map(|counter| counter.load(Ordering::Relaxed))
        };
        let mut before = changes();
        let mut looks = 0;
        while looks < LOOKS {
            tokio::time::sleep(time / LOOKS).await;
            let now = changes();
            looks = if now == before && holds(self) {
                looks + 1
            } else {
                0
            };
            before = now;
        }
    }
}

/// A request from its head to the last piece of its answer. Holds its places.
pub(crate) struct RequestUnderWay {
    activity: Arc<ConnectionActivity>,
    visit: Arc<RequestPlace>,
}

impl RequestUnderWay {
    pub(crate) fn begin(activity: Arc<ConnectionActivity>, visit: Arc<RequestPlace>) -> Self {
        activity.begun.fetch_add(1, Ordering::Relaxed);
        activity.guest.begin();
        Self { activity, visit }
    }

    pub(crate) fn visit(&self) -> &RequestPlace {
        &self.visit
    }

    pub(crate) fn moved(&self) {
        self.activity.moved();
    }

    /// The connection's only answer is being sent.
    pub(crate) fn sending(&self) {
        self.activity.moved();
        self.activity.sending.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn sent(&self) {
        self.activity.sending.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for RequestUnderWay {
    fn drop(&mut self) {
        self.activity.guest.end();
        self.activity.ended.fetch_add(1, Ordering::Relaxed);
    }
}
