//! Jobs: submitted once under their request ids, each item once and in its place, from the last checkpoint on, with one end.

use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;

use reqwest::Method;
use serde_json::{Value, json};

use super::{Life, Scene};
use crate::support::{Metered, Service, in_time};

const JOBS: &str = "/api/v1/test/jobs";
const CALLERS: usize = 4;
const PAGES: u32 = 4;

/// What is known of the jobs of one life.
#[derive(Default)]
pub(super) struct KnownJobs {
    /// Request ids, with the key that submitted each, the job where it was told, and how often each page of it had been
    /// fetched when its item was told.
    submitted: Mutex<HashMap<String, Submitted>>,
    jobs: usize,
    ended: usize,
    items: usize,
    unanswered: usize,
}

struct Submitted {
    key: String,
    job: Option<String>,
    fetched: HashMap<u32, usize>,
    /// How it ended, where that was told.
    end: Option<Value>,
}

impl KnownJobs {
    pub(super) async fn work(&mut self, life: &Life<'_>) {
        let known = &*self;
        futures::future::join_all((0..CALLERS).map(|caller| known.call(life, caller))).await;
    }

    async fn call(&self, life: &Life<'_>, caller: usize) {
        // An owner keeps only so many jobs.
        let key = life.operator(
            Method::POST,
            "/admin/v1/keys",
            &json!({ "label": "jobs", "scopes": ["*"] }),
        );
        let Some(key) = life.done(key).await else {
            return;
        };
        let key = key["key"].as_str().expect("a key").to_owned();
        for number in 0.. {
            let request = format!("r{}-{caller}-{number}", life.round);
            let submitted = Submitted {
                key: key.clone(),
                job: None,
                fetched: HashMap::new(),
                end: None,
            };
            self.note(|known| drop(known.insert(request.clone(), submitted)));
            // Some are left to themselves; most are followed to their end.
            let start = start(&request, if number % 3 == 2 { 0 } else { 5000 });
            let start = life.metered.service.bare(Method::POST, JOBS).json(&start);
            let Some(started) = life.done(start.bearer_auth(&key)).await else {
                return;
            };
            let job = started["job"].as_str().expect("an id").to_owned();
            self.note(|known| {
                known.get_mut(&request).expect("it is noted").job = Some(job.clone());
            });
            let path = format!("{JOBS}/{job}?items=100");
            let read = life.metered.service.bare(Method::GET, &path);
            let Some(shown) = life.done(read.bearer_auth(&key)).await else {
                return;
            };
            self.told(life, &request, shown);
        }
    }

    fn note(&self, note: impl FnOnce(&mut HashMap<String, Submitted>)) {
        note(&mut self.submitted.lock().expect("no caller panicked"));
    }

    /// An item that is told is kept, so its page is not fetched again.
    fn told(&self, life: &Life<'_>, request: &str, shown: Value) {
        self.note(|known| {
            let known = known.get_mut(request).expect("it is noted");
            for key in shown["keys"].as_array().expect("keys") {
                let page: u32 = key.as_str().expect("text").parse().expect("a number");
                let asked = || life.scene.pages.asked(&format!("/{request}/{page}")).len();
                known.fetched.entry(page).or_insert_with(asked);
            }
            if shown["state"] == "completed" {
                known.end = Some(shown);
            }
        });
    }

    pub(super) async fn check(&mut self, metered: &Metered, scene: &Scene) {
        let submitted = std::mem::take(&mut *self.submitted.lock().expect("no caller panicked"));
        for (request, known) in submitted {
            let again = metered
                .service
                .bare(Method::POST, JOBS)
                .json(&start(&request, 0));
            let again = Service::send(again.bearer_auth(&known.key)).await;
            let job = match (again.status, &known.job) {
                // Never kept, and nobody was told that it was.
                (202, None) => again.json()["data"]["job"].clone(),
                (409, _) => again.json()["data"]["job"].clone(),
                _ => panic!("{request}: {again:?}"),
            };
            let job = job.as_str().expect("an id").to_owned();
            match &known.job {
                Some(told) => assert_eq!(*told, job, "{request} made two jobs"),
                None => self.unanswered += 1,
            }
            let shown = end_of(metered, &known.key, &job).await;
            let pages: Vec<String> = (0..PAGES).map(|page| page.to_string()).collect();
            assert_eq!(
                (&shown["state"], &shown["keys"]),
                (&json!("completed"), &json!(pages)),
                "{shown}"
            );
            if let Some(end) = &known.end {
                assert_eq!(*end, shown, "an end was told, and is another");
                self.ended += 1;
            }
            for (page, fetched) in &known.fetched {
                let asked = scene.pages.asked(&format!("/{request}/{page}")).len();
                assert_eq!(asked, *fetched, "{request}: an item that was told is lost");
            }
            self.jobs += 1;
            self.items += known.fetched.len();
        }
    }
}

fn start(request: &str, wait_ms: u32) -> Value {
    json!({
        "request": request, "pages": PAGES, "wait_ms": wait_ms, "ttl_ms": 3_600_000, "budget_ms": 600_000,
    })
}

async fn end_of(metered: &Metered, key: &str, job: &str) -> Value {
    let path = format!("{JOBS}/{job}?items=100");
    let ended = async {
        loop {
            let read = metered.service.bare(Method::GET, &path).bearer_auth(key);
            let answer = Service::send(read).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            let shown = answer.json()["data"].clone();
            if !["pending", "running"].contains(&shown["state"].as_str().expect("a state")) {
                return shown;
            }
        }
    };
    in_time("the job ends", ended).await
}

impl fmt::Display for KnownJobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} jobs ({} unanswered), {} items and {} ends told",
            self.jobs, self.unanswered, self.items, self.ended
        )
    }
}
