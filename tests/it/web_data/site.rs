//! Sites of the outside world on one loopback port: what they answer is chosen by the path of the request.

use std::net::SocketAddr;

use crate::lab::{HttpServer, Reply, Then, Visit};

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
    HttpServer::new(answer).listen(None)
}

fn answer(visit: &Visit) -> Reply {
    let (path, query) = visit.path.split_once('?').unwrap_or((&visit.path, "/"));
    match path {
        "/moved" => Reply::redirect(301, "/article"),
        // Anywhere that the query says.
        "/to" => Reply::redirect(302, query),
        "/inside" => Reply::redirect(302, "http://10.0.0.1/"),
        "/around" => Reply::redirect(302, "/around"),
        "/never" => Reply::Hang,
        "/no-http" => Reply::Raw(b"SSH-2.0-OpenSSH_9.9\r\n".to_vec(), Then::Close),
        _ => refreshing(path, query)
            .or_else(|| laborious(path).map(Reply::html))
            .or_else(|| odd(path))
            .unwrap_or_else(|| plain(path)),
    }
}

/// Pages that send their reader on, or say that they will.
fn refreshing(path: &str, query: &str) -> Option<Reply> {
    Some(match path {
        "/refresh-to" => Reply::html(format!(
            "<meta http-equiv=refresh content='0; url={query}'><p>Wait"
        )),
        "/refresh" => Reply::html("<meta http-equiv=refresh content='0; url=/article'><p>Wait"),
        "/refresh-later" => Reply::html(
            "<title>Slides</title><meta http-equiv=refresh content='60; url=/article'><p>Stay here",
        ),
        "/refresh-around" => Reply::html(
            "<meta http-equiv=refresh content='0; url=/refresh-around?'><p>Round and round",
        ),
        _ => return None,
    })
}

/// Statuses, media types and character encodings, and a page that is like any other.
fn plain(path: &str) -> Reply {
    match path {
        "/article" => Reply::html(ARTICLE),
        "/missing" => Reply::body(
            404,
            "text/html",
            b"<title>Gone</title><p>There is no such page",
        ),
        "/broken" => Reply::body(500, "text/plain", b"oops"),
        "/russian" => Reply::body(
            200,
            "text/html",
            b"<meta charset=windows-1251><title>\xcf\xf0\xe8\xe2\xe5\xf2</title><p>\xcc\xe8\xf0",
        ),
        "/plain" => Reply::body(200, "text/plain; charset=iso-8859-1", b"caf\xe9 *as it is*"),
        "/json" => Reply::body(200, "application/json", br#"{"a": [1, 2]}"#),
        "/markdown" => Reply::body(200, "text/markdown", b"# Title\n\n- one\n"),
        "/pdf" => Reply::body(200, "application/pdf", b"%PDF-1.7\n%\xe2\xe3\n"),
        "/image" => Reply::body(200, "image/png", b"\x89PNG\r\n\x1a\n"),
        "/empty" => Reply::html(""),
        "/mislabelled" => Reply::html(
            b"<title>Caf\xe9</title><p>A caf\xe9, d\xe9j\xe0 vu, na\xefve and all that.",
        ),
        "/latin-by-name" => Reply::body(
            200,
            "text/html; charset=iso-8859-1",
            "<title>Café</title><p>A café, déjà vu, naïve and all that.",
        ),
        _ => Reply::html(
            "<title>Hello</title><p>Hello, <b>you</b>. <a href='/x'>More</a><img src='data:image/png;base64,AA'>",
        ),
    }
}

/// Markup that is wrong, or hides something, or is much.
fn odd(path: &str) -> Option<Reply> {
    Some(match path {
        "/long" => Reply::html(format!(
            "<title>Long</title><main><p>{}</p></main>",
            "word and word. ".repeat(20_000)
        )),
        "/deep" => Reply::html(format!("{}text", "<div>".repeat(200_000))),
        "/spaces" => Reply::html(
            "<p><b>bold</b> <i>italic</i> and <code><span>pip</span> <span>install</span></code></p>",
        ),
        "/live" => Reply::html(LIVE),
        "/live-code" => Reply::html(LIVE_CODE),
        "/live-text" => Reply::body(200, "text/plain", b"&lt; <img src=x onerror=alert(1)> *a*"),
        "/cut-code" => Reply::html(format!(
            "<p><code>{}</code>",
            "&lt;img src=x onerror=alert(1)> ".repeat(10_000)
        )),
        "/declared" => Reply::html(format!(
            "<title>{}</title><meta name=description content='{}'><p>{}</p>",
            "Word ".repeat(1900),
            "told ".repeat(1900),
            "A first paragraph of more than a dozen words, which describes nothing of what the page declares. "
        )),
        "/declared-more" => Reply::html(format!("<title>{}</title><p>text", "Word ".repeat(2100))),
        "/huge" => Reply::html("x".repeat(9 << 20)),
        "/script" => Reply::html("<title>App</title><div id=root></div><script>start()</script>"),
        "/frames" => Reply::html(FRAMES),
        "/tangled" => Reply::html(TANGLED),
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
