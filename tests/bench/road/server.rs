//! The server under load: this program, started again as a process of its own, so that its processor time can be told.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

use clap::Parser;
use futures::executor::block_on;
use serde_json::{Value, json};
use switchbay::{Config, Flags, Listeners, OpenStore, Service};
use switchbay_sdk::{Call, Caller, CallerKind, Plugin};
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::databases;
use crate::load::Key;

/// The operations that do nothing, and their price.
const NOTHING: [(&str, u32); 2] = [("nothing", 0), ("paid", 1)];

static NATIVE: LazyLock<Plugin> = LazyLock::new(bank_qr::plugin);

/// A running server; it ends when this is dropped.
pub(crate) struct Server {
    pub(crate) address: String,
    /// Unlimited, limited, self-service.
    keys: [String; 3],
    child: Child,
    _data: TempDir,
}

impl Server {
    /// Starts one whose plugins have this instance mode. `program` is this one, or the like of another build.
    pub(crate) fn start(mode: &str, program: &Path) -> Self {
        let data = TempDir::new().expect("a temporary folder");
        let manifest = data.path().join("plugin-manifest.toml");
        let config = data.path().join("switchbay.toml");
        std::fs::write(
            &manifest,
            entry("bank-qr", mode, &[]) + &entry("ip-info", mode, &databases::GRANTS),
        )
        .expect("the manifest is written");
        // The load is one caller's, who may use all of the processor here.
        let settings = databases::write(data.path()) + "[shares]\ncpu_seconds = 1000000\n";
        std::fs::write(&config, settings).expect("the configuration is written");
        switchbay(&["build", "--manifest"], &manifest);
        let keys = issue(data.path());
        let mut child = Command::new(program)
            .args([
                "--server",
                "--listen",
                "127.0.0.1:0",
                "--operator-listen",
                "127.0.0.1:0",
                "--manifest",
            ])
            .arg(&manifest)
            .arg("--config")
            .arg(&config)
            .arg("--data")
            .arg(data.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut address = String::new();
        let stdout = child.stdout.take().expect("stdout is piped");
        BufReader::new(stdout)
            .read_line(&mut address)
            .expect("the server tells its address");
        Self {
            address: address.trim().to_owned(),
            keys,
            child,
            _data: data,
        }
    }

    pub(crate) fn key(&self, key: Key) -> &str {
        match key {
            Key::Unlimited => &self.keys[0],
            Key::Limited => &self.keys[1],
            Key::SelfService => &self.keys[2],
        }
    }

    /// Processor time that the server has used, in microseconds.
    pub(crate) fn cpu_us(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/schedstat", self.child.id()));
        let own = stat.ok().and_then(|text| {
            text.split_whitespace()
                .next()
                .and_then(|ns| ns.parse::<f64>().ok())
        });
        let tasks =
            std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("the server runs");
        let total: f64 = tasks
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok())
            .filter_map(|text| text.split_whitespace().next()?.parse::<f64>().ok())
            .sum();
        total.max(own.unwrap_or_default()) / 1000.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.kill().expect("it runs until now");
        self.child.wait().expect("it ends");
    }
}

/// A key of each kind, with limits that no load reaches.
fn issue(data: &Path) -> [String; 3] {
    let printed = |words: &[&str], name: &str| {
        let arguments = [words, &["--label", "bench", "--json", "--data"]].concat();
        let printed: Value = serde_json::from_slice(&switchbay(&arguments, data)).expect("JSON");
        printed[name].as_str().expect("it is printed").to_owned()
    };
    let much = "1000000000";
    let limits = [
        "--per-second",
        much,
        "--concurrency",
        much,
        "--plan",
        "bench",
        "--credits",
        much,
    ];
    let account = printed(&[&["account", "open"][..], &limits].concat(), "id");
    let issue = |words: &[&str]| {
        printed(
            &[&["key", "issue", "--all-scopes"][..], words].concat(),
            "key",
        )
    };
    [
        issue(&[]),
        issue(&["--per-minute", much, "--per-month", much]),
        issue(&["--account", &account, "--per-second", much]),
    ]
}

/// A plugin of this workspace in the manifest.
fn entry(name: &str, mode: &str, grants: &[&str]) -> String {
    let source = workspace().join("plugins").join(name).display().to_string();
    format!(
        "[[plugin]]\nname = {name:?}\nsource = {source:?}\ninstances = {mode:?}\ngrants = {grants:?}\n"
    )
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the host stands in the workspace")
        .to_owned()
}

fn switchbay(arguments: &[&str], last: &Path) -> Vec<u8> {
    let done = Command::new(env!("CARGO_BIN_EXE_switchbay"))
        .args(arguments)
        .arg(last)
        .output()
        .expect("it runs");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    done.stdout
}

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,
}

/// Serves until its standard input ends.
pub(crate) fn run(arguments: &[String]) {
    let Arguments { flags } =
        Arguments::parse_from(std::iter::once(&String::new()).chain(arguments));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let config = Config::read(&flags).expect("settings");
        let api = TcpListener::bind(config.listen).await.expect("a port");
        let operator = TcpListener::bind(config.operator_listen)
            .await
            .expect("a port");
        let address = api.local_addr().expect("an address").to_string();
        let store = OpenStore::open(&config.data).await.expect("a store");
        let program = Path::new(env!("CARGO_BIN_EXE_switchbay"));
        let app = Service::open(config, store, &format!("http://{address}"), program)
            .await
            .expect("plugins");
        switchbay::native::insert(&app, "native", &native_description(), answer)
            .await
            .expect("a native plugin");
        println!("{address}");
        std::io::stdout().flush().expect("the bench reads");
        let ended = async {
            let input = tokio::task::spawn_blocking(|| std::io::stdin().lines().count());
            input.await.expect("stdin ends");
        };
        app.serve(Listeners { api, operator }, ended).await;
    });
}

/// The plugin's own description under other routes and tool names, with one operation that does nothing.
fn native_description() -> String {
    let mut description: Value =
        serde_json::from_str(&switchbay_sdk::describe(&NATIVE)).expect("JSON");
    description["name"] = json!("native");
    let operations = description["operations"]
        .as_array_mut()
        .expect("operations");
    for operation in operations.iter_mut() {
        let path = operation["rest"]["path"]
            .as_str()
            .expect("a path")
            .replace("/api/v1/", "/api/v1/native/");
        operation["rest"]["path"] = json!(path);
        operation["tool"]["name"] = json!(format!(
            "native_{}",
            operation["tool"]["name"].as_str().expect("a name")
        ));
    }
    for (id, cost) in NOTHING {
        operations.push(json!({
            "id": id,
            "title": "Nothing",
            "description": "Does nothing, so that the road alone is measured.",
            "input": { "type": "object", "properties": {}, "additionalProperties": false },
            "output": { "type": "object" },
            "rest": {
                "method": "GET",
                "path": format!("/api/v1/native/{id}"),
                "access": { "scope": "native:nothing" },
                "outcomes": { "ok": 200 },
            },
            "cost": cost,
        }));
    }
    description.to_string()
}

fn answer(operation: &str, input: &str) -> String {
    if NOTHING.iter().any(|(id, _)| *id == operation) {
        return "{}".to_owned();
    }
    let caller = Caller {
        owner: String::new(),
        kind: CallerKind::ApiKey,
        subject: None,
    };
    let (request_id, operation) = (String::new(), operation.to_owned());
    let call = Call {
        request_id,
        operation,
        caller,
        deadline_ms: 1000,
        job: None,
    };
    let answered = block_on(switchbay_sdk::invoke(&NATIVE, call, input.to_owned()));
    answered.expect("the bench sends good input").data
}
