//! An outside world for maps: what it answers is a function of the host and the path of a request, and it keeps what was asked.
//!
//! Threads and blocking sockets; each connection is served once and then closed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::support::{Options, Service, listen, public_row, workspace};

/// Names that lead to it, by http.
const HOSTS: [&str; 5] = [
    "site.test",
    "www.site.test",
    "docs.site.test",
    "other.test",
    "moved.test",
];

/// What is answered.
#[derive(Clone, Debug)]
pub(super) enum Page {
    Say {
        status: u16,
        kind: &'static str,
        body: Vec<u8>,
    },
    To(u16, String),
    /// Nothing, until the client goes.
    Hang,
    /// The end of the connection.
    Close,
}

impl Page {
    pub(super) fn html(body: &str) -> Self {
        Self::Say {
            status: 200,
            kind: "text/html; charset=utf-8",
            body: body.as_bytes().to_vec(),
        }
    }

    pub(super) fn text(body: &str) -> Self {
        Self::Say {
            status: 200,
            kind: "text/plain",
            body: body.as_bytes().to_vec(),
        }
    }

    pub(super) fn xml(body: impl Into<Vec<u8>>) -> Self {
        Self::Say {
            status: 200,
            kind: "application/xml",
            body: body.into(),
        }
    }

    /// A page that says that there is none.
    pub(super) fn none() -> Self {
        Self::status(404)
    }

    pub(super) fn status(status: u16) -> Self {
        Self::Say {
            status,
            kind: "text/html",
            body: b"<title>Trouble</title><p>It is not there".to_vec(),
        }
    }
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
pub(super) fn linking(title: &str, addresses: &[&str]) -> Page {
    let links: String = addresses
        .iter()
        .map(|url| format!("<li><a href='{url}'>x</a>"))
        .collect();
    Page::html(&format!("<title>{title}</title><ul>{links}</ul>"))
}

#[derive(Default)]
struct State {
    /// `host/path?query`, and when it was asked.
    asked: Vec<(String, Instant)>,
    open: usize,
    most_open: usize,
}

/// The outside world, for as long as the process lives.
pub(super) struct World {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl World {
    pub(super) fn of(answer: impl Fn(&str, &str) -> Page + Send + Sync + 'static) -> Self {
        let state: Arc<Mutex<State>> = Arc::default();
        let kept = Arc::clone(&state);
        let address = listen(move |stream| serve(stream, &answer, &kept));
        Self { address, state }
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
        locked(&self.state)
            .asked
            .iter()
            .map(|(address, _)| address.clone())
            .collect()
    }

    pub(super) fn asked_at(&self) -> Vec<Instant> {
        locked(&self.state)
            .asked
            .iter()
            .map(|(_, at)| *at)
            .collect()
    }

    /// The most requests that were under way at a time.
    pub(super) fn most_open(&self) -> usize {
        locked(&self.state).most_open
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(
    mut stream: TcpStream,
    answer: &impl Fn(&str, &str) -> Page,
    state: &Mutex<State>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        match reader.read_line(&mut line)? {
            0 => return Ok(()),
            1..=2 => break,
            _ => lines.push(line.trim_end().to_owned()),
        }
    }
    let target = lines[0].split(' ').nth(1).unwrap_or("/").to_owned();
    let is_host = |line: &&String| line.to_ascii_lowercase().starts_with("host:");
    let host = lines
        .iter()
        .find(is_host)
        .map_or("", |line| line[5..].trim())
        .to_owned();
    {
        let mut state = locked(state);
        state
            .asked
            .push((format!("{host}{target}"), Instant::now()));
        state.open += 1;
        state.most_open = state.most_open.max(state.open);
    }
    let page = answer(&host, &target);
    // Before the answer goes, so that what is asked after it is not counted beside it.
    locked(state).open -= 1;
    match page {
        Page::Say { status, kind, body } => {
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status} said\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n"
            );
            stream.write_all(format!("{head}connection: close\r\n\r\n").as_bytes())?;
            stream.write_all(&body)
        }
        Page::To(status, location) => {
            let head =
                format!("HTTP/1.1 {status} said\r\nlocation: {location}\r\ncontent-length: 0\r\n");
            stream.write_all(format!("{head}connection: close\r\n\r\n").as_bytes())
        }
        Page::Hang => reader.read(&mut [0]).map(|_| ()),
        Page::Close => Ok(()),
    }
}
