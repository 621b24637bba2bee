//! What a map refuses, and what it makes of a site that fails.

use serde_json::{Value, json};

use super::world::{World, linking, none, status, text, urlset, xml};
use super::{MAP, paths};
use crate::lab::Reply;
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
    let world = World::of(|_, _| none());
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
        ("site.test", "/robots.txt") => none(),
        ("site.test", "/fails") => status(503),
        ("site.test", "/closes") => Reply::Close,
        ("site.test", "/around") => Reply::redirect(302, "/around"),
        ("site.test", "/inside") => Reply::redirect(302, "http://10.0.0.1/"),
        ("site.test", "/port") => Reply::redirect(302, "http://site.test:8080/"),
        ("other.test", "/robots.txt") => status(500),
        ("moved.test", "/robots.txt") => Reply::Hang,
        _ => none(),
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
        "/robots.txt" => none(),
        "/sitemap.xml" => xml(urlset(
            ["/1", "/2"].map(|path| format!("http://site.test{path}")),
        )),
        "/1" => Reply::Hang,
        "/2" => status(500),
        _ => Reply::Close,
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
        path if path.len() == 2 => Reply::Hang,
        _ => none(),
    });
    let service = world.service().await;
    assert_eq!(paths(&service, "/", 20).await.len(), 10);
    assert!(world.asked().len() < 15, "{:?}", world.asked());
}

#[tokio::test]
async fn a_page_that_is_missing_or_fails_still_leads_on() {
    let world = World::of(|_, path| match path {
        "/" => Reply::html("<title>Home</title>"),
        "/gone" | "/robots.txt" => {
            Reply::body(404, "text/html", b"<title>Gone</title><a href='/'>Home</a>")
        }
        _ => status(503),
    });
    let service = world.service().await;
    assert_eq!(paths(&service, "/gone", 20).await, ["/"]);
}

#[tokio::test]
async fn a_site_that_moved_is_mapped_where_it_is_by_the_rules_there() {
    let world = World::of(|host, path| match (host, path) {
        ("moved.test", "/robots.txt") => Reply::redirect(301, "http://other.test/rules"),
        ("other.test", "/rules") => text("User-agent: *\nDisallow: /elsewhere"),
        ("moved.test", "/" | "/elsewhere") => {
            Reply::redirect(301, format!("http://www.site.test{path}"))
        }
        ("www.site.test", "/robots.txt") => text("User-agent: *\nDisallow: /private"),
        ("www.site.test", "/") => Reply::redirect(308, "/home"),
        ("www.site.test", "/home") => linking("Home", &["/private", "/a", "http://moved.test/b"]),
        _ => none(),
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
                Reply::html(format!("{next}{}", shape.repeat((3 << 20) / shape.len())))
            }
            Err(_) => none(),
        },
    );
    let service = world.service().await;
    let found = paths(&service, "/slow-0", 100).await;
    assert!(found.len() > 8, "{found:?}");
}
