//! Credits of self-service keys: what a call costs, what a failure gives back, how many calls at once, and a call's own
//! name, on both faces.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Metered, Post, Service, failure, operator, outcome};

const CREDIT_HEADERS: [&str; 3] = [
    "x-apikey-credit-cost",
    "x-apikey-credit-limit",
    "x-apikey-credit-reset",
];

/// An account with so many credits, and a key of it.
struct Payer {
    metered: &'static Metered,
    account: String,
    key: String,
}

impl Payer {
    async fn new(credits: u64) -> Self {
        Self::of(json!({ "entitlement": { "plan": "paid", "creditsPerMonth": credits } })).await
    }

    async fn of(account: Value) -> Self {
        let metered = Metered::shared().await;
        let account = metered.account(account).await;
        let key = metered.key(json!({ "account": account })).await;
        Self {
            metered,
            account,
            key,
        }
    }

    async fn call(&self, operation: &str, input: &Value) -> Answer {
        self.metered.rest(&self.key, operation, input, &[]).await
    }

    async fn tool(&self, operation: &str, input: &Value) -> Answer {
        self.metered.tool(&self.key, operation, input).await
    }

    /// A call with a name.
    async fn named(&self, operation: &str, input: &Value, name: &str) -> Answer {
        self.metered
            .rest(&self.key, operation, input, &[("idempotency-key", name)])
            .await
    }

    /// Spent and reserved credits of the month.
    async fn balance(&self) -> (u64, u64) {
        let path = format!("/admin/v1/accounts/{}", self.account);
        let shown = operator(&self.metered.service, Method::GET, &path, &Value::Null)
            .await
            .json();
        let credits = &shown["data"]["credits"];
        (
            credits["spent"].as_u64().expect("spent"),
            credits["reserved"].as_u64().expect("reserved"),
        )
    }
}

fn told(answer: &Answer) -> (u16, u64, u64) {
    let [cost, limit, reset] =
        CREDIT_HEADERS.map(|name| answer.header(name).parse::<u64>().expect("an integer"));
    assert_eq!(reset, crate::quota::month_end());
    (answer.status, cost, limit)
}

#[tokio::test]
async fn a_success_costs_its_price_and_a_failure_nothing() {
    let payer = Payer::new(100).await;
    assert_eq!(told(&payer.call("plain", &json!({})).await), (200, 1, 100));
    assert_eq!(told(&payer.call("costly", &json!({})).await), (200, 4, 100));
    assert_eq!(told(&payer.tool("costly", &json!({})).await), (200, 4, 100));
    assert_eq!(payer.balance().await, (9, 0));
    assert_eq!(
        told(&payer.call("costly", &json!({ "how": "fail" })).await),
        (418, 4, 100)
    );
    assert_eq!(
        told(&payer.call("costly", &json!({ "how": "trap" })).await),
        (500, 4, 100)
    );
    assert_eq!(
        told(&payer.call("brief", &json!({ "wait_ms": 60_000 })).await),
        (504, 4, 100)
    );
    assert_eq!(
        outcome(&payer.tool("costly", &json!({ "how": "fail" })).await),
        "200 isError TEAPOT #7"
    );
    assert_eq!(payer.balance().await, (9, 0));
    assert_eq!(
        told(&payer.call("costly", &json!({ "how": "badly" })).await),
        (400, 0, 100)
    );
    assert_eq!(
        told(&payer.call("unmetered", &json!({})).await),
        (200, 0, 100)
    );
    assert_eq!(payer.balance().await, (9, 0));
}

#[tokio::test]
async fn what_the_credits_do_not_pay_is_refused_until_the_month_ends() {
    let payer = Payer::new(9).await;
    for spent in [4, 8] {
        assert_eq!(payer.call("costly", &json!({})).await.status, 200);
        assert_eq!(payer.balance().await, (spent, 0));
    }
    let (rest, tool) = (
        payer.call("costly", &json!({})).await,
        payer.tool("costly", &json!({})).await,
    );
    assert_eq!(rest.refusal(), (429, "API_CREDITS_EXCEEDED".to_owned()));
    assert_eq!((told(&rest), told(&tool)), ((429, 0, 9), (200, 0, 9)));
    assert_eq!(outcome(&tool), "200 isError API_CREDITS_EXCEEDED #7");
    let (body, (_, envelope)) = (rest.json(), failure(&tool.json()["result"]));
    assert_eq!(
        (&envelope["error"], &envelope["data"]["resetAt"]),
        (&body["error"], &body["data"]["resetAt"])
    );
    let wait = body["data"]["retryAfter"].as_u64().expect("retryAfter");
    assert_eq!(rest.header("retry-after"), wait.to_string());
    assert_eq!(
        tool.header("retry-after"),
        envelope["data"]["retryAfter"].to_string()
    );
    assert!((1..=31 * 86_400).contains(&wait), "{wait}");
    assert_eq!(
        payer.call("plain", &json!({})).await.status,
        200,
        "one credit is left"
    );
    assert_eq!(payer.balance().await, (9, 0));
}

#[tokio::test]
async fn calls_at_once_never_spend_more_than_there_is() {
    let entitlement = json!({ "plan": "paid", "creditsPerMonth": 30 });
    let payer = Payer::of(json!({ "concurrency": 100, "entitlement": entitlement })).await;
    let input = json!({});
    let answers = futures::future::join_all((0..40).map(|_| payer.call("costly", &input))).await;
    let of = |status: u16| {
        answers
            .iter()
            .filter(|answer| answer.status == status)
            .count()
    };
    assert_eq!((of(200), of(429)), (7, 33));
    assert_eq!(payer.balance().await, (28, 0));
}

#[tokio::test]
async fn an_account_has_so_many_calls_at_once() {
    let entitlement = json!({ "plan": "paid", "creditsPerMonth": 100 });
    let payer = Payer::of(json!({ "concurrency": 2, "entitlement": entitlement })).await;
    let slow = json!({ "wait_ms": 1500 });
    let answers = futures::future::join_all((0..6).map(|index| {
        let name = format!("at-once-{index}");
        let (payer, slow) = (&payer, &slow);
        async move { (payer.named("plain", slow, &name).await, name) }
    }))
    .await;
    let (admitted, refused): (Vec<_>, Vec<_>) = answers
        .into_iter()
        .partition(|(answer, _)| answer.status == 200);
    assert_eq!((admitted.len(), refused.len()), (2, 4));
    for (answer, name) in &refused {
        assert_eq!(
            answer.refusal(),
            (429, "USAGE_CONCURRENCY_EXCEEDED".to_owned())
        );
        assert_eq!(
            (
                answer.header("retry-after"),
                &answer.json()["data"]["retryAfter"]
            ),
            ("1", &json!(1))
        );
        assert_eq!(told(answer), (429, 0, 100));
        assert_eq!(
            payer.named("plain", &json!({}), name).await.status,
            200,
            "the name was left free"
        );
    }
    assert_eq!(payer.balance().await, (6, 0));
    let tools = futures::future::join_all((0..3).map(|_| payer.tool("plain", &slow))).await;
    let mut outcomes: Vec<String> = tools.iter().map(outcome).collect();
    outcomes.sort_unstable();
    assert_eq!(
        outcomes,
        [
            "200 isError USAGE_CONCURRENCY_EXCEEDED #7",
            "200 result #7",
            "200 result #7"
        ]
    );
    for tool in tools {
        let refused = tool.json()["result"]["isError"] == true;
        assert_eq!(
            tool.headers
                .get("retry-after")
                .map(|value| value.as_bytes()),
            refused.then_some(&b"1"[..])
        );
        assert_eq!(told(&tool), (200, u64::from(!refused), 100));
    }
}

#[tokio::test]
async fn five_calls_at_once_are_the_default() {
    let payer = Payer::new(100).await;
    let slow = json!({ "wait_ms": 1500 });
    let answers = futures::future::join_all((0..7).map(|_| payer.call("plain", &slow))).await;
    let of = |status: u16| {
        answers
            .iter()
            .filter(|answer| answer.status == status)
            .count()
    };
    assert_eq!((of(200), of(429)), (5, 2));
}

#[tokio::test]
async fn a_name_is_used_once_whatever_came_of_its_call() {
    let payer = Payer::new(100).await;
    for (name, how, status) in [("settled", "reply", 200), ("released", "fail", 418)] {
        assert_eq!(
            payer
                .named("plain", &json!({ "how": how }), name)
                .await
                .status,
            status
        );
        for operation in ["plain", "costly"] {
            let again = payer.named(operation, &json!({}), name).await;
            assert_eq!(
                again.refusal(),
                (409, "USAGE_RESERVATION_CONFLICT".to_owned()),
                "{name}"
            );
            assert_eq!(told(&again), (409, 0, 100));
        }
        let tool = Post::call("call_plain", &json!({}))
            .bearer(&payer.key)
            .header("idempotency-key", name);
        let tool = tool.send(&payer.metered.service).await;
        assert_eq!(outcome(&tool), "200 isError USAGE_RESERVATION_CONFLICT #7");
        assert_eq!(
            (told(&tool), tool.headers.get("retry-after")),
            ((200, 0, 100), None)
        );
    }
    // Whichever of the two is admitted, the other is told of it.
    let slow = json!({ "wait_ms": 1500 });
    let answers =
        futures::future::join_all((0..2).map(|_| payer.named("plain", &slow, "running"))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    assert_eq!(payer.balance().await, (2, 0));
    let other = payer.metered.key(json!({ "account": payer.account })).await;
    let of_other = payer
        .metered
        .rest(
            &other,
            "plain",
            &json!({}),
            &[("idempotency-key", "settled")],
        )
        .await;
    assert_eq!(of_other.status, 200, "a name is its owner's");
    assert_eq!(
        payer.named("unmetered", &json!({}), "free").await.status,
        200
    );
    assert_eq!(
        payer.named("unmetered", &json!({}), "free").await.status,
        409,
        "what costs nothing has a name too"
    );
}

#[tokio::test]
async fn what_is_refused_before_admission_leaves_the_name_free() {
    let payer = Payer::new(4).await;
    assert_eq!(
        payer
            .named("plain", &json!({ "how": "badly" }), "n")
            .await
            .status,
        400
    );
    assert_eq!(payer.call("plain", &json!({})).await.status, 200);
    assert_eq!(
        payer.named("costly", &json!({}), "n").await.refusal(),
        (429, "API_CREDITS_EXCEEDED".to_owned())
    );
    assert_eq!(payer.named("plain", &json!({}), "n").await.status, 200);
    assert_eq!(
        payer.named("costly", &json!({}), "n").await.refusal().0,
        409,
        "a burnt name comes before the credits"
    );
}

#[tokio::test]
async fn a_name_has_a_pattern_and_counts_for_self_service_keys_alone() {
    let payer = Payer::new(100).await;
    let (good, long) = ("a-Z_9".repeat(16), "x".repeat(81));
    assert_eq!(payer.named("plain", &json!({}), &good).await.status, 200);
    let administrator = payer.metered.key(json!({})).await;
    for wrong in ["", " ", "a b", "a.b", "ü", &long] {
        let refused = payer.named("plain", &json!({}), wrong).await;
        assert_eq!(
            refused.refusal(),
            (400, "VALIDATION_ERROR".to_owned()),
            "{wrong}"
        );
        assert_eq!(refused.json()["data"]["field"], "Idempotency-Key");
        let headers = [("idempotency-key", wrong)];
        assert_eq!(
            payer
                .metered
                .rest(&administrator, "plain", &json!({}), &headers)
                .await
                .status,
            200,
            "{wrong}"
        );
        assert_eq!(
            payer.named("started", &json!({}), wrong).await.status,
            200,
            "it has a request id of its own"
        );
    }
    let twice = [("idempotency-key", "a"), ("idempotency-key", "b")];
    assert_eq!(
        payer
            .metered
            .rest(&payer.key, "plain", &json!({}), &twice)
            .await
            .status,
        400
    );
    for _ in 0..2 {
        assert_eq!(
            payer.named("started", &json!({}), "twice").await.status,
            200
        );
        let headers = [("idempotency-key", "twice")];
        assert_eq!(
            payer
                .metered
                .rest(&administrator, "plain", &json!({}), &headers)
                .await
                .status,
            200
        );
    }
}

#[tokio::test]
async fn a_batch_has_no_name() {
    let payer = Payer::new(100).await;
    let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": { "name": "call_plain" } });
    let batch = |key: &str| Post::raw(json!([call, call]).to_string()).bearer(key);
    let service = &payer.metered.service;
    let named = batch(&payer.key)
        .header("idempotency-key", "n")
        .send(service)
        .await;
    assert_eq!(outcome(&named), "400 -32600");
    assert_eq!(payer.balance().await, (0, 0));
    assert_eq!(batch(&payer.key).send(service).await.status, 200);
    assert_eq!(payer.balance().await, (2, 0));
    let administrator = payer.metered.key(json!({})).await;
    assert_eq!(
        batch(&administrator)
            .header("idempotency-key", "n")
            .send(service)
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_client_that_goes_away_pays_for_what_its_call_came_to() {
    let payer = Payer::new(100).await;
    go_away(payer.metered, &payer.key, async || payer.balance().await).await;
    let ended = loop {
        match payer.balance().await {
            (0, 4) => {}
            ended => break ended,
        }
    };
    assert_eq!(ended, (4, 0));
}

/// Begins a call that takes a second, and leaves as soon as its four credits are reserved.
async fn go_away(metered: &Metered, key: &str, balance: impl AsyncFn() -> (u64, u64)) {
    let request = metered
        .service
        .bare(Method::POST, "/api/v1/test/costly")
        .bearer_auth(key);
    tokio::select! {
        answer = request.json(&json!({ "wait_ms": 1000 })).send() => panic!("nobody left: {answer:?}"),
        () = async { while balance().await != (0, 4) {} } => {}
    }
}

#[tokio::test]
async fn a_process_that_stops_waits_for_paid_calls_whose_clients_went_away() {
    let first = Metered::start("", None).await;
    let entitlement = json!({ "plan": "paid", "creditsPerMonth": 9 });
    let account = first.account(json!({ "entitlement": entitlement })).await;
    let key = first.key(json!({ "account": account })).await;
    let path = format!("/admin/v1/accounts/{account}");
    let credits = async |metered: &Metered| {
        let shown = operator(&metered.service, Method::GET, &path, &Value::Null)
            .await
            .json();
        let credits = &shown["data"]["credits"];
        (
            credits["spent"].as_u64().expect("spent"),
            credits["reserved"].as_u64().expect("reserved"),
        )
    };
    go_away(&first, &key, async || credits(&first).await).await;
    let second = Metered::start("", Some(first.stop())).await;
    assert_eq!(credits(&second).await, (4, 0));
}

#[tokio::test]
async fn the_operator_sets_prices() {
    let metered = Metered::start(
        "[credits]\nconcurrency = 1\n[credits.costs.metered]\nplain = 7\ncostly = 0\n",
        None,
    )
    .await;
    let entitlement = json!({ "plan": "paid", "creditsPerMonth": 20 });
    let account = metered.account(json!({ "entitlement": entitlement })).await;
    let key = metered.key(json!({ "account": account })).await;
    assert_eq!(
        told(&metered.rest(&key, "plain", &json!({}), &[]).await),
        (200, 7, 20)
    );
    assert_eq!(
        told(&metered.rest(&key, "costly", &json!({}), &[]).await),
        (200, 0, 20)
    );
    let slow = json!({ "wait_ms": 1500 });
    let answers =
        futures::future::join_all((0..2).map(|_| metered.rest(&key, "plain", &slow, &[]))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 429]);
    let config = operator(
        &metered.service,
        Method::GET,
        "/admin/v1/config",
        &Value::Null,
    )
    .await
    .json();
    let costs = json!({ "metered": { "costly": 0, "plain": 7 } });
    assert_eq!(
        config["data"]["credits"],
        json!({ "concurrency": 1, "costs": costs })
    );
}

#[tokio::test]
async fn an_administrator_key_pays_nothing() {
    let metered = Metered::shared().await;
    let key = metered.key(json!({})).await;
    let answer = metered.rest(&key, "costly", &json!({}), &[]).await;
    let told = answer
        .headers
        .keys()
        .find(|name| name.as_str().contains("credit"));
    assert_eq!((answer.status, told), (200, None));
    assert_eq!(
        Service::send(metered.service.bare(Method::POST, "/api/v1/test/costly"))
            .await
            .status,
        401
    );
}
