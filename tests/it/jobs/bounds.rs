//! The bounds of jobs: their owner's share, what a call asks of them, and what one run of them may use.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::{House, JOBS, job_of, keys, pages};
use crate::support::{Answer, Service, in_time};

#[tokio::test]
async fn nobody_has_more_than_a_share_of_the_runs_and_the_queue() {
    let limits = "[jobs]\nrunning = 3\nopen = 8\nowner_running = 2\nowner_open = 5\n";
    let house = House::start_with(limits, pages(), None).await;
    house.pages.hold("/");
    let submit =
        |number: usize| house.submit(json!({ "request": format!("mine-{number}"), "pages": 1 }));
    let mine = join_all((0..50).map(submit)).await;
    let taken: Vec<&Answer> = mine.iter().filter(|answer| answer.status == 202).collect();
    assert_eq!(taken.len(), 5);
    assert!(mine.iter().all(|answer| answer.status == 202
        || answer.refusal() == (503, "SERVICE_UNAVAILABLE".to_owned())));
    // Those who come later are not behind the five.
    let strangers: Vec<String> = (0..4)
        .map(|_| house.service.issue(&["--all-scopes"]))
        .collect();
    let submit = |key: &String| {
        let start = json!({ "request": "theirs", "pages": 1 });
        Service::send(
            house
                .service
                .bare(Method::POST, JOBS)
                .bearer_auth(key)
                .json(&start),
        )
    };
    let theirs: Vec<u16> = join_all(strangers.iter().map(submit))
        .await
        .iter()
        .map(|answer| answer.status)
        .collect();
    assert_eq!(
        theirs.iter().filter(|status| **status == 202).count(),
        3,
        "eight are open altogether: {theirs:?}"
    );
    let asked = || {
        (
            house.pages.asked("/mine").len(),
            house.pages.asked("/theirs").len(),
        )
    };
    let until = async |counts: (f64, f64), pages: (usize, usize)| {
        in_time("they are as they should", async {
            while house.counts().await != counts || asked() != pages {}
        })
        .await;
    };
    until((5.0, 3.0), (2, 1)).await;
    // A place that is free goes to the next in turn, and a job that waits is cancelled without having run.
    let ids: Vec<String> = taken.iter().map(|answer| job_of(answer)).collect();
    let mut running = Vec::new();
    for id in &ids {
        if house.read(id, "").await["state"] == "running" {
            running.push(id);
        } else {
            assert_eq!(house.cancel(id).await, "cancelled");
        }
    }
    assert_eq!((running.len(), house.counts().await), (2, (2.0, 3.0)));
    for id in running {
        assert_eq!(house.cancel(id).await, "cancelled");
    }
    until((0.0, 3.0), (2, 3)).await;
    house.pages.release("/");
    in_time("they end", async {
        while house.counts().await != (0.0, 0.0) {}
    })
    .await;
}

#[tokio::test]
async fn a_call_asks_for_so_many_things_of_jobs_at_once_and_the_next_is_refused() {
    let house = House::start().await;
    house.pages.hold("/held/");
    let job = house.begin(json!({ "request": "held", "pages": 1 })).await;
    house.pages.until_asked("/held/0").await;
    let crowd = async || {
        let asked = house
            .request(Method::POST, &format!("/{job}/crowd"))
            .json(&json!({}));
        Service::send(asked).await.json()["data"]["state"].clone()
    };
    assert_eq!(crowd().await, "busy 68, running 32");
    // The places are free again.
    assert_eq!(crowd().await, "busy 68, running 32");
    house.pages.release("/held/");
    assert_eq!(house.end_of(&job).await["state"], "completed");
}

#[tokio::test]
async fn a_job_that_goes_wrong_fails_and_says_how() {
    let house = House::start().await;
    for (then, told) in [
        ("fail", "REFUSED: The pages are no good"),
        (
            "surprise",
            "INTERNAL_ERROR: The service failed to handle this call",
        ),
        (
            "trap",
            "INTERNAL_ERROR: The service failed to handle this call",
        ),
        (
            "spin",
            "UPSTREAM_TIMEOUT: The operation used up its processor time before it finished",
        ),
    ] {
        let shown = house
            .run(json!({ "request": then, "pages": 2, "then": then }))
            .await;
        assert_eq!(
            (&shown["state"], &shown["failure"]),
            (&json!("failed"), &json!(told))
        );
        assert_eq!(
            (&shown["keys"], &shown["output"]),
            (&keys(0..2), &Value::Null)
        );
    }
    house.pages.hold("/late/1");
    let late = house
        .run(json!({ "request": "late", "pages": 2, "budget_ms": 1000 }))
        .await;
    let told = json!("UPSTREAM_TIMEOUT: The operation did not finish by its deadline");
    assert_eq!((&late["failure"], &late["keys"]), (&told, &keys(0..1)));
    house.pages.until_gone("/late/1").await;
}

#[tokio::test]
async fn a_run_has_its_limits_and_a_budget_for_each_item() {
    let house = House::start().await;
    let output = async |then: &str| {
        house.run(json!({ "request": then, "then": then })).await["output"].clone()
    };
    assert_eq!(output("flood").await, r#"{"items":1000,"then":"full"}"#);
    assert_eq!(
        output("crowd").await,
        r#"{"busy":true,"kept":true,"all":100}"#
    );
    let refused =
        r#"["not-acceptable","not-acceptable","not-acceptable","not-acceptable","true","false"]"#;
    assert_eq!(output("refused").await, refused);
    // Twice the budget of one slice, in four.
    assert_eq!(output("toil").await, r#"{"attempt":1,"keys":4}"#);
    let outside = house.service.post("/api/v1/test/outside", &json!({})).await;
    assert_eq!(outside.json()["data"]["state"], "ended ended ended ended");
}
