//! What a client reads before it calls: the resources, the server card and the protected-resource metadata.

use regex_lite::Regex;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Answer, MODERN, Options, Post, Service, outcome, workspace};

const CARD_PATHS: [&str; 2] = ["/.well-known/mcp/server-card.json", "/mcp/server-card"];
const METADATA: &str = "/.well-known/oauth-protected-resource";

async fn get(service: &Service, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = service.bare(Method::GET, path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Service::send(request).await
}

async fn result(method: &str, params: Value) -> Value {
    let answer = Post::legacy("2025-11-25", method, params)
        .send(Service::shared())
        .await;
    assert_eq!(outcome(&answer), "200 result #7", "{method}");
    answer.json()["result"].clone()
}

/// A service whose base URL has a path, behind a proxy that takes it away.
async fn behind_a_path() -> Service {
    let manifest = Some(workspace().join("plugin-manifest.toml"));
    let arguments = vec!["--base-url".to_owned(), "HTTP://H.Example/api/".to_owned()];
    Service::start(Options {
        manifest,
        arguments,
        ..Options::default()
    })
    .await
}

#[tokio::test]
async fn the_resources_are_the_same_bytes_as_over_http() {
    let listed = result("resources/list", json!({})).await;
    let resources = listed["resources"].as_array().expect("an array");
    let expected = [
        (
            "service://developer-guide",
            "developer-guide",
            "text/markdown",
            "/developer-guide",
        ),
        (
            "service://openapi",
            "openapi",
            "application/json",
            "/openapi.json",
        ),
    ];
    assert_eq!(resources.len(), expected.len(), "{listed}");
    for (resource, (uri, name, kind, path)) in resources.iter().zip(expected) {
        let told = [&resource["uri"], &resource["name"], &resource["mimeType"]];
        assert_eq!(told, [uri, name, kind]);
        for member in ["title", "description"] {
            assert!(
                resource[member]
                    .as_str()
                    .is_some_and(|text| !text.is_empty()),
                "{resource}"
            );
        }
        let served = get(Service::shared(), path, &[]).await;
        assert_eq!(served.status, 200);
        assert!(served.header("content-type").starts_with(kind), "{path}");
        let text = String::from_utf8(served.bytes).expect("UTF-8");
        assert_eq!(resource["size"], text.len(), "{path}");
        let read = result("resources/read", json!({ "uri": uri })).await;
        assert_eq!(
            read,
            json!({ "contents": [{ "uri": uri, "mimeType": kind, "text": text }] })
        );
    }
}

#[tokio::test]
async fn the_server_card_is_one_document_at_two_addresses() {
    let service = Service::shared();
    let [first, second] = [
        get(service, CARD_PATHS[0], &[]).await,
        get(service, CARD_PATHS[1], &[]).await,
    ];
    assert_eq!(first.bytes, second.bytes);
    let card = first.json();
    assert_eq!(
        card["$schema"],
        "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
    );
    assert_eq!(card["name"], "dev.switchbay/api");
    let name = Regex::new("^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$").expect("a pattern");
    assert!(name.is_match(card["name"].as_str().expect("a name")));
    let description = card["description"].as_str().expect("a description");
    assert!(
        (1..=100).contains(&description.chars().count()),
        "{description}"
    );
    assert_eq!(
        (&card["title"], &card["version"]),
        (&json!("Switchbay"), &json!(env!("CARGO_PKG_VERSION")))
    );
    assert_eq!(
        card["websiteUrl"],
        format!("{}/developer-guide", service.base_url)
    );
    let remote = &card["remotes"][0];
    assert_eq!(remote["type"], "streamable-http");
    assert_eq!(remote["url"], format!("{}/mcp", service.base_url));
    let header = &remote["headers"][0];
    assert_eq!(
        (&header["name"], &header["isSecret"], &header["isRequired"]),
        (&json!("Authorization"), &json!(true), &json!(false))
    );
    assert_eq!(
        card["transport"],
        json!({ "type": "streamable-http", "endpoint": "/mcp" })
    );
    assert!(card.get("tools").is_none(), "{card}");
}

#[tokio::test]
async fn the_server_card_agrees_with_discovery() {
    let card = get(Service::shared(), CARD_PATHS[0], &[]).await.json();
    let discovered = Post::modern("server/discover", json!({}))
        .send(Service::shared())
        .await
        .json()["result"]
        .clone();
    assert_eq!(
        card["remotes"][0]["supportedProtocolVersions"],
        discovered["supportedVersions"]
    );
    assert_eq!(card["capabilities"], discovered["capabilities"]);
    assert_eq!(
        card["serverInfo"],
        discovered["_meta"]["io.modelcontextprotocol/serverInfo"]
    );
    assert_eq!(card["version"], card["serverInfo"]["version"]);
    assert_eq!(discovered["supportedVersions"][0], MODERN);
}

#[tokio::test]
async fn the_server_card_has_its_own_type_where_it_is_asked_for() {
    let cases = [
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        (
            "application/mcp-server-card+json",
            "application/mcp-server-card+json",
        ),
        (
            "application/mcp-server-card+json, application/json;q=0.5",
            "application/mcp-server-card+json",
        ),
        (
            "application/json, application/mcp-server-card+json;q=0",
            "application/json",
        ),
    ];
    for path in CARD_PATHS {
        for (accept, expected) in cases {
            let answer = get(Service::shared(), path, &[("accept", accept)]).await;
            assert_eq!(
                (answer.status, answer.header("content-type")),
                (200, expected),
                "{path} {accept}"
            );
            assert!(
                answer
                    .header("vary")
                    .to_ascii_lowercase()
                    .contains("accept"),
                "{path} {accept}"
            );
        }
    }
}

/// What every public document carries.
async fn check_public(service: &Service, path: &str) {
    let answer = get(
        service,
        path,
        &[
            ("authorization", "Bearer nonsense"),
            ("origin", "https://any.example"),
        ],
    )
    .await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "application/json"),
        "{path}"
    );
    assert_eq!(answer.header("access-control-allow-origin"), "*", "{path}");
    let age = answer
        .header("cache-control")
        .strip_prefix("public, max-age=")
        .expect("public")
        .to_owned();
    assert!(
        (1..=3600).contains(&age.parse::<u32>().expect("seconds")),
        "{path}"
    );

    let etag = answer.header("etag");
    let unchanged = get(service, path, &[("if-none-match", etag)]).await;
    assert_eq!(
        (unchanged.status, unchanged.bytes.len()),
        (304, 0),
        "{path}"
    );
    assert_eq!(
        (
            unchanged.header("etag"),
            unchanged.header("access-control-allow-origin")
        ),
        (etag, "*"),
        "{path}"
    );
    let changed = get(service, path, &[("if-none-match", "W/\"other\"")]).await;
    assert_eq!(
        (changed.status, changed.bytes),
        (200, answer.bytes.clone()),
        "{path}"
    );

    let head = Service::send(service.bare(Method::HEAD, path)).await;
    assert_eq!((head.status, head.bytes.len()), (200, 0), "{path}");
    assert_eq!(
        head.header("content-length"),
        answer.bytes.len().to_string(),
        "{path}"
    );
    let posted = Service::send(service.bare(Method::POST, path)).await;
    assert_eq!(
        posted.refusal(),
        (405, "METHOD_NOT_ALLOWED".to_owned()),
        "{path}"
    );
    assert_eq!(posted.header("allow"), "GET, HEAD", "{path}");
}

#[tokio::test]
async fn cards_and_metadata_are_public_and_cacheable() {
    let metadata = [METADATA.to_owned(), format!("{METADATA}/mcp")];
    for path in CARD_PATHS.map(str::to_owned).iter().chain(&metadata) {
        check_public(Service::shared(), path).await;
    }
}

/// Without an identity provider no authorization server is named.
fn metadata(base_url: &str) -> Value {
    json!({
        "resource": format!("{base_url}/mcp"),
        "scopes_supported": [
            "bank-qr:banks", "bank-qr:generate", "domain:dns", "domain:whois", "ip:lookup", "oembed:read", "web:crawl",
            "web:map", "web:scrape", "web:search",
        ],
        "bearer_methods_supported": ["header"],
        "resource_name": "Switchbay",
        "resource_documentation": format!("{base_url}/developer-guide"),
    })
}

#[tokio::test]
async fn the_metadata_stands_where_clients_look_for_it() {
    let manifest = Some(workspace().join("plugin-manifest.toml"));
    let service = Service::start(Options {
        manifest,
        ..Options::default()
    })
    .await;
    for path in ["", "/mcp"] {
        let answer = get(&service, &format!("{METADATA}{path}"), &[]).await;
        assert_eq!(
            (answer.status, answer.json()),
            (200, metadata(&service.base_url)),
            "{path}"
        );
    }
    for path in ["/", "/mcp/", "/mcpx", "mcp", "/other", "/api/mcp"] {
        assert_eq!(
            get(&service, &format!("{METADATA}{path}"), &[])
                .await
                .status,
            404,
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_base_url_with_a_path_puts_it_behind_the_well_known_part_too() {
    let service = behind_a_path().await;
    assert_eq!(service.base_url, "http://h.example/api");
    for path in ["", "/mcp", "/api/mcp"] {
        let answer = get(&service, &format!("{METADATA}{path}"), &[]).await;
        assert_eq!(
            (answer.status, answer.json()),
            (200, metadata("http://h.example/api")),
            "{path}"
        );
    }
    for path in ["/api", "/apimcp", "/api/api/mcp", "/mcp/api"] {
        assert_eq!(
            get(&service, &format!("{METADATA}{path}"), &[])
                .await
                .status,
            404,
            "{path}"
        );
    }
    let card = get(&service, CARD_PATHS[0], &[]).await.json();
    assert_eq!(card["remotes"][0]["url"], "http://h.example/api/mcp");
    assert_eq!(card["websiteUrl"], "http://h.example/api/developer-guide");
    assert_eq!(card["transport"]["endpoint"], "/api/mcp");
    // A browser at the public address is at home.
    let ping = Post::legacy("2025-11-25", "ping", json!({}));
    assert_eq!(
        outcome(
            &ping
                .clone()
                .header("origin", "http://h.example")
                .send(&service)
                .await
        ),
        "200 result #7"
    );
    assert_eq!(
        outcome(
            &ping
                .header("origin", "http://localhost:80")
                .send(&service)
                .await
        ),
        "403 -32600"
    );
}
