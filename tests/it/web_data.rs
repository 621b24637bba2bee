//! Web data: pages of scripted sites as documents, over REST and as a tool.
//!
//! The sites are on loopback and reached because `egress.connect_to` names them.

mod addresses;
mod crawl;
mod map;
pub(crate) mod search;
mod site;

use std::sync::OnceLock;

use reqwest::Method;
use serde_json::{Value, json};

use crate::lab::public_row;
use crate::support::{Options, Post, Service, in_one_minute, outcome, workspace};

const SCRAPE: &str = "/api/v1/web/scrape";
const FIELDS: [&str; 7] = [
    "url",
    "title",
    "description",
    "content",
    "contentFormat",
    "contentTruncated",
    "httpStatus",
];

/// Settings by which the sites stand for the outside world, the one of the published example among them.
pub(crate) fn configuration() -> String {
    static SITES: OnceLock<std::net::SocketAddr> = OnceLock::new();
    let sites = SITES.get_or_init(site::serve);
    let hosts = ["site.test:80", "example.com:80"].map(|host| public_row(host, sites));
    format!(
        "[egress]\nconnect_to = {{ {}, {} }}",
        hosts.join(", "),
        public_row("closed.test:80", "127.0.0.1:1")
    )
}

async fn start() -> Service {
    let manifest = Some(workspace().join("tests/programs/web-data.toml"));
    Service::start(Options {
        config: configuration(),
        manifest,
        ..Options::default()
    })
    .await
}

/// The document of a page of the site, after looking at what all answers have in common.
async fn scraped(service: &Service, path: &str) -> Value {
    let answer = service
        .post(SCRAPE, &json!({ "url": format!("http://site.test{path}") }))
        .await;
    let body = answer.json();
    assert_eq!(answer.status, 200, "{path}: {body}");
    assert_eq!(answer.header("cache-control"), "private, no-store");
    let document = body["data"]["document"].clone();
    let fields: Vec<&str> = document
        .as_object()
        .expect("a document")
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(fields, FIELDS, "{path}");
    document
}

async fn refusal(service: &Service, body: &Value) -> (u16, String) {
    service.post(SCRAPE, body).await.refusal()
}

#[tokio::test]
async fn a_page_becomes_a_document_without_what_is_around_it() {
    let service = start().await;
    let document = scraped(&service, "/article").await;
    assert_eq!(document["url"], "http://site.test/article");
    assert_eq!(document["title"], "Why the harbour lights went out");
    let description = "For three nights in March the port worked in the dark. A relay the size of a matchbox was to blame.";
    assert_eq!(document["description"], description);
    assert_eq!(
        (&document["contentFormat"], &document["contentTruncated"]),
        (&json!("markdown"), &json!(false))
    );
    assert_eq!(document["httpStatus"], 200);
    let content = document["content"].as_str().expect("content");
    for there in [
        "## A part that nobody owned",
        "> We had a perfect plan",
        "until autumn",
    ] {
        assert!(content.contains(there), "{there}: {content}");
    }
    for gone in ["cookies", "Subscribe", "Privacy", "Ferry fares", "Share on"] {
        assert!(!content.contains(gone), "{gone}: {content}");
    }
}

#[tokio::test]
async fn bodies_of_other_kinds_are_what_they_are() {
    let service = start().await;
    let cases = [
        ("/russian", json!("Мир"), json!("Привет")),
        ("/plain", json!("café *as it is*"), json!(null)),
        ("/json", json!("```json\n{\"a\": [1, 2]}\n```"), json!(null)),
        ("/markdown", json!("# Title\n\n- one"), json!("Title")),
        ("/pdf", json!(null), json!(null)),
        ("/image", json!(null), json!(null)),
        ("/empty", json!(""), json!(null)),
        (
            "/",
            json!("Hello, **you**. [More](http://site.test/x)"),
            json!("Hello"),
        ),
    ];
    for (path, content, title) in cases {
        let document = scraped(&service, path).await;
        assert_eq!(
            (&document["content"], &document["title"]),
            (&content, &title),
            "{path}"
        );
        let format = match path {
            "/plain" => json!("text"),
            _ if content.is_null() => json!(null),
            _ => json!("markdown"),
        };
        assert_eq!(
            (&document["contentFormat"], &document["httpStatus"]),
            (&format, &json!(200)),
            "{path}"
        );
    }
}

#[tokio::test]
async fn pages_of_odd_makes_are_read() {
    let service = start().await;
    let frames = scraped(&service, "/frames").await;
    assert_eq!(
        (&frames["title"], &frames["content"]),
        (&json!("Framed"), &json!("The **same** without frames."))
    );
    for path in ["/mislabelled", "/latin-by-name"] {
        let document = scraped(&service, path).await;
        let expected = (
            &json!("Café"),
            &json!("A café, déjà vu, naïve and all that."),
        );
        assert_eq!(
            (&document["title"], &document["content"]),
            expected,
            "{path}"
        );
    }
    let tangled = scraped(&service, "/tangled").await;
    let content = tangled["content"].as_str().expect("content");
    for there in [
        "| Three |",
        "A **bold *word*** *and* the rest",
        "- second",
        "The end",
    ] {
        assert!(content.contains(there), "{there}: {content}");
    }
}

#[tokio::test]
async fn a_status_of_failure_is_told_with_the_page() {
    let service = start().await;
    let missing = scraped(&service, "/missing").await;
    assert_eq!(
        (&missing["httpStatus"], &missing["content"]),
        (&json!(404), &json!("There is no such page"))
    );
    assert_eq!(scraped(&service, "/broken").await["httpStatus"], 500);
}

#[tokio::test]
async fn a_page_that_sends_its_reader_on_is_followed_within_bounds() {
    let service = start().await;
    for path in ["/moved", "/refresh"] {
        assert_eq!(
            scraped(&service, path).await["url"],
            "http://site.test/article",
            "{path}"
        );
    }
    assert_eq!(
        scraped(&service, "/refresh-later").await["content"],
        "Stay here"
    );
    assert_eq!(
        scraped(&service, "/refresh-around").await["content"],
        "Round and round"
    );
    for path in ["/around", "/inside"] {
        let url = json!({ "url": format!("http://site.test{path}") });
        assert_eq!(
            refusal(&service, &url).await,
            (502, "UPSTREAM_BAD_RESPONSE".to_owned()),
            "{path}"
        );
    }
}

#[tokio::test]
async fn content_is_cut_at_its_length_and_hostile_pages_are_read() {
    let service = start().await;
    let long = scraped(&service, "/long").await;
    assert_eq!(long["contentTruncated"], true);
    let length = long["content"].as_str().expect("content").chars().count();
    assert!((199_000..=200_000).contains(&length), "{length}");
    assert_eq!(scraped(&service, "/deep").await["content"], "text");
    assert_eq!(scraped(&service, "/script").await["title"], "App");
    let huge = json!({ "url": "http://site.test/huge" });
    assert_eq!(
        refusal(&service, &huge).await,
        (502, "UPSTREAM_BAD_RESPONSE".to_owned())
    );
}

#[tokio::test]
async fn pages_that_are_made_to_cost_much_are_answered() {
    let service = start().await;
    for (path, content, is_cut) in [
        ("/end-tags", "text", true),
        ("/attributes", "text", true),
        ("/structured", "text", false),
        ("/far-links", "text", false),
    ] {
        let document = scraped(&service, path).await;
        assert_eq!(
            (&document["content"], &document["contentTruncated"]),
            (&json!(content), &json!(is_cut)),
            "{path}"
        );
    }
    let pictures = scraped(&service, "/pictures").await;
    assert_eq!(
        pictures["content"],
        "A picture ![not this one](http://site.test/a.png)"
    );
    for path in ["/far-links", "/end-tags-of-a-map"] {
        let answer = service
            .post(
                "/api/v1/web/map",
                &json!({ "url": format!("http://site.test{path}") }),
            )
            .await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.json());
    }
    // None of these calls was killed, or the plugin would be paused.
    assert_eq!(scraped(&service, "/spaces").await["httpStatus"], 200);
}

#[tokio::test]
async fn white_space_between_inline_elements_is_kept() {
    let service = start().await;
    assert_eq!(
        scraped(&service, "/spaces").await["content"],
        "**bold** *italic* and `pip install`"
    );
    for (format, content) in [
        ("text", "bold italic and pip install"),
        (
            "html",
            "<p><b>bold</b> <i>italic</i> and <code>pip install</code></p>",
        ),
    ] {
        let arguments = json!({ "url": "http://site.test/spaces", "format": format });
        let answer = Post::call("scrape_web_page", &arguments)
            .bearer(service.key())
            .send(&service)
            .await
            .json();
        assert_eq!(
            answer["result"]["structuredContent"]["data"]["document"]["content"],
            content
        );
    }
}

#[tokio::test]
async fn content_has_nothing_live() {
    let service = start().await;
    let live = scraped(&service, "/live").await;
    let content = live["content"].as_str().expect("content");
    let expected = "The harbour office wrote this piece about markup, and every word of it belongs to the text that a reader came for. \
        \\<img src=x onerror=alert(1)> [mail](mailto:a%20b%3Cimg%20src=x%3E) Look\\![here](http://site.test/x)`<b>`";
    assert_eq!(content, expected);
    let code = scraped(&service, "/live-code").await;
    assert_eq!(
        code["content"],
        "```\n<img src=x onerror=alert(2)>\n```\n\n```\n<i>\n```"
    );
    let text = scraped(&service, "/live-text").await;
    let expected = (
        &json!("text"),
        &json!("&lt; <img src=x onerror=alert(1)> *a*"),
    );
    assert_eq!((&text["contentFormat"], &text["content"]), expected);
    let arguments = json!({ "url": "http://site.test/live-code", "format": "html" });
    let answer = Post::call("scrape_web_page", &arguments)
        .bearer(service.key())
        .send(&service)
        .await
        .json();
    let html = &answer["result"]["structuredContent"]["data"]["document"]["content"];
    assert_eq!(
        *html,
        "<pre>&lt;img src=x onerror=alert(2)&gt;</pre><pre>&lt;i&gt;</pre>"
    );
    let cut = scraped(&service, "/cut-code").await;
    let content = cut["content"].as_str().expect("content");
    assert_eq!(
        (content.chars().count(), content.matches('`').count()),
        (199_999, 2)
    );
    assert!(content.starts_with('`') && content.ends_with('`') && cut["contentTruncated"] == true);
}

#[tokio::test]
async fn titles_and_descriptions_have_ten_thousand_characters() {
    let service = start().await;
    let declared = scraped(&service, "/declared").await;
    let length = |field: &str| declared[field].as_str().map(|text| text.chars().count());
    assert_eq!(
        (length("title"), length("description")),
        (Some(9499), Some(9499))
    );
    assert!(
        declared["description"]
            .as_str()
            .is_some_and(|text| text.starts_with("told told"))
    );
    assert_eq!(declared["contentTruncated"], false);
    let more = scraped(&service, "/declared-more").await;
    assert_eq!(
        more["title"].as_str().map(|title| title.chars().count()),
        Some(9999)
    );
    assert_eq!(
        (&more["content"], &more["contentTruncated"]),
        (&json!("text"), &json!(true))
    );
}

#[tokio::test]
async fn a_url_that_may_not_be_fetched_is_refused_by_its_field() {
    let service = start().await;
    let urls = [
        "ftp://site.test/",
        "site.test",
        "http://me:word@site.test/",
        "http://site.test:8080/",
        "http://127.0.0.1/",
        "http://localhost/",
        "http://[::1]/",
        "http://169.254.169.254/latest/",
    ];
    for url in urls {
        let answer = service.post(SCRAPE, &json!({ "url": url })).await;
        assert_eq!(
            answer.refusal(),
            (400, "VALIDATION_ERROR".to_owned()),
            "{url}"
        );
        assert_eq!(answer.json()["data"]["field"], "url", "{url}");
    }
    for body in [
        json!({}),
        json!({ "url": "" }),
        json!({ "url": "http://site.test/", "format": "text" }),
    ] {
        assert_eq!(refusal(&service, &body).await.0, 400, "{body}");
    }
    let long = json!({ "url": format!("http://site.test/{}", "a".repeat(2048)) });
    assert_eq!(refusal(&service, &long).await.0, 400);
    for url in ["http://closed.test/", "http://site.test/no-http"] {
        let expected = (502, "UPSTREAM_BAD_RESPONSE".to_owned());
        assert_eq!(
            refusal(&service, &json!({ "url": url })).await,
            expected,
            "{url}"
        );
    }
}

#[tokio::test]
async fn the_tool_takes_a_format_that_rest_has_not() {
    let service = start().await;
    let call = async |arguments: Value| {
        Post::call("scrape_web_page", &arguments)
            .bearer(service.key())
            .send(&service)
            .await
    };
    let url = "http://site.test/";
    let cases = [
        (
            json!({ "url": url }),
            "markdown",
            "Hello, **you**. [More](http://site.test/x)",
        ),
        (
            json!({ "url": url, "format": "text" }),
            "text",
            "Hello, you. More",
        ),
        (
            json!({ "url": url, "format": "html" }),
            "html",
            "<p>Hello, <b>you</b>. <a href=\"http://site.test/x\">More</a></p>",
        ),
    ];
    for (arguments, format, content) in cases {
        let answer = call(arguments.clone()).await.json();
        let document = &answer["result"]["structuredContent"]["data"]["document"];
        assert_eq!(
            (&document["contentFormat"], &document["content"]),
            (&json!(format), &json!(content)),
            "{answer}"
        );
    }
    assert!(outcome(&call(json!({ "url": url, "format": "pdf" })).await).contains("isError"));
}

#[tokio::test]
async fn a_credential_has_twenty_scrapes_a_minute() {
    let service = start().await;
    let (_, statuses) = in_one_minute(async || {
        let key = service.issue(&["--scope", "web:scrape"]);
        let mut statuses = Vec::new();
        for _ in 0..21 {
            let request = service.bare(Method::POST, SCRAPE).bearer_auth(&key);
            statuses.push(
                Service::send(request.json(&json!({ "url": "http://site.test/" })))
                    .await
                    .status,
            );
        }
        statuses
    })
    .await;
    assert_eq!(statuses, [vec![200; 20], vec![429]].concat());
}
