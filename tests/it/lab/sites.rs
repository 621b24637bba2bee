//! Hosts of the outside world, by TLS and in the clear: a test says what is answered to requests that hold a text of its own, and
//! reads which of these came.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use super::{Certificate, HttpServer, Reply, Visit};

/// A row of `egress.connect_to` for a place that stands for one of the public network.
pub(crate) fn public_row(from: &str, to: impl Display) -> String {
    format!("{from:?} = {{ to = \"{to}\", public = true }}")
}

/// The sites, for as long as the process lives.
pub(crate) struct Sites {
    server: HttpServer,
    /// The places that lead here, `host:port`.
    places: Vec<(String, SocketAddr)>,
    folder: TempDir,
    rules: Arc<Mutex<Vec<(String, Reply)>>>,
}

impl Sites {
    /// These hosts on port 443, and where they are in the clear too on port 80.
    pub(crate) fn start(hosts: &[&str], are_clear: bool) -> Self {
        let rules: Arc<Mutex<Vec<(String, Reply)>>> = Arc::default();
        let kept = Arc::clone(&rules);
        let server = HttpServer::new(move |visit| {
            let rules = kept.lock().expect("no rule panicked");
            // The last that fits counts.
            let mut fitting = rules.iter().rev();
            fitting.find(|(text, _)| holds(visit, text)).map_or_else(
                || Reply::page(404, "nobody said what to answer"),
                |(_, reply)| reply.clone(),
            )
        });
        let (certificate, folder) = (
            Certificate::of(hosts),
            TempDir::new().expect("a temporary folder"),
        );
        certificate.write(&folder.path().join("root.pem"));
        let mut ports = vec![(443, server.listen(Some(certificate.server(&[]))))];
        if are_clear {
            ports.push((80, server.listen(None)));
        }
        let places = hosts.iter().flat_map(|host| {
            let place = |(port, at): &(u16, SocketAddr)| (format!("{host}:{port}"), *at);
            ports.iter().map(place).collect::<Vec<_>>()
        });
        Self {
            places: places.collect(),
            server,
            folder,
            rules,
        }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root.pem")
    }

    /// The lines under `[egress]` that lead to it.
    pub(crate) fn configuration(&self) -> String {
        let places = self.places.iter();
        let rows: Vec<String> = places.map(|(from, to)| public_row(from, to)).collect();
        format!(
            "[egress]\nextra_roots = [{:?}]\nconnect_to = {{ {} }}\n",
            self.root(),
            rows.join(", ")
        )
    }

    /// Answers requests that hold this text: `GET host/path?query`, or in their bodies.
    pub(crate) fn answer(&self, holds: &str, reply: Reply) {
        let mut rules = self.rules.lock().expect("no rule panicked");
        rules.push((holds.to_owned(), reply));
    }

    /// The requests that hold this text.
    pub(crate) fn asked(&self, text: &str) -> Vec<Visit> {
        let mut visits = self.server.visits();
        visits.retain(|visit| holds(visit, text));
        visits
    }
}

fn holds(visit: &Visit, text: &str) -> bool {
    let line = format!("{} {}", visit.method, visit.address());
    line.contains(text) || String::from_utf8_lossy(&visit.body).contains(text)
}
