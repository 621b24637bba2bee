//! The forward proxy before clients that mean harm: each is refused by a rule that it is told, and nothing is dialled.

mod hostile;

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::process::Command;

use serde_json::{Value, json};

use super::proxied::{Lent, lend};
use super::{dials, outcome, sites, start};
use crate::support::{Answer, Wire, workspace};

/// The answer to bytes in which `AUTH` stands for a header with the credential.
async fn say(lent: &Lent, said: &str) -> Answer {
    let mut wire = Wire::connect(&lent.proxy).await;
    wire.send(said.replace(
        "AUTH",
        &format!("Proxy-Authorization: {}", lent.authorization),
    ))
    .await;
    let answer = wire.answer().await;
    assert_eq!(
        wire.ended().await,
        "",
        "{said:?}: a connection carries only one request"
    );
    answer
}

/// The first word of a refusal's body.
fn word(answer: &Answer) -> String {
    let text = String::from_utf8_lossy(&answer.bytes).into_owned();
    text.split(':').next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn nothing_that_follows_a_request_is_read_as_another() {
    let service = start().await;
    let lent = lend(&service, 600).await;
    let smuggled = "GET http://other.test/not-found HTTP/1.1\r\nHost: other.test\r\nAUTH\r\n\r\n";
    let whole = say(
        &lent,
        &format!("GET http://site.test/ HTTP/1.1\r\nHost: a\r\nAUTH\r\n\r\n{smuggled}"),
    )
    .await;
    assert_eq!(
        (whole.status, whole.bytes.as_slice()),
        (200, b"hello".as_slice())
    );
    let head = "POST http://site.test/echo HTTP/1.1\r\nHost: other.test:81\r\nAUTH\r\nContent-Length: 4\r\n\
                Connection: x-hop, close\r\nX-Hop: 1\r\nKeep-Alive: 1\r\nTE: trailers\r\nUpgrade: h2c\r\n\
                Proxy-Connection: keep-alive\r\nProxy-Own: 1\r\nHTTP2-Settings: x\r\nX-Own: yes\r\n\r\n";
    let echo = say(&lent, &format!("{head}body{smuggled}")).await;
    let text = String::from_utf8_lossy(&echo.bytes).into_owned();
    assert_eq!(
        text,
        "POST /echo HTTP/1.1\r\nx-own: yes\r\nhost: site.test\r\ncontent-length: 4\r\n\r\nbody"
    );
    assert_eq!(dials(&service).await, 2.0);
}

#[tokio::test]
async fn the_verdict_of_the_proxy_is_the_verdict_of_http_at_the_socket_too() {
    let service = start().await;
    let lent = lend(&service, 600).await;
    let table = std::fs::read_to_string(workspace().join("host/src/egress/tests/hostile.json"))
        .expect("the table");
    let rows: Vec<Vec<Value>> = serde_json::from_str(&table).expect("a table");
    let (mut requests, mut tunnels) = (0, 0);
    // What a name is answered with is the tables' to say elsewhere; here it is the tests' own name server.
    let urls = rows
        .iter()
        .filter(|row| row.len() == 2)
        .filter_map(|row| row[1].as_str())
        .map(str::to_owned);
    let names = super::NAMES
        .iter()
        .filter(|(_, addresses)| !addresses.is_empty());
    for url in urls.chain(names.map(|(name, _)| format!("http://{name}/"))) {
        let http = outcome(&service, json!({ "url": url })).await;
        assert!(
            ["not_granted", "not_public", "not_acceptable"].contains(&http.as_str()),
            "{url:?}: {http}"
        );
        let is_sayable = url.bytes().all(|byte| byte.is_ascii_graphic())
            && !url.is_empty()
            && !url.starts_with('/');
        if is_sayable && url.len() < 30_000 {
            let told = say(
                &lent,
                &format!("GET {url} HTTP/1.1\r\nHost: a\r\nAUTH\r\n\r\n"),
            )
            .await;
            assert_eq!(word(&told), http, "{url:?}");
            requests += 1;
        }
        let Ok(parsed) = reqwest::Url::parse(&url) else {
            continue;
        };
        let (Some(host), Some(port)) = (parsed.host_str(), parsed.port_or_known_default()) else {
            continue;
        };
        // What is wrong with a path is nothing to a tunnel.
        let is_plain = matches!(parsed.scheme(), "http" | "https") && url.len() <= 24_576;
        if is_plain && parsed.username().is_empty() && parsed.password().is_none() {
            let told = say(
                &lent,
                &format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: a\r\nAUTH\r\n\r\n"),
            )
            .await;
            assert_eq!(word(&told), http, "{url:?} as {host}:{port}");
            tunnels += 1;
        }
    }
    assert!(
        requests > 350 && tunnels > 300,
        "{requests} requests and {tunnels} tunnels"
    );
    assert_eq!(dials(&service).await, 0.0);
}

/// Addresses of this machine and of its loopback.
fn own() -> Vec<IpAddr> {
    let told = Command::new("hostname")
        .arg("-I")
        .output()
        .expect("hostname runs");
    let own = String::from_utf8_lossy(&told.stdout).into_owned();
    let all = ["127.0.0.1", "127.9.9.9", "::1"]
        .into_iter()
        .chain(own.split_whitespace());
    all.filter_map(|address| address.parse().ok()).collect()
}

#[tokio::test]
async fn listeners_on_this_machine_see_no_packet() {
    let service = start().await;
    let lent = lend(&service, 600).await;
    // Where this process may not have a port that can be granted, the counter of dials stands for its listener.
    let places = own()
        .into_iter()
        .flat_map(|address| [80, 443].map(|port| SocketAddr::new(address, port)));
    let listeners: Vec<TcpListener> = places
        .filter_map(|place| TcpListener::bind(place).ok())
        .collect();
    let site = TcpListener::bind("127.0.0.1:0").expect("a port");
    let open = site.local_addr().expect("an address");
    let mut hosts: Vec<String> = own()
        .into_iter()
        .map(|address| match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        })
        .collect();
    hosts.extend(
        [
            "localhost",
            "2130706433",
            "0x7f.1",
            "0.0.0.0",
            "[::]",
            "[::ffff:127.0.0.1]",
        ]
        .map(str::to_owned),
    );
    hosts.extend(
        [
            "loopback.rebound.test",
            "six.rebound.test",
            "mixed.rebound.test",
        ]
        .map(str::to_owned),
    );
    for host in hosts {
        for port in [80, 443, open.port(), sites().port()] {
            let told = say(
                &lent,
                &format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: a\r\nAUTH\r\n\r\n"),
            )
            .await;
            assert!(matches!(told.status, 400 | 403), "{host}:{port} {told:?}");
            let told = say(
                &lent,
                &format!("GET http://{host}:{port}/ HTTP/1.1\r\nHost: a\r\nAUTH\r\n\r\n"),
            )
            .await;
            assert!(matches!(told.status, 400 | 403), "{host}:{port} {told:?}");
        }
    }
    let redirected = say(
        &lent,
        "GET http://site.test/redirect?http://127.0.0.1/ HTTP/1.1\r\nHost: a\r\nAUTH\r\n\r\n",
    )
    .await;
    assert_eq!(
        (redirected.status, &redirected.headers["location"]),
        (302, &"http://127.0.0.1/".parse().expect("a value"))
    );
    assert_eq!(dials(&service).await, 1.0);
    for listener in listeners.iter().chain([&site]) {
        listener.set_nonblocking(true).expect("it may be asked");
        let seen = listener.accept().map_err(|error| error.kind());
        assert!(
            matches!(seen, Err(std::io::ErrorKind::WouldBlock)),
            "{listener:?}: {seen:?}"
        );
    }
}
