//! The other end of a connection to the proxy: its bytes counted both ways, and bounded.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::credential::LeaseGrant;
use crate::config;
use crate::egress::audit::{HopAudit, ProxiedAudit};

/// What went through one connection, in bytes, and why it was ended from here, if it was.
#[derive(Debug, Default)]
pub(crate) struct ProxyFlow {
    up: AtomicU64,
    down: AtomicU64,
    cut: OnceLock<&'static str>,
}

impl ProxyFlow {
    /// From the client.
    pub(crate) fn up(&self) -> u64 {
        self.up.load(Ordering::Relaxed)
    }

    /// To the client.
    pub(crate) fn down(&self) -> u64 {
        self.down.load(Ordering::Relaxed)
    }

    /// Why it was ended from here.
    pub(crate) fn why_cut(&self) -> Option<&'static str> {
        self.cut.get().copied()
    }

    /// Keeps the first reason.
    pub(super) fn cut(&self, why: &'static str) {
        // A second reason is none.
        self.cut.set(why).ok();
    }

    fn both(&self) -> u64 {
        self.up().saturating_add(self.down())
    }

    /// Returns once the passage must end whatever goes on in it, and keeps the reason.
    pub(super) async fn over(&self, end: &PassageEnd<'_>) {
        let why = tokio::select! {
            // Credentials end with the process, too.
            biased;
            () = end.over.cancelled() => "stopped",
            // A credential whose time is over is taken back as well.
            () = end.grant.ended.cancelled() => if Instant::now() < end.late { "revoked" } else { "late" },
            () = tokio::time::sleep_until(end.late.into()) => "late",
            () = self.idle_for(end.settings.idle_ms.time()) => "idle",
        };
        self.cut(why);
    }

    /// Returns once nothing moved for this time, at the latest after twice as long.
    async fn idle_for(&self, time: Duration) {
        let mut before = self.both();
        loop {
            tokio::time::sleep(time).await;
            let now = self.both();
            if now == before {
                return;
            }
            before = now;
        }
    }
}

/// What ends a passage.
pub(super) struct PassageEnd<'e> {
    pub(super) grant: &'e LeaseGrant,
    /// When its time is over, or its credential's.
    pub(super) late: Instant,
    pub(super) settings: &'e config::ProxySettings,
    /// Cancelled when the process ends.
    pub(super) over: &'e CancellationToken,
}

/// A client's connection behind the head of its request.
pub(super) struct Client {
    stream: TcpStream,
    /// What was read already.
    early: Bytes,
    flow: Arc<ProxyFlow>,
    /// Both ways together.
    bytes_max: u64,
}

impl<'e> PassageEnd<'e> {
    /// The client behind a head, of which this was read already.
    pub(super) fn client(&self, stream: TcpStream, early: Bytes, flow: &Arc<ProxyFlow>) -> Client {
        Client {
            stream,
            early,
            flow: Arc::clone(flow),
            bytes_max: self.settings.bytes,
        }
    }

    /// The record of what passes; `way` is `request` or `tunnel`.
    pub(super) fn audit(&self, way: &'static str, flow: &Arc<ProxyFlow>) -> HopAudit<'e> {
        let proxied = ProxiedAudit {
            way,
            lent_to: Arc::clone(&self.grant.lent_to),
            flow: Arc::clone(flow),
        };
        HopAudit::proxied(&self.grant.door, self.late, proxied)
    }
}

impl Client {
    /// Fails once there were too many bytes.
    fn check(&self) -> io::Result<()> {
        if self.flow.both() > self.bytes_max {
            self.flow.cut("too_large");
            Err(io::ErrorKind::QuotaExceeded.into())
        } else {
            Ok(())
        }
    }
}

impl AsyncRead for Client {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.check()?;
        let before = buf.filled().len();
        if this.early.is_empty() {
            ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        } else {
            let taken = this.early.len().min(buf.remaining());
            buf.put_slice(&this.early[..taken]);
            this.early.advance(taken);
        }
        let read = buf.filled().len() - before;
        this.flow.up.fetch_add(read as u64, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Client {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.check()?;
        let written = ready!(Pin::new(&mut this.stream).poll_write(cx, bytes))?;
        this.flow.down.fetch_add(written as u64, Ordering::Relaxed);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
