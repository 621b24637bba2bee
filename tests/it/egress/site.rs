//! Sites of the outside world on one loopback port: what they answer is chosen by the path of the request.
//!
//! Threads and blocking sockets, so that a site goes on being hostile whatever the test's runtime does. Each connection is
//! served once and then closed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use crate::support::listen;

/// Between two bytes of a site that drips.
const DROP: Duration = Duration::from_millis(20);
/// What a bomb becomes.
const BOMB_BYTES: usize = 64 << 20;

/// A head that is no answer.
const INFORMATIONAL: &[u8] = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";

/// Begins to serve, for as long as the process lives.
pub(super) fn serve() -> SocketAddr {
    listen(answer)
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while reader.read_line(&mut head)? > 2 {}
    let target = head.split(' ').nth(1).unwrap_or("/").to_owned();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    // What the host added is no part of what the test says.
    let query = query.split("&access_token=").next().unwrap_or(query);
    let query = percent_encoding::percent_decode_str(query)
        .decode_utf8_lossy()
        .into_owned();
    let length = |line: &str| {
        line.to_ascii_lowercase()
            .strip_prefix("content-length: ")
            .and_then(|n| n.parse().ok())
    };
    let mut body = vec![0; head.lines().find_map(length).unwrap_or(0)];
    reader.read_exact(&mut body)?;
    // What is the same at a place that a secret is bound to.
    let path = path
        .strip_prefix("/bound")
        .or(path.strip_prefix("/granted"))
        .unwrap_or(path);
    match path {
        // Nothing that the host could recognise.
        "/reversed" => {
            head = head.chars().rev().collect();
            whole(&mut stream, "200 OK", "", head.as_bytes())
        }
        "/encoded" => {
            let said = encoded(&head, &query);
            whole(&mut stream, "200 OK", "", said.as_bytes())
        }
        "/leaks" => {
            let elsewhere = format!("location: http://other.test/?{target}\r\n");
            whole(&mut stream, "302 Found", &elsewhere, b"")
        }
        "/echo" => {
            let said = [head.as_bytes(), &body].concat();
            whole(&mut stream, "200 OK", "set-cookie: a=b\r\n", &said)
        }
        _ => as_asked(&mut stream, path, &query),
    }
}

/// Statuses, redirects and bodies that are whole.
fn as_asked(stream: &mut TcpStream, path: &str, query: &str) -> std::io::Result<()> {
    let location = format!("location: {query}\r\n");
    let coding = format!("content-encoding: {query}\r\n");
    match path {
        "/not-found" => whole(stream, "404 Not Found", "", b"there is no such thing"),
        "/redirect" => whole(stream, "302 Found", &location, b""),
        "/see-other" => whole(stream, "303 See Other", &location, b""),
        "/temporary" => whole(stream, "307 Temporary Redirect", &location, b""),
        "/created" => whole(stream, "201 Created", &location, b"made"),
        "/around" => whole(stream, "302 Found", "location: /around\r\n", b""),
        "/sized" => {
            let body = vec![b'x'; query.parse().unwrap_or(0)];
            whole(stream, "200 OK", "", &body)
        }
        "/coded" => {
            let body = coded(query, "as it was".repeat(50).as_bytes());
            whole(stream, "200 OK", &coding, &body)
        }
        "/laborious" => whole(stream, "200 OK", &coding, &super::laborious::body(query)),
        "/bomb" => {
            let body = coded(query, &vec![0; BOMB_BYTES]);
            whole(stream, "200 OK", &coding, &body)
        }
        "/proxy-status" => whole(
            stream,
            "407 Proxy Authentication Required",
            "proxy-authenticate: Basic\r\n",
            b"",
        ),
        _ => in_pieces(stream, path, query),
    }
}

/// What is too much, or comes too late, or breaks off, or is no answer.
fn in_pieces(stream: &mut TcpStream, path: &str, query: &str) -> std::io::Result<()> {
    match path {
        "/headers" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
            let count: usize = query.parse().unwrap_or(0);
            (0..count)
                .try_for_each(|number| stream.write_all(format!("x-{number}: 1\r\n").as_bytes()))?;
            stream.write_all(b"content-length: 0\r\n\r\n")
        }
        "/silent" => until_it_goes(stream),
        "/stalls" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")?;
            until_it_goes(stream)
        }
        "/breaks-off" => stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf"),
        "/drips" => drip(stream),
        "/endless" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")?;
            let chunk = [b"10000\r\n".as_slice(), &[b'x'; 0x10000], b"\r\n"].concat();
            loop {
                stream.write_all(&chunk)?;
            }
        }
        "/no-http" => stream.write_all(b"SSH-2.0-OpenSSH_9.9\r\n"),
        _ => beside(stream, path, query),
    }
}

/// What a server may say before its answer, or in its place, or in the smallest pieces, or without an end.
fn beside(stream: &mut TcpStream, path: &str, query: &str) -> std::io::Result<()> {
    match path {
        "/informational" => match query.parse() {
            Ok(count) => {
                (0..count).try_for_each(|_: u32| stream.write_all(INFORMATIONAL))?;
                whole(stream, "200 OK", "", b"at last")
            }
            Err(_) => loop {
                stream.write_all(&INFORMATIONAL.repeat(1000))?;
            },
        },
        "/switches" => {
            stream.write_all(
                b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: lab\r\n\r\n",
            )?;
            until_it_goes(stream)
        }
        // So many bytes of a body whose length nobody knows.
        "/begins" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")?;
            stream.write_all(&vec![b'x'; query.parse().unwrap_or(0)])?;
            until_it_goes(stream)
        }
        "/in-bytes" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")?;
            let count = query.parse().unwrap_or(0);
            stream.write_all(&b"1\r\nx\r\n".repeat(count))?;
            stream.write_all(b"0\r\n\r\n")
        }
        _ => whole(stream, "200 OK", "content-type: text/plain\r\n", b"hello"),
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

fn whole(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) -> std::io::Result<()> {
    let length = body.len();
    stream.write_all(
        format!(
            "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
        )
        .as_bytes(),
    )?;
    stream.write_all(body)
}

fn until_it_goes(stream: &mut TcpStream) -> std::io::Result<()> {
    std::io::copy(stream, &mut std::io::sink()).map(|_| ())
}

/// A byte at a time, until the client goes: the wait is for its end.
fn drip(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")?;
    stream.set_read_timeout(Some(DROP))?;
    loop {
        stream.write_all(b".")?;
        if stream.read(&mut [0]).is_ok_and(|bytes| bytes == 0) {
            return Ok(());
        }
    }
}

/// The codings one after the other, as the header names them.
fn coded(codings: &str, text: &[u8]) -> Vec<u8> {
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
