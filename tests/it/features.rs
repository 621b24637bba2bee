//! One plugin calls another's operation: for whom, when not, and who pays. Seen through chains of one guest
//! (`tests/programs/calls`), each as a plugin of its own.

mod circles;
mod costs;
mod lives;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::metrics::{CALLS, scrape};
use crate::support::{Answer, Metered, Options, Service, build, built, failure, in_time};

/// A page that needs no credential.
const PAGE: &str = "https://www.example.com";

/// The guest as a plugin of this name, which welcomes these atoms.
fn calls(name: &str, mark: &str, welcomes: &[&str]) -> Vec<u8> {
    const PLACE: [u8; 4096] = [b'#'; 4096];
    let text = json!({ "name": name, "mark": mark, "welcomes": welcomes }).to_string();
    let mut component = built("calls");
    let at = component
        .windows(PLACE.len())
        .position(|window| window == PLACE)
        .expect("a place for the text");
    component[at..at + text.len()].copy_from_slice(text.as_bytes());
    component
}

/// A plugin with what it is granted.
type Granted<'g> = (&'g str, &'g [&'g str]);

/// A folder with components, a manifest, and the data of the server on it.
struct Folder {
    data: Arc<TempDir>,
    /// Of each plugin.
    places: usize,
}

impl Folder {
    fn new() -> Self {
        Self::with_places(16)
    }

    fn with_places(places: usize) -> Self {
        build();
        let data = Arc::new(TempDir::new().expect("a folder"));
        Self { data, places }
    }

    fn install(&self, name: &str, component: &[u8]) {
        let file = self.data.path().join(format!("{name}.wasm"));
        std::fs::write(file, component).expect("the component is written");
    }

    fn manifest(&self, plugins: &[Granted<'_>]) {
        let entry = |(name, grants): &Granted<'_>| {
            format!(
                "[[plugin]]\nname = \"{name}\"\nsource = \"{name}.wasm\"\ngrants = {grants:?}\n\
                 instances = \"warm\"\nlimits = {{ memory = \"16MiB\", cpu_ms = 200, concurrency = {} }}\n",
                self.places
            )
        };
        let text: String = plugins.iter().map(entry).collect();
        std::fs::write(self.data.path().join("plugin-manifest.toml"), text).expect("a manifest");
    }

    async fn serve(&self) -> Service {
        Service::start(Options {
            config: format!("[first_party]\norigins = [\"{PAGE}\"]\n"),
            manifest: Some(self.data.path().join("plugin-manifest.toml")),
            data: Some(Arc::clone(&self.data)),
            ..Options::default()
        })
        .await
    }

    async fn follow(&self, service: &Service) -> Value {
        let answer = service
            .admin(Method::POST, "/admin/v1/manifest/follow", None)
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["data"].clone()
    }
}

/// What the plugins of the chain welcome: the first calls the second, and so on.
const WELCOMED: [Granted<'static>; 4] = [
    (
        "first",
        &[
            "features:second.answer",
            "features:second.brief",
            "features:second.limited",
            "features:second.costly",
            "features:second.nothing",
            "features:ghost.answer",
        ],
    ),
    ("second", &["features:third.answer"]),
    ("third", &["features:fourth.answer"]),
    ("fourth", &["features:ghost.answer"]),
];

/// The chain, which subjects share; each has keys of its own.
async fn chain() -> &'static Metered {
    static SHARED: OnceLock<tokio::sync::OnceCell<Metered>> = OnceLock::new();
    let start = async || {
        let folder = Folder::new();
        let granted: Vec<(&str, Vec<&str>)> = WELCOMED
            .iter()
            .map(|(name, welcomed)| {
                folder.install(name, &calls(name, "old", welcomed));
                (*name, [*welcomed, &["jobs"]].concat())
            })
            .collect();
        let granted: Vec<Granted<'_>> = granted.iter().map(|(name, all)| (*name, &**all)).collect();
        folder.manifest(&granted);
        Metered {
            service: folder.serve().await,
        }
    };
    SHARED
        .get_or_init(tokio::sync::OnceCell::new)
        .get_or_init(start)
        .await
}

async fn post(service: &Service, key: &str, path: &str, input: &Value) -> Answer {
    let request = service.bare(Method::POST, &format!("/api/v1/test/{path}"));
    Service::send(request.bearer_auth(key).json(input)).await
}

/// Calls an operation, and gives back the `data` of a 200.
async fn data(service: &Service, key: &str, path: &str, input: &Value) -> Value {
    let answer = post(service, key, path, input).await;
    assert_eq!(answer.status, 200, "{path} {input}: {answer:?}");
    answer.json()["data"].clone()
}

/// What the calls of `first` came to.
async fn said(service: &Service, key: &str, input: &Value) -> Vec<String> {
    let said = data(service, key, "first/answer", input).await["said"].clone();
    serde_json::from_value(said).expect("texts")
}

/// The input that has a plugin call an operation with an input.
fn calling(operation: &str, with: &Value) -> Value {
    json!({ "call": operation, "with": with.to_string() })
}

fn is_second(said: &str) -> bool {
    read(said)["name"] == "second"
}

fn read(said: &str) -> Value {
    serde_json::from_str(said).unwrap_or_else(|_| panic!("no answer: {said}"))
}

#[tokio::test]
async fn an_operation_is_called_for_the_caller_under_the_name_that_it_has_there() {
    let chain = chain().await;
    let (service, key) = (&chain.service, chain.key(json!({})).await);
    let direct = data(service, &key, "second/answer", &json!({})).await;
    let answer = data(
        service,
        &key,
        "first/answer",
        &calling("second.answer", &json!({})),
    )
    .await;
    let through = read(answer["said"][0].as_str().expect("a text"));
    assert_eq!(
        (&through["name"], &through["mark"]),
        (&json!("second"), &json!("old"))
    );
    assert_eq!(through["owner"], direct["owner"]);
    assert_ne!(through["owner"], answer["owner"]);
    assert_eq!(through["kind"], direct["kind"]);
    assert_eq!(through["request"], answer["request"]);
    let other = chain.key(json!({})).await;
    let others = said(service, &other, &calling("second.answer", &json!({}))).await;
    assert_ne!(read(&others[0])["owner"], direct["owner"]);
}

#[tokio::test]
async fn what_is_not_granted_not_there_or_not_as_declared_is_told_by_its_kind() {
    let chain = chain().await;
    let (service, key) = (&chain.service, chain.key(json!({})).await);
    let before = denials(service).await;
    for (call, with, expected) in [
        (
            "second.start",
            json!({}),
            "not granted: `features:second.start` is not granted",
        ),
        (
            "third.answer",
            json!({}),
            "not granted: `features:third.answer` is not granted",
        ),
        (
            "ghost.answer",
            json!({}),
            "absent: there is no operation `ghost.answer`",
        ),
        (
            "second.nothing",
            json!({}),
            "absent: there is no operation `second.nothing`",
        ),
        (
            "second.answer",
            json!({ "word": "private" }),
            "not acceptable: `word` must have at most 5 characters",
        ),
        (
            "second.answer",
            json!({ "wait_ms": "private" }),
            "not acceptable: `wait_ms` must be an integer",
        ),
        (
            "second.answer",
            json!({ "colour": 1 }),
            "not acceptable: `colour` is unknown; the known fields are how, word, wait_ms, call, with, times, rounds, \
             secret",
        ),
        (
            "second.answer",
            json!([1]),
            "not acceptable: the input must be a JSON object",
        ),
        (
            "second.brief",
            json!({ "with": "x".repeat(17_000) }),
            "not acceptable: the input has 17011 bytes; at most 16384 are allowed",
        ),
        (
            "second.answer",
            json!({ "how": "fail" }),
            "failed: TEAPOT `how` asks for coffee retry true {\"field\":\"how\"}",
        ),
        (
            "second.answer",
            json!({ "how": "trap" }),
            "failed: INTERNAL_ERROR The service failed to handle this call retry false ",
        ),
    ] {
        let input = calling(call, &with);
        assert_eq!(said(service, &key, &input).await, [expected], "{input}");
    }
    assert!(denials(service).await >= before + 2.0);
}

/// Denials of `first`.
async fn denials(service: &Service) -> f64 {
    let metrics = scrape(service.data.path()).await;
    let series = [("plugin", "first"), ("revision", "1")];
    metrics.value("switchbay_plugin_denials_total", &series)
}

#[tokio::test]
async fn the_third_plugin_of_a_chain_calls_nobody() {
    let chain = chain().await;
    let (service, key) = (&chain.service, chain.key(json!({})).await);
    let fourth = calling("fourth.answer", &json!({}));
    let input = calling("second.answer", &calling("third.answer", &fourth));
    let second = read(&said(service, &key, &input).await[0]);
    let third = read(second["said"][0].as_str().expect("a text"));
    assert_eq!(
        (&third["name"], &third["said"]),
        (&json!("third"), &json!(["too deep"]))
    );
    let direct = data(service, &key, "third/answer", &fourth).await;
    assert_eq!(
        read(direct["said"][0].as_str().expect("a text"))["name"],
        "fourth"
    );
}

#[tokio::test]
async fn a_call_ends_with_the_one_that_made_it() {
    let chain = chain().await;
    let (service, key) = (&chain.service, chain.key(json!({})).await);
    let brief = data(
        service,
        &key,
        "first/brief",
        &calling("second.answer", &json!({})),
    )
    .await;
    let left = read(brief["said"][0].as_str().expect("a text"))["deadline_ms"].clone();
    assert!(left.as_u64().is_some_and(|ms| ms <= 1000), "{left}");
    let own = said(service, &key, &calling("second.brief", &json!({}))).await;
    assert_eq!(read(&own[0])["deadline_ms"], 1000);

    // Whichever of the two ends first: none goes on.
    let began = Instant::now();
    let hangs = calling("second.answer", &json!({ "how": "hang" }));
    post(service, &key, "first/brief", &hangs).await;
    assert!(began.elapsed() < Duration::from_secs(20));
    in_time("the other call has ended too", async {
        while ended_early(service).await == 0.0 {}
    })
    .await;
}

/// Calls of `second` that ended with their time or with whoever made them.
async fn ended_early(service: &Service) -> f64 {
    let metrics = scrape(service.data.path()).await;
    let ended = metrics.counts(CALLS, &[("plugin", "second")], "outcome");
    let of = |outcome: &str| ended.get(outcome).copied().unwrap_or_default();
    of("deadline") + of("abandoned")
}

#[tokio::test]
async fn a_call_has_four_calls_under_way() {
    let chain = chain().await;
    let (service, key) = (&chain.service, chain.key(json!({})).await);
    let input = json!({ "call": "second.answer", "with": r#"{"wait_ms":1500}"#, "times": 6 });
    let told = said(service, &key, &input).await;
    let busy = told.iter().filter(|said| *said == "busy").count();
    assert_eq!((told.len(), busy), (6, 2), "{told:?}");
    // Their places are free again.
    let input = json!({ "call": "second.answer", "times": 4, "rounds": 2 });
    let told = said(service, &key, &input).await;
    assert!(told.iter().all(|said| is_second(said)), "{told:?}");
}

#[tokio::test]
async fn what_plugins_alone_send_is_unknown_on_both_faces_and_in_no_document() {
    let chain = chain().await;
    let (service, key) = (&chain.service, chain.key(json!({})).await);
    let secret = json!({ "secret": "open" });
    let through = said(service, &key, &calling("second.answer", &secret)).await;
    assert_eq!(read(&through[0])["secret"], "open");
    let long = said(
        service,
        &key,
        &calling("second.answer", &json!({ "secret": "x".repeat(21) })),
    )
    .await;
    assert_eq!(
        long,
        ["not acceptable: `secret` must have at most 20 characters"]
    );

    let refused = post(service, &key, "second/answer", &secret).await;
    assert_eq!(refused.refusal(), (400, "VALIDATION_ERROR".to_owned()));
    assert_eq!(refused.json()["data"]["field"], "secret");
    let (code, envelope) = failure(&service.tool("answer_second", &secret).await);
    assert_eq!(
        (&*code, &envelope["data"]["field"]),
        ("VALIDATION_ERROR", &json!("secret"))
    );
    let tools = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    for text in [
        service.get("/openapi.json").await,
        service.get("/developer-guide").await,
        service.mcp(&tools).await,
    ] {
        let text = String::from_utf8_lossy(&text.bytes).into_owned();
        assert!(!text.contains("Sent by plugins alone"), "{text}");
    }
}

#[tokio::test]
async fn a_job_calls_for_whoever_submitted_it() {
    let chain = chain().await;
    let (service, key) = (&chain.service, chain.key(json!({})).await);
    let direct = data(service, &key, "second/answer", &json!({})).await;
    let input = calling("second.answer", &json!({ "secret": "open" }));
    let started = data(service, &key, "first/start", &input).await;
    let worked = read(started["said"][0].as_str().expect("a text"));
    let through = read(worked["said"][0].as_str().expect("a text"));
    assert_eq!(
        (&through["name"], &through["owner"], &through["secret"]),
        (&json!("second"), &direct["owner"], &json!("open"))
    );
}

#[tokio::test]
async fn calls_by_plugins_are_counted_where_they_are_granted() {
    let chain = chain().await;
    let (service, key) = (&chain.service, chain.key(json!({})).await);
    let before = answered(service, "second").await.expect("a series");
    said(service, &key, &calling("second.answer", &json!({}))).await;
    let after = answered(service, "second").await.expect("a series");
    assert!(after > before, "{before} {after}");
    assert_eq!(answered(service, "first").await, None);
}

/// How often a plugin's `answer` was answered well to others, where that is counted.
async fn answered(service: &Service, plugin: &str) -> Option<f64> {
    let text = service.admin(Method::GET, "/metrics", None).await.bytes;
    let text = String::from_utf8(text).expect("text");
    let plugin = format!("plugin=\"{plugin}\"");
    let named = [
        &*plugin,
        "operation=\"answer\"",
        "face=\"feature\"",
        "code=\"ok\"",
    ];
    let line = text
        .lines()
        .find(|line| named.iter().all(|label| line.contains(label)))?;
    line.rsplit(' ').next()?.parse().ok()
}
