//! The host's own documents and health: what a client, a crawler or a load balancer asks before it has a credential.

use std::sync::Arc;

use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_TYPE, ETAG, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::{Value, json};
use url::Url;

use super::connection::HttpResponse;
use super::content::Content;
use super::{envelope, rest};
use crate::app::App;
use crate::catalogue::{Bound, Catalogue};
use crate::mcp::protocol::{self, VERSIONS};
use crate::published::{Document, Site};

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
    matches!(find(path, ""), Some(HostRoute::Health | HostRoute::Readiness))
}

/// Finds the host's own route for a path. `base_path` is the path of the base URL, empty or with a leading slash, behind
/// which RFC 9728 looks for the metadata.
pub(crate) fn find(path: &str, base_path: &str) -> Option<HostRoute> {
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

/// Answers a GET for one of them.
pub(crate) fn answer(app: &App, catalogue: &Catalogue, found: HostRoute, headers: &HeaderMap) -> HttpResponse {
    let published = catalogue.published();
    match found {
        HostRoute::OpenApi => document(&published.openapi, headers, published.openapi.media_type),
        HostRoute::Guide => document(&published.guide, headers, "text/markdown; charset=utf-8"),
        HostRoute::ResourceMetadata => document(&published.resource_metadata, headers, "application/json"),
        HostRoute::Card => {
            let media_type = if rest::accepts(headers, CARD_TYPE) { CARD_TYPE } else { "application/json" };
            let mut response = document(&published.card, headers, media_type);
            response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
            response
        }
        HostRoute::Health => envelope::json(StatusCode::OK, r#"{"status":"ok"}"#),
        HostRoute::Readiness => readiness(app, catalogue),
    }
}

/// Ready while the store answers and the process is not draining.
fn readiness(app: &App, catalogue: &Catalogue) -> HttpResponse {
    let plugins: Vec<Value> = catalogue
        .revisions()
        .iter()
        .map(|revision| json!({ "name": *revision.plugin, "version": revision.version }))
        .collect();
    let draining = app.stop.is_cancelled();
    let store = app.store.is_healthy();
    let (status, word) = match (draining, store) {
        (false, true) => (StatusCode::OK, "ready"),
        (true, _) => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
        (false, false) => (StatusCode::SERVICE_UNAVAILABLE, "the store fails"),
    };
    envelope::json(status, json!({ "status": word, "plugins": plugins }).to_string())
}

fn document(document: &Arc<Document>, headers: &HeaderMap, media_type: &'static str) -> HttpResponse {
    let mut response = if rest::if_none_match(headers, &document.etag) {
        envelope::empty(StatusCode::NOT_MODIFIED)
    } else {
        let mut response = Response::new(Content::shared(document.bytes.clone()));
        // It knows its encoded forms.
        response.extensions_mut().insert(Arc::clone(document));
        response
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(ETAG, document.etag.clone());
    // Public, and short: plugins are swapped while the process runs.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=60"));
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

/// The MCP server card: the shape of SEP-2127, with what scanners of the older SEP-1649 read beside it.
pub(crate) fn server_card(base_url: &str) -> String {
    // Relative to the origin, as the older shape has it.
    let path = Url::parse(base_url).map(|url| url.path().trim_end_matches('/').to_owned()).unwrap_or_default();
    let header = json!({
        "name": "Authorization",
        "description": "Bearer and an API key or an OAuth access token with the scopes of the tools to be called",
        "isSecret": true,
        "isRequired": false,
    });
    let remote = json!({
        "type": "streamable-http",
        "url": format!("{base_url}/mcp"),
        "supportedProtocolVersions": VERSIONS,
        "headers": [header],
    });
    let card = json!({
        "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": "dev.switchbay/api",
        "title": "Switchbay",
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Developer API tools, each served by a sandboxed plugin",
        "websiteUrl": format!("{base_url}/developer-guide"),
        "remotes": [remote],
        "serverInfo": protocol::server_info(),
        "transport": { "type": "streamable-http", "endpoint": format!("{path}/mcp") },
        "capabilities": { "tools": {}, "resources": {} },
    });
    card.to_string()
}

/// The OAuth protected-resource metadata. Without an identity provider it names no authorization server.
pub(crate) fn resource_metadata(bound: &[Bound], site: &Site) -> String {
    let Site { base_url, issuer, .. } = site;
    let mut scopes: Vec<&str> = bound
        .iter()
        .flat_map(|one| one.rest().map(|face| &face.scope).into_iter().chain(one.tool().map(|face| &face.scope)))
        .map(|scope| scope.as_str())
        .collect();
    scopes.sort_unstable();
    scopes.dedup();
    let mut metadata = json!({
        "resource": format!("{base_url}/mcp"),
        "scopes_supported": scopes,
        "bearer_methods_supported": ["header"],
        "resource_name": "Switchbay",
        "resource_documentation": format!("{base_url}/developer-guide"),
    });
    if let Some(issuer) = issuer {
        metadata["authorization_servers"] = json!([issuer]);
    }
    metadata.to_string()
}
