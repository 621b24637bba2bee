//! Connections: accepted, bounded in number and in time, drained at the end.
//!
//! Both listeners (the public one and the operator's) use this file; it knows timers and a service, and no route.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_http::compression::predicate::SizeAbove;
use tower_http::compression::{Compression, CompressionLayer};

use super::activity::{Activity, Busy, Counted};
use super::guarded::Guarded;
use crate::config::Transport;

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
        async move { Ok::<_, Infallible>(answered.await.map(|body| Counted::new(body, busy))) }
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
