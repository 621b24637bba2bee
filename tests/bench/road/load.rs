//! The load: connections that send one request after another and read each answer whole.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::server::Server;

/// What is asked for.
#[derive(Clone)]
pub(crate) struct Target {
    method: &'static str,
    path: &'static str,
    body: &'static str,
    key: Key,
}

/// Whose call it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// An administrator key without limits.
    Unlimited,
    /// One with a minute and a month that it does not reach.
    Limited,
    /// A self-service key with seconds, places and credits that it does not reach.
    SelfService,
}

/// What a turn took.
#[derive(Clone, Copy)]
pub(crate) struct Taken {
    pub(crate) per_second: f64,
    /// Of the server, a request.
    pub(crate) cpu_us: f64,
}

impl Target {
    pub(crate) fn get(path: &'static str) -> Self {
        Self {
            method: "GET",
            path,
            body: "",
            key: Key::Unlimited,
        }
    }

    pub(crate) fn post(path: &'static str, body: &'static str) -> Self {
        Self {
            method: "POST",
            path,
            body,
            key: Key::Unlimited,
        }
    }

    /// The same with another key.
    pub(crate) fn by(self, key: Key) -> Self {
        Self { key, ..self }
    }

    fn request(&self, key: &str) -> Vec<u8> {
        let Self {
            method, path, body, ..
        } = self;
        let length = body.len();
        let typed = if body.is_empty() {
            String::new()
        } else {
            format!("Content-Length: {length}\r\nContent-Type: application/json\r\n")
        };
        format!("{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\n{typed}\r\n{body}")
            .into_bytes()
    }
}

/// Loads a target for a time.
pub(crate) fn run(server: &Server, target: &Target, connections: usize, time: Duration) -> Taken {
    let request = target.request(server.key(target.key));
    let cpu = server.cpu_us();
    let started = Instant::now();
    let until = started + time;
    let requests: usize = std::thread::scope(|scope| {
        let all: Vec<_> = (0..connections)
            .map(|_| scope.spawn(|| connection(server, &request, until)))
            .collect();
        all.into_iter()
            .map(|one| one.join().expect("a connection ends well"))
            .sum()
    });
    let requests = requests as f64;
    Taken {
        per_second: requests / started.elapsed().as_secs_f64(),
        cpu_us: (server.cpu_us() - cpu) / requests,
    }
}

fn connection(server: &Server, request: &[u8], until: Instant) -> usize {
    let stream = TcpStream::connect(&server.address).expect("the server listens");
    stream.set_nodelay(true).expect("a socket option");
    let mut writer = stream.try_clone().expect("a second handle");
    let mut reader = BufReader::with_capacity(64 * 1024, stream);
    let (mut line, mut body) = (String::new(), Vec::new());
    let mut requests = 0;
    while Instant::now() < until {
        writer.write_all(request).expect("the server reads");
        let mut length = 0;
        let mut first = true;
        loop {
            line.clear();
            reader.read_line(&mut line).expect("the server answers");
            if first {
                assert!(line.starts_with("HTTP/1.1 200"), "{line}");
                first = false;
            }
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse().expect("a length");
            }
        }
        body.resize(length, 0);
        reader.read_exact(&mut body).expect("the body arrives");
        requests += 1;
    }
    requests
}
