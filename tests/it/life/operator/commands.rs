//! The operator's command line: what it prints, and how it fails.

use serde_json::{Value, json};

use super::super::{House, cli, complaint, printed, probe};

#[tokio::test]
async fn commands_print_tables_or_json() {
    let house = House::new("config = { token_url = \"https://example.com/secret\" }");
    let service = house.serve().await;
    let listed = printed(&cli(&service, &["plugin", "list"]), 0);
    let expected = "PLUGIN  STATE   REVISION  VERSION  CANDIDATE  MESSAGE\nprobe   active  1         1.0.0    -          -\n";
    assert_eq!(listed, expected);
    let shown = printed(&cli(&service, &["plugin", "show", "probe"]), 0);
    assert!(
        shown.starts_with(
            "probe 1.0.0 is active\n  Describes itself as a test wants\nrights     -\n"
        ),
        "{shown}"
    );
    assert!(
        shown.contains("first      GET /api/v1/test/probe  serve_probe  10000 ms\n"),
        "{shown}"
    );
    let json: Value = serde_json::from_str(&printed(
        &cli(&service, &["plugin", "show", "probe", "--json"]),
        0,
    ))
    .expect("JSON");
    assert_eq!(
        (&json["name"], &json["revisions"][0]["state"]),
        (&json!("probe"), &json!("active"))
    );
    assert_eq!(
        json["config"],
        json!(["token_url"]),
        "what a plugin is told may be a secret"
    );
    assert!(!json.to_string().contains("secret"));
    let file = house.write("second.wasm", &probe(2, &[]));
    let file = file.to_str().expect("a path");
    let staged = printed(&cli(&service, &["plugin", "stage", "probe", file]), 0);
    assert_eq!(
        staged,
        "revision 2 of probe is staged; serve it with `switchbay plugin activate probe 2`\n"
    );
    assert_eq!(
        printed(&cli(&service, &["plugin", "activate", "probe"]), 0),
        "revision 2 of probe is active\n"
    );
    assert_eq!(
        printed(&cli(&service, &["plugin", "rollback", "probe"]), 0),
        "probe 1.0.0 is active, revision 1\n"
    );
    let status: Value =
        serde_json::from_str(&printed(&cli(&service, &["status", "--json"]), 0)).expect("JSON");
    assert_eq!(
        (&status["well"], &status["waiting"], &status["storeHealthy"]),
        (&json!(true), &json!(0), &json!(true))
    );
}

#[tokio::test]
async fn a_command_that_fails_says_why_in_one_line_and_ends_with_a_code_of_its_own() {
    let house = House::new("");
    let service = house.serve().await;
    let unknown = complaint(&cli(&service, &["plugin", "show", "nobody"]), 4);
    assert_eq!(
        unknown,
        "switchbay: there is no plugin `nobody` in plugin-manifest.toml (NOT_FOUND)\n"
    );
    let none = complaint(&cli(&service, &["plugin", "approve", "probe"]), 4);
    assert!(none.contains("no revision of probe is waiting"), "{none}");
    let unread = complaint(
        &cli(&service, &["plugin", "stage", "probe", "/nowhere.wasm"]),
        1,
    );
    assert!(
        unread.starts_with("switchbay: cannot read the component /nowhere.wasm: "),
        "{unread}"
    );
    let rejected = complaint(
        &cli(
            &service,
            &[
                "plugin",
                "stage",
                "probe",
                house.write("junk.wasm", b"junk").to_str().expect("a path"),
            ],
        ),
        1,
    );
    assert!(
        rejected.contains(
            "revision 2 of probe was rejected: plugin `probe`: it is not a WebAssembly component"
        ),
        "{rejected}"
    );
    complaint(&cli(&service, &["plugin", "stage"]), 2);
}
