//! Connections: accepted, bounded in number and in time, drained at the end.
//!
//! Both listeners (the public one and the operator's) use this file; it knows timers and a service, and no route.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, TRANSFER_ENCODING, VARY};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service as _;
use tower_http::compression::predicate::{NotForContentType, Predicate as _, SizeAbove};
use tower_http::compression::{Compression, CompressionBody};

use super::activity::{Activity, Sending, UnderWay};
use super::content::{Content, Pieces};
use super::guarded::Guarded;
use crate::config::Transport;
use crate::metrics::Gauge;

/// Smaller bodies are not worth compressing.
const COMPRESSED_FROM_BYTES: u64 = 1024;
const HEAD_BYTES_MAX: u32 = 32 * 1024;
const STREAMS_MAX: u32 = 256;
/// A peer is asked whether it is still there, and cut when it does not say so.
const PING_EVERY: Duration = Duration::from_secs(20);
const PONG_WITHIN: Duration = Duration::from_secs(10);

pub(crate) type Reply = Response<Content>;
type Answer = Response<Sending<CompressionBody<Pieces>>>;

/// Whether a request found a place among those in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Taken,
    Full,
}

/// The other end of a request's connection; each request carries it among its extensions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// What of one listener is taken: shared with whoever tells the operator.
#[derive(Clone)]
pub(crate) struct Places {
    in_flight_max: usize,
    /// Has a place for each request that may be under way at once.
    in_flight: Arc<Semaphore>,
    connections: Arc<Gauge>,
}

impl Places {
    pub(crate) fn new(in_flight_max: usize) -> Self {
        Self { in_flight_max, in_flight: Arc::new(Semaphore::new(in_flight_max)), connections: Arc::default() }
    }

    /// Requests whose answers are not sent yet.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight_max - self.in_flight.available_permits()
    }

    /// Open connections.
    pub(crate) fn open(&self) -> u64 {
        self.connections.get()
    }
}

/// What all connections of a listener share.
#[derive(Clone)]
struct Shared<S> {
    transport: Transport,
    in_flight: Arc<Semaphore>,
    /// Owns the tasks: of connections, and of HTTP/2 streams.
    tasks: TaskTracker,
    service: S,
}

/// Serves connections until `stop` is cancelled, then drains: no new connection, running requests end, and what is left
/// after the drain time is cut.
pub(crate) async fn serve<S, F>(
    listener: TcpListener,
    transport: Transport,
    taken: Places,
    stop: CancellationToken,
    service: S,
) where
    S: Fn(Request<Incoming>, Room) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Reply> + Send + 'static,
{
    let tasks = TaskTracker::new();
    let Places { in_flight, connections, .. } = taken;
    let shared = Shared { transport, in_flight, tasks: tasks.clone(), service };
    let places = Arc::new(Semaphore::new(transport.connections_max));
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
        let (stop, cut, shared) = (stop.clone(), cut.clone(), shared.clone());
        let counted = connections.hold();
        tasks.spawn(async move {
            let _held = (place, counted);
            tokio::select! {
                () = connection(stream, stop, shared) => {}
                () = cut.cancelled() => {}
            }
        });
    }
    drop(listener);
    tasks.close();
    if tokio::time::timeout(transport.drain, tasks.wait()).await.is_err() {
        tracing::warn!(tasks = tasks.len(), "connections did not drain in time and are cut");
        cut.cancel();
        tasks.wait().await;
    }
}

/// Serves one connection until it ends, is idle or stuck for too long, or the process stops.
async fn connection<S, F>(stream: TcpStream, stop: CancellationToken, shared: Shared<S>)
where
    S: Fn(Request<Incoming>, Room) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Reply> + Send + 'static,
{
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "the peer is gone already");
        return;
    }
    let peer = match stream.peer_addr() {
        Ok(address) => Peer(address.ip()),
        Err(error) => {
            tracing::debug!(%error, "the peer is gone already");
            return;
        }
    };
    let transport = shared.transport;
    let activity = Arc::new(Activity::default());
    let io = TokioIo::new(Guarded::new(stream, Arc::clone(&activity), transport.header, transport.write));
    let builder = builder(Streams { tasks: shared.tasks.clone(), time: 2 * transport.request });
    let begun = Arc::clone(&activity);
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        answer(&shared, Arc::clone(&begun), request)
    });
    let mut serving = std::pin::pin!(builder.serve_connection(io, service));
    let mut closing = false;
    loop {
        // A peer that was told of the end has as long to agree as it has for a head.
        let idle = if closing { transport.header } else { transport.idle };
        tokio::select! {
            biased;
            ended = serving.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                }
                return;
            }
            () = activity.stuck_for(transport.write) => {
                tracing::debug!("a peer that takes no answer is cut");
                return;
            }
            () = activity.idle_for(idle) => {
                if closing {
                    tracing::debug!("a peer that does not close is cut");
                    return;
                }
            }
            () = stop.cancelled(), if !closing => {}
        }
        closing = true;
        serving.as_mut().graceful_shutdown();
    }
}

/// One request, counted from here until its answer is sent.
fn answer<S, F>(
    shared: &Shared<S>,
    activity: Arc<Activity>,
    request: Request<Incoming>,
) -> impl Future<Output = Result<Answer, Infallible>> + use<S, F>
where
    S: Fn(Request<Incoming>, Room) -> F,
    F: Future<Output = Reply>,
{
    let place = Arc::clone(&shared.in_flight).try_acquire_owned().ok();
    let room = if place.is_some() { Room::Taken } else { Room::Full };
    let under_way = UnderWay::begin(activity, place);
    let time = shared.transport.request;
    // A body of stated and of chunked length is read by the second alone (RFC 9112, 6.3). hyper does not tell that there
    // were both, so what follows any chunked body is not read as a request.
    let last = request.headers().contains_key(TRANSFER_ENCODING);
    let service = tower::service_fn(|request| {
        let replied = (shared.service)(request, room);
        async move { Ok::<_, Infallible>(Pieces::of(replied.await)) }
    });
    // A stream of events would wait in the encoder.
    let worthwhile = SizeAbove::new(COMPRESSED_FROM_BYTES).and(NotForContentType::SSE);
    let answered = Compression::new(service).compress_when(worthwhile).call(request);
    async move {
        let mut response = answered.await?;
        // Where a client takes no encoding at all, the layer says 406 in place of an answer that was made already.
        *response.status_mut() = response.body().get_ref().status();
        if last {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if response.status() == StatusCode::NOT_MODIFIED {
            response.headers_mut().append(VARY, HeaderValue::from_static("accept-encoding"));
        }
        Ok(response.map(|body| Sending::begin(body, Instant::now() + time, under_way)))
    }
}

fn builder(streams: Streams) -> auto::Builder<Streams> {
    let mut builder = auto::Builder::new(streams);
    // Heads and idleness are timed here and in `guarded`.
    builder.http1().header_read_timeout(None).max_buf_size(HEAD_BYTES_MAX as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PONG_WITHIN);
    builder
}

/// Runs HTTP/2 streams as tasks that the listener owns. Each has an end: a peer may let one stream stand for ever while
/// others go on, and hyper asks for nothing of an answer that has no window.
#[derive(Clone)]
struct Streams {
    tasks: TaskTracker,
    time: Duration,
}

impl<F> hyper::rt::Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let time = self.time;
        self.tasks.spawn(async move {
            if tokio::time::timeout(time, stream).await.is_err() {
                tracing::debug!("a stream whose answer was not taken is reset");
            }
        });
    }
}
