//! TLS and HTTP/2: who is trusted, and connections that are used again.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::{dials, fetch, fetch_by, outcome};
use crate::support::{Options, Service, certificate, workspace};

/// A site that says which version of HTTP it was asked in, and its certificate as PEM.
pub(super) async fn serve() -> (SocketAddr, String) {
    let (mut config, pem) = certificate(&["secure.test"]);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // Whoever does not trust the site goes away.
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let told = service_fn(async |request: Request<_>| {
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(said(&request)))))
                });
                auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), told).await.ok();
            });
        }
    });
    (address, pem)
}

fn said(request: &Request<hyper::body::Incoming>) -> String {
    format!("{:?} {} {}", request.version(), request.uri().host().unwrap_or("no host"), request.uri().path())
}

pub(super) async fn start(site: SocketAddr, roots: &[&Path]) -> Service {
    start_plugins("fetches.toml", site, roots).await
}

async fn start_plugins(manifest: &str, site: SocketAddr, roots: &[&Path]) -> Service {
    let connect_to = ["secure.test:443", "other.test:443", "secure.test:80"];
    let connect_to: Vec<String> = connect_to.iter().map(|host| format!("{host:?} = \"{site}\"")).collect();
    let config = format!("[egress]\nextra_roots = {roots:?}\nconnect_to = {{ {} }}", connect_to.join(", "));
    let manifest = Some(workspace().join("tests/programs").join(manifest));
    Service::start(Options { config, manifest, ..Options::default() }).await
}

#[tokio::test]
async fn a_trusted_site_is_spoken_to_over_one_connection_of_http_2() {
    let (site, certificate) = serve().await;
    let folder = TempDir::new().expect("a temporary folder");
    let root = folder.path().join("root.pem");
    std::fs::write(&root, certificate).expect("it is written");
    let service = start(site, &[&root]).await;
    for path in ["/a", "/b", "/c"] {
        let told = fetch(&service, json!({ "url": format!("https://secure.test{path}") })).await;
        assert_eq!(told["text"], format!("HTTP/2.0 secure.test {path}"), "{told}");
    }
    assert_eq!(fetch(&service, json!({ "url": "https://secure.test/", "times": 20 })).await["outcomes"], "ok 20");
    assert_eq!(dials(&service).await, 1.0);
    // Another name is another site, whatever its address.
    assert_eq!(outcome(&service, json!({ "url": "https://other.test/" })).await, "unreachable");
    assert_eq!(outcome(&service, json!({ "url": "http://secure.test/" })).await, "bad_response");
}

#[tokio::test]
async fn a_site_that_nobody_vouches_for_is_unreachable() {
    let (site, _) = serve().await;
    let service = start(site, &[]).await;
    assert_eq!(outcome(&service, json!({ "url": "https://secure.test/" })).await, "unreachable");
}

#[tokio::test]
async fn two_plugins_never_share_a_connection() {
    let (site, certificate) = serve().await;
    let folder = TempDir::new().expect("a temporary folder");
    let root = folder.path().join("root.pem");
    std::fs::write(&root, certificate).expect("it is written");
    let service = start_plugins("fetches-twice.toml", site, &[&root]).await;
    for (plugin, expected) in [("fetches", 1.0), ("fetches-too", 2.0), ("fetches", 2.0), ("fetches-too", 2.0)] {
        let input = json!({ "url": "https://secure.test/" });
        let told = fetch_by(&service, &format!("/api/v1/test/{plugin}"), input).await;
        assert_eq!(told["outcome"], "ok", "{told}");
        assert_eq!(dials(&service).await, expected, "{plugin}");
    }
}
