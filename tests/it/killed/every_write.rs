//! Every kind of write at once until the process is killed: what a client was told holds, once; what it was not told is there
//! once or not at all.
//!
//! Credits, identifiers and balances are those of the subject above. Here callers of each other kind stand beside them: jobs,
//! records of plugins, keys, accounts with their entitlements, what the operator does to a plugin, and counts of calls.

mod customers;
mod jobs;
mod plugins;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Known, call, check, check_names, rounds};
use crate::lab::{Pages, Reply};
use crate::support::{Metered, Options, Service, build, built, describing, good};

const CREDIT_CALLERS: usize = 8;

/// A data folder that servers come and go on, and the pages that jobs fetch.
struct Scene {
    folder: Arc<TempDir>,
    pages: Pages,
}

/// One life of the process, which its callers end.
struct Life<'l> {
    metered: &'l Metered,
    scene: &'l Scene,
    known: &'l Known,
    round: usize,
    /// The answer at which the process is killed.
    until: usize,
}

impl Scene {
    fn new() -> Self {
        build();
        let folder = Arc::new(TempDir::new().expect("a folder"));
        let plugin = |name: &str, component: &[u8], grants: &str| {
            std::fs::write(folder.path().join(format!("{name}.wasm")), component).expect("written");
            format!(
                "[[plugin]]\nname = \"{name}\"\nsource = \"{name}.wasm\"\ngrants = [{grants}]\n\
                 limits = {{ concurrency = 64 }}\n"
            )
        };
        let manifest = [
            plugin("metered", &built("metered"), ""),
            plugin("keeps", &built("keeps"), r#""cache:8MiB", "state:64KiB""#),
            plugin(
                "works",
                &built("works"),
                r#""http:GET http://pages.test/", "jobs""#,
            ),
            plugin("describes", &describing(&good("describes").to_string()), ""),
        ];
        let path = folder.path().join("plugin-manifest.toml");
        std::fs::write(path, manifest.concat()).expect("written");
        let pages = Pages::serve(&["pages.test"], |visit| {
            Reply::body(200, "text/plain", format!("the page {}", visit.path))
        });
        Self { folder, pages }
    }

    async fn serve(&self) -> Metered {
        let service = Service::start(Options {
            config: self.pages.configuration(),
            manifest: Some(self.folder.path().join("plugin-manifest.toml")),
            data: Some(Arc::clone(&self.folder)),
            ..Options::default()
        })
        .await;
        Metered { service }
    }
}

impl Life<'_> {
    /// The status and the body of an answer, which is acknowledged by that; `None` where there is none any more.
    async fn ask(&self, request: RequestBuilder) -> Option<(u16, Value)> {
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        let body = response.bytes().await.ok()?;
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        if self.known.count.fetch_add(1, Ordering::Relaxed) + 1 == self.until {
            self.metered.service.kill();
        }
        Some((status, body))
    }

    /// The `data` of an answer that does what was asked.
    async fn done(&self, request: RequestBuilder) -> Option<Value> {
        let (status, body) = self.ask(request).await?;
        assert!((200..300).contains(&status), "{status}: {body}");
        Some(body["data"].clone())
    }

    /// A request to the operator's listener.
    fn operator(&self, method: Method, path: &str, body: &Value) -> RequestBuilder {
        let service = &self.metered.service;
        let request =
            reqwest::Client::new().request(method, format!("{}{path}", service.operator_url()));
        let request = request.bearer_auth(service.operator_token());
        match body {
            Value::Null => request,
            body => request.json(body),
        }
    }
}

#[tokio::test]
async fn no_acknowledged_write_of_any_kind_is_lost_or_doubled_when_the_process_is_killed() {
    let scene = Scene::new();
    let mut metered = scene.serve().await;
    let entitlement = json!({ "plan": "paid", "creditsPerMonth": 1_000_000_000 });
    let account = metered
        .account(json!({ "concurrency": 1000, "entitlement": entitlement }))
        .await;
    let key = metered.key(json!({ "account": account })).await;
    let counted = metered.key(json!({ "perMonth": 1_000_000 })).await;
    let known = Known::default();
    let mut expired = 0;
    let mut jobs = jobs::KnownJobs::default();
    let mut plugins = plugins::KnownPlugins::default();
    let mut customers = customers::KnownCustomers::default();
    let began = Instant::now();
    let rounds = rounds(3);
    for round in 0..rounds {
        let until = known.count.load(Ordering::Relaxed) + 300 + round * 37 % 300;
        let life = Life {
            metered: &metered,
            scene: &scene,
            known: &known,
            round,
            until,
        };
        let callers =
            (0..CREDIT_CALLERS).map(|caller| call(&metered, &key, &known, round, caller, until));
        tokio::join!(
            futures::future::join_all(callers),
            jobs.work(&life),
            plugins.work(&life),
            customers.work(&life, &counted),
        );
        drop(metered);
        metered = scene.serve().await;
        let entries = check(&metered, &account, &known).await;
        let lapsed = entries.values().filter(|(end, _)| end == "expired").count();
        check_names(&metered, &key, &known, lapsed - expired).await;
        expired = lapsed;
        jobs.check(&metered, &scene).await;
        plugins.check(&metered).await;
        customers.check(&metered).await;
    }
    let debits = known.told.lock().expect("no caller panicked").len();
    println!(
        "{rounds} rounds in {} s: {} answers, {debits} debits; {jobs}; {plugins}; {customers}; none lost, none doubled",
        began.elapsed().as_secs(),
        known.count.load(Ordering::Relaxed),
    );
}
