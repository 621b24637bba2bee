//! The documents that describe what is served: OpenAPI, the developer guide, the MCP catalogue and cards.
//!
//! Made once with each catalogue from the operations' own rows, so that no document can name what is not served. Knows how
//! documents are kept and nothing of what stands in them.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use crate::catalogue::Bound;
use crate::config::Credits;
use crate::http::{discovery, guide, openapi, rest};
use crate::mcp;
use crate::mcp::resources::Resources;

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
        Arc::new(Self { bytes, media_type, etag: rest::entity_tag(&digest), encoded: Default::default() })
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).expect("a document is made of text")
    }

    /// The document in an encoding, which `encode` makes where nobody did before.
    pub(crate) async fn encoded(&self, encoding: &HeaderValue, encode: impl Future<Output = Bytes>) -> Bytes {
        match ENCODINGS.iter().position(|known| encoding == known) {
            Some(place) => self.encoded[place].get_or_init(|| encode).await.clone(),
            None => encode.await,
        }
    }
}

/// What the documents say of this installation.
#[derive(Clone)]
pub(crate) struct Site {
    /// Without a trailing slash.
    pub(crate) base_url: String,
    /// The identity provider whose access tokens are taken.
    pub(crate) issuer: Option<String>,
    /// What calls cost here, and how many of an account may run at once.
    pub(crate) credits: Credits,
}

/// All documents of one catalogue.
pub(crate) struct PublishedDocuments {
    pub(crate) openapi: Arc<Document>,
    pub(crate) guide: Arc<Document>,
    /// The MCP server card.
    pub(crate) card: Arc<Document>,
    /// The OAuth protected-resource metadata of `/mcp` (RFC 9728).
    pub(crate) resource_metadata: Arc<Document>,
    /// The result of `tools/list`.
    pub(crate) tools: Bytes,
    /// The results of `resources/list` and of `resources/read`.
    pub(crate) resources: Resources,
}

impl PublishedDocuments {
    pub(crate) fn new(bound: &[Bound], site: &Site) -> Self {
        let base_url = &site.base_url;
        let openapi = Document::new(openapi::document(bound, base_url), "application/json");
        let guide = Document::new(guide::document(bound, site), "text/markdown");
        Self {
            resources: Resources::new(&guide, &openapi),
            openapi,
            guide,
            card: Document::new(discovery::server_card(base_url), "application/json"),
            resource_metadata: Document::new(discovery::resource_metadata(bound, site), "application/json"),
            tools: mcp::tools::list(bound),
        }
    }
}
