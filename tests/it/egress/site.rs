//! Sites of the outside world on one loopback port: what they answer is chosen by the path of the request.

use std::io::Write as _;
use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use crate::lab::{HttpServer, Reply, Then, Visit};

/// What a bomb becomes.
const BOMB_BYTES: usize = 64 << 20;

/// A head that is no answer.
const INFORMATIONAL: &[u8] = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";

/// Begins to serve, for as long as the process lives.
pub(super) fn serve() -> SocketAddr {
    HttpServer::new(answer).listen(None)
}

fn answer(visit: &Visit) -> Reply {
    let (path, query) = visit.path.split_once('?').unwrap_or((&visit.path, ""));
    // What the host added is no part of what the test says.
    let query = query.split("&access_token=").next().unwrap_or(query);
    let query = percent_encoding::percent_decode_str(query)
        .decode_utf8_lossy()
        .into_owned();
    // What is the same at a place that a secret is bound to.
    let path = path
        .strip_prefix("/bound")
        .or(path.strip_prefix("/granted"))
        .unwrap_or(path);
    match path {
        // Nothing that the host could recognise.
        "/reversed" => Reply::bare(200, visit.head.chars().rev().collect::<String>()),
        "/encoded" => Reply::bare(200, encoded(&visit.head, &query)),
        "/leaks" => Reply::redirect(302, format!("http://other.test/?{}", visit.path)),
        "/echo" => Reply::bare(200, [visit.head.as_bytes(), &visit.body].concat())
            .header("set-cookie", "a=b"),
        _ => as_asked(path, &query),
    }
}

/// Statuses, redirects and bodies that are whole.
fn as_asked(path: &str, query: &str) -> Reply {
    let coded = |body: Vec<u8>| Reply::bare(200, body).header("content-encoding", query);
    match path {
        "/not-found" => Reply::bare(404, "there is no such thing"),
        "/redirect" => Reply::redirect(302, query),
        "/see-other" => Reply::redirect(303, query),
        "/temporary" => Reply::redirect(307, query),
        "/created" => Reply::bare(201, "made").header("location", query),
        "/around" => Reply::redirect(302, "/around"),
        "/sized" => Reply::bare(200, vec![b'x'; query.parse().unwrap_or(0)]),
        "/coded" => coded(encode(query, "as it was".repeat(50).as_bytes())),
        "/laborious" => coded(super::laborious::body(query)),
        "/bomb" => coded(encode(query, &vec![0; BOMB_BYTES])),
        "/proxy-status" => Reply::bare(407, "").header("proxy-authenticate", "Basic"),
        _ => in_pieces(path, query),
    }
}

/// What is too much, or comes too late, or breaks off, or is no answer.
fn in_pieces(path: &str, query: &str) -> Reply {
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf".to_vec();
    match path {
        "/headers" => {
            let count: usize = query.parse().unwrap_or(0);
            let headers: String = (0..count)
                .map(|number| format!("x-{number}: 1\r\n"))
                .collect();
            let head = format!("HTTP/1.1 200 OK\r\n{headers}content-length: 0\r\n\r\n");
            Reply::Raw(head.into_bytes(), Then::Close)
        }
        "/silent" => Reply::Hang,
        "/stalls" => Reply::Raw(half, Then::Hang),
        "/breaks-off" => Reply::Raw(half, Then::Close),
        "/drips" => Reply::drip(),
        "/endless" => Reply::flood(b'x'),
        "/no-http" => Reply::Raw(b"SSH-2.0-OpenSSH_9.9\r\n".to_vec(), Then::Close),
        _ => beside(path, query),
    }
}

/// What a server may say before its answer, or in its place, or in the smallest pieces, or without an end.
fn beside(path: &str, query: &str) -> Reply {
    let number = || query.parse().unwrap_or(0);
    match path {
        "/informational" => match query.parse() {
            Ok(count) => {
                let last = b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nat last";
                Reply::Raw(
                    [&INFORMATIONAL.repeat(count), &last[..]].concat(),
                    Then::Close,
                )
            }
            Err(_) => Reply::Raw(Vec::new(), Then::Repeat(INFORMATIONAL.repeat(1000))),
        },
        "/switches" => {
            let head =
                b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: lab\r\n\r\n";
            Reply::Raw(head.to_vec(), Then::Hang)
        }
        // So many bytes of a body whose length nobody knows.
        "/begins" => {
            let head = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
            Reply::Raw([&head[..], &vec![b'x'; number()]].concat(), Then::Hang)
        }
        "/in-bytes" => {
            let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
            let chunks = b"1\r\nx\r\n".repeat(number());
            Reply::Raw([&head[..], &chunks, b"0\r\n\r\n"].concat(), Then::Close)
        }
        _ => Reply::body(200, "text/plain", "hello"),
    }
}

/// What programs make of what they were sent.
fn encoded(head: &str, query: &str) -> String {
    let value = |name: &str| {
        head.lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap_or_default()
            .to_owned()
    };
    let value = [value("x-api-key: "), value("authorization: ")].concat();
    let each = |form: &dyn Fn(u8) -> String| value.bytes().map(form).collect::<String>();
    match query {
        "word" => value.split(' ').next_back().unwrap_or_default().to_owned(),
        "base64" => STANDARD.encode(head),
        "hex" => each(&|byte| format!("{byte:02x}")),
        "percent" => each(&|byte| format!("%{byte:02X}")),
        "html" => each(&|byte| format!("&#{byte};")),
        "markup" => value.replace('&', "&amp;"),
        "json" => each(&|byte| format!("\\u00{byte:02x}")),
        _ => value,
    }
}

/// The codings one after the other, as the header names them.
fn encode(codings: &str, text: &[u8]) -> Vec<u8> {
    codings
        .split(", ")
        .fold(text.to_vec(), |text, coding| match coding {
            "gzip" => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder
                    .write_all(&text)
                    .and_then(|()| encoder.finish())
                    .expect("it is in memory")
            }
            "deflate" => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
                encoder
                    .write_all(&text)
                    .and_then(|()| encoder.finish())
                    .expect("it is in memory")
            }
            "br" => {
                let mut encoded = Vec::new();
                brotli::CompressorWriter::new(&mut encoded, 1 << 16, 1, 22)
                    .write_all(&text)
                    .expect("it is in memory");
                encoded
            }
            "zstd" => ruzstd::encoding::compress_to_vec(
                text.as_slice(),
                ruzstd::encoding::CompressionLevel::Fastest,
            ),
            _ => text,
        })
}
