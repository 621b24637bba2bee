//! The request headers that are the gate's own: neither a plugin nor a secret sets one.

use http::HeaderName;

/// Headers that are the connection's, or that say what the gate decides.
const OWN: [&str; 16] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// Whether a header is not the gate's own.
pub(crate) fn may_be_set(name: &HeaderName) -> bool {
    !OWN.contains(&name.as_str())
}
