//! What the proxy says to a client that gets no answer from elsewhere: a status, the rule in words, and RFC 9209's header.

use std::time::Duration;

use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::head::HEAD_BYTES_MAX;
use crate::egress::message::FetchError;
use crate::egress::policy::EgressDenial;

/// For a client to take a refusal, and to stop sending: a socket that is closed with unread bytes sends a reset, which can
/// overtake the refusal on its way.
const LINGER: Duration = Duration::from_secs(1);

/// Why a client gets no answer from elsewhere. No message holds a path, a query, a header or a credential.
#[derive(Debug, thiserror::Error)]
pub(in crate::egress) enum ProxyRefusal {
    #[error("the request is malformed: {0}")]
    Malformed(&'static str),
    #[error("the proxy supports only HTTP/1.1")]
    Version,
    #[error("the request's target must be an absolute URL: this is a proxy, not a website")]
    NotAbsolute,
    #[error("the head of the request has more than {HEAD_BYTES_MAX} bytes, or too many lines")]
    LargeHead,
    #[error("the head of the request did not arrive in time")]
    LateHead,
    #[error(
        "the proxy credential is missing, unknown or expired: send one as `Proxy-Authorization: Basic`"
    )]
    Credential,
    #[error("the body of the request has more than {0} bytes")]
    LargeBody(usize),
    #[error("the body of the request ended early")]
    BrokenBody,
    #[error("a connection carries only one request")]
    Second,
    #[error("the plugin has reached its limit of tunnels")]
    Tunnels,
    #[error("{0}")]
    Gate(#[from] FetchError),
}

impl From<EgressDenial> for ProxyRefusal {
    fn from(denial: EgressDenial) -> Self {
        Self::Gate(denial.into())
    }
}

impl ProxyRefusal {
    /// In one word.
    pub(in crate::egress) fn verdict(&self) -> &'static str {
        match self {
            Self::Gate(error) => error.verdict(),
            Self::Credential => "no_credential",
            Self::Tunnels => "busy",
            Self::LateHead => "late",
            Self::Malformed(_)
            | Self::Version
            | Self::NotAbsolute
            | Self::LargeHead
            | Self::LargeBody(_)
            | Self::BrokenBody
            | Self::Second => "refused",
        }
    }

    /// The status, and RFC 9209's word for it.
    fn status(&self) -> (StatusCode, &'static str) {
        let status = match self {
            Self::Malformed(_) | Self::NotAbsolute | Self::BrokenBody | Self::Second => {
                StatusCode::BAD_REQUEST
            }
            Self::Version => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            Self::LargeHead => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::LateHead => StatusCode::REQUEST_TIMEOUT,
            Self::LargeBody(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Credential => {
                let status = StatusCode::PROXY_AUTHENTICATION_REQUIRED;
                return (status, "http_request_denied");
            }
            Self::Tunnels => return (StatusCode::SERVICE_UNAVAILABLE, "connection_limit_reached"),
            Self::Gate(error) => return gate(error),
        };
        (status, "http_request_error")
    }

    /// The rule in words, behind its verdict.
    fn text(&self) -> String {
        format!("{}: {self}\n", self.verdict())
    }

    /// The whole answer.
    pub(super) fn response(&self) -> Response<Full<Bytes>> {
        let (status, word) = self.status();
        let mut response = Response::new(Full::new(Bytes::from(self.text())));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        headers.insert(header::CONTENT_TYPE, plain);
        // Whatever is no string of RFC 9651 is left out.
        let mut details = self.to_string();
        details.retain(|c| matches!(c, ' '..='~') && !matches!(c, '\\' | '"'));
        let verdict = self.verdict();
        let told = format!("switchbay; error={word}; details=\"{verdict}: {details}\"");
        if let Ok(told) = HeaderValue::try_from(told) {
            headers.insert("proxy-status", told);
        }
        if status == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
            let challenge =
                HeaderValue::from_static("Basic realm=\"switchbay\", charset=\"UTF-8\"");
            headers.insert(header::PROXY_AUTHENTICATE, challenge);
        }
        response
    }

    /// The same as bytes.
    fn bytes(&self) -> Vec<u8> {
        let (status, text, response) = (self.status().0, self.text(), self.response());
        let mut head = format!("HTTP/1.1 {status}\r\n").into_bytes();
        for (name, value) in response.headers() {
            head.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
        }
        let length = text.len();
        let end = format!("content-length: {length}\r\nconnection: close\r\n\r\n{text}");
        head.extend(end.into_bytes());
        head
    }
}

/// Says no to a client, and ends the connection.
pub(super) async fn send(mut stream: TcpStream, refusal: &ProxyRefusal) {
    let saying = async {
        stream.write_all(&refusal.bytes()).await?;
        stream.shutdown().await?;
        let mut thrown_away = [0; 4096];
        while stream.read(&mut thrown_away).await? > 0 {}
        std::io::Result::Ok(())
    };
    // A client that is gone, or does not stop, has been told.
    tokio::time::timeout(LINGER, saying).await.ok();
}

fn gate(error: &FetchError) -> (StatusCode, &'static str) {
    match error {
        FetchError::Denied(denial) | FetchError::RedirectDenied(denial) => match denial {
            EgressDenial::Ungranted { .. } => (StatusCode::FORBIDDEN, "http_request_denied"),
            EgressDenial::NotPublic(_) => (StatusCode::FORBIDDEN, "destination_ip_prohibited"),
            EgressDenial::Unacceptable(_) => (StatusCode::BAD_REQUEST, "http_request_error"),
        },
        FetchError::Invalid(_) => (StatusCode::BAD_REQUEST, "http_request_error"),
        FetchError::Busy | FetchError::Full => {
            (StatusCode::SERVICE_UNAVAILABLE, "connection_limit_reached")
        }
        FetchError::Unresolved => (StatusCode::BAD_GATEWAY, "dns_error"),
        FetchError::Unreachable => (StatusCode::BAD_GATEWAY, "destination_unavailable"),
        FetchError::Late(_) => (StatusCode::GATEWAY_TIMEOUT, "http_response_timeout"),
        FetchError::TooLarge(_) => (StatusCode::BAD_GATEWAY, "http_response_header_section_size"),
        FetchError::TooManyRedirects(_) | FetchError::BadAnswer(_) => {
            (StatusCode::BAD_GATEWAY, "http_protocol_error")
        }
    }
}
