//! What a restart finds: the last committed revisions, whatever became of the files that they came from.

use serde_json::json;

use super::{House, PATH, cli, cli_on, complaint, done, printed, probe, serving, stage};
use crate::support::{Service, built};

#[tokio::test]
async fn a_rollback_outlives_a_restart_and_the_source_is_not_needed() {
    let house = House::new("");
    let service = house.serve().await;
    assert_eq!(
        stage(&service, probe(2, &[]), "?activate=true").await["state"],
        "active"
    );
    done(&service, "rollback", json!({})).await;
    service.stop();
    drop(service);
    std::fs::remove_file(house.path("probe.wasm")).expect("the source is removed");
    let service = house.serve().await;
    assert_eq!(serving(&service).await, 1);
    done(&service, "revisions/2/activate", json!({})).await;
    assert_eq!(serving(&service).await, 2);
}

#[tokio::test]
async fn a_change_that_is_under_way_when_the_process_is_told_to_stop_is_finished() {
    let house = House::new("");
    // It takes a second or more to compile, and the stop comes at once.
    house.write("bank-qr.wasm", &built("bank_qr"));
    let grants =
        "[\"config\", \"logging\", \"state:1MiB\", \"http:GET https://api.vietqr.io/v2/banks\"]";
    house.manifest(&format!(
        "[[plugin]]\nname = \"bank-qr\"\nsource = \"bank-qr.wasm\"\ngrants = {grants}\n"
    ));
    let service = house.serve().await;
    let other = [&built("bank_qr")[..], b"\0\x02\x01v"].concat();
    let answer = service.upload("bank-qr", other, "?activate=true").await;
    assert_eq!(answer.status, 202, "{answer:?}");
    service.stop();
    drop(service);
    let service = house.serve().await;
    let told = service.told("/admin/v1/plugins/bank-qr").await;
    assert_eq!(told["revision"], 2, "{told}");
}

#[tokio::test]
async fn a_source_that_changed_meanwhile_is_brought_in_by_the_manifest() {
    let house = House::new("");
    drop(house.serve().await);
    house.write("probe.wasm", &probe(2, &[]));
    let service = house.serve().await;
    let live = |line: &serde_json::Value| line["event"] == "active" && line["revision"] == 2;
    service.log_until(|lines| lines.iter().any(live));
    assert_eq!(serving(&service).await, 2);
    // A hang-up is the sign to look again.
    house.write("probe.wasm", &probe(3, &[]));
    let sent = std::process::Command::new("kill")
        .args(["-HUP", &service.pid().to_string()])
        .status();
    assert!(sent.expect("kill runs").success());
    service.log_until(|lines| {
        lines
            .iter()
            .any(|line| line["event"] == "active" && line["revision"] == 3)
    });
    assert_eq!(serving(&service).await, 3);
    // Other settings are another revision of the same component.
    house.manifest(
        "[[plugin]]\nname = \"probe\"\nsource = \"probe.wasm\"\nlimits = { concurrency = 7 }\n",
    );
    printed(&cli(&service, &["plugin", "follow"]), 0);
    let told = service.told("/admin/v1/plugins/probe").await;
    assert_eq!(
        (&told["revision"], &told["limits"]["concurrency"]),
        (&json!(4), &json!(7))
    );
}

#[tokio::test]
async fn a_plugin_that_cannot_be_loaded_answers_on_its_own_routes_and_the_others_serve() {
    let house = House::new("");
    house.write("neighbour.wasm", &super::neighbour());
    let two = std::fs::read_to_string(house.path("plugin-manifest.toml")).expect("the manifest");
    house.manifest(&format!(
        "{two}[[plugin]]\nname = \"neighbour\"\nsource = \"neighbour.wasm\"\n"
    ));
    let service = house.serve().await;
    let staged = stage(&service, probe(2, &[]), "?activate=true").await;
    let digest = staged["digest"].as_str().expect("a digest").to_owned();
    drop(service);
    std::fs::write(
        house.path("components").join(format!("{digest}.wasm")),
        "junk",
    )
    .expect("it is damaged");
    let compiled = std::fs::read_dir(house.path("compiled"))
        .expect("the cache")
        .next()
        .expect("an engine's")
        .expect("it");
    std::fs::remove_file(compiled.path().join(format!("{digest}.cwasm")))
        .expect("its code is removed");

    let service = house.serve().await;
    let refused = service.get(PATH).await;
    assert_eq!(refused.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
    assert_eq!(
        refused.json()["error"]["message"],
        "The operation cannot be served at the moment"
    );
    assert_eq!(service.get("/api/v1/test/neighbour").await.status, 200);
    assert_eq!(
        Service::send(service.bare(reqwest::Method::GET, "/readyz"))
            .await
            .status,
        200
    );
    let told = complaint(&cli(&service, &["status"]), 1);
    assert!(told.contains("see `switchbay plugin list`"), "{told}");
    let table = printed(&cli(&service, &["plugin", "list"]), 0);
    let line = table
        .lines()
        .find(|line| line.starts_with("probe"))
        .expect("its line");
    assert!(
        line.contains("unloadable") && line.contains("no longer has the digest in its name"),
        "{line}"
    );
    printed(&cli(&service, &["plugin", "rollback", "probe"]), 0);
    assert_eq!(serving(&service).await, 1);
    printed(&cli(&service, &["status"]), 0);
}

#[tokio::test]
async fn safe_mode_serves_what_is_known_to_be_good_and_follows_nothing() {
    let house = House::new("");
    let service = house.serve().await;
    assert_eq!(serving(&service).await, 1, "it has answered a call");
    assert_eq!(
        stage(&service, probe(2, &[]), "?activate=true").await["state"],
        "active"
    );
    drop(service);
    house.write("probe.wasm", &probe(3, &[]));
    let service = house.serve_with(&["--safe-mode"]).await;
    assert_eq!(
        serving(&service).await,
        1,
        "revision 2 has answered nothing"
    );
    let told = service.told("/admin/v1/status").await;
    assert_eq!(
        (&told["safeMode"], &told["plugins"][0]["revision"]),
        (&json!(true), &json!(1))
    );
    let table = printed(&cli(&service, &["status"]), 0);
    assert!(table.contains("SAFE MODE"), "{table}");
    assert_eq!(
        service.told("/admin/v1/plugins/probe").await["active"],
        2,
        "the record is as it was"
    );
    for act in ["disable", "enable"] {
        done(&service, act, json!({})).await;
    }
    assert_eq!(
        serving(&service).await,
        1,
        "switched on again it is what it was"
    );
    done(&service, "rollback", json!({})).await;
    drop(service);
    let service = house.serve().await;
    service.log_until(|lines| {
        lines
            .iter()
            .any(|line| line["event"] == "active" && line["revision"] == 3)
    });
    assert_eq!(
        serving(&service).await,
        3,
        "out of safe mode the manifest counts again"
    );
}

#[tokio::test]
async fn without_a_server_a_command_says_how_to_start_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let told = complaint(&cli_on(folder.path(), &["plugin", "list"]), 6);
    assert!(told.contains("start one with `switchbay serve`"), "{told}");
    let house = House::new("");
    drop(house.serve().await);
    let told = complaint(&cli_on(house.folder.path(), &["status"]), 6);
    assert!(
        told.starts_with("switchbay: no server answers at 127.0.0.1:") && told.lines().count() == 1,
        "{told}"
    );
}
