//! Destinations that `connect_to` leads into the operator's own network: no plugin reaches one by `public` or a wildcard.

use std::sync::Arc;

use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;

use super::{dials, fetch, private_names, proxied, sites};
use crate::lab::public_row;
use crate::support::{Options, Service, Wire, build, built};

/// A folder of a manifest with one entry, which can be written anew while the service runs.
struct Entry {
    folder: Arc<TempDir>,
    name: &'static str,
    /// What it does not run without.
    wanted: &'static [&'static str],
}

impl Entry {
    fn of(name: &'static str, wanted: &'static [&'static str]) -> Self {
        build();
        let entry = Self {
            folder: Arc::new(TempDir::new().expect("a folder")),
            name,
            wanted,
        };
        std::fs::write(entry.folder.path().join("guest.wasm"), built(name)).expect("it is written");
        entry
    }

    fn grant(&self, grants: &[&str]) {
        let (name, grants) = (self.name, [self.wanted, grants].concat());
        let entry = format!(
            "[[plugin]]\nname = \"{name}\"\nsource = \"guest.wasm\"\ngrants = {grants:?}\n"
        );
        std::fs::write(self.folder.path().join("manifest.toml"), entry).expect("it is written");
    }

    async fn follow(&self, service: &Service, grants: &[&str]) {
        self.grant(grants);
        let followed = service
            .admin(Method::POST, "/admin/v1/manifest/follow", None)
            .await;
        assert_eq!(followed.status, 200, "{followed:?}");
    }

    async fn start(&self, grants: &[&str]) -> Service {
        self.grant(grants);
        let (site, names) = (sites(), private_names());
        let rows = [
            "inner.lab.test:80",
            "below.inner.lab.test:80",
            "inner.lab.test:443",
            "inner.lab.test:43",
        ];
        let mut rows: Vec<String> = rows
            .iter()
            .map(|host| format!("{host:?} = \"{site}\""))
            .collect();
        rows.push(format!(
            "\"told.lab.test:80\" = {{ to = \"{site}\", public = false }}"
        ));
        rows.push(public_row("site.test:80", site));
        let config = format!(
            "[egress]\ndns_servers = [\"{names}\"]\nconnect_to = {{ {} }}",
            rows.join(", ")
        );
        let manifest = Some(self.folder.path().join("manifest.toml"));
        let data = Some(Arc::clone(&self.folder));
        Service::start(Options {
            config,
            manifest,
            data,
            ..Options::default()
        })
        .await
    }
}

const PUBLIC: &str = "http:GET,POST public";
const FETCHES: [&str; 2] = [PUBLIC, "http:GET http://api.fetches.test:8080/granted/"];
const ASKS: [&str; 2] = ["line-query:*:43", "line-query:named.test:4343"];
const REFUSED: [&str; 4] = [
    "http://inner.lab.test/",
    "https://inner.lab.test:80/",
    "http://below.inner.lab.test/",
    "http://told.lab.test/",
];

#[tokio::test]
async fn the_operators_network_is_reached_by_a_grant_that_names_the_host_and_by_no_other() {
    let entry = Entry::of("fetches", &FETCHES);
    let service = entry.start(&[]).await;
    for url in REFUSED {
        let told = fetch(&service, json!({ "url": url })).await;
        assert_eq!(told["outcome"], "not_public", "{url}: {told}");
        // Like any name of a private network: nobody finds out that the operator has a row for it.
        assert!(
            told["told"]
                .as_str()
                .is_some_and(|told| told.ends_with("resolves to an address that is not public"))
        );
        let there = fetch(
            &service,
            json!({ "url": format!("http://site.test/redirect?{url}"), "redirects": 1 }),
        )
        .await;
        assert_eq!(there["outcome"], "redirect_denied", "{url}: {there}");
    }
    assert_eq!(
        dials(&service).await,
        4.0,
        "the public site alone was dialled"
    );

    let named = "http:GET http://inner.lab.test/granted/";
    entry
        .follow(&service, &[named, "http:GET http://*.inner.lab.test/"])
        .await;
    let outcome = async |input| fetch(&service, input).await["outcome"].clone();
    assert_eq!(
        outcome(json!({ "url": "http://inner.lab.test/granted/x" })).await,
        "ok"
    );
    let there = json!({ "url": "http://site.test/redirect?http://inner.lab.test/granted/x", "redirects": 1 });
    assert_eq!(outcome(there).await, "ok");
    // The name holds as far as its atom goes, and a wildcard is no name.
    for (url, method) in [
        ("http://inner.lab.test/other/", "GET"),
        ("http://inner.lab.test/granted/x", "POST"),
        ("https://inner.lab.test/granted/x", "GET"),
        ("http://below.inner.lab.test/", "GET"),
    ] {
        assert_eq!(
            outcome(json!({ "url": url, "method": method })).await,
            "not_public",
            "{method} {url}"
        );
    }
    let shown = service
        .admin(Method::GET, "/admin/v1/plugins/fetches", None)
        .await
        .json();
    let rights = shown["data"]["rights"].as_array().expect("rights").clone();
    assert!(
        rights.contains(&json!(named)) && rights.contains(&json!(PUBLIC)),
        "{shown}"
    );

    entry.follow(&service, &[]).await;
    assert_eq!(
        outcome(json!({ "url": "http://inner.lab.test/granted/x" })).await,
        "not_public"
    );
}

#[tokio::test]
async fn the_proxy_leads_into_the_operators_network_by_the_same_rule() {
    let entry = Entry::of("fetches", &FETCHES);
    let service = entry.start(&[]).await;
    let asked = [
        "GET http://inner.lab.test/ HTTP/1.1\r\nHost: inner.lab.test\r\n",
        "CONNECT inner.lab.test:443 HTTP/1.1\r\nHost: inner.lab.test:443\r\n",
        "CONNECT inner.lab.test:80 HTTP/1.1\r\nHost: inner.lab.test:80\r\n",
    ];
    let answers = async || {
        let lent = proxied::lend(&service, 60).await;
        let mut answers = Vec::new();
        for head in asked {
            let head = format!(
                "{head}Proxy-Authorization: {}\r\nConnection: close\r\n\r\n",
                lent.authorization
            );
            let mut wire = Wire::connect(&lent.proxy).await;
            wire.send(head).await;
            answers.push(wire.answer().await.status);
        }
        answers
    };
    assert_eq!(answers().await, [403, 403, 403]);
    assert_eq!(dials(&service).await, 0.0);
    entry
        .follow(
            &service,
            &[
                "http:GET https://inner.lab.test/",
                "http:GET http://inner.lab.test/",
            ],
        )
        .await;
    assert_eq!(
        answers().await,
        [200, 200, 403],
        "nothing in the clear opens a tunnel"
    );
}

#[tokio::test]
async fn a_line_goes_into_the_operators_network_by_the_same_rule() {
    let entry = Entry::of("asks", &ASKS);
    let service = entry.start(&[]).await;
    let input = json!({ "host": "inner.lab.test", "line": "GET / HTTP/1.0", "idle_ms": 300 });
    let outcome = async || {
        let answer = service.post("/api/v1/test/ask", &input).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["data"]["outcome"].clone()
    };
    assert_eq!(outcome().await, "not_public");
    assert_eq!(dials(&service).await, 0.0);
    entry
        .follow(&service, &["line-query:inner.lab.test:43"])
        .await;
    // It waits for the rest of what it takes for a request.
    assert_eq!(outcome().await, "late");
    assert_eq!(dials(&service).await, 1.0);
}

#[tokio::test]
async fn each_row_is_told_at_every_start_and_a_public_one_loudly() {
    let service = Entry::of("fetches", &FETCHES).start(&[]).await;
    let lines = service.log_until(|lines| lines.iter().any(|line| line["message"] == "serving"));
    let rows = |level: &str| -> Vec<String> {
        let told = |line: &&serde_json::Value| {
            line["level"] == level
                && line["message"]
                    .as_str()
                    .is_some_and(|told| told.starts_with("egress.connect_to: "))
        };
        lines
            .iter()
            .filter(told)
            .map(|line| format!("{}:{}", line["host"].as_str().unwrap_or(""), line["port"]))
            .collect()
    };
    assert_eq!(rows("WARN"), ["site.test:80"]);
    assert_eq!(rows("INFO").len(), 5);
    let settings = service
        .admin(Method::GET, "/admin/v1/config", None)
        .await
        .json();
    let told = |row: &str| settings["data"]["egress"]["connect_to"][row].clone();
    let site = sites().to_string();
    assert_eq!(told("site.test:80"), json!({ "to": site, "public": true }));
    assert_eq!(
        told("inner.lab.test:80"),
        json!({ "to": site, "public": false })
    );
}
