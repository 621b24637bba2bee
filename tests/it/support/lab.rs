//! Hosts of the outside world on one loopback port, by TLS: which one is asked is said by the request's host.
//!
//! Threads and blocking sockets, so that it goes on whatever the test's runtime does. A test says what is answered to requests
//! whose address holds a text of its own, and reads which of these came.

use std::fmt::Display;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

use super::{certificate, listen};

/// Every host that a plugin's request may be for.
const HOSTS: [&str; 18] = [
    "publish.x.com",
    "graph.facebook.com",
    "graph.threads.com",
    "www.tiktok.com",
    "vm.tiktok.com",
    "vt.tiktok.com",
    "www.reddit.com",
    "reddit.com",
    "v.redd.it",
    "www.facebook.com",
    "m.facebook.com",
    "fb.watch",
    "www.instagram.com",
    "instagram.com",
    "api.vietqr.io",
    "provider.lab.test",
    "www.threads.com",
    "x.com",
];

/// A row of `egress.connect_to` for a place that stands for one of the public network.
pub(crate) fn public_row(from: &str, to: impl Display) -> String {
    format!("{from:?} = {{ to = \"{to}\", public = true }}")
}

/// What a site does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Say {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: Vec<u8>,
    },
    /// Nothing, until the client goes.
    Hang,
    /// The end of the connection.
    Close,
}

impl Reply {
    pub(crate) fn json(status: u16, body: &serde_json::Value) -> Self {
        Self::body(status, "application/json", body.to_string())
    }

    /// A page, as some providers have for each failure.
    pub(crate) fn page(status: u16, text: &str) -> Self {
        Self::body(
            status,
            "text/html",
            format!("<!DOCTYPE html><html><body><h1>{text}</h1></body></html>"),
        )
    }

    pub(crate) fn body(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::Say {
            status,
            headers: vec![("content-type", kind.to_owned())],
            body: body.into(),
        }
    }

    pub(crate) fn redirect(status: u16, location: &str) -> Self {
        Self::Say {
            status,
            headers: vec![("location", location.to_owned())],
            body: Vec::new(),
        }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Self::Say { headers, .. } = &mut self {
            headers.push((name, value.to_owned()));
        }
        self
    }
}

/// A request that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// Host and path with the query, as they were sent.
    pub(crate) address: String,
    pub(crate) user_agent: String,
}

#[derive(Default)]
struct State {
    /// The last that fits counts.
    rules: Vec<(String, Reply)>,
    asked: Vec<Asked>,
}

/// The sites, for as long as the process lives.
pub(crate) struct Lab {
    site: SocketAddr,
    folder: TempDir,
    state: Arc<Mutex<State>>,
}

impl Lab {
    pub(crate) fn start() -> Self {
        let (config, pem) = certificate(&HOSTS);
        let config = Arc::new(config);
        let folder = TempDir::new().expect("a temporary folder");
        let state: Arc<Mutex<State>> = Arc::default();
        let kept = Arc::clone(&state);
        let site = listen(move |stream| serve(stream, Arc::clone(&config), &kept));
        let lab = Self {
            site,
            folder,
            state,
        };
        std::fs::write(lab.root(), pem).expect("it is written");
        lab
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root.pem")
    }

    /// The lines under `[egress]` that lead to it.
    pub(crate) fn configuration(&self) -> String {
        format!(
            "[egress]\nextra_roots = [{:?}]\nconnect_to = {{ {} }}\n",
            self.root(),
            self.rows()
        )
    }

    fn rows(&self) -> String {
        let rows: Vec<String> = HOSTS
            .iter()
            .map(|host| public_row(&format!("{host}:443"), self.site))
            .collect();
        rows.join(", ")
    }

    /// Answers requests whose method and address (`GET host/path?query`) hold this text.
    pub(crate) fn answer(&self, holds: &str, reply: Reply) {
        self.state().rules.push((holds.to_owned(), reply));
    }

    /// The requests whose address holds this text.
    pub(crate) fn asked(&self, holds: &str) -> Vec<Asked> {
        self.state()
            .asked
            .iter()
            .filter(|asked| asked.address.contains(holds))
            .cloned()
            .collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    state: &Mutex<State>,
) -> std::io::Result<()> {
    let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut reader = BufReader::new(StreamOwned::new(connection, stream));
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let header = |name: &str| {
        let mut values = lines.iter().filter_map(|line| line.split_once(": "));
        values
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map_or("", |(_, value)| value)
            .to_owned()
    };
    let mut words = lines[0].split(' ');
    let method = words.next().unwrap_or_default().to_owned();
    let address = format!("{}{}", header("host"), words.next().unwrap_or_default());
    let reply = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let line = format!("{method} {address}");
        let reply = state
            .rules
            .iter()
            .rev()
            .find(|(holds, _)| line.contains(holds))
            .map(|(_, reply)| reply.clone());
        state.asked.push(Asked {
            method: method.clone(),
            address,
            user_agent: header("user-agent"),
        });
        reply
    };
    match reply.unwrap_or_else(|| Reply::page(404, "nobody said what to answer")) {
        Reply::Say {
            status,
            headers,
            body,
        } => {
            let mut stream = reader.into_inner();
            let mut head = format!(
                "HTTP/1.1 {status} said\r\nconnection: close\r\ncontent-length: {}\r\n",
                body.len()
            );
            for (name, value) in headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            stream.write_all(format!("{head}\r\n").as_bytes())?;
            if method != "HEAD" {
                stream.write_all(&body)?;
            }
            stream.conn.send_close_notify();
            stream.flush()
        }
        Reply::Hang => reader.read(&mut [0]).map(|_| ()),
        Reply::Close => Ok(()),
    }
}
