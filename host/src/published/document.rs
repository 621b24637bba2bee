//! A document as it is kept: its bytes, its tag, and its encoded forms.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use crate::base::entity_tag::entity_tag;

/// Encodings in which a document is kept beside its own bytes.
const ENCODINGS: [&str; 2] = ["gzip", "br"];

/// A document with its type and its tag.
pub(crate) struct Document {
    pub(crate) bytes: Bytes,
    pub(crate) media_type: &'static str,
    pub(crate) etag: HeaderValue,
    /// Each made for the first request that wants it.
    encoded: [OnceCell<Bytes>; ENCODINGS.len()],
}

impl Document {
    pub(crate) fn new(text: String, media_type: &'static str) -> Arc<Self> {
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        let bytes = Bytes::from(text.into_boxed_str().into_boxed_bytes());
        Arc::new(Self {
            bytes,
            media_type,
            etag: entity_tag(&digest),
            encoded: Default::default(),
        })
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).expect("a document is made of text")
    }

    /// The document in an encoding, which `encode` makes where nobody did before.
    pub(crate) async fn encoded(
        &self,
        encoding: &HeaderValue,
        encode: impl Future<Output = Bytes>,
    ) -> Bytes {
        match ENCODINGS.iter().position(|known| encoding == known) {
            Some(place) => self.encoded[place].get_or_init(|| encode).await.clone(),
            None => encode.await,
        }
    }
}
