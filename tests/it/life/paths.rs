//! Components by a path: of a file that is none, the operator's API tells nothing.

use std::process::Command;

use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::{House, PLUGIN, act, states};
use crate::support::Service;

/// The message of a refusal of a stage by this path.
async fn refused(service: &Service, path: &str) -> String {
    let answer = act(
        service,
        "revisions",
        json!({ "path": path, "digest": "0".repeat(64) }),
    )
    .await;
    assert_eq!(
        answer.refusal(),
        (400, "VALIDATION_ERROR".to_owned()),
        "{path}"
    );
    let message = answer.json()["error"]["message"]
        .as_str()
        .expect("text")
        .to_owned();
    let without = act(service, "revisions", json!({ "path": path })).await;
    assert_eq!(
        without.json()["error"]["message"],
        message,
        "a digest changes nothing"
    );
    message
}

#[tokio::test]
async fn of_a_file_that_is_no_component_neither_digest_nor_bytes_are_told() {
    let house = House::new("");
    let service = house.serve().await;
    let secret = "hunter2-hunter2-hunter2\n";
    let digest: String = Sha256::digest(secret)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let other = "does not start with a component's header";
    for (name, text, told) in [
        ("secret", secret, other),
        ("short", "key", other),
        ("empty", "", "is empty"),
    ] {
        let path = house.write(name, text.as_bytes()).display().to_string();
        let expected = format!("plugin `probe`: it is not a WebAssembly component: {path} {told}");
        assert_eq!(refused(&service, &path).await, expected);
    }
    let module = house
        .write("module.wasm", b"\0asm\x01\0\0\0")
        .display()
        .to_string();
    assert!(
        refused(&service, &module)
            .await
            .ends_with("is a core module; make a component of it with `wasm-tools component new`")
    );
    assert_eq!(
        states(&service).await,
        [(1, "active".to_owned())],
        "none became a revision"
    );
    let told = [PLUGIN, "/admin/v1/history", "/admin/v1/status"].map(|path| service.told(path));
    let told = futures::future::join_all(told).await;
    let log = service.stop().join("\n");
    for text in told.iter().map(ToString::to_string).chain([log]) {
        let hexadecimal: String = secret
            .bytes()
            .take(4)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        for part in [&digest[..8], "hunter2", &hexadecimal, "0x68, 0x75"] {
            assert!(!text.contains(part), "{part} is in {text}");
        }
    }
}

#[tokio::test]
async fn what_is_no_regular_file_is_neither_read_nor_waited_for() {
    let house = House::new("");
    let service = house.serve().await;
    let pipe = house.path("pipe").display().to_string();
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .expect("mkfifo runs")
            .success()
    );
    for path in [&*pipe, "/dev/zero", "/tmp"] {
        let expected = format!("plugin `probe`: its component {path} is not a regular file");
        assert_eq!(refused(&service, path).await, expected);
    }
}
