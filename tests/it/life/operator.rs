//! The operator's API and its command line: whom they let in, what they refuse, and what they say of themselves.

use reqwest::Method;
use serde_json::{Value, json};

use super::{House, act, cli, complaint, key, printed, probe, stage, upload};
use crate::support::Service;

/// Every route of the document, with a value for each of its parameters.
async fn routes(service: &Service) -> Vec<(Method, String)> {
    let document = service.admin(Method::GET, "/admin/v1/openapi.json", None).await.json();
    let mut routes = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        let path = path.replace("{plugin}", "probe").replace("{revision}", "1").replace("{id}", "nobody");
        for method in methods.as_object().expect("methods").keys() {
            routes.push((method.to_uppercase().parse().expect("a method"), path.clone()));
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
        for request in [bare(), bare().bearer_auth(key(&service)), bare().bearer_auth("sbop_wrong")] {
            let refused = Service::send(request).await;
            assert_eq!(refused.refusal(), (401, "UNAUTHORIZED".to_owned()), "{method} {path}");
            assert_eq!(refused.header("www-authenticate"), "Bearer");
        }
        let public = service.bare(method.clone(), path).bearer_auth(service.operator_token());
        assert_eq!(Service::send(public).await.refusal(), (404, "NOT_FOUND".to_owned()), "{method} {path}");
    }
    let tools = service.mcp(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })).await;
    let names: Vec<Value> =
        tools.json()["result"]["tools"].as_array().expect("tools").iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, [json!("serve_probe")]);
}

#[tokio::test]
async fn a_request_that_cannot_be_met_is_told_why() {
    let house = House::new("");
    let service = house.serve().await;
    let refused = async |method: Method, path: &str, body: Value, expected: (u16, &str), words: &str| {
        let answer = service.admin(method, &format!("/admin/v1/plugins{path}"), Some(&body)).await;
        assert_eq!(answer.refusal(), (expected.0, expected.1.to_owned()), "{path} {body}");
        let message = answer.json()["error"]["message"].as_str().expect("text").to_owned();
        assert!(message.contains(words), "{path} {body}: {message}");
    };
    let (missing, conflict, invalid) = ((404, "NOT_FOUND"), (409, "CONFLICT"), (400, "VALIDATION_ERROR"));
    let post = || Method::POST;
    refused(Method::GET, "/nobody", json!(null), missing, "there is no plugin `nobody` in plugin-manifest.toml").await;
    refused(post(), "/nobody/rollback", json!({}), missing, "there is no plugin `nobody`").await;
    refused(post(), "/probe/revisions/9/activate", json!({}), missing, "plugin `probe` has no revision 9").await;
    refused(post(), "/probe/revisions/first/activate", json!({}), invalid, "`revision` must be a number").await;
    refused(post(), "/probe/revisions/1/activate", json!({}), conflict, "revision 1 is active; it serves already")
        .await;
    refused(post(), "/probe/rollback", json!({}), conflict, "has no revision to roll back to").await;
    refused(post(), "/probe/rollback", json!({ "to": 1 }), conflict, "only what served before is rolled back to").await;
    refused(post(), "/probe/enable", json!({}), conflict, "plugin `probe` is enabled already").await;
    refused(post(), "/probe/revoke", json!({}), invalid, "`atom` is missing").await;
    refused(post(), "/probe/revoke", json!({ "atom": "everything" }), invalid, "`everything` is no grant").await;
    refused(post(), "/probe/revoke", json!({ "atom": "config" }), conflict, "`config` was not approved").await;
    refused(post(), "/probe/disable", json!({ "colour": 1 }), invalid, "unknown field `colour`").await;
    // What another route takes is not passed over.
    for (act, member, value) in
        [("disable", "to", json!(1)), ("rollback", "atom", json!("config")), ("revoke", "grants", json!([]))]
    {
        let words = format!("`{member}` is no member of this route's body");
        refused(post(), &format!("/probe/{act}"), json!({ member: value }), invalid, &words).await;
    }
    refused(post(), "/probe/revisions", json!({ "seconds": 9 }), invalid, "`seconds` is no member").await;
    refused(post(), "/probe/disable", json!({ "why": "x".repeat(501) }), invalid, "at most 500 printable").await;
    refused(post(), "/probe/disable", json!({ "by": "a\nb" }), invalid, "at most 100 printable").await;
    refused(post(), "/probe/revisions", json!({ "path": "here.wasm" }), invalid, "must be absolute").await;
    refused(post(), "/probe/revisions", json!({ "path": "/nowhere.wasm" }), invalid, "/nowhere.wasm is missing").await;
    let diff = "/probe/revisions/1/difference";
    refused(Method::GET, &format!("{diff}?against=x"), json!(null), invalid, "must be `against`").await;
    refused(Method::GET, &format!("{diff}?against=7"), json!(null), missing, "plugin `probe` has no revision 7").await;
    assert_eq!(service.admin(Method::PUT, "/admin/v1/plugins/probe", None).await.header("allow"), "GET");
    assert_eq!(service.told("/admin/v1/plugins/probe").await["state"], "active", "nothing of it changed anything");
}

#[tokio::test]
async fn an_upload_is_held_to_its_digest_its_size_and_its_parameters() {
    let house = House::new("");
    let service = house.serve().await;
    let component = probe(2, &[]);
    let wrong = upload(&service, component.clone(), &format!("?digest={}", "0".repeat(64))).await;
    assert_eq!(wrong.refusal(), (400, "VALIDATION_ERROR".to_owned()));
    assert!(
        wrong.json()["error"]["message"]
            .as_str()
            .expect("text")
            .contains(&format!("not the expected {}", "0".repeat(64)))
    );
    let odd = upload(&service, component.clone(), "?activate=perhaps").await;
    assert_eq!((odd.refusal().0, &odd.json()["data"]["field"]), (400, &json!("activate")));
    let large = upload(&service, vec![0; (64 << 20) + 1], "").await;
    assert_eq!(
        (large.refusal(), &large.json()["data"]["max"]),
        ((413, "PAYLOAD_TOO_LARGE".to_owned()), &json!(64 << 20))
    );
    let garbage = stage(&service, b"no component".to_vec(), "").await;
    assert_eq!(garbage["state"], "rejected");
    let why = garbage["changed"]["why"].as_str().expect("text");
    assert!(why.starts_with("plugin `probe`: it is not a WebAssembly component"), "{why}");
    // By a path that the server reads, with the digest that it has.
    let path = house.write("second.wasm", &component);
    let digest = stage(&service, component, "").await["digest"].clone();
    let staged = act(&service, "revisions", json!({ "path": path, "digest": digest, "activate": true })).await;
    assert_eq!(staged.status, 202, "{staged:?}");
    let number = staged.json()["data"]["revision"].as_u64().expect("a number");
    assert_eq!(super::prepared(&service, number).await["state"], "active");
}

#[tokio::test]
async fn commands_print_tables_or_json_and_end_with_codes_of_their_own() {
    let house = House::new("config = { token_url = \"https://example.com/secret\" }");
    let service = house.serve().await;
    let listed = printed(&cli(&service, &["plugin", "list"]), 0);
    let expected =
        "PLUGIN  STATE   REVISION  VERSION  CANDIDATE  MESSAGE\nprobe   active  1         1.0.0    -          -\n";
    assert_eq!(listed, expected);
    let shown = printed(&cli(&service, &["plugin", "show", "probe"]), 0);
    assert!(shown.starts_with("probe 1.0.0 is active\n  Describes itself as a test wants\nrights     -\n"), "{shown}");
    assert!(shown.contains("first      GET /api/v1/test/probe  serve_probe  10000 ms\n"), "{shown}");
    let json: Value =
        serde_json::from_str(&printed(&cli(&service, &["plugin", "show", "probe", "--json"]), 0)).expect("JSON");
    assert_eq!((&json["name"], &json["revisions"][0]["state"]), (&json!("probe"), &json!("active")));
    assert_eq!(json["config"], json!(["token_url"]), "what a plugin is told may be a secret");
    assert!(!json.to_string().contains("secret"));
    let file = house.write("second.wasm", &probe(2, &[]));
    let file = file.to_str().expect("a path");
    let staged = printed(&cli(&service, &["plugin", "stage", "probe", file]), 0);
    assert_eq!(staged, "revision 2 of probe is staged; serve it with `switchbay plugin activate probe 2`\n");
    assert_eq!(printed(&cli(&service, &["plugin", "activate", "probe"]), 0), "revision 2 of probe is active\n");
    assert_eq!(printed(&cli(&service, &["plugin", "rollback", "probe"]), 0), "probe 1.0.0 is active, revision 1\n");
    let status: Value = serde_json::from_str(&printed(&cli(&service, &["status", "--json"]), 0)).expect("JSON");
    assert_eq!((&status["well"], &status["waiting"], &status["storeHealthy"]), (&json!(true), &json!(0), &json!(true)));

    let unknown = complaint(&cli(&service, &["plugin", "show", "nobody"]), 4);
    assert_eq!(unknown, "switchbay: there is no plugin `nobody` in plugin-manifest.toml (NOT_FOUND)\n");
    let none = complaint(&cli(&service, &["plugin", "approve", "probe"]), 4);
    assert!(none.contains("no revision of probe waits"), "{none}");
    let unread = complaint(&cli(&service, &["plugin", "stage", "probe", "/nowhere.wasm"]), 1);
    assert!(unread.starts_with("switchbay: cannot read the component /nowhere.wasm: "), "{unread}");
    let rejected = complaint(
        &cli(&service, &["plugin", "stage", "probe", house.write("junk.wasm", b"junk").to_str().expect("a path")]),
        1,
    );
    assert!(
        rejected.contains("revision 3 of probe was rejected: plugin `probe`: it is not a WebAssembly component"),
        "{rejected}"
    );
    complaint(&cli(&service, &["plugin", "stage"]), 2);
}
