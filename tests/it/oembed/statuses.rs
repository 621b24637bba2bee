//! What providers answer instead of a post, and the code that each of it becomes, on both faces.

mod meta;

use serde_json::{Value, json};

use super::{House, tiktok_video, x_post};
use crate::lab::Reply;
use crate::support::{Answer, Service};

const VALIDATION: (u16, &str) = (400, "VALIDATION_ERROR");
const INVALID_URL: (u16, &str) = (400, "OEMBED_INVALID_URL");
const UNSAFE: (u16, &str) = (400, "OEMBED_SECURITY_REJECTED");
const PRIVATE: (u16, &str) = (403, "OEMBED_PRIVATE_CONTENT");
const NOT_FOUND: (u16, &str) = (404, "OEMBED_NOT_FOUND");
const UNSUPPORTED_PROVIDER: (u16, &str) = (422, "OEMBED_UNSUPPORTED_PROVIDER");
const UNSUPPORTED_URL: (u16, &str) = (422, "OEMBED_UNSUPPORTED_URL");
const LIMITED: (u16, &str) = (429, "OEMBED_RATE_LIMITED");
const UPSTREAM: (u16, &str) = (502, "OEMBED_UPSTREAM_ERROR");
const INVALID_RESPONSE: (u16, &str) = (502, "OEMBED_INVALID_RESPONSE");
const UNAVAILABLE: (u16, &str) = (503, "SERVICE_UNAVAILABLE");
const TIMEOUT: (u16, &str) = (504, "OEMBED_UPSTREAM_TIMEOUT");

/// Asks for a post about which its provider answers this, and gives back the members of the failure's `data`.
async fn check(url: &str, holds: &str, reply: Reply, expected: (u16, &str)) -> Value {
    let house = House::shared();
    house.lab.answer(holds, reply.clone());
    let (status, code, data) = house.refused(url).await;
    assert_eq!((status, code.as_str()), expected, "{url}: {reply:?}");
    data
}

/// The same of a numbered post on X.
async fn x(number: u32, reply: Reply, expected: (u16, &str)) -> Value {
    check(
        &format!("https://x.com/jack/status/{number}"),
        &format!("jack%2Fstatus%2F{number}&"),
        reply,
        expected,
    )
    .await
}

async fn reddit(id: &str, reply: Reply, expected: (u16, &str)) {
    check(
        &format!("https://www.reddit.com/r/rust/comments/{id}"),
        &format!("comments%2F{id}%2F"),
        reply,
        expected,
    )
    .await;
}

async fn tiktok(id: u64, reply: Reply, expected: (u16, &str)) {
    check(
        &format!("https://www.tiktok.com/@a/video/{id}"),
        &format!("video%2F{id}"),
        reply,
        expected,
    )
    .await;
}

#[tokio::test]
async fn what_x_answers_in_pages() {
    x(9001, Reply::page(404, "Not Found"), NOT_FOUND).await;
    x(
        9002,
        Reply::page(403, "Sorry, you are not authorized to see this status."),
        PRIVATE,
    )
    .await;
    x(
        9003,
        Reply::page(403, "User has been suspended."),
        NOT_FOUND,
    )
    .await;
    let data = x(9004, Reply::page(429, "Rate limit exceeded"), LIMITED).await;
    assert_eq!(data, json!({ "retryAfter": 10 }));
    let data = x(
        9005,
        Reply::page(429, "").header("retry-after", "75"),
        LIMITED,
    )
    .await;
    assert!(
        (70..=75).contains(&data["retryAfter"].as_u64().expect("seconds")),
        "{data}"
    );
    let data = x(
        9006,
        Reply::page(429, "").header("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"),
        LIMITED,
    )
    .await;
    assert_eq!(data, json!({ "retryAfter": 10 }));
    for (number, status) in [
        (9007, 500),
        (9008, 502),
        (9009, 503),
        (9010, 400),
        (9011, 418),
    ] {
        assert_eq!(
            x(
                number,
                Reply::page(status, "Something went wrong"),
                UPSTREAM
            )
            .await,
            json!({})
        );
    }
    x(
        9012,
        Reply::redirect(301, "https://publish.x.com/elsewhere"),
        UPSTREAM,
    )
    .await;
    x(9013, Reply::Close, UPSTREAM).await;
    x(9014, Reply::page(410, "Gone"), NOT_FOUND).await;
    x(
        9015,
        Reply::page(451, "Unavailable for legal reasons"),
        PRIVATE,
    )
    .await;
}

#[tokio::test]
async fn an_answer_that_is_none_of_the_post_cannot_be_used() {
    x(9021, Reply::page(200, "Log in"), INVALID_RESPONSE).await;
    x(
        9022,
        Reply::body(200, "application/json", "{\"url\": "),
        INVALID_RESPONSE,
    )
    .await;
    x(9023, Reply::json(200, &json!([1])), INVALID_RESPONSE).await;
    x(
        9024,
        Reply::body(200, "application/json", ""),
        INVALID_RESPONSE,
    )
    .await;
    x(
        9025,
        Reply::body(200, "application/json", vec![0xff; 100]),
        INVALID_RESPONSE,
    )
    .await;
    x(9026, Reply::json(200, &x_post("9027")), INVALID_RESPONSE).await;
    let id = 7_000_000_000_000_000_101;
    let mut said = tiktok_video("a", &id.to_string());
    said["html"] = json!(null);
    tiktok(id, Reply::json(200, &said), INVALID_RESPONSE).await;
    said["html"] = json!(" <script src=\"https://www.tiktok.com/embed.js\"></script> ");
    tiktok(id + 1, Reply::json(200, &said), INVALID_RESPONSE).await;
    said["html"] = json!("a".repeat(512 * 1024));
    tiktok(id + 2, Reply::json(200, &said), INVALID_RESPONSE).await;
    said["html"] = json!("<".repeat(200 * 1024));
    tiktok(id + 3, Reply::json(200, &said), INVALID_RESPONSE).await;
}

/// By the widget's number, by the address that it cites, or by the one that it links to.
#[tokio::test]
async fn an_answer_of_another_post_cannot_be_used() {
    let id = 7_000_000_000_000_000_101;
    let mut said = tiktok_video("a", &id.to_string());
    tiktok(
        id + 4,
        Reply::json(200, &tiktok_video("a", &id.to_string())),
        INVALID_RESPONSE,
    )
    .await;
    said["html"] = json!(format!(
        "<blockquote cite=\"https://www.tiktok.com/@a/video/{id}\">a</blockquote>"
    ));
    tiktok(id + 5, Reply::json(200, &said), INVALID_RESPONSE).await;
    for (url, holds, attribute, other) in [
        (
            "https://www.instagram.com/p/Lab9001/",
            "Lab9001",
            "data-instgrm-permalink",
            "https://www.instagram.com/p/Lab9009/",
        ),
        (
            "https://www.facebook.com/a/posts/9001",
            "posts%2F9001",
            "data-href",
            "https://www.facebook.com/a/posts/9009",
        ),
        (
            "https://www.threads.com/t/Lab9002",
            "Lab9002",
            "data-text-post-permalink",
            "https://www.threads.com/@a/post/Lab9009",
        ),
        (
            "https://redd.it/9b001",
            "comments%2F9b001",
            "href",
            "https://www.reddit.com/r/rust/comments/9b009/",
        ),
    ] {
        let html = format!("<blockquote><a {attribute}=\"{other}\">a</a></blockquote>");
        check(
            url,
            holds,
            Reply::json(200, &json!({ "html": html })),
            INVALID_RESPONSE,
        )
        .await;
    }
}

#[tokio::test]
async fn what_tiktok_and_reddit_answer() {
    let same = json!({ "message": "Something went wrong", "code": 400 });
    tiktok(
        7_000_000_000_000_000_201,
        Reply::json(400, &same),
        NOT_FOUND,
    )
    .await;
    tiktok(
        7_000_000_000_000_000_202,
        Reply::json(200, &same),
        NOT_FOUND,
    )
    .await;
    tiktok(
        7_000_000_000_000_000_203,
        Reply::page(400, "Bad Request"),
        NOT_FOUND,
    )
    .await;
    tiktok(7_000_000_000_000_000_204, Reply::page(429, ""), LIMITED).await;
    tiktok(7_000_000_000_000_000_205, Reply::page(503, ""), UPSTREAM).await;
    reddit(
        "9a001",
        Reply::json(404, &json!({ "message": "Not Found", "error": 404 })),
        NOT_FOUND,
    )
    .await;
    for (id, reason) in [
        ("9a002", "private"),
        ("9a003", "quarantined"),
        ("9a004", "gold_only"),
    ] {
        reddit(
            id,
            Reply::json(
                403,
                &json!({ "reason": reason, "message": "Forbidden", "error": 403 }),
            ),
            PRIVATE,
        )
        .await;
    }
    reddit("9a005", Reply::page(403, "whoa there, pardner!"), PRIVATE).await;
    reddit(
        "9a006",
        Reply::page(429, "Too Many Requests").header("retry-after", "3"),
        LIMITED,
    )
    .await;
    reddit(
        "9a007",
        Reply::page(500, "our CDN was unable to reach our servers"),
        UPSTREAM,
    )
    .await;
}

#[tokio::test]
async fn what_is_wrong_with_a_url_is_told_in_one_order() {
    let house = House::shared();
    let refused = async |url: &str| house.refused(url).await;
    let rows = [
        ("", VALIDATION, json!({ "field": "url", "min": 1 })),
        (" \n", VALIDATION, json!({ "field": "url", "min": 1 })),
        ("jack/status/20", INVALID_URL, json!({})),
        ("ftp://me:word@127.0.0.1:99/", INVALID_URL, json!({})),
        ("https://me:word@x.com/jack/status/20", UNSAFE, json!({})),
        ("https://x.com:8443/jack/status/20", UNSAFE, json!({})),
        ("http://127.0.0.1/jack/status/20", UNSAFE, json!({})),
        ("http://[::1]/", UNSAFE, json!({})),
        (
            "https://example.org/jack/status/20",
            UNSUPPORTED_PROVIDER,
            json!({}),
        ),
        ("https://t.co/abc", UNSUPPORTED_PROVIDER, json!({})),
        ("https://x.com/jack", UNSUPPORTED_URL, json!({})),
        (
            "https://www.facebook.com/login/",
            UNSUPPORTED_URL,
            json!({}),
        ),
    ];
    for (url, (status, code), data) in rows {
        assert_eq!(refused(url).await, (status, code.to_owned(), data), "{url}");
    }
    let long = format!("https://x.com/jack/status/20?q={}", "a".repeat(2048));
    let data = json!({ "field": "url", "max": 2048 });
    assert_eq!(
        refused(&long).await,
        (VALIDATION.0, VALIDATION.1.to_owned(), data)
    );
}

#[tokio::test]
async fn a_body_or_a_key_that_does_not_fit_is_refused() {
    let house = House::shared();
    let refusal = |answer: &Answer| (answer.refusal(), answer.json()["data"]["field"].clone());
    let expected = |field: &str| ((400, "VALIDATION_ERROR".to_owned()), json!(field));
    let post = async |body: &str| {
        house
            .service
            .post_raw(super::RESOLVE, body.to_owned())
            .await
    };
    assert_eq!(refusal(&post("{}").await), expected("url"));
    assert_eq!(refusal(&post("{\"url\": 5}").await), expected("url"));
    let extra = post("{\"url\": \"https://x.com/jack/status/20\", \"maxwidth\": 5}").await;
    assert_eq!(refusal(&extra), expected("maxwidth"));
    let key = house.service.issue(&["--scope", "bank-qr:banks"]);
    let request = house
        .service
        .bare(reqwest::Method::POST, super::RESOLVE)
        .bearer_auth(key);
    assert_eq!(
        Service::send(request.json(&json!({}))).await.refusal(),
        (403, "FORBIDDEN".to_owned())
    );
}

#[tokio::test]
async fn a_provider_has_so_long_for_its_answer_and_the_call_for_all() {
    // The times are the manifest's here; without it they are 8 and 12 seconds.
    let request = House::start("", "config = { request_ms = 500 }").await;
    request.lab.answer("status%2F21&", Reply::Hang);
    let refused = async |house: &House, url: &str| house.refused(url).await;
    let late = (TIMEOUT.0, TIMEOUT.1.to_owned(), json!({}));
    assert_eq!(
        refused(&request, "https://x.com/jack/status/21").await,
        late
    );
    request.lab.answer("vm.tiktok.com/ZMhang", Reply::Hang);
    assert_eq!(
        refused(&request, "https://vm.tiktok.com/ZMhang/").await,
        late
    );

    let whole = House::start("wall_ms = 500, ", "").await;
    whole.lab.answer("status%2F21&", Reply::Hang);
    assert_eq!(refused(&whole, "https://x.com/jack/status/21").await, late);
}

#[tokio::test]
async fn the_operator_may_name_another_provider_within_the_grants() {
    let setting = "{ base_url = \"https://graph.threads.com/other/\", version = \"v9\", user_agent = \"lab/1\" }";
    let house = House::start(
        "",
        &format!("config = {{ x = {setting}, reddit = {{ bas_url = \"a\" }} }}"),
    )
    .await;
    house.lab.answer(
        "graph.threads.com/other/v9/oembed?url=",
        Reply::json(200, &x_post("22")),
    );
    assert_eq!(
        house.resolved("https://x.com/jack/status/22").await["provider"],
        "x"
    );
    assert_eq!(house.lab.asked("other/v9")[0].header("user-agent"), "lab/1");
    let unavailable = (UNAVAILABLE.0, UNAVAILABLE.1.to_owned(), json!({}));
    assert_eq!(
        house.refused("https://redd.it/9c001").await,
        unavailable,
        "a setting that does not exist"
    );

    let house = House::start(
        "",
        "config = { x = { base_url = \"https://provider.lab.test/\" } }",
    )
    .await;
    assert_eq!(
        house.refused("https://x.com/jack/status/22").await,
        unavailable,
        "no grant covers it"
    );
    house.check_asked("provider.lab.test", 0);
    let told = |line: &Value| {
        line["target"] == "plugin"
            && line["message"]
                .as_str()
                .is_some_and(|text| text.contains("was denied"))
    };
    house.service.log_until(|lines| lines.iter().any(told));
}
