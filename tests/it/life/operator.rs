//! The operator's API and its command line: whom they let in, what they refuse, and what they say of themselves.

mod commands;
mod published;
mod settings;
mod unmet;

use reqwest::Method;
use serde_json::{Value, json};

use super::{House, act, key, probe, stage, upload};
use crate::support::Service;

/// Every route of the document, with a value for each of its parameters.
async fn routes(service: &Service) -> Vec<(Method, String)> {
    let document = service
        .admin(Method::GET, "/admin/v1/openapi.json", None)
        .await
        .json();
    let mut routes = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        let path = path
            .replace("{plugin}", "probe")
            .replace("{revision}", "1")
            .replace("{id}", "nobody");
        for method in methods.as_object().expect("methods").keys() {
            routes.push((
                method.to_uppercase().parse().expect("a method"),
                path.clone(),
            ));
        }
    }
    routes
}

#[tokio::test]
async fn no_route_is_open_to_anybody_else() {
    let house = House::new("");
    let service = house.serve().await;
    let routes = routes(&service).await;
    assert!(routes.len() >= 23, "{routes:?}");
    for (method, path) in &routes {
        let url = format!("{}{path}", service.operator_url());
        let client = reqwest::Client::new();
        let bare = || client.request(method.clone(), &url);
        for request in [
            bare(),
            bare().bearer_auth(key(&service)),
            bare().bearer_auth("sbop_wrong"),
        ] {
            let refused = Service::send(request).await;
            assert_eq!(
                refused.refusal(),
                (401, "UNAUTHORIZED".to_owned()),
                "{method} {path}"
            );
            assert_eq!(refused.header("www-authenticate"), "Bearer");
        }
        let public = service
            .bare(method.clone(), path)
            .bearer_auth(service.operator_token());
        assert_eq!(
            Service::send(public).await.refusal(),
            (404, "NOT_FOUND".to_owned()),
            "{method} {path}"
        );
    }
    let tools = service
        .mcp(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }))
        .await;
    let names: Vec<Value> = tools.json()["result"]["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    assert_eq!(names, [json!("serve_probe")]);
}

#[tokio::test]
async fn an_upload_is_held_to_its_digest_its_size_and_its_parameters() {
    let house = House::new("");
    let service = house.serve().await;
    let component = probe(2, &[]);
    let wrong = upload(
        &service,
        component.clone(),
        &format!("?digest={}", "0".repeat(64)),
    )
    .await;
    assert_eq!(wrong.refusal(), (400, "VALIDATION_ERROR".to_owned()));
    assert!(
        wrong.json()["error"]["message"]
            .as_str()
            .expect("text")
            .contains(&format!("not the expected {}", "0".repeat(64)))
    );
    let odd = upload(&service, component.clone(), "?activate=perhaps").await;
    assert_eq!(
        (odd.refusal().0, &odd.json()["data"]["field"]),
        (400, &json!("activate"))
    );
    let large = upload(&service, vec![0; (64 << 20) + 1], "").await;
    assert_eq!(
        (large.refusal(), &large.json()["data"]["max"]),
        ((413, "PAYLOAD_TOO_LARGE".to_owned()), &json!(64 << 20))
    );
    let garbage = stage(&service, b"no component".to_vec(), "").await;
    assert_eq!(garbage["state"], "rejected");
    let why = garbage["changed"]["why"].as_str().expect("text");
    assert!(
        why.starts_with("plugin `probe`: it is not a WebAssembly component"),
        "{why}"
    );
    // By a path that the server reads, with the digest that it has.
    let path = house.write("second.wasm", &component);
    let digest = stage(&service, component, "").await["digest"].clone();
    let staged = act(
        &service,
        "revisions",
        json!({ "path": path, "digest": digest, "activate": true }),
    )
    .await;
    assert_eq!(staged.status, 202, "{staged:?}");
    let number = staged.json()["data"]["revision"]
        .as_u64()
        .expect("a number");
    assert_eq!(service.prepared("probe", number).await["state"], "active");
}
