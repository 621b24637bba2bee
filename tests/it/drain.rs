//! The end of the process: what runs may finish, what is new is refused, and nothing holds it for longer than the drain time.

use std::process::Command;

use tokio::net::TcpStream;

use crate::support::{Held, Service, Wire, in_time};
use crate::transport::HEALTH;

/// Sends a signal and waits until it is understood: no new connection is taken.
pub(crate) async fn signal(service: &Service, name: &str) {
    kill(service, name);
    let address = service.base_url.trim_start_matches("http://");
    in_time("new connections are refused", async {
        while TcpStream::connect(address).await.is_ok() {}
    })
    .await;
}

fn kill(service: &Service, name: &str) {
    let sent = Command::new("sh")
        .args(["-c", &format!("kill -{name} {}", service.pid())])
        .status();
    assert!(sent.expect("kill runs").success());
}

async fn drains_on(name: &str) {
    let service = Service::with_limits("drain_ms = 3600000\nbody_ms = 3600000").await;
    let mut idle = Wire::connect(&service.base_url).await;
    idle.send(HEALTH).await;
    assert_eq!(idle.answer().await.status, 200);
    let mut silent = Wire::connect(&service.base_url).await;
    let running = Held::open(&service).await;
    signal(&service, name).await;
    assert_eq!(
        (idle.ended().await, silent.ended().await),
        (String::new(), String::new())
    );
    let answer = running.finish().await;
    assert_eq!((answer.status, answer.header("connection")), (200, "close"));
    assert_eq!(service.exit_code().await, Some(0));
}

#[tokio::test]
async fn sigterm_lets_a_running_request_end_and_takes_no_new_connection() {
    drains_on("TERM").await;
}

#[tokio::test]
async fn ctrl_c_lets_a_running_request_end_and_takes_no_new_connection() {
    drains_on("INT").await;
}

#[tokio::test]
async fn a_request_that_outlives_the_drain_is_cut() {
    let service = Service::with_limits("drain_ms = 300\nbody_ms = 3600000").await;
    let running = Held::open(&service).await;
    signal(&service, "TERM").await;
    assert_eq!(running.ended().await, "");
    assert_eq!(service.exit_code().await, Some(0));
}

#[tokio::test]
async fn a_second_signal_ends_the_process_at_once() {
    let service = Service::with_limits("drain_ms = 3600000\nbody_ms = 3600000").await;
    let running = Held::open(&service).await;
    signal(&service, "TERM").await;
    kill(&service, "TERM");
    assert_eq!(running.ended().await, "");
    assert_eq!(service.exit_code().await, Some(130));
}
