//! Jobs, seen through a guest that fetches pages in them: whose they are, what is kept of them, and what becomes of them when
//! they are cancelled, killed with their process, or outlive their revision.

mod keys;
mod shares;

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::join_all;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::metrics::scrape;
use crate::support::{Answer, Options, Pages, Reply, Service, build, in_time, now_s, workspace};

const JOBS: &str = "/api/v1/test/jobs";

/// The service with the guest, and the pages that it fetches.
struct House {
    service: Service,
    /// The owner's, whichever process serves.
    key: String,
    pages: Pages,
}

fn pages() -> Pages {
    Pages::serve(&["pages.test"], |visit| Reply::body(200, "text/plain", format!("the page {}", visit.path)))
}

impl House {
    async fn start() -> Self {
        Self::start_with("", pages(), None).await
    }

    async fn start_with(config: &str, pages: Pages, data: Option<Arc<TempDir>>) -> Self {
        Self::start_on(workspace().join("tests/programs/works.toml"), config, pages, data).await
    }

    async fn start_on(manifest: PathBuf, config: &str, pages: Pages, data: Option<Arc<TempDir>>) -> Self {
        let manifest = Some(manifest);
        let config = format!("{}{config}", pages.configuration());
        let service = Service::start(Options { config, manifest, data, ..Options::default() }).await;
        Self { key: service.key().to_owned(), service, pages }
    }

    async fn submit(&self, start: Value) -> Answer {
        Service::send(self.request(Method::POST, "").json(&start)).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.service.bare(method, &format!("{JOBS}{path}")).bearer_auth(&self.key)
    }

    /// Submits a job that is taken, and gives back its id.
    async fn begin(&self, start: Value) -> String {
        let answer = self.submit(start).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.json()["data"]["job"].as_str().expect("an id").to_owned()
    }

    /// Submits a job and waits for its end; gives back what is shown of it then.
    async fn run(&self, mut start: Value) -> Value {
        start["wait_ms"] = json!(30_000);
        let answer = self.submit(start).await;
        let started = answer.json()["data"].clone();
        let state = started["state"].as_str().unwrap_or_else(|| panic!("{answer:?}"));
        assert!(["completed", "failed", "cancelled"].contains(&state), "{started}");
        let shown = self.read(started["job"].as_str().expect("an id"), "?items=100").await;
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

fn keys(range: std::ops::Range<u32>) -> Value {
    json!(range.map(|page| page.to_string()).collect::<Vec<_>>())
}

#[tokio::test]
async fn a_job_emits_in_an_order_that_stays_and_is_read_by_the_page() {
    let house = House::start().await;
    let shown = house.run(json!({ "request": "pages", "pages": 7 })).await;
    assert_eq!((&shown["state"], &shown["total"], &shown["completed"]), (&json!("completed"), &json!(7), &json!(7)));
    assert_eq!((&shown["keys"], &shown["next"]), (&keys(0..7), &Value::Null));
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
        assert_eq!((&page["keys"], &page["next"]), (&keys(expected), &next), "{query}");
    }
    for (query, told) in [
        ("?items=0", "`items-max` is 0; it must be from 1 to 100"),
        ("?items=101", "`items-max` is 101; it must be from 1 to 100"),
        ("?bytes=0", "`bytes-max` is 0; it must be from 1 to 4194304"),
        ("?bytes=4194305", "`bytes-max` is 4194305; it must be from 1 to 4194304"),
    ] {
        let answer = house.service.get(&format!("{JOBS}/{job}{query}")).await;
        assert_eq!((answer.status, &answer.json()["error"]["message"]), (422, &json!(told)));
    }
}

#[tokio::test]
async fn a_job_is_there_for_its_owner_alone() {
    let house = House::start().await;
    let job = house.begin(json!({ "request": "mine", "pages": 1 })).await;
    let stranger = house.service.issue(&["--all-scopes"]);
    let path = format!("{JOBS}/{job}");
    for method in [Method::GET, Method::DELETE] {
        let other = Service::send(house.service.bare(method.clone(), &path).bearer_auth(&stranger)).await;
        let never = house.service.request(method.clone(), &format!("{JOBS}/0199a0c4-7f9e-7d70-b5a3-3f0e5a8c1d2e"));
        let none = house.service.request(method, &format!("{JOBS}/mine"));
        for answer in [other, Service::send(never).await, Service::send(none).await] {
            assert_eq!(answer.refusal(), (404, "NOT_FOUND".to_owned()));
        }
    }
    assert_eq!(house.end_of(&job).await["state"], "completed");
    // A request id is an owner's own.
    let start = json!({ "request": "mine" });
    let theirs = house.service.bare(Method::POST, JOBS).bearer_auth(&stranger).json(&start);
    assert_eq!(Service::send(theirs).await.status, 202);
}

#[tokio::test]
async fn a_request_id_makes_one_job_whatever_becomes_of_it() {
    let house = House::start().await;
    let job = house.begin(json!({ "request": "once", "pages": 1 })).await;
    house.end_of(&job).await;
    let again = async |pages: u32| house.submit(json!({ "request": "once", "pages": pages })).await.json();
    for (pages, same) in [(1, true), (2, false)] {
        let refused = again(pages).await;
        assert_eq!(refused["error"]["code"], "DUPLICATE_REQUEST");
        assert_eq!((&refused["data"]["job"], &refused["data"]["same"]), (&json!(job), &json!(same)));
    }
    // Of many at once, one is taken.
    let start = || house.submit(json!({ "request": "crowd", "pages": 1 }));
    let answers = join_all((0..16).map(|_| start())).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!((statuses[0], &statuses[1..]), (202, [409; 15].as_slice()));

    house.pages.hold("/short/0");
    let short = house.begin(json!({ "request": "short", "pages": 1, "ttl_ms": 1000 })).await;
    house.pages.until_asked("/short/0").await;
    // Cancelled by its end: what it had under way is dropped, and it is gone.
    house.pages.until_gone("/short/0").await;
    let gone = async || house.service.get(&format!("{JOBS}/{short}")).await.status;
    in_time("it is gone", async { while gone().await != 404 {} }).await;
    let refused = house.submit(json!({ "request": "short", "pages": 1 })).await;
    assert_eq!(refused.refusal(), (409, "DUPLICATE_REQUEST".to_owned()));

    for (start, told) in [
        (json!({ "request": "" }), "`request-id` must be 1 to 80 characters of A-Z, a-z, 0-9, - and _"),
        (json!({ "request": "a b" }), "`request-id` must be 1 to 80 characters of A-Z, a-z, 0-9, - and _"),
        (json!({ "request": "x".repeat(81) }), "`request-id` must be 1 to 80 characters of A-Z, a-z, 0-9, - and _"),
        (json!({ "request": "r", "ttl_ms": 999 }), "`ttl-ms` is 999; it must be from 1000 to 86400000"),
        (json!({ "request": "r", "ttl_ms": 86_400_001 }), "`ttl-ms` is 86400001; it must be from 1000 to 86400000"),
        (json!({ "request": "r", "budget_ms": 999 }), "`budget-ms` is 999; it must be from 1000 to 3600000"),
    ] {
        let answer = house.submit(start).await;
        assert_eq!((answer.status, &answer.json()["error"]["message"]), (422, &json!(told)));
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
    assert_eq!((&shown["state"], &shown["keys"]), (&json!("cancelled"), &keys(0..2)));
    assert_eq!(house.cancel(&job).await, "cancelled");
    house.pages.release("/cut/2");
    assert_eq!(house.pages.asked("/cut/").len(), 3);
    let done = house.begin(json!({ "request": "done", "pages": 1 })).await;
    house.end_of(&done).await;
    assert_eq!(house.cancel(&done).await, "completed");
    assert_eq!(house.end_of(&done).await["state"], "completed");
}

#[tokio::test]
async fn a_job_outlives_its_process_and_fetches_nothing_again() {
    let mut house = House::start().await;
    for (request, kills) in [("killed", true), ("stopped", false)] {
        let held = format!("/{request}/3");
        house.pages.hold(&held);
        let job = house.begin(json!({ "request": request, "pages": 6 })).await;
        house.pages.until_asked(&held).await;
        match kills {
            true => house.service.kill(),
            false => drop(house.service.stop()),
        }
        house.pages.release(&held);
        let (pages, data, key) = (house.pages.clone(), Arc::clone(&house.service.data), house.key.clone());
        drop(house);
        house = House { key, ..House::start_with("", pages, Some(data)).await };
        let shown = house.end_of(&job).await;
        assert_eq!((&shown["state"], &shown["keys"]), (&json!("completed"), &keys(0..6)), "{shown}");
        let mut asked = house.pages.asked(&format!("/{request}/"));
        asked.sort_unstable();
        let expected = ["0", "1", "2", "3", "3", "4", "5"].map(|page| format!("/{request}/{page}"));
        assert_eq!(asked, expected, "the one page that was under way is fetched again, and no other");
        // A run that the process ended in good order is none that the job died of.
        let attempt = if kills { 2 } else { 1 };
        assert_eq!(shown["output"], format!(r#"{{"attempt":{attempt},"keys":6}}"#));
    }
}

#[tokio::test]
async fn a_job_outlives_its_revision() {
    let house = House::start().await;
    house.pages.hold("/old/1");
    let old = house.begin(json!({ "request": "old", "pages": 3 })).await;
    house.pages.until_asked("/old/1").await;
    let act = async |act: &str, body: Value| {
        let answer = house.service.admin(Method::POST, &format!("/admin/v1/plugins/works/{act}"), Some(&body)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    // What is switched off runs no job; what was begun ends on its revision.
    act("disable", json!({ "why": "a test" })).await;
    house.pages.release("/old/1");
    house.pages.until_asked("/old/2").await;
    act("enable", json!({ "why": "a test" })).await;
    let shown = house.end_of(&old).await;
    assert_eq!((&shown["state"], &shown["keys"]), (&json!("completed"), &keys(0..3)));
    assert_eq!(house.pages.asked("/old/").len(), 3);
}

#[tokio::test]
async fn a_job_that_outlives_the_longest_call_of_a_replaced_revision_is_cut_off_and_taken_up_again() {
    let folder = TempDir::new().expect("a folder");
    build();
    let wasm = workspace().join("target/components/wasm32-wasip2/plugin/works.wasm");
    let entry = format!(
        "[[plugin]]\nname = \"works\"\nsource = {wasm:?}\ngrants = [\"http:GET http://pages.test/\", \"jobs\"]\n\
         limits = {{ wall_ms = 1000 }}\n"
    );
    let manifest = folder.path().join("plugin-manifest.toml");
    std::fs::write(&manifest, entry).expect("the manifest is written");
    let house = House::start_on(manifest, "[limits]\nbody_ms = 500\n", pages(), None).await;
    house.pages.hold("/long/1");
    let job = house.begin(json!({ "request": "long", "pages": 3 })).await;
    house.pages.until_asked("/long/1").await;
    let act = async |act: &str| {
        let path = format!("/admin/v1/plugins/works/{act}");
        let answer = house.service.admin(Method::POST, &path, Some(&json!({ "why": "a test" }))).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    act("disable").await;
    house.pages.until_gone("/long/1").await;
    house.service.log_until(|lines| lines.iter().any(|line| line["message"] == "a draining revision is stopped"));
    house.pages.release("/long/1");
    act("enable").await;
    let shown = house.end_of(&job).await;
    assert_eq!((&shown["state"], &shown["keys"]), (&json!("completed"), &keys(0..3)));
    let asked = ["0", "1", "1", "2"].map(|page| format!("/long/{page}"));
    assert_eq!(house.pages.asked("/long/"), asked, "it goes on where it was");
}

#[tokio::test]
async fn a_store_that_cannot_be_written_refuses_jobs_and_loses_none() {
    let house = House::start().await;
    house.pages.hold("/kept/1");
    let job = house.begin(json!({ "request": "kept", "pages": 3 })).await;
    house.pages.until_asked("/kept/1").await;
    house.service.fill_disk();
    let refused = house.submit(json!({ "request": "refused", "pages": 1 })).await;
    assert_eq!(refused.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
    assert_eq!(refused.json()["error"]["message"], "Unavailable");
    // What runs cannot keep what it found, nor its end.
    house.pages.release("/kept/1");
    let failed = |line: &Value| line["message"] == "a job cannot be read or written" && line["job"] == *job;
    house.service.log_until(|lines| lines.iter().any(failed));
    house.service.kill();
    let (pages, data, key) = (house.pages.clone(), Arc::clone(&house.service.data), house.key.clone());
    drop(house);
    let house = House { key, ..House::start_with("", pages, Some(data)).await };
    let shown = house.end_of(&job).await;
    assert_eq!((&shown["state"], &shown["keys"]), (&json!("completed"), &keys(0..3)));
    assert_eq!(house.pages.asked("/kept/0").len(), 1, "what was kept is not fetched again");
    // Nobody was told that it was submitted, and it was not.
    assert_eq!(house.submit(json!({ "request": "refused", "pages": 0 })).await.status, 202);
}

#[tokio::test]
async fn without_the_right_nothing_of_a_job_can_be_had() {
    let folder = TempDir::new().expect("a folder");
    build();
    let wasm = workspace().join("target/components/wasm32-wasip2/plugin/works.wasm");
    let entry =
        format!("[[plugin]]\nname = \"works\"\nsource = {wasm:?}\ngrants = [\"http:GET http://pages.test/\"]\n");
    let manifest = folder.path().join("plugin-manifest.toml");
    std::fs::write(&manifest, entry).expect("the manifest is written");
    let service = Service::start(Options { manifest: Some(manifest), ..Options::default() }).await;
    let act = async |path: &str, body: Value| {
        let answer = service.admin(Method::POST, &format!("/admin/v1/plugins/works/{path}"), Some(&body)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    act("revisions/1/approve", json!({ "activate": true })).await;
    let started = service.post(JOBS, &json!({ "request": "one" })).await;
    let job = started.json()["data"]["job"].as_str().expect("an id").to_owned();
    act("revoke", json!({ "atom": "jobs" })).await;
    let path = format!("{JOBS}/{job}");
    let cancelled = Service::send(service.request(Method::DELETE, &path)).await;
    for answer in [service.post(JOBS, &json!({ "request": "two" })).await, service.get(&path).await, cancelled] {
        assert_eq!((answer.status, &answer.json()["error"]["message"]), (422, &json!("`jobs` is not granted")));
    }
    let outside = service.post("/api/v1/test/outside", &json!({})).await;
    assert_eq!(outside.json()["data"]["state"], "not-granted not-granted not-granted not-granted");
}

#[tokio::test]
async fn nobody_has_more_than_a_share_of_the_runs_and_the_queue() {
    let limits = "[jobs]\nrunning = 3\nopen = 8\nowner_running = 2\nowner_open = 5\n";
    let house = House::start_with(limits, pages(), None).await;
    house.pages.hold("/");
    let submit = |number: usize| house.submit(json!({ "request": format!("mine-{number}"), "pages": 1 }));
    let mine = join_all((0..50).map(submit)).await;
    let taken: Vec<&Answer> = mine.iter().filter(|answer| answer.status == 202).collect();
    assert_eq!(taken.len(), 5);
    assert!(
        mine.iter().all(|answer| answer.status == 202 || answer.refusal() == (503, "SERVICE_UNAVAILABLE".to_owned()))
    );
    // Those who come later are not behind the five.
    let strangers: Vec<String> = (0..4).map(|_| house.service.issue(&["--all-scopes"])).collect();
    let submit = |key: &String| {
        let start = json!({ "request": "theirs", "pages": 1 });
        Service::send(house.service.bare(Method::POST, JOBS).bearer_auth(key).json(&start))
    };
    let theirs: Vec<u16> = join_all(strangers.iter().map(submit)).await.iter().map(|answer| answer.status).collect();
    assert_eq!(theirs.iter().filter(|status| **status == 202).count(), 3, "eight are open altogether: {theirs:?}");
    let asked = || (house.pages.asked("/mine").len(), house.pages.asked("/theirs").len());
    let until = async |counts: (f64, f64), pages: (usize, usize)| {
        in_time("they are as they should", async { while house.counts().await != counts || asked() != pages {} }).await;
    };
    until((5.0, 3.0), (2, 1)).await;
    // A place that is free goes to the next in turn, and a job that waits is cancelled without having run.
    let ids: Vec<String> =
        taken.iter().map(|answer| answer.json()["data"]["job"].as_str().expect("an id").to_owned()).collect();
    let mut running = Vec::new();
    for id in &ids {
        match house.read(id, "").await["state"] == "running" {
            true => running.push(id),
            false => assert_eq!(house.cancel(id).await, "cancelled"),
        }
    }
    assert_eq!((running.len(), house.counts().await), (2, (2.0, 3.0)));
    for id in running {
        assert_eq!(house.cancel(id).await, "cancelled");
    }
    until((0.0, 3.0), (2, 3)).await;
    house.pages.release("/");
    in_time("they end", async { while house.counts().await != (0.0, 0.0) {} }).await;
}

#[tokio::test]
async fn a_call_asks_for_so_many_things_of_jobs_at_once_and_the_next_is_refused() {
    let house = House::start().await;
    house.pages.hold("/held/");
    let job = house.begin(json!({ "request": "held", "pages": 1 })).await;
    house.pages.until_asked("/held/0").await;
    let crowd = async || {
        let asked = house.request(Method::POST, &format!("/{job}/crowd")).json(&json!({}));
        Service::send(asked).await.json()["data"]["state"].clone()
    };
    assert_eq!(crowd().await, "busy 68, running 32");
    // The places are free again.
    assert_eq!(crowd().await, "busy 68, running 32");
    house.pages.release("/held/");
    assert_eq!(house.end_of(&job).await["state"], "completed");
}

#[tokio::test]
async fn a_job_that_goes_wrong_fails_and_says_how() {
    let house = House::start().await;
    for (then, told) in [
        ("fail", "REFUSED: The pages are no good"),
        ("surprise", "INTERNAL_ERROR: The service failed to answer this call"),
        ("trap", "INTERNAL_ERROR: The service failed to answer this call"),
        ("spin", "UPSTREAM_TIMEOUT: The operation used up its processor time before it finished"),
    ] {
        let shown = house.run(json!({ "request": then, "pages": 2, "then": then })).await;
        assert_eq!((&shown["state"], &shown["failure"]), (&json!("failed"), &json!(told)));
        assert_eq!((&shown["keys"], &shown["output"]), (&keys(0..2), &Value::Null));
    }
    house.pages.hold("/late/1");
    let late = house.run(json!({ "request": "late", "pages": 2, "budget_ms": 1000 })).await;
    let told = json!("UPSTREAM_TIMEOUT: The operation did not finish by its deadline");
    assert_eq!((&late["failure"], &late["keys"]), (&told, &keys(0..1)));
    house.pages.until_gone("/late/1").await;
}

#[tokio::test]
async fn a_run_has_its_limits_and_a_budget_for_each_item() {
    let house = House::start().await;
    let output = async |then: &str| house.run(json!({ "request": then, "then": then })).await["output"].clone();
    assert_eq!(output("flood").await, r#"{"items":1000,"then":"full"}"#);
    assert_eq!(output("crowd").await, r#"{"busy":true,"kept":true,"all":100}"#);
    let refused = r#"["not-acceptable","not-acceptable","not-acceptable","not-acceptable","true","false"]"#;
    assert_eq!(output("refused").await, refused);
    // Twice the budget of one slice, in four.
    assert_eq!(output("toil").await, r#"{"attempt":1,"keys":4}"#);
    let outside = house.service.post("/api/v1/test/outside", &json!({})).await;
    assert_eq!(outside.json()["data"]["state"], "ended ended ended ended");
}
