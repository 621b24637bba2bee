//! The host's own documents and health: what a client, a crawler or a load balancer asks before it has a credential.

use std::sync::Arc;

use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_TYPE, ETAG, VARY};
use http::{HeaderMap, Response, StatusCode};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::connection::HttpResponse;
use super::content::ResponseContent;
use super::envelope;
use crate::catalogue::Catalogue;
use crate::published::{Document, Snapshot};
use crate::stores::Store;
use crate::transport::rest;

const CARD_TYPE: &str = "application/mcp-server-card+json";

/// A route of the host's own.
#[derive(Clone, Copy)]
pub(crate) enum HostRoute {
    OpenApi,
    Guide,
    Card,
    ResourceMetadata,
    Health,
    Readiness,
}

/// Whether it is asked how the host is: that is answered also when everything is taken.
pub(crate) fn is_health(path: &str) -> bool {
    let found = find(path, "");
    matches!(found, Some(HostRoute::Health | HostRoute::Readiness))
}

/// Finds the host's own route for a path. `base_path` is the path of the base URL, empty or with a leading slash, behind
/// which RFC 9728 looks for the metadata.
fn find(path: &str, base_path: &str) -> Option<HostRoute> {
    match path {
        "/openapi.json" => Some(HostRoute::OpenApi),
        "/developer-guide" => Some(HostRoute::Guide),
        "/healthz" => Some(HostRoute::Health),
        "/readyz" => Some(HostRoute::Readiness),
        "/mcp/server-card" | "/.well-known/mcp/server-card.json" => Some(HostRoute::Card),
        "/.well-known/oauth-protected-resource" => Some(HostRoute::ResourceMetadata),
        _ => {
            let inserted = path.strip_prefix("/.well-known/oauth-protected-resource")?;
            let resource = inserted.strip_prefix(base_path).unwrap_or(inserted);
            (resource == "/mcp").then_some(HostRoute::ResourceMetadata)
        }
    }
}

/// What the host's own routes know of the process.
pub(crate) struct HostRoutes {
    /// The path of the base URL, empty or with a leading slash.
    pub(crate) base_path: String,
    pub(crate) store: Arc<Store>,
    /// Cancelled when the process stops.
    pub(crate) stop: CancellationToken,
}

impl HostRoutes {
    /// Finds the host's own route for a path.
    pub(crate) fn find(&self, path: &str) -> Option<HostRoute> {
        find(path, &self.base_path)
    }

    /// Answers a GET for one of them.
    pub(crate) fn answer(
        &self,
        snapshot: &Snapshot,
        found: HostRoute,
        headers: &HeaderMap,
    ) -> HttpResponse {
        let published = &snapshot.documents;
        match found {
            HostRoute::OpenApi => {
                document(&published.openapi, headers, published.openapi.media_type)
            }
            HostRoute::Guide => document(&published.guide, headers, "text/markdown; charset=utf-8"),
            HostRoute::ResourceMetadata => {
                document(&published.resource_metadata, headers, "application/json")
            }
            HostRoute::Card => {
                let media_type = if rest::accepts(headers, CARD_TYPE) {
                    CARD_TYPE
                } else {
                    "application/json"
                };
                let mut response = document(&published.card, headers, media_type);
                envelope::set(response.headers_mut(), VARY, "Accept");
                response
            }
            HostRoute::Health => envelope::json(StatusCode::OK, r#"{"status":"ok"}"#),
            HostRoute::Readiness => self.readiness(&snapshot.catalogue),
        }
    }

    /// Ready while the store answers and the process is not draining.
    fn readiness(&self, catalogue: &Catalogue) -> HttpResponse {
        let plugins: Vec<Value> = catalogue
            .revisions()
            .iter()
            .map(|revision| json!({ "name": *revision.plugin, "version": revision.version }))
            .collect();
        let (status, word) = match (self.stop.is_cancelled(), self.store.is_healthy()) {
            (false, true) => (StatusCode::OK, "ready"),
            (true, _) => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
            (false, false) => (StatusCode::SERVICE_UNAVAILABLE, "the store fails"),
        };
        let told = json!({ "status": word, "plugins": plugins });
        envelope::json(status, told.to_string())
    }
}

fn document(
    document: &Arc<Document>,
    headers: &HeaderMap,
    media_type: &'static str,
) -> HttpResponse {
    let mut response = if rest::if_none_match(headers, &document.etag) {
        envelope::empty(StatusCode::NOT_MODIFIED)
    } else {
        let mut response = Response::new(ResponseContent::shared(document.bytes.clone()));
        // It knows its encoded forms.
        response.extensions_mut().insert(Arc::clone(document));
        response
    };
    let headers = response.headers_mut();
    headers.insert(ETAG, document.etag.clone());
    envelope::set(headers, CONTENT_TYPE, media_type);
    // Public, and short: plugins are swapped while the process runs.
    envelope::set(headers, CACHE_CONTROL, "public, max-age=60");
    envelope::set(headers, ACCESS_CONTROL_ALLOW_ORIGIN, "*");
    response
}
