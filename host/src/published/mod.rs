//! The documents that describe what is served: OpenAPI, the developer guide, the MCP tools, resources and cards.
//!
//! Made once with each catalogue from the operations' own rows, so that no document can name what is not served. Knows no
//! request: a transport picks a document and sends it.

pub(crate) mod cards;
mod document;
mod guide;
mod openapi;
mod refusals;
pub(crate) mod resources;
mod tools;

use std::sync::Arc;

use bytes::Bytes;

pub(crate) use self::document::Document;
use self::resources::McpResources;
use crate::catalogue::revision::Revision;
use crate::catalogue::{Bound, Catalogue, CollisionError};
use crate::config::Credits;

/// A catalogue with its documents: what a request takes once and keeps, so that a route and its place in every document come
/// from the same set of revisions.
pub(crate) struct Snapshot {
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) documents: PublishedDocuments,
    site: Site,
}

impl Snapshot {
    /// Serves these revisions, or says which two collide.
    pub(crate) fn new(revisions: Vec<Arc<Revision>>, site: &Site) -> Result<Self, CollisionError> {
        let catalogue = Catalogue::new(revisions)?;
        Ok(Self {
            documents: PublishedDocuments::new(&catalogue.published(), site),
            catalogue: Arc::new(catalogue),
            site: site.clone(),
        })
    }

    pub(crate) fn site(&self) -> &Site {
        &self.site
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
    pub(crate) resources: McpResources,
}

impl PublishedDocuments {
    fn new(bound: &[Bound], site: &Site) -> Self {
        let base_url = &site.base_url;
        let openapi = Document::new(openapi::document(bound, base_url), "application/json");
        let guide = Document::new(guide::document(bound, site), "text/markdown");
        Self {
            resources: McpResources::new(&guide, &openapi),
            openapi,
            guide,
            card: Document::new(cards::server_card(base_url), "application/json"),
            resource_metadata: Document::new(
                cards::resource_metadata(bound, site),
                "application/json",
            ),
            tools: tools::list(bound),
        }
    }
}
