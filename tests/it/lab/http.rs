//! The one HTTP server of the tests: it answers what a test says, misbehaves as it says, and keeps what it was asked.
//!
//! It has threads of its own, so that a site goes on being what it is whatever a test's runtime does, and it serves for as long
//! as the process lives. A connection of HTTP/1 carries one request.

mod connection;

use std::collections::HashMap;
use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::Version;
use rustls::ServerConfig;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// Stands for all hosts where requests are counted by their host.
pub(crate) const ANY_HOST: &str = "*";
/// How long a test waits for a request; generous, because it is no measurement.
const PATIENCE: Duration = Duration::from_secs(60);

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .expect("a runtime")
});

/// A request that came, and what became of it.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    pub(crate) version: Version,
    pub(crate) method: String,
    pub(crate) host: String,
    /// With the query, as it was sent.
    pub(crate) path: String,
    /// Names in lower case, in their order.
    pub(crate) headers: Vec<(String, String)>,
    /// Of HTTP/1: the bytes of the request to the empty line.
    pub(crate) head: String,
    /// Its beginning alone, of a request that is read later.
    pub(crate) body: Bytes,
    pub(crate) came: Instant,
    /// When its answer was sent. `None` while there is none, and where its client went away before.
    pub(crate) answered: Option<Instant>,
    /// Whether its client went away before it had an answer.
    pub(crate) gone: bool,
}

impl Visit {
    /// Host and path with the query.
    pub(crate) fn address(&self) -> String {
        format!("{}{}", self.host, self.path)
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let mut headers = self.headers.iter();
        headers
            .find(|(known, _)| known == name)
            .map_or("", |(_, value)| value)
    }
}

/// What is done with a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Say {
        status: u16,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    },
    /// A body whose length nobody knows before its end, if it has one.
    Stream { body: Vec<u8>, ends: bool },
    /// These bytes in the place of an answer of HTTP/1.
    Raw(Vec<u8>, Then),
    /// Nothing, until the client goes.
    Hang,
    /// The end of the connection.
    Close,
    /// The end of the stream.
    Reset,
    /// The connection stays open, and nothing is said or heard on it any more.
    Freeze,
}

/// How a raw answer goes on.
#[derive(Clone, Debug)]
pub(crate) enum Then {
    Close,
    /// With nothing, until the client goes.
    Hang,
    /// With these bytes again and again.
    Repeat(Vec<u8>),
    /// With a byte at a time, until the client goes.
    Drip(u8),
}

impl Reply {
    pub(crate) fn body(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::bare(status, body).header("content-type", kind)
    }

    /// Without a header.
    pub(crate) fn bare(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::Say {
            status,
            headers: Vec::new(),
            body: body.into(),
        }
    }

    pub(crate) fn json(status: u16, body: &serde_json::Value) -> Self {
        Self::body(status, "application/json", body.to_string())
    }

    pub(crate) fn html(body: impl Into<Vec<u8>>) -> Self {
        Self::body(200, "text/html; charset=utf-8", body)
    }

    /// A page, as some providers have for each failure.
    pub(crate) fn page(status: u16, text: &str) -> Self {
        Self::body(
            status,
            "text/html",
            format!("<!DOCTYPE html><html><body><h1>{text}</h1></body></html>"),
        )
    }

    pub(crate) fn redirect(status: u16, location: impl Into<String>) -> Self {
        Self::bare(status, "").header("location", location)
    }

    pub(crate) fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Self::Say { headers, .. } = &mut self {
            headers.push((name.into(), value.into()));
        }
        self
    }

    /// An answer without an end, a byte at a time.
    pub(crate) fn drip() -> Self {
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n";
        Self::Raw(head.to_vec(), Then::Drip(b'.'))
    }

    /// An answer without an end, as fast as it is taken.
    pub(crate) fn flood(byte: u8) -> Self {
        let chunk = [b"10000\r\n".as_slice(), &[byte; 0x10000], b"\r\n"].concat();
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        Self::Raw(head.to_vec(), Then::Repeat(chunk))
    }
}

type Answering = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// What a server says, and what it has seen.
struct Script {
    answer: Box<dyn Fn(Visit) -> Answering + Send + Sync>,
    seen: watch::Sender<Seen>,
}

#[derive(Default)]
struct Seen {
    connections: usize,
    visits: Vec<Visit>,
    /// Requests that are under way, by their hosts, and the most that ever were.
    under_way: HashMap<String, (usize, usize)>,
}

/// A script behind any number of ports.
#[derive(Clone)]
pub(crate) struct HttpServer(Arc<Script>);

impl HttpServer {
    /// Each answer is made on a thread of its own, and may block it.
    pub(crate) fn new(answer: impl Fn(&Visit) -> Reply + Send + Sync + 'static) -> Self {
        let answer = Arc::new(answer);
        Self::patient(move |visit| {
            let answer = Arc::clone(&answer);
            let answering = tokio::task::spawn_blocking(move || answer(&visit));
            async { answering.await.expect("it answers") }
        })
    }

    /// Each answer takes as long as it waits for something.
    pub(crate) fn patient<R>(answer: impl Fn(Visit) -> R + Send + Sync + 'static) -> Self
    where
        R: Future<Output = Reply> + Send + 'static,
    {
        Self(Arc::new(Script {
            answer: Box::new(move |visit| Box::pin(answer(visit))),
            seen: watch::Sender::default(),
        }))
    }

    /// Serves on a port of its own, by TLS or in the clear.
    pub(crate) fn listen(&self, tls: Option<ServerConfig>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        drop(self.accept(listener, tls));
        address
    }

    /// Serves until the task is aborted.
    pub(crate) fn accept(
        &self,
        listener: TcpListener,
        tls: Option<ServerConfig>,
    ) -> JoinHandle<()> {
        listener.set_nonblocking(true).expect("it can be asked");
        let tls = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
        let script = Arc::clone(&self.0);
        RUNTIME.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("it listens");
            while let Ok((stream, _)) = listener.accept().await {
                script.seen.send_modify(|seen| seen.connections += 1);
                tokio::spawn(connection::serve(stream, tls.clone(), Arc::clone(&script)));
            }
        })
    }

    /// How many connections were made to it.
    pub(crate) fn connections(&self) -> usize {
        self.0.seen.borrow().connections
    }

    /// All requests, in their order.
    pub(crate) fn visits(&self) -> Vec<Visit> {
        self.0.seen.borrow().visits.clone()
    }

    /// The most requests that were under way at once for a host.
    pub(crate) fn most_at_once(&self, host: &str) -> usize {
        let seen = self.0.seen.borrow();
        seen.under_way.get(host).map_or(0, |(_, most)| *most)
    }

    /// Waits until so many of the requests are such.
    pub(crate) async fn until(&self, what: &str, often: usize, is_one: impl Fn(&Visit) -> bool) {
        let mut changes = self.0.seen.subscribe();
        let enough =
            |seen: &Seen| seen.visits.iter().filter(|visit| is_one(visit)).count() >= often;
        let waited = tokio::time::timeout(PATIENCE, changes.wait_for(enough)).await;
        assert!(
            waited.is_ok(),
            "nothing came of {what}: {:?}",
            self.visits()
        );
    }
}
