//! The forward proxy, as `curl` and the operator see it.

mod ends;

use std::process::Command;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{dials, fetch, secure, sites, start};
use crate::support::{LAB_TOKEN, Service, command, ensure};

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
    let answer = service
        .admin(Method::POST, "/admin/v1/plugins/fetches/proxy", Some(&body))
        .await;
    assert_eq!(answer.status, 201, "{answer:?}");
    read(&answer.json()["data"])
}

fn read(told: &Value) -> Lent {
    use base64::Engine as _;
    let word = |name: &str| {
        told[name]
            .as_str()
            .unwrap_or_else(|| panic!("no {name} in {told}"))
            .to_owned()
    };
    let pair = format!("{}:{}", word("user"), word("password"));
    let authorization = format!(
        "Basic {}",
        base64::engine::general_purpose::STANDARD.encode(pair)
    );
    Lent {
        proxy: word("proxy"),
        url: word("url"),
        authorization,
    }
}

/// What `curl` wrote on both of its outputs, and whether it was content.
async fn curl(words: &[&str]) -> (bool, String) {
    let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    let running = tokio::task::spawn_blocking(move || {
        ensure(&[("curl", "curl")]);
        let done = Command::new("curl")
            .args(["-sS", "--noproxy", "", "--max-time", "30"])
            .args(words)
            .output();
        let done = done.expect("curl runs");
        let text = [done.stdout, done.stderr].concat();
        (
            done.status.success(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    });
    running.await.expect("no panic")
}

/// The audit lines of the proxy.
pub(super) fn lines(all: &[Value]) -> Vec<Value> {
    all.iter()
        .filter(|line| line["target"] == "egress" && line["message"] == "proxied")
        .cloned()
        .collect()
}

#[tokio::test]
async fn curl_reaches_through_the_proxy_what_the_plugin_may_reach() {
    let service = start().await;
    let words = [
        "plugin", "proxy", "fetches", "--for", "120", "--by", "grace",
    ];
    let told = command(service.data.path(), &words).expect("it is lent");
    let granted = json!([
        "http:GET,POST public",
        "http:GET http://api.fetches.test:8080/granted/"
    ]);
    assert_eq!(
        (&told["seconds"], &told["plugin"], &told["rights"]),
        (&json!(120), &json!("fetches"), &granted)
    );
    let lent = read(&told);
    let through = async |words: &[&str]| curl(&[&["--proxy", &lent.url], words].concat()).await;

    assert_eq!(
        through(&["http://site.test/"]).await,
        (true, "hello".to_owned())
    );
    let (_, echo) = through(&[
        "http://site.test/echo?a=b%20c",
        "-d",
        "some text",
        "-H",
        "X-Own: yes",
    ])
    .await;
    assert!(
        echo.starts_with("POST /echo?a=b%20c HTTP/1.1\r\n") && echo.ends_with("some text"),
        "{echo}"
    );
    assert!(
        echo.contains("x-own: yes") && echo.contains("\r\nhost: site.test\r\n"),
        "{echo}"
    );
    assert!(!echo.to_ascii_lowercase().contains("proxy"), "{echo}");
    // A body whose length is not known is written with one.
    let (_, chunked) = through(&[
        "http://site.test/echo",
        "-d",
        "in pieces",
        "-H",
        "Transfer-Encoding: chunked",
    ])
    .await;
    assert!(
        chunked.contains("content-length: 9") && !chunked.contains("chunked"),
        "{chunked}"
    );
    assert_eq!(
        through(&["--proxytunnel", "http://site.test/"]).await,
        (true, "hello".to_owned())
    );
    assert_eq!(
        through(&["http://api.fetches.test:8080/granted/x"]).await,
        (true, "hello".to_owned())
    );
    // What is coded goes on as it is; curl decodes it.
    assert_eq!(
        through(&["--compressed", "http://site.test/coded?gzip"]).await,
        (true, "as it was".repeat(50))
    );
    let (_, status) = through(&[
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        "http://site.test/not-found",
    ])
    .await;
    assert_eq!(status, "404");
}

#[tokio::test]
async fn each_redirect_through_the_proxy_is_judged_anew_and_each_denial_says_which_it_is() {
    let service = start().await;
    let lent = lend(&service, 120).await;
    let through = async |words: &[&str]| curl(&[&["--proxy", &lent.url], words].concat()).await;
    let moved = through(&["-L", "http://site.test/redirect?http://other.test/"]).await;
    assert_eq!(moved, (true, "hello".to_owned()));
    let (_, denied) = through(&["-L", "http://site.test/redirect?http://127.0.0.1/"]).await;
    assert!(
        denied.starts_with("not_public: the address 127.0.0.1 is not public"),
        "{denied}"
    );
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
    assert!(
        !done && refused.contains("< proxy-status: switchbay; error=destination_ip_prohibited"),
        "{refused}"
    );
    let (done, _) = curl(&["--proxy", &lent.proxy, "--fail", "http://site.test/"]).await;
    assert!(!done, "without a credential nothing is reached");
}

#[tokio::test]
async fn a_tunnel_to_a_tls_site_is_the_clients_own_from_end_to_end() {
    let (_, site, certificate) = secure::serve();
    let folder = TempDir::new().expect("a temporary folder");
    let root = folder.path().join("root.pem");
    certificate.write(&root);
    // The gate need not trust what it does not read.
    let service = secure::start(site, &[]).await;
    let lent = lend(&service, 60).await;
    let root = root.to_string_lossy();
    let told = curl(&[
        "--proxy",
        &lent.url,
        "--cacert",
        &root,
        "https://secure.test/a",
    ])
    .await;
    assert_eq!(told, (true, "HTTP/2.0 secure.test /a".to_owned()));
    let (done, told) = curl(&["--proxy", &lent.url, "https://secure.test/a"]).await;
    assert!(!done && told.contains("certificate"), "{told}");
    assert_eq!(dials(&service).await, 2.0);
    let all = service.log_until(|all| lines(all).len() >= 2);
    let line = &lines(&all)[0];
    assert_eq!(
        (&line["way"], &line["host"], &line["port"]),
        (&json!("tunnel"), &json!("secure.test"), &json!(443))
    );
    assert_eq!(
        (&line["address"], &line["verdict"]),
        (&json!(site.to_string()), &json!("sent"))
    );
    assert!(
        line["bytes"].as_u64() > Some(500) && line["bytes_sent"].as_u64() > Some(300),
        "{line}"
    );
}

#[tokio::test]
async fn the_gate_speaks_tls_itself_where_a_program_asks_for_an_absolute_https_url() {
    let (_, site, certificate) = secure::serve();
    let folder = TempDir::new().expect("a temporary folder");
    let root = folder.path().join("root.pem");
    certificate.write(&root);
    let service = secure::start(site, &[&root]).await;
    let lent = lend(&service, 60).await;
    let words = [
        "--proxy",
        &lent.url,
        "--request-target",
        "https://secure.test/a",
        "http://secure.test/",
    ];
    assert_eq!(
        curl(&words).await,
        (true, "HTTP/2.0 secure.test /a".to_owned())
    );
}

/// Four requests, of which each has a secret in another part, and one alone is sent.
async fn ask_with_secrets(lent: &Lent) {
    curl(&[
        "--proxy",
        &lent.url,
        "http://site.test/echo?token=hunter2secret",
        "-H",
        "Authorization: hunter2secret",
    ])
    .await;
    curl(&["--proxy", &lent.url, "http://u:hunter2secret@127.0.0.1/"]).await;
    curl(&[
        "--proxy",
        &lent.url,
        "--proxytunnel",
        "http://localhost/hunter2secret",
    ])
    .await;
    curl(&[
        "--proxy",
        &lent.proxy,
        "-U",
        "fetches:hunter2secret",
        "http://site.test/",
    ])
    .await;
}

#[tokio::test]
async fn each_request_through_the_proxy_is_one_line_that_tells_whom_it_was_lent_to() {
    let service = start().await;
    let lent = lend(&service, 60).await;
    ask_with_secrets(&lent).await;
    let all = service.log_until(|all| lines(all).len() >= 4);
    let told = |name: &str| {
        lines(&all)
            .iter()
            .map(|line| line[name].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        told("verdict"),
        ["sent", "not_public", "not_public", "no_credential"].map(Value::from)
    );
    assert_eq!(
        told("way"),
        [
            json!("request"),
            json!("request"),
            json!("tunnel"),
            Value::Null
        ]
    );
    let first = &lines(&all)[0];
    assert_eq!(
        (&first["plugin"], &first["lent_to"]),
        (&json!("fetches"), &json!("operator:ada"))
    );
    assert_eq!(
        (&first["address"], &first["status"]),
        (&json!(sites().to_string()), &json!(200))
    );
    let made = all
        .iter()
        .find(|line| line["message"] == "a proxy credential was issued")
        .expect("it is told");
    assert_eq!(
        (&made["by"], &made["why"], &made["seconds"]),
        (&json!("ada"), &json!("ticket 7"), &json!(60))
    );
    let password = lent
        .url
        .split(['/', ':', '@'])
        .nth(4)
        .expect("a password")
        .to_owned();
    for line in service.stop() {
        assert!(
            !line.contains("hunter2secret") && !line.contains(&password),
            "{line}"
        );
        assert!(!line.contains(&lent.authorization), "{line}");
    }
}

#[tokio::test]
async fn no_secret_of_the_operators_is_added_for_a_program() {
    let service = start().await;
    let lent = lend(&service, 60).await;
    let (_, sent) = curl(&["--proxy", &lent.url, "http://site.test/bound/echo"]).await;
    assert!(
        sent.starts_with("GET /bound/echo HTTP/1.1\r\n") && !sent.contains("x-bound"),
        "{sent}"
    );
    let (_, sent) = curl(&[
        "--proxy",
        &lent.url,
        "http://api.fetches.test:8080/granted/echo",
    ])
    .await;
    assert!(
        !sent.contains("x-api-key") && !sent.contains(LAB_TOKEN),
        "{sent}"
    );
    // The plugin's own request has it.
    let own = fetch(
        &service,
        json!({ "url": "http://site.test/bound/reversed" }),
    )
    .await;
    assert!(
        own["text"]
            .as_str()
            .is_some_and(|text| text.contains("nekot_ssecca")),
        "{own}"
    );
}

/// A head with the credential.
pub(super) fn request(line: &str, lent: &Lent) -> String {
    format!(
        "{line}\r\nHost: whatever.test\r\nProxy-Authorization: {}\r\n\r\n",
        lent.authorization
    )
}
