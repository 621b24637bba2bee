//! A resolver that speaks DNS over HTTPS as real ones do, and answers what a test says.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::Version;
use tempfile::TempDir;

use super::Endpoint;
use crate::lab::{Certificate, HttpServer, Reply, Visit};

/// A question as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Without its last dot.
    pub(crate) name: String,
    pub(crate) record_type: u16,
    /// The whole message.
    pub(crate) message: Vec<u8>,
    /// `HTTP/2.0 POST /dns-query`.
    pub(crate) line: String,
    /// Of the request, names in lower case, in their order.
    pub(crate) headers: Vec<(String, String)>,
}

/// What it offers in TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    Http2,
    Http1,
}

/// The server, for as long as the process lives.
pub(crate) struct Scripted {
    pub(crate) endpoint: Endpoint,
    server: HttpServer,
    _folder: TempDir,
}

impl Reply {
    /// A DNS message, as it should be sent.
    pub(crate) fn dns(message: Vec<u8>) -> Self {
        Self::body(200, "application/dns-message", message)
    }
}

impl Scripted {
    /// Serves what the script says of each question, for as long as it takes to say it.
    pub(crate) async fn start<R>(script: impl Fn(Asked) -> R + Send + Sync + 'static) -> Self
    where
        R: Future<Output = Reply> + Send + 'static,
    {
        Self::speaking(Speaks::Http2, script).await
    }

    /// The same in another version of HTTP.
    pub(crate) async fn speaking<R>(
        speaks: Speaks,
        script: impl Fn(Asked) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Future<Output = Reply> + Send + 'static,
    {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let host = format!(
            "scripted-{}.resolver.test",
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let certificate = Certificate::of(&[&host]);
        let folder = TempDir::new().expect("a temporary folder");
        let root = folder.path().join("certificate.pem");
        certificate.write(&root);
        let protocol = match speaks {
            Speaks::Http2 => "h2",
            Speaks::Http1 => "http/1.1",
        };
        let server =
            HttpServer::patient(move |visit| script(Asked::of(visit).expect("a question")));
        Self {
            endpoint: Endpoint {
                host,
                address: server.listen(Some(certificate.server(&[protocol]))),
                root,
            },
            server,
            _folder: folder,
        }
    }

    /// What it was asked, in the order in which it came.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        let visits = self.server.visits().into_iter();
        visits.filter_map(Asked::of).collect()
    }

    /// How many connections were made to it.
    pub(crate) fn connections(&self) -> usize {
        self.server.connections()
    }
}

impl Asked {
    fn of(visit: Visit) -> Option<Self> {
        let version = if visit.version == Version::HTTP_2 {
            "HTTP/2.0"
        } else {
            "another version"
        };
        let line = format!("{version} {} {}", visit.method, visit.path);
        let message = visit.body.to_vec();
        let (mut labels, mut at) = (Vec::new(), 12);
        while let Some(length) = message.get(at).filter(|length| **length > 0) {
            let label = message.get(at + 1..at + 1 + usize::from(*length))?;
            labels.push(String::from_utf8_lossy(label).into_owned());
            at += 1 + label.len();
        }
        let record_type = u16::from_be_bytes([*message.get(at + 1)?, *message.get(at + 2)?]);
        Some(Self {
            name: labels.join("."),
            record_type,
            message,
            line,
            headers: visit.headers,
        })
    }

    /// An answer with this response code and records of this name, each by its type and its data.
    pub(crate) fn answer(&self, code: u8, records: &[(u16, &[u8])]) -> Vec<u8> {
        // After the header: the name, its end, type and class.
        let question = self
            .message
            .get(12..12 + self.name.len() + 6)
            .expect("a question");
        let count = u16::try_from(records.len())
            .expect("few records")
            .to_be_bytes();
        let head = [
            0,
            0,
            0x81,
            0x80 | code,
            0,
            1,
            count[0],
            count[1],
            0,
            0,
            0,
            0,
        ];
        let mut message = [&head, question].concat();
        for (record_type, data) in records {
            // The name is the question's; class IN, an hour.
            message.extend([0xc0, 12]);
            message.extend(record_type.to_be_bytes());
            message.extend([0, 1, 0, 0, 14, 16]);
            message.extend(u16::try_from(data.len()).expect("short data").to_be_bytes());
            message.extend(*data);
        }
        message
    }
}
