//! No secret in any log: each of five goes through every door, and then everything that the process wrote is searched.
//!
//! A guest may write what it likes at its own levels, so none here logs its input on purpose; the panic that quotes it is
//! sent where the plugins' `debug` lines are off, as they are by default.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use crate::support::{MODERN, Options, Post, Service, Wire, issue};

const BANK_QR: &str = "/api/v1/tools/bank-qr";
const MISBEHAVE: &str = "/api/v1/test/misbehave";
/// So much of a secret is one: a line may cut what it quotes.
const PART: usize = 12;

/// Every kind of route that either listener has, and some that it has not.
const ROUTES: [&str; 13] = [
    BANK_QR,
    "/api/v1/tools/bank-qr/banks",
    MISBEHAVE,
    "/api/v1/nothing",
    "/mcp",
    "/openapi.json",
    "/developer-guide",
    "/healthz",
    "/readyz",
    "/.well-known/nothing",
    "/nothing",
    "/admin/v1/keys",
    "/admin/v1/nothing",
];

const OPERATOR_ROUTES: [&str; 10] = [
    "/admin/v1/keys",
    "/admin/v1/plugins",
    "/admin/v1/plugins/bank-qr/revisions",
    "/admin/v1/plugins/bank-qr/revisions/1",
    "/admin/v1/plugins/bank-qr/rollback",
    "/admin/v1/plugins/bank-qr/revoke",
    "/admin/v1/history",
    "/admin/v1/events",
    "/admin/v1/nothing",
    "/healthz",
];

/// Whether guests quote their input as they panic.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Panics {
    Mute,
    Quoting,
}

#[tokio::test]
async fn the_default_log_holds_no_secret_as_json() {
    check("info", "json", Panics::Quoting).await;
}

#[tokio::test]
async fn the_default_log_holds_no_secret_as_text() {
    check("info", "text", Panics::Quoting).await;
}

#[tokio::test]
async fn a_full_trace_holds_no_secret_as_json() {
    check("trace", "json", Panics::Mute).await;
}

#[tokio::test]
async fn a_trace_of_our_own_holds_no_secret_as_text() {
    check("switchbay=trace,plugin=trace", "text", Panics::Mute).await;
}

async fn check(filter: &str, form: &'static str, panics: Panics) {
    let arguments = vec!["--log".to_owned(), filter.to_owned()];
    let service = Service::start(Options {
        arguments,
        log_format: Some(form),
        ..Options::default()
    })
    .await;
    let secrets = secrets(&service).await;
    for secret in &secrets {
        rest(&service, secret).await;
        headers(&service, secret).await;
        mcp(&service, secret).await;
        operator(&service, secret).await;
        guests(&service, secret, panics).await;
        malformed(&service, secret).await;
    }
    let token = service.operator_token();
    let lines = service.stop();
    let loud = filter != "info";
    let told = |text: &str| lines.iter().any(|line| line.contains(text));
    assert!(
        told("a call failed") && told("stopping"),
        "the log is there: {lines:?}"
    );
    assert_eq!(
        told("a call was answered") && told("a call was refused"),
        loud,
        "{filter} is what it is"
    );
    for secret in secrets.iter().chain([&token, &service.key().to_owned()]) {
        for form in forms(secret) {
            let found = lines.iter().find(|line| line.contains(&form));
            assert!(found.is_none(), "{form} of {secret} stands in {found:?}");
        }
    }
    for (path, text) in files(service.data.path()) {
        for form in secrets.iter().flat_map(|secret| forms(secret)) {
            assert!(!text.contains(&form), "{form} stands in {}", path.display());
        }
    }
}

/// A key of this service that is then revoked, one that is not, a good key of elsewhere, a made-up token and a plain word.
async fn secrets(service: &Service) -> [String; 5] {
    let elsewhere = TempDir::new().expect("a folder");
    let word = || {
        Uuid::now_v7()
            .simple()
            .to_string()
            .chars()
            .rev()
            .collect::<String>()
    };
    let revoked = key(service).await;
    let path = format!("/admin/v1/keys/{}", revoked["id"].as_str().expect("an id"));
    assert_eq!(admin(service, Method::DELETE, &path, "").await, 200);
    let text = |issued: &Value| issued["key"].as_str().expect("a key").to_owned();
    let good = text(&key(service).await);
    [
        text(&revoked),
        good,
        issue(elsewhere.path(), &["--all-scopes"]),
        format!("sbop_{}", word()),
        word(),
    ]
}

/// Issues a key by the operator's API.
async fn key(service: &Service) -> Value {
    let request = reqwest::Client::new()
        .post(format!("{}/admin/v1/keys", service.operator_url()))
        .bearer_auth(service.operator_token())
        .header("content-type", "application/json")
        .body(json!({ "label": "secret", "scopes": ["*"] }).to_string());
    Service::send(request).await.json()["data"].clone()
}

async fn rest(service: &Service, secret: &str) {
    for route in ROUTES {
        for method in [
            Method::GET,
            Method::POST,
            Method::from_bytes(secret.as_bytes()).expect("a token"),
        ] {
            let query = format!(
                "{route}?{secret}&bank={secret}&{secret}=1&x={}",
                encoded(secret)
            );
            Service::send(service.request(method.clone(), &query)).await;
            Service::send(
                service.request(method, &format!("{route}/{secret}/{}", encoded(secret))),
            )
            .await;
        }
    }
    let good = json!({ "bank": "VCB", "accountNumber": "0011001234567" });
    let with = |name: &str, value: Value| {
        let mut body = good.clone();
        body[name] = value;
        body.to_string()
    };
    let bodies = [
        with(secret, json!(1)),
        with("bank", json!(secret)),
        with("amount", json!({ secret: [secret] })),
        with("content", json!(secret)),
        json!(secret).to_string(),
        format!("{{\"{secret}\": {secret}"),
        format!("{{\"{secret}\": 1, \"{secret}\": 2}}"),
        secret.repeat(3000),
    ];
    for body in bodies {
        service
            .post_raw(&format!("{BANK_QR}?{secret}"), body.clone())
            .await;
        Service::send(
            service
                .request(Method::POST, BANK_QR)
                .header("content-type", secret)
                .body(body),
        )
        .await;
    }
}

async fn headers(service: &Service, secret: &str) {
    let bearer = format!("Bearer {secret}");
    let quoted = format!("\"{secret}\"");
    let sent: [&[(&str, &str)]; 13] = [
        &[("authorization", &bearer)],
        &[("authorization", secret)],
        &[("x-service-api-key", secret)],
        &[("x-service-api-key", &bearer)],
        &[("authorization", &bearer), ("x-service-api-key", secret)],
        &[
            ("authorization", &bearer),
            ("x-service-api-key", service.key()),
        ],
        &[
            ("cookie", secret),
            ("referer", secret),
            ("user-agent", secret),
            ("x-request-id", secret),
        ],
        &[("origin", secret)],
        &[("if-none-match", &quoted)],
        &[("accept", secret), ("accept-encoding", secret)],
        &[
            ("mcp-name", secret),
            ("mcp-method", secret),
            ("mcp-protocol-version", secret),
        ],
        &[
            ("traceparent", secret),
            ("forwarded", secret),
            ("x-forwarded-for", secret),
        ],
        &[(secret, secret)],
    ];
    let how = json!({ "how": "behave" });
    for (index, headers) in sent.into_iter().enumerate() {
        for route in [MISBEHAVE, "/mcp", "/openapi.json"] {
            let method = if route == "/openapi.json" {
                Method::GET
            } else {
                Method::POST
            };
            let mut request = match index {
                0..6 => service.bare(method, route),
                _ => service.request(method, route),
            };
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            Service::send(request.json(&how)).await;
        }
    }
}

async fn mcp(service: &Service, secret: &str) {
    let arguments = json!({ "how": "behave", "note": secret, secret: secret });
    let meta = json!({ secret: secret, "progressToken": secret });
    let posts = [
        Post::call("misbehave", &arguments),
        Post::call("misbehave", &json!({ "how": secret })),
        Post::call(secret, &arguments),
        Post::legacy("2025-11-25", secret, json!({ secret: secret })),
        Post::legacy(secret, "tools/list", json!({})),
        Post::legacy("2025-11-25", "tools/list", json!({ "cursor": secret })),
        Post::legacy(
            "2025-11-25",
            "resources/read",
            json!({ "uri": format!("service://{secret}") }),
        ),
        Post::legacy(
            "2025-11-25",
            "initialize",
            json!({ "protocolVersion": secret, "clientInfo": { "name": secret } }),
        ),
        Post::legacy(
            "2025-11-25",
            "tools/call",
            json!({ "name": "misbehave", "arguments": { "how": "behave" }, "_meta": meta }),
        ),
        Post::modern(
            "tools/call",
            json!({ "name": secret, "arguments": arguments }),
        ),
        Post::modern(
            "tools/call",
            json!({ "name": "misbehave", "arguments": arguments }),
        )
        .header("mcp-name", secret),
        Post::modern("resources/read", json!({ "uri": secret })),
        Post::of(MODERN, secret, json!({})),
        Post::raw(json!({ "jsonrpc": secret, "id": secret, "method": secret }).to_string()),
        Post::raw(format!(
            "[{}]",
            json!({ "jsonrpc": "2.0", "id": secret, "method": "ping" })
        )),
        Post::raw(format!("{{\"{secret}\": {secret}")),
        Post::raw(secret),
    ];
    for post in posts {
        let post = post.to(&format!("/mcp?{secret}"));
        for credential in [service.key(), secret] {
            post.clone().bearer(credential).send(service).await;
            post.clone()
                .header("x-service-api-key", credential)
                .header("origin", secret)
                .send(service)
                .await;
        }
    }
}

async fn operator(service: &Service, secret: &str) {
    let client = reqwest::Client::new();
    for route in OPERATOR_ROUTES {
        for token in [secret, &service.operator_token()] {
            for method in [Method::GET, Method::POST, Method::DELETE] {
                let url = format!(
                    "{}{route}/{secret}?{secret}={secret}",
                    service.operator_url()
                );
                let request = client
                    .request(method, url)
                    .bearer_auth(token)
                    .header("cookie", secret);
                Service::send(request.body(secret.to_owned())).await;
            }
        }
    }
    let bodies = [
        json!({ "label": "secret", "scopes": [secret] }),
        json!({ "label": "secret", "scopes": ["*"], "expiresAt": secret }),
        json!({ "label": "secret", "scopes": ["*"], secret: secret }),
        json!(secret),
    ];
    for body in bodies {
        assert_eq!(
            admin(service, Method::POST, "/admin/v1/keys", &body.to_string()).await,
            400
        );
    }
    assert_eq!(
        admin(
            service,
            Method::DELETE,
            &format!("/admin/v1/keys/{secret}"),
            ""
        )
        .await,
        404
    );
}

/// One request with the operator's token; gives back its status.
async fn admin(service: &Service, method: Method, path: &str, body: &str) -> u16 {
    let request = reqwest::Client::new()
        .request(method, format!("{}{path}", service.operator_url()))
        .bearer_auth(service.operator_token())
        .header("content-type", "application/json")
        .body(body.to_owned());
    Service::send(request).await.status
}

/// Plugins that hold the secret as they fail.
async fn guests(service: &Service, secret: &str, panics: Panics) {
    let mut ways = vec![
        "trap",
        "exit",
        "eat_memory",
        "fail_with_note",
        "undeclared_outcome",
        "break_schema",
    ];
    ways.extend([
        "fail_undeclared",
        "host_details",
        "undeclared_header",
        "huge_reply",
        "fail_as_declared",
    ]);
    ways.extend((panics == Panics::Quoting).then_some("trap_with_note"));
    for how in ways {
        let input = json!({ "how": how, "note": secret });
        let status = service.post(MISBEHAVE, &input).await.status;
        assert!(matches!(status, 418 | 500), "{how}: {status}");
        service.tool("misbehave", &input).await;
    }
}

/// What no client library sends, to both listeners.
async fn malformed(service: &Service, secret: &str) {
    let requests = [
        format!("{secret} /{secret} HTTP/1.1\r\nhost: test\r\n\r\n"),
        format!("GET /{secret} HTTP/9.9\r\n\r\n"),
        format!("GET /?{secret} {secret} HTTP/1.1\r\nhost: test\r\n\r\n"),
        format!("GET /healthz?{secret} HTTP/1.1\r\n\r\n"),
        format!(
            "GET http://{secret}@{secret}/healthz HTTP/1.1\r\nhost: {secret}\r\nhost: {secret}\r\n\r\n"
        ),
        format!("GET /healthz HTTP/1.1\r\nhost: test\r\n{secret}\r\n\r\n"),
        format!("GET /healthz HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {secret}\0\r\n\r\n"),
        format!(
            "GET /healthz HTTP/1.1\r\nhost: test\r\nx-service-api-key : {secret}\r\n {secret}\r\n\r\n"
        ),
        format!(
            "POST {BANK_QR} HTTP/1.1\r\nhost: test\r\ncontent-length: {secret}\r\n\r\n{secret}"
        ),
        format!(
            "POST {BANK_QR} HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n{secret}\r\n{secret}"
        ),
        format!("POST {BANK_QR} HTTP/1.1\r\nhost: test\r\ncontent-length: 9999\r\n\r\n{secret}"),
        format!("\x16\x03\x01{secret}"),
        // HTTP/2: SETTINGS, then a GOAWAY whose debug data is the secret, then no frame at all.
        format!(
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0{}\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01{secret}{secret}",
            char::from(u8::try_from(secret.len() + 8).expect("short"))
        ),
    ];
    for request in requests {
        for url in [&service.base_url, &service.operator_url()] {
            let mut wire = Wire::connect(url).await;
            wire.try_send(&request).await;
            wire.ended_within(Duration::from_millis(20)).await;
        }
    }
}

fn encoded(secret: &str) -> String {
    secret.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

/// What would give a secret away: a part from its middle, past any prefix that all keys share, as it is and encoded.
fn forms(secret: &str) -> Vec<String> {
    let middle = &secret[secret.len() / 2 - PART / 2..][..PART];
    let mut forms = vec![
        middle.to_owned(),
        encoded(middle),
        encoded(middle).to_uppercase(),
    ];
    forms.push(utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string());
    // In base64 a text has one of three looks, by where in its group it begins; the ends mix with what stands beside it.
    for shift in 0..3 {
        let text = STANDARD.encode([&vec![0; shift], secret.as_bytes()].concat());
        forms.push(text[4..text.len() - 4].to_owned());
    }
    forms
}

/// All files below the data folder.
fn files(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let bytes = std::fs::read(&path).expect("the file");
            found.push((path, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    found
}
