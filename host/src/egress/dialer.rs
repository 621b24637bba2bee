//! Connections to addresses that were judged, kept for one plugin each.
//!
//! A [`DialRoute`] is the only thing that is dialled, and is made of a public address or of one that the operator named. What a
//! URL says plays no part any more when a connection is made: it names the server in TLS and in the request, and that is all.
//! A connection is reused for the same plugin, origin and route alone.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::Connection as _;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use lru::LruCache;
use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;
use tokio::net::TcpStream;

use super::message::{HEADER_BYTES_MAX, HEADERS_MAX};
use super::overhead::CountedStream;
use super::traffic::REQUESTS_MAX;
use crate::base::address::Public;
use crate::observe::instrument::Counter;

/// A connection that is not there by then, TLS and all, will not be.
const CONNECT: Duration = Duration::from_secs(5);
/// After which an unused connection is closed.
const IDLE: Duration = Duration::from_secs(30);
/// Unused connections that are kept to one origin.
const IDLE_MAX: usize = 4;
/// Origins, over all plugins, to which connections are kept.
const ORIGINS_MAX: NonZeroUsize = NonZeroUsize::new(256).expect("it is not zero");
/// How long a connection of HTTP/2 may be silent while something is under way before the server is asked whether it is there,
/// and how long it has to say so. Whatever comes next has a connection of its own; without this, all would share the dead one
/// until the system gives it up, which takes it a quarter of an hour.
const SILENT: Duration = Duration::from_secs(4);
/// The same of a connection for questions. Together less than a question's time.
const SILENT_TO_QUESTIONS: Duration = Duration::from_secs(2);
/// What a server may send of one answer over HTTP/2 before it was read.
const WINDOW_BYTES: u32 = 256 * 1024;
/// The same of all answers on one connection: as much as all of a plugin's that wait to be read. Callers share connections, and
/// an answer that waits for its caller's room would take up the others' window.
const CONNECTION_WINDOW_BYTES: u32 = WINDOW_BYTES * REQUESTS_MAX;

/// Certificates that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("cannot read the root certificates in {path}: {source}")]
    Roots {
        path: PathBuf,
        source: rustls::pki_types::pem::Error,
    },
    #[error("a root certificate in {path} cannot be used: {source}")]
    Root {
        path: PathBuf,
        source: rustls::Error,
    },
    #[error("there is no root certificate in {path}")]
    NoRoot { path: PathBuf },
    #[error("TLS cannot be used: {0}")]
    Provider(#[from] rustls::Error),
}

/// Where a connection goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DialRoute(SocketAddr);

impl DialRoute {
    pub(crate) fn public(address: Public, port: u16) -> Self {
        Self(SocketAddr::new(address.address(), port))
    }

    /// An address that the operator named for this host and port.
    pub(super) fn named(address: SocketAddr) -> Self {
        Self(address)
    }

    pub(crate) fn address(self) -> SocketAddr {
        self.0
    }
}

/// Whose connections, and to what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    pub(crate) plugin: Arc<str>,
    pub(crate) secure: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) route: DialRoute,
    pub(crate) versions: HttpVersions,
}

/// Of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum HttpVersions {
    /// 1.1 and 2, as the server chooses in TLS.
    Any,
    /// 2 alone: requests that begin at once wait for one connection and share it, where each would dial for itself.
    Two,
}

pub(crate) type HttpClient = Client<InTime, Full<Bytes>>;

pub(crate) struct Dialer {
    tls: ClientConfig,
    dials: Arc<Counter>,
    /// The clients that hold connections. Never held over an await.
    kept: Mutex<LruCache<Origin, HttpClient>>,
}

impl Dialer {
    /// Trusts the system's roots and these.
    ///
    /// # Errors
    /// A file has no root certificate that can be used.
    pub(crate) fn new(extra_roots: &[PathBuf]) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let roots = read_roots(extra_roots)?;
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let tls = match Verifier::new_with_extra_roots(roots, provider) {
            Ok(verifier) => config
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier))
                .with_no_client_auth(),
            Err(error) => {
                tracing::warn!(target: "egress", %error, "no root certificate is trusted: no https request will succeed");
                config
                    .with_root_certificates(RootCertStore::empty())
                    .with_no_client_auth()
            }
        };
        Ok(Self {
            tls,
            dials: Arc::default(),
            kept: Mutex::new(LruCache::new(ORIGINS_MAX)),
        })
    }

    /// How often a connection was asked for.
    pub(crate) fn dials(&self) -> u64 {
        self.dials.get()
    }

    /// A connection of its own, for bytes that are nobody's here.
    ///
    /// # Errors
    /// There is none in time.
    pub(crate) async fn connect(&self, route: DialRoute) -> io::Result<TcpStream> {
        tokio::time::timeout(CONNECT, dial(route, Arc::clone(&self.dials)))
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    /// A client whose every connection goes to the origin's route.
    pub(crate) fn client(&self, origin: &Origin) -> HttpClient {
        let mut kept = self.kept.lock();
        let make = || self.make(origin.route, origin.versions);
        kept.get_or_insert_ref(origin, make).clone()
    }

    fn make(&self, route: DialRoute, versions: HttpVersions) -> HttpClient {
        let to = RouteConnector {
            route,
            dials: Arc::clone(&self.dials),
        };
        let silent = match versions {
            HttpVersions::Any => SILENT,
            HttpVersions::Two => SILENT_TO_QUESTIONS,
        };
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(self.tls.clone())
            .https_or_http();
        let connector = match versions {
            HttpVersions::Any => connector.enable_all_versions().wrap_connector(to),
            HttpVersions::Two => connector.enable_http2().wrap_connector(to),
        };
        Client::builder(TokioExecutor::new())
            .http2_only(versions == HttpVersions::Two)
            .http2_keep_alive_interval(silent)
            .http2_keep_alive_timeout(silent)
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_MAX)
            .http1_max_headers(HEADERS_MAX)
            .http1_max_buf_size(HEADER_BYTES_MAX)
            .http2_max_header_list_size(u32::try_from(HEADER_BYTES_MAX).unwrap_or(u32::MAX))
            .http2_initial_stream_window_size(WINDOW_BYTES)
            .http2_initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .build(InTime {
                connector,
                versions,
            })
    }
}

fn read_roots(paths: &[PathBuf]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let mut roots = Vec::new();
    for path in paths {
        let unread = |source| TlsError::Roots {
            path: path.clone(),
            source,
        };
        let before = roots.len();
        for certificate in CertificateDer::pem_file_iter(path).map_err(unread)? {
            let certificate = certificate.map_err(unread)?;
            let usable = RootCertStore::empty().add(certificate.clone());
            usable.map_err(|source| TlsError::Root {
                path: path.clone(),
                source,
            })?;
            roots.push(certificate);
        }
        if roots.len() == before {
            return Err(TlsError::NoRoot { path: path.clone() });
        }
    }
    Ok(roots)
}

/// Connects to one route, whatever it is asked for.
#[derive(Clone)]
pub(crate) struct RouteConnector {
    route: DialRoute,
    dials: Arc<Counter>,
}

type ConnectFuture<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

impl tower::Service<Uri> for RouteConnector {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = ConnectFuture<Self::Response, io::Error>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _uri: Uri) -> Self::Future {
        let dialled = dial(self.route, Arc::clone(&self.dials));
        Box::pin(async move { dialled.await.map(TokioIo::new) })
    }
}

/// The one place where a connection for a plugin is asked for. It is counted before that, whatever becomes of it.
async fn dial(route: DialRoute, dials: Arc<Counter>) -> io::Result<TcpStream> {
    dials.increment();
    let stream = TcpStream::connect(route.address()).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Bounds the time of a connection, because the client goes on making one after the request that wanted it is gone, and what
/// its server says beside answers.
#[derive(Clone)]
pub(crate) struct InTime {
    connector: HttpsConnector<RouteConnector>,
    versions: HttpVersions,
}

impl tower::Service<Uri> for InTime {
    type Response = TokioIo<
        CountedStream<TokioIo<<HttpsConnector<RouteConnector> as tower::Service<Uri>>::Response>>,
    >;
    type Error = tower::BoxError;
    type Future = ConnectFuture<Self::Response, tower::BoxError>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), tower::BoxError>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = tokio::time::timeout(CONNECT, self.connector.call(uri));
        let versions = self.versions;
        Box::pin(async move {
            let stream = connecting
                .await
                .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
            let two = versions == HttpVersions::Two || stream.connected().is_negotiated_h2();
            Ok(TokioIo::new(CountedStream::new(TokioIo::new(stream), two)))
        })
    }
}
