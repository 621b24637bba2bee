//! Jobs, seen through a guest that fetches pages in them: whose they are, what is kept of them, and what becomes of them when
//! they are cancelled, killed with their process, or outlive their revision.

mod bounds;
mod durable;
mod keys;
mod shares;

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::join_all;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::lab::{Pages, Reply};
use crate::metrics::scrape;
use crate::support::{Answer, Options, Service, build, in_time, now_s, workspace};

const JOBS: &str = "/api/v1/test/jobs";

/// The service with the guest, and the pages that it fetches.
struct House {
    service: Service,
    /// The owner's, whichever process serves.
    key: String,
    pages: Pages,
}

fn pages() -> Pages {
    Pages::serve(&["pages.test"], |visit| {
        Reply::body(200, "text/plain", format!("the page {}", visit.path))
    })
}

impl House {
    async fn start() -> Self {
        Self::start_with("", pages(), None).await
    }

    async fn start_with(config: &str, pages: Pages, data: Option<Arc<TempDir>>) -> Self {
        Self::start_on(
            workspace().join("tests/programs/works.toml"),
            config,
            pages,
            data,
        )
        .await
    }

    async fn start_on(
        manifest: PathBuf,
        config: &str,
        pages: Pages,
        data: Option<Arc<TempDir>>,
    ) -> Self {
        let manifest = Some(manifest);
        let config = format!("{}{config}", pages.configuration());
        let service = Service::start(Options {
            config,
            manifest,
            data,
            ..Options::default()
        })
        .await;
        Self {
            key: service.key().to_owned(),
            service,
            pages,
        }
    }

    async fn submit(&self, start: Value) -> Answer {
        Service::send(self.request(Method::POST, "").json(&start)).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.service
            .bare(method, &format!("{JOBS}{path}"))
            .bearer_auth(&self.key)
    }

    /// Submits a job that is taken, and gives back its id.
    async fn begin(&self, start: Value) -> String {
        let answer = self.submit(start).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        job_of(&answer)
    }

    /// Submits a job and waits for its end; gives back what is shown of it then.
    async fn run(&self, mut start: Value) -> Value {
        start["wait_ms"] = json!(30_000);
        let answer = self.submit(start).await;
        let started = answer.json()["data"].clone();
        let state = started["state"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer:?}"));
        assert!(
            ["completed", "failed", "cancelled"].contains(&state),
            "{started}"
        );
        let shown = self
            .read(started["job"].as_str().expect("an id"), "?items=100")
            .await;
        assert_eq!(shown["state"], *state);
        shown
    }

    async fn read(&self, job: &str, query: &str) -> Value {
        let answer = Service::send(self.request(Method::GET, &format!("/{job}{query}"))).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["data"].clone()
    }

    /// Reads until the job has ended. Each reading is a request, so this waits for the server and for no clock.
    async fn end_of(&self, job: &str) -> Value {
        let ended = async {
            loop {
                let shown = self.read(job, "?items=100").await;
                if !["pending", "running"].contains(&shown["state"].as_str().expect("a state")) {
                    return shown;
                }
            }
        };
        in_time("the job ends", ended).await
    }

    async fn cancel(&self, job: &str) -> Value {
        let answer = Service::send(self.request(Method::DELETE, &format!("/{job}"))).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["data"]["state"].clone()
    }

    async fn counts(&self) -> (f64, f64) {
        let metrics = scrape(self.service.data.path()).await;
        let of = |state| metrics.value("switchbay_jobs", &[("plugin", "works"), ("state", state)]);
        (of("waiting"), of("running"))
    }
}

fn job_of(answer: &Answer) -> String {
    answer.json()["data"]["job"]
        .as_str()
        .expect("an id")
        .to_owned()
}

fn keys(range: std::ops::Range<u32>) -> Value {
    json!(range.map(|page| page.to_string()).collect::<Vec<_>>())
}

#[tokio::test]
async fn a_job_emits_in_an_order_that_stays_and_is_read_by_the_page() {
    let house = House::start().await;
    let shown = house.run(json!({ "request": "pages", "pages": 7 })).await;
    assert_eq!(
        (&shown["state"], &shown["total"], &shown["completed"]),
        (&json!("completed"), &json!(7), &json!(7))
    );
    assert_eq!(
        (&shown["keys"], &shown["next"]),
        (&keys(0..7), &Value::Null)
    );
    assert_eq!(shown["output"], r#"{"attempt":1,"keys":7}"#);
    assert_eq!(shown["failure"], Value::Null);
    let expires_s = shown["expires_at_ms"].as_u64().expect("a time") / 1000;
    assert!((expires_s - 60).abs_diff(now_s()) <= 30, "{expires_s}");

    let job = house.begin(json!({ "request": "more", "pages": 7 })).await;
    house.end_of(&job).await;
    for (query, expected, next) in [
        ("", 0..5, json!(5)),
        ("?offset=5", 5..7, Value::Null),
        ("?offset=7", 0..0, Value::Null),
        ("?offset=4000000000", 0..0, Value::Null),
        ("?items=7", 0..7, Value::Null),
        ("?items=6", 0..6, json!(6)),
        // One item is given whatever its size.
        ("?bytes=1&offset=2", 2..3, json!(3)),
    ] {
        let page = house.read(&job, query).await;
        assert_eq!(
            (&page["keys"], &page["next"]),
            (&keys(expected), &next),
            "{query}"
        );
    }
    for (query, told) in [
        ("?items=0", "`items-max` is 0; it must be from 1 to 100"),
        ("?items=101", "`items-max` is 101; it must be from 1 to 100"),
        ("?bytes=0", "`bytes-max` is 0; it must be from 1 to 4194304"),
        (
            "?bytes=4194305",
            "`bytes-max` is 4194305; it must be from 1 to 4194304",
        ),
    ] {
        let answer = house.service.get(&format!("{JOBS}/{job}{query}")).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]["message"]),
            (422, &json!(told))
        );
    }
}

#[tokio::test]
async fn a_job_is_there_for_its_owner_alone() {
    let house = House::start().await;
    let job = house.begin(json!({ "request": "mine", "pages": 1 })).await;
    let stranger = house.service.issue(&["--all-scopes"]);
    let path = format!("{JOBS}/{job}");
    for method in [Method::GET, Method::DELETE] {
        let other = Service::send(
            house
                .service
                .bare(method.clone(), &path)
                .bearer_auth(&stranger),
        )
        .await;
        let never = house.service.request(
            method.clone(),
            &format!("{JOBS}/0199a0c4-7f9e-7d70-b5a3-3f0e5a8c1d2e"),
        );
        let none = house.service.request(method, &format!("{JOBS}/mine"));
        for answer in [other, Service::send(never).await, Service::send(none).await] {
            assert_eq!(answer.refusal(), (404, "NOT_FOUND".to_owned()));
        }
    }
    assert_eq!(house.end_of(&job).await["state"], "completed");
    // A request id is an owner's own.
    let start = json!({ "request": "mine" });
    let theirs = house
        .service
        .bare(Method::POST, JOBS)
        .bearer_auth(&stranger)
        .json(&start);
    assert_eq!(Service::send(theirs).await.status, 202);
}

#[tokio::test]
async fn a_request_id_makes_one_job_whatever_becomes_of_it() {
    let house = House::start().await;
    let job = house.begin(json!({ "request": "once", "pages": 1 })).await;
    house.end_of(&job).await;
    let again = async |pages: u32| {
        house
            .submit(json!({ "request": "once", "pages": pages }))
            .await
            .json()
    };
    for (pages, same) in [(1, true), (2, false)] {
        let refused = again(pages).await;
        assert_eq!(refused["error"]["code"], "DUPLICATE_REQUEST");
        assert_eq!(
            (&refused["data"]["job"], &refused["data"]["same"]),
            (&json!(job), &json!(same))
        );
    }
    // Of many at once, one is taken.
    let start = || house.submit(json!({ "request": "crowd", "pages": 1 }));
    let answers = join_all((0..16).map(|_| start())).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!((statuses[0], &statuses[1..]), (202, [409; 15].as_slice()));

    house.pages.hold("/short/0");
    let short = house
        .begin(json!({ "request": "short", "pages": 1, "ttl_ms": 1000 }))
        .await;
    house.pages.until_asked("/short/0").await;
    // Cancelled by its end: what it had under way is dropped, and it is gone.
    house.pages.until_gone("/short/0").await;
    let gone = async || house.service.get(&format!("{JOBS}/{short}")).await.status;
    in_time("it is gone", async { while gone().await != 404 {} }).await;
    let refused = house
        .submit(json!({ "request": "short", "pages": 1 }))
        .await;
    assert_eq!(refused.refusal(), (409, "DUPLICATE_REQUEST".to_owned()));

    for (start, told) in [
        (
            json!({ "request": "" }),
            "`request-id` must be 1 to 80 characters of A-Z, a-z, 0-9, - and _",
        ),
        (
            json!({ "request": "a b" }),
            "`request-id` must be 1 to 80 characters of A-Z, a-z, 0-9, - and _",
        ),
        (
            json!({ "request": "x".repeat(81) }),
            "`request-id` must be 1 to 80 characters of A-Z, a-z, 0-9, - and _",
        ),
        (
            json!({ "request": "r", "ttl_ms": 999 }),
            "`ttl-ms` is 999; it must be from 1000 to 86400000",
        ),
        (
            json!({ "request": "r", "ttl_ms": 86_400_001 }),
            "`ttl-ms` is 86400001; it must be from 1000 to 86400000",
        ),
        (
            json!({ "request": "r", "budget_ms": 999 }),
            "`budget-ms` is 999; it must be from 1000 to 3600000",
        ),
    ] {
        let answer = house.submit(start).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]["message"]),
            (422, &json!(told))
        );
    }
}

#[tokio::test]
async fn a_cancelled_job_ends_with_what_it_had_under_way() {
    let house = House::start().await;
    house.pages.hold("/cut/2");
    let job = house.begin(json!({ "request": "cut", "pages": 9 })).await;
    house.pages.until_asked("/cut/2").await;
    assert_eq!(house.counts().await, (0.0, 1.0));
    assert_eq!(house.cancel(&job).await, "cancelled");
    house.pages.until_gone("/cut/2").await;
    let shown = house.end_of(&job).await;
    assert_eq!(
        (&shown["state"], &shown["keys"]),
        (&json!("cancelled"), &keys(0..2))
    );
    assert_eq!(house.cancel(&job).await, "cancelled");
    house.pages.release("/cut/2");
    assert_eq!(house.pages.asked("/cut/").len(), 3);
    let done = house.begin(json!({ "request": "done", "pages": 1 })).await;
    house.end_of(&done).await;
    assert_eq!(house.cancel(&done).await, "completed");
    assert_eq!(house.end_of(&done).await["state"], "completed");
}

#[tokio::test]
async fn without_the_right_nothing_of_a_job_can_be_had() {
    let folder = TempDir::new().expect("a folder");
    build();
    let wasm = workspace().join("target/components/wasm32-wasip2/plugin/works.wasm");
    let entry = format!(
        "[[plugin]]\nname = \"works\"\nsource = {wasm:?}\ngrants = [\"http:GET http://pages.test/\"]\n"
    );
    let manifest = folder.path().join("plugin-manifest.toml");
    std::fs::write(&manifest, entry).expect("the manifest is written");
    let service = Service::start(Options {
        manifest: Some(manifest),
        ..Options::default()
    })
    .await;
    let act = async |path: &str, body: Value| {
        let answer = service
            .admin(
                Method::POST,
                &format!("/admin/v1/plugins/works/{path}"),
                Some(&body),
            )
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    act("revisions/1/approve", json!({ "activate": true })).await;
    let started = service.post(JOBS, &json!({ "request": "one" })).await;
    let job = job_of(&started);
    act("revoke", json!({ "atom": "jobs" })).await;
    let path = format!("{JOBS}/{job}");
    let cancelled = Service::send(service.request(Method::DELETE, &path)).await;
    for answer in [
        service.post(JOBS, &json!({ "request": "two" })).await,
        service.get(&path).await,
        cancelled,
    ] {
        assert_eq!(
            (answer.status, &answer.json()["error"]["message"]),
            (422, &json!("`jobs` is not granted"))
        );
    }
    let outside = service.post("/api/v1/test/outside", &json!({})).await;
    assert_eq!(
        outside.json()["data"]["state"],
        "not-granted not-granted not-granted not-granted"
    );
}
