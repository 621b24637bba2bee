//! A resolver that speaks DNS over HTTPS as real ones do, and answers what a test says.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::{Certificate, Endpoint};

/// A question as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Without its last dot.
    pub(crate) name: String,
    pub(crate) record_type: u16,
    /// The whole message.
    pub(crate) message: Vec<u8>,
    /// `HTTP/2.0 POST /dns-query`.
    pub(crate) line: String,
    /// Of the request, names in lower case, in their order.
    pub(crate) headers: Vec<(String, String)>,
}

/// What it is answered with.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// A message, as it should be sent.
    Message(Vec<u8>),
    /// A status, with a text.
    Status(u16),
    /// A body of some type, with the status 200.
    Body(&'static str, Vec<u8>),
    /// A redirect to this place.
    Redirect(String),
    /// The stream is reset.
    Reset,
    /// The connection is closed before anything is said.
    Close,
    /// The connection stays open, and nothing is said or heard on it any more.
    Freeze,
}

/// What it offers in TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    Http2,
    Http1,
}

/// The server; it ends with the test's runtime.
pub(crate) struct Scripted {
    pub(crate) endpoint: Endpoint,
    kept: Arc<Kept>,
    _folder: TempDir,
    _serving: JoinSet<()>,
}

#[derive(Default)]
struct Kept {
    asked: Mutex<Vec<Asked>>,
    connections: AtomicUsize,
}

type Replying = Pin<Box<dyn Future<Output = Reply> + Send>>;
type Script = Arc<dyn Fn(Asked) -> Replying + Send + Sync>;

impl Scripted {
    /// Serves what the script says of each question, for as long as it takes to say it.
    pub(crate) async fn start<R>(script: impl Fn(Asked) -> R + Send + Sync + 'static) -> Self
    where
        R: Future<Output = Reply> + Send + 'static,
    {
        Self::speaking(Speaks::Http2, script).await
    }

    /// The same in another version of HTTP.
    pub(crate) async fn speaking<R>(
        speaks: Speaks,
        script: impl Fn(Asked) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Future<Output = Reply> + Send + 'static,
    {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let host = format!(
            "scripted-{}.resolver.test",
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let certificate = Certificate::of(&host);
        let folder = TempDir::new().expect("a temporary folder");
        let root = folder.path().join("certificate.pem");
        certificate.write(&root);
        let protocol = match speaks {
            Speaks::Http2 => "h2",
            Speaks::Http1 => "http/1.1",
        };
        let acceptor = TlsAcceptor::from(Arc::new(certificate.server(&[protocol])));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let kept = Arc::new(Kept::default());
        let script: Script = Arc::new(move |asked| Box::pin(script(asked)));
        let mut serving = JoinSet::new();
        serving.spawn(accept(listener, acceptor, Arc::clone(&kept), script));
        Self {
            endpoint: Endpoint {
                host,
                address,
                root,
            },
            kept,
            _folder: folder,
            _serving: serving,
        }
    }

    /// What it was asked, in the order in which it came.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.kept.asked.lock().expect("no panic").clone()
    }

    /// How many connections were made to it.
    pub(crate) fn connections(&self) -> usize {
        self.kept.connections.load(Ordering::Relaxed)
    }
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, kept: Arc<Kept>, script: Script) {
    let mut serving = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        kept.connections.fetch_add(1, Ordering::Relaxed);
        serving.spawn(serve(
            stream,
            acceptor.clone(),
            Arc::clone(&kept),
            Arc::clone(&script),
        ));
    }
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, kept: Arc<Kept>, script: Script) {
    // Whoever does not trust it, or wants another version, goes away.
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let end = Arc::new(End::default());
    let answer = {
        let end = Arc::clone(&end);
        service_fn(move |request: Request<Incoming>| {
            let (kept, script, end) = (Arc::clone(&kept), Arc::clone(&script), Arc::clone(&end));
            async move {
                let asked = read(request).await.expect("a question");
                kept.asked.lock().expect("no panic").push(asked.clone());
                respond(script(asked).await, &end).await
            }
        })
    };
    let builder = auto::Builder::new(TokioExecutor::new());
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), answer));
    tokio::select! {
        // A client that goes away in the middle is what some tests are for.
        _ = connection.as_mut() => {}
        () = end.closed.notified() => {}
        () = end.frozen.notified() => std::future::pending().await,
    }
}

/// How a connection ends without its client.
#[derive(Default)]
struct End {
    closed: Notify,
    frozen: Notify,
}

async fn read(request: Request<Incoming>) -> Option<Asked> {
    let version = if request.version() == Version::HTTP_2 {
        "HTTP/2.0"
    } else {
        "another version"
    };
    let line = format!("{version} {} {}", request.method(), request.uri().path());
    let text = |value: &hyper::header::HeaderValue| value.to_str().unwrap_or("no text").to_owned();
    let headers = request
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), text(value)))
        .collect();
    let message = request
        .into_body()
        .collect()
        .await
        .ok()?
        .to_bytes()
        .to_vec();
    let (mut labels, mut at) = (Vec::new(), 12);
    while let Some(length) = message.get(at).filter(|length| **length > 0) {
        let label = message.get(at + 1..at + 1 + usize::from(*length))?;
        labels.push(String::from_utf8_lossy(label).into_owned());
        at += 1 + label.len();
    }
    let record_type = u16::from_be_bytes([*message.get(at + 1)?, *message.get(at + 2)?]);
    Some(Asked {
        name: labels.join("."),
        record_type,
        message,
        line,
        headers,
    })
}

async fn respond(reply: Reply, end: &End) -> io::Result<Response<Full<Bytes>>> {
    let response = Response::builder();
    let (response, body) = match reply {
        Reply::Message(message) => (
            response.header("content-type", "application/dns-message"),
            message,
        ),
        Reply::Body(media_type, body) => (response.header("content-type", media_type), body),
        Reply::Status(status) => (response.status(status), b"not now".to_vec()),
        Reply::Redirect(location) => (
            response.status(302).header("location", location),
            Vec::new(),
        ),
        // An error of the service resets the stream.
        Reply::Reset => return Err(io::Error::other("reset")),
        Reply::Close => {
            end.closed.notify_one();
            std::future::pending().await
        }
        Reply::Freeze => {
            end.frozen.notify_one();
            std::future::pending().await
        }
    };
    Ok(response
        .body(Full::new(Bytes::from(body)))
        .expect("a response"))
}

impl Asked {
    /// An answer with this response code and records of this name, each by its type and its data.
    pub(crate) fn answer(&self, code: u8, records: &[(u16, &[u8])]) -> Vec<u8> {
        // After the header: the name, its end, type and class.
        let question = self
            .message
            .get(12..12 + self.name.len() + 6)
            .expect("a question");
        let count = u16::try_from(records.len())
            .expect("few records")
            .to_be_bytes();
        let head = [
            0,
            0,
            0x81,
            0x80 | code,
            0,
            1,
            count[0],
            count[1],
            0,
            0,
            0,
            0,
        ];
        let mut message = [&head, question].concat();
        for (record_type, data) in records {
            // The name is the question's; class IN, an hour.
            message.extend([0xc0, 12]);
            message.extend(record_type.to_be_bytes());
            message.extend([0, 1, 0, 0, 14, 16]);
            message.extend(u16::try_from(data.len()).expect("short data").to_be_bytes());
            message.extend(*data);
        }
        message
    }
}
