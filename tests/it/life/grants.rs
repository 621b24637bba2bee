//! What is not granted is not to be had: at the door, and at run time once a grant is taken away.

use reqwest::Method;
use serde_json::json;

use super::{House, act, done, misbehave, printed, probe, serving, stage};
use crate::support::Service;

const MISBEHAVE: &str = "/api/v1/test/misbehave";
const ADMIN: &str = "/admin/v1/plugins/misbehave";

/// A house with the guest that reads settings and writes lines, granted so much.
fn house(grants: &str) -> House {
    let house = House::new("");
    house.write("misbehave.wasm", &misbehave());
    house.manifest(&manifest(grants));
    house
}

fn manifest(grants: &str) -> String {
    format!(
        "[[plugin]]\nname = \"misbehave\"\nsource = \"misbehave.wasm\"\ngrants = [{grants}]\n\
         config = {{ greeting = \"good day\" }}\n"
    )
}

async fn settings(service: &Service) -> String {
    let answer = service
        .post(MISBEHAVE, &json!({ "how": "read_config" }))
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["data"]["result"]
        .as_str()
        .expect("text")
        .to_owned()
}

async fn denials(service: &Service) -> u64 {
    let url = format!("{}/metrics", service.operator_url());
    let answer = Service::send(
        reqwest::Client::new()
            .get(url)
            .bearer_auth(service.operator_token()),
    )
    .await;
    let text = String::from_utf8(answer.bytes).expect("text");
    let line = text
        .lines()
        .find(|line| line.starts_with("switchbay_plugin_denials_total"))
        .expect("the series");
    line.rsplit(' ')
        .next()
        .and_then(|number| number.parse().ok())
        .expect("a number")
}

#[tokio::test]
async fn each_capability_that_is_not_granted_keeps_a_plugin_waiting_by_name() {
    for (granted, missing) in [("\"logging\"", "config"), ("\"config\"", "logging")] {
        let service = house(granted).serve().await;
        let plugin = service.told(ADMIN).await;
        assert_eq!(plugin["state"], "awaiting-approval");
        assert_eq!(
            service
                .post(MISBEHAVE, &json!({ "how": "behave" }))
                .await
                .status,
            404,
            "it is no part of the API yet"
        );
        let answer = service
            .admin(
                Method::POST,
                &format!("{ADMIN}/revisions/1/activate"),
                Some(&json!({})),
            )
            .await;
        assert_eq!(answer.refusal(), (409, "CONFLICT".to_owned()));
        let told = answer.json();
        assert_eq!(told["data"]["missing"], json!([missing]));
        let message = told["error"]["message"].as_str().expect("text").to_owned();
        for named in [
            "plugin `misbehave`",
            &format!("`{missing}`"),
            "its entry in plugin-manifest.toml",
        ] {
            assert!(message.contains(named), "{message}");
        }
        let waits = |line: &serde_json::Value| {
            line["message"] == "a revision is waiting for approval"
                && line["why"].as_str().is_some_and(|why| why == message)
        };
        service.log_until(|lines| lines.iter().any(waits));
    }
}

#[tokio::test]
async fn an_approval_that_is_taken_back_is_felt_by_the_next_call() {
    let house = house("\"logging\"");
    let service = house.serve().await;
    let approve = |body| {
        service.admin(
            Method::POST,
            "/admin/v1/plugins/misbehave/revisions/1/approve",
            body,
        )
    };
    let body = json!({ "activate": true });
    assert_eq!(approve(Some(&body)).await.status, 200);
    assert_eq!(settings(&service).await, r#"Some("good day") None"#);
    assert_eq!(denials(&service).await, 0);

    let revoked = service
        .admin(
            Method::POST,
            &format!("{ADMIN}/revoke"),
            Some(&json!({ "atom": "config" })),
        )
        .await;
    assert_eq!(
        (revoked.status, &revoked.json()["data"]["rights"]),
        (200, &json!(["logging"])),
        "{revoked:?}"
    );
    assert_eq!(
        settings(&service).await,
        "None None",
        "a denial is a value, and the plugin goes on"
    );
    assert_eq!(denials(&service).await, 2);
    // A restart finds it the same.
    drop(service);
    let service = house.serve().await;
    assert_eq!(settings(&service).await, "None None");
    let again = service
        .admin(
            Method::POST,
            &format!("{ADMIN}/revoke"),
            Some(&json!({ "atom": "config" })),
        )
        .await;
    assert_eq!(again.refusal(), (409, "CONFLICT".to_owned()));
}

#[tokio::test]
async fn a_grant_that_the_manifest_takes_away_is_gone_at_once_and_comes_back_with_it() {
    let house = house("\"logging\", \"config\"");
    let service = house.serve().await;
    assert_eq!(settings(&service).await, r#"Some("good day") None"#);
    let follow = async |service: &Service| {
        let answer = service
            .admin(Method::POST, "/admin/v1/manifest/follow", None)
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    house.manifest(&manifest("\"config\""));
    follow(&service).await;
    let lines = |text: &'static str| {
        move |line: &serde_json::Value| line["message"] == text && line["target"] == "plugin"
    };
    assert_eq!(
        service
            .post(MISBEHAVE, &json!({ "how": "log_below" }))
            .await
            .status,
        200
    );
    assert_eq!(service.told(ADMIN).await["rights"], json!(["config"]));
    assert!(
        denials(&service).await > 0,
        "a line that may not be written is a denial"
    );
    house.manifest(&manifest("\"config\", \"logging\""));
    follow(&service).await;
    assert_eq!(
        service
            .post(MISBEHAVE, &json!({ "how": "log_below" }))
            .await
            .status,
        200
    );
    let above = lines("above");
    let told = service.log_until(|all| all.iter().any(&above));
    assert_eq!(
        told.iter().filter(|line| above(line)).count(),
        1,
        "the one of the first call was not written"
    );
}

#[tokio::test]
async fn a_grant_in_the_manifest_lets_a_waiting_revision_live() {
    let house = House::new("");
    let service = house.serve().await;
    house.write("probe.wasm", &probe(2, &["config"]));
    let followed = super::cli(&service, &["plugin", "follow"]);
    let told = super::complaint(&followed, 3);
    assert!(told.contains("a revision is waiting for you"), "{told}");
    assert_eq!(serving(&service).await, 1);
    house
        .manifest("[[plugin]]\nname = \"probe\"\nsource = \"probe.wasm\"\ngrants = [\"config\"]\n");
    let table = printed(&super::cli(&service, &["plugin", "follow"]), 0);
    assert_eq!(table, "PLUGIN  OUTCOME  MESSAGE\nprobe   live     -\n");
    assert_eq!(serving(&service).await, 2);
    let told = service.told("/admin/v1/plugins/probe/revisions/2").await;
    assert_eq!(
        (&told["changed"]["by"], &told["rights"]),
        (&json!("manifest"), &json!(["config"]))
    );
}

#[tokio::test]
async fn a_rollback_does_not_bring_back_a_right_that_was_taken_away() {
    let house = House::new("grants = [\"config\"]");
    let service = house.serve().await;
    assert_eq!(
        stage(&service, probe(2, &["config"]), "?activate=true").await["state"],
        "active"
    );
    assert_eq!(
        stage(&service, probe(3, &[]), "?activate=true").await["state"],
        "active"
    );
    house.manifest("[[plugin]]\nname = \"probe\"\nsource = \"probe.wasm\"\n");
    printed(&super::cli(&service, &["plugin", "follow"]), 0);
    let refused = act(&service, "rollback", json!({})).await;
    assert_eq!(refused.refusal(), (409, "CONFLICT".to_owned()));
    assert_eq!(refused.json()["data"]["missing"], json!(["config"]));
    assert_eq!(serving(&service).await, 3);
    done(&service, "rollback", json!({ "to": 1 })).await;
    assert_eq!(serving(&service).await, 1);
}

#[tokio::test]
async fn a_plugin_that_the_manifest_names_no_more_is_gone_until_it_is_named_again() {
    let house = House::new("");
    house.write("neighbour.wasm", &super::neighbour());
    let one = std::fs::read_to_string(house.path("plugin-manifest.toml")).expect("the manifest");
    let other = "[[plugin]]\nname = \"neighbour\"\nsource = \"neighbour.wasm\"\n";
    house.manifest(&format!("{one}{other}"));
    let service = house.serve().await;
    house.manifest(other);
    printed(&super::cli(&service, &["plugin", "follow"]), 0);
    assert_eq!(service.get(super::PATH).await.status, 404);
    assert_eq!(service.get("/api/v1/test/neighbour").await.status, 200);
    house.manifest(&format!("{one}{other}"));
    printed(&super::cli(&service, &["plugin", "follow"]), 0);
    assert_eq!(serving(&service).await, 1);
}
