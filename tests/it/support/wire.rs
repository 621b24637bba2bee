//! Bytes on a socket, for what no well-behaved client sends. Every wait ends by [`PATIENCE`].

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Answer, Service};

/// How long anything may take before a test fails; generous, because it is no measurement.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for what must happen.
pub(crate) async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future)
        .await
        .unwrap_or_else(|_| panic!("in vain: {what}"))
}

/// A connection without a client's manners.
pub(crate) struct Wire {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Wire {
    /// Connects to the listener at a URL.
    pub(crate) async fn connect(url: &str) -> Self {
        let address = url.trim_start_matches("http://");
        let stream = in_time("a connection", TcpStream::connect(address))
            .await
            .expect("the server accepts");
        Self {
            stream,
            received: Vec::new(),
        }
    }

    /// Connects to the listener at a URL from a loopback address.
    pub(crate) async fn connect_from(url: &str, from: &str) -> Self {
        Self {
            stream: super::dial(url, from).await,
            received: Vec::new(),
        }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        in_time("the server reads", self.stream.write_all(bytes.as_ref()))
            .await
            .expect("the connection is open");
    }

    /// Sends to a server that may have gone, and tells whether it was there.
    pub(crate) async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        in_time("the server reads", self.stream.write_all(bytes.as_ref()))
            .await
            .is_ok()
    }

    /// Sends as much as the server takes, and tells whether that was all within the time.
    pub(crate) async fn send_within(&mut self, time: Duration, bytes: impl AsRef<[u8]>) -> bool {
        matches!(
            tokio::time::timeout(time, self.stream.write_all(bytes.as_ref())).await,
            Ok(Ok(()))
        )
    }

    /// Whether nothing has come that is not read yet.
    pub(crate) fn is_silent(&mut self) -> bool {
        let found = self.stream.try_read_buf(&mut self.received);
        self.received.is_empty()
            && found.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }

    /// Waits this long for the server to end the connection, and tells whether it did.
    pub(crate) async fn ended_within(&mut self, time: Duration) -> bool {
        let ended = async {
            while self
                .stream
                .read_buf(&mut self.received)
                .await
                .is_ok_and(|bytes| bytes > 0)
            {}
        };
        tokio::time::timeout(time, ended).await.is_ok()
    }

    /// Reads up to and including the given bytes.
    pub(crate) async fn until(&mut self, end: &str) -> String {
        loop {
            if let Some(at) = find(&self.received, end.as_bytes()) {
                let rest = self.received.split_off(at + end.len());
                return String::from_utf8(std::mem::replace(&mut self.received, rest))
                    .expect("text");
            }
            assert!(
                self.receive().await,
                "the connection ended before {end:?}: {:?}",
                self.text()
            );
        }
    }

    /// Reads this many bytes.
    pub(crate) async fn exactly(&mut self, count: usize) -> Vec<u8> {
        while self.received.len() < count {
            assert!(
                self.receive().await,
                "the connection ended after {:?}",
                self.text()
            );
        }
        let rest = self.received.split_off(count);
        std::mem::replace(&mut self.received, rest)
    }

    /// Reads one HTTP/1 answer, whose length must be announced.
    pub(crate) async fn answer(&mut self) -> Answer {
        let head = self.until("\r\n\r\n").await;
        let mut lines = head.lines();
        let status = lines
            .next()
            .and_then(|line| line.split(' ').nth(1)?.parse().ok())
            .expect("a status line");
        let mut headers = HeaderMap::new();
        for line in lines.filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').expect("a header line");
            let name = HeaderName::try_from(name).expect("a header name");
            headers.append(
                name,
                HeaderValue::try_from(value.trim()).expect("a header value"),
            );
        }
        let length = headers
            .get("content-length")
            .and_then(|length| length.to_str().ok()?.parse().ok())
            .unwrap_or(0);
        Answer {
            status,
            headers,
            bytes: self.exactly(length).await,
        }
    }

    /// Reads until the server ends the connection, in whatever way, and gives back what came before that.
    pub(crate) async fn ended(&mut self) -> String {
        while self.receive().await {}
        self.text()
    }

    async fn receive(&mut self) -> bool {
        let read = in_time(
            "the server says something or ends",
            self.stream.read_buf(&mut self.received),
        )
        .await;
        read.is_ok_and(|bytes| bytes > 0)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.received).into_owned()
    }
}

/// A POST that the server has begun to read and whose body is held back.
pub(crate) struct Held {
    wire: Wire,
    body: String,
}

impl Held {
    /// Opens one for a QR code.
    pub(crate) async fn open(service: &Service) -> Self {
        let body = r#"{"bank":"970418","accountNumber":"31410001234567"}"#;
        Self::open_on(service, "/api/v1/tools/bank-qr", body).await
    }

    /// Opens one: it counts as in flight and has its route, because the server has asked for its body.
    pub(crate) async fn open_on(service: &Service, path: &str, body: &str) -> Self {
        let mut wire = Wire::connect(&service.base_url).await;
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n",
            service.key(),
            body.len()
        );
        wire.send(head).await;
        assert_eq!(
            wire.until("\r\n\r\n").await,
            "HTTP/1.1 100 Continue\r\n\r\n"
        );
        Self {
            wire,
            body: body.to_owned(),
        }
    }

    /// Sends the body and reads the answer.
    pub(crate) async fn finish(mut self) -> Answer {
        self.wire.send(&self.body).await;
        self.wire.answer().await
    }

    /// Reads the answer that comes without the body.
    pub(crate) async fn answer(mut self) -> Answer {
        self.wire.answer().await
    }

    /// Reads until the server ends the connection.
    pub(crate) async fn ended(mut self) -> String {
        self.wire.ended().await
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}
