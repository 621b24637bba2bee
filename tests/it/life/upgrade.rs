//! An upgrade that wants more waits and shows the difference; one that does not goes on; any can be undone.

use reqwest::Method;
use serde_json::json;

use super::{
    House, PATH, PLUGIN, act, cli, complaint, done, printed, probe, serving, stage, states, upload,
    wanting,
};
use crate::support::{Service, Wire, built, in_time};

const ATOM: &str = "http:GET https://api.example.com/";

/// Stages a second revision that wants more, to be served where it may; gives back what is complained of.
fn stage_more(house: &House, service: &Service) -> String {
    let file = house.write("second.wasm", &probe(2, &[ATOM]));
    let file = file.to_str().expect("a path");
    let staged = cli(
        service,
        &[
            "plugin",
            "stage",
            "probe",
            file,
            "--activate",
            "--why",
            "ticket 7",
            "--by",
            "ada",
        ],
    );
    complaint(&staged, 3)
}

#[tokio::test]
async fn an_upgrade_that_wants_more_waits_and_shows_the_difference() {
    let house = House::new("");
    let service = house.serve().await;
    assert_eq!(serving(&service).await, 1);
    let told = stage_more(&house, &service);
    assert!(told.contains("revision 2 of probe: fetched …"), "{told}");
    assert!(
        told.contains(
            "review it with `switchbay plugin diff probe 2`, then `switchbay plugin approve probe 2`"
        ),
        "{told}"
    );
    assert_eq!(serving(&service).await, 1, "what waits does not serve");
    assert_eq!(complaint(&cli(&service, &["status"]), 3).lines().count(), 1);

    let shown = printed(&cli(&service, &["plugin", "diff", "probe"]), 0);
    let expected = format!(
        "probe: revision 2 against 1\nrights\n  + {ATOM}\nnot granted yet\n  {ATOM}: revision 2 needs it\noperations\n  \
         ~ first: headers, caching or limits of its route\n"
    );
    assert_eq!(shown, expected);

    let refused = complaint(&cli(&service, &["plugin", "activate", "probe"]), 5);
    assert_eq!(
        refused,
        format!(
            "switchbay: plugin `probe`: revision 2 wants `{ATOM}`, which neither its entry in plugin-manifest.toml nor an \
             approval grants: approve it (`switchbay plugin approve probe 2`), or add it to the entry's `grants` (CONFLICT)\n"
        )
    );
}

/// What was fetched and approved, which states the later revisions came to, and by whom.
async fn events(service: &Service) -> Vec<(String, u64, String)> {
    let history = service.told("/admin/v1/history?plugin=probe").await;
    history["events"]
        .as_array()
        .expect("events")
        .iter()
        .map(|event| {
            let text = |name: &str| event[name].as_str().expect("text").to_owned();
            (
                text("event"),
                event["revision"].as_u64().unwrap_or(0),
                text("by"),
            )
        })
        .filter(|(event, number, _)| {
            *number != 1 && !event.ends_with("ed") || event == "approved" || event == "fetched"
        })
        .collect()
}

#[tokio::test]
async fn an_upgrade_that_wants_more_serves_once_it_is_approved() {
    let house = House::new("");
    let service = house.serve().await;
    stage_more(&house, &service);
    let approved = printed(
        &cli(&service, &["plugin", "approve", "probe", "--by", "bob"]),
        0,
    );
    assert_eq!(
        approved,
        format!("granted to probe: {ATOM}\nrevision 2 of probe is active\n")
    );
    assert_eq!(serving(&service).await, 2);

    let told = service.told("/admin/v1/plugins/probe").await;
    assert_eq!(
        (&told["rights"], &told["approvals"][0]["by"]),
        (&json!([ATOM]), &json!("bob"))
    );
    let event = |event: &str, number, by: &str| (event.to_owned(), number, by.to_owned());
    let expected = [
        event("fetched", 1, "manifest"),
        event("fetched", 2, "ada"),
        event("awaiting-approval", 2, "ada"),
        event("approved", 2, "bob"),
        event("active", 2, "bob"),
    ];
    assert_eq!(events(&service).await, expected);

    // The next one wants no more than that, and one that wants less loses the right.
    assert_eq!(
        stage(&service, probe(3, &[ATOM]), "?activate=true").await["state"],
        "active"
    );
    assert_eq!(
        stage(&service, probe(4, &[]), "?activate=true").await["state"],
        "active"
    );
    assert_eq!(
        service.told("/admin/v1/plugins/probe").await["rights"],
        json!([])
    );
    assert_eq!(serving(&service).await, 4);
}

#[tokio::test]
async fn an_approval_grants_what_was_looked_at_and_nothing_else() {
    let house = House::new("grants = [\"logging\"]");
    let service = house.serve().await;
    let staged = stage(&service, probe(2, &["logging", ATOM]), "").await;
    assert_eq!(
        (&staged["state"], &staged["missing"]),
        (&json!("awaiting-approval"), &json!([ATOM]))
    );
    // While the operator looks, the manifest takes a grant away: the approval would give it back unseen.
    house.manifest("[[plugin]]\nname = \"probe\"\nsource = \"probe.wasm\"\n");
    let follow = service
        .admin(reqwest::Method::POST, "/admin/v1/manifest/follow", None)
        .await;
    assert_eq!(follow.status, 200, "{follow:?}");
    let refused = act(&service, "revisions/2/approve", json!({ "grants": [ATOM] })).await;
    assert_eq!(refused.refusal(), (409, "CONFLICT".to_owned()));
    let told = refused.json();
    assert_eq!(told["data"]["missing"], json!(["logging"]));
    assert!(
        told["error"]["message"]
            .as_str()
            .expect("text")
            .contains("review the difference again"),
        "{told}"
    );
    assert_eq!(
        service.told("/admin/v1/plugins/probe").await["approvals"],
        json!([]),
        "nothing was granted"
    );
    done(
        &service,
        "revisions/2/approve",
        json!({ "grants": [ATOM, "logging"] }),
    )
    .await;
    let approved = done(&service, "revisions/2/activate", json!({})).await;
    assert_eq!(
        (&approved["state"], &approved["rights"]),
        (&json!("active"), &json!([ATOM, "logging"]))
    );
}

#[tokio::test]
async fn a_rollback_is_one_step_and_goes_back_further_each_time() {
    let house = House::new("");
    let service = house.serve().await;
    for revision in 2..=5 {
        assert_eq!(
            stage(&service, probe(revision, &[]), "?activate=true").await["state"],
            "active"
        );
    }
    let mut seen = Vec::new();
    for _ in 0..3 {
        printed(&cli(&service, &["plugin", "rollback", "probe"]), 0);
        seen.push(serving(&service).await);
    }
    assert_eq!(seen, [4, 3, 2]);
    let told = complaint(&cli(&service, &["plugin", "rollback", "probe"]), 5);
    assert!(told.contains("has no revision to roll back to"), "{told}");
    printed(
        &cli(&service, &["plugin", "rollback", "probe", "--to", "5"]),
        0,
    );
    assert_eq!(serving(&service).await, 5);
    // Three are kept, with what they need; the rest is gone from the disk.
    let kept: Vec<u64> = states(&service)
        .await
        .into_iter()
        .map(|(number, _)| number)
        .collect();
    assert_eq!(kept, [2, 3, 4, 5]);
    let files = std::fs::read_dir(house.path("components"))
        .expect("the folder")
        .count();
    assert_eq!(files, 4);
}

#[tokio::test]
async fn a_candidate_is_superseded_rejected_or_activated() {
    let house = House::new("");
    let service = house.serve().await;
    for revision in [2, 3] {
        assert_eq!(
            stage(&service, probe(revision, &[]), "").await["state"],
            "staged"
        );
    }
    let second = service.told("/admin/v1/plugins/probe/revisions/2").await;
    assert_eq!(
        (&second["state"], &second["changed"]["why"]),
        (&json!("rejected"), &json!("superseded by revision 3"))
    );
    let refused = act(&service, "revisions/2/activate", json!({})).await;
    assert_eq!(refused.refusal(), (409, "CONFLICT".to_owned()));
    done(&service, "revisions/3/reject", json!({ "why": "no" })).await;
    assert_eq!(
        service.told("/admin/v1/plugins/probe/revisions/3").await["changed"]["why"],
        "no"
    );
    assert_eq!(serving(&service).await, 1);
    let refused = act(&service, "revisions/1/reject", json!({})).await;
    assert_eq!(refused.refusal(), (409, "CONFLICT".to_owned()));
}

#[tokio::test]
async fn a_revision_that_is_being_prepared_can_be_rejected() {
    let house = House::new("");
    let service = house.serve().await;
    let answer = upload(&service, probe(2, &[]), "?activate=true").await;
    assert_eq!(
        (answer.status, &answer.json()["data"]["underWay"]),
        (202, &json!(true))
    );
    let another = upload(&service, probe(3, &[]), "").await;
    assert_eq!(another.refusal(), (409, "CONFLICT".to_owned()));
    let rejected = done(
        &service,
        "revisions/2/reject",
        json!({ "why": "the wrong file" }),
    )
    .await;
    assert_eq!(rejected["state"], "rejected");
    assert_eq!(
        stage(&service, probe(3, &[]), "?activate=true").await["state"],
        "active"
    );
    assert_eq!(serving(&service).await, 3);
    let second = service.told("/admin/v1/plugins/probe/revisions/2").await;
    assert_eq!(
        second["changed"]["why"], "the wrong file",
        "what was cancelled does not come back"
    );
}

#[tokio::test]
async fn a_pause_of_a_plugins_calls_outlives_a_change_of_its_settings() {
    let house = House::new("");
    house.write("spin.wasm", &built("spin"));
    let manifest = |concurrency: u32| {
        let limits =
            format!("limits = {{ memory = \"16MiB\", cpu_ms = 50, concurrency = {concurrency} }}");
        house.manifest(&format!(
            "[[plugin]]\nname = \"spin\"\nsource = \"spin.wasm\"\n{limits}\n"
        ));
    };
    manifest(4);
    let service = house.serve().await;
    for _ in 0..5 {
        assert_eq!(
            service.post("/api/v1/test/spin", &json!({})).await.status,
            504
        );
    }
    manifest(3);
    let followed = service
        .admin(Method::POST, "/admin/v1/manifest/follow", None)
        .await;
    assert_eq!(
        followed.json()["data"]["plugins"][0]["outcome"],
        "live",
        "{followed:?}"
    );
    assert_eq!(
        service.post("/api/v1/test/spin", &json!({})).await.status,
        503
    );
}

#[tokio::test]
async fn what_was_written_is_served_though_the_operator_hangs_up_in_the_middle() {
    let house = House::new("");
    let service = house.serve().await;
    stage(&service, probe(2, &[]), "?activate=true").await;
    let (mut now, mut changes) = (2, 0);
    for round in 0..60 {
        let path = format!("{PLUGIN}/revisions/{}/activate", 3 - now);
        let token = service.operator_token();
        let mut wire = Wire::connect(&service.operator_url()).await;
        wire.send(format!(
            "POST {path} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
        ))
        .await;
        // Each time at another moment.
        for _ in 0..round * 3 {
            tokio::task::yield_now().await;
        }
        drop(wire);
        // Whether it was heard or not, what is in the record comes to serve.
        let told = in_time("the record and what serves agree", async {
            loop {
                let told = service.told(PLUGIN).await;
                if told["active"] == told["revision"] {
                    return told;
                }
            }
        })
        .await;
        changes += u32::from(told["active"] != json!(now));
        now = told["active"].as_u64().expect("a number");
    }
    assert!(changes > 0, "no change was heard");
    // The last one may be heard only now.
    in_time("the record and what serves agree", async {
        while service.told(PLUGIN).await["active"] != json!(serving(&service).await) {}
    })
    .await;
}

#[tokio::test]
async fn a_plugin_is_switched_off_and_on_again_and_its_neighbour_serves() {
    let house = House::new("");
    house.write("neighbour.wasm", &super::neighbour());
    let two = std::fs::read_to_string(house.path("plugin-manifest.toml")).expect("the manifest");
    house.manifest(&format!(
        "{two}[[plugin]]\nname = \"neighbour\"\nsource = \"neighbour.wasm\"\n"
    ));
    let service = house.serve().await;
    printed(
        &cli(
            &service,
            &["plugin", "disable", "probe", "--why", "it misbehaves"],
        ),
        0,
    );
    let refused = service.get(PATH).await;
    assert_eq!(refused.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
    assert_eq!(
        refused.json()["error"]["message"],
        "The operator has disabled this operation"
    );
    assert_eq!(refused.header("retry-after"), "60");
    let told = service.tool("serve_probe", &json!({})).await;
    assert_eq!(told["isError"], true);
    let document = service.get("/openapi.json").await;
    assert!(
        !String::from_utf8_lossy(&document.bytes).contains(PATH),
        "what is off is not published"
    );
    assert_eq!(service.get("/api/v1/test/neighbour").await.status, 200);
    printed(&cli(&service, &["status"]), 0);

    // An upgrade of what is off stays off.
    assert_eq!(
        stage(&service, probe(2, &[]), "?activate=true").await["state"],
        "active"
    );
    assert_eq!(service.get(PATH).await.status, 503);
    drop(service);
    let service = house.serve().await;
    assert_eq!(
        service.get(PATH).await.status,
        503,
        "a restart does not switch it on"
    );
    assert_eq!(
        complaint(&cli(&service, &["plugin", "disable", "probe"]), 5)
            .lines()
            .count(),
        1
    );
    printed(&cli(&service, &["plugin", "enable", "probe"]), 0);
    assert_eq!(serving(&service).await, 2);
}

#[tokio::test]
async fn an_upgrade_does_not_wait_for_what_it_can_do_without() {
    let house = House::new("");
    let service = house.serve().await;
    let wish = json!([{ "atom": ATOM, "why": "it would be welcome", "optional": true }]);
    let file = house.write("second.wasm", &wanting("probe", 2, wish));
    let file = file.to_str().expect("a path");
    printed(
        &cli(&service, &["plugin", "stage", "probe", file, "--activate"]),
        0,
    );
    assert_eq!(serving(&service).await, 2);
    let told = service.told("/admin/v1/plugins/probe").await;
    assert_eq!(
        (&told["state"], &told["rights"]),
        (&json!("active"), &json!([])),
        "{told}"
    );

    let shown = printed(&cli(&service, &["plugin", "diff", "probe", "2"]), 0);
    assert!(
        shown.contains(&format!("not granted yet\n  {ATOM}: it would be welcome\n")),
        "{shown}"
    );
    printed(&cli(&service, &["plugin", "approve", "probe", "2"]), 0);
    let told = service.told("/admin/v1/plugins/probe").await;
    assert_eq!(told["rights"], json!([ATOM]), "{told}");
}
