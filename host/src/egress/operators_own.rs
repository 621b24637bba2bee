//! The operator's own traffic: what a setting or a command names, such as the keys of its identity provider.
//!
//! It is exempt from the rules for what plugins reach, so it goes to the origin that the operator wrote and to https origins
//! that documents from there name, and nowhere else: a redirect is an answer like any other that is not the document. Knows
//! nothing of what it fetches.

use std::io;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use reqwest::redirect::Policy;
use reqwest::{Client, header};
use url::{Origin, Url};

use crate::base::clock::microseconds;

/// A connection that is not there by then will not be.
const CONNECT: Duration = Duration::from_secs(3);
/// Between two pieces of an answer.
const IDLE: Duration = Duration::from_secs(30);

/// Fetches documents for one purpose.
pub(crate) struct OperatorsOwn {
    client: Client,
    purpose: &'static str,
    origin: Origin,
}

/// Why a document was not fetched. No message holds a query string.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DocumentError {
    #[error("the destination must be https or at the configured origin")]
    Destination,
    #[error("the document did not arrive within {0:?}")]
    Deadline(Duration),
    #[error("the exchange failed: {}", innermost(.0))]
    Exchange(#[source] reqwest::Error),
    #[error("the response has the status {0}")]
    Status(u16),
    #[error("the document is larger than {bytes_max} bytes")]
    TooLarge { bytes_max: u64 },
    #[error("nothing arrived for {0:?}")]
    Idle(Duration),
    #[error("the received data cannot be stored: {0}")]
    Keep(#[source] io::Error),
}

impl OperatorsOwn {
    /// For the origin of a URL that the operator wrote. The purpose is what the audit lines name.
    ///
    /// # Errors
    /// The system's trusted roots cannot be read.
    pub(crate) fn new(purpose: &'static str, configured: &Url) -> Result<Self, DocumentError> {
        // Each refusal by name: another crate's features may switch any of these on for everyone.
        let client = Client::builder()
            .user_agent(concat!("switchbay/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .http1_only()
            .connect_timeout(CONNECT)
            // Fetches are minutes apart, and a kept connection would be one that the other side has closed.
            .pool_max_idle_per_host(0)
            .build()
            .map_err(DocumentError::Exchange)?;
        Ok(Self {
            client,
            purpose,
            origin: configured.origin(),
        })
    }

    /// Whether a document may be fetched from there.
    pub(crate) fn allows(&self, url: &Url) -> bool {
        let plain = url.username().is_empty() && url.password().is_none() && url.has_host();
        plain && (url.origin() == self.origin || url.scheme() == "https")
    }

    /// Fetches one JSON document, and writes one audit line of it.
    pub(crate) async fn fetch(
        &self,
        url: &Url,
        bytes_max: usize,
        deadline: Duration,
    ) -> Result<Bytes, DocumentError> {
        let mut body = BytesMut::new();
        let take = |chunk: &[u8], _: Option<u64>| {
            body.extend_from_slice(chunk);
            Ok(())
        };
        let bytes_max = u64::try_from(bytes_max).unwrap_or(u64::MAX);
        self.audited(url, "application/json", bytes_max, deadline, take)
            .await?;
        Ok(body.freeze())
    }

    /// Fetches anything and hands it out piece by piece, each with the length that was announced, and writes one audit line
    /// of it.
    pub(crate) async fn download(
        &self,
        url: &Url,
        bytes_max: u64,
        deadline: Duration,
        take: impl FnMut(&[u8], Option<u64>) -> io::Result<()>,
    ) -> Result<(), DocumentError> {
        self.audited(url, "*/*", bytes_max, deadline, take).await
    }

    async fn audited(
        &self,
        url: &Url,
        accept: &'static str,
        bytes_max: u64,
        deadline: Duration,
        take: impl FnMut(&[u8], Option<u64>) -> io::Result<()>,
    ) -> Result<(), DocumentError> {
        let started = Instant::now();
        let fetched = if self.allows(url) {
            let exchange = self.exchange(url, accept, bytes_max, take);
            let fetched = tokio::time::timeout(deadline, exchange).await;
            fetched.unwrap_or(Err(DocumentError::Deadline(deadline)))
        } else {
            Err(DocumentError::Destination)
        };
        let elapsed_us = microseconds(started.elapsed());
        let origin = url.origin().ascii_serialization();
        let (purpose, path) = (self.purpose, url.path());
        match &fetched {
            Ok(bytes) => {
                tracing::info!(
                    purpose,
                    origin,
                    path,
                    bytes,
                    elapsed_us,
                    "a document was fetched"
                );
            }
            Err(error) => {
                tracing::info!(purpose, origin, path, cause = %error, elapsed_us, "a document could not be fetched");
            }
        }
        fetched.map(|_| ())
    }

    /// Gives back how many bytes came.
    async fn exchange(
        &self,
        url: &Url,
        accept: &'static str,
        bytes_max: u64,
        mut take: impl FnMut(&[u8], Option<u64>) -> io::Result<()>,
    ) -> Result<u64, DocumentError> {
        let failed = |error: reqwest::Error| DocumentError::Exchange(error.without_url());
        let too_large = DocumentError::TooLarge { bytes_max };
        let request = self.client.get(url.clone()).header(header::ACCEPT, accept);
        let mut response = request.send().await.map_err(failed)?;
        if !response.status().is_success() {
            return Err(DocumentError::Status(response.status().as_u16()));
        }
        let announced = response.content_length();
        if announced.is_some_and(|announced| announced > bytes_max) {
            return Err(too_large);
        }
        let mut bytes = 0;
        loop {
            let arrived = tokio::time::timeout(IDLE, response.chunk())
                .await
                .map_err(|_| DocumentError::Idle(IDLE))?;
            let Some(chunk) = arrived.map_err(failed)? else {
                return Ok(bytes);
            };
            bytes += u64::try_from(chunk.len()).unwrap_or(u64::MAX);
            if bytes > bytes_max {
                return Err(too_large);
            }
            take(&chunk, announced).map_err(DocumentError::Keep)?;
        }
    }
}

/// The last cause: what stands around it only says that sending failed.
fn innermost(error: &reqwest::Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
