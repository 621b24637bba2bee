//! Answers on their way: what the peer has taken of each, and the end of one of which it takes nothing.
//!
//! hyper asks for more of an answer when there is room for it and says nothing while there is none. So each piece tells when
//! its bytes reach the socket, and the task of an HTTP/2 stream, whose end resets the stream, looks now and then whether any
//! did. An HTTP/2 answer says that it is at its end only once all before that is taken: hyper leaves a stream alone from there.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use hyper::body::{Body, Buf, Bytes, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::activity::{LOOKS, RequestUnderWay};
use super::content::ContentPieces;
use crate::places::{ListenerPlaces, UnplacedAnswer, Unsent};

/// What was handed on of one answer, and what of that was taken.
#[derive(Default)]
struct SendingProgress {
    handed: AtomicU64,
    taken: AtomicU64,
    /// Whoever waits until all of it is taken.
    waiting: Mutex<Option<Waker>>,
    /// The answer's bytes are there until the last piece of them has gone.
    _unsent: Option<Unsent>,
}

impl SendingProgress {
    fn is_drained(&self) -> bool {
        self.taken.load(Ordering::Acquire) == self.handed.load(Ordering::Acquire)
    }

    fn took(&self, bytes: u64) {
        self.taken.fetch_add(bytes, Ordering::AcqRel);
        if self.is_drained()
            && let Some(waker) = self.waiting().take()
        {
            waker.wake();
        }
    }

    fn poll_drained(&self, cx: &Context<'_>) -> Poll<()> {
        if self.is_drained() {
            return Poll::Ready(());
        }
        *self.waiting() = Some(cx.waker().clone());
        // It may have been taken before the waker stood there.
        if self.is_drained() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    fn waiting(&self) -> parking_lot::MutexGuard<'_, Option<Waker>> {
        self.waiting.lock()
    }
}

/// Bytes of an answer that tell when they are taken.
pub(crate) struct Piece {
    bytes: Bytes,
    progress: Arc<SendingProgress>,
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.progress.took(count as u64);
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        // What is thrown away is not waited for.
        if !self.bytes.is_empty() {
            self.progress.took(self.bytes.len() as u64);
        }
    }
}

/// An answer until it is taken whole or dropped; it is given up at a deadline.
pub(crate) struct AnswerSending {
    pieces: ContentPieces,
    progress: Arc<SendingProgress>,
    deadline: Instant,
    is_stream: bool,
    under_way: RequestUnderWay,
    _outside: Option<UnplacedAnswer>,
}

impl AnswerSending {
    pub(crate) fn begin(
        pieces: ContentPieces,
        deadline: Instant,
        under_way: RequestUnderWay,
        unsent: Option<Unsent>,
        outside: Option<UnplacedAnswer>,
    ) -> Self {
        let progress = Arc::new(SendingProgress {
            _unsent: unsent,
            ..SendingProgress::default()
        });
        // Where this runs in the task of a stream, that watches it from now on.
        let is_stream = WATCHED
            .try_with(|watched| watched.set(Arc::clone(&progress)))
            .is_ok();
        if !is_stream {
            under_way.sending();
        }
        Self {
            pieces,
            progress,
            deadline,
            is_stream,
            under_way,
            _outside: outside,
        }
    }
}

impl Drop for AnswerSending {
    fn drop(&mut self) {
        if !self.is_stream {
            self.under_way.sent();
        }
    }
}

impl Body for AnswerSending {
    type Data = Piece;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, Self::Error>>> {
        if self.deadline <= Instant::now() {
            return Poll::Ready(Some(Err(io::Error::from(io::ErrorKind::TimedOut).into())));
        }
        let Some(frame) = ready!(Pin::new(&mut self.pieces).poll_frame(cx)) else {
            if self.is_stream {
                ready!(self.progress.poll_drained(cx));
            }
            return Poll::Ready(None);
        };
        self.under_way.moved();
        let Ok(frame) = frame;
        let progress = Arc::clone(&self.progress);
        let piece = move |bytes: Bytes| {
            progress
                .handed
                .fetch_add(bytes.len() as u64, Ordering::AcqRel);
            Piece { bytes, progress }
        };
        Poll::Ready(Some(Ok(frame.map_data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_end_stream() && (!self.is_stream || self.progress.is_drained())
    }

    fn size_hint(&self) -> SizeHint {
        self.pieces.size_hint()
    }
}

tokio::task_local! {
    static WATCHED: WatchedAnswer;
}

/// The answer of a stream, once it is there.
#[derive(Clone, Default)]
struct WatchedAnswer(Arc<OnceLock<Arc<SendingProgress>>>);

impl WatchedAnswer {
    fn set(&self, progress: Arc<SendingProgress>) {
        // A stream has one answer.
        self.0.set(progress).ok();
    }

    /// What was taken, while something waits to be.
    fn waits_at(&self) -> Option<u64> {
        let progress = self.0.get().filter(|progress| !progress.is_drained())?;
        Some(progress.taken.load(Ordering::Acquire))
    }
}

/// Runs HTTP/2 streams as tasks that the listener owns, and resets those of which the peer takes nothing for a time, or not
/// all in another, while the other streams of the connection go on.
#[derive(Clone)]
pub(crate) struct StreamExecutor {
    pub(crate) tasks: TaskTracker,
    pub(crate) places: ListenerPlaces,
    /// For a peer that takes nothing.
    pub(crate) write: Duration,
    /// For the whole stream.
    pub(crate) whole: Duration,
}

impl<F> hyper::rt::Executor<F> for StreamExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let Self {
            places,
            write,
            whole,
            ..
        } = self.clone();
        self.tasks.spawn(async move {
            if !watched(stream, write, whole).await {
                places.counts().given_up.increment();
                tracing::debug!("a stream is reset: its client did not read the response");
            }
        });
    }
}

/// Runs a stream, and tells whether it came to its end.
async fn watched(stream: impl Future<Output = ()>, write: Duration, whole: Duration) -> bool {
    let watched = WatchedAnswer::default();
    let mut stream = std::pin::pin!(WATCHED.scope(watched.clone(), stream));
    let end = Instant::now() + whole;
    let (mut before, mut looks) = (None, 0);
    while Instant::now() < end && looks < LOOKS {
        let look = end.min(Instant::now() + write / LOOKS);
        if tokio::time::timeout_at(look, stream.as_mut()).await.is_ok() {
            return true;
        }
        let now = watched.waits_at();
        looks = if now.is_some() && now == before {
            looks + 1
        } else {
            0
        };
        before = now;
    }
    false
}
