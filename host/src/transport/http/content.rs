//! What an answer carries: bytes that are all there, some of them shared with other answers, or a stream of them; handed on in
//! pieces, so that sending can be seen to go on or to be stuck.
//!
//! Must not know what the bytes say.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::header::CONTENT_ENCODING;
use http::{Response, StatusCode};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::sync::mpsc;

/// The largest piece, in bytes.
const PIECE_BYTES: usize = 64 * 1024;
/// So many bytes are compressed before others have their turn.
const TURN_BYTES: usize = 256 * 1024;

/// The content of an answer.
pub(crate) enum ResponseContent {
    Whole(Bytes),
    Parts(ContentParts),
    /// Ends when the sender is dropped.
    Stream(mpsc::Receiver<Bytes>),
}

/// Text in parts: what was made for one answer, and what is shared by many and costs this one nothing.
#[derive(Default)]
pub(crate) struct ContentParts {
    done: VecDeque<Bytes>,
    /// What was made for this answer since the last shared part.
    open: String,
    bytes: usize,
    shared_bytes: usize,
}

impl ContentParts {
    /// How many bytes there are.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds text of this answer's own.
    pub(crate) fn own(&mut self, text: &str) {
        self.open.push_str(text);
        self.bytes += text.len();
    }

    /// Adds what others have, too.
    pub(crate) fn shared(&mut self, bytes: Bytes) {
        self.close();
        self.bytes += bytes.len();
        self.shared_bytes += bytes.len();
        self.done.push_back(bytes);
    }

    /// Adds all parts of another text.
    pub(crate) fn append(&mut self, other: Self) {
        if other.done.is_empty() && !self.open.is_empty() {
            return self.own(&other.open);
        }
        self.close();
        self.done.extend(other.done);
        self.open = other.open;
        self.bytes += other.bytes;
        self.shared_bytes += other.shared_bytes;
    }

    /// The next part that is not empty, or nothing at the end.
    fn next(&mut self) -> Bytes {
        while let Some(part) = self.done.pop_front() {
            self.bytes -= part.len();
            if !part.is_empty() {
                return part;
            }
        }
        Bytes::new()
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.done
                .push_back(Bytes::from(std::mem::take(&mut self.open)));
        }
    }
}

impl From<String> for ContentParts {
    fn from(text: String) -> Self {
        Self {
            bytes: text.len(),
            open: text,
            ..Self::default()
        }
    }
}

impl ResponseContent {
    pub(crate) fn empty() -> Self {
        Self::Whole(Bytes::new())
    }

    /// How many bytes are there already.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Whole(bytes) => bytes.len(),
            Self::Parts(parts) => parts.bytes,
            Self::Stream(_) => 0,
        }
    }

    /// How many of them are there for this answer alone.
    pub(crate) fn own_bytes(&self) -> usize {
        match self {
            Self::Whole(_) | Self::Stream(_) => self.bytes(),
            Self::Parts(parts) => parts.bytes - parts.shared_bytes,
        }
    }

    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(bytes.into())
    }

    /// Bytes that others have, too.
    pub(crate) fn shared(bytes: Bytes) -> Self {
        let mut parts = ContentParts::default();
        parts.shared(bytes);
        Self::Parts(parts)
    }
}

/// Content in pieces that share its bytes; it remembers the status that it was made for.
pub(crate) struct ContentPieces {
    content: ResponseContent,
    rest: Bytes,
    status: StatusCode,
    /// Whether the content has an encoding already.
    is_encoded: bool,
    /// Bytes that may be handed on before others have their turn; `None` for a socket, which is slower than we are.
    turn: Option<usize>,
}

impl ContentPieces {
    /// The content of a response, for a compressor or as it stands.
    pub(crate) fn of(response: Response<ResponseContent>) -> Response<Self> {
        let (status, is_encoded) = (
            response.status(),
            response.headers().contains_key(CONTENT_ENCODING),
        );
        response.map(|content| Self {
            is_encoded,
            ..Self::new(content, status)
        })
    }

    pub(crate) fn new(mut content: ResponseContent, status: StatusCode) -> Self {
        if let ResponseContent::Parts(parts) = &mut content {
            parts.close();
        }
        Self {
            content,
            rest: Bytes::new(),
            status,
            is_encoded: false,
            turn: Some(TURN_BYTES),
        }
    }

    /// The same, for a socket.
    pub(crate) fn for_socket(self) -> Self {
        Self { turn: None, ..self }
    }

    pub(crate) fn is_encoded(&self) -> bool {
        self.is_encoded
    }

    /// The bytes that are held for this answer alone.
    pub(crate) fn own_bytes(&self) -> usize {
        self.content.own_bytes()
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }
}

impl Body for ContentPieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.turn == Some(0) {
            self.turn = Some(TURN_BYTES);
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.rest.is_empty() {
            self.rest = match &mut self.content {
                ResponseContent::Whole(bytes) => std::mem::take(bytes),
                ResponseContent::Parts(parts) => parts.next(),
                ResponseContent::Stream(stream) => ready!(stream.poll_recv(cx)).unwrap_or_default(),
            };
        }
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let piece = self.rest.len().min(PIECE_BYTES);
        self.turn = self.turn.map(|turn| turn.saturating_sub(piece));
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        !matches!(self.content, ResponseContent::Stream(_))
            && self.rest.is_empty()
            && self.content.bytes() == 0
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            ResponseContent::Whole(_) | ResponseContent::Parts(_) => {
                SizeHint::with_exact((self.content.bytes() + self.rest.len()) as u64)
            }
            ResponseContent::Stream(_) => SizeHint::default(),
        }
    }
}
