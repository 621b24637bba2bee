//! Plugins that are granted each other's operations in a circle are not served together.

use serde_json::{Value, json};

use super::{Folder, Granted};
use crate::support::{describing, good};

/// A component that only describes itself, and welcomes these atoms.
fn welcoming(name: &str, atoms: &[&str]) -> Vec<u8> {
    let mut description = good(name);
    let wants = atoms.iter();
    let wants = wants.map(|atom| json!({ "atom": atom, "why": "it calls", "optional": true }));
    description["wants"] = wants.collect();
    describing(&description.to_string())
}

const FIRST: Granted<'static> = ("first", &["features:second.first"]);
const SECOND: Granted<'static> = ("second", &["features:third.first"]);
const THIRD: Granted<'static> = ("third", &["features:first.first"]);

#[tokio::test]
async fn a_circle_is_refused_with_all_its_plugins_and_the_rest_serves_on() {
    let folder = Folder::new();
    for (name, atoms) in [FIRST, SECOND, ("third", &[] as &[&str])] {
        folder.install(name, &welcoming(name, atoms));
    }
    folder.manifest(&[FIRST, SECOND, THIRD]);
    let service = folder.serve().await;
    let circle =
        "plugins are granted each other's operations in a circle: first → second → third → first";
    let staged = service
        .stage("third", welcoming("third", &["features:first.first"]), "")
        .await;
    assert_eq!(staged["state"], "rejected", "{staged}");
    assert!(staged.to_string().contains(circle), "{staged}");
    let own = "plugins are granted each other's operations in a circle: second → second";
    folder.manifest(&[FIRST, ("second", &["features:second.first"]), THIRD]);
    folder.follow(&service).await;
    let staged = service
        .stage(
            "second",
            welcoming("second", &["features:second.first"]),
            "",
        )
        .await;
    assert!(staged.to_string().contains(own), "{staged}");
    for name in ["first", "second", "third"] {
        assert_eq!(
            service.get(&format!("/api/v1/test/{name}")).await.status,
            200
        );
    }
}

#[tokio::test]
async fn a_circle_that_is_there_at_a_start_puts_off_who_closes_it() {
    let folder = Folder::new();
    for (name, atoms) in [FIRST, SECOND, THIRD] {
        folder.install(name, &welcoming(name, atoms));
    }
    folder.manifest(&[FIRST, SECOND, ("third", &[])]);
    let service = folder.serve().await;
    assert_eq!(service.get("/api/v1/test/third").await.status, 200);
    service.stop();
    drop(service);
    folder.manifest(&[FIRST, SECOND, THIRD]);
    let service = folder.serve().await;
    let tells = |line: &Value| {
        line["plugin"] == "third" && line.to_string().contains("first → second → third → first")
    };
    service.log_until(|lines| lines.iter().any(tells));
    for (name, status) in [("first", 200), ("second", 200), ("third", 503)] {
        let answer = service.get(&format!("/api/v1/test/{name}")).await;
        assert_eq!(answer.status, status, "{name}");
    }
    let third = service.told("/admin/v1/plugins/third").await;
    assert_eq!(third["state"], "unloadable");
    let why = third["message"].as_str().expect("a reason");
    assert!(why.contains("first → second → third → first"), "{why}");
}
