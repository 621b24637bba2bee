//! Components that cannot be served: each is refused with a message of its own, and the running revision serves on.
//!
//! One `switchbay dev` meets them all, one after the other. Most are one built guest, into which its description is
//! written (see `tests/programs/describes`).

mod collisions;
mod descriptions;
mod schemas;

use std::collections::HashSet;
use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Dev, Service, build, built, describing, good, operation};

const MANIFEST: &str = r#"
[[plugin]]
name = "describes"
source = "describes.wasm"
limits = { memory = "16MiB", cpu_ms = 200 }

[[plugin]]
name = "neighbour"
source = "neighbour.wasm"

[[plugin]]
name = "ungranted"
source = "ungranted.wasm"
grants = ["logging"]
"#;

/// The largest component that is loaded, in bytes.
const COMPONENT_BYTES_MAX: u64 = 64 << 20;

/// A component in which each `name` is another of the same length.
fn renamed(mut component: Vec<u8>, name: &str, other: &str) -> Vec<u8> {
    assert_eq!(name.len(), other.len());
    let places: Vec<usize> = (0..component.len())
        .filter(|&at| component[at..].starts_with(name.as_bytes()))
        .collect();
    assert!(!places.is_empty(), "{name} does not occur");
    for at in places {
        component[at..at + other.len()].copy_from_slice(other.as_bytes());
    }
    component
}

/// The running server, and what it has been given so far.
struct Floor {
    folder: TempDir,
    dev: Dev,
    seen: HashSet<String>,
    last: String,
}

impl Floor {
    async fn open() -> Self {
        build();
        let folder = TempDir::new().expect("a folder");
        std::fs::write(folder.path().join("plugin-manifest.toml"), MANIFEST).expect("a manifest");
        for name in ["describes", "neighbour", "ungranted"] {
            install(folder.path(), name, &describing(&good(name).to_string()));
        }
        let dev = Dev::start(folder.path()).await;
        Self {
            folder,
            dev,
            seen: HashSet::new(),
            last: String::new(),
        }
    }

    async fn serves(&self, path: &str) {
        let answer = Service::send(self.dev.request(Method::GET, path)).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }

    /// Reads the refusal of what was just put in place; what runs serves on.
    async fn refused(&mut self, message: &str) {
        let line = loop {
            let line = self.dev.line_with("Not reloaded").await;
            // One change may be seen twice.
            if line != self.last {
                break line;
            }
        };
        let folder = self
            .folder
            .path()
            .canonicalize()
            .expect("a folder")
            .display()
            .to_string();
        let told = line
            .strip_prefix("Not reloaded: ")
            .and_then(|rest| rest.strip_suffix(SERVES_ON));
        let told = told.unwrap_or_else(|| panic!("not one whole line: {line}"));
        assert_eq!(told.replace(&folder, "[folder]"), message);
        assert!(
            self.seen.insert(line.clone()),
            "two components have one message: {line}"
        );
        self.last = line;
        self.serves("/api/v1/test/describes").await;
    }

    /// Puts a component in the place of `describes`, and reads what is said of it.
    async fn check(&mut self, component: &[u8], message: &str) {
        install(self.folder.path(), "describes", component);
        self.refused(message).await;
    }

    /// As `check`, for a description in which these members are other ones.
    async fn check_with(&mut self, changes: &[(&str, Value)], message: &str) {
        self.check_set(changes, &format!("plugin `describes`: {message}"))
            .await;
    }

    /// As `check_with`, where the message begins with more than one plugin.
    async fn check_set(&mut self, changes: &[(&str, Value)], message: &str) {
        let mut description = good("describes");
        for (at, value) in changes {
            let (parent, member) = at.rsplit_once('/').expect("a pointer");
            description.pointer_mut(parent).expect("a parent")[member] = value.clone();
        }
        self.check(&describing(&description.to_string()), message)
            .await;
    }
}

const SERVES_ON: &str = ". The running revision keeps serving.";

/// Puts a component in place as a build does: whole, by a rename.
fn install(folder: &Path, name: &str, component: &[u8]) {
    std::fs::write(folder.join("next"), component).expect("the component is written");
    put(folder, name);
}

fn put(folder: &Path, name: &str) {
    std::fs::rename(folder.join("next"), folder.join(format!("{name}.wasm")))
        .expect("the component is put in place");
}

async fn files(floor: &mut Floor) {
    floor
        .check(
            b"no component at all",
            "plugin `describes`: it is not a WebAssembly component: [folder]/describes.wasm does not start with a \
             component's header",
        )
        .await;
    floor
        .check(
            b"\0asm\x01\0\0\0",
            "plugin `describes`: it is not a WebAssembly component: [folder]/describes.wasm \
        is a core module; make a component of it with `wasm-tools component new`",
        )
        .await;
    floor.check(b"", "plugin `describes`: it is not a WebAssembly component: [folder]/describes.wasm is empty").await;
    let huge = std::fs::File::create(floor.folder.path().join("next")).expect("a file");
    huge.set_len(COMPONENT_BYTES_MAX + 1)
        .expect("a long file without blocks");
    put(floor.folder.path(), "describes");
    floor
        .refused(
            "plugin `describes`: its component [folder]/describes.wasm has 67108865 bytes; at most 67108864 are \
             allowed",
        )
        .await;
}

async fn worlds(floor: &mut Floor) {
    // The smallest component there is: it imports and exports nothing.
    floor.check(b"\0asm\x0d\0\x01\0", "plugin `describes`: it does not export `switchbay:plugin/feature`, which serves operations; this host serves its versions 0.1.0 and 0.2.0").await;
    let guest = || describing(&good("describes").to_string());
    floor.check(&renamed(built("describes"), "describe", "descrybe"), "plugin `describes`: its exports do not fit `switchbay:plugin@0.2.0`: instance export `switchbay:plugin/feature@0.2.0` does not have export `describe`").await;
    floor.check(&renamed(guest(), "wasi:clocks/wall-clock@", "wasi:clocks/hall-clock@"), "plugin `describes`: it does not fit the world `switchbay:worlds/guest`: component imports instance `wasi:clocks/hall-clock@0.2.6`, but a matching implementation was not found in the linker: instance export `now` has the wrong type: function implementation is missing").await;
    let logging = "wasi:logging/logging@0.1.0-draft";
    floor
        .check(
            &renamed(built("ungranted"), logging, "wasi:logging/logging@0.2.0-draft"),
            "plugin `describes`: it imports `wasi:logging/logging@0.2.0-draft`, which this host does not have",
        )
        .await;
    floor
        .check(
            &built("ungranted"),
            "plugin `describes`: its description has the name `ungranted`, not that of its manifest entry",
        )
        .await;
    install(floor.folder.path(), "describes", &guest());
    install(floor.folder.path(), "ungranted", &built("ungranted"));
    floor.refused("plugin `ungranted`: it imports `wasi:logging/logging@0.1.0-draft` but does not list `logging` in \
        its `wants`").await;
    install(
        floor.folder.path(),
        "ungranted",
        &describing(&good("ungranted").to_string()),
    );
}

async fn reads(floor: &mut Floor) {
    floor.check(&describing("trap"), "plugin `describes`: reading its description failed: the plugin trapped: wasm trap: wasm `unreachable` instruction executed: thread '<unnamed>' (1) panicked at tests/programs/describes/src/lib.rs:24:23:\\nthe guest does not describe itself\\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace").await;
    floor
        .check(
            &describing("exit"),
            "plugin `describes`: reading its description failed: the plugin exited with code 1 instead of answering",
        )
        .await;
    floor
        .check(
            &describing("loop"),
            "plugin `describes`: reading its description failed: the call used up its processor budget of 200ms",
        )
        .await;
    floor.check(&describing("eat memory"), "plugin `describes`: reading its description failed: the plugin used up \
        its memory of 16777216 bytes: memory allocation of 1048576 bytes failed\\nnote: run with `RUST_BACKTRACE=1` \
        environment variable to display a backtrace").await;
    floor
        .check(
            &describing("unstable"),
            "plugin `describes`: its description differs between two reads",
        )
        .await;
    floor
        .check(
            &describing("I am a plugin"),
            "plugin `describes`: its description is not JSON of the expected form: expected value at line 1 column 1",
        )
        .await;
    floor
        .check(
            &describing("{}"),
            "plugin `describes`: its description is not JSON of the expected form: missing \
        field `schema` at line 1 column 2",
        )
        .await;
    floor
        .check_with(
            &[("/schema", json!(3))],
            "its description has schema 3; this host reads 1 and 2",
        )
        .await;
    floor
        .check_with(
            &[("/name", json!("other"))],
            "its description has the name `other`, not that of its manifest entry",
        )
        .await;
    floor.check_with(&[("/colour", json!("red"))], "its description is not JSON of the expected form: unknown field \
        `colour`, expected one of `schema`, `name`, `version`, `summary`, `wants`, `operations` at line 1 column 737").await;
    floor
        .check_with(
            &[("/operations", json!([]))],
            "its description must have 1 to 64 operations, not 0",
        )
        .await;
}

async fn wants(floor: &mut Floor) {
    let want = |atom: &str, why: &str| json!({ "atom": atom, "why": why });
    let known = "blobs, browser, cache, config, dns, features, http, ip-database, jobs, line-query, logging, media, state";
    let cannot = "its description has an invalid want:";
    let fetch = format!("{cannot} `fetch:*` is not a grant that this host knows; it knows {known}");
    floor
        .check_with(&[("/wants", json!([want("fetch:*", "to try")]))], &fetch)
        .await;
    let any = format!(
        "{cannot} `http:GET https://*/` has a wildcard in `*`; it may only stand for the whole first label, with at \
         least two labels after it"
    );
    floor
        .check_with(
            &[("/wants", json!([want("http:GET https://*/", "to try")]))],
            &any,
        )
        .await;
    let twice = format!("{cannot} `config` repeats or contradicts `config`");
    floor
        .check_with(
            &[(
                "/wants",
                json!([want("config", "to try"), want("config", "again")]),
            )],
            &twice,
        )
        .await;
    let why = "its description must say in 1 to 200 bytes why it wants `config`, not 0";
    floor
        .check_with(&[("/wants", json!([want("config", "")]))], why)
        .await;
}

async fn terms(floor: &mut Floor) {
    for (member, value, rule) in [
        ("cost", 1_000_001, "it must be from 0 to 1000000"),
        ("window_per_minute", 0, "it must be from 1 to 1000000"),
        (
            "first_party_per_minute",
            1_000_001,
            "it must be from 1 to 1000000",
        ),
    ] {
        let message = format!("operation `first` has `{member}` {value}; {rule}");
        floor
            .check_with(
                &[(&format!("/operations/0/{member}"), json!(value))],
                &message,
            )
            .await;
    }
    for (member, value, known) in [
        (
            "settle",
            json!("job"),
            "unknown variant `job`, expected `reply` at line 1 column 741",
        ),
        (
            "idempotency",
            json!("header"),
            "unknown variant `header`, expected `key` or `request-id` at line 1 column 749",
        ),
        (
            "consumes",
            json!(["air"]),
            "unknown variant `air`, expected one of `window`, `month`, `credits` at line 1 column 744",
        ),
    ] {
        let message = format!("its description is not JSON of the expected form: {known}");
        floor
            .check_with(&[(&format!("/operations/0/{member}"), value)], &message)
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_component_is_refused_by_its_own_message_and_the_running_revision_serves_on() {
    let mut floor = Floor::open().await;
    floor.serves("/api/v1/test/describes").await;
    files(&mut floor).await;
    worlds(&mut floor).await;
    reads(&mut floor).await;
    wants(&mut floor).await;
    terms(&mut floor).await;

    let mut description = good("describes");
    description["operations"] = json!([
        operation("first", "describes"),
        operation("second", "second")
    ]);
    install(
        floor.folder.path(),
        "describes",
        &describing(&description.to_string()),
    );
    floor.dev.line_with("Reloaded describes").await;
    floor.serves("/api/v1/test/describes").await;
    floor.serves("/api/v1/test/second").await;
}
