//! For how long a way out is lent, and what becomes of its tunnels at its end.

use reqwest::Method;
use serde_json::{Value, json};

use super::super::{start, start_with};
use super::{Lent, lend, lines, request};
use crate::support::{Wire, command};

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
        assert_eq!(
            ask("fetches", json!({ "seconds": seconds })).await,
            400,
            "{seconds}"
        );
    }
    assert_eq!(ask("nothing", json!({})).await, 404);
    let failed = command(
        service.data.path(),
        &["plugin", "proxy", "fetches", "--for", "601"],
    )
    .expect_err("too long");
    assert!(
        failed.contains("`seconds` must be from 1 to 600"),
        "{failed}"
    );
    // So many live at once, and no more.
    for _ in 2..256 {
        assert_eq!(ask("fetches", json!({})).await, 201);
    }
    assert_eq!(ask("fetches", json!({})).await, 503);
    assert_eq!(
        service
            .admin(
                Method::POST,
                "/admin/v1/plugins/fetches/disable",
                Some(&json!({}))
            )
            .await
            .status,
        200
    );
    assert_eq!(ask("fetches", json!({})).await, 409);
}

#[tokio::test]
async fn a_credential_and_its_tunnels_end_with_its_time() {
    let service = start().await;
    let lent = lend(&service, 5).await;
    let mut tunnel = Wire::connect(&lent.proxy).await;
    tunnel
        .send(request("CONNECT site.test:80 HTTP/1.1", &lent))
        .await;
    assert!(tunnel.until("\r\n\r\n").await.starts_with("HTTP/1.1 200 "));
    assert_eq!(tunnel.ended().await, "");
    assert_eq!(status(&lent, "CONNECT site.test:80 HTTP/1.1").await, 407);
    assert_eq!(status(&lent, "GET http://site.test/ HTTP/1.1").await, 407);
    // A tunnel's line may come after those of what was refused meanwhile.
    let late = |all: &[Value]| {
        lines(all)
            .iter()
            .filter(|line| line["verdict"] == "late")
            .count()
    };
    let all = service.log_until(|all| late(all) > 0);
    assert_eq!(late(&all), 1);
}

#[tokio::test]
async fn a_credential_and_its_tunnels_end_with_the_revision_whose_rights_it_carries() {
    let service = start().await;
    let lent = lend(&service, 600).await;
    let mut tunnel = Wire::connect(&lent.proxy).await;
    tunnel
        .send(request("CONNECT site.test:80 HTTP/1.1", &lent))
        .await;
    assert!(tunnel.until("\r\n\r\n").await.starts_with("HTTP/1.1 200 "));
    let disabled = service
        .admin(
            Method::POST,
            "/admin/v1/plugins/fetches/disable",
            Some(&json!({})),
        )
        .await;
    assert_eq!(disabled.status, 200);
    assert_eq!(tunnel.ended().await, "");
    assert_eq!(status(&lent, "GET http://site.test/ HTTP/1.1").await, 407);
    let all = service.log_until(|all| lines(all).len() >= 2);
    assert_eq!(
        lines(&all)
            .iter()
            .filter(|line| line["verdict"] == "revoked")
            .count(),
        1
    );
}

#[tokio::test]
async fn a_process_that_stops_ends_its_tunnels() {
    let service = start_with("[proxy]\nidle_ms = 3600000").await;
    let lent = lend(&service, 600).await;
    let mut tunnel = Wire::connect(&lent.proxy).await;
    tunnel
        .send(request("CONNECT site.test:80 HTTP/1.1", &lent))
        .await;
    assert!(tunnel.until("\r\n\r\n").await.starts_with("HTTP/1.1 200 "));
    let mut begun = Wire::connect(&lent.proxy).await;
    begun.send("GET http://site").await;
    let written = service.stop();
    assert_eq!(
        (tunnel.ended().await, begun.ended().await),
        (String::new(), String::new())
    );
    assert!(
        written
            .iter()
            .any(|line| line.contains("\"verdict\":\"stopped\"")),
        "{written:?}"
    );
}

/// The status that a request gets.
async fn status(lent: &Lent, line: &str) -> u16 {
    let mut wire = Wire::connect(&lent.proxy).await;
    wire.send(request(line, lent)).await;
    wire.answer().await.status
}
