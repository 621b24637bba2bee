//! The operator's two ways to a running server: its API, and `switchbay` commands on its data folder.

use std::path::Path;
use std::process::Command;

use reqwest::Method;
use serde_json::Value;

use super::{Answer, Service, binary};

/// A request to the operator's listener with its token. `Null` sends no body.
pub(crate) async fn operator(
    service: &Service,
    method: Method,
    path: &str,
    body: &Value,
) -> Answer {
    let request =
        reqwest::Client::new().request(method, format!("{}{path}", service.operator_url()));
    let request = request.bearer_auth(service.operator_token());
    match body {
        Value::Null => Service::send(request).await,
        body => Service::send(request.json(body)).await,
    }
}

/// Runs `switchbay` with these words on a data folder and `--json`, and gives back what it printed, or its one line of
/// failure.
pub(crate) fn command(data: &Path, words: &[&str]) -> Result<Value, String> {
    let done = Command::new(binary())
        .args(words)
        .arg("--json")
        .arg("--data")
        .arg(data)
        .output()
        .expect("it runs");
    if done.status.success() {
        Ok(serde_json::from_slice(&done.stdout).expect("JSON"))
    } else {
        Err(String::from_utf8_lossy(&done.stderr).trim().to_owned())
    }
}
