//! What one caller may have of a plugin's jobs: places in the queue, and processor time for each.

use reqwest::Method;
use serde_json::{Value, json};

use super::{House, JOBS, pages};
use crate::support::{Answer, Service, in_time, operator};

impl House {
    /// An account with credits, and two keys of it.
    async fn account(&self) -> (String, [String; 2]) {
        let entitlement = json!({ "plan": "paid", "creditsPerMonth": 100 });
        let account = json!({ "label": "test", "concurrency": 100, "entitlement": entitlement });
        let opened = operator(&self.service, Method::POST, "/admin/v1/accounts", &account).await;
        let account = opened.json()["data"]["id"]
            .as_str()
            .expect("an id")
            .to_owned();
        let keys = [(); 2].map(|()| self.service.issue(&["--all-scopes", "--account", &account]));
        (account, keys)
    }

    async fn credits(&self, account: &str) -> (Value, Value) {
        let shown = operator(
            &self.service,
            Method::GET,
            &format!("/admin/v1/accounts/{account}"),
            &Value::Null,
        )
        .await;
        let credits = shown.json()["data"]["credits"].clone();
        (credits["spent"].clone(), credits["reserved"].clone())
    }

    async fn submit_by(&self, key: &str, request: &str) -> Answer {
        let start = json!({ "request": request, "pages": 1 });
        Service::send(
            self.service
                .bare(Method::POST, JOBS)
                .bearer_auth(key)
                .json(&start),
        )
        .await
    }
}

#[tokio::test]
async fn a_start_above_the_limit_submits_nothing_and_burns_nothing() {
    let house = House::start_with("[jobs]\nowner_open = 2\n", pages(), None).await;
    house.pages.hold("/");
    let (account, [first, second]) = house.account().await;
    let one = house.submit_by(&first, "one").await;
    assert_eq!(
        (one.status, house.submit_by(&second, "two").await.status),
        (202, 202)
    );
    for key in [&first, &second] {
        let refused = house.submit_by(key, "three").await;
        assert_eq!(refused.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
        assert_eq!(
            (
                refused.header("retry-after"),
                &refused.json()["data"]["retryAfter"]
            ),
            ("10", &json!(10))
        );
        assert_eq!(refused.json()["error"]["message"], "Full");
    }
    let (waiting, running) = house.counts().await;
    assert!(
        (waiting + running - 2.0).abs() < 0.1,
        "nothing was submitted: {waiting} and {running}"
    );
    assert_eq!(
        house.credits(&account).await,
        (json!(2), json!(0)),
        "and nothing was paid"
    );
    assert_eq!(
        house.submit_by(&house.key, "three").await.status,
        202,
        "another caller has room"
    );
    // An id that is taken is told before there is no room.
    assert_eq!(
        house.submit_by(&first, "one").await.refusal(),
        (409, "DUPLICATE_REQUEST".to_owned())
    );
    let path = format!(
        "{JOBS}/{}",
        one.json()["data"]["job"].as_str().expect("an id")
    );
    let cancelled = Service::send(
        house
            .service
            .bare(Method::DELETE, &path)
            .bearer_auth(&first),
    )
    .await;
    assert_eq!(cancelled.json()["data"]["state"], "cancelled");
    assert_eq!(
        house.submit_by(&first, "three").await.status,
        202,
        "the request id was not burnt"
    );
    assert_eq!(
        house.credits(&account).await,
        (json!(4), json!(0)),
        "the cancellation costs one too"
    );
    house.pages.release("/");
}

#[tokio::test]
async fn the_last_quarter_of_the_queue_is_for_those_who_have_nothing_in_it() {
    let house = House::start_with("[jobs]\nopen = 8\n", pages(), None).await;
    house.pages.hold("/");
    let mut taken = Vec::new();
    for number in 0..10 {
        taken.push(
            house
                .submit_by(&house.key, &format!("mine-{number}"))
                .await
                .status,
        );
    }
    assert_eq!(taken, [202, 202, 202, 202, 202, 202, 503, 503, 503, 503]);
    for expected in [[202, 503], [202, 503], [503, 503]] {
        let stranger = house.service.issue(&["--all-scopes"]);
        let told = [
            house.submit_by(&stranger, "one").await.status,
            house.submit_by(&stranger, "two").await.status,
        ];
        assert_eq!(told, expected);
    }
    house.pages.release("/");
}

#[tokio::test]
async fn a_caller_has_sixteen_open_jobs_where_nobody_says_otherwise() {
    let house = House::start().await;
    house.pages.hold("/");
    for number in 0..17 {
        let status = house
            .submit_by(&house.key, &format!("mine-{number}"))
            .await
            .status;
        assert_eq!(status, if number < 16 { 202 } else { 503 }, "{number}");
    }
    house.pages.release("/");
}

#[tokio::test]
async fn whoever_runs_fewest_is_next() {
    let house = House::start_with("[jobs]\nrunning = 2\n", pages(), None).await;
    for held in ["/mine-0/", "/mine-1/", "/mine-2/", "/theirs/"] {
        house.pages.hold(held);
    }
    for request in ["mine-0", "mine-1", "mine-2"] {
        assert_eq!(house.submit_by(&house.key, request).await.status, 202);
    }
    for asked in ["/mine-0/", "/mine-1/"] {
        house.pages.until_asked(asked).await;
    }
    let stranger = house.service.issue(&["--all-scopes"]);
    assert_eq!(house.submit_by(&stranger, "theirs").await.status, 202);
    house.pages.release("/mine-0/");
    house.pages.until_asked("/theirs/").await;
    assert_eq!(
        house.pages.asked("/mine-2/").len(),
        0,
        "it came first, and its owner runs one"
    );
    house.pages.release("/mine-1/");
    house.pages.until_asked("/mine-2/").await;
}

#[tokio::test]
async fn a_job_has_processor_time_for_all_that_it_does() {
    let house = House::start_with("[jobs]\ncpu_seconds = 1\n", pages(), None).await;
    let shown = house
        .run(json!({ "request": "toils", "then": "toil", "slices": 100 }))
        .await;
    assert_eq!(
        (&shown["state"], &shown["output"]),
        (&json!("failed"), &Value::Null)
    );
    assert_eq!(
        shown["failure"],
        "RATE_LIMITED: The job used up its processor time"
    );
    let kept = shown["keys"].as_array().expect("keys").len();
    assert!(
        (3..100).contains(&kept),
        "what it kept before is there: {kept}"
    );
    // Each has its own.
    assert_eq!(
        house.run(json!({ "request": "rests", "pages": 2 })).await["state"],
        "completed"
    );
}

/// A job pays for its caller's minute too, as it goes on, and the next one waits until there is some again.
#[tokio::test]
async fn a_job_uses_up_the_minute_of_its_caller() {
    let house = House::start_with(
        "[shares]\ncpu_seconds = 1\n[jobs]\nowner_running = 1\n",
        pages(),
        None,
    )
    .await;
    house.pages.hold("/toils/");
    let toils = house
        .submit(json!({ "request": "toils", "pages": 1, "then": "toil", "slices": 24 }))
        .await;
    assert_eq!(
        (
            toils.status,
            house.submit_by(&house.key, "waits").await.status
        ),
        (202, 202)
    );
    house.pages.release("/toils/");
    let path = format!(
        "{JOBS}/{}",
        toils.json()["data"]["job"].as_str().expect("an id")
    );
    let refused = async {
        loop {
            let answer = house.service.get(&path).await;
            if answer.status != 200 {
                return answer;
            }
        }
    };
    let refused = in_time("the minute is used up", refused).await;
    assert_eq!(refused.refusal(), (429, "RATE_LIMITED".to_owned()));
    in_time("the first one ends", async {
        while house.counts().await != (1.0, 0.0) {}
    })
    .await;
    for _ in 0..20 {
        let (waiting, running) = house.counts().await;
        assert!((waiting + running - 1.0).abs() < 0.1, "the next one waits");
    }
    assert_eq!(house.pages.asked("/waits/").len(), 0);
    let stranger = house.service.issue(&["--all-scopes"]);
    assert_eq!(house.submit_by(&stranger, "theirs").await.status, 202);
    house.pages.until_asked("/theirs/").await;
}
