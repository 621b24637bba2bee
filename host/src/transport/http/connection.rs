//! Connections: accepted, bounded in number and in time, drained at the end.
//!
//! Both listeners (the public one and the operator's) use this file; it knows timers and a service, and no route.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, TRANSFER_ENCODING};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::activity::{ConnectionActivity, RequestUnderWay};
use super::compressor::ResponseCompressor;
use super::content::ResponseContent;
use super::envelope;
use super::guarded::GuardedStream;
use super::sending::{AnswerSending, StreamExecutor};
use crate::config::LimitSettings;
use crate::places::{ConnectionPlace, ConnectionRefused, ListenerPlaces, RequestPlace};

const HEAD_BYTES_MAX: u32 = 32 * 1024;
const STREAMS_MAX: u32 = 64;
/// What a peer may send of bodies before they are read, of a stream and of a connection: the least that HTTP/2 allows.
const WINDOW_BYTES: u32 = 65_535;
/// What hyper keeps of an answer before the socket takes it.
const SEND_BYTES_MAX: usize = 64 * 1024;
/// A peer is asked whether it is still there, and cut when it does not say so.
const PING_EVERY: Duration = Duration::from_secs(20);
const PONG_WITHIN: Duration = Duration::from_secs(10);
/// How often a full listener is looked at for a connection that has become idle.
const ROOM_EVERY: Duration = Duration::from_millis(50);

pub(crate) type HttpResponse = Response<ResponseContent>;

/// What all connections of a listener share.
#[derive(Clone)]
struct ListenerShared<S> {
    limits: LimitSettings,
    places: ListenerPlaces,
    compressor: ResponseCompressor,
    /// Owns the tasks: of connections, and of HTTP/2 streams.
    tasks: TaskTracker,
    service: S,
}

/// Serves connections until `stop` is cancelled, then drains: no new connection, running requests end, and what is left
/// after the drain time is cut.
pub(crate) async fn serve<S, F>(
    listener: TcpListener,
    limits: LimitSettings,
    places: ListenerPlaces,
    stop: CancellationToken,
    service: S,
) where
    S: Fn(Request<Incoming>, Arc<RequestPlace>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = HttpResponse> + Send + 'static,
{
    let tasks = TaskTracker::new();
    let shared = ListenerShared {
        limits,
        places,
        compressor: ResponseCompressor::new(),
        tasks: tasks.clone(),
        service,
    };
    let cut = CancellationToken::new();
    loop {
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
        let member = tokio::select! {
            () = stop.cancelled() => break,
            member = room(&shared.places, &stream) => match member {
                Some(member) => member,
                None => continue,
            },
        };
        let (stop, cut, shared) = (stop.clone(), cut.clone(), shared.clone());
        tasks.spawn(async move {
            tokio::select! {
                () = connection(stream, member, stop, shared) => {}
                () = cut.cancelled() => {}
            }
        });
    }
    drop(listener);
    tasks.close();
    let drained = tokio::time::timeout(limits.drain_ms.time(), tasks.wait()).await;
    if drained.is_err() {
        let left = tasks.len();
        tracing::warn!(
            tasks = left,
            "connections did not drain in time and are cut"
        );
        cut.cancel();
        tasks.wait().await;
    }
}

/// A place for a connection. Where there is none and nobody has more than the newcomer would, it waits, and others with it in
/// the kernel's backlog.
async fn room(places: &ListenerPlaces, stream: &TcpStream) -> Option<ConnectionPlace> {
    let address = match stream.peer_addr() {
        Ok(address) => address.ip(),
        Err(error) => {
            tracing::debug!(%error, "the peer is gone already");
            return None;
        }
    };
    loop {
        match places.admit(address) {
            Ok(member) => return Some(member),
            Err(ConnectionRefused::Peer) => return None,
            Err(ConnectionRefused::Full) => {
                tokio::time::timeout(ROOM_EVERY, places.left()).await.ok();
            }
        }
    }
}

/// Serves one connection until it ends, is idle or stuck for too long, or the process stops.
async fn connection<S, F>(
    stream: TcpStream,
    member: ConnectionPlace,
    stop: CancellationToken,
    shared: ListenerShared<S>,
) where
    S: Fn(Request<Incoming>, Arc<RequestPlace>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = HttpResponse> + Send + 'static,
{
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "the peer is gone already");
        return;
    }
    let limits = shared.limits;
    let activity = Arc::new(ConnectionActivity::of(Arc::clone(member.guest())));
    let io = TokioIo::new(GuardedStream::new(
        stream,
        Arc::clone(&activity),
        limits.header_ms.time(),
        limits.write_ms.time(),
    ));
    let builder = builder(StreamExecutor {
        tasks: shared.tasks.clone(),
        places: shared.places.clone(),
        write: limits.write_ms.time(),
        whole: 2 * limits.request_ms.time(),
    });
    let begun = Arc::clone(&activity);
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let visit = Arc::new(shared.places.visit(&member, request.headers()));
        answer(&shared, Arc::clone(&begun), visit, request)
    });
    let mut serving = std::pin::pin!(builder.serve_connection(io, service));
    let mut closing = false;
    loop {
        // A peer that was told of the end has as long to agree as it has for a head.
        let idle = if closing {
            limits.header_ms.time()
        } else {
            limits.idle_ms.time()
        };
        tokio::select! {
            biased;
            ended = serving.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                }
                return;
            }
            () = activity.is_cut() => {
                tracing::debug!("a connection is closed to make room for another");
                return;
            }
            () = activity.stuck_for(limits.write_ms.time()) => {
                tracing::debug!("a connection is cut: its peer does not read the response");
                return;
            }
            () = activity.idle_for(idle) => {
                if closing {
                    tracing::debug!("a connection is cut: its peer does not close it");
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
    shared: &ListenerShared<S>,
    activity: Arc<ConnectionActivity>,
    visit: Arc<RequestPlace>,
    request: Request<Incoming>,
) -> impl Future<Output = io::Result<Response<AnswerSending>>> + use<S, F>
where
    S: Fn(Request<Incoming>, Arc<RequestPlace>) -> F + Clone,
    F: Future<Output = HttpResponse>,
{
    let under_way = RequestUnderWay::begin(activity, Arc::clone(&visit));
    let time = shared.limits.request_ms.time();
    // A body of stated and of chunked length is read by the second alone (RFC 9112, 6.3). hyper does not tell that there
    // were both, so what follows any chunked body is not read as a request.
    let last = request.headers().contains_key(TRANSFER_ENCODING);
    let service = shared.service.clone();
    // On the heap, because each future around it would hold it twice, and hyper moves them about on its stack.
    let answered = shared
        .compressor
        .answer(request, move |request| Box::pin(service(request, visit)));
    async move {
        let (mut response, is_encoded) = answered.await;
        let visit = under_way.visit();
        let mut unsent = visit.unsent();
        if let Some(unsent) = unsent.as_mut().filter(|_| is_encoded) {
            unsent.shrink_to(response.body().own_bytes());
        }
        // Without a place there are few at a time, and then none: over HTTP/2 the stream is reset.
        let outside = if visit.is_inside() {
            None
        } else {
            Some(visit.outside().ok_or(io::ErrorKind::ConnectionRefused)?)
        };
        if last {
            envelope::set(response.headers_mut(), CONNECTION, "close");
        }
        let deadline = Instant::now() + time;
        Ok(response.map(|body| {
            let pieces = body.for_socket();
            AnswerSending::begin(pieces, deadline, under_way, unsent, outside)
        }))
    }
}

fn builder(streams: StreamExecutor) -> auto::Builder<StreamExecutor> {
    let mut builder = auto::Builder::new(streams);
    // Heads and idleness are timed here and in `guarded`.
    builder
        .http1()
        .header_read_timeout(None)
        .max_buf_size(HEAD_BYTES_MAX as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_send_buf_size(SEND_BYTES_MAX)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PONG_WITHIN);
    builder
}
