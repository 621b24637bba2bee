//! Crawls of scripted sites: which pages they show and in what order, and what they are answered with.

mod at_once;
mod house;
mod judged;
mod lives;
mod manners;
mod refusals;
mod unreached;

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use self::house::{CRAWLS, House, expected, line, missing, page, tree_site};
use crate::lab::{Reply, Visit};
use crate::support::{Post, Service};

const SEED: &str = "http://lab.test/";

/// As the outline of a crawl that went well.
fn good(paths: &[String]) -> Vec<String> {
    paths
        .iter()
        .map(|path| format!("lab.test{path} 200"))
        .collect()
}

#[tokio::test]
async fn a_crawl_shows_exactly_as_many_pages_as_it_may_breadth_first_and_always_in_the_same_order()
{
    let house = House::start(tree_site).await;
    for limit in [1, 2, 5, 6, 13, 19, 20] {
        let body = json!({ "url": SEED, "limit": limit, "maxDepth": 3 });
        assert_eq!(
            house.outline(body).await,
            good(&expected(limit, 3, &[])),
            "{limit}"
        );
    }
    // No page was asked for that is not shown, and none twice.
    let body = json!({ "url": SEED, "limit": 7, "maxDepth": 3 });
    let before = house.pages.asked("/").len();
    assert_eq!(house.outline(body).await.len(), 7);
    let mut asked = house.pages.asked("/")[before..].to_vec();
    asked.sort_unstable();
    let mut wanted = [expected(7, 3, &[]), vec!["/robots.txt".to_owned()]].concat();
    wanted.sort_unstable();
    assert_eq!(asked, wanted);
    assert!(
        house
            .pages
            .visits()
            .iter()
            .all(|visit| visit.host == "lab.test")
    );
    assert!(house.pages.most_at_once("lab.test") <= 2);
}

#[tokio::test]
async fn depth_counts_links_from_the_first_page() {
    let house = House::start(tree_site).await;
    for (depth, pages) in [(1, 5), (2, 13), (3, 20)] {
        let body = json!({ "url": SEED, "limit": 20, "maxDepth": depth });
        assert_eq!(
            house.outline(body).await,
            good(&expected(pages, depth, &[])),
            "{depth}"
        );
    }
    // Ten pages and one link, where nothing else is said.
    assert_eq!(
        house.outline(json!({ "url": SEED })).await,
        good(&expected(10, 1, &[]))
    );
    let below = house
        .outline(json!({ "url": "http://lab.test/4", "limit": 3 }))
        .await;
    assert_eq!(
        below,
        ["lab.test/4 200", "lab.test/ 200", "lab.test/4/1 200"]
    );
}

#[tokio::test]
async fn a_crawl_completes_with_a_fifth_of_its_requests_failing_and_shows_the_pages_that_failed() {
    const FAILING: [&str; 4] = ["/2/2", "/3", "/1/2/1", "/4/2"];
    let house = House::start(|visit| match &*visit.path {
        "/2/2" => Reply::body(503, "text/html", "<p>Nobody is in"),
        "/3" => Reply::body(500, "text/html", "<p>Something <a href=/1>broke</a>"),
        "/1/2/1" => Reply::Close,
        "/4/2" => Reply::Hang,
        _ => tree_site(visit),
    })
    .await;
    let outline = house
        .outline(json!({ "url": SEED, "limit": 20, "maxDepth": 3 }))
        .await;
    let told = |path: String| match &*path {
        "/2/2" => "lab.test/2/2 503 failed".to_owned(),
        "/3" => "lab.test/3 500 failed".to_owned(),
        "/1/2/1" | "/4/2" => format!("lab.test{path} - failed"),
        _ => format!("lab.test{path} 200"),
    };
    let wanted: Vec<String> = expected(20, 3, &FAILING).into_iter().map(told).collect();
    assert_eq!(outline, wanted);
    for path in FAILING {
        assert_eq!(
            house
                .pages
                .asked(path)
                .iter()
                .filter(|asked| *asked == path)
                .count(),
            1,
            "{path}"
        );
    }
}

#[tokio::test]
async fn the_first_page_is_shown_whatever_its_server_answers() {
    let house = House::start(|visit| match &*visit.path {
        "/broken" => Reply::body(500, "text/html", "<p>broken"),
        "/busy" => Reply::body(429, "text/html", "<p>busy"),
        "/missing" => missing(),
        "/image" => Reply::body(200, "image/png", "\u{89}PNG"),
        _ => missing(),
    })
    .await;
    for (path, wanted) in [
        ("/broken", "lab.test/broken 500 failed"),
        ("/busy", "lab.test/busy 429 failed"),
        ("/missing", "lab.test/missing 404"),
        ("/image", "lab.test/image 200 failed"),
    ] {
        let outline = house
            .outline(json!({ "url": format!("http://lab.test{path}"), "maxDepth": 3 }))
            .await;
        assert_eq!(outline, [wanted], "{path}");
    }
}

#[tokio::test]
async fn pages_that_are_elsewhere_are_shown_once_where_they_are() {
    let house = House::start(|visit| match (&*visit.host, &*visit.path) {
        ("lab.test", "/") => page(
            "home",
            &[
                "/old", "/same", "/off", "/on", "/stub", "/away", "/a", "/b", "/two",
            ],
        ),
        ("lab.test", "/old") => Reply::redirect(301, "/new"),
        ("lab.test", "/same") => Reply::redirect(302, "/a"),
        ("lab.test", "/off") => Reply::redirect(301, "http://away.test/"),
        ("lab.test", "/on") => Reply::redirect(308, "http://www.lab.test/on"),
        ("lab.test", "/stub") => Reply::body(
            200,
            "text/html",
            "<meta http-equiv=refresh content='0; url=/next'>",
        ),
        ("lab.test", "/away") => Reply::body(
            200,
            "text/html",
            "<meta http-equiv=refresh content='0; url=//away.test/'><p>We moved",
        ),
        // Each says that it is the other.
        ("lab.test", "/a") => Reply::body(
            200,
            "text/html",
            "<link rel=canonical href=/b><p>The page a",
        ),
        ("lab.test", "/b") => Reply::body(
            200,
            "text/html",
            "<link rel=canonical href=/a><p>The page b",
        ),
        ("lab.test", "/two") => Reply::redirect(307, "/new"),
        ("lab.test" | "www.lab.test", "/new" | "/on" | "/next") => page("there", &["/"]),
        _ => missing(),
    })
    .await;
    let paths = ["", "new", "on", "next", "away", "a", "b"];
    let wanted = paths.map(|path| {
        format!(
            "{}lab.test/{path} 200",
            if path == "on" { "www." } else { "" }
        )
    });
    assert_eq!(
        house
            .outline(json!({ "url": SEED, "limit": 20, "maxDepth": 3 }))
            .await,
        wanted
    );
    assert!(
        house
            .pages
            .visits()
            .iter()
            .all(|visit| visit.host != "away.test")
    );
}

#[tokio::test]
async fn a_crawl_is_of_the_site_that_its_first_page_is_on_in_the_end() {
    let house = House::start(|visit| match (&*visit.host, &*visit.path) {
        ("lab.test", "/") => Reply::redirect(301, "http://www.lab.test/"),
        ("www.lab.test", "/") => page(
            "home",
            &[
                "/a",
                "http://lab.test/b",
                "http://sub.lab.test/",
                "http://away.test/",
            ],
        ),
        ("lab.test", "/moved") => Reply::redirect(301, "http://away.test/home"),
        ("away.test", "/home") => page("home", &["/a", "http://www.away.test/b", SEED]),
        (_, "/a" | "/b") => page("a page", &["/"]),
        _ => missing(),
    })
    .await;
    let outline = house.outline(json!({ "url": SEED })).await;
    assert_eq!(
        outline,
        ["www.lab.test/ 200", "www.lab.test/a 200", "lab.test/b 200"]
    );
    let outline = house
        .outline(json!({ "url": "http://lab.test/moved" }))
        .await;
    assert_eq!(
        outline,
        [
            "away.test/home 200",
            "away.test/a 200",
            "www.away.test/b 200"
        ]
    );
}

/// Links that never end, by the page and from page to page.
fn trap(visit: &Visit) -> Reply {
    match &*visit.path {
        "/robots.txt" => missing(),
        path => {
            let below: Vec<String> = (0..300)
                .map(|number| format!("{path}/{number}?from={number}"))
                .collect();
            page("a trap", &below)
        }
    }
}

#[tokio::test]
async fn endless_links_end_at_the_limit() {
    let house = House::start(trap).await;
    let outline = house
        .outline(json!({ "url": "http://lab.test/in", "limit": 20, "maxDepth": 3 }))
        .await;
    let wanted: Vec<String> = (0..19)
        .map(|number| format!("lab.test/in/{number}?from={number} 200"))
        .collect();
    assert_eq!(
        outline,
        [vec!["lab.test/in 200".to_owned()], wanted].concat()
    );
}

#[tokio::test]
async fn endless_redirects_end_too() {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let house = House::start(|visit| match &*visit.path {
        "/" => page(
            "home",
            &(0..300)
                .map(|number| format!("/r/{number}"))
                .collect::<Vec<_>>(),
        ),
        "/robots.txt" => missing(),
        _ => Reply::redirect(
            302,
            format!("/r/again/{}", COUNT.fetch_add(1, Ordering::Relaxed)),
        ),
    })
    .await;
    assert_eq!(
        house.outline(json!({ "url": SEED, "limit": 20 })).await,
        ["lab.test/ 200"]
    );
    let asked = house.pages.asked("/").len();
    assert!(
        (101..=102).contains(&asked),
        "a hundred pages, a robots.txt, and perhaps one that was asked for ahead: {asked}"
    );
}

#[tokio::test]
async fn a_crawl_that_is_soon_done_is_answered_whole() {
    let house = House::start(tree_site).await;
    let key = house.key();
    let answer = house.submit(&key, json!({ "url": SEED, "limit": 2 })).await;
    let data = answer.json()["data"].clone();
    assert_eq!(
        (answer.status, answer.header("cache-control")),
        (200, "private, no-store"),
        "{data}"
    );
    let documents = data["documents"].as_array().expect("documents");
    assert_eq!(
        documents.iter().map(line).collect::<Vec<_>>(),
        ["lab.test/ 200", "lab.test/1 200"]
    );
    assert_eq!(documents[1]["title"], "/1");
    let rest = json!({ "id": null, "status": "completed", "total": 2, "completed": 2, "documents": documents,
        "nextOffset": null, "expiresAt": null });
    assert_eq!(data, rest);
}

#[tokio::test]
async fn a_crawl_that_takes_longer_is_pending_and_is_read_by_the_page() {
    let house = House::start(tree_site).await;
    let key = house.key();
    house.pages.hold("/1");
    let answer = house
        .submit(&key, json!({ "url": SEED, "limit": 20, "maxDepth": 3 }))
        .await;
    let data = answer.json()["data"].clone();
    let (id, expires) = (
        data["id"].as_str().expect("an id"),
        data["expiresAt"].as_str().expect("a time"),
    );
    assert_eq!(
        (answer.status, answer.header("cache-control")),
        (202, "private, no-store")
    );
    let pending = json!({ "id": id, "status": "pending", "total": null, "completed": 0, "documents": [],
        "nextOffset": null, "expiresAt": expires });
    assert_eq!(data, pending);
    let expires_at =
        time::OffsetDateTime::parse(expires, &time::format_description::well_known::Rfc3339);
    let left = expires_at.expect("ISO 8601") - time::OffsetDateTime::now_utc();
    assert!(left.is_positive() && left.whole_hours() < 24, "{expires}");

    let running = house.read(&key, id, 0).await;
    let shown: Vec<String> = running["documents"]
        .as_array()
        .expect("documents")
        .iter()
        .map(line)
        .collect();
    assert_eq!(
        (&running["status"], &running["nextOffset"]),
        (&json!("running"), &Value::Null),
        "{running}"
    );
    assert_eq!(
        (&running["completed"], &running["total"], shown),
        (&json!(1), &json!(5), vec!["lab.test/ 200".into()])
    );
    house.pages.release("/1");
    house.until_idle().await;
    let documents = house.documents(&key, id).await;
    assert_eq!(
        documents.iter().map(line).collect::<Vec<_>>(),
        good(&expected(20, 3, &[]))
    );
    // Every page of it is what it was, wherever one begins.
    for (offset, next) in [
        (0, json!(5)),
        (3, json!(8)),
        (15, Value::Null),
        (20, Value::Null),
        (1000, Value::Null),
    ] {
        let page = house.read(&key, id, offset).await;
        let wanted = &documents[offset.min(20)..(offset + 5).min(20)];
        assert_eq!(
            (&page["documents"], &page["nextOffset"]),
            (&json!(wanted), &next),
            "{offset}"
        );
    }
}

#[tokio::test]
async fn a_page_of_a_read_has_a_mebibyte_at_most() {
    let long = |visit: &Visit| match &*visit.path {
        "/robots.txt" => missing(),
        path => {
            let text = "<p>語語語語語語語語語語。".repeat(20_000);
            Reply::body(
                200,
                "text/html; charset=utf-8",
                format!("<title>{path}</title><a href={path}1>x</a>{text}"),
            )
        }
    };
    let house = House::start(long).await;
    let key = house.key();
    let answer = house
        .submit(
            &key,
            json!({ "url": "http://lab.test/1", "limit": 4, "maxDepth": 3 }),
        )
        .await;
    house.until_idle().await;
    // Too much to be answered at once.
    let id = answer.json()["data"]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let first = house.read(&key, &id, 0).await;
    assert_eq!(
        (
            first["documents"].as_array().map(Vec::len),
            &first["nextOffset"]
        ),
        (Some(1), &json!(1))
    );
    assert_eq!(first["documents"][0]["contentTruncated"], true);
    assert_eq!(house.documents(&key, &id).await.len(), 4);
}

#[tokio::test]
async fn the_tools_are_the_same_road_and_keep_the_format() {
    let house = House::start(tree_site).await;
    let call = async |key: &str, tool: &str, arguments: Value| {
        let answer = Post::call(tool, &arguments)
            .bearer(key)
            .send(&house.service)
            .await
            .json();
        answer["result"]["structuredContent"]["data"].clone()
    };
    house.pages.hold("/1");
    for (format, content) in [
        ("markdown", "This is the page /, and it has a text."),
        ("text", "This is the page /, and it has a text."),
        ("html", "<p>This is the page /, and it has a text.</p>"),
    ] {
        let key = house.key();
        let start = json!({ "url": SEED, "requestId": uuid::Uuid::now_v7().to_string(), "limit": 3, "format": format });
        let started = call(&key, "start_web_crawl", start).await;
        assert_eq!(started["status"], "pending", "{started}");
        let id = &started["id"];
        let shown = call(&key, "get_web_crawl", json!({ "id": id })).await;
        let document = &shown["documents"][0];
        assert_eq!(
            (&document["contentFormat"], &document["content"]),
            (&json!(format), &json!(content)),
            "{shown}"
        );
        let cancelled = call(&key, "cancel_web_crawl", json!({ "id": id })).await;
        assert_eq!(cancelled, json!({ "id": id, "status": "cancelled" }));
        let shown = call(&key, "get_web_crawl", json!({ "id": id, "offset": 0 })).await;
        assert_eq!(
            (
                &shown["status"],
                shown["documents"].as_array().map(Vec::len)
            ),
            (&json!("cancelled"), Some(1))
        );
    }
    let key = house.key();
    let body = json!({ "url": SEED, "format": "text" });
    assert_eq!(
        house.submit(&key, body).await.refusal(),
        (400, "VALIDATION_ERROR".to_owned()),
        "REST has no format"
    );
    house.pages.release("/1");
    let start = json!({ "url": SEED, "requestId": uuid::Uuid::now_v7().to_string(), "limit": 1, "format": "text" });
    let whole = call(&key, "start_web_crawl", start).await;
    assert_eq!(
        (&whole["id"], &whole["documents"][0]["contentFormat"]),
        (&Value::Null, &json!("text")),
        "{whole}"
    );
    assert_eq!(
        Service::send(house.service.request(reqwest::Method::GET, CRAWLS))
            .await
            .status,
        405
    );
}
