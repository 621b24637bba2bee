//! The documents that describe what is served: OpenAPI, the developer guide, the MCP catalogue and cards.
//!
//! Made once with each catalogue from the operations' own rows, so that no document can name what is not served. Knows how
//! documents are kept and nothing of what stands in them.

use bytes::Bytes;
use http::HeaderValue;
use sha2::{Digest, Sha256};

use crate::catalogue::Bound;
use crate::config::Credits;
use crate::http::{discovery, guide, openapi, rest};
use crate::mcp;

/// A document with its type and its tag.
pub(crate) struct Document {
    pub(crate) text: Box<str>,
    pub(crate) bytes: Bytes,
    pub(crate) media_type: &'static str,
    pub(crate) etag: HeaderValue,
}

impl Document {
    pub(crate) fn new(text: String, media_type: &'static str) -> Self {
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        Self { text: text.into(), bytes, media_type, etag: rest::entity_tag(&digest) }
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
pub(crate) struct Published {
    pub(crate) openapi: Document,
    pub(crate) guide: Document,
    /// The MCP server card.
    pub(crate) card: Document,
    /// The OAuth protected-resource metadata of `/mcp` (RFC 9728).
    pub(crate) resource_metadata: Document,
    /// `tools` of `tools/list`, as JSON text.
    pub(crate) tools: Box<str>,
}

impl Published {
    pub(crate) fn new(bound: &[Bound], site: &Site) -> Self {
        let base_url = &site.base_url;
        Self {
            openapi: Document::new(openapi::document(bound, base_url), "application/json"),
            guide: Document::new(guide::document(bound, site), "text/markdown"),
            card: Document::new(discovery::server_card(base_url), "application/json"),
            resource_metadata: Document::new(discovery::resource_metadata(bound, site), "application/json"),
            tools: mcp::tools::list(bound).into(),
        }
    }
}
