//! Registries: RDAP services over TLS and port-43 servers, on loopback ports that `connect_to` leads to.
//!
//! What each answers is said by the test, by host and question, and may change under way; every question is written down.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use crate::lab::{Certificate, HttpServer, Reply, Then, Visit, listen, public_row};

/// A port that nobody listens on.
const CLOSED: &str = "127.0.0.1:1";

/// What a server does when it is asked.
#[derive(Clone, Debug)]
pub(crate) enum Does {
    /// Port 43: these bytes, and the end.
    Says(Vec<u8>),
    /// RDAP: status and headers as they stand, and a body.
    Answers(String, Vec<u8>),
    /// Ends the connection without an answer: on port 43 with a reset.
    Breaks,
    /// Begins an answer, and goes on never.
    Stalls,
    /// Answers without end.
    Floods,
}

impl Does {
    pub(crate) fn says(text: &str) -> Self {
        Does::Says(text.replace('\n', "\r\n").into_bytes())
    }

    /// An RDAP answer with a status.
    pub(crate) fn rdap(status: u16, body: &str) -> Self {
        Does::Answers(
            format!("{status} Status\r\ncontent-type: application/rdap+json"),
            body.into(),
        )
    }

    pub(crate) fn redirects(location: &str) -> Self {
        Does::Answers(format!("302 Found\r\nlocation: {location}"), Vec::new())
    }
}

/// What is scripted and what was asked, both as `host question`.
#[derive(Default)]
struct RegistryScript {
    does: Mutex<HashMap<String, Does>>,
    asked: Mutex<Vec<String>>,
}

impl RegistryScript {
    fn ask(&self, question: String) -> Does {
        let does = self
            .does
            .lock()
            .expect("no writer panicked")
            .get(&question)
            .cloned();
        self.asked
            .lock()
            .expect("no writer panicked")
            .push(question);
        does.unwrap_or(Does::Says(Vec::new()))
    }
}

/// A set of registries. It serves for as long as the process lives.
pub(crate) struct Registries {
    script: Arc<RegistryScript>,
    connect_to: Vec<(String, String)>,
    root: TempDir,
}

impl Registries {
    /// RDAP services and port-43 servers by host name; the closed ones refuse every connection.
    pub(crate) fn start(rdap: &[&str], lines: &[&str], closed: &[&str]) -> Self {
        let script = Arc::new(RegistryScript::default());
        let root = TempDir::new().expect("a temporary folder");
        let mut connect_to: Vec<(String, String)> = closed
            .iter()
            .map(|at| ((*at).to_owned(), CLOSED.to_owned()))
            .collect();
        for host in lines {
            let (host, script) = ((*host).to_owned(), Arc::clone(&script));
            let name = format!("{host}:43");
            let at = listen(move |stream| line(stream, &host, &script));
            connect_to.push((name, at.to_string()));
        }
        let certificate = Certificate::of(rdap);
        certificate.write(&root.path().join("root.pem"));
        let served = Arc::clone(&script);
        let server = HttpServer::new(move |visit| answer(visit, &served));
        let at = server.listen(Some(certificate.server(&[])));
        connect_to.extend(
            rdap.iter()
                .map(|host| (format!("{host}:443"), at.to_string())),
        );
        Self {
            script,
            connect_to,
            root,
        }
    }

    /// What a server does from now on when it is asked this.
    pub(crate) fn when(&self, host: &str, question: &str, does: Does) {
        self.script
            .does
            .lock()
            .expect("no writer panicked")
            .insert(format!("{host} {question}"), does);
    }

    /// How often a server was asked this.
    pub(crate) fn asked(&self, host: &str, question: &str) -> usize {
        let question = format!("{host} {question}");
        self.script
            .asked
            .lock()
            .expect("no writer panicked")
            .iter()
            .filter(|asked| **asked == question)
            .count()
    }

    /// A place for files that its services read.
    pub(crate) fn folder(&self) -> &Path {
        self.root.path()
    }

    /// The configuration of a service that this is the outside world of.
    pub(crate) fn configuration(&self) -> String {
        let rows: Vec<String> = self
            .connect_to
            .iter()
            .map(|(host, at)| public_row(host, at))
            .collect();
        let root = self.root.path().join("root.pem");
        // Nobody tells addresses: what is not led to does not exist.
        format!(
            "[egress]\ndns_servers = [\"{CLOSED}\"]\nextra_roots = [{root:?}]\nconnect_to = {{ {} }}",
            rows.join(", ")
        )
    }
}

/// One question of port 43.
fn line(mut stream: TcpStream, host: &str, script: &RegistryScript) -> std::io::Result<()> {
    // The host sends a question in one piece. What is not taken when a connection is closed makes its end a reset.
    let mut question = [0; 1024];
    let length = stream.peek(&mut question)?;
    let does = script.ask(format!(
        "{host} {}",
        String::from_utf8_lossy(&question[..length]).trim_end_matches("\r\n")
    ));
    if !matches!(does, Does::Breaks) {
        stream.read_exact(&mut question[..length])?;
    }
    match does {
        Does::Says(bytes) | Does::Answers(_, bytes) => stream.write_all(&bytes),
        Does::Breaks => Ok(()),
        Does::Stalls => {
            stream.write_all(b"% one moment\r\n")?;
            std::io::copy(&mut stream, &mut std::io::sink()).map(|_| ())
        }
        Does::Floods => loop {
            stream.write_all(&[b'x'; 0x4000])?;
        },
    }
}

/// The answer of an RDAP service.
fn answer(visit: &Visit, script: &RegistryScript) -> Reply {
    match script.ask(format!("{} {}", visit.host, visit.path)) {
        // Nothing is scripted: a test that did not mean to ask this is to see it.
        Does::Says(body) => Reply::bare(500, body),
        Does::Answers(head, body) => {
            let length = body.len();
            let head =
                format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
            Reply::Raw([head.into_bytes(), body].concat(), Then::Close)
        }
        Does::Breaks => Reply::Close,
        Does::Stalls => {
            let begun = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{";
            Reply::Raw(begun.to_vec(), Then::Hang)
        }
        Does::Floods => Reply::flood(b' '),
    }
}
