//! Entity tags (RFC 9110, 8.8.3).

use http::HeaderValue;

/// Weak, because the same data is sent in several encodings.
pub(crate) fn entity_tag(digest: &[u8; 32]) -> HeaderValue {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&digest[..16]);
    HeaderValue::from_str(&format!("W/\"{text}\"")).expect("base64 is a header value")
}
