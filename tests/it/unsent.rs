//! Answers that nobody reads: what they cost, and who pays.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::metrics::scrape;
use crate::support::{
    Options, Post, Service, ask, get, get_from, in_time, post_mcp, streams, with, workspace,
};

const BANKS: &str = "/api/v1/tools/bank-qr/banks";
const MIB: u64 = 1 << 20;

fn read(id: usize) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "resources/read", "params": { "uri": "service://openapi" } })
}

/// The project's own plugins, whose documents are large.
async fn all(config: &str) -> Service {
    let manifest = Some(workspace().join("plugin-manifest.toml"));
    Service::start(Options {
        config: config.to_owned(),
        manifest,
        ..Options::default()
    })
    .await
}

/// Asks for many documents in batches and takes nothing of them; tells by how much the server grew.
async fn grown(service: &Service, from: &str, encoding: &str) -> u64 {
    let batch = Value::Array((0..16).map(read).collect()).to_string();
    let before = service.resident_bytes();
    let (mut answers, mut open) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        let (mut requests, connection) = streams(service, from, 0).await;
        for _ in 0..60 {
            answers.push(requests.send_request(with(
                post_mcp(&batch),
                "accept-encoding",
                encoding,
            )));
        }
        open.push((requests, connection));
    }
    // Each is answered, if only with a refusal; the heads need no window.
    let answers = in_time("the heads of all answers", join_all(answers)).await;
    let told = answers
        .iter()
        .filter(|answer| answer.as_ref().is_ok_and(|answer| answer.status() == 200))
        .count();
    assert!(told >= 32, "{told} of the batches were answered");
    let grown = service.resident_bytes().saturating_sub(before);
    drop((answers, open));
    grown
}

#[tokio::test]
async fn documents_that_nobody_takes_cost_next_to_nothing() {
    let service = all("").await;
    // Whatever a first use leaves behind is not what is measured.
    for encoding in ["identity", "br"] {
        grown(&service, "127.0.0.2", encoding).await;
    }
    for (from, encoding) in [
        ("127.0.0.3", "identity"),
        ("127.0.0.4", "gzip"),
        ("127.0.0.5", "br"),
    ] {
        let grown = grown(&service, from, encoding).await;
        assert!(
            grown < 48 * MIB,
            "the server grew by {} MiB for {encoding}",
            grown / MIB
        );
    }
}

#[tokio::test]
async fn a_batch_is_answered_until_its_answers_are_enough() {
    let service = all("").await;
    let single = Post::raw(read(1).to_string()).send(&service).await;
    let batch = Value::Array((0..16).map(read).collect()).to_string();
    let answer = Post::raw(batch).send(&service).await;
    assert_eq!(answer.status, 200);
    let messages = answer.json();
    let messages = messages.as_array().expect("a batch");
    assert_eq!(messages.len(), 16);
    let full: Vec<&Value> = messages
        .iter()
        .filter(|message| message["error"]["code"] == -32000)
        .collect();
    assert!(
        !full.is_empty(),
        "16 answers of {} bytes are too much",
        single.bytes.len()
    );
    for (id, message) in messages.iter().enumerate() {
        assert_eq!(message["id"], id);
        let is_full = id >= messages.len() - full.len();
        assert_eq!(message["error"]["code"] == -32000, is_full, "{id}");
        assert!(
            is_full || message["result"] == single.json()["result"],
            "{id}"
        );
    }
    assert!(
        answer.bytes.len() < (1 << 20) + single.bytes.len() + 16 * 200,
        "{} bytes",
        answer.bytes.len()
    );
    let told = &full[0]["error"]["message"];
    assert_eq!(
        *told,
        "The responses to this batch exceed 1048576 bytes: send this message in another batch"
    );
}

/// Asks for banks with a key on streams that have no window, until that is refused; tells how often it was not.
async fn untaken(
    service: &Service,
    from: &str,
    most: usize,
) -> (usize, Vec<impl Sized>, impl Sized) {
    let (mut requests, connection) = streams(service, from, 0).await;
    let mut held = Vec::new();
    while held.len() < most {
        let request = with(get(BANKS), "x-service-api-key", service.key());
        let answer = ask(&mut requests, request).await;
        if answer.status() == 503 {
            break;
        }
        assert_eq!(answer.status(), 200);
        held.push(answer);
    }
    (held.len(), held, (requests, connection))
}

#[tokio::test]
async fn a_peer_that_reads_nothing_is_refused_what_others_get() {
    for bound in [
        "[peers]\nunsent_bytes = 65536",
        "[limits]\nconnection_unsent_bytes = 65536",
    ] {
        let service = Service::start(Options {
            config: bound.to_owned(),
            ..Options::default()
        })
        .await;
        let length = service.get(BANKS).await.bytes.len();
        let (count, held, open) = untaken(&service, "127.0.0.2", 50).await;
        assert_eq!(count, 65_536 / length, "{bound}: answers of {length} bytes");
        assert_eq!(get_from(&service, "127.0.0.3", BANKS).await.status, 200);
        let unsent = || async {
            let metrics = scrape(service.data.path()).await;
            metrics.value("switchbay_http_unsent_bytes", &[])
        };
        assert!(unsent().await >= (count * length) as f64);
        drop((held, open));
        in_time("they are thrown away", async {
            while unsent().await > 0.0 {}
        })
        .await;
        let (again, _held, _open) = untaken(&service, "127.0.0.2", 50).await;
        assert_eq!(again, count, "{bound}: nothing is left of the first");
    }
}

#[tokio::test]
async fn where_all_bytes_are_taken_the_connection_with_the_most_is_cut() {
    let config = "[limits]\nunsent_bytes = 65536".to_owned();
    let service = Service::start(Options {
        config,
        ..Options::default()
    })
    .await;
    let (few, _few, _kept) = untaken(&service, "127.0.0.2", 2).await;
    let (more, more_held, _cut) = untaken(&service, "127.0.0.3", 3).await;
    assert_eq!((few, more), (2, 3));
    assert_eq!(get_from(&service, "127.0.0.4", BANKS).await.status, 200);
    for answer in more_held {
        drop(answer);
    }
    let closed = scrape(service.data.path()).await;
    assert_eq!(
        closed.value(
            "switchbay_http_connections_refused_total",
            &[("how", "closed")]
        ),
        1.0
    );
}
