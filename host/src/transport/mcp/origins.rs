//! The web origins that browsers may call `/mcp` from: a page of any other could use an agent's credential (MCP, "Security
//! Warning" of Streamable HTTP).

use http::HeaderValue;
use url::Url;

/// The origins that browsers may call `/mcp` from: our own base URL's, loopback names with its port, and the configured.
pub(crate) struct AllowedOrigins(Vec<String>);

impl AllowedOrigins {
    pub(crate) fn new(base: Option<&Url>, mut configured: Vec<String>) -> Self {
        if let Some(base) = base {
            configured.push(base.origin().ascii_serialization());
            let loopback = base
                .host_str()
                .is_some_and(|host| matches!(host, "127.0.0.1" | "localhost" | "[::1]"));
            if let Some(port) = base.port_or_known_default().filter(|_| loopback) {
                configured.extend(
                    ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("http://{host}:{port}")),
                );
            }
        }
        Self(configured)
    }

    pub(crate) fn allows(&self, origin: &HeaderValue) -> bool {
        self.0.iter().any(|allowed| origin == allowed.as_str())
    }
}
