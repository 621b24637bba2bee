//! TLS and HTTP/2: who is trusted, and connections that are used again.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::StreamExt as _;
use http_body_util::combinators::BoxBody;
use http_body_util::{Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

use super::traffic::{callers, fetch_as, while_held};
use super::{dials, fetch, fetch_by, outcome};
use crate::support::{Options, Service, certificate, in_time, public_row, workspace};

/// One frame of a body that is made of several.
const PIECE_BYTES: usize = 16 << 10;

/// A connection that can fall silent for ever: nothing that is sent is taken any more, and nothing is sent.
struct Dying {
    stream: TcpStream,
    dead: Arc<AtomicBool>,
}

impl Dying {
    fn poll<T>(
        self: Pin<&mut Self>,
        poll: impl FnOnce(Pin<&mut TcpStream>) -> Poll<std::io::Result<T>>,
    ) -> Poll<std::io::Result<T>> {
        let this = self.get_mut();
        if this.dead.load(Ordering::Relaxed) {
            Poll::Pending
        } else {
            poll(Pin::new(&mut this.stream))
        }
    }
}

impl AsyncRead for Dying {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        self.poll(|stream| stream.poll_read(cx, buf))
    }
}

impl AsyncWrite for Dying {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.poll(|stream| stream.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.poll(|stream| stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.poll(|stream| stream.poll_shutdown(cx))
    }
}

/// A site that says which version of HTTP it was asked in, and its certificate as PEM. Below `/headers/` it has so many of them,
/// below `/header/` one of so many bytes, below `/streamed/` and `/begins/` a body of so many, whole or without its end; at
/// `/dies` its connection dies, and at `/half` its body stops.
pub(super) async fn serve() -> (SocketAddr, String) {
    serve_telling(Arc::default()).await
}

/// The same, which tells when `/half` is asked for, or what begins and does not end.
async fn serve_telling(half: Arc<Notify>) -> (SocketAddr, String) {
    let (mut config, pem) = certificate(&["secure.test"]);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            let (dead, half) = (Arc::new(AtomicBool::new(false)), Arc::clone(&half));
            let stream = Dying {
                stream,
                dead: Arc::clone(&dead),
            };
            tokio::spawn(async move {
                // Whoever does not trust the site goes away.
                let Ok(stream) = acceptor.accept(stream).await else {
                    return;
                };
                let told = service_fn(|request: Request<_>| {
                    match request.uri().path() {
                        "/dies" => dead.store(true, Ordering::Relaxed),
                        path if path == "/half" || path.starts_with("/begins/") => {
                            half.notify_one();
                        }
                        _ => {}
                    }
                    async move { Ok::<_, Infallible>(answer(&request)) }
                });
                auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), told)
                    .await
                    .ok();
            });
        }
    });
    (address, pem)
}

/// A body of so many bytes, whose length nobody knows before its end.
fn pieces(bytes: usize) -> impl futures::Stream<Item = Result<Frame<Bytes>, Infallible>> {
    let piece = move |at| {
        Ok(Frame::data(Bytes::from(vec![
            b'x';
            PIECE_BYTES.min(bytes - at)
        ])))
    };
    futures::stream::iter((0..bytes).step_by(PIECE_BYTES).map(piece))
}

fn answer(request: &Request<Incoming>) -> Response<BoxBody<Bytes, Infallible>> {
    let path = request.uri().path();
    let said = format!(
        "{:?} {} {path}",
        request.version(),
        request.uri().host().unwrap_or("no host")
    );
    let whole = Full::new(Bytes::from(said));
    let number = |text: &str| text.parse::<usize>().expect("a number");
    if path == "/half" {
        let half = futures::stream::once(async { Ok(Frame::data(Bytes::from_static(b"half"))) });
        return Response::new(BoxBody::new(StreamBody::new(
            half.chain(futures::stream::pending()),
        )));
    }
    if let Some(bytes) = path.strip_prefix("/streamed/").map(number) {
        return Response::new(BoxBody::new(StreamBody::new(pieces(bytes))));
    }
    if let Some(bytes) = path.strip_prefix("/begins/").map(number) {
        return Response::new(BoxBody::new(StreamBody::new(
            pieces(bytes).chain(futures::stream::pending()),
        )));
    }
    let mut response = Response::new(BoxBody::new(whole));
    if let Some(count) = path.strip_prefix("/headers/").map(number) {
        let names =
            (0..count).map(|number| HeaderName::try_from(format!("x-{number}")).expect("a name"));
        response
            .headers_mut()
            .extend(names.map(|name| (name, HeaderValue::from_static("1"))));
    }
    if let Some(bytes) = path.strip_prefix("/header/").map(number) {
        let value = HeaderValue::try_from("x".repeat(bytes)).expect("a value");
        response.headers_mut().insert("x-long", value);
    }
    response
}

/// The service, and the folder of what it trusts.
async fn start_trusting(half: Arc<Notify>) -> (TempDir, Service) {
    let (site, certificate) = serve_telling(half).await;
    let folder = TempDir::new().expect("a temporary folder");
    let root = folder.path().join("root.pem");
    std::fs::write(&root, certificate).expect("it is written");
    let service = start(site, &[&root]).await;
    (folder, service)
}

pub(super) async fn start(site: SocketAddr, roots: &[&Path]) -> Service {
    start_plugins("fetches.toml", site, roots).await
}

async fn start_plugins(manifest: &str, site: SocketAddr, roots: &[&Path]) -> Service {
    let connect_to = ["secure.test:443", "other.test:443", "secure.test:80"];
    let connect_to: Vec<String> = connect_to
        .iter()
        .map(|host| public_row(host, site))
        .collect();
    let config = format!(
        "[egress]\nextra_roots = {roots:?}\nconnect_to = {{ {} }}",
        connect_to.join(", ")
    );
    let manifest = Some(workspace().join("tests/programs").join(manifest));
    Service::start(Options {
        config,
        manifest,
        ..Options::default()
    })
    .await
}

#[tokio::test]
async fn a_trusted_site_is_spoken_to_over_one_connection_of_http_2() {
    let (site, certificate) = serve().await;
    let folder = TempDir::new().expect("a temporary folder");
    let root = folder.path().join("root.pem");
    std::fs::write(&root, certificate).expect("it is written");
    let service = start(site, &[&root]).await;
    for path in ["/a", "/b", "/c"] {
        let told = fetch(
            &service,
            json!({ "url": format!("https://secure.test{path}") }),
        )
        .await;
        assert_eq!(
            told["text"],
            format!("HTTP/2.0 secure.test {path}"),
            "{told}"
        );
    }
    assert_eq!(
        fetch(
            &service,
            json!({ "url": "https://secure.test/", "times": 20 })
        )
        .await["outcomes"],
        "ok 20"
    );
    assert_eq!(dials(&service).await, 1.0);
    // Another name is another site, whatever its address.
    assert_eq!(
        outcome(&service, json!({ "url": "https://other.test/" })).await,
        "unreachable"
    );
    assert_eq!(
        outcome(&service, json!({ "url": "http://secure.test/" })).await,
        "bad_response"
    );
}

/// Callers share the connection; each answer here takes most of its caller's room, so that the next waits to be read.
#[tokio::test]
async fn answers_that_wait_for_room_hold_up_no_others_of_their_connection() {
    let begun = Arc::new(Notify::new());
    let (_folder, service) = start_trusting(Arc::clone(&begun)).await;
    let at = |path: &str, times: u32, total_ms: u32| {
        let url = format!("https://secure.test{path}");
        json!({ "url": url, "times": times, "response_bytes": 16 << 20, "idle_ms": 30_000, "total_ms": total_ms })
    };
    // The connection is there before all ask at once.
    assert_eq!(fetch(&service, at("/a", 1, 5000)).await["outcome"], "ok");
    assert_eq!(
        fetch(&service, at("/streamed/1000000", 8, 20_000)).await["outcomes"],
        "ok 8"
    );
    let callers = callers(&service, 2);
    let held = fetch_as(&service, &callers[0], at("/begins/1000000", 8, 50_000));
    let others = async {
        begun.notified().await;
        for path in ["/a", "/streamed/1000000", "/a"] {
            let told = fetch_as(&service, &callers[1], at(path, 1, 5000)).await;
            assert_eq!(told["outcome"], "ok", "{path}: {told}");
        }
    };
    while_held(held, others).await;
    assert_eq!(
        dials(&service).await,
        1.0,
        "all of this came over one connection"
    );
}

#[tokio::test]
async fn a_head_has_its_limits_over_http_2_too() {
    let (_folder, service) = start_trusting(Arc::default()).await;
    let outcome_of = async |path: &str| {
        outcome(
            &service,
            json!({ "url": format!("https://secure.test{path}") }),
        )
        .await
    };
    assert_eq!(outcome_of("/headers/100").await, "ok");
    assert_eq!(outcome_of("/headers/129").await, "headers_too_large");
    assert_eq!(outcome_of("/header/60000").await, "ok");
    for bytes in [66_000, 1_000_000] {
        let refused = outcome_of(&format!("/header/{bytes}")).await;
        assert!(
            ["headers_too_large", "bad_response"].contains(&refused.as_str()),
            "{bytes}: {refused}"
        );
    }
    assert_eq!(outcome_of("/").await, "ok");
}

#[tokio::test]
async fn a_connection_that_died_without_a_word_is_given_up() {
    let asked = Arc::new(Notify::new());
    let (_folder, service) = start_trusting(Arc::clone(&asked)).await;
    let patient = |path: &str| {
        let url = format!("https://secure.test{path}");
        json!({ "url": url, "first_byte_ms": 60_000, "idle_ms": 30_000, "total_ms": 120_000 })
    };
    assert_eq!(outcome(&service, patient("/")).await, "ok");
    let half = outcome(&service, patient("/half"));
    let dies = async {
        // It is asked for on the connection on which the body is under way.
        in_time("it is asked for", asked.notified()).await;
        outcome(&service, patient("/dies")).await
    };
    assert_eq!(
        tokio::join!(half, dies),
        ("bad_response".to_owned(), "first_byte_late".to_owned())
    );
    assert_eq!(dials(&service).await, 1.0);
    // Whatever comes next has a connection of its own, at once.
    assert_eq!(
        outcome(&service, json!({ "url": "https://secure.test/" })).await,
        "ok"
    );
    assert_eq!(dials(&service).await, 2.0);
}

#[tokio::test]
async fn a_site_that_nobody_vouches_for_is_unreachable() {
    let (site, _) = serve().await;
    let service = start(site, &[]).await;
    assert_eq!(
        outcome(&service, json!({ "url": "https://secure.test/" })).await,
        "unreachable"
    );
}

#[tokio::test]
async fn two_plugins_never_share_a_connection() {
    let (site, certificate) = serve().await;
    let folder = TempDir::new().expect("a temporary folder");
    let root = folder.path().join("root.pem");
    std::fs::write(&root, certificate).expect("it is written");
    let service = start_plugins("fetches-twice.toml", site, &[&root]).await;
    for (plugin, expected) in [
        ("fetches", 1.0),
        ("fetches-too", 2.0),
        ("fetches", 2.0),
        ("fetches-too", 2.0),
    ] {
        let input = json!({ "url": "https://secure.test/" });
        let told = fetch_by(&service, &format!("/api/v1/test/{plugin}"), input).await;
        assert_eq!(told["outcome"], "ok", "{told}");
        assert_eq!(dials(&service).await, expected, "{plugin}");
    }
}
