//! HTTP/2 streams that are begun and never ended by their client.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::channel::mpsc::{Receiver, channel};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use super::{Tally, connect};

type Body = StreamBody<Receiver<Result<Frame<Bytes>, Infallible>>>;

const CONNECTIONS: usize = 9;
/// As many as the server once took on one connection.
const STREAMS: usize = 256;
const BATCH_CONNECTIONS: usize = 4;
const BATCH_STREAMS: usize = 32;
const READS_A_BATCH: u64 = 16;
/// A stream that ended is begun anew no sooner than this: the attack costs little.
const PACE: Duration = Duration::from_secs(5);

/// Half of the streams take nothing of an answer, the others promise a body that never comes.
pub(super) fn streams(
    tasks: &mut JoinSet<()>,
    tally: &Arc<Tally>,
    from: SocketAddr,
    to: SocketAddr,
) {
    for _ in 0..CONNECTIONS {
        tasks.spawn(hold(Arc::clone(tally), (from, to), STREAMS, |number| {
            if number % 2 == 0 {
                return http::Request::get("http://test/openapi.json")
                    .body(None)
                    .expect("a request");
            }
            let request = http::Request::post("http://test/api/v1/tools/bank-qr");
            request
                .header("content-type", "application/json")
                .body(Some(Vec::new()))
                .expect("a request")
        }));
    }
}

/// Batches whose answers are thousands of times larger than they.
pub(super) fn batches(
    tasks: &mut JoinSet<()>,
    tally: &Arc<Tally>,
    from: SocketAddr,
    to: SocketAddr,
) {
    let read = |id| json!({ "jsonrpc": "2.0", "id": id, "method": "resources/read", "params": { "uri": "service://openapi" } });
    let batch = Value::Array((0..READS_A_BATCH).map(read).collect())
        .to_string()
        .into_bytes();
    for _ in 0..BATCH_CONNECTIONS {
        let batch = batch.clone();
        tasks.spawn(hold(
            Arc::clone(tally),
            (from, to),
            BATCH_STREAMS,
            move |_| {
                let request = http::Request::post("http://test/mcp")
                    .header("content-type", "application/json")
                    .header("accept", "application/json, text/event-stream")
                    .header("mcp-protocol-version", "2025-03-26");
                request.body(Some(batch.clone())).expect("a request")
            },
        ));
    }
}

/// Keeps so many streams open on a connection that takes nothing, and makes another when it ends. A body without bytes is
/// one that never comes.
async fn hold(
    tally: Arc<Tally>,
    (from, to): (SocketAddr, SocketAddr),
    streams: usize,
    request: impl Fn(usize) -> http::Request<Option<Vec<u8>>> + Clone + Send + 'static,
) {
    let mut pace = interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        pace.tick().await;
        let Ok(stream) = connect(from, to).await else {
            continue;
        };
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(0);
        let Ok((requests, connection)) = builder.handshake(TokioIo::new(stream)).await else {
            continue;
        };
        tally.connections.fetch_add(1, Ordering::Relaxed);
        let mut held = JoinSet::new();
        for number in 0..streams {
            let request = request.clone();
            held.spawn(begin_again(
                Arc::clone(&tally),
                requests.clone(),
                move || request(number),
            ));
        }
        drop(requests);
        // How the server ends it is its own affair.
        connection.await.ok();
    }
}

async fn begin_again(
    tally: Arc<Tally>,
    mut requests: SendRequest<Body>,
    request: impl Fn() -> http::Request<Option<Vec<u8>>>,
) {
    let mut pace = interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        pace.tick().await;
        if requests.ready().await.is_err() {
            return;
        }
        let (mut sender, receiver) = channel(1);
        let (head, bytes) = request().into_parts();
        let _never_ended = match bytes {
            Some(bytes) if bytes.is_empty() => Some(sender),
            Some(bytes) => {
                sender
                    .try_send(Ok(Frame::data(bytes.into())))
                    .expect("the channel is empty");
                None
            }
            None => None,
        };
        tally.requests.fetch_add(1, Ordering::Relaxed);
        let answered = requests
            .send_request(http::Request::from_parts(head, StreamBody::new(receiver)))
            .await;
        let succeeded = answered
            .as_ref()
            .is_ok_and(|answer| answer.status().is_success());
        tally.count(succeeded);
        if let Ok(answer) = answered {
            // Nothing comes, but the end of the stream.
            answer.into_body().collect().await.ok();
        }
    }
}
