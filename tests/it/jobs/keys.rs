//! Jobs whose key is not good any more: nobody could read them, so they end.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{House, JOBS, pages};
use crate::support::{Service, command, in_time, operator};

impl House {
    /// Issues a key with these settings; gives back its id and itself.
    async fn issue(&self, mut request: Value) -> (String, String) {
        (request["label"], request["scopes"]) = (json!("test"), json!(["*"]));
        let issued = operator(&self.service, Method::POST, "/admin/v1/keys", &request)
            .await
            .json()["data"]
            .clone();
        let text = |name: &str| issued[name].as_str().expect("a text").to_owned();
        (text("id"), text("key"))
    }

    /// Begins a job that waits for its second page, and two that wait for their turn.
    async fn begin_by(&self, key: &str, request: &str) {
        for (request, pages) in [
            (request.to_owned(), 2),
            (format!("{request}-2"), 0),
            (format!("{request}-3"), 0),
        ] {
            let start = json!({ "request": request, "pages": pages });
            let answer = Service::send(
                self.service
                    .bare(Method::POST, JOBS)
                    .bearer_auth(key)
                    .json(&start),
            )
            .await;
            assert_eq!(answer.status, 202, "{answer:?}");
        }
        self.pages.until_asked(&format!("/{request}/1")).await;
        assert_eq!(self.counts().await, (2.0, 1.0));
    }

    /// Waits until all three are cancelled: without that they would end by themselves, later.
    fn until_cancelled(&self, id: &str) {
        let told = "cancelling the jobs of a key that is no longer valid";
        let is_told =
            |line: &Value| line["message"] == told && line["key"] == *id && line["jobs"] == 3;
        self.service.log_until(|lines| lines.iter().any(is_told));
    }

    /// Waits until nothing is left of it, neither running nor waiting.
    async fn until_ended(&self, request: &str) {
        self.pages.until_gone(&format!("/{request}/1")).await;
        in_time("its jobs are gone", async {
            while self.counts().await != (0.0, 0.0) {}
        })
        .await;
        assert_eq!(
            self.pages.asked(&format!("/{request}/")).len(),
            2,
            "nothing more was fetched"
        );
    }
}

const ONE_AT_ONCE: &str = "[jobs]\nowner_running = 1\n";

#[tokio::test]
async fn jobs_end_with_their_key() {
    let house = House::start_with(ONE_AT_ONCE, pages(), None).await;
    for how in ["revoked", "rotated", "expired"] {
        house.pages.hold(&format!("/{how}/1"));
        let expires = OffsetDateTime::now_utc()
            + Duration::from_secs(if how == "expired" { 3 } else { 3600 });
        let expires_at = expires.format(&Rfc3339).expect("a time");
        let (id, key) = house.issue(json!({ "expiresAt": expires_at })).await;
        house.begin_by(&key, how).await;
        let answer = match how {
            "revoked" => {
                operator(
                    &house.service,
                    Method::DELETE,
                    &format!("/admin/v1/keys/{id}"),
                    &Value::Null,
                )
                .await
                .status
            }
            "rotated" => {
                let path = format!("/admin/v1/keys/{id}/rotate");
                operator(&house.service, Method::POST, &path, &Value::Null)
                    .await
                    .status
            }
            _ => 200,
        };
        assert!([200, 201].contains(&answer), "{how}: {answer}");
        house.until_cancelled(&id);
        house.until_ended(how).await;
    }
}

#[tokio::test]
async fn jobs_end_with_the_plan_of_their_account_and_nobody_elses() {
    let house = House::start_with(ONE_AT_ONCE, pages(), None).await;
    let entitlement = json!({ "plan": "paid", "creditsPerMonth": 100 });
    let account = json!({ "label": "test", "entitlement": entitlement });
    let opened = operator(&house.service, Method::POST, "/admin/v1/accounts", &account).await;
    let account = opened.json()["data"]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let (id, key) = house.issue(json!({ "account": account })).await;
    house.pages.hold("/paid/1");
    house.begin_by(&key, "paid").await;
    house.pages.hold("/other/1");
    let other = house.begin(json!({ "request": "other", "pages": 2 })).await;
    house.pages.until_asked("/other/1").await;
    let path = format!("/admin/v1/accounts/{account}/entitlement");
    assert_eq!(
        operator(&house.service, Method::DELETE, &path, &Value::Null)
            .await
            .status,
        200
    );
    house.until_cancelled(&id);
    house.pages.until_gone("/paid/1").await;
    in_time("its jobs are gone", async {
        while house.counts().await != (0.0, 1.0) {}
    })
    .await;
    house.pages.release("/other/1");
    assert_eq!(house.end_of(&other).await["state"], "completed");
}

/// A key that was revoked while no server ran: the next one does not take its jobs up.
#[tokio::test]
async fn jobs_of_a_key_that_was_revoked_meanwhile_are_not_taken_up() {
    let house = House::start_with(ONE_AT_ONCE, pages(), None).await;
    let (id, key) = house.issue(json!({})).await;
    house.pages.hold("/kept/1");
    house.begin_by(&key, "kept").await;
    house.service.stop();
    house.pages.release("/kept/1");
    let (pages, data) = (house.pages.clone(), Arc::clone(&house.service.data));
    drop(house);
    command(data.path(), &["key", "revoke", &id]).expect("it is revoked");
    let house = House::start_with(ONE_AT_ONCE, pages, Some(data)).await;
    in_time("its jobs are gone", async {
        while house.counts().await != (0.0, 0.0) {}
    })
    .await;
    assert_eq!(
        house.pages.asked("/kept/").len(),
        2,
        "nothing more was fetched"
    );
}
