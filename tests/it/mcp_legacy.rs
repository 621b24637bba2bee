//! `/mcp` for the versions with `initialize`: 2025-03-26, 2025-06-18 and 2025-11-25.

use serde_json::{Value, json};

use crate::support::{Answer, META_VERSION, Post, Service, outcome, request};

const LEGACY: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];
const BANKS: &str = "list_bank_qr_banks";

async fn result(post: &Post) -> Value {
    let answer = post.send(Service::shared()).await;
    assert_eq!(outcome(&answer), "200 result #7", "{post:?}");
    answer.json()["result"].clone()
}

fn initialize(version: &str) -> Value {
    let client = json!({ "name": "test", "version": "1" });
    request(
        "initialize",
        json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client }),
    )
}

#[tokio::test]
async fn initialize_echoes_a_version_that_is_served_and_offers_the_latest_otherwise() {
    let cases = [
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2024-11-05", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
        ("1.0", "2025-11-25"),
        ("", "2025-11-25"),
    ];
    for (asked, given) in cases {
        let answered = result(&Post::raw(initialize(asked).to_string())).await;
        assert_eq!(answered["protocolVersion"], given, "{asked}");
    }
}

#[tokio::test]
async fn an_initialize_result_tells_who_answers_and_what_it_can() {
    let answered = result(&Post::raw(initialize("2025-11-25").to_string())).await;
    assert_eq!(
        answered["capabilities"],
        json!({ "tools": {}, "resources": {} })
    );
    assert_eq!(answered["serverInfo"]["name"], "switchbay");
    assert_eq!(answered["serverInfo"]["title"], "Switchbay");
    assert_eq!(answered["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
    let instructions = answered["instructions"].as_str().expect("instructions");
    assert!((20..=2000).contains(&instructions.len()), "{instructions}");
    let members: Vec<&str> = answered
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        members,
        [
            "protocolVersion",
            "capabilities",
            "serverInfo",
            "instructions"
        ]
    );
}

#[tokio::test]
async fn the_header_does_not_count_on_initialize() {
    for header in ["2025-03-26", "2025-11-25", "2024-11-05", "1999-01-01", ""] {
        let post =
            Post::raw(initialize("2025-06-18").to_string()).header("mcp-protocol-version", header);
        assert_eq!(
            result(&post).await["protocolVersion"],
            "2025-06-18",
            "{header}"
        );
    }
}

#[tokio::test]
async fn initialize_needs_a_version() {
    for params in [
        json!({}),
        json!({ "protocolVersion": 20_251_125 }),
        json!({ "protocolVersion": null }),
        json!([]),
    ] {
        Post::raw(request("initialize", params).to_string())
            .check("200 -32602 #7")
            .await;
    }
}

/// 1.2: the era of each POST, by header, metadata and method alone.
#[tokio::test]
async fn a_request_is_legacy_unless_something_in_it_is_modern() {
    let legacy = "200 result #7";
    let cases = [
        (None, None, "ping", legacy),
        (Some("2025-03-26"), None, "ping", legacy),
        (Some("2025-06-18"), None, "ping", legacy),
        (Some("2025-11-25"), None, "ping", legacy),
        // Metadata and header agree on a legacy version: discovery lists it, so a client may come back with it.
        (
            Some("2025-03-26"),
            Some(json!("2025-03-26")),
            "ping",
            legacy,
        ),
        (
            Some("2025-11-25"),
            Some(json!("2025-11-25")),
            "ping",
            legacy,
        ),
        (
            Some("2025-11-25"),
            Some(json!("2025-11-25")),
            "server/discover",
            "200 -32601 #7",
        ),
        // Unknown legacy versions.
        (Some("2024-11-05"), None, "ping", "400 -32022 #7"),
        (Some("1999-01-01"), None, "ping", "400 -32022 #7"),
        (Some("2026-07-27"), None, "ping", "400 -32022 #7"),
        (Some(""), None, "ping", "400 -32022 #7"),
        // Modern by the header, by the metadata or by the method, and then incomplete.
        (Some("2026-07-28"), None, "ping", "400 -32602 #7"),
        (Some("2026-07-29"), None, "ping", "400 -32602 #7"),
        (Some("v999"), None, "ping", "400 -32602 #7"),
        (Some("2026-07-28"), None, "initialize", "400 -32602 #7"),
        (None, None, "server/discover", "400 -32602 #7"),
        (Some("2025-11-25"), None, "server/discover", "400 -32602 #7"),
        (None, Some(json!("2026-07-28")), "ping", "400 -32020 #7"),
        (None, Some(json!("2025-11-25")), "ping", "400 -32020 #7"),
        (
            Some("2025-11-25"),
            Some(json!("2026-07-28")),
            "ping",
            "400 -32020 #7",
        ),
        (
            Some("2025-11-25"),
            Some(json!(null)),
            "ping",
            "400 -32602 #7",
        ),
        (Some("2025-11-25"), Some(json!(1)), "ping", "400 -32602 #7"),
    ];
    for (header, meta, method, expected) in cases {
        let params = match meta {
            Some(version) => json!({ "_meta": { META_VERSION: version } }),
            None => json!({}),
        };
        let post = Post::raw(request(method, params).to_string());
        match header {
            Some(header) => {
                post.header("mcp-protocol-version", header)
                    .check(expected)
                    .await;
            }
            None => post.check(expected).await,
        }
    }
}

#[tokio::test]
async fn an_unknown_version_is_told_which_are_known() {
    let post = Post::legacy("1999-01-01", "tools/list", json!({}));
    let error = post.send(Service::shared()).await.json()["error"].clone();
    let supported = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"];
    assert_eq!(
        error["data"],
        json!({ "supported": supported, "requested": "1999-01-01" })
    );
    Post::legacy("2025-11-25", "ping", json!({}))
        .repeated("mcp-protocol-version", "2025-11-25")
        .check("400 -32020 #7")
        .await;
}

/// Method, parameters and what comes of them.
const METHODS: [(&str, &str, &str); 33] = [
    ("ping", "{}", "200 result #7"),
    ("tools/list", "{}", "200 result #7"),
    ("tools/list", r#"{"cursor":null}"#, "200 result #7"),
    ("resources/list", "{}", "200 result #7"),
    ("resources/templates/list", "{}", "200 result #7"),
    (
        "resources/read",
        r#"{"uri":"service://openapi"}"#,
        "200 result #7",
    ),
    ("tools/list", r#"{"cursor":"next"}"#, "200 -32602 #7"),
    ("tools/list", r#"{"cursor":1}"#, "200 -32602 #7"),
    ("resources/list", r#"{"cursor":""}"#, "200 -32602 #7"),
    (
        "resources/templates/list",
        r#"{"cursor":"x"}"#,
        "200 -32602 #7",
    ),
    ("tools/list", "[]", "200 -32602 #7"),
    ("tools/list", r#""x""#, "200 -32602 #7"),
    ("ping", "[]", "200 -32602 #7"),
    ("resources/read", "{}", "200 -32602 #7"),
    ("resources/read", r#"{"uri":1}"#, "200 -32602 #7"),
    (
        "resources/read",
        r#"{"uri":"service://nothing"}"#,
        "200 -32002 #7",
    ),
    ("tools/call", "{}", "200 -32602 #7"),
    ("tools/call", r#"{"name":1}"#, "200 -32602 #7"),
    ("tools/call", r#"{"name":"nothing"}"#, "200 -32602 #7"),
    (
        "tools/call",
        r#"{"name":"LIST_BANK_QR_BANKS"}"#,
        "200 -32602 #7",
    ),
    (
        "tools/call",
        r#"{"name":"list_bank_qr_banks","arguments":[]}"#,
        "200 -32602 #7",
    ),
    (
        "tools/call",
        r#"{"name":"list_bank_qr_banks","arguments":"{}"}"#,
        "200 -32602 #7",
    ),
    ("foo/bar", "{}", "200 -32601 #7"),
    ("foo/bar", "[]", "200 -32601 #7"),
    ("", "{}", "200 -32601 #7"),
    ("Ping", "{}", "200 -32601 #7"),
    ("prompts/list", "{}", "200 -32601 #7"),
    ("prompts/get", r#"{"name":"x"}"#, "200 -32601 #7"),
    ("completion/complete", "{}", "200 -32601 #7"),
    ("logging/setLevel", r#"{"level":"info"}"#, "200 -32601 #7"),
    (
        "resources/subscribe",
        r#"{"uri":"service://openapi"}"#,
        "200 -32601 #7",
    ),
    ("tasks/list", "{}", "200 -32601 #7"),
    ("subscriptions/listen", "{}", "200 -32601 #7"),
];

#[tokio::test]
async fn every_method_is_served_without_a_session() {
    for version in LEGACY {
        for (method, params, expected) in METHODS {
            let params = serde_json::from_str(params).expect("JSON");
            Post::legacy(version, method, params).check(expected).await;
        }
    }
    let without_params = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;
    Post::raw(without_params).check("200 result #7").await;
    let with_null = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":null}"#;
    Post::raw(with_null).check("200 result #7").await;
}

#[tokio::test]
async fn results_have_the_members_of_their_version_alone() {
    assert_eq!(
        result(&Post::legacy("2025-11-25", "ping", json!({}))).await,
        json!({})
    );
    let templates = result(&Post::legacy(
        "2025-03-26",
        "resources/templates/list",
        json!({}),
    ))
    .await;
    assert_eq!(templates, json!({ "resourceTemplates": [] }));
    for method in ["tools/list", "resources/list"] {
        let listed = result(&Post::legacy("2025-11-25", method, json!({}))).await;
        assert_eq!(
            listed.as_object().map(serde_json::Map::len),
            Some(1),
            "{listed}"
        );
    }
}

#[tokio::test]
async fn an_unknown_name_is_named_in_the_refusal() {
    let told = async |method: &str, params: Value| {
        Post::legacy("2025-11-25", method, params)
            .send(Service::shared())
            .await
            .json()["error"]
            .clone()
    };
    let unknown = told("tools/call", json!({ "name": "no_such_tool" })).await;
    assert_eq!(unknown["message"], "Unknown tool: no_such_tool");
    let unknown = told("resources/read", json!({ "uri": "service://nothing" })).await;
    assert_eq!(unknown["data"], json!({ "uri": "service://nothing" }));
    let unknown = told("foo/bar", json!({})).await;
    assert_eq!(unknown["message"], "Method not found: foo/bar");
}

fn batch(version: Option<&str>, messages: &Value) -> Post {
    let post = Post::raw(messages.to_string());
    match version {
        Some(version) => post.header("mcp-protocol-version", version),
        None => post,
    }
}

async fn answers(post: &Post) -> Vec<Value> {
    let answer: Answer = post.send(Service::shared()).await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "application/json"),
        "{post:?}"
    );
    answer
        .json()
        .as_array()
        .unwrap_or_else(|| panic!("no array: {answer:?}"))
        .clone()
}

#[tokio::test]
async fn only_the_oldest_version_has_batches() {
    let pings = json!([request("ping", json!({})), request("ping", json!({}))]);
    for version in [None, Some("2025-03-26")] {
        assert_eq!(answers(&batch(version, &pings)).await.len(), 2);
        batch(version, &json!([])).check("400 -32600").await;
    }
    for version in [
        "2025-06-18",
        "2025-11-25",
        "2026-07-28",
        "1999-01-01",
        "2099-01-01",
    ] {
        batch(Some(version), &pings).check("400 -32600").await;
        batch(Some(version), &json!([])).check("400 -32600").await;
    }
}

#[tokio::test]
async fn a_batch_has_at_most_sixteen_messages() {
    let pings = |count| Value::from(vec![request("ping", json!({})); count]);
    assert_eq!(answers(&batch(None, &pings(16))).await.len(), 16);
    batch(None, &pings(17)).check("400 -32600").await;
}

#[tokio::test]
async fn a_batch_answers_its_requests_alone() {
    let notification = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let response = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    batch(None, &json!([notification, notification]))
        .check("202")
        .await;
    batch(None, &json!([response])).check("202").await;

    let ping = json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" });
    let modern = json!({ "_meta": { META_VERSION: "2026-07-28" } });
    let mixed = json!([
        notification,
        ping,
        response,
        { "jsonrpc": "2.0", "id": 2, "method": "foo/bar" },
        { "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": "nothing" } },
        { "jsonrpc": "2.0", "id": 4, "method": "initialize", "params": { "protocolVersion": "2025-03-26" } },
        { "jsonrpc": "2.0", "id": 5, "method": "server/discover", "params": modern },
        { "jsonrpc": "2.0", "id": 6 },
        8,
        [ping],
    ]);
    let told: Vec<(Value, Value)> = answers(&batch(Some("2025-03-26"), &mixed))
        .await
        .iter()
        .map(|answer| {
            (
                answer.get("id").cloned().unwrap_or(json!("none")),
                answer["error"]["code"].clone(),
            )
        })
        .collect();
    let expected = json!([
        ["p", null],
        [2, -32601],
        [3, -32602],
        [4, -32600],
        [5, -32600],
        [6, -32600],
        ["none", -32600],
        ["none", -32600]
    ]);
    assert_eq!(json!(told), expected);
}

#[tokio::test]
async fn a_batch_runs_its_calls() {
    let service = Service::shared();
    let call = |id: u32, arguments: Value| {
        let params = json!({ "name": "generate_bank_qr", "arguments": arguments });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let good = json!({ "bank": "VCB", "accountNumber": "0011001234567" });
    let post = batch(
        None,
        &json!([
            call(1, good),
            call(2, json!({})),
            request("ping", json!({}))
        ]),
    );
    let told = answers(&post.bearer(service.key())).await;
    assert_eq!(
        told[0]["result"]["structuredContent"]["data"]["bank"]["code"],
        "VCB"
    );
    assert_eq!(told[1]["result"]["isError"], true);
    assert_eq!(told[2], json!({ "jsonrpc": "2.0", "id": 7, "result": {} }));
}

/// The status is one for the whole POST.
#[tokio::test]
async fn a_refused_credential_in_a_batch_is_the_status_of_the_whole() {
    let service = Service::shared();
    let other = service.issue(&["--scope", "bank-qr:generate"]);
    let call = request("tools/call", json!({ "name": BANKS }));
    let messages = batch(None, &json!([request("ping", json!({})), call]));
    messages.check("401 401").await;
    messages.clone().bearer("nonsense").check("401 401").await;
    messages.clone().bearer(&other).check("403 403").await;
    let answer = messages.send(service).await;
    assert_eq!(
        answer.header("www-authenticate"),
        r#"Bearer scope="bank-qr:banks""#
    );
}
