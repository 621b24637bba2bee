//! The head of a proxied request, read strictly: what two readers could read in two ways is no request.
//!
//! hyper's parser reads it; here stands what that lets through. A connection carries one request, so what follows it is
//! nobody's. Pure: knows neither sockets nor who may ask for what.

use http::Version;

use super::refusal::ProxyRefusal;
use crate::egress::message::HEADERS_MAX;
use crate::egress::policy;
use crate::egress::policy::{Destination, DestinationUse, EgressDenial};

/// The longest head, in bytes.
pub(super) const HEAD_BYTES_MAX: usize = 32 * 1024;

/// A head of good form.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::egress) struct ProxyHead {
    pub(in crate::egress) asked: ProxyRequest,
    /// The value of `Proxy-Authorization`.
    pub(super) credential: Option<String>,
    /// Bytes of the request line, with its end.
    pub(super) line_bytes: usize,
    /// Bytes of all of it.
    pub(super) bytes: usize,
    pub(super) version: Version,
}

/// What a request asks a proxy for.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::egress) enum ProxyRequest {
    /// `CONNECT`, with a host and a port as they were written.
    Tunnel(String),
    /// Any other method, with a URL as it was written.
    Request { method: String, url: String },
}

impl ProxyRequest {
    /// Where to.
    ///
    /// # Errors
    /// It is nothing that could be asked for.
    pub(in crate::egress) fn destination(&self) -> Result<Destination, EgressDenial> {
        match self {
            Self::Tunnel(authority) => Destination::read_authority(authority),
            Self::Request { url, .. } => Destination::read(url),
        }
    }

    /// The same as it is written, for the audit.
    pub(in crate::egress) fn aim(&self) -> Option<(String, u16)> {
        match self {
            Self::Tunnel(authority) => policy::aim(&format!("https://{authority}/")),
            Self::Request { url, .. } => policy::aim(url),
        }
    }

    pub(in crate::egress) fn way(&self) -> DestinationUse<'_> {
        match self {
            Self::Tunnel(_) => DestinationUse::Tunnel,
            Self::Request { method, .. } => DestinationUse::Request { method },
        }
    }
}

impl ProxyHead {
    /// Reads a head once it is whole; `None` asks for more bytes.
    pub(in crate::egress) fn read(bytes: &[u8]) -> Result<Option<Self>, ProxyRefusal> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        let length = match request.parse(bytes) {
            Ok(httparse::Status::Complete(length)) if length <= HEAD_BYTES_MAX => length,
            Ok(httparse::Status::Partial) if bytes.len() <= HEAD_BYTES_MAX => return Ok(None),
            Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(ProxyRefusal::LargeHead),
            Err(httparse::Error::Version) => return Err(ProxyRefusal::Version),
            Err(_) => return Err(ProxyRefusal::Malformed("it is not an HTTP/1.1 request")),
        };
        let head = &bytes[..length];
        let mut bytes = head.iter().enumerate();
        let is_bare =
            |(at, byte): (usize, &u8)| *byte == b'\n' && (at == 0 || head[at - 1] != b'\r');
        if head.first().is_some_and(u8::is_ascii_whitespace) || bytes.any(is_bare) {
            return malformed("one of its lines does not end with CR and LF, or is empty");
        }
        let version = match request.version {
            Some(0) => Version::HTTP_10,
            _ => Version::HTTP_11,
        };
        let method = request.method.unwrap_or_default();
        let (credential, is_tunnel) = (fields(request.headers, version)?, method == "CONNECT");
        if is_tunnel && request.headers.iter().any(|header| is_framing(header.name)) {
            return malformed("a tunnel request must not have a body");
        }
        let line = head.iter().position(|byte| *byte == b'\n');
        Ok(Some(Self {
            asked: asked(method, request.path.unwrap_or_default())?,
            credential,
            line_bytes: line.map_or(length, |end| end + 1),
            bytes: length,
            version,
        }))
    }
}

fn malformed<T>(rule: &'static str) -> Result<T, ProxyRefusal> {
    Err(ProxyRefusal::Malformed(rule))
}

fn asked(method: &str, target: &str) -> Result<ProxyRequest, ProxyRefusal> {
    if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return malformed("its target has characters other than visible ASCII");
    }
    match method {
        "CONNECT" => Ok(ProxyRequest::Tunnel(target.to_owned())),
        _ if target.starts_with('/') || target == "*" => Err(ProxyRefusal::NotAbsolute),
        _ => Ok(ProxyRequest::Request {
            method: method.to_owned(),
            url: target.to_owned(),
        }),
    }
}

/// Checks the header fields that say where a request ends and whose it is, and gives back its credential.
fn fields(
    headers: &[httparse::Header<'_>],
    version: Version,
) -> Result<Option<String>, ProxyRefusal> {
    let all = |name: &'static str| {
        headers
            .iter()
            .filter(move |header| header.name.eq_ignore_ascii_case(name))
    };
    match (all("host").count(), version) {
        (1, _) | (0, Version::HTTP_10) => {}
        _ => return malformed("it must have exactly one Host"),
    }
    let (mut lengths, mut codings) = (all("content-length"), all("transfer-encoding"));
    match (lengths.next(), codings.next()) {
        (Some(_), Some(_)) => return malformed("it has both Content-Length and Transfer-Encoding"),
        (Some(length), None) => {
            let is_number = (1..=15).contains(&length.value.len())
                && length.value.iter().all(u8::is_ascii_digit);
            if !is_number || lengths.next().is_some() {
                return malformed("it must have exactly one Content-Length, in decimal");
            }
        }
        (None, Some(coding)) => {
            let is_chunked =
                coding.value.eq_ignore_ascii_case(b"chunked") && version == Version::HTTP_11;
            if !is_chunked || codings.next().is_some() {
                return malformed("its Transfer-Encoding must be `chunked`, once, in HTTP/1.1");
            }
        }
        (None, None) => {}
    }
    let mut credentials = all("proxy-authorization");
    let credential = credentials.next();
    if credentials.next().is_some() {
        return malformed("it has more than one credential");
    }
    Ok(credential.map(|header| String::from_utf8_lossy(header.value).into_owned()))
}

fn is_framing(name: &str) -> bool {
    ["content-length", "transfer-encoding"]
        .iter()
        .any(|framing| name.eq_ignore_ascii_case(framing))
}
