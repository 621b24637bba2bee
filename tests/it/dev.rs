//! `switchbay dev`: plugins that follow their source while calls go on.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use reqwest::Method;
use serde_json::json;

use crate::metrics::{CALLS, counts, revision, scrape};
use crate::support::{Dev, Service, build, issue, workspace};

/// Swaps of the component under load; `SWITCHBAY_ROUNDS` asks for more.
fn rounds() -> usize {
    std::env::var("SWITCHBAY_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(200)
}

const HELLO: &str = r##"//! Greets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use switchbay_sdk::{Call, Failure, Operation, Plugin, Reply, Rest};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Greet {
    /// Whom to greet.
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct Greeting {
    /// The greeting.
    text: String,
}

async fn greet(_call: Call, input: Greet) -> Result<Reply<Greeting>, Failure> {
    Ok(Reply::ok(Greeting { text: format!("WORD, {}!", input.name) }))
}

fn plugin() -> Plugin {
    Plugin::new("hello", "0.1.0", "Greets people").operation(
        Operation::new("greet", greet)
            .title("Greet a person")
            .description("Returns a greeting for the named person.")
            .rest(Rest::post("/api/v1/hello", "hello:greet"))
            .example("A greeting", r#"{ "name": "Ada" }"#),
    )
}

switchbay_sdk::export!(plugin);
"##;

/// A plugin crate outside this workspace, as its author would have it.
fn write_crate(folder: &Path) {
    let sdk = workspace().join("sdk").display().to_string();
    let manifest = format!(
        "[package]\nname = \"hello\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[lib]\ncrate-type = [\"cdylib\"]\n\n\
         [dependencies]\nschemars = \"1\"\nserde = {{ version = \"1\", features = [\"derive\"] }}\n\
         switchbay-sdk = {{ path = \"{sdk}\" }}\n\n[workspace]\n"
    );
    std::fs::create_dir_all(folder.join("src")).expect("a folder");
    std::fs::write(folder.join("Cargo.toml"), manifest).expect("a manifest");
    std::fs::copy(workspace().join("Cargo.lock"), folder.join("Cargo.lock")).expect("a lock file");
    // Dependencies are compiled once for all runs of this test.
    let target = workspace().join("target/components/hello");
    std::fs::create_dir_all(&target).expect("a folder");
    std::os::unix::fs::symlink(target, folder.join("target")).expect("a link");
    write_source(folder, "Hello");
}

fn write_source(folder: &Path, word: &str) {
    let source = HELLO.replace("WORD", word);
    std::fs::write(folder.join("src/lib.rs"), source).expect("the source is written");
}

async fn greeting(dev: &Dev) -> String {
    let answer = Service::send(
        dev.request(Method::POST, "/api/v1/hello")
            .json(&json!({ "name": "Ada" })),
    )
    .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["data"]["text"]
        .as_str()
        .expect("a greeting")
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_live_without_a_failed_call_and_a_broken_one_keeps_the_old_revision() {
    let folder = tempfile::tempdir().expect("a folder");
    write_crate(&folder.path().join("hello"));
    std::fs::write(
        folder.path().join("plugin-manifest.toml"),
        "[[plugin]]\nname = \"hello\"\nsource = \"hello\"\n",
    )
    .expect("a manifest");
    let dev = Arc::new(Dev::start(folder.path()).await);
    assert_eq!(greeting(&dev).await, "Hello, Ada!");

    let stop = Arc::new(AtomicBool::new(false));
    let calling = tokio::spawn({
        let (dev, stop) = (Arc::clone(&dev), Arc::clone(&stop));
        async move {
            let mut seen = Vec::new();
            loop {
                // One call more after the end was asked for: that one sees the last revision.
                let is_last = stop.load(Ordering::Relaxed);
                let text = greeting(&dev).await;
                if seen.last() != Some(&text) {
                    seen.push(text);
                }
                if is_last {
                    return seen;
                }
            }
        }
    });
    write_source(&folder.path().join("hello"), "{");
    let broken = dev.line_with("Not reloaded").await;
    assert!(broken.contains("cargo could not build hello"), "{broken}");
    assert!(
        dev.stderr().contains("error: invalid format string"),
        "{}",
        dev.stderr()
    );
    assert_eq!(greeting(&dev).await, "Hello, Ada!");

    write_source(&folder.path().join("hello"), "Good day");
    dev.line_with("Reloaded hello").await;
    assert_eq!(greeting(&dev).await, "Good day, Ada!");
    stop.store(true, Ordering::Relaxed);
    assert_eq!(
        calling.await.expect("no call failed"),
        ["Hello, Ada!", "Good day, Ada!"]
    );
}

/// Puts a component in place as a build does: whole, by a rename.
fn install(folder: &Path, revision: &str) {
    let built = workspace().join(format!(
        "target/components/wasm32-wasip2/plugin/versioned_{revision}.wasm"
    ));
    std::fs::copy(built, folder.join("next")).expect("the component is copied");
    std::fs::rename(folder.join("next"), folder.join("versioned.wasm"))
        .expect("the component is put in place");
}

/// The plugin that is swapped, at its revision `a`, with a key that has no limit.
async fn versioned() -> (tempfile::TempDir, Dev) {
    build();
    let folder = tempfile::tempdir().expect("a folder");
    install(folder.path(), "a");
    let entry = "[[plugin]]\nname = \"versioned\"\nsource = \"versioned.wasm\"\ninstances = \"warm\"\n\
                 limits = { cpu_ms = 5000 }\n";
    std::fs::write(folder.path().join("plugin-manifest.toml"), entry).expect("a manifest");
    let mut dev = Dev::start(folder.path()).await;
    dev.key = issue(&folder.path().join(".switchbay"), &["--all-scopes"]);
    (folder, dev)
}

/// One call whose body, schema and header must be of one revision.
async fn consistent(dev: &Dev) -> String {
    let answer = Service::send(dev.request(Method::GET, "/api/v1/test/which")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let revision = answer.json()["data"]["revision"]
        .as_str()
        .expect("a revision")
        .to_owned();
    let expected = if revision == "a" {
        "max-age=11"
    } else {
        "max-age=22"
    };
    assert_eq!(
        answer.header("cache-control"),
        expected,
        "an answer mixes two revisions"
    );
    revision
}

#[tokio::test(flavor = "multi_thread")]
async fn swapping_under_load_fails_no_call_and_mixes_no_answer() {
    let (folder, dev) = versioned().await;
    let dev = Arc::new(dev);
    let (stop, calls) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let (dev, stop, calls) = (Arc::clone(&dev), Arc::clone(&stop), Arc::clone(&calls));
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    consistent(&dev).await;
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for round in 0..rounds() {
        let next = if round % 2 == 0 { "b" } else { "a" };
        install(folder.path(), next);
        dev.line_with("Reloaded versioned").await;
        assert_eq!(consistent(&dev).await, next);
        let document = Service::send(dev.request(Method::GET, "/openapi.json")).await;
        assert!(String::from_utf8_lossy(&document.bytes).contains(&format!("revision {next} of")));
    }
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.expect("no call failed");
    }
    assert!(calls.load(Ordering::Relaxed) > 100);
}

#[test]
fn a_manifest_that_is_not_there_is_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let done = Command::new(crate::support::binary())
        .arg("dev")
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    assert_eq!(done.status.code(), Some(1));
    let text = String::from_utf8(done.stderr).expect("text");
    assert!(
        text.starts_with("switchbay: there is no plugin-manifest.toml in "),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1);
}

#[tokio::test]
async fn the_series_of_a_revision_go_with_it() {
    let (folder, dev) = versioned().await;
    let data = folder.path().join(".switchbay");
    let mut names = Vec::new();
    for next in ["b", "a"] {
        assert_eq!(
            Service::send(dev.request(Method::GET, "/api/v1/test/which"))
                .await
                .status,
            200
        );
        let revision = revision(&data, "versioned").await;
        let metrics = scrape(&data).await;
        for name in [
            CALLS,
            "switchbay_plugin_call_duration_seconds_count",
            "switchbay_plugin_instances",
        ] {
            assert_eq!(
                metrics.values_of(name, "revision"),
                [revision.clone()].into(),
                "{name}"
            );
            assert_eq!(
                metrics.counts(name, &[], "revision"),
                counts([(revision.as_str(), 1)]),
                "{name}"
            );
        }
        names.push(revision);
        install(folder.path(), next);
        dev.line_with("Reloaded versioned").await;
    }
    assert_ne!(names[0], names[1]);
}
