//! What one caller may have of a plugin: places, places to wait, processor time, and a pause of its own. Seen through calls that
//! are held, and calls that never end.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::metrics::{CALLS, scrape};
use crate::support::{
    Answer, Metered, Options, Service, build, built, in_time, operator, workspace,
};

const SPIN: &str = "/api/v1/test/spin";
/// Longer than any test: what is held ends when its client goes.
const HELD_MS: u32 = 25_000;

/// A service of the guests, and callers of it.
struct House {
    metered: Arc<Metered>,
    held: JoinSet<Answer>,
}

impl House {
    async fn start(config: &str) -> Self {
        let manifest = Some(workspace().join("tests/programs/shares.toml"));
        let service = Service::start(Options {
            config: config.to_owned(),
            manifest,
            ..Options::default()
        })
        .await;
        Self {
            metered: Arc::new(Metered { service }),
            held: JoinSet::new(),
        }
    }

    async fn key(&self) -> String {
        self.metered.key(json!({})).await
    }

    /// An account, and keys of it.
    async fn account<const N: usize>(&self) -> (String, [String; N]) {
        let entitlement = json!({ "plan": "paid", "creditsPerMonth": 1000 });
        let account = self
            .metered
            .account(json!({ "concurrency": 100, "entitlement": entitlement }))
            .await;
        let keys = join_all((0..N).map(|_| self.metered.key(json!({ "account": account })))).await;
        (account, keys.try_into().expect("as many"))
    }

    /// Begins calls that take a place for so long.
    fn hold(&mut self, key: &str, calls: usize, wait_ms: u32) {
        for _ in 0..calls {
            let (metered, key) = (Arc::clone(&self.metered), key.to_owned());
            self.held.spawn(async move {
                metered
                    .rest(&key, "plain", &json!({ "wait_ms": wait_ms }), &[])
                    .await
            });
        }
    }

    /// Waits until so many calls have a place, and so many wait.
    async fn until(&self, taken: u32, waiting: u32) {
        let expected = (f64::from(taken), f64::from(waiting));
        in_time("the places are as they should", async {
            while self.places().await != expected {}
        })
        .await;
    }

    async fn places(&self) -> (f64, f64) {
        let metrics = scrape(self.metered.service.data.path()).await;
        let of = |state| {
            metrics.value(
                "switchbay_plugin_places",
                &[("plugin", "metered"), ("state", state)],
            )
        };
        (of("taken"), of("waiting"))
    }

    /// The refusal of a call that waits a second for a place.
    async fn refused(&self, key: &str) -> String {
        refusal(&self.metered.rest(key, "brief", &json!({}), &[]).await)
    }

    async fn spin(&self, key: &str, input: Value) -> Answer {
        let request = self
            .metered
            .service
            .bare(Method::POST, SPIN)
            .bearer_auth(key);
        Service::send(request.json(&input)).await
    }

    /// A call of the plugin that does nothing.
    async fn is_served(&self, key: &str) -> bool {
        self.spin(key, json!({ "milliseconds": 0 })).await.status == 200
    }

    /// Calls that never end, and what comes of them.
    async fn spin_on(&self, key: &str, calls: usize) -> Vec<(u16, String)> {
        let mut told = Vec::new();
        for _ in 0..calls {
            told.push(self.spin(key, json!({})).await.refusal());
        }
        told
    }

    /// How calls of a plugin ended that were not served.
    async fn outcomes(&self, plugin: &str) -> Value {
        let mut ended = scrape(self.metered.service.data.path()).await.counts(
            CALLS,
            &[("plugin", plugin)],
            "outcome",
        );
        for ordinary in ["ok", "abandoned"] {
            ended.remove(ordinary);
        }
        json!(ended)
    }
}

/// The message of a 503, which says when to come again.
fn refusal(answer: &Answer) -> String {
    assert_eq!(answer.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
    assert_eq!(
        answer.header("retry-after"),
        answer.json()["data"]["retryAfter"].to_string()
    );
    let message = answer.json()["error"]["message"]
        .as_str()
        .expect("a message")
        .to_owned();
    format!("{message} {}", answer.header("retry-after"))
}

const OWN_SHARE: &str = "Too many of your calls are running; try again shortly 1";
const TAKEN: &str = "The operation is at capacity; try again shortly 1";

#[tokio::test]
async fn a_caller_has_its_share_of_the_places_and_a_quarter_is_for_those_who_hold_none() {
    let mut house = House::start("").await;
    let keys = join_all((0..6).map(|_| house.key())).await;
    let [many, more, one, another, late, other] = keys.try_into().expect("six");
    house.hold(&many, 5, HELD_MS);
    house.until(3, 2).await;
    assert_eq!(house.refused(&many).await, OWN_SHARE);
    assert_eq!(
        house
            .metered
            .rest(&other, "plain", &json!({}), &[])
            .await
            .status,
        200,
        "others are served"
    );
    house.hold(&more, 3, HELD_MS);
    house.until(6, 2).await;
    house.hold(&one, 1, HELD_MS);
    house.until(7, 2).await;
    assert_eq!(
        house.refused(&one).await,
        OWN_SHARE,
        "it holds one, and the last place is for who holds none"
    );
    house.hold(&another, 1, HELD_MS);
    house.until(8, 2).await;
    assert_eq!(house.refused(&late).await, TAKEN);
    house.hold(&late, 1, HELD_MS);
    house.until(8, 3).await;
    // Those that have places or wait for one, and go away, leave nothing.
    house.held.shutdown().await;
    house.until(0, 0).await;
    assert_eq!(
        house
            .metered
            .rest(&late, "plain", &json!({}), &[])
            .await
            .status,
        200
    );
    assert_eq!(
        house.outcomes("metered").await,
        json!({ "busy": 1.0, "own_share": 2.0 })
    );
}

#[tokio::test]
async fn keys_of_an_account_share_its_places_and_pay_nothing_for_none() {
    let mut house = House::start("").await;
    let (account, [first, second]) = house.account().await;
    house.hold(&first, 2, 4000);
    house.hold(&second, 1, 4000);
    house.until(3, 0).await;
    assert_eq!(house.refused(&second).await, OWN_SHARE);
    while let Some(answer) = house.held.join_next().await {
        assert_eq!(answer.expect("no panic").status, 200);
    }
    let path = format!("/admin/v1/accounts/{account}");
    let shown = operator(&house.metered.service, Method::GET, &path, &Value::Null)
        .await
        .json();
    let credits = &shown["data"]["credits"];
    assert_eq!(
        (&credits["spent"], &credits["reserved"]),
        (&json!(3), &json!(0))
    );
}

#[tokio::test]
async fn a_caller_has_so_many_calls_that_wait_and_the_next_is_told_at_once() {
    let mut house = House::start("[shares]\nwaiting = 2\n").await;
    let key = house.key().await;
    house.hold(&key, 5, HELD_MS);
    house.until(3, 2).await;
    let told = refusal(&house.metered.rest(&key, "plain", &json!({}), &[]).await);
    assert_eq!(
        told,
        "Too many of your calls are waiting; try again shortly 1"
    );
    let other = house.key().await;
    assert_eq!(
        house
            .metered
            .rest(&other, "plain", &json!({}), &[])
            .await
            .status,
        200
    );
    house.held.shutdown().await;
    house.until(0, 0).await;
    assert_eq!(
        house
            .metered
            .rest(&key, "plain", &json!({}), &[])
            .await
            .status,
        200
    );
}

/// What a burst needed is not held for the next one.
#[tokio::test]
async fn warm_instances_that_nobody_needs_are_dropped() {
    let manifest = Some(workspace().join("tests/programs/shares.toml"));
    let arguments = vec!["--log".to_owned(), "switchbay=debug".to_owned()];
    let service = Service::start(Options {
        manifest,
        arguments,
        ..Options::default()
    })
    .await;
    let input = json!({ "wait_ms": 1000 });
    let call = || service.post("/api/v1/test/plain", &input);
    assert!(
        join_all([call(), call(), call()])
            .await
            .iter()
            .all(|answer| answer.status == 200)
    );
    let living = async || {
        scrape(service.data.path())
            .await
            .counts("switchbay_plugin_instances", &[], "plugin")
    };
    assert_eq!(living().await["metered"], 3.0);
    let dropped = |line: &Value| line["message"] == "idle warm instances were dropped";
    service.log_until(|lines| lines.iter().any(dropped));
    assert_eq!(living().await["metered"], 1.0, "the last one stays");
}

#[tokio::test]
async fn a_caller_whose_calls_spin_is_paused_alone_and_longer_each_time() {
    let house = House::start("").await;
    let (_, [first, second]) = house.account().await;
    let stranger = house.key().await;
    let spent = (504, "UPSTREAM_TIMEOUT".to_owned());
    assert_eq!(house.spin_on(&first, 5).await, vec![spent; 5]);
    let paused = async |key: &str| {
        let told = refusal(&house.spin(key, json!({ "milliseconds": 0 })).await);
        let (message, seconds) = told.rsplit_once(' ').expect("a number of seconds");
        assert_eq!(
            message,
            "The operation is paused for you: your last calls used up their processor time"
        );
        seconds.parse::<u64>().expect("a number")
    };
    assert!(
        (1..=10).contains(&paused(&first).await),
        "the key is paused"
    );
    assert!(
        (1..=10).contains(&paused(&second).await),
        "and so is the other one of its account"
    );
    assert!(house.is_served(&stranger).await, "nobody else is");
    let metrics = scrape(house.metered.service.data.path()).await;
    assert_eq!(
        metrics.value("switchbay_plugin_callers_paused", &[("plugin", "spin")]),
        1.0
    );
    let cpu_s = metrics.value("switchbay_plugin_cpu_seconds_total", &[("plugin", "spin")]);
    assert!(
        (0.5..5.0).contains(&cpu_s),
        "killed calls are paid for: {cpu_s}"
    );
    let line = |line: &Value| {
        line["message"] == "a caller is paused: its calls used up their processor time"
    };
    let lines = house
        .metered
        .service
        .log_until(|lines| lines.iter().any(line));
    let told = lines.iter().find(|told| line(told)).expect("a line");
    assert_eq!(
        (&told["plugin"], &told["seconds"]),
        (&json!("spin"), &json!(10))
    );
    assert!(
        told["tenant"]
            .as_str()
            .is_some_and(|tenant| tenant.starts_with("account:")),
        "{told}"
    );
    in_time("the pause ends", async {
        while !house.is_served(&first).await {}
    })
    .await;
    house.spin_on(&second, 5).await;
    assert!(
        (11..=20).contains(&paused(&first).await),
        "the next pause is longer"
    );
    assert_eq!(house.outcomes("spin").await["cpu_spent"], 10.0);
}

#[tokio::test]
async fn a_plugin_that_spins_for_everybody_is_paused_for_everybody() {
    let house = House::start("").await;
    let keys = join_all((0..4).map(|_| house.key())).await;
    for (key, calls) in keys.iter().zip([2, 2, 1]) {
        house.spin_on(key, calls).await;
    }
    let told = refusal(&house.spin(&keys[3], json!({})).await);
    assert!(
        told.starts_with(
            "The operation is paused: calls of several callers used up their processor time "
        ),
        "{told}"
    );
    assert_eq!(
        house.outcomes("spin").await,
        json!({ "cpu_spent": 5.0, "paused": 1.0 })
    );
    assert_eq!(
        house
            .metered
            .rest(&keys[3], "plain", &json!({}), &[])
            .await
            .status,
        200,
        "its neighbour serves"
    );
}

#[tokio::test]
async fn a_caller_that_used_up_its_processor_time_waits_and_pays_nothing() {
    let house = House::start("[shares]\ncpu_seconds = 1\n").await;
    let (account, [first, second]) = house.account().await;
    let mut served = 0;
    let refused = loop {
        let answer = house.spin(&first, json!({ "milliseconds": 80 })).await;
        match answer.status {
            200 => served += 1,
            _ => break answer,
        }
        assert!(served < 200, "a second is used up at last");
    };
    for answer in [refused, house.spin(&second, json!({})).await] {
        assert_eq!(answer.refusal(), (429, "RATE_LIMITED".to_owned()));
        let told = "Your processor time per minute for this operation and those that share its tag is used up";
        assert_eq!(answer.json()["error"]["message"], told);
        let wait = answer.json()["data"]["retryAfter"]
            .as_u64()
            .expect("a wait");
        assert!(
            (1..=60).contains(&wait) && answer.header("retry-after") == wait.to_string(),
            "{answer:?}"
        );
    }
    let stranger = house.key().await;
    assert!(house.is_served(&stranger).await, "nobody else waits");
    assert_eq!(
        house
            .metered
            .rest(&first, "plain", &json!({}), &[])
            .await
            .status,
        200,
        "nor for another plugin"
    );
    let path = format!("/admin/v1/accounts/{account}");
    let shown = operator(&house.metered.service, Method::GET, &path, &Value::Null)
        .await
        .json();
    assert_eq!(shown["data"]["credits"]["spent"], json!(served + 1));
    assert_eq!(house.outcomes("spin").await["over_budget"], 2.0);
}

/// Each of these calls ends when it has used its half second of a processor.
#[tokio::test]
async fn a_call_that_computes_has_a_processor_beside_eight_of_another_caller() {
    build();
    let folder = TempDir::new().expect("a temporary folder");
    std::fs::write(folder.path().join("spin.wasm"), built("spin")).expect("it is written");
    let entry = "[[plugin]]\nname = \"spin\"\nsource = \"spin.wasm\"\nlimits = { memory = \"16MiB\", cpu_ms = 500 }";
    let manifest = folder.path().join("plugin-manifest.toml");
    std::fs::write(&manifest, entry).expect("the manifest is written");
    let service = Service::start(Options {
        manifest: Some(manifest),
        ..Options::default()
    })
    .await;
    let [one, other] = [(); 2].map(|()| service.issue(&["--all-scopes"]));
    let spin = |key: &str| {
        Service::send(
            service
                .bare(Method::POST, SPIN)
                .bearer_auth(key)
                .json(&json!({})),
        )
    };
    let before = service.processor_time();
    let alone = async {
        let computing = async {
            while service.processor_time() < before + Duration::from_millis(200) {
                tokio::task::yield_now().await;
            }
        };
        in_time("they compute", computing).await;
        let began = service.processor_time();
        assert_eq!(spin(&other).await.status, 504);
        service.processor_time() - began
    };
    let (all, alone) = tokio::join!(join_all((0..8).map(|_| spin(&one))), alone);
    assert!(all.iter().all(|answer| answer.status == 504));
    let processors =
        std::thread::available_parallelism().map_or(1, |processors| processors.get() as u32);
    // Shared alike with each of the eight, there would be half a second for each of nine.
    let most = Duration::from_millis(500) * (processors + 2);
    assert!(alone < most, "the server used {alone:?} in its time");
}
