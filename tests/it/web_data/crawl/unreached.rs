//! Crawls whose first page nobody has an answer for, and pages of others that nobody has: what callers are told, what it costs,
//! and what the operator reads.

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::house::{CRAWLS, House, page};
use super::{SEED, line};
use crate::egress::private_names;
use crate::lab::{Pages, Reply};
use crate::support::{Answer, Options, Service, operator, workspace};

const BAD: (u16, &str) = (502, "UPSTREAM_BAD_RESPONSE");

/// A service for which the sites are the outside world, and that writes down how its jobs end.
async fn service(config: &str) -> Service {
    let config = format!("{config}\ndns_servers = [\"{}\"]\n", private_names());
    let manifest = Some(workspace().join("tests/programs/web-data.toml"));
    let arguments = vec!["--log".to_owned(), "debug".to_owned()];
    Service::start(Options {
        config,
        manifest,
        arguments,
        ..Options::default()
    })
    .await
}

fn key(service: &Service) -> String {
    service.issue(&[
        "--scope",
        "web:crawl",
        "--window",
        "web-data.start_crawl=1000",
    ])
}

async fn submit(service: &Service, key: &str, url: &str, id: &str) -> Answer {
    let body = json!({ "url": url, "requestId": id });
    Service::send(
        service
            .bare(Method::POST, CRAWLS)
            .bearer_auth(key)
            .json(&body),
    )
    .await
}

/// Waits until the log tells of an end of a job.
fn until_ended(service: &Service, end: &str) {
    service.log_until(|lines| {
        lines
            .iter()
            .any(|line| line["message"] == "a run of a job ended" && line["end"] == end)
    });
}

/// Waits until the operator can read why a page was not read.
fn until_told(service: &Service, why: &str) {
    let message = format!("a page of the crawl was not read: {why}");
    service.log_until(|lines| lines.iter().any(|line| line["message"] == *message));
}

/// A first page, and what is told of it.
const UNREACHED: [(&str, &str); 10] = [
    ("http://closed.test/", "could not be reached"),
    ("http://nowhere.test/", "could not be resolved"),
    ("http://nothing.rebound.test/", "could not be resolved"),
    (
        "http://site.test/inside",
        "to a destination that is not a public page",
    ),
    (
        "http://site.test/to?http://private.rebound.test/",
        "to a destination that is not a public page",
    ),
    (
        "http://site.test/to?http://site.test:8080/",
        "to a destination that is not a public page",
    ),
    (
        "http://site.test/to?mailto:me@site.test",
        "to a destination that is not a public page",
    ),
    (
        "http://site.test/to?http://me:word@site.test/",
        "to a destination that is not a public page",
    ),
    (
        "http://site.test/to?http://nowhere.test/",
        "could not be resolved",
    ),
    ("http://site.test/no-http", "sent an invalid response"),
];

#[tokio::test]
async fn a_crawl_whose_first_page_cannot_be_reached_is_refused_as_a_scrape_of_it_is_and_keeps_its_request_id()
 {
    let service = service(&crate::web_data::configuration()).await;
    let key = key(&service);
    for (url, message) in UNREACHED {
        let id = Uuid::now_v7().to_string();
        let refused = submit(&service, &key, url, &id).await;
        let told = refused.json()["error"]["message"]
            .as_str()
            .expect("a message")
            .to_owned();
        assert_eq!(
            refused.refusal(),
            (BAD.0, BAD.1.to_owned()),
            "{url}: {told}"
        );
        assert!(told.contains(message), "{url}: {told}");
        // It ran.
        let again = submit(&service, &key, "http://site.test/", &id).await;
        assert_eq!(
            again.refusal(),
            (409, "DUPLICATE_REQUEST".to_owned()),
            "{url}"
        );
        let scraped = service
            .post("/api/v1/web/scrape", &json!({ "url": url }))
            .await;
        assert_eq!(scraped.refusal(), (BAD.0, BAD.1.to_owned()), "{url}");
    }
    let around = submit(
        &service,
        &key,
        "http://site.test/around",
        &Uuid::now_v7().to_string(),
    )
    .await;
    assert_eq!(around.refusal(), (BAD.0, BAD.1.to_owned()));
    assert_eq!(
        around.json()["error"]["message"],
        "The page redirects too many times"
    );
    until_told(
        &service,
        "robots.txt could not be fetched: its server could not be reached, or its certificate is \
         not trusted",
    );
    until_told(
        &service,
        "robots.txt could not be fetched: its host name could not be resolved",
    );
    until_told(&service, "its host is not public");
    until_told(
        &service,
        "its server closed the connection early or sent an invalid response",
    );
}

#[tokio::test]
async fn no_answer_holds_an_address_of_a_private_network_that_a_site_names() {
    let service = service(&crate::web_data::configuration()).await;
    let key = key(&service);
    for to in [
        "http://10.0.0.1/secret",
        "http://private.rebound.test/secret",
        "http://[fd00::1]/secret",
    ] {
        for way in ["to", "refresh-to"] {
            let url = format!("http://site.test/{way}?{to}");
            let crawled = submit(&service, &key, &url, &Uuid::now_v7().to_string()).await;
            let body = json!({ "url": url });
            let (scraped, mapped) = (
                service.post("/api/v1/web/scrape", &body).await,
                service.post("/api/v1/web/map", &body).await,
            );
            if way == "to" {
                for answer in [&crawled, &scraped, &mapped] {
                    assert_eq!(answer.refusal(), (BAD.0, BAD.1.to_owned()), "{url}");
                }
            } else {
                assert_eq!(
                    (crawled.status, mapped.status),
                    (200, 200),
                    "{url}: {crawled:?} {mapped:?}"
                );
                assert_eq!(scraped.refusal(), (BAD.0, BAD.1.to_owned()), "{url}");
            }
            for answer in [crawled, scraped, mapped] {
                // Without what the caller wrote.
                let said = String::from_utf8_lossy(&answer.bytes).replace(&url, "");
                for part in ["10.0.0.1", "10.1.2.3", "fd00", "private.rebound", "secret"] {
                    assert!(!said.contains(part), "{url}: {answer:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn after_the_first_two_seconds_it_is_a_crawl_that_has_failed() {
    let pages = Pages::serve(&["lab.test"], |visit| match &*visit.path {
        "/robots.txt" => Reply::body(404, "text/plain", ""),
        "/late" => Reply::Hang,
        _ => Reply::redirect(302, "http://10.0.0.1/"),
    });
    let house = House {
        service: service(&pages.configuration()).await,
        pages,
    };
    let key = key(&house.service);
    house.pages.hold("/away");
    for (path, end) in [
        ("/away", "UPSTREAM_BAD_RESPONSE"),
        ("/late", "UPSTREAM_TIMEOUT"),
    ] {
        let (url, id) = (format!("http://lab.test{path}"), Uuid::now_v7().to_string());
        let job = house
            .begin(&key, json!({ "url": url, "requestId": id }))
            .await;
        house.pages.release("/away");
        until_ended(&house.service, end);
        house.until_idle().await;
        let read = house.read(&key, &job, 0).await;
        assert_eq!(
            (&read["status"], &read["documents"]),
            (&json!("failed"), &json!([])),
            "{read}"
        );
        assert_eq!(
            (&read["completed"], &read["nextOffset"]),
            (&json!(0), &Value::Null),
            "{read}"
        );
        let again = submit(&house.service, &key, SEED, &id).await;
        assert_eq!(
            again.refusal(),
            (409, "DUPLICATE_REQUEST".to_owned()),
            "{path}"
        );
    }
    until_told(&house.service, "timed out");
}

#[tokio::test]
async fn a_later_page_that_fails_is_a_document_without_content_and_the_log_says_why() {
    const LINKS: [&str; 6] = [
        "/hangs",
        "/closes",
        "/astray",
        "/busy",
        "/forbidden",
        "https://lab.test/unresolved",
    ];
    let pages = Pages::serve(&["lab.test"], |visit| match &*visit.path {
        "/robots.txt" => Reply::body(200, "text/plain", "User-agent: *\nDisallow: /forbidden"),
        "/" => page("home", &LINKS),
        "/hangs" => Reply::Hang,
        "/closes" => Reply::Close,
        "/astray" => Reply::redirect(302, "mailto:me@lab.test"),
        _ => Reply::body(503, "text/html", ""),
    });
    let house = House {
        service: service(&pages.configuration()).await,
        pages,
    };
    let key = key(&house.service);
    let job = house.begin(&key, json!({ "url": SEED })).await;
    house.until_idle().await;
    let shown: Vec<String> = house.documents(&key, &job).await.iter().map(line).collect();
    let wanted = [
        "/ 200",
        "/hangs - failed",
        "/closes - failed",
        "/astray 302 failed",
        "/busy 503 failed",
    ];
    assert_eq!(shown, wanted.map(|line| format!("lab.test{line}")));
    for why in [
        "timed out",
        "its server closed the connection early or sent an invalid response",
        "it redirects to a destination that cannot be a page",
        "its server failed with status 503",
        "robots.txt forbids it",
        "robots.txt could not be fetched: its host name could not be resolved",
    ] {
        until_told(&house.service, why);
    }
}

#[tokio::test]
async fn a_crawl_that_is_refused_costs_nothing() {
    let service = service(&crate::web_data::configuration()).await;
    let opened =
        json!({ "label": "payer", "entitlement": { "plan": "paid", "creditsPerMonth": 10 } });
    let opened = operator(&service, Method::POST, "/admin/v1/accounts", &opened)
        .await
        .json();
    let account = opened["data"]["id"].as_str().expect("an id").to_owned();
    let issued = json!({ "label": "payer", "scopes": ["web:crawl"], "account": account });
    let issued = operator(&service, Method::POST, "/admin/v1/keys", &issued)
        .await
        .json();
    let key = issued["data"]["key"]
        .as_str()
        .unwrap_or_else(|| panic!("no key: {issued}"))
        .to_owned();
    let balance = async || {
        let shown = operator(
            &service,
            Method::GET,
            &format!("/admin/v1/accounts/{account}"),
            &Value::Null,
        )
        .await;
        let credits = shown.json()["data"]["credits"].clone();
        (credits["spent"].as_u64(), credits["reserved"].as_u64())
    };
    let fresh = || Uuid::now_v7().to_string();
    assert_eq!(
        submit(&service, &key, "http://closed.test/", &fresh())
            .await
            .status,
        502
    );
    assert_eq!(balance().await, (Some(0), Some(0)));
    assert_eq!(
        submit(&service, &key, "http://site.test/", &fresh())
            .await
            .status,
        200
    );
    assert_eq!(balance().await, (Some(1), Some(0)));
}
