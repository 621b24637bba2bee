//! An outside world for maps: what it answers is a function of the host and the path of a request, and it keeps what was asked.

use std::net::SocketAddr;
use std::time::Instant;

use crate::lab::{ANY_HOST, HttpServer, Reply, public_row};
use crate::support::{Options, Service, workspace};

/// Names that lead to it, by http.
const HOSTS: [&str; 5] = [
    "site.test",
    "www.site.test",
    "docs.site.test",
    "other.test",
    "moved.test",
];

pub(super) fn text(body: &str) -> Reply {
    Reply::body(200, "text/plain", body)
}

pub(super) fn xml(body: impl Into<Vec<u8>>) -> Reply {
    Reply::body(200, "application/xml", body)
}

/// A page that says that there is none.
pub(super) fn none() -> Reply {
    status(404)
}

pub(super) fn status(status: u16) -> Reply {
    let body = "<title>Trouble</title><p>It is not there";
    Reply::body(status, "text/html", body)
}

/// A urlset of these addresses.
pub(super) fn urlset(addresses: impl IntoIterator<Item = String>) -> String {
    let entries: String = addresses
        .into_iter()
        .map(|url| format!("<url><loc>{url}</loc></url>\n"))
        .collect();
    format!(
        "<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{entries}</urlset>"
    )
}

/// An index of these sitemaps.
pub(super) fn index(addresses: &[&str]) -> String {
    let entries: String = addresses
        .iter()
        .map(|url| format!("<sitemap><loc>{url}</loc></sitemap>"))
        .collect();
    format!("<sitemapindex>{entries}</sitemapindex>")
}

/// A page with links to these.
pub(super) fn linking(title: &str, addresses: &[&str]) -> Reply {
    let links: String = addresses
        .iter()
        .map(|url| format!("<li><a href='{url}'>x</a>"))
        .collect();
    Reply::html(format!("<title>{title}</title><ul>{links}</ul>"))
}

/// The outside world, for as long as the process lives.
pub(super) struct World {
    address: SocketAddr,
    server: HttpServer,
}

impl World {
    pub(super) fn of(answer: impl Fn(&str, &str) -> Reply + Send + Sync + 'static) -> Self {
        let server = HttpServer::new(move |visit| answer(&visit.host, &visit.path));
        Self {
            address: server.listen(None),
            server,
        }
    }

    /// A service for which it is the outside.
    pub(super) async fn service(&self) -> Service {
        let hosts: Vec<String> = HOSTS
            .iter()
            .map(|host| public_row(&format!("{host}:80"), self.address))
            .collect();
        let closed = public_row("closed.test:80", "127.0.0.1:1");
        let config = format!(
            "[egress]\nconnect_to = {{ {}, {closed} }}",
            hosts.join(", ")
        );
        let manifest = Some(workspace().join("tests/programs/web-data.toml"));
        Service::start(Options {
            config,
            manifest,
            ..Options::default()
        })
        .await
    }

    /// What was asked for, in that order: `host/path?query`.
    pub(super) fn asked(&self) -> Vec<String> {
        let visits = self.server.visits();
        visits.iter().map(|visit| visit.address()).collect()
    }

    pub(super) fn asked_at(&self) -> Vec<Instant> {
        let visits = self.server.visits();
        visits.iter().map(|visit| visit.came).collect()
    }

    /// The most requests that were under way at a time.
    pub(super) fn most_open(&self) -> usize {
        self.server.most_at_once(ANY_HOST)
    }
}
