//! What a server may say on a connection beside its answers: informational heads, and frames of HTTP/2 that carry nothing.
//!
//! Neither ends a wait for an answer nor counts as one, so a server that never stops would cost a processor for as long as its
//! client waits. Of HTTP/1 the heads of one exchange are counted, by what the client library tells of each; of HTTP/2 it tells
//! nothing, so the frames of a connection are counted, against what was asked over it. Whatever is too much ends the connection.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, ready};

use http::{Extensions, Request};
use hyper_util::client::legacy::connect::{
    CaptureConnection, Connected, Connection, capture_connection,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Informational heads before one answer. Servers send one or two, and one every few seconds while they work.
const INFORMATIONAL_MAX: u32 = 16;
/// Heads of one answer over HTTP/2: those, its own, and its trailers.
const HEADS_EACH: u32 = INFORMATIONAL_MAX + 2;
/// Frames without a head or a piece of a body that may come before anything was asked, and for each frame that asks or sends.
const FRAMES_FIRST: u32 = 256;
const FRAMES_EACH: u32 = 64;
const FRAMES_EACH_PIECE: u32 = 4;
/// What a connection saves up at most, however much was asked over it.
const SAVED_MAX: u32 = 4096;
/// What a client of HTTP/2 says before its first frame, in bytes.
const PREFACE_BYTES: usize = 24;
const FRAME_HEAD_BYTES: usize = 9;

/// Whether a server said too much on a connection, which ends it.
#[derive(Clone, Default)]
pub(super) struct Cut(Arc<AtomicBool>);

impl Cut {
    fn make(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_made(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The connection that a request goes over, once it has one.
pub(super) struct ConnectionWatch(CaptureConnection);

impl ConnectionWatch {
    /// Counts the informational heads before the answer to this request.
    pub(super) fn over<B>(request: &mut Request<B>) -> Self {
        let connection = capture_connection(request);
        let (of_exchange, heads) = (connection.clone(), AtomicU32::new(0));
        hyper::ext::on_informational(request, move |_| {
            if heads.fetch_add(1, Ordering::Relaxed) >= INFORMATIONAL_MAX
                && let Some(cut) = cut_of(&of_exchange)
            {
                cut.make();
            }
        });
        Self(connection)
    }

    /// Whether the connection was ended because the server said too much.
    pub(super) fn is_cut(&self) -> bool {
        cut_of(&self.0).is_some_and(|cut| cut.is_made())
    }
}

fn cut_of(connection: &CaptureConnection) -> Option<Cut> {
    let mut extras = Extensions::new();
    connection
        .connection_metadata()
        .as_ref()?
        .get_extras(&mut extras);
    extras.remove::<Cut>()
}

/// A connection whose overhead is counted.
pub(crate) struct CountedStream<S> {
    stream: S,
    cut: Cut,
    /// Of HTTP/2 alone.
    frames: Option<FrameCounter>,
}

impl<S> CountedStream<S> {
    /// `two` says that HTTP/2 is spoken.
    pub(super) fn new(stream: S, two: bool) -> Self {
        Self {
            stream,
            cut: Cut::default(),
            frames: two.then(FrameCounter::new),
        }
    }
}

impl<S: Connection> Connection for CountedStream<S> {
    fn connected(&self) -> Connected {
        self.stream.connected().extra(self.cut.clone())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CountedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        if !this.cut.is_made() {
            ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        }
        if let Some(frames) = &mut this.frames
            && !frames.received(&buf.filled()[before..])
        {
            this.cut.make();
        }
        if this.cut.is_made() {
            Poll::Ready(Err(io::ErrorKind::QuotaExceeded.into()))
        } else {
            Poll::Ready(Ok(()))
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountedStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.stream).poll_write_vectored(cx, slices))?;
        if let Some(frames) = &mut this.frames {
            let mut left = written;
            for slice in slices {
                let taken = left.min(slice.len());
                frames.sent(&slice[..taken]);
                left -= taken;
            }
        }
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

/// The frames of one connection, and how many more the server may send.
struct FrameCounter {
    sent: FrameHeads,
    received: FrameHeads,
    heads_left: u32,
    others_left: u32,
}

/// The types of frames that are told apart (RFC 9113, 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;

impl FrameCounter {
    fn new() -> Self {
        let sent = FrameHeads {
            skip: PREFACE_BYTES,
            ..FrameHeads::default()
        };
        Self {
            sent,
            received: FrameHeads::default(),
            heads_left: 0,
            others_left: FRAMES_FIRST,
        }
    }

    fn sent(&mut self, bytes: &[u8]) {
        let (heads_left, others_left) = (&mut self.heads_left, &mut self.others_left);
        self.sent.read(bytes, |kind, _| {
            let (heads, others) = match kind {
                HEADERS => (HEADS_EACH, FRAMES_EACH),
                DATA => (0, FRAMES_EACH_PIECE),
                // What must be answered.
                SETTINGS | PING => (0, 1),
                _ => (0, 0),
            };
            *heads_left = heads_left.saturating_add(heads).min(SAVED_MAX);
            *others_left = others_left.saturating_add(others).min(SAVED_MAX);
        });
    }

    /// Whether the server might send all of this.
    fn received(&mut self, bytes: &[u8]) -> bool {
        let (heads_left, others_left, mut is_within) =
            (&mut self.heads_left, &mut self.others_left, true);
        self.received.read(bytes, |kind, length| {
            let left = match (kind, length) {
                (HEADERS, _) => &mut *heads_left,
                (DATA, 1..) => return,
                (_, _) => &mut *others_left,
            };
            is_within &= *left > 0;
            *left = left.saturating_sub(1);
        });
        is_within
    }
}

/// Finds the heads of frames in one direction of a connection.
#[derive(Default)]
struct FrameHeads {
    head: [u8; FRAME_HEAD_BYTES],
    known: usize,
    /// What is left of a frame behind its head.
    skip: usize,
}

impl FrameHeads {
    /// Tells the type and the length of each frame whose head ends in these bytes.
    fn read(&mut self, mut bytes: &[u8], mut each: impl FnMut(u8, usize)) {
        while !bytes.is_empty() {
            let skipped = self.skip.min(bytes.len());
            (self.skip, bytes) = (self.skip - skipped, &bytes[skipped..]);
            let taken = (FRAME_HEAD_BYTES - self.known).min(bytes.len());
            self.head[self.known..self.known + taken].copy_from_slice(&bytes[..taken]);
            (self.known, bytes) = (self.known + taken, &bytes[taken..]);
            if self.known == FRAME_HEAD_BYTES {
                let [high, middle, low, kind, ..] = self.head;
                self.skip = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
                self.known = 0;
                each(kind, self.skip);
            }
        }
    }
}

#[cfg(test)]
mod tests;
