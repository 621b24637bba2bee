//! The capability `dns`, seen from a guest that asks: before real resolvers of the lab, and before scripted ones.

mod answers;
mod failures;
mod refused;

use serde_json::{Value, json};

use crate::egress::dials;
use crate::lab::dns::{Endpoint, Told, configuration};
use crate::support::{Options, Service, workspace};

/// A service with the guest that asks, and these resolvers.
async fn start(resolvers: &[(&str, &Endpoint)]) -> Service {
    start_with(configuration(resolvers)).await
}

async fn start_with(config: String) -> Service {
    let manifest = Some(workspace().join("tests/programs/resolves.toml"));
    Service::start(Options {
        config,
        manifest,
        ..Options::default()
    })
    .await
}

/// What the guest tells of each of these types, asked for at once.
async fn query(service: &Service, input: Value) -> Vec<Value> {
    let answer = service.post("/api/v1/test/query", &input).await;
    assert_eq!(
        answer.status,
        200,
        "{input}: {}",
        String::from_utf8_lossy(&answer.bytes)
    );
    answer.json()["data"]["answers"]
        .as_array()
        .expect("answers")
        .clone()
}

/// What the guest tells of one question to `cloudflare`.
async fn one(service: &Service, name: &str, record_type: u16) -> Value {
    let input = json!({ "resolver": "cloudflare", "name": name, "types": [record_type] });
    query(service, input).await.swap_remove(0)
}

/// The message of an answer.
fn told(answer: &Value) -> Told {
    assert_eq!(answer["outcome"], "ok", "{answer}");
    let digits = answer["message"].as_str().expect("a message").as_bytes();
    let byte = |pair: &[u8]| {
        u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("a byte")
    };
    let message: Vec<u8> = digits.chunks(2).map(byte).collect();
    Told::read(&message).expect("a DNS message")
}
