//! A socket with the deadlines that hyper does not keep.
//!
//! hyper's own timers start once a protocol is chosen, so a connection that sends nothing, or half of the HTTP/2 preface,
//! would stay for ever: [`Guarded`] puts a deadline on those first bytes and on a peer that stops reading.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A socket with two deadlines: until the first bytes have told the protocol, and on each write that the peer does not take.
pub(super) struct Guarded {
    stream: TcpStream,
    /// How much of the HTTP/2 preface has come, while the protocol is unknown.
    preface: Option<usize>,
    first_bytes: Pin<Box<Sleep>>,
    write_deadline: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Guarded {
    pub(super) fn new(stream: TcpStream, first_bytes: Duration, write_deadline: Duration) -> Self {
        let first_bytes = Box::pin(tokio::time::sleep(first_bytes));
        Self { stream, preface: Some(0), first_bytes, write_deadline, stalled: None }
    }

    fn saw(&mut self, bytes: &[u8]) {
        let Some(matched) = self.preface else { return };
        let more = PREFACE[matched..].iter().zip(bytes).take_while(|(expected, found)| expected == found).count();
        let told = more < bytes.len() || matched + more == PREFACE.len();
        self.preface = (!told).then_some(matched + more);
    }

    fn written<T>(&mut self, cx: &mut Context<'_>, polled: Poll<std::io::Result<T>>) -> Poll<std::io::Result<T>> {
        if polled.is_ready() {
            self.stalled = None;
            return polled;
        }
        let deadline = self.write_deadline;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + deadline)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(std::io::Error::from(std::io::ErrorKind::TimedOut))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Guarded {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(cx, buf);
        if this.preface.is_some() {
            if let Poll::Ready(Ok(())) = polled {
                this.saw(&buf.filled()[before..]);
            } else if polled.is_pending() && this.first_bytes.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(std::io::Error::from(std::io::ErrorKind::TimedOut)));
            }
        }
        polled
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.written(cx, polled)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write_vectored(cx, bytes);
        this.written(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
