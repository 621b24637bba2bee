//! REST: the envelope, the order of checks, and how a request is read.

use reqwest::Method;
use serde_json::json;

use crate::support::Service;

#[tokio::test]
async fn a_success_is_enveloped_and_carries_the_standing_headers() {
    let service = Service::shared();
    let answer = service.get("/api/v1/tools/bank-qr/banks").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["success"], true);
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert_eq!(answer.header("x-request-id").len(), 36);
    assert!(answer.header("server-timing").contains("plugin;dur="), "{}", answer.header("server-timing"));
}

#[tokio::test]
async fn an_inbound_request_id_is_ignored() {
    let service = Service::shared();
    let request = service.request(Method::GET, "/api/v1/tools/bank-qr/banks").header("x-request-id", "mine");
    assert_ne!(Service::send(request).await.header("x-request-id"), "mine");
}

#[tokio::test]
async fn the_first_offence_in_document_order_is_told() {
    let service = Service::shared();
    let body = json!({ "accountNumber": "12x", "surprise": 1, "bank": "V" });
    let answer = service.post("/api/v1/tools/bank-qr", &body).await;
    assert_eq!(answer.refusal(), (400, "VALIDATION_ERROR".to_owned()));
    assert_eq!(answer.json()["data"]["field"], "accountNumber");
}
