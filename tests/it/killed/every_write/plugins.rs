//! What plugins keep (put, put together, deleted, expired, counted), and what the operator does to one, with its history.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Mutex;

use reqwest::Method;
use serde_json::{Value, json};

use super::Life;
use crate::metrics::scrape;
use crate::support::{Metered, in_time};

const RECORDS: &str = "/api/v1/test/keeps/records";
const DESCRIBES: &str = "/admin/v1/plugins/describes";
const CALLERS: usize = 6;
/// Events that are kept of one plugin.
const HISTORY_MAX: usize = 1000;

/// What may be under a key: what was told last, or what was asked for after that.
#[derive(Default)]
struct KnownRecord {
    told: Option<String>,
    asked: Option<Option<String>>,
}

/// What is known of records and of the plugin `describes`, over all lives.
#[derive(Default)]
pub(super) struct KnownPlugins {
    /// Keys that are written together stand under the first of them.
    records: Mutex<HashMap<String, KnownRecord>>,
    counts_told: Mutex<usize>,
    counts_asked: Mutex<usize>,
    /// Reasons of what was done to the plugin and told, and of what was asked for.
    acts_told: Mutex<Vec<String>>,
    /// How many of those were found in the history, which forgets the oldest.
    acts_found: Mutex<usize>,
    acts_asked: Mutex<HashSet<String>>,
    writes: Mutex<usize>,
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().expect("no caller panicked")
}

impl KnownPlugins {
    pub(super) async fn work(&mut self, life: &Life<'_>) {
        let known = &*self;
        let callers = (0..CALLERS).map(|caller| known.call(life, caller));
        tokio::join!(futures::future::join_all(callers), known.operate(life));
    }

    /// One caller writes its own keys, in turn by every kind of write.
    async fn call(&self, life: &Life<'_>, caller: usize) {
        for number in 0.. {
            let value = format!("{}-{number}", life.round);
            let key = format!("{caller}-{}", number / 5 % 3);
            let (kind, becomes) = match number % 5 {
                0 => (
                    json!({ "act": "put", "key": key, "value": value }),
                    Some(value),
                ),
                1 => {
                    let both = [&key, &format!("{key}-pair")]
                        .map(|key| json!({ "key": key, "value": value }));
                    (json!({ "act": "write", "writes": both }), Some(value))
                }
                2 => {
                    let both = [&key, &format!("{key}-pair")].map(|key| json!({ "key": key }));
                    (json!({ "act": "write", "writes": both }), None)
                }
                3 => {
                    let put =
                        json!({ "act": "put", "key": key, "value": value, "expires_in_ms": 1 });
                    (put, None)
                }
                _ => (json!({ "act": "delete", "key": key }), None),
            };
            *lock(&self.counts_asked) += 1;
            let count = json!({ "act": "count", "key": "count" });
            if self.write(life, &count).await.is_none() {
                return;
            }
            *lock(&self.counts_told) += 1;
            // Whatever it was before, what is asked for last is what there may be.
            lock(&self.records).entry(key.clone()).or_default().asked = Some(becomes.clone());
            if self.write(life, &kind).await.is_none() {
                return;
            }
            let told = KnownRecord {
                told: becomes,
                asked: None,
            };
            lock(&self.records).insert(key, told);
            *lock(&self.writes) += 2;
        }
    }

    async fn write(&self, life: &Life<'_>, input: &Value) -> Option<()> {
        let request = life.metered.service.request(Method::POST, RECORDS);
        let done = life.done(request.json(input)).await?;
        assert_eq!(done["outcome"], "done", "{input}: {done}");
        Some(())
    }

    /// Switches the plugin off and on.
    async fn operate(&self, life: &Life<'_>) {
        for number in 0.. {
            let act = ["disable", "enable"][number % 2];
            let why = format!("{act} {}-{number}", life.round);
            lock(&self.acts_asked).insert(why.clone());
            let body = json!({ "why": why });
            let request = life.operator(Method::POST, &format!("{DESCRIBES}/{act}"), &body);
            match life.ask(request).await {
                // A life before may have ended between the two.
                Some((200 | 409, _)) if number < 2 && life.round > 0 => {}
                Some((200, _)) => {}
                Some((status, body)) => panic!("{status}: {body}"),
                None => return,
            }
            lock(&self.acts_told).push(why);
        }
    }

    pub(super) async fn check(&mut self, metered: &Metered) {
        let listed = self.check_records(metered).await;
        // What has expired is forgotten soon, and the sums are those of what is there.
        let sums = async {
            loop {
                let metrics = scrape(metered.service.data.path()).await;
                let value = |name| metrics.value(name, &[("plugin", "keeps")]);
                let sums = (
                    value("switchbay_plugin_state_bytes"),
                    value("switchbay_plugin_state_records"),
                );
                if sums == listed {
                    return;
                }
            }
        };
        in_time("the sums are those of the records", sums).await;
        self.check_history(metered).await;
    }

    /// Gives back what the records count.
    async fn check_records(&self, metered: &Metered) -> (f64, f64) {
        let ask = async |input: Value| {
            let answer = metered.service.post(RECORDS, &input).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            answer.json()["data"].clone()
        };
        let get = async |key: &str| {
            let found = ask(json!({ "act": "get", "key": key })).await;
            (found["outcome"] == "found").then(|| found["told"].as_str().expect("text").to_owned())
        };
        let keys = Vec::from_iter(lock(&self.records).keys().cloned());
        for key in keys {
            let found = get(&key).await;
            let number = found.as_ref().and_then(|value| value.rsplit_once('-'));
            let number = number.map(|(_, number)| number.parse::<usize>().expect("a number"));
            if number.is_some_and(|number| number % 5 == 1) {
                // Written together, and so there together.
                assert_eq!(get(&format!("{key}-pair")).await, found, "{key}");
            }
            let mut records = lock(&self.records);
            let known = records.get_mut(&key).expect("it is known");
            let is_asked = known.asked.as_ref() == Some(&found);
            assert!(
                is_asked || known.told == found,
                "{key}: {:?} was told, {:?} asked for, {found:?} is there",
                known.told,
                known.asked
            );
            *known = KnownRecord {
                told: found,
                asked: None,
            };
        }
        let count = get("count").await;
        let count = count.map_or(0, |count| count.parse().expect("a number"));
        let (told, asked) = (*lock(&self.counts_told), *lock(&self.counts_asked));
        assert!((told..=asked).contains(&count), "{told} {count} {asked}");
        // What was kept without an answer is known by now.
        *lock(&self.counts_asked) = count;
        *lock(&self.counts_told) = count;
        let listed = ask(json!({ "act": "list", "key": "" })).await;
        let listed = listed["told"].as_str().expect("text").to_owned();
        let sizes: BTreeMap<&str, usize> = listed
            .split_whitespace()
            .filter_map(|one| one.rsplit_once('='))
            .map(|(key, bytes)| (key, bytes.parse().expect("a number")))
            .collect();
        let bytes: usize = sizes
            .iter()
            .map(|(key, bytes)| 64 + key.len() + bytes)
            .sum();
        let as_f64 = |number: usize| f64::from(u32::try_from(number).expect("it fits"));
        (as_f64(bytes), as_f64(sizes.len()))
    }

    /// Each act that was told is in the history once, none twice, and the numbers have no gap.
    async fn check_history(&self, metered: &Metered) {
        let history = metered.service.told("/admin/v1/history").await;
        let events = history["events"].as_array().expect("events");
        let ids_of = |is_of: fn(&&Value) -> bool| {
            let events = events.iter().filter(is_of);
            let ids = events.map(|event| event["id"].as_u64().expect("a number"));
            Vec::from_iter(ids)
        };
        let (ids, own) = (
            ids_of(|_| true),
            ids_of(|event| event["plugin"] == "describes"),
        );
        // What is older was forgotten, because the plugin's history is full.
        let first = if own.len() < HISTORY_MAX { 1 } else { own[0] };
        let ids = Vec::from_iter(ids.into_iter().filter(|id| *id >= first));
        let last = ids.last().copied().unwrap_or(0);
        assert_eq!(
            ids,
            Vec::from_iter(first..=last),
            "a number is missing or doubled"
        );
        let mut found: HashMap<&str, usize> = HashMap::new();
        let of_plugin = events.iter().filter(|event| event["plugin"] == "describes");
        for why in of_plugin.filter_map(|event| event["why"].as_str()) {
            *found.entry(why).or_default() += 1;
        }
        let asked = lock(&self.acts_asked).clone();
        for (why, times) in found.iter().filter(|(why, _)| asked.contains(**why)) {
            assert_eq!(*times, 1, "{why} is told twice");
        }
        let told = lock(&self.acts_told).clone();
        let before = std::mem::replace(&mut *lock(&self.acts_found), told.len());
        for why in &told[before..] {
            // The first two of a life may have found what they asked for.
            let may_be_refused =
                !why.contains(" 0-") && (why.ends_with("-0") || why.ends_with("-1"));
            assert!(
                may_be_refused || found.contains_key(&**why),
                "{why} is lost"
            );
        }
        let shown = metered.service.told(DESCRIBES).await;
        let last = events.iter().filter(|event| event["plugin"] == "describes");
        let last = last
            .filter_map(|event| event["why"].as_str())
            .rfind(|why| asked.contains(*why));
        if let Some(why) = last {
            let is_disabled = why.starts_with("disable");
            assert_eq!(shown["state"] == "disabled", is_disabled, "{shown}");
        }
    }
}

impl fmt::Display for KnownPlugins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} writes of records and {} acts on a plugin",
            lock(&self.writes),
            lock(&self.acts_told).len()
        )
    }
}
