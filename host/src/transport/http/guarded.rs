//! A socket with the deadlines that hyper does not keep.
//!
//! hyper's own timer for heads starts once a protocol is chosen, so a connection that sends nothing, or half of the HTTP/2
//! preface, would stay for ever; and it runs between requests, too, so that it would close kept connections before they
//! are idle for long. [`GuardedStream`] sees both the bytes and the requests that came of them, and times a head from its first
//! byte. It also cuts a peer that takes no bytes, and lets one that is being refused read why.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use super::activity::ConnectionActivity;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How long the peer's bytes are still taken, and thrown away, after the last answer.
const LINGER: Duration = Duration::from_secs(1);

pub(crate) struct GuardedStream {
    stream: TcpStream,
    activity: Arc<ConnectionActivity>,
    protocol: HttpProtocol,
    head: HeadProgress,
    head_time: Duration,
    head_deadline: Pin<Box<Sleep>>,
    write_time: Duration,
    /// Runs while the peer takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
    lingering: Option<Pin<Box<Sleep>>>,
}

/// Which protocol the first bytes have told.
enum HttpProtocol {
    /// So many bytes are those of the HTTP/2 preface.
    Untold {
        matched: usize,
    },
    Http1,
    Http2,
}

/// The HTTP/1 head that is being read. It is read to its end once more requests were begun than had been at its start.
enum HeadProgress {
    Nothing,
    /// Bytes have come; whether they are a whole head shows when hyper asks for more.
    Begun {
        after: u64,
    },
    /// They were not, and the deadline runs.
    Awaited {
        after: u64,
    },
}

impl GuardedStream {
    pub(crate) fn new(
        stream: TcpStream,
        activity: Arc<ConnectionActivity>,
        head_time: Duration,
        write_time: Duration,
    ) -> Self {
        Self {
            stream,
            activity,
            protocol: HttpProtocol::Untold { matched: 0 },
            head: HeadProgress::Awaited { after: 0 },
            head_time,
            head_deadline: Box::pin(tokio::time::sleep(head_time)),
            write_time,
            stalled: None,
            lingering: None,
        }
    }

    fn saw(&mut self, bytes: &[u8]) {
        if let HttpProtocol::Untold { matched } = self.protocol {
            let expected = &PREFACE[matched..];
            let same = expected
                .iter()
                .zip(bytes)
                .take_while(|(expected, found)| expected == found)
                .count();
            self.protocol = match same {
                _ if same == expected.len() => HttpProtocol::Http2,
                _ if same < bytes.len() => HttpProtocol::Http1,
                _ => HttpProtocol::Untold {
                    matched: matched + same,
                },
            };
        }
        let begun = self.activity.begun();
        let new = match self.head {
            HeadProgress::Nothing => true,
            HeadProgress::Begun { after } | HeadProgress::Awaited { after } => after != begun,
        };
        // While a request is under way the bytes are its body's.
        if new && self.activity.is_idle() {
            self.head = HeadProgress::Begun { after: begun };
        }
    }

    /// Whether the rest of a head did not come in time; hyper waits for bytes.
    fn is_late(&mut self, cx: &mut Context<'_>) -> bool {
        let begun = self.activity.begun();
        match self.head {
            HeadProgress::Begun { after } if after == begun => {
                self.head = HeadProgress::Awaited { after };
                self.head_deadline
                    .as_mut()
                    .reset(Instant::now() + self.head_time);
            }
            HeadProgress::Awaited { after } if after == begun => {}
            HeadProgress::Nothing | HeadProgress::Begun { .. } | HeadProgress::Awaited { .. } => {
                self.head = HeadProgress::Nothing;
                return false;
            }
        }
        self.head_deadline.as_mut().poll(cx).is_ready()
    }

    fn written<T>(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            if self.stalled.take().is_some() {
                self.activity.moved();
            }
            return polled;
        }
        let time = self.write_time;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(time)));
        stalled
            .as_mut()
            .poll(cx)
            .map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for GuardedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(cx, buf);
        // HTTP/2 has frames of its own while nothing is asked, so that bytes do not tell that a head has begun.
        if matches!(this.protocol, HttpProtocol::Http2) {
            return polled;
        }
        match polled {
            Poll::Ready(_) => this.saw(&buf.filled()[before..]),
            Poll::Pending if this.is_late(cx) => {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            Poll::Pending => {}
        }
        polled
    }
}

impl AsyncWrite for GuardedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.written(cx, polled)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write_vectored(cx, bytes);
        this.written(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    /// Ends our side, then reads the peer's for a while: a socket that is closed with unread bytes (of a body that was too
    /// large, say) sends a reset, which can overtake the answer on its way.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.lingering.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
        }
        let lingering = this
            .lingering
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER)));
        let mut thrown_away = [0; 4096];
        while lingering.as_mut().poll(cx).is_pending() {
            let mut buf = ReadBuf::new(&mut thrown_away);
            let read = ready!(Pin::new(&mut this.stream).poll_read(cx, &mut buf));
            if read.is_err() || buf.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}
