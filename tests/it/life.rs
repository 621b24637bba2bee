//! A plugin's life: staged, compared, approved, activated, rolled back, switched off, and what a restart finds of it.

mod crash;
mod events;
mod grants;
mod operator;
mod paths;
mod restart;
mod swap;
mod upgrade;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Answer, Options, Service, binary, build, built, describing, good, issue};

const PATH: &str = "/api/v1/test/probe";
const PLUGIN: &str = "/admin/v1/plugins/probe";

/// A component of the plugin `probe` that tells its revision by a header, its documents and what it wants.
fn probe(revision: u32, wants: &[&str]) -> Vec<u8> {
    named("probe", revision, wants)
}

fn named(name: &str, revision: u32, wants: &[&str]) -> Vec<u8> {
    let want =
        |atom: &&str| json!({ "atom": atom, "why": format!("revision {revision} needs it") });
    wanting(name, revision, wants.iter().map(want).collect())
}

fn wanting(name: &str, revision: u32, wants: Value) -> Vec<u8> {
    let mut description = good(name);
    description["version"] = json!(format!("{revision}.0.0"));
    description["wants"] = wants;
    let operation = &mut description["operations"][0];
    operation["description"] = json!(format!(
        "Tells that this is revision {revision} of the plugin."
    ));
    operation["rest"]["cache_control"] = json!(format!("max-age={revision}"));
    describing(&description.to_string())
}

/// A data folder with a manifest in it, which servers come and go on.
struct House {
    folder: Arc<TempDir>,
}

impl House {
    /// With the plugin `probe`, whose entry has these lines, at revision 1 without wants.
    fn new(entry: &str) -> Self {
        build();
        let house = Self {
            folder: Arc::new(TempDir::new().expect("a folder")),
        };
        house.write("probe.wasm", &probe(1, &[]));
        house.manifest(&format!(
            "[[plugin]]\nname = \"probe\"\nsource = \"probe.wasm\"\n{entry}\n"
        ));
        house
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file as a build does: whole, by a rename.
    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        std::fs::write(self.path("next"), bytes).expect("the file is written");
        std::fs::rename(self.path("next"), self.path(name)).expect("it is put in place");
        self.path(name)
    }

    fn manifest(&self, text: &str) {
        self.write("plugin-manifest.toml", text.as_bytes());
    }

    async fn serve(&self) -> Service {
        self.serve_with(&[]).await
    }

    async fn serve_with(&self, arguments: &[&str]) -> Service {
        let arguments = arguments
            .iter()
            .map(|&argument| argument.to_owned())
            .collect();
        let manifest = Some(self.path("plugin-manifest.toml"));
        Service::start(Options {
            manifest,
            data: Some(Arc::clone(&self.folder)),
            arguments,
            ..Options::default()
        })
        .await
    }
}

/// `switchbay` with the service's data folder.
fn cli(service: &Service, arguments: &[&str]) -> Output {
    cli_on(service.data.path(), arguments)
}

fn cli_on(data: &Path, arguments: &[&str]) -> Output {
    Command::new(binary())
        .args(arguments)
        .arg("--data")
        .arg(data)
        .output()
        .expect("the binary runs")
}

/// What a command printed that ended with this code.
fn printed(done: &Output, code: i32) -> String {
    let told = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(code), "{told}");
    String::from_utf8(done.stdout.clone()).expect("text")
}

/// What a command said that failed with this code.
fn complaint(done: &Output, code: i32) -> String {
    let told = String::from_utf8(done.stderr.clone()).expect("text");
    assert_eq!(done.status.code(), Some(code), "{told}");
    told
}

/// The revision that serves, by everything that tells it: the answer, the documents, the tool and the operator's API.
async fn serving(service: &Service) -> u32 {
    let answer = service.get(PATH).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let header = answer
        .header("cache-control")
        .strip_prefix("max-age=")
        .expect("the revision's header")
        .to_owned();
    let sentence = format!("this is revision {header} of");
    let document = Service::send(service.bare(Method::GET, "/openapi.json")).await;
    assert!(
        String::from_utf8_lossy(&document.bytes).contains(&sentence),
        "the document is not of revision {header}"
    );
    let tools = service
        .mcp(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }))
        .await;
    assert!(
        String::from_utf8_lossy(&tools.bytes).contains(&sentence),
        "the tools are not of revision {header}"
    );
    let told = service.told(PLUGIN).await;
    assert_eq!(told["version"], format!("{header}.0.0"), "{told}");
    header.parse().expect("a number")
}

async fn stage(service: &Service, component: Vec<u8>, query: &str) -> Value {
    service.stage("probe", component, query).await
}

async fn upload(service: &Service, component: Vec<u8>, query: &str) -> Answer {
    service.upload("probe", component, query).await
}

/// An act of the operator's API, with its status.
async fn act(service: &Service, path: &str, body: Value) -> Answer {
    service
        .admin(Method::POST, &format!("{PLUGIN}/{path}"), Some(&body))
        .await
}

async fn done(service: &Service, path: &str, body: Value) -> Value {
    let answer = act(service, path, body).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.json()["data"].clone()
}

/// The states of a plugin's revisions by number, oldest first.
async fn states(service: &Service) -> Vec<(u64, String)> {
    let told = service.told(PLUGIN).await;
    let mut states: Vec<(u64, String)> = told["revisions"]
        .as_array()
        .expect("revisions")
        .iter()
        .map(|one| {
            (
                one["revision"].as_u64().expect("a number"),
                one["state"].as_str().expect("a state").to_owned(),
            )
        })
        .collect();
    states.sort();
    states
}

/// A key of the installation, for clients of a test's own.
fn key(service: &Service) -> String {
    issue(service.data.path(), &["--all-scopes"])
}

/// Another plugin's component, for neighbours.
fn neighbour() -> Vec<u8> {
    describing(&good("neighbour").to_string())
}

/// A guest that uses what it is granted: it reads settings and writes lines.
fn misbehave() -> Vec<u8> {
    built("misbehave")
}
