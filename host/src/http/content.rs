//! What an answer carries: bytes that are all there, or a stream of them; handed on in pieces, so that sending can be seen to
//! go on or to be stuck.
//!
//! Must not know what the bytes say.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{Response, StatusCode};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::sync::mpsc;

/// The largest piece, in bytes.
const PIECE_BYTES: usize = 16 * 1024;

/// The content of an answer.
pub(crate) enum Content {
    Whole(Bytes),
    /// Ends when the sender is dropped.
    Stream(mpsc::Receiver<Bytes>),
}

impl Content {
    pub(crate) fn empty() -> Self {
        Self::Whole(Bytes::new())
    }

    /// How many bytes are there already.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Whole(bytes) => bytes.len(),
            Self::Stream(_) => 0,
        }
    }

    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(bytes.into())
    }
}

/// Content in pieces that share its bytes; it remembers the status that it was made for.
pub(super) struct Pieces {
    content: Content,
    rest: Bytes,
    status: StatusCode,
}

impl Pieces {
    pub(super) fn of(response: Response<Content>) -> Response<Self> {
        let status = response.status();
        response.map(|content| Self { content, rest: Bytes::new(), status })
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.rest.is_empty() {
            self.rest = match &mut self.content {
                Content::Whole(bytes) => std::mem::take(bytes),
                Content::Stream(stream) => ready!(stream.poll_recv(cx)).unwrap_or_default(),
            };
        }
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let piece = self.rest.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.content, Content::Whole(bytes) if bytes.is_empty() && self.rest.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => SizeHint::with_exact((bytes.len() + self.rest.len()) as u64),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}
