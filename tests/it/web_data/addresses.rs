//! The page that a caller names: one rule for scrapes, maps and crawls.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::lab::{Pages, Reply};
use crate::support::{Answer, Options, Service, workspace};

const OPERATIONS: [&str; 3] = [
    "/api/v1/web/scrape",
    "/api/v1/web/map",
    "/api/v1/web/crawls",
];

async fn service(pages: &Pages) -> Service {
    let manifest = Some(workspace().join("tests/programs/web-data.toml"));
    Service::start(Options {
        config: pages.configuration(),
        manifest,
        ..Options::default()
    })
    .await
}

fn sites() -> Pages {
    Pages::serve(
        &["lab.test", "www.lab.test", "xn--bcher-kva.test"],
        |visit| match &*visit.path {
            "/robots.txt" => Reply::body(404, "text/plain", ""),
            "/dotted" => Reply::body(
                200,
                "text/html",
                "<a href='http://lab.test./b#c'>b</a><a href=/b>b again</a><p>Dots",
            ),
            "/dots" => Reply::redirect(302, "http://www.lab.test./there"),
            path if path.starts_with("/far/") && visit.host == "lab.test" => {
                Reply::redirect(301, format!("http://www.lab.test{path}"))
            }
            path => Reply::body(
                200,
                "text/html",
                format!("<title>A page</title><p>This is {}", path.len()),
            ),
        },
    )
}

/// What each of the operations answers, each by a credential with room for it.
async fn all(service: &Service, key: &str, url: &str) -> [Answer; 3] {
    let asked = async |path: &str| {
        let mut body = json!({ "url": url });
        if path.ends_with("crawls") {
            body["requestId"] = json!(Uuid::now_v7().to_string());
        }
        Service::send(
            service
                .bare(reqwest::Method::POST, path)
                .bearer_auth(key)
                .json(&body),
        )
        .await
    };
    [
        asked(OPERATIONS[0]).await,
        asked(OPERATIONS[1]).await,
        asked(OPERATIONS[2]).await,
    ]
}

fn key(service: &Service) -> String {
    let windows = ["scrape", "map", "start_crawl"].map(|name| format!("web-data.{name}=1000"));
    let raised: Vec<&str> = windows
        .iter()
        .flat_map(|window| ["--window", window])
        .collect();
    service.issue(&[&["--all-scopes"], &raised[..]].concat())
}

/// The addresses that three successes tell of the page that was named.
fn told([scraped, mapped, crawled]: &[Answer; 3]) -> [Value; 3] {
    for answer in [scraped, mapped, crawled] {
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    [
        scraped.json()["data"]["document"]["url"].clone(),
        mapped.json()["data"]["url"].clone(),
        crawled.json()["data"]["documents"][0]["url"].clone(),
    ]
}

#[tokio::test]
async fn its_length_is_measured_as_it_was_written() {
    let pages = sites();
    let service = service(&pages).await;
    let key = key(&service);
    for (letter, encoded) in [("a", "a"), ("語", "%E8%AA%9E"), ("🙂", "%F0%9F%99%82")] {
        let start = "http://lab.test/";
        let url = format!("{start}{}", letter.repeat(2048 - start.len()));
        let expected = json!(format!("{start}{}", encoded.repeat(2048 - start.len())));
        let answers = all(&service, &key, &url).await;
        assert_eq!(
            told(&answers),
            [expected.clone(), expected.clone(), expected],
            "{letter}"
        );
        for answer in all(&service, &key, &format!("{url}{letter}")).await {
            assert_eq!(
                answer.refusal(),
                (400, "VALIDATION_ERROR".to_owned()),
                "{letter}"
            );
            let data = &answer.json()["data"];
            assert_eq!(
                (&data["field"], &data["max"]),
                (&json!("url"), &json!(2048)),
                "{letter}"
            );
        }
    }
    // Where its server says that it is instead may be as long.
    let far = format!("http://lab.test/far/{}", "語".repeat(1000));
    for url in all(&service, &key, &far)
        .await
        .map(|answer| match answer.json()["data"].clone() {
            data if data["document"].is_object() => data["document"]["url"].clone(),
            data if data["links"].is_array() => data["links"][0]["url"].clone(),
            data => data["documents"][0]["url"].clone(),
        })
    {
        assert_eq!(
            url,
            json!(format!(
                "http://www.lab.test/far/{}",
                "%E8%AA%9E".repeat(1000)
            ))
        );
    }
}

#[tokio::test]
async fn every_operation_writes_it_in_one_form() {
    let pages = sites();
    let service = service(&pages).await;
    let key = key(&service);
    for (written, expected) in [
        (
            "http://lab.test/ä%20b?ü#part".to_owned(),
            "http://lab.test/%C3%A4%20b?%C3%BC",
        ),
        (
            " HTTP://LAB.test:80/./x/../y ".to_owned(),
            "http://lab.test/y",
        ),
        (
            "http://bücher.test/".to_owned(),
            "http://xn--bcher-kva.test/",
        ),
        // A dot at the end says that the name is absolute.
        ("http://lab.test./y".to_owned(), "http://lab.test/y"),
    ] {
        let answers = all(&service, &key, &written).await;
        assert_eq!(
            told(&answers),
            [(); 3].map(|()| json!(expected)),
            "{written}"
        );
    }
    let hosts: Vec<String> = pages.visits().into_iter().map(|visit| visit.host).collect();
    assert!(hosts.iter().all(|host| !host.ends_with('.')), "{hosts:?}");
}

#[tokio::test]
async fn names_that_sites_write_with_a_dot_at_their_end_are_the_same() {
    let pages = sites();
    let service = service(&pages).await;
    let key = key(&service);
    let [_, mapped, crawled] = all(&service, &key, "http://lab.test/dotted").await;
    let urls = |list: &Value| {
        list.as_array()
            .expect("a list")
            .iter()
            .map(|one| one["url"].clone())
            .collect::<Vec<_>>()
    };
    let expected = ["http://lab.test/dotted", "http://lab.test/b"].map(Value::from);
    assert_eq!(urls(&mapped.json()["data"]["links"]), expected);
    assert_eq!(urls(&crawled.json()["data"]["documents"]), expected);
    let [_, mapped, crawled] = all(&service, &key, "http://lab.test/dots").await;
    let expected = ["http://www.lab.test/there"].map(Value::from);
    assert_eq!(urls(&mapped.json()["data"]["links"]), expected);
    assert_eq!(urls(&crawled.json()["data"]["documents"]), expected);
}

#[tokio::test]
async fn what_is_wrong_with_it_is_told_by_its_rule_and_without_credentials() {
    let pages = sites();
    let service = service(&pages).await;
    let key = key(&service);
    for (url, expected) in [
        (
            "ftp://lab.test/",
            "`url` must have the scheme http or https, not `ftp`",
        ),
        (
            "lab.test",
            "`url` must be an absolute http or https URL, such as `https://example.com/`",
        ),
        (
            "http://me:s3cret@lab.test/",
            "`url` must not contain credentials; remove the part before the `@`",
        ),
        (
            "http://s3cret@lab.test:8080/",
            "`url` must not contain credentials; remove the part before the `@`",
        ),
        (
            "http://lab.test:8080/",
            "`url` must have the port 80 or 443, not 8080",
        ),
        ("https:///x", "`url` must have a host"),
        (
            "http://lab.test/a b",
            "`url` must not contain white space or control characters",
        ),
        (
            "http://1.2.3.4.5/",
            "`url` is not a valid URL: invalid IPv4 address",
        ),
        (
            "http://lab..test/",
            "`url` cannot be fetched: the URL has the host `lab..test`, which is not a valid host name",
        ),
        (
            "http://localhost/",
            "`url` must be a public http or https address: the host `localhost` is never public",
        ),
        (
            "http://127.0.0.1/",
            "`url` must be a public http or https address: the address 127.0.0.1 is not public: it \
             is loopback",
        ),
    ] {
        for answer in all(&service, &key, url).await {
            assert_eq!(
                answer.refusal(),
                (400, "VALIDATION_ERROR".to_owned()),
                "{url}"
            );
            assert_eq!(answer.json()["error"]["message"], expected, "{url}");
            assert!(
                !String::from_utf8_lossy(&answer.bytes).contains("s3cret"),
                "{url}"
            );
        }
    }
    assert_eq!(pages.visits().len(), 0);
}
