//! What a site asks of those who crawl it: robots.txt, pauses, and to come again later.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use super::house::{House, missing, page};
use crate::lab::{Pages, Reply};

/// Between the answer to a request and the next one, for each two that follow each other.
fn pauses(pages: &Pages) -> Vec<Duration> {
    let visits = pages.visits();
    visits
        .windows(2)
        .map(|two| two[1].came - two[0].answered.expect("it was answered"))
        .collect()
}

#[tokio::test]
async fn what_robots_txt_forbids_is_not_asked_for_and_a_forbidden_first_page_is_shown_without_content()
 {
    const ROBOTS: &str = "User-agent: other\nDisallow: /\n\nUser-agent: *\nDisallow: /everybody\n\n\
                          User-agent: Switchbay\nDisallow: /no\nAllow: /no/but\nDisallow: /*.cgi$\n";
    let house = House::start(|visit| match &*visit.path {
        "/robots.txt" if visit.host == "lab.test" => Reply::body(200, "text/plain", ROBOTS),
        "/robots.txt" if visit.host == "www.lab.test" => {
            Reply::body(200, "text/plain", "User-agent: *\nDisallow: /w")
        }
        "/" => page(
            "home",
            &[
                "/no",
                "/no/thing",
                "/no/but",
                "/x.cgi",
                "/x.cgi?a",
                "/everybody",
                "/to",
                "//www.lab.test/w",
            ],
        ),
        "/to" => Reply::redirect(302, "/no/where"),
        _ => page("a page", &["/"]),
    })
    .await;
    let outline = house.outline(json!({ "url": "http://lab.test/" })).await;
    let wanted = ["", "no/but", "x.cgi?a", "everybody"].map(|path| format!("lab.test/{path} 200"));
    assert_eq!(outline, wanted);
    assert_eq!(
        house.outline(json!({ "url": "http://lab.test/no" })).await,
        ["lab.test/no - failed"]
    );
    assert_eq!(
        house.outline(json!({ "url": "http://lab.test/to" })).await,
        ["lab.test/no/where - failed"]
    );
    for forbidden in ["/no/thing", "/no/where", "/w"] {
        assert_eq!(house.pages.asked(forbidden), [""; 0], "{forbidden}");
    }
}

#[tokio::test]
async fn a_site_without_robots_txt_allows_everything_and_one_that_fails_to_say_nothing() {
    static AGAIN: AtomicUsize = AtomicUsize::new(0);
    let house = House::start(|visit| match (&*visit.host, &*visit.path) {
        ("lab.test", "/robots.txt") => Reply::body(403, "text/plain", "User-agent: *\nDisallow: /"),
        ("rules.test", "/robots.txt") => Reply::body(500, "text/plain", ""),
        ("away.test", "/robots.txt") if AGAIN.fetch_add(1, Ordering::Relaxed) < 2 => Reply::Close,
        ("away.test", "/robots.txt") => Reply::redirect(301, "http://example.com/robots.txt"),
        ("example.com", "/robots.txt") => {
            Reply::body(200, "text/plain", "User-agent: *\nDisallow: /a")
        }
        (_, "/") => page("home", &["/a", "/b"]),
        _ => page("a page", &["/"]),
    })
    .await;
    for (host, wanted) in [
        (
            "lab.test",
            ["lab.test/ 200", "lab.test/a 200", "lab.test/b 200"].as_slice(),
        ),
        ("rules.test", &["rules.test/ - failed"]),
        ("away.test", &["away.test/ 200", "away.test/b 200"]),
    ] {
        assert_eq!(
            house
                .outline(json!({ "url": format!("http://{host}/") }))
                .await,
            wanted,
            "{host}"
        );
    }
    let at_rules = house
        .pages
        .visits()
        .into_iter()
        .filter(|visit| visit.host == "rules.test")
        .count();
    assert_eq!(at_rules, 3, "three times a robots.txt");
}

#[tokio::test]
async fn a_site_that_wants_pauses_is_asked_one_page_at_a_time_with_a_pause_after_each() {
    let house = House::start(|visit| match &*visit.path {
        "/robots.txt" => Reply::body(200, "text/plain", "User-agent: *\nCrawl-delay: 0.7"),
        "/" => page("home", &["/a", "/b", "/c"]),
        _ => page("a page", &["/"]),
    })
    .await;
    let outline = house.outline(json!({ "url": "http://rules.test/" })).await;
    assert_eq!(
        outline,
        ["", "a", "b", "c"].map(|path| format!("rules.test/{path} 200"))
    );
    assert_eq!(house.pages.most_at_once("rules.test"), 1);
    let pauses = pauses(&house.pages);
    assert!(
        pauses.len() == 4
            && pauses
                .iter()
                .all(|pause| *pause >= Duration::from_millis(700)),
        "{pauses:?}"
    );
}

#[tokio::test]
async fn a_server_that_wants_to_be_asked_later_is_asked_then_and_not_before() {
    static BUSY: AtomicUsize = AtomicUsize::new(0);
    let house = House::start(|visit| match &*visit.path {
        "/robots.txt" => missing(),
        "/" => page("home", &["/busy", "/never", "/long"]),
        "/busy" if BUSY.fetch_add(1, Ordering::Relaxed) == 0 => {
            Reply::body(503, "text/html", "").header("retry-after", "1")
        }
        "/never" => Reply::body(429, "text/html", "").header("retry-after", "0"),
        "/long" => Reply::body(429, "text/html", "").header("retry-after", "86400"),
        _ => page("a page", &["/"]),
    })
    .await;
    let outline = house.outline(json!({ "url": "http://lab.test/" })).await;
    let wanted = [
        "lab.test/ 200",
        "lab.test/busy 200",
        "lab.test/never 429 failed",
        "lab.test/long 429 failed",
    ];
    assert_eq!(outline, wanted);
    let visits = house.pages.visits();
    let of = |path: &str| {
        visits
            .iter()
            .filter(|visit| visit.path == path)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (of("/busy").len(), of("/never").len(), of("/long").len()),
        (2, 2, 1)
    );
    let busy = of("/busy");
    assert!(busy[1].came - busy[0].answered.expect("it was answered") >= Duration::from_secs(1));
}
