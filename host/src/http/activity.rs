//! What a connection is doing: how many requests are under way, how many answers are being sent, and whether anything moves.
//!
//! The requests, their answers and the socket write it; the connection's own task reads it, and closes what is idle and
//! cuts what is stuck. It counts and keeps no clock: looking at it now and then costs a busy connection nothing.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

/// How often a time is looked at while it passes; it is exceeded by at most this part.
const LOOKS: u32 = 4;

/// The counters of one connection.
#[derive(Default)]
pub(super) struct Activity {
    begun: AtomicU64,
    ended: AtomicU64,
    sending: AtomicU64,
    /// Pieces of answers handed on, and writes taken after a stall.
    moved: AtomicU64,
}

impl Activity {
    /// How many requests were ever begun.
    pub(super) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.begun() == self.ended.load(Ordering::Relaxed)
    }

    /// Something went on that only the socket can see.
    pub(super) fn moved(&self) {
        self.moved.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns once no request was under way for the whole of `time`.
    pub(super) async fn idle_for(&self, time: Duration) {
        self.unchanged_for(time, Self::is_idle).await;
    }

    /// Returns once answers were being sent for the whole of `time` and the peer took nothing of them.
    pub(super) async fn stuck_for(&self, time: Duration) {
        self.unchanged_for(time, |activity| activity.sending.load(Ordering::Relaxed) > 0).await;
    }

    async fn unchanged_for(&self, time: Duration, holds: impl Fn(&Self) -> bool) {
        let changes = || [&self.begun, &self.ended, &self.moved].map(|counter| counter.load(Ordering::Relaxed));
        let mut before = changes();
        let mut looks = 0;
        while looks < LOOKS {
            tokio::time::sleep(time / LOOKS).await;
            let now = changes();
            looks = if now == before && holds(self) { looks + 1 } else { 0 };
            before = now;
        }
    }
}

/// A request from its head to the last piece of its answer. Holds its place among those in flight.
pub(super) struct UnderWay {
    activity: Arc<Activity>,
    _place: Option<OwnedSemaphorePermit>,
}

impl UnderWay {
    pub(super) fn begin(activity: Arc<Activity>, place: Option<OwnedSemaphorePermit>) -> Self {
        activity.begun.fetch_add(1, Ordering::Relaxed);
        Self { activity, _place: place }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.activity.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// An answer that counts as being sent until it is handed on whole or dropped, and is given up at a deadline.
pub(super) struct Sending<B> {
    body: B,
    deadline: Instant,
    under_way: UnderWay,
}

impl<B> Sending<B> {
    pub(super) fn begin(body: B, deadline: Instant, under_way: UnderWay) -> Self {
        under_way.activity.moved();
        under_way.activity.sending.fetch_add(1, Ordering::Relaxed);
        Self { body, deadline, under_way }
    }
}

impl<B> Drop for Sending<B> {
    fn drop(&mut self) {
        self.under_way.activity.sending.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<B> Body for Sending<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.deadline <= Instant::now() {
            return Poll::Ready(Some(Err(io::Error::from(io::ErrorKind::TimedOut).into())));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        self.under_way.activity.moved();
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
