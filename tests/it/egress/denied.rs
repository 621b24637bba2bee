//! Requests that are not sent: what the guest is told, and that nothing is dialled.

use serde_json::json;

use super::{dials, fetch, outcome, sites, start};
use crate::metrics::{revision, scrape};
use crate::support::Service;

/// Which of the three a URL is.
const DENIED: [(&str, &str); 16] = [
    ("not_granted", "http://api.fetches.test:8080/other/"),
    (
        "not_granted",
        "http://api.fetches.test:8080/granted/..%2fother/",
    ),
    ("not_public", "http://2130706433/"),
    ("not_public", "http://[::ffff:127.0.0.1]/"),
    ("not_public", "http://localhost/"),
    ("not_public", "http://169.254.169.254/latest/meta-data/"),
    ("not_acceptable", "file:///etc/passwd"),
    ("not_acceptable", "http://me:word@site.test/"),
    ("not_acceptable", "http://ungranted.test:8081/"),
    ("not_acceptable", "http://site.test:8080/"),
    ("not_public", "http://loopback.rebound.test/"),
    ("not_public", "http://private.rebound.test/"),
    ("not_public", "http://mixed.rebound.test/"),
    ("not_public", "http://six.rebound.test/"),
    ("not_public", "http://mapped.rebound.test/"),
    ("not_public", "http://both.rebound.test/"),
];

async fn denials_of(service: &Service) -> f64 {
    let metrics = scrape(service.data.path()).await;
    let revision = revision(service.data.path(), "fetches").await;
    let series = [("plugin", "fetches"), ("revision", revision.as_str())];
    metrics.value("switchbay_plugin_denials_total", &series)
}

#[tokio::test]
async fn a_denial_says_which_of_three_it_is_and_nothing_is_dialled() {
    let service = start().await;
    let own = format!("http://{}/", sites().ip());
    let denied = DENIED.map(|(expected, url)| (expected, json!({ "url": url })));
    let more = [
        (
            "not_granted",
            json!({ "url": "http://site.test/", "method": "DELETE" }),
        ),
        ("not_public", json!({ "url": own })),
    ];
    let denials = denied.len() + more.len();
    for (expected, input) in denied.into_iter().chain(more) {
        let told = fetch(&service, input.clone()).await;
        assert_eq!(told["outcome"], expected, "{input}: {told}");
        let text = told["told"].as_str().expect("text");
        assert!(!text.is_empty() && !text.contains("word"), "{told}");
        // What a name leads to is nobody's to find out.
        assert!(
            !input["url"]
                .as_str()
                .is_some_and(|url| url.contains("rebound"))
                || !text.contains("1"),
            "{told}"
        );
    }
    assert_eq!(dials(&service).await, 0.0);
    assert_eq!(
        denials_of(&service).await,
        f64::from(u32::try_from(denials).expect("a few"))
    );
}

#[tokio::test]
async fn what_is_no_request_or_has_no_address_is_told_and_nothing_is_dialled() {
    let service = start().await;
    for (expected, name) in [
        ("unresolved", "nothing.rebound.test"),
        ("unresolved", "no.such.name.test"),
    ] {
        assert_eq!(
            outcome(&service, json!({ "url": format!("https://{name}/") })).await,
            expected,
            "{name}"
        );
    }
    for headers in [
        "Host: other.test",
        "Content-Length: 5",
        "Connection: close",
        "Accept-Encoding: br",
        "no name: x",
    ] {
        let refused = outcome(
            &service,
            json!({ "url": "http://site.test/", "headers": headers }),
        )
        .await;
        assert_eq!(refused, "invalid_request", "{headers}");
    }
    assert_eq!(
        (dials(&service).await, denials_of(&service).await),
        (0.0, 0.0)
    );
    assert_eq!(
        outcome(&service, json!({ "url": "http://closed.test/" })).await,
        "unreachable"
    );
    assert_eq!(dials(&service).await, 1.0);
}
