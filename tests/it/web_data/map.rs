//! Maps: the addresses of scripted sites, over REST and as a tool.

mod sitemaps;
mod trouble;
mod world;

use std::sync::Arc;
use std::sync::Barrier;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::lab::Reply;
use crate::support::{Post, Service, in_one_minute, outcome};
use world::{World, linking, none, status, text, urlset, xml};

const MAP: &str = "/api/v1/web/map";

/// The links of a map, after looking at what all maps have in common.
async fn mapped(service: &Service, body: &Value) -> Vec<Value> {
    let answer = service.post(MAP, body).await;
    let data = answer.json();
    assert_eq!(answer.status, 200, "{body}: {data}");
    assert_eq!(answer.header("cache-control"), "private, no-store");
    assert_eq!(data["data"]["url"], body["url"]);
    let links = data["data"]["links"].as_array().expect("links").clone();
    for link in &links {
        let fields: Vec<&str> = link
            .as_object()
            .expect("a link")
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(fields, ["url", "title", "description"]);
    }
    links
}

/// The paths on `http://site.test` of a map of `path`.
async fn paths(service: &Service, path: &str, limit: u32) -> Vec<String> {
    let links = mapped(
        service,
        &json!({ "url": format!("http://site.test{path}"), "limit": limit }),
    )
    .await;
    let url = |link: &Value| {
        link["url"]
            .as_str()
            .expect("an address")
            .replace("http://site.test", "")
    };
    links.iter().map(url).collect()
}

#[tokio::test]
async fn a_site_is_the_page_its_sitemaps_and_then_its_links() {
    let world = World::of(|_, path| match path {
        "/robots.txt" => text("User-agent: *\nDisallow:\nSitemap: http://site.test/map.xml\n"),
        "/map.xml" => xml(urlset(
            ["/b", "/a", "/"].map(|path| format!("http://site.test{path}")),
        )),
        "/" => linking("Home", &["/a", "/c", "/d"]),
        "/c" => Reply::html(
            "<title>See | Site</title><meta name=description content='All of it.'><h1>See</h1><a href=/e>E</a>",
        ),
        _ => Reply::html("<h1>Any</h1>"),
    });
    let service = world.service().await;
    let links = mapped(&service, &json!({ "url": "http://site.test/" })).await;
    let link = |path: &str, title: &str, description: Option<&str>| json!({ "url": format!("http://site.test{path}"), "title": title, "description": description });
    let expected = [
        link("/", "Home", None),
        link("/b", "Any", None),
        link("/a", "Any", None),
        link("/c", "See", Some("All of it.")),
        link("/d", "Any", None),
        link("/e", "Any", None),
    ];
    assert_eq!(links, expected);
}

#[tokio::test]
async fn the_limit_is_exact_with_a_sitemap_and_without() {
    let world = World::of(|host, path| match (host, path) {
        (_, "/robots.txt") => none(),
        ("site.test", "/sitemap.xml") => {
            xml(urlset((0..150).map(|n| format!("http://site.test/{n}"))))
        }
        ("site.test", "/") => Reply::html("<title>Home</title>"),
        // Each page leads to one more.
        ("other.test", path) => match path.trim_start_matches('/').parse::<u32>() {
            Ok(number) => linking("Next", &[&format!("/{}", number + 1)]),
            Err(_) => none(),
        },
        _ => none(),
    });
    let service = world.service().await;
    for (site, start) in [("site.test", ""), ("other.test", "0")] {
        for (limit, expected) in [
            (json!(1), 1),
            (json!(7), 7),
            (json!(null), 20),
            (json!(100), 100),
        ] {
            let links = mapped(
                &service,
                &json!({ "url": format!("http://{site}/{start}"), "limit": limit }),
            )
            .await;
            assert_eq!(links.len(), expected, "{site} {limit}");
        }
    }
}

/// Firecrawl's issues 1338 and 1397: a map of a site without a sitemap was one address.
#[tokio::test]
async fn a_site_without_sitemaps_is_mapped_by_its_links() {
    let world = World::of(|_, path| match path {
        // Some sites answer every path with a page.
        "/start" => linking(
            "Start",
            &[
                "/a",
                "b?c=1#part",
                "http://www.site.test/d",
                "//site.test/e",
                "/a#x",
            ],
        ),
        "/a" => Reply::html("<frameset><frame src=/frame></frameset>"),
        "/frame" => Reply::html("<base href=/deep/><a href=f>F</a><link rel=next href=/g>"),
        _ => Reply::html("<title>Nothing here</title><p>Sorry"),
    });
    let service = world.service().await;
    let expected = [
        "/start",
        "/a",
        "/b?c=1",
        "http://www.site.test/d",
        "/e",
        "/frame",
        "/deep/f",
        "/g",
    ];
    assert_eq!(paths(&service, "/start", 20).await, expected);
}

#[tokio::test]
async fn each_page_is_listed_once() {
    let world = World::of(|host, path| match (host, path) {
        (_, "/robots.txt") => none(),
        ("site.test", "/") => linking(
            "Home",
            &[
                "/a",
                "/a/",
                "/a/index.html",
                "/a?utm_source=x&fbclid=y",
                "http://www.site.test/a#b",
                "https://site.test/a",
                "/%61",
                "/index.html",
                "http://www.site.test",
                "/old",
                "/variant",
                "/gone",
                "/away",
                "/one",
                "/two",
                "http://docs.site.test/x",
                "http://other.test/",
                "/picture.PNG",
                "mailto:me@site.test",
            ],
        ),
        (_, "/old") => Reply::redirect(301, "/new?utm_id=1"),
        (_, "/variant") => Reply::html("<title>V</title><link rel=canonical href=/main>"),
        (_, "/main") => Reply::html("<title>Main</title><link rel=canonical href=/variant>"),
        (_, "/gone") => status(410),
        (_, "/away") => Reply::redirect(302, "http://other.test/"),
        // Each says that it is the other.
        (_, "/one") => {
            Reply::html("<title>One</title><link rel=canonical href=/two><a href=/main>M</a>")
        }
        (_, "/two") => Reply::html("<title>Two</title><link rel=canonical href=/one>"),
        ("site.test", "/a" | "/new") => Reply::html("<title>A</title>"),
        _ => none(),
    });
    let service = world.service().await;
    assert_eq!(
        paths(&service, "/", 20).await,
        ["/", "/a", "/new", "/main", "/gone", "/two"]
    );
    assert!(
        !world
            .asked()
            .iter()
            .any(|asked| asked.starts_with("docs.") || asked.starts_with("other."))
    );
}

#[tokio::test]
async fn what_robots_txt_forbids_is_neither_asked_for_nor_listed() {
    let rules = "User-agent: *\nAllow: /\n\nUser-agent: Switchbay\nDisallow: /private\nDisallow: /*?sort=\nAllow: /private/open\n\
                 Sitemap: http://site.test/map.xml";
    let world = World::of(move |_, path| match path {
        "/robots.txt" => text(rules),
        "/map.xml" => xml(urlset(
            ["/private/1", "/1"].map(|path| format!("http://site.test{path}")),
        )),
        "/old" => Reply::redirect(301, "/private/old"),
        _ => linking(
            "Any",
            &[
                "/private/2",
                "/private/open",
                "/2?sort=up",
                "/2?page=2",
                "/old",
            ],
        ),
    });
    let service = world.service().await;
    assert_eq!(
        paths(&service, "/", 20).await,
        ["/", "/1", "/private/open", "/2?page=2"]
    );
    // The page that was named is no exception; its sitemaps still list what is open.
    assert_eq!(paths(&service, "/private", 1).await, ["/1"]);
    let asked = world.asked();
    assert!(
        !asked
            .iter()
            .any(|asked| asked.contains("sort=") || asked.ends_with("/private")),
        "{asked:?}"
    );
    assert!(
        !asked
            .iter()
            .any(|asked| asked.contains("/private/") && !asked.ends_with("/open")),
        "{asked:?}"
    );

    let closed = World::of(|_, path| match path {
        "/robots.txt" => text("User-agent: *\nDisallow: /"),
        _ => linking("Any", &["/1"]),
    });
    assert_eq!(paths(&closed.service().await, "/", 20).await, [""; 0]);
    assert_eq!(closed.asked(), ["site.test/robots.txt"]);
}

#[tokio::test]
async fn what_is_not_to_be_followed_is_listed_and_not_asked_for() {
    let world = World::of(|_, path| match path {
        "/" => Reply::html("<title>Home</title><a rel=nofollow href=/a>A</a><a href=/b>B</a>"),
        "/b" => Reply::html(
            "<title>B</title><meta name=robots content='index, nofollow'><a href=/c>C</a>",
        ),
        _ => none(),
    });
    let service = world.service().await;
    assert_eq!(paths(&service, "/", 20).await, ["/", "/a", "/b", "/c"]);
    assert!(
        !world
            .asked()
            .iter()
            .any(|asked| asked.ends_with("/a") || asked.ends_with("/c")),
        "{:?}",
        world.asked()
    );
}

#[tokio::test]
async fn a_trap_of_endless_links_is_left() {
    let world = World::of(|_, path| match path {
        "/robots.txt" => none(),
        path if path.ends_with(".xml") || path.ends_with(".gz") => none(),
        // New parameters that lead to the same few pages for ever, all of them listed already.
        path => linking(
            "Trap",
            &[&format!("/day?utm_x={}", path.len()), "/day", "/"],
        ),
    });
    let service = world.service().await;
    assert_eq!(paths(&service, "/", 50).await, ["/", "/day"]);
    let calendar = World::of(|_, path| {
        let links: Vec<String> = (0..500).map(|n| format!("{path}/{n}")).collect();
        linking(
            "Calendar",
            &links.iter().map(String::as_str).collect::<Vec<_>>(),
        )
    });
    assert_eq!(paths(&calendar.service().await, "/x", 100).await.len(), 100);
    assert!(calendar.asked().len() < 10, "{:?}", calendar.asked());
}

#[tokio::test]
async fn two_pages_are_asked_for_at_a_time_and_no_more() {
    let two = Arc::new(Barrier::new(2));
    let world = World::of(move |_, path| match path {
        "/" => linking("Home", &["/1", "/2", "/3", "/4", "/5", "/6"]),
        path if path.len() == 2 => {
            // Neither is answered before both are asked for.
            two.wait();
            Reply::html("<title>Page</title>")
        }
        _ => none(),
    });
    let service = world.service().await;
    assert_eq!(paths(&service, "/", 20).await.len(), 7);
    assert_eq!(world.most_open(), 2);
}

#[tokio::test]
async fn a_crawl_delay_is_kept_between_any_two_requests() {
    let world = World::of(|_, path| match path {
        "/robots.txt" => text("User-agent: *\nCrawl-delay: 0.3"),
        "/" => linking("Home", &["/1", "/2"]),
        "/1" | "/2" => Reply::html("<title>Page</title>"),
        _ => none(),
    });
    let service = world.service().await;
    assert_eq!(paths(&service, "/", 20).await, ["/", "/1", "/2"]);
    let asked = world.asked_at();
    assert_eq!((asked.len(), world.most_open()), (8, 1));
    let pauses: Vec<Duration> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(
        pauses
            .iter()
            .all(|pause| *pause >= Duration::from_millis(300)),
        "{pauses:?}"
    );
}

#[tokio::test]
async fn the_tool_gives_what_rest_gives() {
    let world = World::of(|_, path| match path {
        "/" => linking("Home", &["/a", "/b"]),
        _ => none(),
    });
    let service = world.service().await;
    let call = async |arguments: Value| {
        Post::call("map_website", &arguments)
            .bearer(service.key())
            .send(&service)
            .await
    };
    let arguments = json!({ "url": "http://site.test/", "limit": 2 });
    let rest = service.post(MAP, &arguments).await.json();
    let tool = call(arguments).await.json();
    assert_eq!(tool["result"]["structuredContent"], rest, "{tool}");
    assert_eq!(rest["data"]["links"].as_array().map(Vec::len), Some(2));
    for arguments in [
        json!({ "url": "http://site.test/", "format": "text" }),
        json!({ "url": "http://site.test/", "limit": 101 }),
        json!({ "url": "http://127.0.0.1/" }),
    ] {
        let answer = outcome(&call(arguments.clone()).await);
        assert!(
            answer.contains("isError VALIDATION_ERROR"),
            "{arguments}: {answer}"
        );
    }
    let bare = service.issue(&["--scope", "web:scrape"]);
    let refused = Post::call("map_website", &json!({ "url": "http://site.test/" }))
        .bearer(&bare)
        .send(&service)
        .await;
    assert_eq!(refused.status, 403);
}

#[tokio::test]
async fn a_credential_has_twenty_maps_a_minute() {
    let world = World::of(|_, _| Reply::html("<title>Page</title>"));
    let service = world.service().await;
    let (_, statuses) = in_one_minute(async || {
        let key = service.issue(&["--scope", "web:map"]);
        let mut statuses = Vec::new();
        for _ in 0..21 {
            let request = service.bare(Method::POST, MAP).bearer_auth(&key);
            let body = json!({ "url": "http://site.test/", "limit": 1 });
            statuses.push(Service::send(request.json(&body)).await.status);
        }
        statuses
    })
    .await;
    assert_eq!(statuses, [vec![200; 20], vec![429]].concat());
}
