//! The command line's way to a running server: one request to the operator's API.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Request;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::transport::operator::endpoint::{
    Endpoint, EndpointBody, EndpointPayload, EndpointRequest, Enveloped,
};
use crate::transport::operator::token::{ADDRESS_FILE, FILE};

/// More than a plugin can be allowed to answer.
const ANSWER_BYTES_MAX: usize = 80 << 20;
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

/// Sends one request and gives back the `data` of its answer.
pub(crate) async fn call<E, T, const STATUS: u16>(
    data: &Path,
    request: EndpointRequest<E>,
) -> Result<T, ClientError>
where
    E: Endpoint<Answer = Enveloped<T, STATUS>>,
    T: DeserializeOwned,
{
    let read = |file: &'static str| {
        std::fs::read_to_string(data.join(file)).map_err(|source| ClientError::File {
            file,
            folder: data.to_owned(),
            source,
        })
    };
    let (token, address) = (read(FILE)?, read(ADDRESS_FILE)?);
    let target = request.target();
    let payload = request.body.payload();
    let sent = send(address.trim(), token.trim(), E::METHOD, &target, payload);
    let answered = tokio::time::timeout(DEADLINE, sent).await;
    let data = answered.unwrap_or_else(|_| {
        let seconds = DEADLINE.as_secs();
        Err(broken(format!("no response within {seconds} s")))
    })?;
    serde_json::from_value(data).map_err(broken)
}

async fn send(
    address: &str,
    token: &str,
    method: &str,
    target: &str,
    payload: EndpointPayload,
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
    let request = Request::builder()
        .method(method)
        .uri(target)
        .header(HOST, address)
        .header(AUTHORIZATION, format!("Bearer {token}"))
        .header(CONTENT_TYPE, payload.media_type)
        .body(Full::new(payload.bytes))
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
