//! What a connection is doing: how many requests are under way, and whether anything happened lately.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Body, Bytes, Frame, SizeHint};

/// How many requests a connection has under way, and when it last had one.
#[derive(Default)]
pub(super) struct Activity {
    requests: AtomicUsize,
    /// Counts requests that began or ended, so that an idle check can tell whether anything happened.
    changes: AtomicU64,
}

impl Activity {
    /// Returns once nothing was under way for the whole of `time`.
    pub(super) async fn idle_for(&self, time: Duration) {
        loop {
            let before = self.changes.load(Ordering::Relaxed);
            tokio::time::sleep(time).await;
            let still = self.changes.load(Ordering::Relaxed) == before;
            if still && self.requests.load(Ordering::Relaxed) == 0 {
                return;
            }
        }
    }
}

pub(super) struct Busy(Arc<Activity>);

impl Busy {
    pub(super) fn new(activity: Arc<Activity>) -> Self {
        activity.requests.fetch_add(1, Ordering::Relaxed);
        activity.changes.fetch_add(1, Ordering::Relaxed);
        Self(activity)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
        self.0.changes.fetch_add(1, Ordering::Relaxed);
    }
}

/// A body that counts as under way until it is sent or dropped.
pub(super) struct Counted {
    body: Full<Bytes>,
    _busy: Busy,
}

impl Counted {
    pub(super) fn new(body: Full<Bytes>, busy: Busy) -> Self {
        Self { body, _busy: busy }
    }
}

impl Body for Counted {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
