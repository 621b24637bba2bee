//! One connection of the lab's HTTP server, and the exchanges on it.

use std::future::pending;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::HOST;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio_rustls::TlsAcceptor;

use super::{ANY_HOST, Reply, Script, Then, Visit};

/// Between two bytes of a site that drips.
const DROP: Duration = Duration::from_millis(20);
/// One frame of a body that is made of several.
const PIECE_BYTES: usize = 16 << 10;

/// What is kept of a request's body.
const KEPT_BYTES: usize = 64 << 10;

/// Serves all that comes on a connection.
pub(super) async fn serve(stream: TcpStream, tls: Option<TlsAcceptor>, script: Arc<Script>) {
    let mut is_two = false;
    let stream: Box<dyn Stream> = match tls {
        None => Box::new(stream),
        Some(tls) => {
            // Whoever does not trust the site, or wants another version, goes away.
            let Ok(stream) = tls.accept(stream).await else {
                return;
            };
            is_two = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            Box::new(stream)
        }
    };
    let ear = Arc::new(Ear::default());
    let line = TokioIo::new(Line {
        stream,
        ear: Arc::clone(&ear),
    });
    let (taker, mut taken) = mpsc::unbounded_channel();
    let service = service_fn(move |request| {
        exchange(
            request,
            Arc::clone(&script),
            Arc::clone(&ear),
            taker.clone(),
        )
    });
    // A client that goes away in the middle is what some tests are for.
    if is_two {
        let connection = http2::Builder::new(TokioExecutor::new())
            .auto_date_header(false)
            .serve_connection(line, service);
        tokio::select! {
            _ = connection => {}
            _ = taken.recv() => {}
        }
        return;
    }
    let mut connection = http1::Builder::new()
        .auto_date_header(false)
        .keep_alive(false)
        .serve_connection(line, service);
    let (bytes, then) = tokio::select! {
        _ = &mut connection => return,
        Some(raw) = taken.recv() => raw,
    };
    let line = connection.into_parts().io.into_inner();
    say_raw(line, &bytes, then).await.ok();
}

/// Answers in the place of HTTP.
async fn say_raw(mut line: Line, bytes: &[u8], then: Then) -> io::Result<()> {
    line.write_all(bytes).await?;
    line.flush().await?;
    match then {
        Then::Close => Ok(()),
        Then::Hang => tokio::io::copy(&mut line, &mut tokio::io::sink())
            .await
            .map(drop),
        Then::Repeat(bytes) => loop {
            line.write_all(&bytes).await?;
        },
        Then::Drip(byte) => {
            let mut drops = tokio::time::interval(DROP);
            loop {
                tokio::select! {
                    ended = line.read_u8() => return ended.map(drop),
                    _ = drops.tick() => {}
                }
                line.write_u8(byte).await?;
                line.flush().await?;
            }
        }
    }
}

/// Answers a request, or takes its connection for what is no answer of HTTP.
async fn exchange(
    request: Request<Incoming>,
    script: Arc<Script>,
    ear: Arc<Ear>,
    taker: UnboundedSender<(Vec<u8>, Then)>,
) -> io::Result<Response<Content>> {
    let visit = read(request, &ear).await?;
    let mut exchange = Exchange::begin(&script, &visit);
    let is_head = visit.method == "HEAD";
    let (bytes, then) = match (script.answer)(visit).await {
        Reply::Say {
            status,
            headers,
            body,
        } => {
            if is_head {
                exchange.end(true);
            }
            let response = headers.into_iter().fold(
                Response::builder().status(status),
                |response, (name, value)| response.header(name, value),
            );
            let content = Content::of(body, true, true, exchange);
            return response.body(content).map_err(io::Error::other);
        }
        Reply::Stream { body, ends } => {
            return Ok(Response::new(Content::of(body, false, ends, exchange)));
        }
        // An error of the service resets the stream.
        Reply::Reset => return Err(io::Error::other("reset")),
        Reply::Hang => pending().await,
        Reply::Freeze => {
            ear.is_deaf.store(true, Ordering::Relaxed);
            pending().await
        }
        Reply::Close => (Vec::new(), Then::Close),
        Reply::Raw(bytes, then) => (bytes, then),
    };
    exchange.end(true);
    taker.send((bytes, then)).ok();
    pending().await
}

async fn read(request: Request<Incoming>, ear: &Ear) -> io::Result<Visit> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let host = match parts.uri.authority() {
        Some(authority) => authority.to_string(),
        None => parts
            .headers
            .get(HOST)
            .filter(|_| parts.version < Version::HTTP_2)
            .map_or_else(String::new, |host| text(host.as_bytes())),
    };
    let path = parts.uri.path_and_query();
    let heard = std::mem::take(&mut *ear.heard.lock().expect("no panic"));
    let head = heard.windows(4).position(|end| end == b"\r\n\r\n");
    Ok(Visit {
        version: parts.version,
        method: parts.method.to_string(),
        host,
        path: path.map_or_else(String::new, ToString::to_string),
        headers: parts
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), text(value.as_bytes())))
            .collect(),
        head: head.map_or_else(String::new, |end| text(&heard[..end + 4])),
        body: body.to_bytes(),
        came: Instant::now(),
        answered: None,
        gone: false,
    })
}

/// A request that is under way, until it is answered or dropped.
struct Exchange {
    script: Arc<Script>,
    at: usize,
    is_over: bool,
}

impl Exchange {
    fn begin(script: &Arc<Script>, visit: &Visit) -> Self {
        let mut at = 0;
        script.seen.send_modify(|seen| {
            at = seen.visits.len();
            let kept = visit.body.len().min(KEPT_BYTES);
            seen.visits.push(Visit {
                body: Bytes::copy_from_slice(&visit.body[..kept]),
                ..visit.clone()
            });
            for host in [&visit.host, ANY_HOST] {
                let (now, most) = seen.under_way.entry(host.to_owned()).or_default();
                (*now, *most) = (*now + 1, (*most).max(*now + 1));
            }
        });
        Self {
            script: Arc::clone(script),
            at,
            is_over: false,
        }
    }

    fn end(&mut self, is_answered: bool) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        self.script.seen.send_modify(|seen| {
            let visit = &mut seen.visits[self.at];
            (visit.answered, visit.gone) = (is_answered.then(Instant::now), !is_answered);
            for host in [&visit.host, ANY_HOST] {
                let (now, _) = seen.under_way.get_mut(host).expect("it began");
                *now -= 1;
            }
        });
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.end(false);
    }
}

/// A body, which ends its exchange before its client can read it to its end, and so before another request.
struct Content {
    left: Bytes,
    is_sized: bool,
    ends: bool,
    exchange: Exchange,
}

impl Content {
    fn of(body: Vec<u8>, is_sized: bool, ends: bool, mut exchange: Exchange) -> Self {
        if body.is_empty() && ends {
            exchange.end(true);
        }
        Self {
            left: Bytes::from(body),
            is_sized,
            ends,
            exchange,
        }
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.left.is_empty() {
            let end = Poll::Ready(None);
            return if self.ends { end } else { Poll::Pending };
        }
        let length = self.left.len().min(PIECE_BYTES);
        let piece = self.left.split_to(length);
        if self.left.is_empty() && self.ends {
            self.exchange.end(true);
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty() && self.ends
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_sized {
            SizeHint::with_exact(self.left.len() as u64)
        } else {
            SizeHint::default()
        }
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// What came on a connection since the last request, and whether it fell silent.
#[derive(Default)]
struct Ear {
    heard: Mutex<Vec<u8>>,
    is_deaf: AtomicBool,
}

/// A connection with such an ear.
struct Line {
    stream: Box<dyn Stream>,
    ear: Arc<Ear>,
}

impl Line {
    fn poll<T>(
        &mut self,
        poll: impl FnOnce(Pin<&mut dyn Stream>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if self.ear.is_deaf.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        poll(Pin::new(&mut *self.stream))
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = self.poll(|stream| stream.poll_read(cx, buf));
        let mut heard = self.ear.heard.lock().expect("no panic");
        heard.extend_from_slice(&buf.filled()[before..]);
        read
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll(|stream| stream.poll_write(cx, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(|stream| stream.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(|stream| stream.poll_shutdown(cx))
    }
}
