//! HTTP/2 by prior knowledge, from an address of one's own: streams whose answers are not taken and whose bodies do not come.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures::channel::mpsc::{Receiver, Sender, channel};
use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame, Incoming};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use reqwest::Client;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use super::{Answer, Service, in_time};

pub(crate) type Body = StreamBody<Receiver<Result<Frame<Bytes>, Infallible>>>;
pub(crate) type Request = http::Request<Body>;
pub(crate) type Connection = JoinHandle<hyper::Result<()>>;

/// A socket to a listener, from a loopback address.
pub(crate) async fn dial(url: &str, from: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    let own: IpAddr = from.parse().expect("an address");
    socket
        .bind(SocketAddr::new(own, 0))
        .expect("the address is ours");
    let address = url
        .trim_start_matches("http://")
        .parse()
        .expect("an address and a port");
    in_time("a connection", socket.connect(address))
        .await
        .expect("the server accepts")
}

/// A connection whose streams may each be sent this many bytes that were not asked for.
pub(crate) async fn streams(
    service: &Service,
    from: &str,
    window_bytes: u32,
) -> (SendRequest<Body>, Connection) {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(window_bytes);
    let stream = TokioIo::new(dial(&service.base_url, from).await);
    let (requests, connection) = builder.handshake(stream).await.expect("it speaks HTTP/2");
    (requests, tokio::spawn(connection))
}

pub(crate) fn get(path: &str) -> Request {
    let (_, body) = channel(0);
    http::Request::get(format!("http://test{path}"))
        .body(StreamBody::new(body))
        .expect("a request")
}

/// A POST without a key, and what its body is to be sent by.
pub(crate) fn post_held() -> (Sender<Result<Frame<Bytes>, Infallible>>, Request) {
    let (sender, body) = channel(1);
    let request = http::Request::post("http://test/api/v1/tools/bank-qr")
        .header("content-type", "application/json");
    (
        sender,
        request.body(StreamBody::new(body)).expect("a request"),
    )
}

/// A message to `/mcp` of the version with batches.
pub(crate) fn post_mcp(message: &str) -> Request {
    let (mut sender, body) = channel(1);
    sender
        .try_send(Ok(Frame::data(Bytes::copy_from_slice(message.as_bytes()))))
        .expect("there is room for one");
    http::Request::post("http://test/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-03-26")
        .body(StreamBody::new(body))
        .expect("a request")
}

/// The same request with one header more.
pub(crate) fn with(mut request: Request, name: &'static str, value: &str) -> Request {
    request
        .headers_mut()
        .insert(name, value.parse().expect("a header value"));
    request
}

/// The head of the answer, which must come.
pub(crate) async fn ask(
    requests: &mut SendRequest<Body>,
    request: Request,
) -> http::Response<Incoming> {
    in_time("an answer", requests.send_request(request))
        .await
        .expect("it is answered")
}

/// A GET with the service's key from a loopback address.
pub(crate) async fn get_from(service: &Service, from: &str, path: &str) -> Answer {
    let own: IpAddr = from.parse().expect("an address");
    let client = Client::builder()
        .local_address(own)
        .timeout(Duration::from_secs(60))
        .pool_max_idle_per_host(0);
    let request = client
        .build()
        .expect("a client")
        .get(format!("{}{path}", service.base_url));
    Service::send(request.bearer_auth(service.key())).await
}
