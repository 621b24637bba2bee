//! Connections: accepted, bounded in number and in time, drained at the end.
//!
//! Both listeners (the public one and the operator's) use this file; it knows bytes, timers and a service, and no route.
//! hyper's own timers start once a protocol is chosen, so a connection that sends nothing, or half of the HTTP/2 preface,
//! would stay for ever: [`Guarded`] puts a deadline on those first bytes and on a peer that stops reading.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_http::compression::predicate::SizeAbove;
use tower_http::compression::{Compression, CompressionLayer};

use crate::config::Transport;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Smaller bodies are not worth compressing.
const COMPRESSED_FROM_BYTES: u64 = 1024;

pub(crate) type Reply = Response<Full<Bytes>>;

/// Serves connections until `stop` is cancelled, then drains: no new connection, running requests end, and what is left
/// after the drain time is cut.
pub(crate) async fn serve<S, F>(listener: TcpListener, transport: Transport, stop: CancellationToken, service: S)
where
    S: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Reply> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(transport.connections_max));
    let tracker = TaskTracker::new();
    let cut = CancellationToken::new();
    loop {
        let place = tokio::select! {
            () = stop.cancelled() => break,
            place = Arc::clone(&places).acquire_owned() => place.expect("the semaphore is never closed"),
        };
        let stream = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of file descriptors, most likely: wait until some connection has ended.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        let (stop, cut, service) = (stop.clone(), cut.clone(), service.clone());
        tracker.spawn(async move {
            let _place = place;
            tokio::select! {
                () = connection(stream, transport, stop, service) => {}
                () = cut.cancelled() => {}
            }
        });
    }
    drop(listener);
    tracker.close();
    if tokio::time::timeout(transport.drain, tracker.wait()).await.is_err() {
        tracing::warn!(connections = tracker.len(), "connections did not drain in time and are cut");
        cut.cancel();
        tracker.wait().await;
    }
}

async fn connection<S, F>(stream: TcpStream, transport: Transport, stop: CancellationToken, service: S)
where
    S: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Reply> + Send + 'static,
{
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "the peer is gone already");
        return;
    }
    let activity = Arc::new(Activity::default());
    let io = TokioIo::new(Guarded::new(stream, transport.header, transport.write));
    let builder = builder(&transport);
    let counted = Arc::clone(&activity);
    let service = tower::service_fn(move |request| {
        let busy = Busy::new(Arc::clone(&counted));
        let answered = service(request);
        async move { Ok::<_, Infallible>(answered.await.map(|body| Counted { body, _busy: busy })) }
    });
    let serving = builder.serve_connection(io, TowerToHyperService::new(compressed(service)));
    let mut serving = std::pin::pin!(serving);
    let mut stopping = false;
    loop {
        let ended = tokio::select! {
            ended = serving.as_mut() => ended,
            () = stop.cancelled(), if !stopping => {
                stopping = true;
                serving.as_mut().graceful_shutdown();
                continue;
            }
            () = activity.idle_for(transport.idle), if !stopping => {
                stopping = true;
                serving.as_mut().graceful_shutdown();
                continue;
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended early");
        }
        return;
    }
}

fn builder(transport: &Transport) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(transport.header)
        .max_headers(100)
        .max_buf_size(64 * 1024);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(256)
        .max_header_list_size(32 * 1024)
        .keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(10));
    builder
}

fn compressed<S>(service: S) -> Compression<S, SizeAbove> {
    use tower::Layer as _;
    CompressionLayer::new().compress_when(SizeAbove::new(COMPRESSED_FROM_BYTES)).layer(service)
}

/// How many requests a connection has under way, and when it last had one.
#[derive(Default)]
struct Activity {
    requests: AtomicUsize,
    /// Counts requests that began or ended, so that an idle check can tell whether anything happened.
    changes: AtomicU64,
}

impl Activity {
    /// Returns once nothing was under way for the whole of `time`.
    async fn idle_for(&self, time: Duration) {
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

struct Busy(Arc<Activity>);

impl Busy {
    fn new(activity: Arc<Activity>) -> Self {
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
struct Counted {
    body: Full<Bytes>,
    _busy: Busy,
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

/// A socket with two deadlines: until the first bytes have told the protocol, and on each write that the peer does not take.
struct Guarded {
    stream: TcpStream,
    /// How much of the HTTP/2 preface has come, while the protocol is unknown.
    preface: Option<usize>,
    first_bytes: Pin<Box<Sleep>>,
    write_deadline: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Guarded {
    fn new(stream: TcpStream, first_bytes: Duration, write_deadline: Duration) -> Self {
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
