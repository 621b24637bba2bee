//! What jobs outlive: their process, their revision, and a store that cannot be written.

use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{House, keys, pages};
use crate::support::{build, workspace};

#[tokio::test]
async fn a_job_outlives_its_process_and_fetches_nothing_again() {
    let mut house = House::start().await;
    for (request, kills) in [("killed", true), ("stopped", false)] {
        let held = format!("/{request}/3");
        house.pages.hold(&held);
        let job = house.begin(json!({ "request": request, "pages": 6 })).await;
        house.pages.until_asked(&held).await;
        if kills {
            house.service.kill();
        } else {
            house.service.stop();
        }
        house.pages.release(&held);
        let (pages, data, key) = (
            house.pages.clone(),
            Arc::clone(&house.service.data),
            house.key.clone(),
        );
        drop(house);
        house = House {
            key,
            ..House::start_with("", pages, Some(data)).await
        };
        let shown = house.end_of(&job).await;
        assert_eq!(
            (&shown["state"], &shown["keys"]),
            (&json!("completed"), &keys(0..6)),
            "{shown}"
        );
        let mut asked = house.pages.asked(&format!("/{request}/"));
        asked.sort_unstable();
        let expected = ["0", "1", "2", "3", "3", "4", "5"].map(|page| format!("/{request}/{page}"));
        assert_eq!(
            asked, expected,
            "the one page that was under way is fetched again, and no other"
        );
        // A run that the process ended in good order is none that the job died of.
        let attempt = if kills { 2 } else { 1 };
        assert_eq!(
            shown["output"],
            format!(r#"{{"attempt":{attempt},"keys":6}}"#)
        );
    }
}

#[tokio::test]
async fn a_job_outlives_its_revision() {
    let house = House::start().await;
    house.pages.hold("/old/1");
    let old = house.begin(json!({ "request": "old", "pages": 3 })).await;
    house.pages.until_asked("/old/1").await;
    let act = async |act: &str, body: Value| {
        let answer = house
            .service
            .admin(
                Method::POST,
                &format!("/admin/v1/plugins/works/{act}"),
                Some(&body),
            )
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    // What is switched off runs no job; what was begun ends on its revision.
    act("disable", json!({ "why": "a test" })).await;
    house.pages.release("/old/1");
    house.pages.until_asked("/old/2").await;
    act("enable", json!({ "why": "a test" })).await;
    let shown = house.end_of(&old).await;
    assert_eq!(
        (&shown["state"], &shown["keys"]),
        (&json!("completed"), &keys(0..3))
    );
    assert_eq!(house.pages.asked("/old/").len(), 3);
}

#[tokio::test]
async fn a_job_that_outlives_the_longest_call_of_a_replaced_revision_is_cut_off_and_taken_up_again()
{
    let folder = TempDir::new().expect("a folder");
    build();
    let wasm = workspace().join("target/components/wasm32-wasip2/plugin/works.wasm");
    let entry = format!(
        "[[plugin]]\nname = \"works\"\nsource = {wasm:?}\ngrants = [\"http:GET http://pages.test/\", \"jobs\"]\n\
         limits = {{ wall_ms = 1000 }}\n"
    );
    let manifest = folder.path().join("plugin-manifest.toml");
    std::fs::write(&manifest, entry).expect("the manifest is written");
    let house = House::start_on(manifest, "[limits]\nbody_ms = 500\n", pages(), None).await;
    house.pages.hold("/long/1");
    let job = house.begin(json!({ "request": "long", "pages": 3 })).await;
    house.pages.until_asked("/long/1").await;
    let act = async |act: &str| {
        let path = format!("/admin/v1/plugins/works/{act}");
        let answer = house
            .service
            .admin(Method::POST, &path, Some(&json!({ "why": "a test" })))
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    act("disable").await;
    house.pages.until_gone("/long/1").await;
    house.service.log_until(|lines| {
        lines
            .iter()
            .any(|line| line["message"] == "a draining revision is stopped")
    });
    house.pages.release("/long/1");
    act("enable").await;
    let shown = house.end_of(&job).await;
    assert_eq!(
        (&shown["state"], &shown["keys"]),
        (&json!("completed"), &keys(0..3))
    );
    let asked = ["0", "1", "1", "2"].map(|page| format!("/long/{page}"));
    assert_eq!(
        house.pages.asked("/long/"),
        asked,
        "it goes on where it was"
    );
}

#[tokio::test]
async fn a_store_that_cannot_be_written_refuses_jobs_and_loses_none() {
    let house = House::start().await;
    house.pages.hold("/kept/1");
    let job = house.begin(json!({ "request": "kept", "pages": 3 })).await;
    house.pages.until_asked("/kept/1").await;
    house.service.fill_disk();
    let refused = house
        .submit(json!({ "request": "refused", "pages": 1 }))
        .await;
    assert_eq!(refused.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
    assert_eq!(refused.json()["error"]["message"], "Unavailable");
    // What runs cannot keep what it found, nor its end.
    house.pages.release("/kept/1");
    let failed =
        |line: &Value| line["message"] == "a job cannot be read or written" && line["job"] == *job;
    house.service.log_until(|lines| lines.iter().any(failed));
    house.service.kill();
    let (pages, data, key) = (
        house.pages.clone(),
        Arc::clone(&house.service.data),
        house.key.clone(),
    );
    drop(house);
    let house = House {
        key,
        ..House::start_with("", pages, Some(data)).await
    };
    let shown = house.end_of(&job).await;
    assert_eq!(
        (&shown["state"], &shown["keys"]),
        (&json!("completed"), &keys(0..3))
    );
    assert_eq!(
        house.pages.asked("/kept/0").len(),
        1,
        "what was kept is not fetched again"
    );
    // Nobody was told that it was submitted, and it was not.
    assert_eq!(
        house
            .submit(json!({ "request": "refused", "pages": 0 }))
            .await
            .status,
        202
    );
}
