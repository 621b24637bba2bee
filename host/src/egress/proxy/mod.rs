//! The forward proxy: the gate for programs that run for a plugin, such as a browser, and speak to an HTTP proxy.
//!
//! - `credential`: what was lent to whom. Without one nothing is asked for.
//! - `head`: the head of a request, read strictly. Pure.
//! - `tunnel`, `forward`: the two things that a proxy can be asked for, judged as a plugin's own request is.
//! - `client`: the bytes of one connection, counted and bounded.
//! - `refusal`: how it says no.
//!
//! It listens on loopback alone. A connection carries one request, so nothing that follows can be read as a second. A tunnel is
//! opened for `public` or the whole of an https origin, whatever the methods: nobody can see methods and paths in it. What is
//! asked for with an absolute URL is judged by method and path. It serves for as long as anything runs that may need it, and
//! ends with that.

mod client;
mod credential;
mod forward;
pub(super) mod head;
pub(super) mod refusal;
mod tunnel;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::client::PassageEnd;
pub(crate) use self::client::ProxyFlow;
use self::credential::ProxyLeases;
pub(crate) use self::credential::{ProxyLease, TooManyLent};
use self::head::{HEAD_BYTES_MAX, ProxyHead, ProxyRequest};
use self::refusal::ProxyRefusal;
use super::EgressClient;
use crate::base::line_rate::LineRate;
use crate::config;
use crate::observe::instrument::Gauge;

/// How long nothing is accepted where the process has no more files to open.
const PAUSE: Duration = Duration::from_millis(50);

/// A proxy that cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} (proxy.listen): {source}")]
pub(crate) struct ListenError {
    address: SocketAddr,
    source: io::Error,
}

/// The proxy of one process.
pub(crate) struct Proxy {
    settings: config::ProxySettings,
    address: SocketAddr,
    /// Until it is served.
    listener: Mutex<Option<TcpListener>>,
    lent: Arc<ProxyLeases>,
    connections: Arc<Gauge>,
    /// How many lines there may be of what is nobody's.
    lines: LineRate,
    /// Owns the tasks: of connections, and of leases that nobody holds.
    tasks: TaskTracker,
    /// Cancelled when all of it ends.
    over: CancellationToken,
}

impl Proxy {
    /// Listens. Whoever connects waits until it is served.
    ///
    /// # Errors
    /// The address cannot be had.
    pub(crate) async fn bind(settings: &config::ProxySettings) -> Result<Self, ListenError> {
        let failed = |source| ListenError {
            address: settings.listen,
            source,
        };
        let listener = TcpListener::bind(settings.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            settings: *settings,
            address,
            listener: Mutex::new(Some(listener)),
            lent: Arc::default(),
            connections: Arc::default(),
            lines: LineRate::default(),
            tasks: TaskTracker::new(),
            over: CancellationToken::new(),
        })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Open connections.
    pub(crate) fn open(&self) -> u64 {
        self.connections.get()
    }

    /// Credentials that live.
    pub(crate) fn lent(&self) -> usize {
        self.lent.count()
    }

    /// Lends what the door allows for a time, or until the lease is dropped or `gone` is cancelled.
    ///
    /// # Errors
    /// As many credentials live as may.
    pub(crate) fn lend(
        &self,
        door: EgressClient,
        lent_to: &str,
        time: Duration,
        gone: &CancellationToken,
    ) -> Result<ProxyLease, TooManyLent> {
        self.lent.lend(door, lent_to, time, gone)
    }

    /// Holds a lease until its time is over, for somebody who is not of this process.
    pub(crate) fn hold(&self, lease: ProxyLease, time: Duration) {
        let over = self.over.clone();
        self.tasks.spawn(async move {
            let _lease = lease;
            tokio::select! {
                () = tokio::time::sleep(time) => {}
                () = over.cancelled() => {}
            }
        });
    }

    /// Serves until it is ended, once a process.
    pub(crate) async fn serve(self: &Arc<Self>) {
        let listener = self.listener.lock().take();
        let Some(listener) = listener else { return };
        tokio::select! {
            () = self.over.cancelled() => {}
            never = self.accept(&listener) => match never {},
        }
        drop(listener);
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Ends every tunnel, request and lease.
    pub(crate) fn end(&self) {
        self.over.cancel();
    }

    async fn accept(self: &Arc<Self>, listener: &TcpListener) -> std::convert::Infallible {
        let places = Arc::new(Semaphore::new(self.settings.connections));
        loop {
            // More wait in the kernel's backlog.
            let place = Arc::clone(&places)
                .acquire_owned()
                .await
                .expect("the semaphore is never closed");
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection to the proxy");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            let (proxy, counted) = (Arc::clone(self), self.connections.hold());
            self.tasks.spawn(async move {
                let _held = (place, counted);
                tokio::select! {
                    biased;
                    () = proxy.connection(stream) => {}
                    () = proxy.over.cancelled() => {}
                }
            });
        }
    }

    /// Serves the one request of a connection.
    async fn connection(&self, mut stream: TcpStream) {
        // A peer that is gone is noticed when it is written to.
        stream.set_nodelay(true).ok();
        let mut received = BytesMut::new();
        let read = tokio::time::timeout(
            self.settings.head_ms.time(),
            read_head(&mut stream, &mut received),
        )
        .await;
        let head = match read.unwrap_or(Err(ProxyRefusal::LateHead)) {
            Ok(Some(head)) => head,
            Ok(None) => return,
            Err(refusal) => return self.refuse(stream, &received, &refusal).await,
        };
        let Some(grant) = self.lent.find(head.credential.as_deref()) else {
            let refusal = ProxyRefusal::Credential;
            return self.refuse(stream, &received, &refusal).await;
        };
        let received = received.freeze();
        let late = grant
            .until
            .min(Instant::now() + self.settings.total_ms.time());
        let end = PassageEnd {
            grant: &grant,
            late,
            settings: &self.settings,
            over: &self.over,
        };
        match &head.asked {
            ProxyRequest::Tunnel(_) => {
                tunnel::serve(stream, received.slice(head.bytes..), &head.asked, &end).await;
            }
            ProxyRequest::Request { method, .. } => {
                // The target is judged as it stands here; whoever reads the rest is given none.
                let line = format!("{method} / {:?}\r\n", head.version);
                let early = [line.as_bytes(), &received[head.line_bytes..]].concat();
                forward::serve(stream, Bytes::from(early), &head.asked, &end).await;
            }
        }
    }

    /// Says how much was refused that has no line of its own, at most once a second.
    pub(crate) fn tell_of_left_out(&self, now: Instant) {
        if let Some(left_out) = self.lines.report(now) {
            tracing::warn!(target: "egress", left_out, "too many log lines about requests that the proxy refused; some are dropped");
        }
    }

    /// Refuses what is nobody's: there is no plugin that the line could name.
    async fn refuse(&self, stream: TcpStream, received: &[u8], refusal: &ProxyRefusal) {
        let now = Instant::now();
        if self.lines.admit(1, now) {
            tracing::info!(target: "egress", verdict = refusal.verdict(), cause = %refusal, "proxied");
            self.tell_of_left_out(now);
        }
        if !received.is_empty() {
            refusal::send(stream, refusal).await;
        }
    }
}

/// Reads until the head is whole. `None` is a client that went before.
async fn read_head(
    stream: &mut TcpStream,
    received: &mut BytesMut,
) -> Result<Option<ProxyHead>, ProxyRefusal> {
    loop {
        received.reserve(4096);
        let before = received.len();
        if matches!(stream.read_buf(received).await, Ok(0) | Err(_)) {
            return Ok(None);
        }
        // A head ends with a line.
        if (received[before..].contains(&b'\n') || received.len() > HEAD_BYTES_MAX)
            && let Some(head) = ProxyHead::read(received)?
        {
            return Ok(Some(head));
        }
    }
}
