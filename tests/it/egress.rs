//! The gate to the network, seen from a guest that fetches and from sites that do not behave.
//!
//! The sites are on loopback and reached because `egress.connect_to` names them; whatever it does not name is judged as ever.

mod audited;
mod bound;
mod caps;
mod denied;
mod echoed;
mod laborious;
mod line;
pub(crate) mod names;
mod operators_network;
mod overhead;
mod own;
mod proxied;
mod proxied_caps;
mod proxied_raw;
mod redirects;
mod secure;
mod site;
mod traffic;

use std::net::SocketAddr;
use std::sync::OnceLock;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::lab::public_row;
use crate::metrics::scrape;
use crate::startup::failure_in;
use crate::support::{Options, Service, workspace};

const FETCH: &str = "/api/v1/test/fetches";
const DIALS: &str = "switchbay_egress_dials_total";

/// What names lead to where `connect_to` says nothing.
const NAMES: [(&str, &[&str]); 7] = [
    ("loopback.rebound.test", &["127.0.0.1"]),
    ("private.rebound.test", &["10.1.2.3"]),
    ("mixed.rebound.test", &["93.184.215.14", "192.168.0.1"]),
    ("six.rebound.test", &["::1"]),
    ("mapped.rebound.test", &["::ffff:8.8.8.8"]),
    ("both.rebound.test", &["93.184.215.14", "fd00::1"]),
    ("nothing.rebound.test", &[]),
];

fn sites() -> SocketAddr {
    static SITES: OnceLock<SocketAddr> = OnceLock::new();
    *SITES.get_or_init(site::serve)
}

fn configuration() -> String {
    let (site, names) = (sites(), private_names());
    let hosts = [
        "site.test:80",
        "other.test:80",
        "api.fetches.test:8080",
        "ungranted.test:8081",
    ];
    let rows: Vec<String> = hosts.iter().map(|host| public_row(host, site)).collect();
    let closed = public_row("closed.test:80", "127.0.0.1:1");
    format!(
        "[egress]\ndns_servers = [\"{names}\"]\nconnect_to = {{ {}, {closed} }}",
        rows.join(", ")
    )
}

/// A name server that says where names lead.
pub(crate) fn private_names() -> SocketAddr {
    names::serve(&NAMES)
}

/// A service with the guest that fetches.
async fn start() -> Service {
    start_logging("info").await
}

async fn start_logging(filter: &str) -> Service {
    let arguments = vec!["--log".to_owned(), filter.to_owned()];
    start_as(Options {
        config: configuration(),
        arguments,
        ..Options::default()
    })
    .await
}

/// With more lines of configuration.
async fn start_with(more: &str) -> Service {
    start_as(Options {
        config: format!("{}\n{more}", configuration()),
        ..Options::default()
    })
    .await
}

async fn start_as(options: Options) -> Service {
    let manifest = Some(workspace().join("tests/programs/fetches.toml"));
    Service::start(Options {
        manifest,
        ..options
    })
    .await
}

async fn fetch(service: &Service, input: Value) -> Value {
    fetch_by(service, FETCH, input).await
}

async fn fetch_by(service: &Service, route: &str, input: Value) -> Value {
    let answer = service.post(route, &input).await;
    assert_eq!(
        answer.status,
        200,
        "{input}: {}",
        String::from_utf8_lossy(&answer.bytes)
    );
    answer.json()["data"].clone()
}

async fn outcome(service: &Service, input: Value) -> String {
    fetch(service, input).await["outcome"]
        .as_str()
        .expect("an outcome")
        .to_owned()
}

pub(crate) async fn dials(service: &Service) -> f64 {
    scrape(service.data.path()).await.value(DIALS, &[])
}

#[tokio::test]
async fn a_granted_request_comes_back_whole() {
    let service = start().await;
    let hello = fetch(&service, json!({ "url": "http://site.test/" })).await;
    assert_eq!(
        (&hello["outcome"], &hello["status"], &hello["text"]),
        (&json!("ok"), &json!(200), &json!("hello"))
    );
    assert_eq!(hello["headers"], "content-type: text/plain");
    assert_eq!(hello["url"], "http://site.test/");

    let sent = json!({
        "url": "http://site.test/echo?a=b%20c#fragment",
        "method": "POST",
        "headers": "X-Own: yes\nAuthorization: Bearer word\nUser-Agent: guest/1",
        "body": "some text",
    });
    let echo = fetch(&service, sent).await;
    let head = "POST /echo?a=b%20c HTTP/1.1\r\nx-own: yes\r\nauthorization: Bearer word\r\nuser-agent: guest/1\r\n\
                accept-encoding: gzip, br, zstd, deflate\r\nhost: site.test\r\ncontent-length: 9\r\n\r\nsome text";
    assert_eq!(echo["text"], head);
    // What a site sets is not kept for the next request.
    let again = fetch(&service, json!({ "url": "http://site.test/echo" })).await;
    assert_eq!(again["headers"], "set-cookie: a=b");
    assert!(
        !again["text"].as_str().expect("text").contains("cookie"),
        "{again}"
    );

    assert_eq!(
        fetch(&service, json!({ "url": "http://site.test/not-found" })).await["status"],
        404
    );
    let port = fetch(
        &service,
        json!({ "url": "http://api.fetches.test:8080/granted/x" }),
    )
    .await;
    assert_eq!(
        (&port["outcome"], &port["text"]),
        (&json!("ok"), &json!("hello"))
    );
    for codings in ["gzip", "br", "zstd", "deflate", "gzip, br", "zstd, gzip"] {
        let decoded = fetch(
            &service,
            json!({ "url": format!("http://site.test/coded?{codings}") }),
        )
        .await;
        assert_eq!(
            (&decoded["outcome"], &decoded["bytes"]),
            (&json!("ok"), &json!(450)),
            "{codings}: {decoded}"
        );
        assert_eq!(decoded["headers"], "", "{codings}");
    }
}

/// The lines of the audit that tell of requests.
fn requests(lines: &[Value]) -> Vec<Value> {
    lines
        .iter()
        .filter(|line| line["target"] == "egress" && line["message"] == "request")
        .cloned()
        .collect()
}

#[tokio::test]
async fn each_request_is_one_line_of_the_audit_and_tells_no_secret() {
    let service = start().await;
    let secrets = json!({
        "url": "http://site.test/redirect?/echo%3Ftoken=hunter2secret",
        "headers": "Authorization: Bearer hunter2secret",
        "redirects": 3,
    });
    assert_eq!(outcome(&service, secrets).await, "ok");
    assert_eq!(
        outcome(
            &service,
            json!({ "url": "http://u:hunter2secret@127.0.0.1/" })
        )
        .await,
        "not_acceptable"
    );
    assert_eq!(
        outcome(&service, json!({ "url": "http://127.0.0.1/hunter2secret" })).await,
        "not_public"
    );
    assert_eq!(
        outcome(
            &service,
            json!({ "url": "http://site.test/silent", "total_ms": 50 })
        )
        .await,
        "total_late"
    );
    let lines = service.log_until(|lines| requests(lines).len() >= 5);
    let told: Vec<(Value, Value)> = requests(&lines)
        .iter()
        .map(|line| (line["verdict"].clone(), line["status"].clone()))
        .collect();
    let expected = [
        ("sent", 302),
        ("sent", 200),
        ("not_acceptable", 0),
        ("not_public", 0),
        ("late", 0),
    ];
    assert_eq!(
        told,
        expected.map(|(verdict, status)| (json!(verdict), json!(status)))
    );
    let sent = &requests(&lines)[1];
    assert_eq!(
        (&sent["plugin"], &sent["host"], &sent["port"]),
        (&json!("fetches"), &json!("site.test"), &json!(80))
    );
    assert_eq!(sent["address"], sites().to_string());
    assert!(
        sent["revision"].is_u64()
            && sent["elapsed_us"].is_u64()
            && sent["bytes"].as_u64() > Some(50),
        "{sent}"
    );
    for line in service.stop() {
        assert!(!line.contains("hunter2secret"), "{line}");
    }
    let named = lines
        .iter()
        .filter(|line| line["level"] == "WARN" && line["target"] == "egress");
    assert_eq!(
        named.count(),
        5,
        "each destination of connect_to that counts as public is named loudly"
    );
}

#[tokio::test]
async fn settings_of_the_gate_that_cannot_be_used_keep_the_process_from_starting() {
    let refused = [
        (
            "connect_to = { \"nowhere\" = \"127.0.0.1:80\" }",
            "`egress.connect_to` is nowhere",
        ),
        (
            "connect_to = { \"127.0.0.1:80\" = \"127.0.0.1:80\" }",
            "`egress.connect_to` is 127.0.0.1:80",
        ),
        (
            "connect_to = { \"a.test:80\" = \"b.test:80\" }",
            "line 2, column",
        ),
        (
            "connect_to = { \"a.test:80\" = { to = \"b.test:80\" } }",
            "expected an address and a port, such as",
        ),
        (
            "connect_to = { \"a.test:80\" = { to = \"127.0.0.1:80\", privat = true } }",
            "with `to` and optionally `public`",
        ),
        (
            "extra_roots = [\"/nowhere.pem\"]",
            "egress.extra_roots: cannot read the root certificates in /nowhere.pem",
        ),
        ("proxy = \"http://x\"", "unknown field `proxy`"),
        (
            "[proxy]\nlisten = \"0.0.0.0:0\"",
            "`proxy.listen` is 0.0.0.0:0; it must be a loopback address",
        ),
        (
            "[proxy]\nlisten = \"127.0.0.1:1\"\nbytes = 1",
            "`proxy.bytes` is 1",
        ),
    ];
    let manifest = workspace().join("tests/programs/fetches.toml");
    for (setting, expected) in refused {
        let folder = TempDir::new().expect("a temporary folder");
        let config = folder.path().join("config.toml");
        std::fs::write(&config, format!("[egress]\n{setting}")).expect("it is written");
        let files = [
            "--config",
            &config.to_string_lossy(),
            "--manifest",
            &manifest.to_string_lossy(),
        ];
        let told = failure_in(folder.path(), &files).await;
        assert!(told.contains(expected), "{setting}: {told}");
    }
}
