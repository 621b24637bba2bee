//! Queries of one line through the gate, to servers that answer as the line says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{dials, private_names};
use crate::lab::{listen, public_row};
use crate::metrics::{revision, scrape};
use crate::support::{Options, Service, build, built, workspace};

/// Between two bytes of a server that drips.
const DROP: Duration = Duration::from_millis(20);

/// How many clients closed after a server had.
#[derive(Default)]
struct Closed {
    count: Mutex<u32>,
    more: Condvar,
}

/// One server for all tests, for as long as the process lives.
fn server() -> SocketAddr {
    static SERVER: OnceLock<SocketAddr> = OnceLock::new();
    *SERVER.get_or_init(|| {
        let closed = Closed::default();
        listen(move |stream| answer(stream, &closed))
    })
}

fn answer(mut stream: TcpStream, closed: &Closed) -> std::io::Result<()> {
    let mut seen = [0; 5];
    while stream.peek(&mut seen)? < seen.len() {}
    if &seen == b"reset" {
        // What was sent is not read, so that closing is a reset.
        return stream.write_all(b"half of it");
    }
    let mut line = Vec::new();
    BufReader::new(stream.try_clone()?).read_until(b'\n', &mut line)?;
    let text = String::from_utf8_lossy(&line).into_owned();
    let (what, rest) = text
        .trim_end()
        .split_once(' ')
        .unwrap_or((text.trim_end(), ""));
    match what {
        "empty" => Ok(()),
        "latin" => stream.write_all(b"Registrant: Ren\xe9 \xff\0\r\n"),
        "sized" => stream.write_all(&vec![b'x'; rest.parse().unwrap_or(0)]),
        "silent" => until_it_goes(&mut stream),
        "stalls" => {
            stream.write_all(b"half of it")?;
            until_it_goes(&mut stream)
        }
        "drips" => {
            stream.set_read_timeout(Some(DROP))?;
            loop {
                stream.write_all(b".")?;
                if stream.read(&mut [0]).is_ok_and(|bytes| bytes == 0) {
                    return Ok(());
                }
            }
        }
        "endless" => loop {
            stream.write_all(&[b'x'; 4096])?;
        },
        "halved" => {
            stream.write_all(b"whole")?;
            stream.shutdown(Shutdown::Write)?;
            until_it_goes(&mut stream)?;
            *closed.count.lock().expect("no thread panicked") += 1;
            closed.more.notify_all();
            Ok(())
        }
        "closed" => {
            let wanted: u32 = rest.parse().unwrap_or(0);
            let count = closed.count.lock().expect("no thread panicked");
            let count = closed
                .more
                .wait_while(count, |count| *count < wanted)
                .expect("no thread panicked");
            stream.write_all(count.to_string().as_bytes())
        }
        _ => stream.write_all(&line),
    }
}

fn until_it_goes(stream: &mut TcpStream) -> std::io::Result<()> {
    std::io::copy(stream, &mut std::io::sink()).map(|_| ())
}

/// A configuration that sends queries for these to the server.
fn connected(hosts: &[&str]) -> String {
    let (server, names) = (server(), private_names());
    let rows: Vec<String> = hosts.iter().map(|host| public_row(host, server)).collect();
    let closed = public_row("closed.test:43", "127.0.0.1:1");
    format!(
        "[egress]\ndns_servers = [\"{names}\"]\nconnect_to = {{ {}, {closed} }}",
        rows.join(", ")
    )
}

async fn start(filter: &str) -> Service {
    let config = connected(&[
        "whois.test:43",
        "named.test:4343",
        "whois.test:4343",
        "named.test:44",
    ]);
    let manifest = Some(workspace().join("tests/programs/asks.toml"));
    let arguments = vec!["--log".to_owned(), filter.to_owned()];
    Service::start(Options {
        config,
        manifest,
        arguments,
        ..Options::default()
    })
    .await
}

async fn ask(service: &Service, input: Value) -> Value {
    let answer = service.post("/api/v1/test/ask", &input).await;
    assert_eq!(answer.status, 200, "{input}: {answer:?}");
    answer.json()["data"].clone()
}

/// Asks `whois.test` with a line, and more of a request.
async fn ask_line(service: &Service, line: &str, more: Value) -> Value {
    let mut input = json!({ "host": "whois.test", "line": line });
    input
        .as_object_mut()
        .expect("an object")
        .extend(more.as_object().cloned().unwrap_or_default());
    ask(service, input).await
}

async fn outcome(service: &Service, line: &str, more: Value) -> String {
    ask_line(service, line, more).await["outcome"]
        .as_str()
        .expect("an outcome")
        .to_owned()
}

#[tokio::test]
async fn a_line_is_sent_with_its_end_and_the_answer_comes_back_byte_for_byte() {
    let service = start("info").await;
    let text = async |line: &str| {
        let told = ask_line(&service, line, json!({})).await;
        assert_eq!(told["outcome"], "ok", "{line}: {told}");
        told["text"].as_str().expect("text").to_owned()
    };
    assert_eq!(
        text("-T dn,ace example.de").await,
        r"-T dn,ace example.de\r\n"
    );
    assert_eq!(text("domain ä").await, r"domain \xc3\xa4\r\n");
    assert_eq!(
        text(&format!("e{}", "x".repeat(1023))).await,
        format!(r"e{}\r\n", "x".repeat(1023))
    );
    assert_eq!(text("latin").await, r"Registrant: Ren\xe9 \xff\x00\r\n");
    assert_eq!(text("empty").await, "");
    let port = ask(
        &service,
        json!({ "host": "NAMED.test", "port": 4343, "line": "hello" }),
    )
    .await;
    assert_eq!(port["text"], r"hello\r\n");
    assert_eq!(dials(&service).await, 6.0, "no connection is kept");

    // The server has shut down its side, and hears that this side closes.
    assert_eq!(text("halved").await, "whole");
    let heard = text("closed 1").await;
    assert!(
        heard.parse::<u32>().is_ok_and(|count| count >= 1),
        "{heard}"
    );
}

/// Which of its kinds a refusal of a host and port is.
const DENIED: [(&str, &str, u16); 23] = [
    ("not_granted", "whois.test", 4343),
    ("not_granted", "whois.test", 80),
    ("not_granted", "whois.test", 0),
    ("not_granted", "named.test", 44),
    ("not_granted", "93.184.215.14", 4343),
    ("not_public", "127.0.0.1", 43),
    ("not_public", "2130706433", 43),
    ("not_public", "[::ffff:127.0.0.1]", 43),
    ("not_public", "169.254.169.254", 43),
    ("not_public", "localhost", 43),
    ("not_public", "whois", 43),
    ("not_public", "loopback.rebound.test", 43),
    ("not_public", "private.rebound.test", 43),
    ("not_public", "mixed.rebound.test", 43),
    ("not_public", "six.rebound.test", 43),
    ("not_public", "mapped.rebound.test", 43),
    ("not_public", "both.rebound.test", 43),
    ("not_acceptable", "", 43),
    ("not_acceptable", "whois.test:43", 43),
    ("not_acceptable", "me@whois.test", 43),
    ("not_acceptable", "whois.test\r\nx", 43),
    ("not_acceptable", "whois.test.", 43),
    ("not_acceptable", "::1", 43),
];

#[tokio::test]
async fn a_refusal_says_which_of_its_kinds_it_is_and_nothing_is_dialled() {
    let service = start("info").await;
    for (expected, host, port) in DENIED {
        let told = ask(
            &service,
            json!({ "host": host, "port": port, "line": "example.com" }),
        )
        .await;
        assert_eq!(told["outcome"], expected, "{host} {port}: {told}");
        let text = told["told"].as_str().expect("text");
        assert!(!text.is_empty() && !text.contains("example.com"), "{told}");
        // What a name leads to is nobody's to find out.
        assert!(!host.contains("rebound") || !text.contains('1'), "{told}");
    }
    let long = json!({ "host": "a.".repeat(600), "line": "" });
    assert_eq!(
        ask(&service, long).await["told"],
        "the request has a host of 1200 bytes; at most 1024 are allowed"
    );
    let number = revision(service.data.path(), "asks").await;
    let series = [("plugin", "asks"), ("revision", number.as_str())];
    let denials = scrape(service.data.path())
        .await
        .value("switchbay_plugin_denials_total", &series);
    assert_eq!(
        denials,
        f64::from(u32::try_from(DENIED.len()).expect("a few") + 1)
    );

    for line in [
        "a\r\nb", "a\n", "\ra", "a\0b", "a\tb", "a\u{7f}", "a\u{85}b",
    ] {
        let told = ask_line(&service, line, json!({})).await;
        let rule = "the request has a control character in its line";
        assert_eq!(
            (&told["outcome"], &told["told"]),
            (&json!("invalid_request"), &json!(rule)),
            "{line:?}"
        );
    }
    let told = ask_line(&service, &"x".repeat(1025), json!({})).await;
    let rule = "the request has a line of 1025 bytes; at most 1024 are allowed";
    assert_eq!(
        (&told["outcome"], &told["told"]),
        (&json!("invalid_request"), &json!(rule))
    );
    for host in ["nothing.rebound.test", "no.such.name.test"] {
        assert_eq!(
            ask(&service, json!({ "host": host, "line": "" })).await["outcome"],
            "unresolved"
        );
    }
    assert_eq!(dials(&service).await, 0.0);
    assert_eq!(
        ask(&service, json!({ "host": "closed.test", "line": "" })).await["outcome"],
        "unreachable"
    );
    assert_eq!(dials(&service).await, 1.0);
}

#[tokio::test]
async fn a_plugin_that_loses_the_right_is_told_so_at_its_next_query() {
    build();
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).expect("it is written");
    };
    let entry = |grants: &str| {
        format!("[[plugin]]\nname = \"asks\"\nsource = \"asks.wasm\"\ngrants = [{grants}]\n")
    };
    write("asks.wasm", &built("asks"));
    write(
        "manifest.toml",
        entry(r#""line-query:*:43", "line-query:named.test:4343""#).as_bytes(),
    );
    let (config, manifest) = (
        connected(&["whois.test:43", "named.test:4343"]),
        Some(folder.path().join("manifest.toml")),
    );
    let data = Some(Arc::clone(&folder));
    let service = Service::start(Options {
        config,
        manifest,
        data,
        ..Options::default()
    })
    .await;
    assert_eq!(outcome(&service, "hello", json!({})).await, "ok");
    let named = json!({ "host": "named.test", "port": 4343, "line": "hello" });
    for (grants, told) in [
        (
            r#""line-query:named.test:4343""#,
            "a line to whois.test on port 43 is not granted",
        ),
        ("", "`line-query` is not granted"),
    ] {
        write("manifest.toml", entry(grants).as_bytes());
        let followed = service
            .admin(Method::POST, "/admin/v1/manifest/follow", None)
            .await;
        assert_eq!(followed.status, 200, "{followed:?}");
        let denied = ask_line(&service, "hello", json!({})).await;
        assert_eq!(
            (&denied["outcome"], &denied["told"]),
            (&json!("not_granted"), &json!(told))
        );
        let other = if grants.is_empty() {
            "not_granted"
        } else {
            "ok"
        };
        assert_eq!(ask(&service, named.clone()).await["outcome"], other);
    }
}

#[tokio::test]
async fn whatever_a_server_does_its_cap_ends_it() {
    let service = start("info").await;
    let ended = [
        ("broken", "reset", json!({})),
        ("late", "silent", json!({ "idle_ms": 100 })),
        ("late", "silent", json!({ "total_ms": 100 })),
        ("late", "stalls", json!({ "idle_ms": 100 })),
        ("late", "drips", json!({ "total_ms": 400 })),
        ("too_large", "endless", json!({})),
        (
            "too_large",
            "endless",
            json!({ "response_bytes": u32::MAX }),
        ),
        ("too_large", "sized 262145", json!({})),
        (
            "too_large",
            "sized 1048577",
            json!({ "response_bytes": 2 << 20 }),
        ),
        ("too_large", "sized 1", json!({ "response_bytes": 0 })),
    ];
    for (expected, line, more) in ended {
        assert_eq!(
            outcome(&service, line, more.clone()).await,
            expected,
            "{line} {more}"
        );
    }
    assert_eq!(
        ask_line(&service, "sized 262144", json!({})).await["bytes"],
        262_144
    );
    assert_eq!(
        ask_line(
            &service,
            "sized 1048576",
            json!({ "response_bytes": u32::MAX })
        )
        .await["bytes"],
        1 << 20
    );
    assert_eq!(
        outcome(&service, "empty", json!({ "response_bytes": 0 })).await,
        "ok"
    );
    let many = ask_line(&service, "silent", json!({ "times": 40, "total_ms": 2000 })).await;
    assert_eq!(many["outcomes"], "busy 8, late 32");
    // The places are free again.
    assert_eq!(
        ask_line(&service, "hello", json!({ "times": 32 })).await["outcomes"],
        "ok 32"
    );
}

#[tokio::test]
async fn each_query_is_one_line_of_the_audit_and_tells_nothing_of_what_was_said() {
    let service = start("debug").await;
    for (line, more) in [
        ("hunter2secret", json!({})),
        ("silent hunter2secret", json!({ "idle_ms": 50 })),
        ("silent hunter2secret", json!({ "total_ms": 50 })),
        ("reset hunter2secret", json!({})),
        ("endless hunter2secret", json!({})),
        ("hunter2secret\r\n", json!({})),
        ("hunter2secret", json!({ "port": 4343 })),
        ("hunter2secret", json!({ "host": "127.0.0.1" })),
        ("hunter2secret", json!({ "host": "a b" })),
    ] {
        ask_line(&service, line, more).await;
    }
    let queries = |lines: &[Value]| -> Vec<Value> {
        lines
            .iter()
            .filter(|line| line["target"] == "egress" && line["message"] == "line query")
            .cloned()
            .collect()
    };
    let lines = queries(&service.log_until(|lines| queries(lines).len() >= 9));
    let verdicts: Vec<&str> = lines
        .iter()
        .map(|line| line["verdict"].as_str().expect("a verdict"))
        .collect();
    let expected = [
        "sent",
        "late",
        "late",
        "bad_answer",
        "too_large",
        "refused",
        "not_granted",
        "not_public",
        "not_acceptable",
    ];
    assert_eq!(verdicts, expected);
    let sent = &lines[0];
    assert_eq!(
        (&sent["plugin"], &sent["host"], &sent["port"]),
        (&json!("asks"), &json!("whois.test"), &json!(43))
    );
    assert_eq!(
        (&sent["address"], &sent["bytes"]),
        (&json!(server().to_string()), &json!(15))
    );
    assert!(
        sent["revision"].is_u64() && sent["elapsed_us"].is_u64(),
        "{sent}"
    );
    for line in service.stop() {
        assert!(!line.contains("hunter2secret"), "{line}");
    }
}
