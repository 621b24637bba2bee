//! The command line's way to a running server: one request to the operator's API.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::Value;

use crate::transport::operator::token::{ADDRESS_FILE, FILE};

const ANSWER_BYTES_MAX: usize = 16 << 20;
/// The server's own, for a whole request, is shorter.
const DEADLINE: Duration = Duration::from_secs(200);

/// A request that did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error(
        "cannot read {file} of a server in {folder} ({source}): start one with `switchbay serve`, or name its data \
         folder with --data"
    )]
    File {
        file: &'static str,
        folder: PathBuf,
        source: std::io::Error,
    },
    #[error("no server answers at {address} ({source}): start one with `switchbay serve`")]
    Unreachable {
        address: String,
        source: std::io::Error,
    },
    #[error("the operator API's response could not be read: {0}")]
    Transport(String),
    #[error("{message} ({code})")]
    Refused { code: String, message: String },
}

/// What a request carries.
pub(crate) enum Payload {
    Nothing,
    Json(Value),
    Component(Vec<u8>),
}

/// Sends one request and gives back the `data` of its answer.
pub(crate) async fn call(
    data: &Path,
    method: Method,
    path: &str,
    payload: Payload,
) -> Result<Value, ClientError> {
    let read = |file: &'static str| {
        std::fs::read_to_string(data.join(file)).map_err(|source| ClientError::File {
            file,
            folder: data.to_owned(),
            source,
        })
    };
    let (token, address) = (read(FILE)?, read(ADDRESS_FILE)?);
    tokio::time::timeout(
        DEADLINE,
        send(address.trim(), token.trim(), method, path, payload),
    )
    .await
    .unwrap_or_else(|_| {
        Err(ClientError::Transport(format!(
            "no response within {} s",
            DEADLINE.as_secs()
        )))
    })
}

async fn send(
    address: &str,
    token: &str,
    method: Method,
    path: &str,
    payload: Payload,
) -> Result<Value, ClientError> {
    let stream = tokio::net::TcpStream::connect(address)
        .await
        .map_err(|source| ClientError::Unreachable {
            address: address.to_owned(),
            source,
        })?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    let (media_type, body) = match payload {
        Payload::Nothing => ("application/json", Bytes::new()),
        Payload::Json(value) => ("application/json", Bytes::from(value.to_string())),
        Payload::Component(bytes) => ("application/wasm", Bytes::from(bytes)),
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, address)
        .header(AUTHORIZATION, format!("Bearer {token}"))
        .header(CONTENT_TYPE, media_type)
        .body(Full::new(body))
        .map_err(broken)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        let bytes = Limited::new(response.into_body(), ANSWER_BYTES_MAX)
            .collect()
            .await
            .map_err(broken)?;
        serde_json::from_slice::<Value>(&bytes.to_bytes()).map_err(broken)
    };
    let mut connection = std::pin::pin!(connection);
    let mut exchange = std::pin::pin!(exchange);
    let mut answer = tokio::select! {
        answer = exchange.as_mut() => answer?,
        // A server that closes after its answer ends the connection first.
        _ = connection.as_mut() => exchange.await?,
    };
    if answer["success"] == true {
        return Ok(answer["data"].take());
    }
    let text = |name: &str| {
        answer["error"][name]
            .as_str()
            .unwrap_or("unknown")
            .to_owned()
    };
    Err(ClientError::Refused {
        code: text("code"),
        message: text("message"),
    })
}

fn broken(error: impl std::fmt::Display) -> ClientError {
    ClientError::Transport(error.to_string())
}
