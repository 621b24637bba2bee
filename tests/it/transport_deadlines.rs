//! Deadlines: what is silent, slow or stuck is ended, and what is busy is not.
//!
//! Each test proves that time has passed by an event (another connection was cut by the same limit), never by a clock.

use std::time::Duration;

use tokio::sync::OnceCell;

use crate::support::{Answer, Held, Service, Wire, in_time};
use crate::transport::HEALTH;

/// Short deadlines for heads and bodies; connections may be idle for an hour.
async fn impatient() -> &'static Service {
    static SERVICE: OnceCell<Service> = OnceCell::const_new();
    SERVICE
        .get_or_init(|| Service::with_limits("header_ms = 300\nbody_ms = 300\nidle_ms = 3600000"))
        .await
}

/// Short idleness; heads and bodies may take an hour.
async fn restless() -> &'static Service {
    static SERVICE: OnceCell<Service> = OnceCell::const_new();
    SERVICE
        .get_or_init(|| {
            Service::with_limits("header_ms = 3600000\nbody_ms = 3600000\nidle_ms = 300")
        })
        .await
}

/// Both listeners.
fn listeners(service: &Service) -> [String; 2] {
    [service.base_url.clone(), service.operator_url()]
}

#[tokio::test]
async fn a_connection_that_does_not_finish_its_first_head_is_cut() {
    let service = impatient().await;
    for url in listeners(service) {
        for sent in [
            "",
            "PRI * HTTP/2.0\r\n\r",
            "GET /heal",
            "GET /healthz HTTP/1.1\r\nhost: te",
        ] {
            let mut wire = Wire::connect(&url).await;
            wire.send(sent).await;
            assert_eq!(wire.ended().await, "", "after {sent:?}");
        }
    }
}

#[tokio::test]
async fn a_head_that_drips_is_cut_at_the_same_deadline() {
    let service = impatient().await;
    let mut first = Wire::connect(&service.base_url).await;
    first.send("GET /healthz HTTP/1.1\r\nx-drip: ").await;
    assert_eq!(dripped_until_cut(first).await, "");

    let mut kept = Wire::connect(&service.base_url).await;
    kept.send([HEALTH, "GET /healthz HTTP/1.1\r\nx-drip: "].concat())
        .await;
    assert_eq!(kept.answer().await.status, 200);
    assert_eq!(dripped_until_cut(kept).await, "");
}

async fn dripped_until_cut(mut wire: Wire) -> String {
    let dripping = async {
        while !wire.ended_within(Duration::from_millis(20)).await {
            wire.try_send("a").await;
        }
    };
    in_time("the server cuts", dripping).await;
    wire.ended().await
}

#[tokio::test]
async fn a_kept_connection_is_not_cut_by_the_deadline_of_heads() {
    let service = impatient().await;
    for url in listeners(service) {
        let mut kept = Wire::connect(&url).await;
        kept.send(HEALTH).await;
        kept.answer().await;
        for _ in 0..2 {
            assert_eq!(
                Wire::connect(&url).await.ended().await,
                "",
                "a silent connection is cut meanwhile"
            );
        }
        kept.send(HEALTH).await;
        kept.answer().await;
    }
}

#[tokio::test]
async fn a_body_that_does_not_arrive_in_time_is_408() {
    let service = impatient().await;
    let answer = Held::open(service).await.answer().await;
    assert_eq!(answer.refusal(), (408, "REQUEST_TIMEOUT".to_owned()));

    let head = "POST /api/v1/tools/bank-qr HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n\
                transfer-encoding: chunked\r\n\r\n";
    let mut wire = Wire::connect(&service.base_url).await;
    wire.send(head).await;
    let dripping = async {
        while wire.is_silent() && !wire.ended_within(Duration::from_millis(20)).await {
            wire.try_send("1\r\na\r\n").await;
        }
    };
    in_time("the server answers", dripping).await;
    assert_eq!(
        wire.answer().await.refusal(),
        (408, "REQUEST_TIMEOUT".to_owned())
    );
    assert_eq!(wire.ended().await, "");
}

#[tokio::test]
async fn the_operators_listener_limits_bodies_in_size_and_time() {
    let service = impatient().await;
    let post = async |length: usize| -> Answer {
        let mut wire = Wire::connect(&service.operator_url()).await;
        wire.send(format!(
            "POST /admin/v1/keys HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{{",
            service.operator_token()
        ))
        .await;
        wire.answer().await
    };
    assert_eq!(
        post(100).await.refusal(),
        (408, "REQUEST_TIMEOUT".to_owned())
    );
    assert_eq!(
        post(1 << 20).await.refusal(),
        (413, "PAYLOAD_TOO_LARGE".to_owned())
    );
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_a_busy_one_is_not() {
    let service = restless().await;
    let busy = Held::open(service).await;
    for url in listeners(service) {
        for _ in 0..2 {
            let mut idle = Wire::connect(&url).await;
            idle.send(HEALTH).await;
            idle.answer().await;
            assert_eq!(idle.ended().await, "");
        }
    }
    assert_eq!(busy.finish().await.status, 200);
}

#[tokio::test]
async fn an_idle_connection_with_half_a_pipelined_head_is_closed() {
    let service = restless().await;
    let mut wire = Wire::connect(&service.base_url).await;
    wire.send([HEALTH, "GET /heal"].concat()).await;
    assert_eq!(wire.answer().await.status, 200);
    assert_eq!(wire.ended().await, "");
}

#[tokio::test]
async fn a_request_that_outlives_its_deadline_is_504() {
    let service = Service::with_limits("request_ms = 300\nbody_ms = 3600000").await;
    let answer = Held::open(&service).await.answer().await;
    assert_eq!(answer.refusal(), (504, "UPSTREAM_TIMEOUT".to_owned()));
}

#[tokio::test]
async fn a_client_that_never_reads_its_answers_is_cut() {
    // The only connection is taken, so that another is served only once it is gone.
    let service = Service::with_limits("connections = 1\nwrite_ms = 300\nidle_ms = 3600000").await;
    let mut deaf = Wire::connect(&service.base_url).await;
    let requests = "GET /openapi.json HTTP/1.1\r\nhost: test\r\n\r\n".repeat(1000);
    // More answers than the sockets' buffers hold; the server ceases to read long before the last request.
    in_time("the server ceases to read", async {
        while deaf
            .send_within(Duration::from_millis(500), &requests)
            .await
        {}
    })
    .await;
    let next = in_time("another is served", service.get("/healthz")).await;
    assert_eq!(next.status, 200);
}
