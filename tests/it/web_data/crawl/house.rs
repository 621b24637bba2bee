//! A service with web data, and sites for it to crawl.

use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use crate::lab::{Pages, Reply, Visit};
use crate::metrics::scrape;
use crate::support::{Answer, Options, Service, workspace};

pub(super) const CRAWLS: &str = "/api/v1/web/crawls";

/// Hosts of the sites.
const HOSTS: [&str; 7] = [
    "lab.test",
    "www.lab.test",
    "sub.lab.test",
    "away.test",
    "www.away.test",
    "rules.test",
    "example.com",
];

/// The service and its outside world.
pub(super) struct House {
    pub(super) service: Service,
    pub(super) pages: Pages,
}

impl House {
    /// Before sites that answer so.
    pub(super) async fn start(reply: impl Fn(&Visit) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_on(Pages::serve(&HOSTS, reply), "", None).await
    }

    /// Before sites that serve already, with more configuration, on the data of an earlier service.
    pub(super) async fn start_on(pages: Pages, config: &str, data: Option<Arc<TempDir>>) -> Self {
        let manifest = Some(workspace().join("tests/programs/web-data.toml"));
        let config = format!("{}{config}", pages.configuration());
        Self {
            service: Service::start(Options {
                config,
                manifest,
                data,
                ..Options::default()
            })
            .await,
            pages,
        }
    }

    /// A new key that may crawl.
    pub(super) fn key(&self) -> String {
        self.service.issue(&["--scope", "web:crawl"])
    }

    /// Submits a crawl; what it does not say of a `requestId` is a fresh one.
    pub(super) async fn submit(&self, key: &str, mut body: Value) -> Answer {
        let members = body.as_object_mut().expect("an object");
        members
            .entry("requestId")
            .or_insert_with(|| json!(Uuid::now_v7().to_string()));
        Service::send(
            self.service
                .bare(Method::POST, CRAWLS)
                .bearer_auth(key)
                .json(&body),
        )
        .await
    }

    /// Submits a crawl that is not soon done, and gives back its id.
    pub(super) async fn begin(&self, key: &str, body: Value) -> String {
        let answer = self.submit(key, body).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.json()["data"]["id"]
            .as_str()
            .expect("an id")
            .to_owned()
    }

    pub(super) async fn read(&self, key: &str, id: &str, offset: usize) -> Value {
        let path = format!("{CRAWLS}/{id}?offset={offset}");
        let answer = Service::send(self.service.bare(Method::GET, &path).bearer_auth(key)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["data"].clone()
    }

    pub(super) async fn cancel(&self, key: &str, id: &str) -> Answer {
        let path = format!("{CRAWLS}/{id}");
        Service::send(self.service.bare(Method::DELETE, &path).bearer_auth(key)).await
    }

    /// Crawls that wait, and that run.
    pub(super) async fn counts(&self) -> (f64, f64) {
        let metrics = scrape(self.service.data.path()).await;
        let of = |state| {
            metrics.value(
                "switchbay_jobs",
                &[("plugin", "web-data"), ("state", state)],
            )
        };
        (of("waiting"), of("running"))
    }

    /// Waits until no crawl waits or runs. Each look is a request, so this waits for the server and for no clock.
    pub(super) async fn until_idle(&self) {
        while self.counts().await != (0.0, 0.0) {}
    }

    /// The documents of a crawl that has completed, read by the page.
    pub(super) async fn documents(&self, key: &str, id: &str) -> Vec<Value> {
        let mut documents = Vec::new();
        loop {
            let page = self.read(key, id, documents.len()).await;
            assert_eq!(
                (&page["status"], &page["id"]),
                (&json!("completed"), &json!(id)),
                "{page}"
            );
            let found = page["documents"].as_array().expect("documents").clone();
            assert!(found.len() <= 5, "{page}");
            documents.extend(found);
            if page["nextOffset"].is_null() {
                assert_eq!(
                    (&page["completed"], &page["total"]),
                    (&json!(documents.len()), &json!(documents.len()))
                );
                return documents;
            }
            assert_eq!(page["nextOffset"], documents.len(), "{page}");
        }
    }

    /// The documents of a whole crawl by a key of its own, answered at once or read when it is done.
    pub(super) async fn crawl(&self, body: Value) -> Vec<Value> {
        let key = self.key();
        let answer = self.submit(&key, body).await;
        let data = answer.json()["data"].clone();
        match answer.status {
            200 => data["documents"].as_array().expect("documents").clone(),
            202 => {
                self.until_idle().await;
                self.documents(&key, data["id"].as_str().expect("an id"))
                    .await
            }
            _ => panic!("{answer:?}"),
        }
    }

    /// The same as what there is to tell of each document: its address after the host, its status and whether it has content.
    pub(super) async fn outline(&self, body: Value) -> Vec<String> {
        self.crawl(body).await.iter().map(line).collect()
    }
}

/// A document in a line: `lab.test/a 200`, or `lab.test/b - failed`.
pub(super) fn line(document: &Value) -> String {
    let url = document["url"]
        .as_str()
        .expect("a URL")
        .strip_prefix("http://")
        .expect("by http");
    let status = document["httpStatus"]
        .as_u64()
        .map_or_else(|| "-".to_owned(), |status| status.to_string());
    match &document["content"] {
        Value::Null => {
            assert_eq!(
                (&document["contentFormat"], &document["title"]),
                (&Value::Null, &Value::Null),
                "{document}"
            );
            format!("{url} {status} failed")
        }
        _ => format!("{url} {status}"),
    }
}

/// A page with a text of its own that links to these.
pub(super) fn page(name: &str, links: &[impl AsRef<str>]) -> Reply {
    let links: String = links
        .iter()
        .map(|link| format!("<li><a href=\"{}\">there</a></li>", link.as_ref()))
        .collect();
    let text = format!(
        "<title>{name}</title><main><p>This is the page {name}, and it has a text.</p></main>"
    );
    Reply::body(
        200,
        "text/html; charset=utf-8",
        format!("<!doctype html>{text}<nav><ul>{links}</ul></nav>"),
    )
}

/// What a host without the page answers.
pub(super) fn missing() -> Reply {
    Reply::body(
        404,
        "text/html",
        "<title>Gone</title><p>There is no such page",
    )
}

/// The links of a page of the tree: four pages at depth 1, eight at 2, seven at 3, and seven below that.
pub(super) fn tree(path: &str) -> Option<Vec<String>> {
    let below = |count: usize| {
        (1..=count)
            .map(|number| format!("{}/{number}", path.trim_end_matches('/')))
            .collect()
    };
    let numbers: Vec<&str> = path
        .split('/')
        .filter(|number| !number.is_empty())
        .collect();
    match numbers.as_slice() {
        [] => Some(below(4)),
        [_] => Some(below(2)),
        ["4", "2"] => Some(Vec::new()),
        [_, _] | [_, _, _] => Some(below(1)),
        [_, _, _, _] => Some(Vec::new()),
        _ => None,
    }
}

/// The tree as a site: its pages link to more than to those below them.
pub(super) fn tree_site(visit: &Visit) -> Reply {
    let Some(mut links) = tree(&visit.path).filter(|_| visit.host == "lab.test") else {
        return missing();
    };
    let more = [
        "/",
        "#part",
        "/#top",
        "http://away.test/",
        "http://sub.lab.test/",
        "mailto:me@lab.test",
    ];
    let again = links
        .clone()
        .into_iter()
        .map(|link| format!("http://lab.test{link}#again"));
    links = more
        .iter()
        .map(|link| (*link).to_owned())
        .chain(links.clone())
        .chain(again)
        .collect();
    page(&visit.path, &links)
}

/// The pages of the tree that a crawl shows, in their order, where these fail: nothing behind them is found.
pub(super) fn expected(limit: usize, depth_max: usize, failing: &[&str]) -> Vec<String> {
    let mut pages = vec![("/".to_owned(), 0)];
    let mut at = 0;
    while let Some((path, depth)) = pages.get(at).cloned() {
        if depth < depth_max && !failing.contains(&&*path) {
            pages.extend(
                tree(&path)
                    .into_iter()
                    .flatten()
                    .map(|link| (link, depth + 1)),
            );
        }
        at += 1;
    }
    pages
        .into_iter()
        .map(|(path, _)| path)
        .take(limit)
        .collect()
}
