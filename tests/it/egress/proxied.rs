//! The forward proxy, as `curl` and the operator see it.

use std::process::Command;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{dials, fetch, secure, sites, start, start_with};
use crate::support::{LAB_TOKEN, Service, Wire, command, ensure};

/// A way out that was lent.
pub(super) struct Lent {
    pub(super) proxy: String,
    pub(super) url: String,
    /// The value of `Proxy-Authorization`.
    pub(super) authorization: String,
}

/// Lends the rights of the fetching guest.
pub(super) async fn lend(service: &Service, seconds: u64) -> Lent {
    let body = json!({ "seconds": seconds, "by": "ada", "why": "ticket 7" });
    let answer = service.admin(Method::POST, "/admin/v1/plugins/fetches/proxy", Some(&body)).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    read(&answer.json()["data"])
}

fn read(told: &Value) -> Lent {
    use base64::Engine as _;
    let word = |name: &str| told[name].as_str().unwrap_or_else(|| panic!("no {name} in {told}")).to_owned();
    let pair = format!("{}:{}", word("user"), word("password"));
    let authorization = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair));
    Lent { proxy: word("proxy"), url: word("url"), authorization }
}

/// What `curl` wrote on both of its outputs, and whether it was content.
async fn curl(words: &[&str]) -> (bool, String) {
    let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    let running = tokio::task::spawn_blocking(move || {
        ensure(&[("curl", "curl")]);
        let done = Command::new("curl").args(["-sS", "--noproxy", "", "--max-time", "30"]).args(words).output();
        let done = done.expect("curl runs");
        let text = [done.stdout, done.stderr].concat();
        (done.status.success(), String::from_utf8_lossy(&text).into_owned())
    });
    running.await.expect("no panic")
}

/// The audit lines of the proxy.
pub(super) fn lines(all: &[Value]) -> Vec<Value> {
    all.iter().filter(|line| line["target"] == "egress" && line["message"] == "proxied").cloned().collect()
}

#[tokio::test]
async fn curl_reaches_through_the_proxy_what_the_plugin_may_reach() {
    let service = start().await;
    let told = command(service.data.path(), &["plugin", "proxy", "fetches", "--for", "120", "--by", "grace"]);
    let told = told.expect("it is lent");
    let granted = json!(["http:GET,POST public", "http:GET http://api.fetches.test:8080/granted/"]);
    assert_eq!((&told["seconds"], &told["plugin"], &told["rights"]), (&json!(120), &json!("fetches"), &granted));
    let lent = read(&told);
    let through = async |words: &[&str]| curl(&[&["--proxy", &lent.url], words].concat()).await;

    assert_eq!(through(&["http://site.test/"]).await, (true, "hello".to_owned()));
    let (_, echo) = through(&["http://site.test/echo?a=b%20c", "-d", "some text", "-H", "X-Own: yes"]).await;
    assert!(echo.starts_with("POST /echo?a=b%20c HTTP/1.1\r\n") && echo.ends_with("some text"), "{echo}");
    assert!(echo.contains("x-own: yes") && echo.contains("\r\nhost: site.test\r\n"), "{echo}");
    assert!(!echo.to_ascii_lowercase().contains("proxy"), "{echo}");
    // A body whose length is not known is written with one.
    let (_, chunked) = through(&["http://site.test/echo", "-d", "in pieces", "-H", "Transfer-Encoding: chunked"]).await;
    assert!(chunked.contains("content-length: 9") && !chunked.contains("chunked"), "{chunked}");
    assert_eq!(through(&["--proxytunnel", "http://site.test/"]).await, (true, "hello".to_owned()));
    assert_eq!(through(&["http://api.fetches.test:8080/granted/x"]).await, (true, "hello".to_owned()));
    // What is coded goes on as it is; curl decodes it.
    assert_eq!(through(&["--compressed", "http://site.test/coded?gzip"]).await, (true, "as it was".repeat(50)));
    let (_, status) = through(&["-o", "/dev/null", "-w", "%{http_code}", "http://site.test/not-found"]).await;
    assert_eq!(status, "404");

    // Each redirect is a request that is judged anew.
    let moved = through(&["-L", "http://site.test/redirect?http://other.test/"]).await;
    assert_eq!(moved, (true, "hello".to_owned()));
    let (_, denied) = through(&["-L", "http://site.test/redirect?http://127.0.0.1/"]).await;
    assert!(denied.starts_with("not_public: the address 127.0.0.1 is not public"), "{denied}");
    for (word, url) in [
        ("not_granted", "http://api.fetches.test:8080/other/"),
        ("not_public", "http://localhost/"),
        ("not_public", "http://169.254.169.254/latest/meta-data/"),
        ("not_public", "http://mixed.rebound.test/"),
        ("not_acceptable", "http://site.test:8080/"),
        ("unresolved", "http://no.such.name.test/"),
    ] {
        let (_, told) = through(&[url]).await;
        assert!(told.starts_with(&format!("{word}: ")), "{url}: {told}");
    }
    // A tunnel that is refused says so in a header, which curl shows.
    let (done, refused) = through(&["-v", "https://metadata.google.internal/"]).await;
    assert!(!done && refused.contains("< proxy-status: switchbay; error=destination_ip_prohibited"), "{refused}");
    let (done, _) = curl(&["--proxy", &lent.proxy, "--fail", "http://site.test/"]).await;
    assert!(!done, "without a credential nothing is reached");
}

#[tokio::test]
async fn a_tunnel_to_a_tls_site_is_the_clients_own_from_end_to_end() {
    let (site, certificate) = secure::serve().await;
    let folder = TempDir::new().expect("a temporary folder");
    let root = folder.path().join("root.pem");
    std::fs::write(&root, certificate).expect("it is written");
    // The gate need not trust what it does not read.
    let service = secure::start(site, &[]).await;
    let lent = lend(&service, 60).await;
    let root = root.to_string_lossy();
    let told = curl(&["--proxy", &lent.url, "--cacert", &root, "https://secure.test/a"]).await;
    assert_eq!(told, (true, "HTTP/2.0 secure.test /a".to_owned()));
    let (done, told) = curl(&["--proxy", &lent.url, "https://secure.test/a"]).await;
    assert!(!done && told.contains("certificate"), "{told}");
    assert_eq!(dials(&service).await, 2.0);
    let all = service.log_until(|all| lines(all).len() >= 2);
    let line = &lines(&all)[0];
    assert_eq!((&line["way"], &line["host"], &line["port"]), (&json!("tunnel"), &json!("secure.test"), &json!(443)));
    assert_eq!((&line["address"], &line["verdict"]), (&json!(site.to_string()), &json!("sent")));
    assert!(line["bytes"].as_u64() > Some(500) && line["bytes_sent"].as_u64() > Some(300), "{line}");
}

#[tokio::test]
async fn the_gate_speaks_tls_itself_where_a_program_asks_for_an_absolute_https_url() {
    let (site, certificate) = secure::serve().await;
    let folder = TempDir::new().expect("a temporary folder");
    let root = folder.path().join("root.pem");
    std::fs::write(&root, certificate).expect("it is written");
    let service = secure::start(site, &[&root]).await;
    let lent = lend(&service, 60).await;
    let words = ["--proxy", &lent.url, "--request-target", "https://secure.test/a", "http://secure.test/"];
    assert_eq!(curl(&words).await, (true, "HTTP/2.0 secure.test /a".to_owned()));
}

#[tokio::test]
async fn each_request_through_the_proxy_is_one_line_that_tells_whom_it_was_lent_to() {
    let service = start().await;
    let lent = lend(&service, 60).await;
    curl(&["--proxy", &lent.url, "http://site.test/echo?token=hunter2secret", "-H", "Authorization: hunter2secret"])
        .await;
    curl(&["--proxy", &lent.url, "http://u:hunter2secret@127.0.0.1/"]).await;
    curl(&["--proxy", &lent.url, "--proxytunnel", "http://localhost/hunter2secret"]).await;
    curl(&["--proxy", &lent.proxy, "-U", "fetches:hunter2secret", "http://site.test/"]).await;
    let all = service.log_until(|all| lines(all).len() >= 4);
    let told = |name: &str| lines(&all).iter().map(|line| line[name].clone()).collect::<Vec<_>>();
    assert_eq!(told("verdict"), ["sent", "not_public", "not_public", "no_credential"].map(Value::from));
    assert_eq!(told("way"), [json!("request"), json!("request"), json!("tunnel"), Value::Null]);
    let first = &lines(&all)[0];
    assert_eq!((&first["plugin"], &first["lent_to"]), (&json!("fetches"), &json!("operator:ada")));
    assert_eq!((&first["address"], &first["status"]), (&json!(sites().to_string()), &json!(200)));
    let made = all.iter().find(|line| line["message"] == "a way out was lent").expect("it is told");
    assert_eq!((&made["by"], &made["why"], &made["seconds"]), (&json!("ada"), &json!("ticket 7"), &json!(60)));
    let password = lent.url.split(['/', ':', '@']).nth(4).expect("a password").to_owned();
    for line in service.stop() {
        assert!(!line.contains("hunter2secret") && !line.contains(&password), "{line}");
        assert!(!line.contains(&lent.authorization), "{line}");
    }
}

#[tokio::test]
async fn no_secret_of_the_operators_is_added_for_a_program() {
    let service = start().await;
    let lent = lend(&service, 60).await;
    let (_, sent) = curl(&["--proxy", &lent.url, "http://site.test/bound/echo"]).await;
    assert!(sent.starts_with("GET /bound/echo HTTP/1.1\r\n") && !sent.contains("x-bound"), "{sent}");
    let (_, sent) = curl(&["--proxy", &lent.url, "http://api.fetches.test:8080/granted/echo"]).await;
    assert!(!sent.contains("x-api-key") && !sent.contains(LAB_TOKEN), "{sent}");
    // The plugin's own request has it.
    let own = fetch(&service, json!({ "url": "http://site.test/bound/reversed" })).await;
    assert!(own["text"].as_str().is_some_and(|text| text.contains("nekot_ssecca")), "{own}");
}

#[tokio::test]
async fn a_way_out_is_lent_for_a_bounded_time_and_of_what_runs() {
    let service = start().await;
    let ask = async |plugin: &str, body: Value| {
        let path = format!("/admin/v1/plugins/{plugin}/proxy");
        service.admin(Method::POST, &path, Some(&body)).await.status
    };
    assert_eq!(ask("fetches", json!({ "seconds": 600 })).await, 201);
    assert_eq!(ask("fetches", json!({})).await, 201);
    for seconds in [json!(0), json!(601), json!(-1), json!("60")] {
        assert_eq!(ask("fetches", json!({ "seconds": seconds })).await, 400, "{seconds}");
    }
    assert_eq!(ask("nothing", json!({})).await, 404);
    let failed = command(service.data.path(), &["plugin", "proxy", "fetches", "--for", "601"]).expect_err("too long");
    assert!(failed.contains("`seconds` must be from 1 to 600"), "{failed}");
    // So many live at once, and no more.
    for _ in 2..256 {
        assert_eq!(ask("fetches", json!({})).await, 201);
    }
    assert_eq!(ask("fetches", json!({})).await, 503);
    assert_eq!(service.admin(Method::POST, "/admin/v1/plugins/fetches/disable", Some(&json!({}))).await.status, 200);
    assert_eq!(ask("fetches", json!({})).await, 409);
}

#[tokio::test]
async fn a_credential_and_its_tunnels_end_with_its_time() {
    let service = start().await;
    let lent = lend(&service, 5).await;
    let mut tunnel = Wire::connect(&lent.proxy).await;
    tunnel.send(request("CONNECT site.test:80 HTTP/1.1", &lent)).await;
    assert!(tunnel.until("\r\n\r\n").await.starts_with("HTTP/1.1 200 "));
    assert_eq!(tunnel.ended().await, "");
    assert_eq!(status(&lent, "CONNECT site.test:80 HTTP/1.1").await, 407);
    assert_eq!(status(&lent, "GET http://site.test/ HTTP/1.1").await, 407);
    // A tunnel's line may come after those of what was refused meanwhile.
    let late = |all: &[Value]| lines(all).iter().filter(|line| line["verdict"] == "late").count();
    let all = service.log_until(|all| late(all) > 0);
    assert_eq!(late(&all), 1);
}

#[tokio::test]
async fn a_credential_and_its_tunnels_end_with_the_revision_whose_rights_it_carries() {
    let service = start().await;
    let lent = lend(&service, 600).await;
    let mut tunnel = Wire::connect(&lent.proxy).await;
    tunnel.send(request("CONNECT site.test:80 HTTP/1.1", &lent)).await;
    assert!(tunnel.until("\r\n\r\n").await.starts_with("HTTP/1.1 200 "));
    let disabled = service.admin(Method::POST, "/admin/v1/plugins/fetches/disable", Some(&json!({}))).await;
    assert_eq!(disabled.status, 200);
    assert_eq!(tunnel.ended().await, "");
    assert_eq!(status(&lent, "GET http://site.test/ HTTP/1.1").await, 407);
    let all = service.log_until(|all| lines(all).len() >= 2);
    assert_eq!(lines(&all).iter().filter(|line| line["verdict"] == "revoked").count(), 1);
}

#[tokio::test]
async fn a_process_that_stops_ends_its_tunnels() {
    let service = start_with("[proxy]\nidle_ms = 3600000").await;
    let lent = lend(&service, 600).await;
    let mut tunnel = Wire::connect(&lent.proxy).await;
    tunnel.send(request("CONNECT site.test:80 HTTP/1.1", &lent)).await;
    assert!(tunnel.until("\r\n\r\n").await.starts_with("HTTP/1.1 200 "));
    let mut begun = Wire::connect(&lent.proxy).await;
    begun.send("GET http://site").await;
    let written = service.stop();
    assert_eq!((tunnel.ended().await, begun.ended().await), (String::new(), String::new()));
    assert!(written.iter().any(|line| line.contains("\"verdict\":\"stopped\"")), "{written:?}");
}

/// A head with the credential.
pub(super) fn request(line: &str, lent: &Lent) -> String {
    format!("{line}\r\nHost: whatever.test\r\nProxy-Authorization: {}\r\n\r\n", lent.authorization)
}

/// The status that a request gets.
async fn status(lent: &Lent, line: &str) -> u16 {
    let mut wire = Wire::connect(&lent.proxy).await;
    wire.send(request(line, lent)).await;
    wire.answer().await.status
}
