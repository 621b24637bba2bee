//! A process that is killed while it reserves and settles: whatever a client was told holds, whatever it was not told is
//! there once or not at all, and the balances are what the entries add up to.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::support::{Metered, Post, Service, operator, outcome};

mod every_write;

const CALLERS: usize = 24;
const ENTRIES_A_PAGE: usize = 1000;

/// How often the process is killed, so often or as `SWITCHBAY_ROUNDS` asks for.
fn rounds(usual: usize) -> usize {
    let asked = std::env::var("SWITCHBAY_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok());
    asked.unwrap_or(usual)
}

/// What the clients know.
#[derive(Default)]
struct Known {
    /// Request ids of answers, with the resolution and credits that their status means.
    told: Mutex<HashMap<String, (&'static str, u64)>>,
    /// Names of calls without an answer, and of one with each.
    unanswered: Mutex<Vec<String>>,
    answered: Mutex<Vec<String>>,
    count: AtomicUsize,
}

#[tokio::test]
async fn no_acknowledged_debit_is_lost_or_doubled_when_the_process_is_killed() {
    let mut metered = Metered::start("", None).await;
    let entitlement = json!({ "plan": "paid", "creditsPerMonth": 1_000_000_000 });
    let account = metered
        .account(json!({ "concurrency": 1000, "entitlement": entitlement }))
        .await;
    let key = metered.key(json!({ "account": account })).await;
    let known = Known::default();
    let mut expired = 0;
    let rounds = rounds(10);
    for round in 0..rounds {
        let until = known.count.load(Ordering::Relaxed) + 30 + round * 17 % 100;
        let callers = (0..CALLERS).map(|caller| call(&metered, &key, &known, round, caller, until));
        futures::future::join_all(callers).await;
        metered = Metered::start("", Some(metered.into_data())).await;
        let entries = check(&metered, &account, &known).await;
        let of_round = entries
            .values()
            .filter(|(resolution, _)| resolution == "expired")
            .count()
            - expired;
        expired += of_round;
        check_names(&metered, &key, &known, of_round).await;
    }
    let told = known.told.lock().expect("no caller panicked").len();
    assert!(told >= 30 * rounds, "{told}");
}

/// Calls until there is no answer; the caller whose answer is the last one that is wanted kills the process.
async fn call(
    metered: &Metered,
    key: &str,
    known: &Known,
    round: usize,
    caller: usize,
    until: usize,
) {
    for number in 0.. {
        let name = format!("{round}-{caller}-{number}");
        let (operation, how) =
            [("plain", "reply"), ("costly", "reply"), ("costly", "fail")][(caller + number) % 3];
        let Ok(response) = request(metered, key, operation, how, &name).send().await else {
            known
                .unanswered
                .lock()
                .expect("no caller panicked")
                .push(name);
            return;
        };
        // The status line is here, so the debit is acknowledged, whatever becomes of the body.
        let meaning = match (response.status().as_u16(), operation) {
            (200, "plain") => ("settled", 1),
            (200, _) => ("settled", 4),
            (418, _) => ("released", 4),
            (status, _) => panic!("{status}"),
        };
        let id = response.headers()["x-request-id"]
            .to_str()
            .expect("text")
            .to_owned();
        known
            .told
            .lock()
            .expect("no caller panicked")
            .insert(id, meaning);
        if number == 0 {
            known
                .answered
                .lock()
                .expect("no caller panicked")
                .push(name);
        }
        if known.count.fetch_add(1, Ordering::Relaxed) + 1 == until {
            metered.service.kill();
        }
    }
}

fn request(metered: &Metered, key: &str, operation: &str, how: &str, name: &str) -> RequestBuilder {
    let request = metered
        .service
        .bare(Method::POST, &format!("/api/v1/test/{operation}"))
        .bearer_auth(key);
    request
        .header("idempotency-key", name)
        .json(&json!({ "how": how }))
}

/// Compares the entries with what the clients know, and the balances with the entries; gives back the entries by request.
async fn check(metered: &Metered, account: &str, known: &Known) -> HashMap<String, (String, u64)> {
    let get = async |path: &str| {
        let answer = operator(&metered.service, Method::GET, path, &Value::Null).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["data"].clone()
    };
    let audit = get("/admin/v1/audit").await;
    assert_eq!(
        (&audit["disagreements"], &audit["pending"]),
        (&json!(0), &json!(0)),
        "{audit}"
    );
    let mut entries = HashMap::new();
    let mut path = format!("/admin/v1/accounts/{account}/entries");
    loop {
        let page = get(&path).await;
        let rows = page["entries"].as_array().expect("entries");
        for entry in rows {
            let text = |name: &str| {
                entry[name]
                    .as_str()
                    .unwrap_or_else(|| panic!("{entry}"))
                    .to_owned()
            };
            let credits = entry["credits"].as_u64().expect("credits");
            let other = entries.insert(text("requestId"), (text("resolution"), credits));
            assert_eq!(other, None, "two entries of one request: {entry}");
        }
        match page["next"].as_str() {
            Some(next) if rows.len() == ENTRIES_A_PAGE => {
                path = format!("/admin/v1/accounts/{account}/entries?after={next}");
            }
            _ => break,
        }
    }
    for (id, (resolution, credits)) in known.told.lock().expect("no caller panicked").iter() {
        assert_eq!(
            entries.get(id),
            Some(&((*resolution).to_owned(), *credits)),
            "{id}"
        );
    }
    let settled: u64 = entries
        .values()
        .filter(|(end, _)| end == "settled")
        .map(|(_, credits)| credits)
        .sum();
    let shown = get(&format!("/admin/v1/accounts/{account}")).await;
    assert_eq!(
        shown["credits"]["spent"], settled,
        "unless the month turned under the test"
    );
    assert_eq!(shown["credits"]["reserved"], 0);
    entries
}

/// Every name of an answered call is burnt, and of the unanswered ones exactly those whose reservation lapsed say so.
async fn check_names(metered: &Metered, key: &str, known: &Known, expired: usize) {
    let take = |names: &Mutex<Vec<String>>| {
        std::mem::take(&mut *names.lock().expect("no caller panicked"))
    };
    for name in take(&known.answered) {
        let again = Service::send(request(metered, key, "plain", "reply", &name)).await;
        assert_eq!(
            again.refusal(),
            (409, "USAGE_RESERVATION_CONFLICT".to_owned()),
            "{name}"
        );
    }
    let mut lapsed = 0;
    for name in take(&known.unanswered) {
        let again = Service::send(request(metered, key, "plain", "fail", &name)).await;
        match again.status {
            // Never admitted; used up by now, and it cost nothing.
            418 => {}
            _ if again.refusal().1 == "USAGE_RESERVATION_EXPIRED" => lapsed += 1,
            _ => assert_eq!(
                again.refusal(),
                (409, "USAGE_RESERVATION_CONFLICT".to_owned()),
                "{name}"
            ),
        }
    }
    assert_eq!(lapsed, expired);
}

#[tokio::test]
async fn a_call_that_was_running_is_given_back_and_its_name_has_expired() {
    let metered = Metered::start("", None).await;
    let entitlement = json!({ "plan": "paid", "creditsPerMonth": 9 });
    let account = metered.account(json!({ "entitlement": entitlement })).await;
    let key = metered.key(json!({ "account": account })).await;
    let path = format!("/admin/v1/accounts/{account}");
    let running = request(&metered, &key, "costly", "reply", "cut")
        .json(&json!({ "wait_ms": 60_000 }))
        .send();
    let killed = async {
        let reserved = async || {
            operator(&metered.service, Method::GET, &path, &Value::Null)
                .await
                .json()["data"]["credits"]["reserved"]
                .clone()
        };
        while reserved().await != 4 {}
        metered.service.kill();
    };
    let (answer, ()) = futures::join!(running, killed);
    assert!(answer.is_err());
    let metered = Metered::start("", Some(metered.into_data())).await;
    let shown = operator(&metered.service, Method::GET, &path, &Value::Null)
        .await
        .json();
    let credits = &shown["data"]["credits"];
    assert_eq!(
        (&credits["spent"], &credits["reserved"]),
        (&json!(0), &json!(0))
    );
    let rest = Service::send(request(&metered, &key, "plain", "reply", "cut")).await;
    assert_eq!(
        rest.refusal(),
        (409, "USAGE_RESERVATION_EXPIRED".to_owned())
    );
    let tool = Post::call("call_plain", &json!({}))
        .bearer(&key)
        .header("idempotency-key", "cut");
    let tool = tool.send(&metered.service).await;
    assert_eq!(outcome(&tool), "200 isError USAGE_RESERVATION_EXPIRED #7");
    for answer in [rest, tool] {
        assert_eq!(
            (
                answer.header("x-apikey-credit-cost"),
                answer.header("x-apikey-credit-limit")
            ),
            ("0", "9")
        );
    }
}
