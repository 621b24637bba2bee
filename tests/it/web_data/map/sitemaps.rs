//! Sitemaps of all kinds, as a map has them.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use super::world::{World, index, none, text, urlset, xml};
use super::{mapped, paths};
use crate::lab::Reply;

fn packed(body: &[u8]) -> Reply {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body).expect("into memory");
    let body = encoder.finish().expect("into memory");
    Reply::body(200, "application/octet-stream", body)
}

fn one(path: &str) -> String {
    urlset([format!("http://site.test{path}")])
}

/// Firecrawl's issue 477, and what it means by a sitemap.
#[tokio::test]
async fn nested_and_packed_sitemaps_are_read_breadth_first() {
    let world = World::of(|_, path| match path {
        "/robots.txt" => text("Sitemap: http://site.test/index.xml\nSitemap: /relative.xml"),
        "/index.xml" => xml(index(&[
            "http://site.test/index.xml",
            "http://site.test/deeper.xml",
            "/1.xml.gz",
            "http://site.test/missing.xml",
            "http://other.test/foreign.xml",
            "http://site.test/broken.xml",
        ])),
        "/relative.xml" => xml(one("/relative")),
        "/deeper.xml" => packed(index(&["/deepest.xml", "/index.xml"]).as_bytes()),
        "/deepest.xml" => xml(index(&["/list.txt", "/fourth.xml"])),
        "/fourth.xml" => xml(index(&["/too-deep.xml"])),
        "/too-deep.xml" => xml(one("/too-deep")),
        "/list.txt" => text("http://site.test/plain\nno address\n"),
        "/1.xml.gz" => packed(one("/packed").as_bytes()),
        "/broken.xml" => {
            xml("<urlset><url><loc>http://site.test/whole</loc></url><url><loc>http://site.test/ha")
        }
        _ => none(),
    });
    let service = world.service().await;
    let expected = ["/relative", "/packed", "/whole", "/plain"];
    assert_eq!(paths(&service, "/", 20).await, expected);
    let asked = world.asked();
    for path in ["index.xml", "deeper.xml", "missing.xml", "fourth.xml"] {
        let times = asked
            .iter()
            .filter(|asked| **asked == format!("site.test/{path}"))
            .count();
        assert_eq!(times, 1, "{path}: {asked:?}");
    }
    assert!(
        !asked
            .iter()
            .any(|asked| asked.contains("other.test") || asked.contains("too-deep")),
        "{asked:?}"
    );
    assert!(
        !asked.iter().any(|asked| asked.ends_with("/sitemap.xml")),
        "a sitemap was found already: {asked:?}"
    );
}

#[tokio::test]
async fn entries_of_other_hosts_are_left_out_wherever_the_sitemap_is() {
    let world = World::of(|host, path| match (host, path) {
        (_, "/robots.txt") => text("Sitemap: http://other.test/for-site.xml"),
        ("other.test", "/for-site.xml") => xml(urlset(
            [
                "site.test/1",
                "other.test/2",
                "docs.site.test/3",
                "www.site.test/4",
                "site.test:8080/5",
                "site.test.other.test/6",
            ]
            .map(|address| format!("http://{address}")),
        )),
        _ => none(),
    });
    let service = world.service().await;
    assert_eq!(
        paths(&service, "/", 20).await,
        ["/1", "http://www.site.test/4"]
    );
}

#[tokio::test]
async fn the_well_known_places_are_tried_where_robots_txt_names_no_sitemap_that_lists() {
    let world = World::of(|host, path| match (host, path) {
        ("site.test", "/robots.txt") => text("Sitemap: http://site.test/empty.xml"),
        ("site.test", "/empty.xml") => xml("<urlset/>"),
        ("site.test", "/sitemap.xml") => Reply::html("<title>Not found</title><a href=/soft>x</a>"),
        ("site.test", "/wp-sitemap.xml") => xml(one("/wordpress")),
        ("other.test", "/sitemap.xml.gz") => {
            packed(urlset(["http://other.test/old".to_owned()]).as_bytes())
        }
        _ => none(),
    });
    let service = world.service().await;
    assert_eq!(paths(&service, "/", 20).await, ["/wordpress"]);
    assert!(
        world
            .asked()
            .contains(&"site.test/sitemap_index.xml".to_owned())
    );
    let links = mapped(&service, &json!({ "url": "http://other.test/" })).await;
    assert_eq!(
        links,
        [json!({ "url": "http://other.test/old", "title": null, "description": null })]
    );
}

#[tokio::test]
async fn a_feed_tells_titles_and_descriptions() {
    let world = World::of(|_, path| match path {
        "/robots.txt" => text("Sitemap: http://site.test/feed"),
        "/feed" => xml(
            "<rss><channel><title>Site</title><link>http://site.test/</link><item><title>One &amp;amp; two</title>\
             <link>http://site.test/1</link><description><![CDATA[<p>A <b>first</b> post.</p><script>x</script>]]>\
             </description></item></channel></rss>",
        ),
        _ => none(),
    });
    let service = world.service().await;
    let links = mapped(&service, &json!({ "url": "http://site.test/" })).await;
    let expected = json!({ "url": "http://site.test/1", "title": "One & two", "description": "A first post." });
    assert_eq!(links, [expected]);
}

#[tokio::test]
async fn a_sitemap_may_be_what_is_mapped() {
    let world = World::of(|_, path| match path {
        "/some.xml" => xml(one("/1")),
        "/file.pdf" => Reply::body(200, "application/pdf", b"%PDF-1.7"),
        _ => none(),
    });
    let service = world.service().await;
    assert_eq!(paths(&service, "/some.xml", 20).await, ["/1"]);
    assert_eq!(paths(&service, "/file.pdf", 20).await, ["/file.pdf"]);
}

#[tokio::test]
async fn no_more_sitemaps_are_asked_for_than_their_number() {
    let world = World::of(|_, path| match path {
        "/robots.txt" => text("Sitemap: http://site.test/index.xml"),
        "/index.xml" => {
            let nested: Vec<String> = (0..200).map(|n| format!("/nested-{n}.xml")).collect();
            xml(index(
                &nested.iter().map(String::as_str).collect::<Vec<_>>(),
            ))
        }
        path if path.starts_with("/nested") => xml(one(path)),
        _ => none(),
    });
    let service = world.service().await;
    assert_eq!(paths(&service, "/", 100).await.len(), 24);
    assert_eq!(
        world
            .asked()
            .iter()
            .filter(|asked| asked.contains("index") || asked.contains("nested-"))
            .count()
            - 24,
        25
    );
}

#[tokio::test]
async fn hostile_sitemaps_do_no_harm() {
    let huge: String = "<a>".repeat(5 << 20);
    let world = World::of(move |_, path| match path {
        "/robots.txt" => text(
            "Sitemap: /huge.xml\nSitemap: /bomb.gz\nSitemap: /laughs.xml\nSitemap: /deep.xml\nSitemap: /closed.xml\nSitemap: /good.xml",
        ),
        "/huge.xml" => xml(huge.as_bytes()),
        "/bomb.gz" => packed(&vec![b' '; 200 << 20]),
        "/laughs.xml" => xml(
            "<!DOCTYPE x [<!ENTITY a 'ha'><!ENTITY b '&a;&a;'><!ENTITY c SYSTEM 'http://site.test/stolen'>]>\
             <urlset><url><loc>http://site.test/&b;&c;x</loc></url></urlset>",
        ),
        "/deep.xml" => xml("<url>".repeat(1 << 20)),
        "/closed.xml" => Reply::Close,
        "/good.xml" => xml(one("/good")),
        _ => none(),
    });
    let service = world.service().await;
    assert_eq!(paths(&service, "/", 20).await, ["/x", "/good"]);
    assert!(!world.asked().iter().any(|asked| asked.contains("stolen")));
}

#[tokio::test]
async fn sitemaps_that_are_made_to_take_long_or_room_do_not() {
    let shapes: [&[u8]; 4] = [
        b"\xe0\xe1\xe2",
        b"<url><loc>http://other.test/a</loc><title>&amp;&#252;</title></url>",
        b"<a b='c'>&lt;</a>",
        b"<url><link href='/%\xff'/>",
    ];
    let world =
        World::of(
            move |_, path| match path.trim_start_matches("/slow-").parse::<usize>() {
                Ok(number) => {
                    let mut body = b"<?xml version='1.0' encoding='windows-1251'?>".to_vec();
                    body.extend(
                        shapes[number % shapes.len()]
                            .repeat((12 << 20) / shapes[number % shapes.len()].len()),
                    );
                    packed(&body)
                }
                Err(_) if path == "/robots.txt" => {
                    let named: String = (0..12)
                        .map(|number| format!("Sitemap: /slow-{number}\n"))
                        .collect();
                    text(&format!("Sitemap: /good.xml\n{named}"))
                }
                Err(_) if path == "/good.xml" => xml(one("/good")),
                Err(_) => none(),
            },
        );
    let service = world.service().await;
    let found = paths(&service, "/", 100).await;
    assert_eq!(found[0], "/good");
    let asked = world
        .asked()
        .iter()
        .filter(|asked| asked.contains("slow-"))
        .count();
    assert!((3..=6).contains(&asked), "{asked}");
}
