//! The directory's refresh: what is taken of the upstream list, what is not, and what a caller sees meanwhile.

use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{BANKS, GENERATE};
use crate::lab::{Reply, Sites};
use crate::support::{Options, Service, build, workspace};

const SNAPSHOT: &str = "2026-07-14T07:24:47Z";
const LIST: &str = "api.vietqr.io/v2/banks";
const GRANTS: &str =
    r#""config", "logging", "state:1MiB", "http:GET https://api.vietqr.io/v2/banks""#;

/// The upstream and a service that asks it.
struct House {
    lab: Sites,
    folder: Arc<TempDir>,
}

impl House {
    /// A service whose bank-qr has these grants and settings.
    async fn serve(&self, grants: &str, settings: &str) -> Service {
        tokio::task::spawn_blocking(build)
            .await
            .expect("it is built");
        let manifest = self.folder.path().join("plugin-manifest.toml");
        let component = workspace().join("target/components/wasm32-wasip2/plugin/bank_qr.wasm");
        let text = format!(
            "[[plugin]]\nname = \"bank-qr\"\nsource = {component:?}\ninstances = \"warm\"\ngrants = [{grants}]\n\
             config = {{ {settings} }}\n"
        );
        std::fs::write(&manifest, text).expect("it is written");
        let data = Some(Arc::clone(&self.folder));
        let (config, manifest) = (self.lab.configuration(), Some(manifest));
        Service::start(Options {
            config,
            manifest,
            data,
            ..Options::default()
        })
        .await
    }

    fn new() -> Self {
        Self {
            lab: Sites::start(&["api.vietqr.io"], false),
            folder: Arc::new(TempDir::new().expect("a folder")),
        }
    }

    fn asked(&self) -> usize {
        self.lab.asked(LIST).len()
    }
}

/// Asks at each call.
const EAGER: &str = "refresh_s = 0, pause_s = 0, wait_ms = 9000";
/// As the product does, but for a machine that is busy with tests.
const PATIENT: &str = "wait_ms = 9000";

fn row(number: usize) -> Value {
    json!({
        "id": number,
        "name": format!("Nga\u{302}n ha\u{300}ng {number}"),
        "code": format!("B{number}X"),
        "bin": format!("97{number:04}"),
        "shortName": format!("Bank{number}"),
        "logo": format!("https://api.vietqr.io/img/B{number}.png"),
        "transferSupported": 1,
        "lookupSupported": 1,
        "short_name": format!("Bank{number}"),
        "support": 3,
        "isTransfer": 1,
        "swift_code": null,
    })
}

fn rows(count: usize) -> Vec<Value> {
    (1..=count).map(row).collect()
}

fn list(rows: &[Value]) -> Reply {
    let desc = format!("Get Bank list successful! Total {} banks", rows.len());
    Reply::json(200, &json!({ "code": "00", "desc": desc, "data": rows }))
}

async fn directory(service: &Service) -> Value {
    let answer = service.get(BANKS).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let data = answer.json()["data"].clone();
    assert_eq!(
        data["count"],
        data["banks"].as_array().expect("banks").len()
    );
    data
}

async fn standing(service: &Service) -> (Value, String) {
    let data = directory(service).await;
    (
        data["count"].clone(),
        data["updatedAt"].as_str().expect("text").to_owned(),
    )
}

#[tokio::test]
async fn a_changed_list_is_served_from_the_call_that_asked_and_after_a_restart() {
    let house = House::new();
    let service = house.serve(GRANTS, PATIENT).await;
    house.lab.answer(LIST, list(&rows(40)));
    let taken = directory(&service).await;
    let expected = json!({
        "bin": "970007", "code": "B7X", "shortName": "Bank7", "name": "Ngân hàng 7", "transferSupported": true,
        "logoUrl": "https://api.vietqr.io/img/B7.png",
    });
    assert_eq!(
        (&taken["count"], &taken["banks"][6]),
        (&json!(40), &expected)
    );
    assert_ne!(taken["updatedAt"], SNAPSHOT);
    let request = json!({ "bank": "bank7", "accountNumber": "0123456789" });
    assert_eq!(
        service.post(GENERATE, &request).await.json()["data"]["bank"]["bin"],
        "970007"
    );
    let gone = json!({ "bank": "VCB", "accountNumber": "0123456789" });
    assert_eq!(
        service.post(GENERATE, &gone).await.refusal(),
        (400, "VALIDATION_ERROR".to_owned())
    );
    assert_eq!(directory(&service).await, taken);
    assert_eq!(house.asked(), 1, "a day is not over");
    service.stop();

    house.lab.answer(LIST, Reply::page(500, "down"));
    let service = house.serve(GRANTS, PATIENT).await;
    assert_eq!(directory(&service).await, taken);
    assert_eq!(house.asked(), 1, "a day is not over");
}

#[tokio::test]
async fn the_time_of_the_content_changes_with_the_content_alone() {
    let house = House::new();
    let service = house.serve(GRANTS, EAGER).await;
    house.lab.answer(LIST, list(&rows(40)));
    let first = standing(&service).await;
    assert_eq!(first.0, 40);
    assert_eq!(standing(&service).await, first, "the same list");
    let mut named = rows(40);
    named[3]["name"] = json!("Another");
    named[3]["support"] = json!(0);
    house.lab.answer(LIST, list(&named));
    let second = standing(&service).await;
    assert!(second.1 > first.1, "{second:?} after {first:?}");
    named[3]["support"] = json!(3);
    house.lab.answer(LIST, list(&named));
    assert_eq!(
        standing(&service).await,
        second,
        "nothing of it is published"
    );
    assert_eq!(house.asked(), 4);
}

#[tokio::test]
async fn a_list_that_says_what_the_snapshot_says_keeps_its_time() {
    let house = House::new();
    let service = house.serve(GRANTS, EAGER).await;
    house.lab.answer(LIST, Reply::page(503, "later"));
    let snapshot = directory(&service).await;
    assert_eq!(
        (&snapshot["count"], &snapshot["updatedAt"]),
        (&json!(65), &json!(SNAPSHOT))
    );
    let rows: Vec<Value> = snapshot["banks"]
        .as_array()
        .expect("banks")
        .iter()
        .map(upstream)
        .collect();
    house.lab.answer(LIST, list(&rows));
    assert_eq!(directory(&service).await, snapshot);
    // A bank with another name is found by its former one, unless that is another bank's now.
    let mut renamed = rows;
    let vcb = renamed
        .iter()
        .position(|row| row["code"] == "VCB")
        .expect("a bank");
    renamed[vcb]["code"] = json!("NEWVCB");
    renamed[vcb]["shortName"] = json!("NewVietcom");
    let acb = renamed
        .iter()
        .position(|row| row["code"] == "ACB")
        .expect("a bank");
    renamed[acb]["code"] = json!("VCB");
    renamed[acb]["shortName"] = json!("ACB");
    house.lab.answer(LIST, list(&renamed));
    assert_ne!(directory(&service).await["updatedAt"], SNAPSHOT);
    let found = async |key: &str| {
        let answer = service
            .post(
                GENERATE,
                &json!({ "bank": key, "accountNumber": "0123456789" }),
            )
            .await;
        answer.json()["data"]["bank"]["bin"]
            .as_str()
            .map(str::to_owned)
    };
    assert_eq!(found("Vietcombank").await.as_deref(), Some("970436"));
    assert_eq!(found("VCB").await.as_deref(), Some("970416"));
    assert_eq!(found("Oceanbank").await.as_deref(), Some("970414"));
}

/// A published bank as the list has it.
fn upstream(bank: &Value) -> Value {
    json!({
        "bin": bank["bin"], "code": bank["code"], "shortName": bank["shortName"], "name": bank["name"],
        "logo": bank["logoUrl"], "transferSupported": i32::from(bank["transferSupported"] == true),
    })
}

#[tokio::test]
async fn a_list_that_cannot_be_right_changes_nothing() {
    let house = House::new();
    let service = house.serve(GRANTS, EAGER).await;
    let with = |member: &str, value: Value| {
        let mut rows = rows(40);
        rows[5][member] = value;
        list(&rows)
    };
    let mut asked = 0;
    for reply in [
        list(&rows(29)),
        list(&rows(501)),
        with("bin", json!("970007")),
        with("bin", json!("97000")),
        with("bin", json!("97000a")),
        with("code", json!("b7x")),
        with("name", json!("")),
        Reply::json(
            200,
            &json!({ "code": "21", "desc": "no", "data": rows(40) }),
        ),
        Reply::page(200, "maintenance"),
        Reply::body(200, "application/json", vec![b' '; 600 * 1024]),
        Reply::page(500, "down"),
        Reply::redirect(302, "https://api.vietqr.io/v3/banks"),
        Reply::Close,
    ] {
        house.lab.answer(LIST, reply.clone());
        assert_eq!(
            standing(&service).await,
            (json!(65), SNAPSHOT.to_owned()),
            "{reply:?}"
        );
        asked += 1;
        assert_eq!(house.asked(), asked, "{reply:?}");
    }
    let told = |line: &Value| {
        line["target"] == "plugin"
            && line["message"]
                .as_str()
                .is_some_and(|text| text.contains("could not be refreshed"))
    };
    service.log_until(|lines| lines.iter().filter(|line| told(line)).count() == asked);
}

#[tokio::test]
async fn an_upstream_that_fails_is_left_alone_for_a_while() {
    for reply in [Reply::Hang, Reply::page(500, "down")] {
        let house = House::new();
        let service = house.serve(GRANTS, "refresh_s = 0").await;
        house.lab.answer(LIST, reply.clone());
        assert_eq!(
            standing(&service).await,
            (json!(65), SNAPSHOT.to_owned()),
            "{reply:?}"
        );
        // On a slow machine the time may be over before the request is out.
        let asked = house.asked();
        for _ in 0..3 {
            assert_eq!(
                standing(&service).await,
                (json!(65), SNAPSHOT.to_owned()),
                "{reply:?}"
            );
        }
        service.stop();
        let service = house.serve(GRANTS, "refresh_s = 0").await;
        assert_eq!(
            standing(&service).await,
            (json!(65), SNAPSHOT.to_owned()),
            "{reply:?}"
        );
        assert_eq!(
            house.asked(),
            asked,
            "neither a call nor a restart asks sooner: {reply:?}"
        );
    }
}

#[tokio::test]
async fn without_its_grants_the_snapshot_is_served() {
    for grants in [
        "",
        r#""state:1MiB""#,
        r#""http:GET https://api.vietqr.io/v2/banks""#,
    ] {
        let house = House::new();
        house.lab.answer(LIST, list(&rows(40)));
        let service = house.serve(grants, EAGER).await;
        assert_eq!(
            standing(&service).await,
            (json!(65), SNAPSHOT.to_owned()),
            "{grants}"
        );
        assert_eq!(house.asked(), 0, "{grants}");
    }
}
