//! Secrets that the operator binds: where they go, where they do not, and that nobody reads one.

use serde_json::{Value, json};

use super::{dials, fetch, outcome, start, start_logging};
use crate::startup::failure_in;
use crate::support::{LAB_TOKEN, Service, build, workspace};

/// As a query holds it.
const ENCODED: &str = "lab%2Ftoken%260123456789";

/// The head that a site was sent, as it was sent: the site says it backwards.
async fn sent(service: &Service, input: Value) -> String {
    let told = fetch(service, input.clone()).await;
    assert_eq!(told["outcome"], "ok", "{input}: {told}");
    told["text"].as_str().expect("text").chars().rev().collect()
}

#[tokio::test]
async fn a_bound_secret_is_added_where_it_is_bound_and_nowhere_else() {
    let service = start().await;
    let to = |url: &str| sent(&service, json!({ "url": url, "redirects": 4 }));
    let query = to("http://site.test/bound/reversed?a=b%20c").await;
    let line = format!("GET /bound/reversed?a=b%20c&access_token={ENCODED} HTTP/1.1\r\n");
    assert!(query.starts_with(&line), "{query}");
    let header = to("http://api.fetches.test:8080/granted/reversed").await;
    assert!(
        header.contains(&format!("\r\nx-api-key: {LAB_TOKEN}\r\n")),
        "{header}"
    );
    assert!(!header.contains("access_token"), "{header}");
    let home = to("http://site.test/bound/redirect?/bound/reversed").await;
    assert!(
        home.starts_with(&format!("GET /bound/reversed?access_token={ENCODED} ")),
        "{home}"
    );

    for url in [
        "http://site.test/reversed",
        "http://site.test/boundless/../reversed",
        "http://other.test/bound/reversed",
        "http://site.test/bound/redirect?/reversed",
        "http://site.test/bound/redirect?http://other.test/reversed",
        "http://site.test/bound/redirect?http://other.test/bound/reversed",
        // Whoever left does not come home again.
        "http://site.test/bound/redirect?http://other.test/redirect%3Fhttp://site.test/bound/reversed",
        "http://other.test/redirect?http://site.test/bound/reversed",
    ] {
        let head = to(url).await;
        assert!(!head.contains("token"), "{url}: {head}");
    }
}

#[tokio::test]
async fn nobody_reads_a_bound_secret_or_puts_another_in_its_place() {
    let service = start_logging("trace").await;
    let echo = fetch(&service, json!({ "url": "http://site.test/bound/echo" })).await;
    let text = echo["text"].as_str().expect("text");
    assert!(
        text.starts_with("GET /bound/echo?access_token=[secret] HTTP/1.1\r\n"),
        "{text}"
    );
    assert_eq!(echo["url"], "http://site.test/bound/echo");
    let located = fetch(&service, json!({ "url": "http://site.test/bound/leaks" })).await;
    assert_eq!(
        located["headers"],
        "location: http://other.test/?/bound/leaks?access_token=[secret]"
    );
    let leaked = fetch(
        &service,
        json!({ "url": "http://site.test/bound/leaks", "redirects": 1 }),
    )
    .await;
    assert_eq!(leaked["outcome"], "redirect_denied");
    assert_eq!(
        leaked["told"],
        "not_acceptable: the URL carries a secret to another destination"
    );

    let before = dials(&service).await;
    for input in [
        json!({ "url": "http://site.test/bound/echo?access_token=mine" }),
        json!({ "url": "http://site.test/bound/echo?access%5Ftoken=mine" }),
        json!({ "url": "http://api.fetches.test:8080/granted/echo", "headers": "X-API-Key: mine" }),
    ] {
        assert_eq!(
            outcome(&service, input.clone()).await,
            "invalid_request",
            "{input}"
        );
    }
    assert_eq!(dials(&service).await, before);
    let other = json!({ "url": "http://site.test/bound/redirect?/bound/echo%3Faccess_token=mine", "redirects": 1 });
    assert_eq!(outcome(&service, other).await, "redirect_denied");

    // A name that is free where a request begins is not free where it is sent.
    let later = json!({ "url": "http://site.test/redirect?/bound/echo", "headers": "X-Bound: mine", "redirects": 1 });
    assert_eq!(outcome(&service, later).await, "redirect_denied");

    for line in service.stop() {
        assert!(
            !line.contains(LAB_TOKEN) && !line.contains(ENCODED),
            "{line}"
        );
    }
}

#[tokio::test]
async fn a_plugin_whose_secret_is_not_there_is_not_brought_in() {
    build();
    let programs = workspace().join("tests/programs");
    let written = std::fs::read_to_string(programs.join("fetches.toml")).expect("the manifest");
    let source = format!("source = \"{}\"", programs.join("fetches").display());
    let manifest = written
        .replace("LAB_TOKEN", "NO_SUCH_TOKEN")
        .replace("source = \"fetches\"", &source);
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let file = folder.path().join("plugin-manifest.toml");
    std::fs::write(&file, manifest).expect("it is written");
    let line = failure_in(folder.path(), &["--manifest", &file.to_string_lossy()]).await;
    let told = "plugin `fetches`: its entry binds the secret `NO_SUCH_TOKEN`, which is not set in the environment of \
        this process";
    assert_eq!(line, told);
}
