//! Compression: an answer is encoded whole before it is sent, so that a peer which reads slowly holds the encoded bytes and no
//! encoder, whose state is megabytes.
//!
//! Which encoding is used, `tower-http` says. Published documents are encoded once. Few large answers are encoded at a time;
//! while they are, others go out as they are.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use http::header::{CONTENT_ENCODING, VARY};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes};
use tokio::sync::Semaphore;
use tower::Service as _;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};
use tower_http::compression::{Compression, CompressionBody};

use super::connection::HttpResponse;
use super::content::{ContentPieces, ResponseContent};
use crate::published::Document;

/// Smaller bodies are not worth compressing.
const FROM_BYTES: u64 = 1024;
/// Larger ones wait for an encoder.
const LARGE_BYTES: u64 = 64 * 1024;

/// The encoders of one listener.
#[derive(Clone)]
pub(crate) struct ResponseCompressor {
    /// A place for each large answer that may be encoded at once.
    large: Arc<Semaphore>,
}

impl ResponseCompressor {
    pub(crate) fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            large: Arc::new(Semaphore::new(processors)),
        }
    }

    /// Answers a request, with the answer encoded as the client likes it best. Tells whether it was.
    pub(crate) fn answer<B, A, F>(
        &self,
        request: Request<B>,
        answered: A,
    ) -> impl Future<Output = (Response<ContentPieces>, bool)> + use<B, A, F>
    where
        A: FnOnce(Request<B>) -> F,
        F: Future<Output = HttpResponse>,
    {
        let mut answered = Some(answered);
        let service = tower::service_fn(move |request| {
            // The layer calls its service once.
            let replied = answered.take().map(|answered| answered(request));
            async move {
                match replied {
                    Some(replied) => Ok::<_, Infallible>(ContentPieces::of(replied.await)),
                    None => Ok(ContentPieces::of(Response::new(ResponseContent::empty()))),
                }
            }
        });
        // A stream of events would wait in the encoder.
        let worthwhile = SizeAbove::new(FROM_BYTES)
            .and(NotForContentType::SSE)
            .and(HasEncoder(Arc::clone(&self.large)));
        let responded = Compression::new(service)
            .compress_when(worthwhile)
            .call(request);
        let large = Arc::clone(&self.large);
        async move {
            match settle(responded.await, large) {
                Settled::AsItIs(response) => (response, false),
                Settled::Encoding(encoding) => (encoding.await, true),
            }
        }
    }
}

/// What becomes of an answer. An encoder is too large to be moved about with the requests that need none.
#[expect(
    clippy::large_enum_variant,
    reason = "made once a request and taken apart at once; a box would cost more"
)]
enum Settled {
    AsItIs(Response<ContentPieces>),
    Encoding(Pin<Box<dyn Future<Output = Response<ContentPieces>> + Send>>),
}

fn settle(
    responded: Result<Response<CompressionBody<ContentPieces>>, Infallible>,
    large: Arc<Semaphore>,
) -> Settled {
    let Ok(mut response) = responded;
    // Where a client takes no encoding at all, the layer says 406 in place of an answer that was made already.
    *response.status_mut() = response.body().get_ref().status();
    if response.status() == StatusCode::NOT_MODIFIED {
        response
            .headers_mut()
            .append(VARY, HeaderValue::from_static("accept-encoding"));
    }
    let encoding = response.headers().get(CONTENT_ENCODING).cloned();
    match encoding.filter(|_| !response.body().get_ref().is_encoded()) {
        Some(encoding) => Settled::Encoding(Box::pin(encoded(response, encoding, large))),
        None => Settled::AsItIs(response.map(CompressionBody::into_inner)),
    }
}

async fn encoded(
    response: Response<CompressionBody<ContentPieces>>,
    encoding: HeaderValue,
    large: Arc<Semaphore>,
) -> Response<ContentPieces> {
    let (parts, body) = response.into_parts();
    let content = match parts.extensions.get::<Arc<Document>>() {
        Some(document) => {
            ResponseContent::shared(document.encoded(&encoding, Box::pin(collected(body))).await)
        }
        None => {
            let is_large = body.get_ref().size_hint().lower() > LARGE_BYTES;
            let _place = if is_large {
                large.acquire().await.ok()
            } else {
                None
            };
            ResponseContent::Whole(collected(body).await)
        }
    };
    let pieces = ContentPieces::new(content, parts.status);
    Response::from_parts(parts, pieces)
}

async fn collected(body: CompressionBody<ContentPieces>) -> Bytes {
    // In one piece, which has no spare room.
    body.collect()
        .await
        .expect("memory is encoded into memory without fail")
        .to_bytes()
}

/// Whether an answer can be encoded now.
#[derive(Clone)]
struct HasEncoder(Arc<Semaphore>);

impl Predicate for HasEncoder {
    fn should_compress<B: Body>(&self, response: &Response<B>) -> bool {
        let is_small = response.body().size_hint().lower() <= LARGE_BYTES;
        is_small
            || self.0.available_permits() > 0
            || response.extensions().get::<Arc<Document>>().is_some()
    }
}
