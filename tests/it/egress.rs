//! The gate to the network, seen from a guest that fetches and from sites that do not behave.
//!
//! The sites are on loopback and reached because `egress.connect_to` names them; whatever it does not name is judged as ever.

mod audited;
mod bound;
mod caps;
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
mod secure;
mod site;
mod traffic;

use std::net::SocketAddr;
use std::sync::OnceLock;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::metrics::{revision, scrape};
use crate::startup::failure_in;
use crate::support::{Options, Service, public_row, workspace};

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
    let hosts = ["site.test:80", "other.test:80", "api.fetches.test:8080", "ungranted.test:8081"];
    let rows: Vec<String> = hosts.iter().map(|host| public_row(host, site)).collect();
    let closed = public_row("closed.test:80", "127.0.0.1:1");
    format!("[egress]\ndns_servers = [\"{names}\"]\nconnect_to = {{ {}, {closed} }}", rows.join(", "))
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
    start_as(Options { config: configuration(), arguments, ..Options::default() }).await
}

/// With more lines of configuration.
async fn start_with(more: &str) -> Service {
    start_as(Options { config: format!("{}\n{more}", configuration()), ..Options::default() }).await
}

async fn start_as(options: Options) -> Service {
    let manifest = Some(workspace().join("tests/programs/fetches.toml"));
    Service::start(Options { manifest, ..options }).await
}

async fn fetch(service: &Service, input: Value) -> Value {
    fetch_by(service, FETCH, input).await
}

async fn fetch_by(service: &Service, route: &str, input: Value) -> Value {
    let answer = service.post(route, &input).await;
    assert_eq!(answer.status, 200, "{input}: {}", String::from_utf8_lossy(&answer.bytes));
    answer.json()["data"].clone()
}

async fn outcome(service: &Service, input: Value) -> String {
    fetch(service, input).await["outcome"].as_str().expect("an outcome").to_owned()
}

pub(crate) async fn dials(service: &Service) -> f64 {
    scrape(service.data.path()).await.value(DIALS, &[])
}

#[tokio::test]
async fn a_granted_request_comes_back_whole() {
    let service = start().await;
    let hello = fetch(&service, json!({ "url": "http://site.test/" })).await;
    assert_eq!((&hello["outcome"], &hello["status"], &hello["text"]), (&json!("ok"), &json!(200), &json!("hello")));
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
    assert!(!again["text"].as_str().expect("text").contains("cookie"), "{again}");

    assert_eq!(fetch(&service, json!({ "url": "http://site.test/not-found" })).await["status"], 404);
    let port = fetch(&service, json!({ "url": "http://api.fetches.test:8080/granted/x" })).await;
    assert_eq!((&port["outcome"], &port["text"]), (&json!("ok"), &json!("hello")));
    for codings in ["gzip", "br", "zstd", "deflate", "gzip, br", "zstd, gzip"] {
        let decoded = fetch(&service, json!({ "url": format!("http://site.test/coded?{codings}") })).await;
        assert_eq!((&decoded["outcome"], &decoded["bytes"]), (&json!("ok"), &json!(450)), "{codings}: {decoded}");
        assert_eq!(decoded["headers"], "", "{codings}");
    }
}

#[tokio::test]
async fn a_denial_says_which_of_three_it_is_and_nothing_is_dialled() {
    let service = start().await;
    let mut denials = 0;
    let denied = [
        ("not_granted", json!({ "url": "http://site.test/", "method": "DELETE" })),
        ("not_granted", json!({ "url": "http://api.fetches.test:8080/other/" })),
        ("not_granted", json!({ "url": "http://api.fetches.test:8080/granted/..%2fother/" })),
        ("not_public", json!({ "url": format!("http://{}/", sites().ip()) })),
        ("not_public", json!({ "url": "http://2130706433/" })),
        ("not_public", json!({ "url": "http://[::ffff:127.0.0.1]/" })),
        ("not_public", json!({ "url": "http://localhost/" })),
        ("not_public", json!({ "url": "http://169.254.169.254/latest/meta-data/" })),
        ("not_acceptable", json!({ "url": "file:///etc/passwd" })),
        ("not_acceptable", json!({ "url": "http://me:word@site.test/" })),
        ("not_acceptable", json!({ "url": "http://ungranted.test:8081/" })),
        ("not_acceptable", json!({ "url": "http://site.test:8080/" })),
        ("not_public", json!({ "url": "http://loopback.rebound.test/" })),
        ("not_public", json!({ "url": "http://private.rebound.test/" })),
        ("not_public", json!({ "url": "http://mixed.rebound.test/" })),
        ("not_public", json!({ "url": "http://six.rebound.test/" })),
        ("not_public", json!({ "url": "http://mapped.rebound.test/" })),
        ("not_public", json!({ "url": "http://both.rebound.test/" })),
    ];
    for (expected, input) in denied {
        denials += 1;
        let told = fetch(&service, input.clone()).await;
        assert_eq!(told["outcome"], expected, "{input}: {told}");
        let text = told["told"].as_str().expect("text");
        assert!(!text.is_empty() && !text.contains("word"), "{told}");
        // What a name leads to is nobody's to find out.
        assert!(!input["url"].as_str().is_some_and(|url| url.contains("rebound")) || !text.contains("1"), "{told}");
    }
    for (expected, name) in [("unresolved", "nothing.rebound.test"), ("unresolved", "no.such.name.test")] {
        assert_eq!(outcome(&service, json!({ "url": format!("https://{name}/") })).await, expected, "{name}");
    }
    for headers in ["Host: other.test", "Content-Length: 5", "Connection: close", "Accept-Encoding: br", "no name: x"] {
        let refused = outcome(&service, json!({ "url": "http://site.test/", "headers": headers })).await;
        assert_eq!(refused, "invalid_request", "{headers}");
    }
    assert_eq!(dials(&service).await, 0.0);
    let metrics = scrape(service.data.path()).await;
    let revision = revision(service.data.path(), "fetches").await;
    let series = [("plugin", "fetches"), ("revision", revision.as_str())];
    assert_eq!(metrics.value("switchbay_plugin_denials_total", &series), f64::from(denials));

    assert_eq!(outcome(&service, json!({ "url": "http://closed.test/" })).await, "unreachable");
    assert_eq!(dials(&service).await, 1.0);
}

#[tokio::test]
async fn each_hop_of_a_redirect_is_judged_as_if_it_had_been_asked_for() {
    let service = start().await;
    let follow = async |url: &str| fetch(&service, json!({ "url": url, "redirects": 5 })).await;
    let unfollowed = fetch(&service, json!({ "url": "http://site.test/redirect?/x" })).await;
    assert_eq!((&unfollowed["status"], &unfollowed["headers"]), (&json!(302), &json!("location: /x")));

    let arrived = follow("http://site.test/redirect?http://other.test/redirect%3F/final").await;
    assert_eq!((&arrived["outcome"], &arrived["text"]), (&json!("ok"), &json!("hello")));
    assert_eq!(arrived["url"], "http://other.test/final");
    assert_eq!(follow("http://site.test/created?/x").await["status"], 201);

    let refused = [
        ("http://127.0.0.1/", "not_public"),
        ("//[::1]/", "not_public"),
        ("http://2130706433/", "not_public"),
        ("http://localhost:80/", "not_public"),
        ("http://loopback.rebound.test/", "not_public"),
        ("http://site.test:8080/", "not_acceptable"),
        ("http://me:word@other.test/", "not_acceptable"),
        ("file:///etc/passwd", "not_acceptable"),
        ("http://api.fetches.test:8080/other/", "not_granted"),
    ];
    for (location, expected) in refused {
        let before = dials(&service).await;
        for url in [
            format!("http://site.test/redirect?{location}"),
            format!("http://site.test/redirect?/redirect%3F{location}"),
        ] {
            let told = follow(&url).await;
            assert_eq!(told["outcome"], "redirect_denied", "{url}: {told}");
            assert!(told["told"].as_str().is_some_and(|told| told.starts_with(expected)), "{url}: {told}");
        }
        assert_eq!(dials(&service).await, before + 3.0, "{location}: the hops before it, and not itself");
    }
}

#[tokio::test]
async fn what_goes_along_with_a_redirect_depends_on_where_it_leads() {
    let service = start().await;
    let post = async |path: &str| {
        let headers = "Authorization: Bearer word\nCookie: a=b\nX-Own: yes\nContent-Type: text/plain";
        let url = format!("http://site.test{path}");
        let input = json!({ "url": url, "method": "POST", "headers": headers, "body": "some text", "redirects": 2 });
        fetch(&service, input).await["text"].as_str().expect("text").to_owned()
    };
    let same = post("/temporary?/echo").await;
    assert!(same.starts_with("POST /echo ") && same.contains("Bearer word") && same.ends_with("some text"), "{same}");
    let other = post("/temporary?http://other.test/echo").await;
    assert!(other.starts_with("POST /echo ") && other.contains("x-own: yes"), "{other}");
    assert!(!other.contains("Bearer") && !other.contains("cookie"), "{other}");
    for path in ["/see-other?/echo", "/redirect?/echo"] {
        let seen = post(path).await;
        assert!(seen.starts_with("GET /echo ") && !seen.contains("some text"), "{seen}");
        assert!(seen.contains("x-own: yes") && !seen.contains("content-type"), "{seen}");
    }
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
    assert_eq!(outcome(&service, json!({ "url": "http://u:hunter2secret@127.0.0.1/" })).await, "not_acceptable");
    assert_eq!(outcome(&service, json!({ "url": "http://127.0.0.1/hunter2secret" })).await, "not_public");
    assert_eq!(outcome(&service, json!({ "url": "http://site.test/silent", "total_ms": 50 })).await, "total_late");
    let requests = |lines: &[Value]| -> Vec<Value> {
        let audit = lines.iter().filter(|line| line["target"] == "egress" && line["message"] == "request");
        audit.cloned().collect()
    };
    let lines = service.log_until(|lines| requests(lines).len() >= 5);
    let told: Vec<(Value, Value)> =
        requests(&lines).iter().map(|line| (line["verdict"].clone(), line["status"].clone())).collect();
    let expected = [("sent", 302), ("sent", 200), ("not_acceptable", 0), ("not_public", 0), ("late", 0)];
    assert_eq!(told, expected.map(|(verdict, status)| (json!(verdict), json!(status))));
    let sent = &requests(&lines)[1];
    assert_eq!((&sent["plugin"], &sent["host"], &sent["port"]), (&json!("fetches"), &json!("site.test"), &json!(80)));
    assert_eq!(sent["address"], sites().to_string());
    assert!(sent["revision"].is_u64() && sent["elapsed_us"].is_u64() && sent["bytes"].as_u64() > Some(50), "{sent}");
    for line in service.stop() {
        assert!(!line.contains("hunter2secret"), "{line}");
    }
    let named = lines.iter().filter(|line| line["level"] == "WARN" && line["target"] == "egress");
    assert_eq!(named.count(), 5, "each destination of connect_to that counts as public is named loudly");
}

#[tokio::test]
async fn settings_of_the_gate_that_cannot_be_used_keep_the_process_from_starting() {
    let refused = [
        ("connect_to = { \"nowhere\" = \"127.0.0.1:80\" }", "`egress.connect_to` is nowhere"),
        ("connect_to = { \"127.0.0.1:80\" = \"127.0.0.1:80\" }", "`egress.connect_to` is 127.0.0.1:80"),
        ("connect_to = { \"a.test:80\" = \"b.test:80\" }", "line 2, column"),
        ("connect_to = { \"a.test:80\" = { to = \"b.test:80\" } }", "expected an address and a port, such as"),
        ("connect_to = { \"a.test:80\" = { to = \"127.0.0.1:80\", privat = true } }", "with `to` and perhaps `public`"),
        ("extra_roots = [\"/nowhere.pem\"]", "egress.extra_roots: cannot read the root certificates in /nowhere.pem"),
        ("proxy = \"http://x\"", "unknown field `proxy`"),
        ("[proxy]\nlisten = \"0.0.0.0:0\"", "`proxy.listen` is 0.0.0.0:0; it must be an address on loopback"),
        ("[proxy]\nlisten = \"127.0.0.1:1\"\nbytes = 1", "`proxy.bytes` is 1"),
    ];
    let manifest = workspace().join("tests/programs/fetches.toml");
    for (setting, expected) in refused {
        let folder = TempDir::new().expect("a temporary folder");
        let config = folder.path().join("config.toml");
        std::fs::write(&config, format!("[egress]\n{setting}")).expect("it is written");
        let files = ["--config", &config.to_string_lossy(), "--manifest", &manifest.to_string_lossy()];
        let told = failure_in(folder.path(), &files).await;
        assert!(told.contains(expected), "{setting}: {told}");
    }
}
