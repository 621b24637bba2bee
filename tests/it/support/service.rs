//! A running `switchbay serve` on ports of its own, with components that `switchbay build` made.

mod components;
mod process;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Answer, lend_compiled, operator};
pub(crate) use components::build;
use process::{Log, watch};

/// A secret that the manifest of the fetching guest binds.
pub(crate) const LAB_TOKEN: &str = "lab/token&0123456789";

/// How long an answer may take; generous, because it is no measurement.
const ANSWER: Duration = Duration::from_secs(60);

/// What differs from one service to another.
#[derive(Default)]
pub(crate) struct Options {
    /// Text of the configuration file.
    pub(crate) config: String,
    /// The plugin manifest; the default is the tests' own, with bank-qr and the misbehaving guests.
    pub(crate) manifest: Option<PathBuf>,
    /// The form of the log; the default is `json`, and [`Service::log_until`] reads no other.
    pub(crate) log_format: Option<&'static str>,
    /// More arguments of `switchbay serve`.
    pub(crate) arguments: Vec<String>,
    /// More variables of its environment.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// The data folder; the default is a new one.
    pub(crate) data: Option<Arc<TempDir>>,
}

/// A server process; it ends when this is dropped or when the test process dies.
pub(crate) struct Service {
    pub(crate) base_url: String,
    /// The URL of the bound address, which a base URL of its own does not tell.
    at: String,
    pub(crate) data: Arc<TempDir>,
    client: Client,
    key: String,
    child: Child,
    log: Arc<Log>,
}

/// The built binary.
pub(crate) fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_switchbay")
}

/// The project's root.
pub(crate) fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the host stands in the workspace")
}

impl Service {
    /// The service that all subjects share which need no settings of their own. Its key has all scopes and no limit.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Service> = OnceLock::new();
        SHARED.get_or_init(|| {
            std::thread::spawn(|| Self::launch(Options::default(), None))
                .join()
                .expect("it starts")
        })
    }

    /// A service of its own.
    pub(crate) async fn start(options: Options) -> Self {
        tokio::task::spawn_blocking(|| {
            // A data folder with compiled code of its own keeps that.
            if options
                .data
                .as_ref()
                .is_some_and(|data| data.path().join("compiled").exists())
            {
                return Self::launch(options, None);
            }
            let shared = Self::shared().data.path().join("compiled");
            let Some(manifest) = options
                .manifest
                .clone()
                .filter(|manifest| manifest.starts_with(workspace()))
            else {
                return Self::launch(options, Some(&shared));
            };
            Self::launch_compiled(options, manifest, &shared)
        })
        .await
        .expect("it starts")
    }

    /// A service of one of the project's manifests, with the code that the first one of it compiled: others wait for that.
    fn launch_compiled(options: Options, manifest: PathBuf, shared: &Path) -> Self {
        type Kept = Arc<Mutex<Option<TempDir>>>;
        static COMPILED: Mutex<BTreeMap<PathBuf, Kept>> = Mutex::new(BTreeMap::new());
        let kept = Arc::clone(
            COMPILED
                .lock()
                .expect("nothing panics")
                .entry(manifest)
                .or_default(),
        );
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.as_ref() {
            let compiled = known.path().join("compiled");
            drop(kept);
            return Self::launch(options, Some(&compiled));
        }
        let service = Self::launch(options, Some(shared));
        let folder = TempDir::new().expect("a temporary folder");
        copy(&service.data.path().join("compiled"), folder.path());
        *kept = Some(folder);
        service
    }

    /// A service of its own, with these lines under `[limits]`.
    pub(crate) async fn with_limits(limits: &str) -> Self {
        Self::start(Options {
            config: format!("[limits]\n{limits}"),
            ..Options::default()
        })
        .await
    }

    fn launch(mut options: Options, compiled: Option<&Path>) -> Self {
        build();
        let data = options
            .data
            .take()
            .unwrap_or_else(|| Arc::new(TempDir::new().expect("a temporary folder")));
        if let Some(compiled) = compiled {
            lend_compiled(compiled, data.path());
        }
        let config = data.path().join("config.toml");
        std::fs::write(&config, &options.config).expect("the configuration is written");
        let manifest = options
            .manifest
            .clone()
            .unwrap_or_else(|| workspace().join("tests/programs/plugin-manifest.toml"));
        let mut child = spawn(&options, data.path(), &config, &manifest);
        let log = Arc::new(Log::default());
        let serving = watch(&mut child, Arc::clone(&log));
        let told = |name: &str| {
            serving[name]
                .as_str()
                .unwrap_or_else(|| panic!("no {name} in {serving}"))
                .to_owned()
        };
        let (base_url, at) = (told("base_url"), format!("http://{}", told("listen")));
        // No connection outlives its request: each test has a runtime of its own, whose end would take a shared one along.
        let client = Client::builder()
            .timeout(ANSWER)
            .pool_max_idle_per_host(0)
            .build()
            .expect("a client");
        let key = issue(data.path(), &["--all-scopes"]);
        Self {
            base_url,
            at,
            data,
            client,
            key,
            child,
            log,
        }
    }

    /// A key with all scopes and no limit.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// A new key, from `switchbay key issue` with these arguments (`--scope S`, `--per-minute N`, …).
    pub(crate) fn issue(&self, arguments: &[&str]) -> String {
        issue(self.data.path(), arguments)
    }

    /// A request to a path of the public listener, without a credential.
    pub(crate) fn bare(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.at))
    }

    /// A request with the service's key.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.bare(method, path).bearer_auth(&self.key)
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        Self::send(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        Self::send(self.request(Method::POST, path).json(body)).await
    }

    /// A POST with a body as it stands.
    pub(crate) async fn post_raw(&self, path: &str, body: impl Into<reqwest::Body>) -> Answer {
        let request = self
            .request(Method::POST, path)
            .header("content-type", "application/json")
            .body(body);
        Self::send(request).await
    }

    pub(crate) async fn send(request: RequestBuilder) -> Answer {
        Answer::read(request.send().await.expect("the server answers")).await
    }

    /// A message to `/mcp` of 2025-11-25 with the service's key.
    pub(crate) async fn mcp(&self, message: &Value) -> Answer {
        let request = self
            .request(Method::POST, "/mcp")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-11-25")
            .json(message);
        Self::send(request).await
    }

    /// Calls a tool and gives back the `result` of a 200.
    pub(crate) async fn tool(&self, name: &str, arguments: &Value) -> Value {
        let params = json!({ "name": name, "arguments": arguments });
        let answer = self
            .mcp(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }))
            .await;
        assert_eq!(
            answer.status,
            200,
            "{}",
            String::from_utf8_lossy(&answer.bytes)
        );
        answer.json()["result"].clone()
    }

    /// The operator's token.
    pub(crate) fn operator_token(&self) -> String {
        let path = self.data.path().join("operator-token");
        std::fs::read_to_string(path)
            .expect("the token's file")
            .trim()
            .to_owned()
    }

    /// The operator listener's URL.
    pub(crate) fn operator_url(&self) -> String {
        let path = self.data.path().join("operator-address");
        format!(
            "http://{}",
            std::fs::read_to_string(path)
                .expect("the address's file")
                .trim()
        )
    }

    /// A request to the operator's API with the operator's token.
    pub(crate) async fn admin(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        operator(self, method, path, body.unwrap_or(&Value::Null)).await
    }

    /// The `data` of a 200 of the operator's API.
    pub(crate) async fn told(&self, path: &str) -> Value {
        let answer = self.admin(Method::GET, path, None).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()["data"].clone()
    }

    /// Sends a component to the operator's API.
    pub(crate) async fn upload(&self, plugin: &str, component: Vec<u8>, query: &str) -> Answer {
        let url = self.operator_url();
        let url = format!("{url}/admin/v1/plugins/{plugin}/revisions{query}");
        let request = reqwest::Client::new()
            .post(url)
            .bearer_auth(self.operator_token())
            .header("content-type", "application/wasm");
        Self::send(request.body(component)).await
    }

    /// Waits until a revision is prepared, and tells how it stands.
    pub(crate) async fn prepared(&self, plugin: &str, number: u64) -> Value {
        let path = format!("/admin/v1/plugins/{plugin}/revisions/{number}");
        loop {
            let told = self.told(&path).await;
            if told["underWay"] == false {
                return told;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Stages a component through the operator's API, and waits until it is prepared.
    pub(crate) async fn stage(&self, plugin: &str, component: Vec<u8>, query: &str) -> Value {
        let answer = self.upload(plugin, component, query).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        let number = answer.json()["data"]["revision"]
            .as_u64()
            .expect("a number");
        self.prepared(plugin, number).await
    }
}

/// Begins to serve; the process ends with this one.
fn spawn(options: &Options, data: &Path, config: &Path, manifest: &Path) -> Child {
    // The shell ends the server when this process ends, however that happens: its end closes the shell's input.
    // The server's standard output goes the way of its log, and the log ends with the server.
    // A file that may grow no more is an error there, and no signal.
    let script = r#"trap '' XFSZ; "$@" <&- 1>&2 & server=$!; (cat; kill -KILL $server) <&3 >/dev/null 2>&1 & wait $server"#;
    Command::new("sh")
        .env("LAB_TOKEN", LAB_TOKEN)
        .args([
            "-c",
            &format!("exec 3<&0; {script}"),
            "sh",
            binary(),
            "serve",
        ])
        .args([
            "--listen",
            "127.0.0.1:0",
            "--operator-listen",
            "127.0.0.1:0",
            "--log-format",
        ])
        .args([options.log_format.unwrap_or("json"), "--data"])
        .arg(data)
        .arg("--config")
        .arg(config)
        .arg("--manifest")
        .arg(manifest)
        .args(&options.arguments)
        .envs(
            options
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        )
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sh runs")
}

/// Copies a folder into another.
fn copy(folder: &Path, into: &Path) {
    let copied = Command::new("cp")
        .arg("-r")
        .arg(folder)
        .arg(into)
        .status()
        .expect("cp runs");
    assert!(copied.success());
}

/// A new key of the installation in this data folder, whether a server runs on it or not.
pub(crate) fn issue(data: &Path, arguments: &[&str]) -> String {
    let done = Command::new(binary())
        .args(["key", "issue", "--label", "test", "--json", "--data"])
        .arg(data)
        .args(arguments)
        .output()
        .expect("the binary runs");
    assert!(
        done.status.success(),
        "key issue failed: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    let issued: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    issued["key"].as_str().expect("a key").to_owned()
}
