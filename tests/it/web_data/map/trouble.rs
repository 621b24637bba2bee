//! What a map refuses, and what it makes of a site that fails.

use serde_json::{Value, json};

use super::world::{Page, World, linking, urlset};
use super::{MAP, paths};
use crate::support::Service;

async fn refusal(service: &Service, body: &Value) -> (u16, String) {
    service.post(MAP, body).await.refusal()
}

async fn refused(service: &Service, url: &str) -> (u16, String) {
    refusal(service, &json!({ "url": url })).await
}

fn bad_response() -> (u16, String) {
    (502, "UPSTREAM_BAD_RESPONSE".to_owned())
}

#[tokio::test]
async fn a_request_that_breaks_a_rule_is_refused_by_its_field() {
    let world = World::of(|_, _| Page::none());
    let service = world.service().await;
    let urls = [
        "ftp://site.test/",
        "site.test",
        "http://me:word@site.test/",
        "http://site.test:8080/",
        "http://127.0.0.1/",
        "http://localhost/",
        "http://[::1]/",
        "http://169.254.169.254/latest/",
        "http://exa mple.com/",
    ];
    let long = format!("http://site.test/{}", "a".repeat(2048));
    for url in urls.into_iter().chain([&*long, ""]) {
        let answer = service.post(MAP, &json!({ "url": url })).await;
        assert_eq!(
            answer.refusal(),
            (400, "VALIDATION_ERROR".to_owned()),
            "{url}"
        );
        assert_eq!(answer.json()["data"]["field"], "url", "{url}");
    }
    for limit in [json!(0), json!(101), json!("5"), json!(1.5), json!(-1)] {
        let answer = service
            .post(MAP, &json!({ "url": "http://site.test/", "limit": limit }))
            .await;
        assert_eq!(
            answer.refusal(),
            (400, "VALIDATION_ERROR".to_owned()),
            "{limit}"
        );
        assert_eq!(answer.json()["data"]["field"], "limit", "{limit}");
    }
    for body in [
        json!({}),
        json!({ "url": "http://site.test/", "search": "a" }),
        json!(["http://site.test/"]),
    ] {
        assert_eq!(refusal(&service, &body).await.0, 400, "{body}");
    }
    let large = json!({ "url": "http://site.test/", "search": "a".repeat(17 << 10) });
    assert_eq!(
        refusal(&service, &large).await,
        (413, "PAYLOAD_TOO_LARGE".to_owned())
    );
    assert_eq!(world.asked(), [""; 0]);
}

#[tokio::test]
async fn a_site_that_gives_no_answer_is_an_error() {
    let world = World::of(|host, path| match (host, path) {
        ("site.test", "/robots.txt") => Page::none(),
        ("site.test", "/fails") => Page::status(503),
        ("site.test", "/closes") => Page::Close,
        ("site.test", "/around") => Page::To(302, "/around".to_owned()),
        ("site.test", "/inside") => Page::To(302, "http://10.0.0.1/".to_owned()),
        ("site.test", "/port") => Page::To(302, "http://site.test:8080/".to_owned()),
        ("other.test", "/robots.txt") => Page::status(500),
        ("moved.test", "/robots.txt") => Page::Hang,
        _ => Page::none(),
    });
    let service = world.service().await;
    for path in ["/fails", "/closes", "/around", "/inside", "/port"] {
        assert_eq!(
            refused(&service, &format!("http://site.test{path}")).await,
            bad_response(),
            "{path}"
        );
    }
    for host in ["closed.test", "nowhere.test", "other.test"] {
        assert_eq!(
            refused(&service, &format!("http://{host}/")).await,
            bad_response(),
            "{host}"
        );
    }
    // Its robots.txt forbids everything while nobody knows it.
    assert_eq!(
        world
            .asked()
            .iter()
            .filter(|asked| asked.starts_with("other.test"))
            .count(),
        1
    );
    assert_eq!(
        refused(&service, "http://moved.test/").await,
        (504, "UPSTREAM_TIMEOUT".to_owned())
    );
    // A page that is not there is an answer.
    assert_eq!(paths(&service, "/missing", 20).await, [""; 0]);
}

#[tokio::test]
async fn what_was_found_is_the_map_where_the_rest_fails() {
    let world = World::of(|_, path| match path {
        "/robots.txt" => Page::none(),
        "/sitemap.xml" => Page::xml(urlset(
            ["/1", "/2"].map(|path| format!("http://site.test{path}")),
        )),
        "/1" => Page::Hang,
        "/2" => Page::status(500),
        _ => Page::Close,
    });
    let service = world.service().await;
    assert_eq!(paths(&service, "/", 20).await, ["/1", "/2"]);
}

#[tokio::test]
async fn what_was_found_is_the_map_when_the_time_is_over() {
    let world = World::of(|_, path| match path {
        "/" => linking(
            "Home",
            &["/1", "/2", "/3", "/4", "/5", "/6", "/7", "/8", "/9"],
        ),
        path if path.len() == 2 => Page::Hang,
        _ => Page::none(),
    });
    let service = world.service().await;
    assert_eq!(paths(&service, "/", 20).await.len(), 10);
    assert!(world.asked().len() < 15, "{:?}", world.asked());
}

#[tokio::test]
async fn a_page_that_is_missing_or_fails_still_leads_on() {
    let world = World::of(|_, path| match path {
        "/" => Page::html("<title>Home</title>"),
        "/gone" | "/robots.txt" => Page::Say {
            status: 404,
            kind: "text/html",
            body: b"<title>Gone</title><a href='/'>Home</a>".to_vec(),
        },
        _ => Page::status(503),
    });
    let service = world.service().await;
    assert_eq!(paths(&service, "/gone", 20).await, ["/"]);
}

#[tokio::test]
async fn a_site_that_moved_is_mapped_where_it_is_by_the_rules_there() {
    let world = World::of(|host, path| match (host, path) {
        ("moved.test", "/robots.txt") => Page::To(301, "http://other.test/rules".to_owned()),
        ("other.test", "/rules") => Page::text("User-agent: *\nDisallow: /elsewhere"),
        ("moved.test", "/" | "/elsewhere") => Page::To(301, format!("http://www.site.test{path}")),
        ("www.site.test", "/robots.txt") => Page::text("User-agent: *\nDisallow: /private"),
        ("www.site.test", "/") => Page::To(308, "/home".to_owned()),
        ("www.site.test", "/home") => linking("Home", &["/private", "/a", "http://moved.test/b"]),
        _ => Page::none(),
    });
    let service = world.service().await;
    let links = super::mapped(
        &service,
        &json!({ "url": "http://moved.test/", "limit": 2 }),
    )
    .await;
    let urls: Vec<&str> = links
        .iter()
        .filter_map(|link| link["url"].as_str())
        .collect();
    assert_eq!(
        urls,
        ["http://www.site.test/home", "http://www.site.test/a"]
    );
    assert_eq!(
        super::mapped(&service, &json!({ "url": "http://moved.test/elsewhere" })).await,
        [json!(null); 0]
    );
}

#[tokio::test]
async fn pages_that_are_made_to_take_long_do_not() {
    const SHAPES: [&str; 8] = [
        "<a href=/x>",
        "<p>a<b><i>",
        "<div><p>",
        "<table><tr><td>",
        "&amp;&#x41;",
        "<a href='?",
        "<li>a ",
        "<meta name=robots>",
    ];
    let world = World::of(
        |_, path| match path.trim_start_matches("/slow-").parse::<usize>() {
            Ok(number) => {
                let shape = SHAPES[number % SHAPES.len()];
                let next = format!(
                    "<a href=/slow-{}>x</a><a href=/slow-{}>y</a>",
                    2 * number + 1,
                    2 * number + 2
                );
                Page::html(&format!("{next}{}", shape.repeat((3 << 20) / shape.len())))
            }
            Err(_) => Page::none(),
        },
    );
    let service = world.service().await;
    let found = paths(&service, "/slow-0", 100).await;
    assert!(found.len() > 8, "{found:?}");
}
