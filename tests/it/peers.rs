//! Peers: what one address can take of the listener, and that others are served all the while.
//!
//! Attackers and honest callers have loopback addresses of their own.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::metrics::scrape;
use crate::support::{
    Held, Options, Service, Wire, ask, get, get_from, in_time, post_held, streams, with,
};
use crate::transport::HEALTH;

const BANKS: &str = "/api/v1/tools/bank-qr/banks";
const TRUSTED: &str = "[peers]\ntrusted_proxies = [\"127.0.0.2\"]";

async fn with_config(config: &str) -> Service {
    Service::start(Options {
        config: config.to_owned(),
        ..Options::default()
    })
    .await
}

/// A connection that was served once.
async fn served(service: &Service, from: &str) -> Wire {
    let mut wire = Wire::connect_from(&service.base_url, from).await;
    wire.send(HEALTH).await;
    assert_eq!(wire.answer().await.status, 200, "{from}");
    wire
}

async fn is_served_again(wire: &mut Wire) {
    wire.send(HEALTH).await;
    assert_eq!(wire.answer().await.status, 200);
}

/// What the metrics say of closed connections.
async fn connections(service: &Service, how: &str) -> f64 {
    scrape(service.data.path())
        .await
        .value("switchbay_http_connections_refused_total", &[("how", how)])
}

#[tokio::test]
async fn nine_connections_that_take_and_send_nothing_keep_nobody_out() {
    let service = Service::start(Options::default()).await;
    let (mut held, mut answers, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..9 {
        let (mut requests, connection) = streams(&service, "127.0.0.2", 0).await;
        for _ in 0..250 {
            let request = match number % 2 {
                0 => get("/openapi.json"),
                _ => {
                    let (body, request) = post_held();
                    held.push(body);
                    request
                }
            };
            requests
                .ready()
                .await
                .expect("the connection takes requests");
            answers.push(requests.send_request(request));
        }
        open.push((requests, connection));
    }
    for _ in 0..50 {
        for path in ["/healthz", "/readyz", "/openapi.json", BANKS] {
            assert_eq!(
                get_from(&service, "127.0.0.3", path).await.status,
                200,
                "{path}"
            );
        }
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
        assert_eq!(service.mcp(&message).await.status, 200);
        assert_eq!(
            service
                .admin(Method::GET, "/admin/v1/status", None)
                .await
                .status,
            200
        );
    }
    let metrics = scrape(service.data.path()).await;
    let refused = metrics.value(
        "switchbay_http_requests_refused_total",
        &[("share", "peer")],
    );
    assert!(
        refused > 0.0,
        "the peer with nine connections is told that it has its share"
    );
    assert!(
        metrics.value("switchbay_http_requests_in_flight", &[]) <= 33.0,
        "32 and perhaps one of ours"
    );
    drop((held, answers, open));
}

#[tokio::test]
async fn a_burst_of_bodies_waits_for_its_turns() {
    let service = with_config("[peers]\nin_flight = 16").await;
    let (mut requests, _connection) = streams(&service, "127.0.0.2", 65_535).await;
    let (mut held, mut answers) = (Vec::new(), Vec::new());
    // A peer's share of the lobby is four here.
    for _ in 0..12 {
        let (body, request) = post_held();
        requests
            .ready()
            .await
            .expect("the connection takes requests");
        answers.push(requests.send_request(request));
        held.push(body);
    }
    let in_lobby = async || {
        scrape(service.data.path())
            .await
            .value("switchbay_http_requests_in_lobby", &[])
    };
    in_time("four bodies are awaited", async {
        while in_lobby().await < 4.0 {}
    })
    .await;
    assert_eq!(get_from(&service, "127.0.0.3", BANKS).await.status, 200);
    drop(held);
    for answer in in_time("all answers", join_all(answers)).await {
        assert_eq!(
            answer.expect("it is answered").status(),
            401,
            "each is read to its end and judged"
        );
    }
}

#[tokio::test]
async fn strangers_from_several_addresses_leave_a_part_of_the_lobby_to_others() {
    // The lobby is sixteen requests, of which a peer has eight.
    let service = with_config("[limits]\nin_flight = 64\n[peers]\nin_flight = 32").await;
    let (mut held, mut answers, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for from in ["127.0.0.2", "127.0.0.3", "127.0.0.4"] {
        let (mut requests, connection) = streams(&service, from, 65_535).await;
        for _ in 0..8 {
            let (body, request) = post_held();
            requests
                .ready()
                .await
                .expect("the connection takes requests");
            answers.push(requests.send_request(request));
            held.push(body);
        }
        open.push((requests, connection));
    }
    let in_lobby = async || {
        scrape(service.data.path())
            .await
            .value("switchbay_http_requests_in_lobby", &[])
    };
    in_time("twelve bodies are awaited", async {
        while in_lobby().await < 12.0 {}
    })
    .await;
    for _ in 0..10 {
        assert_eq!(get_from(&service, "127.0.0.5", BANKS).await.status, 200);
    }
    assert!(
        in_lobby().await <= 13.0,
        "the rest of it is for those who have nothing there"
    );
    drop((held, answers, open));
}

#[tokio::test]
async fn a_full_listener_closes_the_longest_idle_connection_of_the_peer_that_holds_the_most() {
    let service = with_config("[limits]\nconnections = 6").await;
    let mut wires = Vec::new();
    for from in [
        "127.0.0.3",
        "127.0.0.2",
        "127.0.0.2",
        "127.0.0.2",
        "127.0.0.3",
        "127.0.0.4",
    ] {
        wires.push(served(&service, from).await);
    }
    // The first of .2 is busier than the second.
    is_served_again(&mut wires[1]).await;
    let mut newcomer = served(&service, "127.0.0.5").await;
    assert_eq!(wires.remove(2).ended().await, "");
    for wire in wires.iter_mut().chain([&mut newcomer]) {
        is_served_again(wire).await;
    }
    assert_eq!(
        (
            connections(&service, "closed").await,
            connections(&service, "turned_away").await
        ),
        (1.0, 0.0)
    );
    let told = service.log_until(|lines| lines.iter().any(|line| line["closed"] == 1));
    let line = told
        .iter()
        .find(|line| line["closed"] == 1)
        .expect("it was told");
    assert_eq!(
        (&line["level"], &line["turned_away"]),
        (&json!("WARN"), &json!(0))
    );
}

#[tokio::test]
async fn idle_connections_of_one_address_leave_room_for_others() {
    let service = with_config("[limits]\nconnections = 300").await;
    let mut idle = Vec::new();
    for _ in 0..400 {
        idle.push(Wire::connect_from(&service.base_url, "127.0.0.2").await);
    }
    for _ in 0..20 {
        assert_eq!(get_from(&service, "127.0.0.3", BANKS).await.status, 200);
    }
    let open = scrape(service.data.path())
        .await
        .value("switchbay_http_connections", &[]);
    assert!(
        open <= 257.0,
        "{open} connections are open, and 256 is a peer's share"
    );
    assert!(connections(&service, "closed").await >= 144.0);
}

#[tokio::test]
async fn a_peer_with_its_share_of_connections_closes_its_own_idle_one_or_is_turned_away() {
    let service = with_config("[peers]\nconnections = 2").await;
    let (mut first, mut second) = (
        served(&service, "127.0.0.1").await,
        served(&service, "127.0.0.1").await,
    );
    let held = Held::open(&service).await;
    assert_eq!(first.ended().await, "");
    is_served_again(&mut second).await;
    let busy = Held::open(&service).await;
    assert_eq!(second.ended().await, "");
    let mut away = Wire::connect(&service.base_url).await;
    assert_eq!(away.ended().await, "", "both are busy");
    assert_eq!(connections(&service, "turned_away").await, 1.0);
    assert_eq!(get_from(&service, "127.0.0.3", BANKS).await.status, 200);
    for held in [held, busy] {
        assert_eq!(held.finish().await.status, 200);
    }
}

#[tokio::test]
async fn where_all_are_busy_the_peer_with_more_gives_way_to_one_with_none() {
    let service = with_config("[limits]\nconnections = 2").await;
    let [first, second] = [Held::open(&service).await, Held::open(&service).await];
    assert_eq!(get_from(&service, "127.0.0.3", BANKS).await.status, 200);
    assert_eq!(first.ended().await, "");
    assert_eq!(second.finish().await.status, 200);
}

#[tokio::test]
async fn a_trusted_proxys_connections_have_no_cap_and_its_clients_have_shares() {
    let service = with_config(&format!("{TRUSTED}\nconnections = 1\nin_flight = 4")).await;
    let mut wires = Vec::new();
    for _ in 0..5 {
        wires.push(served(&service, "127.0.0.2").await);
    }
    for wire in &mut wires {
        is_served_again(wire).await;
    }
    for (own, same, other) in [
        ("192.0.2.1", "192.0.2.66, 192.0.2.1", "192.0.2.2"),
        ("2001:db8:1:2::1", "2001:db8:1:2:f::9", "2001:db8:1:3::1"),
    ] {
        let (mut requests, _connection) = streams(&service, "127.0.0.2", 65_535).await;
        let (mut held, mut answers) = (Vec::new(), Vec::new());
        for _ in 0..4 {
            let (body, request) = post_held();
            answers.push(requests.send_request(with(request, "x-forwarded-for", own)));
            held.push(body);
        }
        let of = |client: &str| with(get("/developer-guide"), "x-forwarded-for", client);
        in_time("the client has its share", async {
            while ask(&mut requests, of(same)).await.status() != 503 {}
        })
        .await;
        assert_eq!(ask(&mut requests, of(other)).await.status(), 200, "{other}");
        assert_eq!(
            ask(&mut requests, get("/developer-guide")).await.status(),
            200,
            "the proxy speaks for itself"
        );
        drop(held);
        join_all(answers).await;
    }
}

#[tokio::test]
async fn what_a_stranger_forwards_counts_for_nothing() {
    let service = with_config("[peers]\nin_flight = 4").await;
    let (mut requests, _connection) = streams(&service, "127.0.0.2", 65_535).await;
    let (mut held, mut answers) = (Vec::new(), Vec::new());
    for number in 0..4 {
        let (body, request) = post_held();
        answers.push(requests.send_request(with(
            request,
            "x-forwarded-for",
            &format!("192.0.2.{number}"),
        )));
        held.push(body);
    }
    in_time("the peer has its share", async {
        let forwarded = || with(get("/developer-guide"), "x-forwarded-for", "192.0.2.9");
        while ask(&mut requests, forwarded()).await.status() != 503 {}
    })
    .await;
    assert_eq!(
        get_from(&service, "127.0.0.3", "/developer-guide")
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn the_operators_listener_knows_shares_too() {
    let service = with_config("[limits]\nconnections = 3\n[peers]\nconnections = 2").await;
    let url = service.operator_url();
    let mut idle = Vec::new();
    for from in ["127.0.0.2", "127.0.0.2", "127.0.0.2", "127.0.0.3"] {
        let mut wire = Wire::connect_from(&url, from).await;
        wire.send("GET /metrics HTTP/1.1\r\nhost: test\r\n\r\n")
            .await;
        assert_eq!(wire.answer().await.status, 401);
        idle.push(wire);
    }
    assert_eq!(idle.remove(0).ended().await, "", "the peer's share is two");
    let answer = service.admin(Method::GET, "/admin/v1/status", None).await;
    assert_eq!(
        (answer.status, answer.json()["success"].clone()),
        (200, Value::Bool(true))
    );
}
