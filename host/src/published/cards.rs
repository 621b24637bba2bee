//! What names the service to those that look for it: the MCP server card, and the OAuth metadata of `/mcp`.

use serde_json::{Value, json};
use url::Url;

use super::Site;
use crate::catalogue::Bound;

/// The MCP versions that are spoken, newest first.
pub(crate) const VERSIONS: [&str; 4] = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"];

/// The MCP server card: the shape of SEP-2127, with what scanners of the older SEP-1649 read beside it.
pub(crate) fn server_card(base_url: &str) -> String {
    // Relative to the origin, as the older shape has it.
    let path = Url::parse(base_url)
        .map(|url| url.path().trim_end_matches('/').to_owned())
        .unwrap_or_default();
    let header = json!({
        "name": "Authorization",
        "description": "`Bearer` followed by an API key or an OAuth access token with the scopes of the tools that \
            are called",
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
        "serverInfo": server_info(),
        "transport": { "type": "streamable-http", "endpoint": format!("{path}/mcp") },
        "capabilities": { "tools": {}, "resources": {} },
    });
    card.to_string()
}

/// The OAuth protected-resource metadata. Without an identity provider it names no authorization server.
pub(crate) fn resource_metadata(bound: &[Bound], site: &Site) -> String {
    let Site {
        base_url, issuer, ..
    } = site;
    let mut scopes: Vec<&str> = bound
        .iter()
        .flat_map(|one| {
            one.rest()
                .map(|face| &face.scope)
                .into_iter()
                .chain(one.tool().map(|face| &face.scope))
        })
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

/// Who we are, in every version.
pub(crate) fn server_info() -> Value {
    json!({ "name": "switchbay", "title": "Switchbay", "version": env!("CARGO_PKG_VERSION") })
}
