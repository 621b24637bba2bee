//! Search providers of the outside world, and a page, on two loopback ports: by TLS and in the clear.
//!
//! Threads and blocking sockets; each connection is served once and then closed. A test says what is answered to requests that
//! hold a text of its own, in their heads or bodies, and reads which of these came.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::{ServerConnection, StreamOwned};
use tempfile::TempDir;

use crate::support::{certificate, listen, public_row};

pub(super) const SEARXNG: &str = "searx.lab.test";
pub(super) const BRAVE: &str = "api.search.brave.com";
pub(super) const TAVILY: &str = "api.tavily.com";
/// A site whose pages lead away.
pub(super) const PAGES: &str = "pages.lab.test";
const HOSTS: [&str; 4] = [SEARXNG, BRAVE, TAVILY, PAGES];

/// Between two bytes of a provider that drips.
const DROP: Duration = Duration::from_millis(20);

/// What is done with a request.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    Say {
        status: u16,
        headers: String,
        body: Vec<u8>,
    },
    /// A byte at a time, until the client goes.
    Drip,
    /// Nothing, until the client goes.
    Silent,
    /// The end of the connection.
    Close,
}

impl Reply {
    pub(super) fn json(body: &serde_json::Value) -> Self {
        Self::said(200, body.to_string())
    }

    pub(super) fn said(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::Say {
            status,
            headers: "content-type: application/json\r\n".to_owned(),
            body: body.into(),
        }
    }

    pub(super) fn header(mut self, line: &str) -> Self {
        if let Self::Say { headers, .. } = &mut self {
            headers.push_str(&format!("{line}\r\n"));
        }
        self
    }
}

/// A request that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// `GET /path?query`.
    pub(super) line: String,
    /// Sorted.
    pub(super) headers: Vec<String>,
    pub(super) body: String,
}

#[derive(Default)]
struct State {
    /// The last that fits counts.
    rules: Vec<(String, Reply)>,
    asked: Vec<Asked>,
}

/// The sites, for as long as the process lives.
pub(super) struct Lab {
    secure: SocketAddr,
    clear: SocketAddr,
    folder: TempDir,
    state: Arc<Mutex<State>>,
}

impl Lab {
    pub(super) fn start() -> Self {
        let (config, pem) = certificate(&HOSTS);
        let (config, folder) = (
            Arc::new(config),
            TempDir::new().expect("a temporary folder"),
        );
        std::fs::write(folder.path().join("root.pem"), pem).expect("it is written");
        let state: Arc<Mutex<State>> = Arc::default();
        let kept = Arc::clone(&state);
        let secure = listen(move |mut tcp| {
            let connection =
                ServerConnection::new(Arc::clone(&config)).map_err(std::io::Error::other)?;
            let mut stream = StreamOwned::new(connection, tcp.try_clone()?);
            serve(&mut stream, &mut tcp, &kept)?;
            stream.conn.send_close_notify();
            stream.flush()
        });
        let kept = Arc::clone(&state);
        let clear = listen(move |mut tcp| serve(&mut tcp.try_clone()?, &mut tcp, &kept));
        Self {
            secure,
            clear,
            folder,
            state,
        }
    }

    /// The lines under `[egress]` that lead to it.
    pub(super) fn configuration(&self) -> String {
        let root = self.folder.path().join("root.pem");
        let rows = HOSTS.map(|host| {
            [(443, self.secure), (80, self.clear)]
                .map(|(port, at)| public_row(&format!("{host}:{port}"), at))
                .join(", ")
        });
        format!(
            "[egress]\nextra_roots = [{root:?}]\nconnect_to = {{ {} }}\n",
            rows.join(", ")
        )
    }

    /// Answers requests that hold this text.
    pub(super) fn answer(&self, holds: &str, reply: Reply) {
        self.state().rules.push((holds.to_owned(), reply));
    }

    /// The requests that hold this text.
    pub(super) fn asked(&self, holds: &str) -> Vec<Asked> {
        let holds = |asked: &&Asked| asked.line.contains(holds) || asked.body.contains(holds);
        self.state().asked.iter().filter(holds).cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request, on a stream over this connection.
fn serve(
    stream: &mut (impl Read + Write),
    tcp: &mut TcpStream,
    state: &Mutex<State>,
) -> std::io::Result<()> {
    let Some(asked) = read(stream)? else {
        return Ok(());
    };
    let reply = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let holds = |text: &str| asked.line.contains(text) || asked.body.contains(text);
        let reply = state
            .rules
            .iter()
            .rev()
            .find(|(text, _)| holds(text))
            .map(|(_, reply)| reply.clone());
        state.asked.push(asked);
        reply
    };
    match reply.unwrap_or_else(|| Reply::said(404, "nobody said what to answer")) {
        Reply::Say {
            status,
            headers,
            body,
        } => {
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status} said\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
            );
            stream.write_all(head.as_bytes())?;
            stream.write_all(&body)
        }
        Reply::Drip => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")?;
            // The wait between two bytes is for the client's end.
            tcp.set_read_timeout(Some(DROP))?;
            loop {
                stream.write_all(b" ")?;
                stream.flush()?;
                if tcp.read(&mut [0]).is_ok() {
                    return Ok(());
                }
            }
        }
        Reply::Silent => std::io::copy(tcp, &mut std::io::sink()).map(|_| ()),
        Reply::Close => Ok(()),
    }
}

fn read(stream: &mut impl Read) -> std::io::Result<Option<Asked>> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let line = lines.remove(0).trim_end_matches(" HTTP/1.1").to_owned();
    let length = lines
        .iter()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    lines.sort_unstable();
    Ok(Some(Asked {
        line,
        headers: lines,
        body: String::from_utf8_lossy(&body).into_owned(),
    }))
}
