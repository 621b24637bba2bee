//! Sites of the outside world on one loopback port: what they answer is chosen by the path of the request.
//!
//! Threads and blocking sockets; each connection is served once and then closed.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};

use crate::support::listen;

/// A page with boilerplate around it.
const ARTICLE: &str = include_str!("../../../plugins/web-data/pages/article-1.html");

/// A page of frames that has something to say to those who show none.
const FRAMES: &str = "<html><head><title>Framed</title></head><frameset cols='20%,80%'><frame src=/menu><frame src=/body>\
    <noframes><body><p>The <b>same</b> without frames.</p></body></noframes></frameset></html>";
/// Markup that nothing closes, or in the wrong order.
const TANGLED: &str = "<title>Tangled</title><h1>Tangled</h2><table><tr><td>One<td>Two<tr><td>Three</table>\
    <p>A <b>bold <i>word</b> and</i> the rest<ul><li>first<li>second</div></span></p></td></ul><p>The end <a href='/x>";

/// Text that is markup when it is joined, and an address that is markup.
const LIVE: &str = "<p>The harbour office wrote this piece about markup, and every word of it belongs to the text that a reader came for. \
    &lt;<i></i>img src=x onerror=alert(1)> <a href='mailto:a b<img src=x>'>mail</a> Look!<a href=/x>here</a>\
    <code>&lt;b></code></p>";
/// Elements of old whose content is text.
const LIVE_CODE: &str = "<xmp><img src=x onerror=alert(2)></xmp><listing>&lt;i></listing>";

/// Formatting elements of many attributes, each to be compared with those that are open.
fn attributes() -> String {
    const NAMES: [&str; 12] = [
        "class", "id", "href", "src", "alt", "title", "role", "lang", "rel", "content", "name",
        "style",
    ];
    let tag = |at: usize| {
        let attributes: String = NAMES.iter().map(|name| format!(" {name}={at}")).collect();
        format!("<b{attributes}>")
    };
    let open: String = (0..60).map(tag).collect();
    let closed: String = (100..60_000).map(|at| format!("{}</b>", tag(at))).collect();
    format!("{open}{closed}")
}

/// Begins to serve, for as long as the process lives.
pub(super) fn serve() -> SocketAddr {
    listen(answer)
}

/// Status, media type and body.
type Page = (&'static str, &'static str, Vec<u8>);

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while reader.read_line(&mut head)? > 2 {}
    let target = head.split(' ').nth(1).unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, "/"));
    let mut moved =
        |status: &str, to: &str| whole(&mut stream, status, &format!("location: {to}\r\n"), b"");
    match path {
        "/moved" => moved("301 Moved Permanently", "/article"),
        // Anywhere that the query says.
        "/to" => moved("302 Found", query),
        "/inside" => moved("302 Found", "http://10.0.0.1/"),
        "/around" => moved("302 Found", "/around"),
        // Nothing, until the client goes.
        "/never" => std::io::copy(&mut reader, &mut std::io::sink()).map(|_| ()),
        "/no-http" => stream.write_all(b"SSH-2.0-OpenSSH_9.9\r\n"),
        _ => {
            let (status, kind, body) = refreshing(path, query)
                .or_else(|| laborious(path).map(|text| html(&text)))
                .or_else(|| odd(path))
                .unwrap_or_else(|| plain(path));
            whole(
                &mut stream,
                status,
                &format!("content-type: {kind}\r\n"),
                &body,
            )
        }
    }
}

fn html(text: &str) -> Page {
    html_of(text.as_bytes())
}

fn html_of(bytes: &[u8]) -> Page {
    ("200 OK", "text/html; charset=utf-8", bytes.to_vec())
}

/// Pages that send their reader on, or say that they will.
fn refreshing(path: &str, query: &str) -> Option<Page> {
    Some(match path {
        "/refresh-to" => html(&format!(
            "<meta http-equiv=refresh content='0; url={query}'><p>Wait"
        )),
        "/refresh" => html("<meta http-equiv=refresh content='0; url=/article'><p>Wait"),
        "/refresh-later" => html(
            "<title>Slides</title><meta http-equiv=refresh content='60; url=/article'><p>Stay here",
        ),
        "/refresh-around" => {
            html("<meta http-equiv=refresh content='0; url=/refresh-around?'><p>Round and round")
        }
        _ => return None,
    })
}

/// Statuses, media types and character encodings, and a page that is like any other.
fn plain(path: &str) -> Page {
    match path {
        "/article" => html(ARTICLE),
        "/missing" => (
            "404 Not Found",
            "text/html",
            b"<title>Gone</title><p>There is no such page".to_vec(),
        ),
        "/broken" => ("500 Internal Server Error", "text/plain", b"oops".to_vec()),
        "/russian" => {
            let body = b"<meta charset=windows-1251><title>\xcf\xf0\xe8\xe2\xe5\xf2</title><p>\xcc\xe8\xf0".to_vec();
            ("200 OK", "text/html", body)
        }
        "/plain" => (
            "200 OK",
            "text/plain; charset=iso-8859-1",
            b"caf\xe9 *as it is*".to_vec(),
        ),
        "/json" => ("200 OK", "application/json", br#"{"a": [1, 2]}"#.to_vec()),
        "/markdown" => ("200 OK", "text/markdown", b"# Title\n\n- one\n".to_vec()),
        "/pdf" => (
            "200 OK",
            "application/pdf",
            b"%PDF-1.7\n%\xe2\xe3\n".to_vec(),
        ),
        "/image" => ("200 OK", "image/png", b"\x89PNG\r\n\x1a\n".to_vec()),
        "/empty" => html(""),
        "/mislabelled" => {
            html_of(b"<title>Caf\xe9</title><p>A caf\xe9, d\xe9j\xe0 vu, na\xefve and all that.")
        }
        "/latin-by-name" => (
            "200 OK",
            "text/html; charset=iso-8859-1",
            "<title>Café</title><p>A café, déjà vu, naïve and all that."
                .as_bytes()
                .to_vec(),
        ),
        _ => html(
            "<title>Hello</title><p>Hello, <b>you</b>. <a href='/x'>More</a><img src='data:image/png;base64,AA'>",
        ),
    }
}

/// Markup that is wrong, or hides something, or is much.
fn odd(path: &str) -> Option<Page> {
    Some(match path {
        "/long" => html(&format!(
            "<title>Long</title><main><p>{}</p></main>",
            "word and word. ".repeat(20_000)
        )),
        "/deep" => html(&format!("{}text", "<div>".repeat(200_000))),
        "/spaces" => html(
            "<p><b>bold</b> <i>italic</i> and <code><span>pip</span> <span>install</span></code></p>",
        ),
        "/live" => html(LIVE),
        "/live-code" => html(LIVE_CODE),
        "/live-text" => (
            "200 OK",
            "text/plain",
            b"&lt; <img src=x onerror=alert(1)> *a*".to_vec(),
        ),
        "/cut-code" => html(&format!(
            "<p><code>{}</code>",
            "&lt;img src=x onerror=alert(1)> ".repeat(10_000)
        )),
        "/declared" => html(&format!(
            "<title>{}</title><meta name=description content='{}'><p>{}</p>",
            "Word ".repeat(1900),
            "told ".repeat(1900),
            "A first paragraph of more than a dozen words, which describes nothing of what the page declares. "
        )),
        "/declared-more" => html(&format!("<title>{}</title><p>text", "Word ".repeat(2100))),
        "/huge" => html(&"x".repeat(9 << 20)),
        "/script" => html("<title>App</title><div id=root></div><script>start()</script>"),
        "/frames" => html(FRAMES),
        "/tangled" => html(TANGLED),
        _ => return None,
    })
}

/// Pages that are made to cost much.
fn laborious(path: &str) -> Option<String> {
    Some(match path {
        "/end-tags" => format!(
            "<p>text</p>{}{}",
            "<span>".repeat(250),
            "</b>".repeat(2_000_000)
        ),
        "/end-tags-of-a-map" => format!(
            "<p>text</p>{}{}",
            "<span>".repeat(250),
            "</b>".repeat(900_000)
        ),
        "/pictures" => format!(
            "<p>A picture {}",
            "<img src=a.png alt='not this one'>".repeat(240_000)
        ),
        "/attributes" => format!("<p>text</p>{}", attributes()),
        "/structured" => format!(
            "<p>text</p>{}",
            "<script type=application/ld+json></script>".repeat(190_000)
        ),
        "/far-links" => format!(
            "<base href='/{}/'><p>text</p>{}",
            "b".repeat(1900),
            (0..100_000)
                .map(|at| format!("<a href='{at}'> </a>"))
                .collect::<String>()
        ),
        _ => return None,
    })
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
