//! The stream of events: told as they happen, and caught up with after a break.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{House, done, probe, stage};
use crate::support::{Service, in_time};

/// An open stream.
struct Listener {
    response: reqwest::Response,
    text: String,
}

impl Listener {
    async fn open(service: &Service, query: &str, last: Option<u64>) -> Self {
        let url = format!("{}/admin/v1/events{query}", service.operator_url());
        let mut request = reqwest::Client::new()
            .get(url)
            .bearer_auth(service.operator_token());
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request
            .header("accept-encoding", "gzip, br")
            .send()
            .await
            .expect("it answers");
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert!(
            !response.headers().contains_key("content-encoding"),
            "a stream waits in no encoder"
        );
        Self {
            response,
            text: String::new(),
        }
    }

    /// The next event, as its fields say.
    async fn next(&mut self) -> Value {
        loop {
            while let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                let fields: BTreeMap<&str, &str> = block
                    .lines()
                    .filter_map(|line| line.split_once(": "))
                    .filter(|(name, _)| !name.is_empty())
                    .collect();
                if let Some(data) = fields.get("data") {
                    let data: Value = serde_json::from_str(data).expect("JSON");
                    assert_eq!(
                        (fields["id"], fields["event"]),
                        (
                            &*data["id"].to_string(),
                            data["event"].as_str().expect("a name")
                        )
                    );
                    return data;
                }
            }
            let piece = in_time("an event", self.response.chunk())
                .await
                .expect("it is whole")
                .expect("the stream goes on");
            self.text
                .push_str(std::str::from_utf8(&piece).expect("text"));
        }
    }
}

#[tokio::test]
async fn events_are_told_as_they_happen_and_a_break_misses_none() {
    let house = House::new("");
    let service = house.serve().await;
    let mut listener = Listener::open(&service, "", None).await;
    assert_eq!(
        stage(
            &service,
            probe(2, &[]),
            "?activate=true&by=ada&why=ticket+7"
        )
        .await["state"],
        "active"
    );
    let mut seen = Vec::new();
    let mut ids = Vec::new();
    while seen.last() != Some(&json!("retained")) {
        let event = listener.next().await;
        ids.push(event["id"].as_u64().expect("a number"));
        seen.push(event["event"].clone());
        assert_eq!(event["plugin"], "probe");
        if event["event"] == "active" {
            assert_eq!(
                (&event["revision"], &event["by"], &event["why"]),
                (&json!(2), &json!("ada"), &json!("ticket 7"))
            );
        }
    }
    let expected = [
        "fetched",
        "verified",
        "compiled",
        "linked",
        "described",
        "compared",
        "staged",
        "draining",
        "active",
        "retained",
    ];
    assert_eq!(seen, expected);
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
    drop(listener);

    done(&service, "disable", json!({})).await;
    let mut listener = Listener::open(&service, "?plugin=probe", ids.last().copied()).await;
    assert_eq!(listener.next().await["event"], "disabled");
    done(&service, "enable", json!({})).await;
    assert_eq!(listener.next().await["event"], "enabled");
    let mut from_the_start = Listener::open(&service, "?after=0", None).await;
    assert_eq!(from_the_start.next().await["revision"], 1);
}

#[tokio::test]
async fn streams_have_a_limit_and_end_with_the_server() {
    let house = House::new("");
    let service = house.serve().await;
    let mut open = Vec::new();
    for _ in 0..32 {
        open.push(Listener::open(&service, "", None).await);
    }
    let refused = service
        .admin(reqwest::Method::GET, "/admin/v1/events", None)
        .await;
    assert_eq!(refused.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
    open.pop();
    let odd = service
        .admin(reqwest::Method::GET, "/admin/v1/events?colour=red", None)
        .await;
    assert_eq!(odd.refusal(), (400, "VALIDATION_ERROR".to_owned()));
    // Thirty-one listeners do not hold up the end.
    service.stop();
}
