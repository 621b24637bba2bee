//! A running `switchbay serve` on ports of its own, with components that `switchbay build` made.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, mpsc};
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Answer, ensure, in_time, lend_compiled, operator};

/// The manifests whose plugins the tests call.
const MANIFESTS: [&str; 14] = [
    "plugin-manifest.toml",
    "swapped.toml",
    "metered.toml",
    "shares.toml",
    "fetches.toml",
    "fetches-twice.toml",
    "keeps.toml",
    "resolves.toml",
    "asks.toml",
    "works.toml",
    "web-data.toml",
    "siege.toml",
    "ip_info.toml",
    "../../plugin-manifest.toml",
];

/// How long a server may take to start; generous, because it is no measurement.
const START: Duration = Duration::from_secs(120);

/// A secret that the manifest of the fetching guest binds.
pub(crate) const LAB_TOKEN: &str = "lab/token&0123456789";

/// How long a log line may take to arrive.
const LINE: Duration = Duration::from_secs(20);

/// How long an answer may take; as generous.
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

/// The lines that a server wrote, and a bell for each new one.
#[derive(Default)]
struct Log {
    lines: Mutex<Vec<String>>,
    written: Condvar,
    /// Whether the server has ended and all its lines are there. Written under the lock of `lines`.
    ended: AtomicBool,
}

/// The built binary.
pub(crate) fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_switchbay")
}

/// The project's root.
pub(crate) fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the host stands in the workspace")
}

/// Builds all components once, by the command that users have. One call for all manifests, because cargo builds a crate
/// anew where another selection of packages gives its dependencies other features, and other bytes are another component.
pub(crate) fn build() {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        let sources: BTreeSet<PathBuf> = MANIFESTS.into_iter().flat_map(crates).collect();
        let entry =
            |(number, source): (usize, PathBuf)| format!("[[plugin]]\nname = \"p{number}\"\nsource = {source:?}\n");
        let folder = TempDir::new().expect("a temporary folder");
        let manifest = folder.path().join("plugin-manifest.toml");
        let text: String = sources.into_iter().enumerate().map(entry).collect();
        std::fs::write(&manifest, text).expect("the manifest is written");
        let done =
            Command::new(binary()).args(["build", "--manifest"]).arg(&manifest).output().expect("the binary runs");
        assert!(done.status.success(), "switchbay build failed: {}", String::from_utf8_lossy(&done.stderr));
    });
}

/// The crate folders that a manifest names.
fn crates(manifest: &str) -> Vec<PathBuf> {
    let manifest = workspace().join("tests/programs").join(manifest);
    let text = std::fs::read_to_string(&manifest).expect("the manifest is read");
    let table: toml::Table = text.parse().expect("the manifest is TOML");
    let plugins = table["plugin"].as_array().expect("plugins").iter();
    let source = |plugin: &toml::Value| plugin["source"].as_str().expect("a source").to_owned();
    let folder = manifest.parent().expect("a folder");
    plugins.map(source).map(|source| std::fs::canonicalize(folder.join(source)).expect("a crate folder")).collect()
}

impl Service {
    /// The service that all subjects share which need no settings of their own. Its key has all scopes and no limit.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Service> = OnceLock::new();
        SHARED.get_or_init(|| std::thread::spawn(|| Self::launch(Options::default(), None)).join().expect("it starts"))
    }

    /// A service of its own.
    pub(crate) async fn start(options: Options) -> Self {
        tokio::task::spawn_blocking(|| {
            // A data folder with compiled code of its own keeps that.
            if options.data.as_ref().is_some_and(|data| data.path().join("compiled").exists()) {
                return Self::launch(options, None);
            }
            let shared = Self::shared().data.path().join("compiled");
            let Some(manifest) = options.manifest.clone().filter(|manifest| manifest.starts_with(workspace())) else {
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
        let kept = Arc::clone(COMPILED.lock().expect("nothing panics").entry(manifest).or_default());
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
        Self::start(Options { config: format!("[limits]\n{limits}"), ..Options::default() }).await
    }

    fn launch(mut options: Options, compiled: Option<&Path>) -> Self {
        build();
        let data = options.data.take().unwrap_or_else(|| Arc::new(TempDir::new().expect("a temporary folder")));
        if let Some(compiled) = compiled {
            lend_compiled(compiled, data.path());
        }
        let config = data.path().join("config.toml");
        std::fs::write(&config, &options.config).expect("the configuration is written");
        let manifest =
            options.manifest.clone().unwrap_or_else(|| workspace().join("tests/programs/plugin-manifest.toml"));
        // The shell ends the server when this process ends, however that happens: its end closes the shell's input.
        // The server's standard output goes the way of its log, and the log ends with the server.
        // A file that may grow no more is an error there, and no signal.
        let script =
            r#"trap '' XFSZ; "$@" <&- 1>&2 & server=$!; (cat; kill -KILL $server) <&3 >/dev/null 2>&1 & wait $server"#;
        let mut child = Command::new("sh")
            .env("LAB_TOKEN", LAB_TOKEN)
            .args(["-c", &format!("exec 3<&0; {script}"), "sh", binary(), "serve"])
            .args(["--listen", "127.0.0.1:0", "--operator-listen", "127.0.0.1:0", "--log-format"])
            .args([options.log_format.unwrap_or("json"), "--data"])
            .arg(data.path())
            .arg("--config")
            .arg(&config)
            .arg("--manifest")
            .arg(&manifest)
            .args(&options.arguments)
            .envs(options.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("sh runs");
        let log = Arc::new(Log::default());
        let serving = watch(&mut child, Arc::clone(&log));
        let told = |name: &str| serving[name].as_str().unwrap_or_else(|| panic!("no {name} in {serving}")).to_owned();
        let (base_url, at) = (told("base_url"), format!("http://{}", told("listen")));
        // No connection outlives its request: each test has a runtime of its own, whose end would take a shared one along.
        let client = Client::builder().timeout(ANSWER).pool_max_idle_per_host(0).build().expect("a client");
        let key = issue(data.path(), &["--all-scopes"]);
        Self { base_url, at, data, client, key, child, log }
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
        let request = self.request(Method::POST, path).header("content-type", "application/json").body(body);
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
        let answer = self.mcp(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })).await;
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.bytes));
        answer.json()["result"].clone()
    }

    /// The operator's token.
    pub(crate) fn operator_token(&self) -> String {
        let path = self.data.path().join("operator-token");
        std::fs::read_to_string(path).expect("the token's file").trim().to_owned()
    }

    /// The operator listener's URL.
    pub(crate) fn operator_url(&self) -> String {
        let path = self.data.path().join("operator-address");
        format!("http://{}", std::fs::read_to_string(path).expect("the address's file").trim())
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

    /// The lines that the server wrote, once they fulfil a condition; lines arrive a little after the answers that they are
    /// about.
    pub(crate) fn log_until(&self, fulfilled: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let parse =
            |lines: &[String]| lines.iter().map(|line| serde_json::from_str(line).unwrap_or_default()).collect();
        let mut lines = self.log.lines.lock().expect("no writer panicked");
        loop {
            let parsed: Vec<Value> = parse(&lines);
            if fulfilled(&parsed) {
                return parsed;
            }
            let (more, waited) = self.log.written.wait_timeout(lines, LINE).expect("no writer panicked");
            assert!(!waited.timed_out(), "the lines did not come; there are {more:?}");
            lines = more;
        }
    }

    /// Asks the server to stop, and gives back everything that it has written, to its end.
    pub(crate) fn stop(&self) -> Vec<String> {
        self.end("-TERM")
    }

    /// Ends the server at once, and waits for that.
    pub(crate) fn kill(&self) {
        self.end("-KILL");
    }

    fn end(&self, signal: &str) -> Vec<String> {
        let sent = Command::new("kill").args([signal, &self.pid().to_string()]).status();
        assert!(sent.expect("kill runs").success());
        let mut lines = self.log.lines.lock().expect("no writer panicked");
        while !self.log.ended.load(Ordering::Acquire) {
            let (more, waited) = self.log.written.wait_timeout(lines, START).expect("no writer panicked");
            assert!(!waited.timed_out(), "the server does not end; there are {more:?}");
            lines = more;
        }
        lines.clone()
    }

    /// Lets no file of the server grow or change any more, as on a disk that is full, until the server ends.
    pub(crate) fn fill_disk(&self) {
        ensure(&[("prlimit", "util-linux")]);
        let limit = ["--pid", &self.pid().to_string(), "--fsize=1:"];
        assert!(Command::new("prlimit").args(limit).status().expect("prlimit runs").success());
    }

    /// What the server holds in memory, in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("the server runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
    }

    /// The processor time that the server has used.
    pub(crate) fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).expect("the server runs");
        let (_, fields) = stat.rsplit_once(") ").expect("a name in brackets");
        // utime and stime, in hundredths of a second.
        let ticks = |place: usize| fields.split(' ').nth(place).and_then(|field| field.parse::<u64>().ok());
        Duration::from_millis(10 * (ticks(11).expect("a number") + ticks(12).expect("a number")))
    }

    /// The server's own process id (the shell's child).
    pub(crate) fn pid(&self) -> u32 {
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        let text = std::fs::read_to_string(children).expect("the shell runs");
        text.split_whitespace().next().and_then(|pid| pid.parse().ok()).expect("the server runs")
    }
}

impl Service {
    /// Waits for the server to end by itself, and gives back its exit code.
    pub(crate) async fn exit_code(mut self) -> Option<i32> {
        // Waiting closes the child's input, and that would kill the server.
        let input = self.child.stdin.take();
        let ended = tokio::task::spawn_blocking(move || self.child.wait().expect("the shell ends").code());
        let code = in_time("the server ends", ended).await.expect("no panic");
        drop(input);
        code
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // The closed input makes the shell kill the server.
        drop(self.child.stdin.take());
        self.child.wait().expect("the shell ends");
    }
}

/// Copies a folder into another.
fn copy(folder: &Path, into: &Path) {
    let copied = Command::new("cp").arg("-r").arg(folder).arg(into).status().expect("cp runs");
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
    assert!(done.status.success(), "key issue failed: {}", String::from_utf8_lossy(&done.stderr));
    let issued: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    issued["key"].as_str().expect("a key").to_owned()
}

/// Reads the server's lines for as long as it runs, and gives back the one that says that it serves.
fn watch(child: &mut Child, log: Arc<Log>) -> Value {
    let lines = BufReader::new(child.stderr.take().expect("stderr is piped")).lines();
    let (sender, receiver) = mpsc::channel();
    let kept = Arc::clone(&log);
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let parsed = serde_json::from_str(&line).unwrap_or_else(|_| serving_text(&line));
            kept.lines.lock().expect("no reader panicked").push(line);
            kept.written.notify_all();
            if parsed["message"] == "serving" {
                // The service may be gone by the second time.
                sender.send(parsed).ok();
            }
        }
        let lines = kept.lines.lock().expect("no reader panicked");
        kept.ended.store(true, Ordering::Release);
        drop(lines);
        kept.written.notify_all();
    });
    receiver.recv_timeout(START).unwrap_or_else(|_| panic!("the server did not start: {:?}", log.lines.lock()))
}

/// The same of the line in text form: `… serving base_url="…" listen=…`.
fn serving_text(line: &str) -> Value {
    let field =
        |name: &str| line.split(' ').find_map(|word| word.strip_prefix(name)).map(|value| value.trim_matches('"'));
    match (field("base_url="), field("listen=")) {
        (Some(base_url), Some(listen)) => json!({ "message": "serving", "base_url": base_url, "listen": listen }),
        _ => Value::Null,
    }
}
