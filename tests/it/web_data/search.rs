//! Web search, before providers that answer as SearXNG, Brave and Tavily do.
//!
//! A test searches for words of its own, so that all tests of one provider share its service.

mod failures;
mod kept_back;
mod provider;
mod queries;
mod results;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::FIELDS;
use crate::lab::{Reply, Sites};
use crate::support::{
    Answer, LAB_TOKEN, Options, Post, Service, failure, in_one_minute, lend_compiled, outcome,
    workspace,
};
use provider::{SearchRequest, providers};

const SEARCH: &str = "/api/v1/web/search";
const TOOL: &str = "search_web";
/// What stands in the environment for Tavily.
const TAVILY_TOKEN: &str = "Bearer tvly-lab-0123456789";

/// One of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Searxng,
    Brave,
    Tavily,
}

const ALL: [Kind; 3] = [Kind::Searxng, Kind::Brave, Kind::Tavily];

impl Kind {
    /// The `search` table of an operator's entry, with more of it.
    fn settings(self, more: &str) -> String {
        let named = match self {
            Kind::Searxng => "provider = \"searxng\", base_url = \"https://searx.lab.test/searx\"",
            Kind::Brave => "provider = \"brave\"",
            Kind::Tavily => "provider = \"tavily\"",
        };
        format!("config = {{ search = {{ {named}{more} }} }}\n")
    }

    /// The provider's body for results, each with `url`, `title` and `text` where it has them.
    fn body(self, results: &[Value]) -> Value {
        let text = match self {
            Kind::Searxng | Kind::Tavily => "content",
            Kind::Brave => "description",
        };
        let result = |result: &Value| {
            let mut result = result.clone();
            let members = result.as_object_mut().expect("an object");
            if let Some(snippet) = members.remove("text") {
                members.insert(text.to_owned(), snippet);
            }
            let own = match self {
                Kind::Searxng => {
                    json!({ "engine": "lab", "engines": ["lab"], "positions": [1], "score": 1.0 })
                }
                Kind::Brave => {
                    json!({ "age": "2 days ago", "profile": { "name": "Lab" }, "family_friendly": true })
                }
                Kind::Tavily => json!({ "score": 0.9, "raw_content": null }),
            };
            members.extend(own.as_object().expect("an object").clone());
            result
        };
        let results: Vec<Value> = results.iter().map(result).collect();
        match self {
            Kind::Searxng => json!({
                "query": "q", "number_of_results": 0, "results": results, "answers": [], "corrections": [],
                "infoboxes": [], "suggestions": ["other"], "unresponsive_engines": [],
            }),
            Kind::Brave => json!({
                "type": "search", "query": { "original": "q", "more_results_available": true },
                "web": { "type": "search", "results": results, "family_friendly": true }, "mixed": {},
            }),
            Kind::Tavily => json!({
                "query": "q", "answer": null, "follow_up_questions": null, "images": [], "results": results,
                "response_time": 1.2, "request_id": "r",
            }),
        }
    }
}

/// The web-data entry of the product's manifest with more lines, and one more grant where there is one.
fn manifest(lines: &str, grant: &str) -> (TempDir, PathBuf) {
    let product =
        std::fs::read_to_string(workspace().join("plugin-manifest.toml")).expect("the manifest");
    let entry = product
        .split("[[plugin]]")
        .find(|entry| entry.contains("name = \"web-data\""))
        .expect("an entry");
    let component = workspace().join("target/components/wasm32-wasip2/plugin/web_data.wasm");
    let entry = entry
        .replace("\"plugins/web-data\"", &format!("{component:?}"))
        .replace("grants = [", &format!("grants = [{grant}"));
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("plugin-manifest.toml");
    std::fs::write(&path, format!("[[plugin]]{entry}\n{lines}\n")).expect("it is written");
    (folder, path)
}

/// The product's manifest, set up for a SearXNG that finds something, and what leads there.
pub(crate) fn product() -> (PathBuf, String) {
    static PRODUCT: OnceLock<(TempDir, Sites)> = OnceLock::new();
    let (folder, lab) = PRODUCT.get_or_init(|| {
        let text = std::fs::read_to_string(workspace().join("plugin-manifest.toml"))
            .expect("the manifest");
        let (own, grants) = (
            "name = \"web-data\"\n",
            "grants = [\"http:GET public\", \"jobs\",",
        );
        assert!(text.contains(own) && text.contains(grants), "{text}");
        let text = text
            .replace(own, &format!("{own}{}", Kind::Searxng.settings("")))
            .replace(
                grants,
                &format!("{grants} \"http:POST https://searx.lab.test/searx/search\","),
            )
            .replace(
                "source = \"",
                &format!("source = \"{}/", workspace().display()),
            );
        let folder = TempDir::new().expect("a folder");
        std::fs::write(folder.path().join("plugin-manifest.toml"), text).expect("it is written");
        let lab = providers();
        lab.answer(
            "/searx/search",
            Reply::json(200, &Kind::Searxng.body(&numbered(30))),
        );
        (folder, lab)
    });
    (
        folder.path().join("plugin-manifest.toml"),
        lab.configuration(),
    )
}

/// A data folder with the plugin's compiled code: one service alone compiles it.
fn data() -> Arc<TempDir> {
    static FIRST: OnceLock<Service> = OnceLock::new();
    let first = FIRST.get_or_init(|| {
        let manifest = Some(workspace().join("tests/programs/web-data.toml"));
        let start = || {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            runtime.block_on(Service::start(Options {
                manifest,
                ..Options::default()
            }))
        };
        std::thread::spawn(start).join().expect("it starts")
    });
    let data = TempDir::new().expect("a folder");
    lend_compiled(&first.data.path().join("compiled"), data.path());
    Arc::new(data)
}

/// A provider and a service that asks it.
struct House {
    kind: Kind,
    lab: Sites,
    service: Service,
    _folder: TempDir,
}

impl House {
    /// The service of the tests that need no settings of their own.
    fn of(kind: Kind) -> &'static Self {
        static HOUSES: [OnceLock<House>; 3] = [OnceLock::new(), OnceLock::new(), OnceLock::new()];
        HOUSES[kind as usize].get_or_init(|| {
            let start = move || {
                let runtime = tokio::runtime::Runtime::new().expect("a runtime");
                runtime.block_on(Self::start(kind, &kind.settings("")))
            };
            std::thread::spawn(start).join().expect("it starts")
        })
    }

    /// A service with this table of settings, the keys bound and granted what the provider needs.
    async fn start(kind: Kind, settings: &str) -> Self {
        let grants = "\"http:POST https://api.tavily.com/search\", \"http:POST https://searx.lab.test/searx/search\", ";
        Self::start_granted(kind, settings, grants).await
    }

    async fn start_granted(kind: Kind, settings: &str, grant: &str) -> Self {
        let data = tokio::task::spawn_blocking(data)
            .await
            .expect("it is compiled");
        let secrets = "secrets = [\
            { env = \"LAB_TOKEN\", header = \"x-subscription-token\", for = \"https://api.search.brave.com/res/v1/web/search\" },\
            { env = \"TAVILY_TOKEN\", header = \"authorization\", for = \"https://api.tavily.com/search\" }]";
        let (folder, manifest) = manifest(&format!("{settings}{secrets}"), grant);
        let lab = providers();
        let service = Service::start(Options {
            config: lab.configuration(),
            manifest: Some(manifest),
            environment: vec![("TAVILY_TOKEN", TAVILY_TOKEN.to_owned())],
            data: Some(data),
            arguments: vec!["--log".to_owned(), "trace".to_owned()],
            ..Options::default()
        })
        .await;
        Self {
            kind,
            lab,
            service,
            _folder: folder,
        }
    }

    /// What the provider says of a query that holds this word.
    fn finds(&self, word: &str, results: &[Value]) {
        self.lab
            .answer(word, Reply::json(200, &self.kind.body(results)));
    }

    /// The answers of both faces, with a key of their own: none has more than twenty searches a minute.
    async fn both(&self, input: &Value) -> [Answer; 2] {
        let wanted = json!({ "label": "search", "scopes": ["web:search"] });
        let issued = self
            .service
            .admin(Method::POST, "/admin/v1/keys", Some(&wanted))
            .await
            .json();
        let key = issued["data"]["key"]
            .as_str()
            .unwrap_or_else(|| panic!("no key: {issued}"));
        let request = self
            .service
            .bare(Method::POST, SEARCH)
            .bearer_auth(key)
            .json(input);
        [
            Service::send(request).await,
            Post::call(TOOL, input)
                .bearer(key)
                .send(&self.service)
                .await,
        ]
    }

    /// The results of a success, the same on both faces.
    async fn found(&self, input: Value) -> Vec<Value> {
        let [answer, called] = self.both(&input).await;
        assert_eq!(answer.status, 200, "{:?} {input}: {answer:?}", self.kind);
        assert_eq!(answer.header("cache-control"), "private, no-store");
        assert_eq!(outcome(&called), "200 result #7", "{input}");
        assert_eq!(
            called.json()["result"]["structuredContent"],
            answer.json(),
            "{input}"
        );
        let data = answer.json()["data"].clone();
        assert_eq!(
            data["query"],
            input["query"].as_str().expect("a query").trim(),
            "{data}"
        );
        assert_eq!(data.as_object().expect("data").len(), 2, "{data}");
        let results = data["results"].as_array().expect("results").clone();
        for result in &results {
            let fields: Vec<&str> = result
                .as_object()
                .expect("a document")
                .keys()
                .map(String::as_str)
                .collect();
            assert_eq!(
                (fields, &result["httpStatus"]),
                (FIELDS.to_vec(), &json!(null)),
                "{result}"
            );
        }
        results
    }

    /// Status, code and message of a failure, the same on both faces, with the seconds to wait.
    async fn refused(&self, input: Value) -> (u16, String, String, Option<u64>) {
        let [answer, called] = self.both(&input).await;
        let (status, code) = answer.refusal();
        let body = answer.json();
        assert_eq!(
            outcome(&called),
            format!("200 isError {code} #7"),
            "{input}"
        );
        assert_eq!(
            failure(&called.json()["result"]).1["error"],
            body["error"],
            "{input}"
        );
        let wait_s = body["data"]["retryAfter"].as_u64();
        assert_eq!(
            answer.headers.get("retry-after").is_some(),
            wait_s.is_some(),
            "{body}"
        );
        (
            status,
            code,
            body["error"]["message"]
                .as_str()
                .expect("a message")
                .to_owned(),
            wait_s,
        )
    }

    /// The requests of both faces, which are the same.
    fn asked(&self, word: &str) -> SearchRequest {
        let asked: Vec<SearchRequest> =
            self.lab.asked(word).iter().map(SearchRequest::of).collect();
        assert!(
            asked.len() == 2 && asked[0] == asked[1],
            "{:?}: {asked:?}",
            self.kind
        );
        asked[0].clone()
    }
}

/// So many results that are alike.
fn numbered(count: usize) -> Vec<Value> {
    let result = |number: usize| json!({ "url": format!("https://a.example/{number}"), "title": "t", "text": "s" });
    (1..=count).map(result).collect()
}

fn document(url: &str, title: Value, description: Value) -> Value {
    json!({
        "url": url, "title": title, "description": description, "content": null, "contentFormat": null,
        "contentTruncated": false, "httpStatus": null,
    })
}

#[tokio::test]
async fn each_provider_is_asked_in_its_own_form() {
    let query = json!({ "query": " harbour & lights\u{2019} \n", "limit": 3 });
    let common = [
        "accept-encoding: gzip, br, zstd, deflate",
        "accept: application/json",
    ];
    let agent = concat!("user-agent: switchbay/", env!("CARGO_PKG_VERSION"));
    let check = async |kind: Kind, line: &str, own: &[&str], body: &str| {
        let house = House::of(kind);
        house.finds("harbour", &numbered(4));
        assert_eq!(house.found(query.clone()).await.len(), 3);
        let asked = house.asked("harbour");
        let mut headers: Vec<&str> = [&common, own, &[agent][..]].concat();
        headers.sort_unstable();
        assert_eq!((asked.line.as_str(), asked.body.as_str()), (line, body));
        assert_eq!(asked.headers, headers);
    };
    let body = "q=harbour+%26+lights%E2%80%99&format=json&pageno=1";
    let length = format!("content-length: {}", body.len());
    let own = [
        "host: searx.lab.test",
        "content-type: application/x-www-form-urlencoded",
        &length,
    ];
    check(Kind::Searxng, "POST /searx/search", &own, body).await;
    let line = "GET /res/v1/web/search?q=harbour+%26+lights%E2%80%99&count=6&text_decorations=false&result_filter=web";
    let key = format!("x-subscription-token: {LAB_TOKEN}");
    check(Kind::Brave, line, &["host: api.search.brave.com", &key], "").await;
    let body = "{\"query\":\"harbour & lights\u{2019}\",\"max_results\":6,\"search_depth\":\"basic\",\"topic\":\"general\",\
                \"include_answer\":false,\"include_raw_content\":false,\"include_images\":false}";
    let (length, key) = (
        format!("content-length: {}", body.len()),
        format!("authorization: {TAVILY_TOKEN}"),
    );
    let own = [
        "host: api.tavily.com",
        "content-type: application/json",
        &length,
        &key,
    ];
    check(Kind::Tavily, "POST /search", &own, body).await;
}

#[tokio::test]
async fn a_credential_has_twenty_searches_a_minute() {
    let house = House::of(Kind::Searxng);
    house.finds("windowed", &numbered(5));
    let (_, statuses) = in_one_minute(async || {
        let key = house.service.issue(&["--scope", "web:search"]);
        let mut statuses = Vec::new();
        for _ in 0..21 {
            let request = house.service.bare(Method::POST, SEARCH).bearer_auth(&key);
            statuses.push(
                Service::send(request.json(&json!({ "query": "windowed" })))
                    .await
                    .status,
            );
        }
        statuses
    })
    .await;
    assert_eq!(statuses, [vec![200; 20], vec![429]].concat());
}
