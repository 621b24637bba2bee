//! `/mcp` for 2026-07-28: each request carries its own metadata, and its headers repeat it.

use serde_json::{Value, json};

use crate::support::{META_CAPABILITIES, META_VERSION, MODERN, Post, Service, outcome, request};

const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";
const BANKS: &str = "list_bank_qr_banks";

async fn result(post: &Post) -> Value {
    let answer = post.send(Service::shared()).await;
    assert_eq!(outcome(&answer), "200 result #7", "{post:?}");
    answer.json()["result"].clone()
}

/// A request with this metadata and no headers of its era.
fn bare(method: &str, meta: Value) -> Post {
    Post::raw(request(method, json!({ "_meta": meta })).to_string())
}

fn meta(version: &str) -> Value {
    json!({ META_VERSION: version, META_CAPABILITIES: {} })
}

#[tokio::test]
async fn discovery_tells_what_is_served_and_needs_no_credential() {
    let discovered = result(&Post::modern("server/discover", json!({}))).await;
    let versions = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"];
    assert_eq!(discovered["supportedVersions"], json!(versions));
    assert_eq!(
        discovered["capabilities"],
        json!({ "tools": {}, "resources": {} })
    );
    assert!(
        discovered["instructions"]
            .as_str()
            .is_some_and(|text| (20..=2000).contains(&text.len())),
        "{discovered}"
    );
    let server = &discovered["_meta"][META_SERVER];
    assert_eq!(
        (&server["name"], &server["version"]),
        (&json!("switchbay"), &json!(env!("CARGO_PKG_VERSION")))
    );
    Post::modern("server/discover", json!({}))
        .bearer("nonsense")
        .check("200 result #7")
        .await;
}

#[tokio::test]
async fn every_result_is_complete_and_every_cacheable_one_says_for_how_long() {
    let cases = [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        (
            "resources/read",
            json!({ "uri": "service://developer-guide" }),
        ),
    ];
    for (method, params) in cases {
        let result = result(&Post::modern(method, params)).await;
        assert_eq!(result["resultType"], "complete", "{method}");
        assert_eq!(
            result["_meta"][META_SERVER]["name"], "switchbay",
            "{method}"
        );
        assert_eq!(
            (&result["ttlMs"], &result["cacheScope"]),
            (&json!(60_000), &json!("public")),
            "{method}"
        );
    }
    let key = Service::shared().key();
    for arguments in [json!({}), json!({ "surprise": 1 })] {
        let post = Post::modern(
            "tools/call",
            json!({ "name": BANKS, "arguments": arguments }),
        )
        .bearer(key);
        let result = post.send(Service::shared()).await.json()["result"].clone();
        assert_eq!(result["resultType"], "complete");
        assert_eq!(result["_meta"][META_SERVER]["name"], "switchbay");
        assert!(
            result.get("ttlMs").is_none() && result.get("cacheScope").is_none(),
            "{result}"
        );
    }
}

#[tokio::test]
async fn metadata_must_be_whole() {
    let cases = [
        (json!({ META_VERSION: MODERN }), "400 -32602 #7"),
        (
            json!({ META_VERSION: MODERN, META_CAPABILITIES: null }),
            "400 -32602 #7",
        ),
        (
            json!({ META_VERSION: MODERN, META_CAPABILITIES: [] }),
            "400 -32602 #7",
        ),
        (
            json!({ META_VERSION: MODERN, META_CAPABILITIES: "tools" }),
            "400 -32602 #7",
        ),
        (json!({ META_CAPABILITIES: {} }), "400 -32602 #7"),
        (
            json!({ META_VERSION: 20_260_728, META_CAPABILITIES: {} }),
            "400 -32602 #7",
        ),
        (
            json!({ META_VERSION: null, META_CAPABILITIES: {} }),
            "400 -32602 #7",
        ),
        (json!({}), "400 -32602 #7"),
        (json!(null), "400 -32602 #7"),
        (json!("2026-07-28"), "400 -32602 #7"),
        // Who asks is welcome and not needed; so is what this server does not know.
        (
            json!({ META_VERSION: MODERN, META_CAPABILITIES: {} }),
            "200 result #7",
        ),
        (
            json!({ META_VERSION: MODERN, META_CAPABILITIES: { "roots": {} }, "x": 1 }),
            "200 result #7",
        ),
    ];
    for (meta, expected) in cases {
        let post = bare("tools/list", meta)
            .header("mcp-protocol-version", MODERN)
            .header("mcp-method", "tools/list");
        post.check(expected).await;
    }
    let cases = [json!({}), json!([]), json!("x"), json!(null)];
    for params in cases {
        let post = Post::raw(request("server/discover", params).to_string());
        post.header("mcp-protocol-version", MODERN)
            .header("mcp-method", "server/discover")
            .check("400 -32602 #7")
            .await;
    }
    let without = r#"{"jsonrpc":"2.0","id":7,"method":"server/discover"}"#;
    Post::raw(without).check("400 -32602 #7").await;
}

#[tokio::test]
async fn header_and_metadata_must_name_the_same_known_version() {
    let cases = [
        (None, "2026-07-28", "400 -32020 #7"),
        (None, "v999", "400 -32020 #7"),
        (Some("2025-11-25"), "2026-07-28", "400 -32020 #7"),
        (Some("2026-07-28"), "2025-11-25", "400 -32020 #7"),
        (Some("2026-07-28"), "v999", "400 -32020 #7"),
        (Some("v999"), "2026-07-28", "400 -32020 #7"),
        (Some("2026-07-28 "), "2026-07-28", "200 result #7"),
        (Some("v999"), "v999", "400 -32022 #7"),
        (Some("2099-01-01"), "2099-01-01", "400 -32022 #7"),
        (Some("1999-01-01"), "1999-01-01", "400 -32022 #7"),
        (Some("2026-07-28"), "2026-07-28", "200 result #7"),
    ];
    for (header, version, expected) in cases {
        let post = bare("server/discover", meta(version)).header("mcp-method", "server/discover");
        match header {
            Some(header) => {
                post.header("mcp-protocol-version", header)
                    .check(expected)
                    .await;
            }
            None => post.check(expected).await,
        }
    }
    let twice = Post::modern("server/discover", json!({})).repeated("mcp-protocol-version", MODERN);
    twice.check("400 -32020 #7").await;
    let unknown = bare("server/discover", meta("v999")).header("mcp-protocol-version", "v999");
    let error = unknown.send(Service::shared()).await.json()["error"].clone();
    let supported = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"];
    assert_eq!(
        error["data"],
        json!({ "supported": supported, "requested": "v999" })
    );
}

#[tokio::test]
async fn mcp_method_must_equal_the_method() {
    let post = Post::modern("tools/list", json!({}));
    for wrong in ["Tools/List", "TOOLS/LIST", "tools/call", "tools", ""] {
        post.clone()
            .header("mcp-method", wrong)
            .check("400 -32020 #7")
            .await;
    }
    post.clone()
        .without("mcp-method")
        .check("400 -32020 #7")
        .await;
    post.clone()
        .repeated("mcp-method", "tools/list")
        .check("400 -32020 #7")
        .await;
    post.clone()
        .without("mcp-method")
        .header("MCP-METHOD", "tools/list")
        .check("200 result #7")
        .await;
    post.without("mcp-protocol-version")
        .header("MCP-Protocol-Version", MODERN)
        .check("200 result #7")
        .await;
}

#[tokio::test]
async fn mcp_name_must_equal_the_name_or_the_uri() {
    let call = Post::modern("tools/call", json!({ "name": BANKS })).bearer(Service::shared().key());
    let read = Post::modern("resources/read", json!({ "uri": "service://openapi" }));
    let cases = [
        (&call, BANKS, "200 result #7"),
        (&call, "  list_bank_qr_banks\t", "200 result #7"),
        (
            &call,
            "=?base64?bGlzdF9iYW5rX3FyX2Jhbmtz?=",
            "200 result #7",
        ),
        (
            &call,
            " =?base64?bGlzdF9iYW5rX3FyX2Jhbmtz?= ",
            "200 result #7",
        ),
        (
            &call,
            "=?BASE64?bGlzdF9iYW5rX3FyX2Jhbmtz?=",
            "400 -32020 #7",
        ),
        (&call, "=?base64?bGlzdF9iYW5rX3FyX2Jhbmtz", "400 -32020 #7"),
        (&call, "=?base64?not base64!?=", "400 -32020 #7"),
        (&call, "=?base64?/w==?=", "400 -32020 #7"),
        (&call, "=?base64??=", "400 -32020 #7"),
        (
            &call,
            "=?base64?Z2VuZXJhdGVfYmFua19xcg==?=",
            "400 -32020 #7",
        ),
        (&call, "LIST_BANK_QR_BANKS", "400 -32020 #7"),
        (&call, "generate_bank_qr", "400 -32020 #7"),
        (&call, "", "400 -32020 #7"),
        (&read, "service://openapi", "200 result #7"),
        (
            &read,
            "=?base64?c2VydmljZTovL29wZW5hcGk=?=",
            "200 result #7",
        ),
        (&read, "service://developer-guide", "400 -32020 #7"),
    ];
    for (post, name, expected) in cases {
        post.clone().header("mcp-name", name).check(expected).await;
    }
    call.clone()
        .without("mcp-name")
        .check("400 -32020 #7")
        .await;
    call.clone()
        .repeated("mcp-name", BANKS)
        .check("400 -32020 #7")
        .await;
    read.without("mcp-name").check("400 -32020 #7").await;
    let prompt = Post::modern("prompts/get", json!({ "name": "x" }));
    prompt.clone().check("404 -32601 #7").await;
    prompt.without("mcp-name").check("400 -32020 #7").await;
    // Names of Unicode have only the encoded form.
    let unicode = Post::modern("tools/call", json!({ "name": "tên" })).without("mcp-name");
    unicode
        .header("mcp-name", "=?base64?dMOqbg==?=")
        .check("200 -32602 #7")
        .await;
}

#[tokio::test]
async fn other_headers_of_the_version_do_not_count() {
    Post::modern("tools/list", json!({}))
        .header("mcp-name", "nonsense")
        .check("200 result #7")
        .await;
    Post::modern("tools/list", json!({}))
        .header("mcp-param-bank", "nonsense")
        .check("200 result #7")
        .await;
    // Without the parameter, the method says what is missing.
    for params in [json!({}), json!({ "name": 1 }), json!({ "name": null })] {
        Post::modern("tools/call", params)
            .check("200 -32602 #7")
            .await;
    }
    Post::modern("resources/read", json!({}))
        .check("200 -32602 #7")
        .await;
}

/// The version, then the headers, then the metadata, then the method.
#[tokio::test]
async fn the_checks_stand_in_their_order() {
    let capabilities_missing = json!({ META_VERSION: MODERN });
    let post = bare("foo/bar", capabilities_missing);
    post.check("400 -32020 #7").await;
    let post = post.header("mcp-protocol-version", MODERN);
    post.check("400 -32020 #7").await;
    let post = post.header("mcp-method", "foo/bar");
    post.check("400 -32602 #7").await;
    Post::modern("foo/bar", json!({}))
        .check("404 -32601 #7")
        .await;
}

#[tokio::test]
async fn an_unknown_method_is_not_found() {
    let unknown = [
        "foo/bar",
        "Tools/list",
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "prompts/list",
        "completion/complete",
        "tasks/get",
        "subscriptions/listen",
    ];
    for method in unknown {
        Post::modern(method, json!({ "protocolVersion": MODERN }))
            .check("404 -32601 #7")
            .await;
    }
}

#[tokio::test]
async fn every_method_is_served() {
    let cases = [
        ("tools/list", json!({}), "200 result #7"),
        ("tools/list", json!({ "cursor": null }), "200 result #7"),
        ("tools/list", json!({ "cursor": "next" }), "200 -32602 #7"),
        (
            "resources/list",
            json!({ "cursor": "next" }),
            "200 -32602 #7",
        ),
        (
            "resources/templates/list",
            json!({ "cursor": "next" }),
            "200 -32602 #7",
        ),
        (
            "resources/read",
            json!({ "uri": "service://openapi" }),
            "200 result #7",
        ),
        (
            "resources/read",
            json!({ "uri": "service://nothing" }),
            "200 -32602 #7",
        ),
        ("tools/call", json!({ "name": "nothing" }), "200 -32602 #7"),
        (
            "tools/call",
            json!({ "name": BANKS, "arguments": [] }),
            "200 -32602 #7",
        ),
    ];
    for (method, params, expected) in cases {
        Post::modern(method, params).check(expected).await;
    }
    let templates = result(&Post::modern("resources/templates/list", json!({}))).await;
    assert_eq!(templates["resourceTemplates"], json!([]));
    let unknown = Post::modern("resources/read", json!({ "uri": "service://nothing" }))
        .send(Service::shared())
        .await;
    assert_eq!(
        unknown.json()["error"]["data"],
        json!({ "uri": "service://nothing" })
    );
}

/// A client may send the members of a round trip that this server never asks for.
#[tokio::test]
async fn answers_to_questions_that_were_not_asked_are_ignored() {
    let params = json!({ "name": BANKS, "inputResponses": { "a": {} }, "requestState": "x" });
    Post::modern("tools/call", params)
        .bearer(Service::shared().key())
        .check("200 result #7")
        .await;
}
