//! `/mcp` below the protocol: methods, origins, media types, sizes, JSON, and what is no request.

use reqwest::Method;
use serde_json::json;

use crate::support::{Options, Post, Service, outcome};

const VERSIONS: [&str; 4] = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const PING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
const MESSAGE_BYTES_MAX: usize = 65_536;

#[tokio::test]
async fn only_post_is_taken_and_a_credential_changes_nothing() {
    let service = Service::shared();
    let other = [Method::GET, Method::DELETE, Method::PUT, Method::PATCH];
    for method in other {
        for credential in [None, Some("nonsense"), Some(service.key())] {
            let mut request = service
                .bare(method.clone(), "/mcp")
                .header("accept", "text/event-stream");
            if let Some(credential) = credential {
                request = request.bearer_auth(credential);
            }
            let answer = Service::send(request.header("origin", "https://evil.example")).await;
            assert_eq!(outcome(&answer), "405 -32600", "{method}");
            assert_eq!(answer.header("allow"), "POST", "{method}");
            assert!(answer.headers.get("www-authenticate").is_none(), "{method}");
        }
    }
    let head = Service::send(service.bare(Method::HEAD, "/mcp")).await;
    assert_eq!(
        (head.status, head.header("allow"), head.bytes.len()),
        (405, "POST", 0)
    );
}

#[tokio::test]
async fn an_origin_must_be_ours_or_configured() {
    let config = "[mcp]\norigins = [\"https://app.example.com\"]\n".to_owned();
    let service = Service::start(Options {
        config,
        ..Options::default()
    })
    .await;
    let port = service
        .base_url
        .rsplit(':')
        .next()
        .expect("a port")
        .to_owned();
    let cases = [
        (None, "200 result #7"),
        (Some(format!("http://127.0.0.1:{port}")), "200 result #7"),
        (Some(format!("http://localhost:{port}")), "200 result #7"),
        (Some("https://app.example.com".to_owned()), "200 result #7"),
        (Some("http://app.example.com".to_owned()), "403 -32600"),
        (
            Some("https://app.example.com:8443".to_owned()),
            "403 -32600",
        ),
        (
            Some("https://app.example.com.evil.example".to_owned()),
            "403 -32600",
        ),
        (Some("http://localhost:1".to_owned()), "403 -32600"),
        (Some("http://evil.example.com".to_owned()), "403 -32600"),
        (Some("null".to_owned()), "403 -32600"),
        (Some(String::new()), "403 -32600"),
    ];
    for (origin, expected) in cases {
        let post = match &origin {
            Some(origin) => Post::raw(PING).header("origin", origin),
            None => Post::raw(PING),
        };
        let answer = post.send(&service).await;
        assert_eq!(outcome(&answer), expected, "{origin:?}");
        let allowed = answer
            .headers
            .get("access-control-allow-origin")
            .and_then(|value| value.to_str().ok());
        assert_eq!(
            allowed,
            origin.as_deref().filter(|_| answer.status == 200),
            "{origin:?}"
        );
    }
}

#[tokio::test]
async fn a_browser_of_an_allowed_origin_may_ask_and_read() {
    let service = Service::shared();
    let preflight = |origin: String| {
        let request = service
            .bare(Method::OPTIONS, "/mcp")
            .header("origin", origin);
        Service::send(request.header("access-control-request-method", "POST"))
    };
    let answer = preflight(service.base_url.clone()).await;
    assert_eq!((answer.status, answer.bytes.len()), (204, 0));
    assert_eq!(
        answer.header("access-control-allow-origin"),
        service.base_url
    );
    assert_eq!(answer.header("vary"), "Origin");
    assert!(
        answer
            .header("access-control-allow-methods")
            .split(", ")
            .any(|method| method == "POST")
    );
    let allowed = answer
        .header("access-control-allow-headers")
        .to_ascii_lowercase();
    let needed =
        "authorization content-type mcp-protocol-version mcp-method mcp-name x-service-api-key";
    for name in needed.split(' ') {
        assert!(
            allowed.split(", ").any(|header| header == name),
            "{name} is not in {allowed}"
        );
    }

    let answer = Post::raw(PING)
        .header("origin", &service.base_url)
        .send(service)
        .await;
    let exposed = answer
        .header("access-control-expose-headers")
        .to_ascii_lowercase();
    for name in [
        "www-authenticate",
        "mcp-protocol-version",
        "x-apikey-ratelimit-remaining",
        "x-apikey-credit-cost",
    ] {
        assert!(
            exposed.split(", ").any(|header| header == name),
            "{name} is not in {exposed}"
        );
    }

    let answer = preflight("https://evil.example".to_owned()).await;
    assert_eq!(outcome(&answer), "403 -32600");
    assert!(answer.headers.get("access-control-allow-origin").is_none());
}

#[tokio::test]
async fn accept_must_list_both_media_types() {
    let cases = [
        ("application/json, text/event-stream", "200 result #7"),
        ("text/event-stream,application/json", "200 result #7"),
        (
            "application/json;q=0.5, Text/Event-Stream; charset=utf-8, */*;q=0.1",
            "200 result #7",
        ),
        ("application/json", "406 -32600"),
        ("text/event-stream", "406 -32600"),
        ("*/*", "406 -32600"),
        ("application/*, text/*", "406 -32600"),
        ("application/json, */*", "406 -32600"),
        ("application/json, text/event-stream;q=0", "406 -32600"),
        ("application/json; q=0.000, text/event-stream", "406 -32600"),
        ("application/jsonp, text/event-stream", "406 -32600"),
        ("", "406 -32600"),
    ];
    for (accept, expected) in cases {
        Post::raw(PING)
            .header("accept", accept)
            .check(expected)
            .await;
    }
    Post::raw(PING)
        .header("accept", "application/json")
        .repeated("accept", "text/event-stream")
        .check("200 result #7")
        .await;
}

#[tokio::test]
async fn the_body_must_say_that_it_is_json() {
    let cases = [
        ("application/json", "200 result #7"),
        ("application/json; charset=utf-8", "200 result #7"),
        ("Application/JSON", "200 result #7"),
        ("text/plain", "415 -32600"),
        ("application/json-rpc", "415 -32600"),
        ("application/vnd.api+json", "415 -32600"),
    ];
    for (content_type, expected) in cases {
        Post::raw(PING)
            .header("content-type", content_type)
            .check(expected)
            .await;
    }
    Post::raw(PING)
        .without("content-type")
        .check("415 -32600")
        .await;
}

#[tokio::test]
async fn a_message_has_at_most_64_kibibytes() {
    let padded = |bytes: usize| Post::raw(format!("{PING}{}", " ".repeat(bytes - PING.len())));
    padded(MESSAGE_BYTES_MAX).check("200 result #7").await;
    padded(MESSAGE_BYTES_MAX + 1).check("413 -32600").await;
    padded(10 * MESSAGE_BYTES_MAX).check("413 -32600").await;
}

/// Each fault is hidden by the one before it.
#[tokio::test]
async fn the_checks_stand_in_their_order() {
    let broken = Post::raw("x".repeat(MESSAGE_BYTES_MAX + 1))
        .header("origin", "https://evil.example")
        .header("accept", "application/json")
        .header("content-type", "text/plain");
    broken.check("403 -32600").await;
    let broken = broken.without("origin");
    broken.check("406 -32600").await;
    let broken = broken.header("accept", "application/json, text/event-stream");
    broken.check("415 -32600").await;
    broken
        .header("content-type", "application/json")
        .check("413 -32600")
        .await;
    let broken = Post::raw("x").header("mcp-protocol-version", "1999-01-01");
    broken.check("400 -32700").await;
    let no_method = r#"{"jsonrpc":"2.0","id":7}"#;
    Post::raw(no_method)
        .header("mcp-protocol-version", "1999-01-01")
        .check("400 -32600 #7")
        .await;
    Post::raw(PING)
        .header("mcp-protocol-version", "1999-01-01")
        .check("400 -32022 #7")
        .await;
}

#[tokio::test]
async fn what_is_no_json_is_a_parse_error_without_an_id() {
    let deep = "[".repeat(10_000);
    let cases = [
        "",
        "{",
        "nonsense",
        "{'jsonrpc':'2.0'}",
        r#"{"jsonrpc":"2.0","id":7,"method":"ping"} x"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":{"b":1,"b":2}}}"#,
        r#"{"jsonrpc":"2.0","id":1e999,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":"\ud800","method":"ping"}"#,
        deep.as_str(),
    ];
    for body in cases {
        Post::raw(body).check("400 -32700").await;
    }
}

#[tokio::test]
async fn what_is_no_request_is_refused_with_its_id_where_one_can_be_read() {
    let cases = [
        (r#"{"jsonrpc":"2.0","id":7}"#, "400 -32600 #7"),
        (r#"{"jsonrpc":"2.0"}"#, "400 -32600"),
        (r#"{"jsonrpc":"2.0","id":7,"method":1}"#, "400 -32600 #7"),
        (r#"{"jsonrpc":"2.0","id":7,"method":null}"#, "400 -32600 #7"),
        (
            r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#,
            "400 -32600 #7",
        ),
        (r#"{"jsonrpc":2.0,"id":7,"method":"ping"}"#, "400 -32600 #7"),
        (r#"{"id":"a","method":"ping"}"#, r#"400 -32600 #"a""#),
        (r#"{"method":"notifications/initialized"}"#, "400 -32600"),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            "400 -32600",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            "400 -32600",
        ),
        (
            r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
            "400 -32600",
        ),
        (
            r#"{"jsonrpc":"2.0","id":[7],"method":"ping"}"#,
            "400 -32600",
        ),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, "400 -32600"),
        ("{}", "400 -32600"),
        ("null", "400 -32600"),
        ("7", "400 -32600"),
        (r#""ping""#, "400 -32600"),
    ];
    for (body, expected) in cases {
        Post::raw(body).check(expected).await;
    }
}

#[tokio::test]
async fn an_id_is_a_string_or_an_integer_and_comes_back_as_it_was() {
    for id in [
        "0",
        "-3",
        "9007199254740993",
        "18446744073709551615",
        r#""""#,
        r#""a\"b\\ü""#,
        r#""7""#,
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        Post::raw(body).check(&format!("200 result #{id}")).await;
    }
}

#[tokio::test]
async fn a_notification_is_accepted_whatever_it_says() {
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    Post::raw(initialized).check("202").await;
    for version in VERSIONS.into_iter().chain(["1999-01-01", "2099-01-01"]) {
        Post::raw(initialized)
            .header("mcp-protocol-version", version)
            .check("202")
            .await;
    }
    let cases = [
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/of-tomorrow","params":[1]}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"nonsense"}}"#,
        r#"{"jsonrpc":"2.0","method":"initialize"}"#,
    ];
    for body in cases {
        Post::raw(body).check("202").await;
    }
}

#[tokio::test]
async fn a_response_is_accepted_from_legacy_clients_alone() {
    let result = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
    let error = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}}"#;
    for body in [result, error] {
        Post::raw(body).check("202").await;
        for version in &VERSIONS[..3] {
            Post::raw(body)
                .header("mcp-protocol-version", version)
                .check("202")
                .await;
        }
        Post::raw(body)
            .header("mcp-protocol-version", "2026-07-28")
            .check("400 -32600")
            .await;
        Post::raw(body)
            .header("mcp-protocol-version", "2099-01-01")
            .check("400 -32600")
            .await;
    }
}

/// There are no sessions and no streams, so what names one is ignored; [`outcome`] checks that none is made.
#[tokio::test]
async fn a_session_of_an_older_server_is_ignored() {
    let service = Service::shared();
    let post = Post::legacy("2025-11-25", "ping", json!({}))
        .header("mcp-session-id", "1868a90c-0001-4f3b-9a9f-000000000000")
        .header("last-event-id", "12");
    post.check("200 result #7").await;
    let answer = post.send(service).await;
    assert_eq!(answer.header("cache-control"), "private, no-store");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert_eq!(answer.header("x-request-id").len(), 36);
}
