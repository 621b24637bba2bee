//! Keys (issued, rotated, revoked), accounts with their entitlements, and counts of calls.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Mutex;

use reqwest::Method;
use serde_json::{Value, json};

use super::Life;
use crate::support::{Metered, Service};

const KEYS: &str = "/admin/v1/keys";
const ACCOUNTS: &str = "/admin/v1/accounts";
const CALLERS: usize = 2;

/// What is known of keys, accounts and counts, over all lives.
#[derive(Default)]
pub(super) struct KnownCustomers {
    /// Labels that were asked for, and ids with the keys themselves that were told.
    labels: Mutex<HashSet<String>>,
    keys: Mutex<HashMap<String, String>>,
    /// Ids of keys whose revocation was told, and of those for which it was asked.
    revoked: Mutex<HashSet<String>>,
    revoking: Mutex<HashSet<String>>,
    /// Accounts, with the credits a month that were told last and those that were asked for.
    accounts: Mutex<HashMap<String, (u64, u64)>>,
    entitlements: Mutex<usize>,
    calls_asked: Mutex<u64>,
    calls_told: Mutex<u64>,
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().expect("no caller panicked")
}

fn text(of: &Value, name: &str) -> String {
    of[name]
        .as_str()
        .unwrap_or_else(|| panic!("{of}"))
        .to_owned()
}

/// How often a key called, as the operator is told: what is told of is written.
fn calls(usage: &Value) -> u64 {
    let rows = usage["rows"].as_array().expect("rows").iter();
    let counted = rows.filter(|row| row["operation"] == "metered/unmetered");
    counted
        .map(|row| row["calls"].as_u64().expect("a number"))
        .sum()
}

impl KnownCustomers {
    pub(super) async fn work(&mut self, life: &Life<'_>, counted: &str) {
        let known = &*self;
        let keys = (0..CALLERS).map(|caller| known.change_keys(life, caller));
        let accounts = (0..CALLERS).map(|caller| known.entitle(life, caller));
        tokio::join!(
            futures::future::join_all(keys),
            futures::future::join_all(accounts),
            known.count(life, counted),
        );
    }

    async fn change_keys(&self, life: &Life<'_>, caller: usize) -> Option<()> {
        for number in 0.. {
            let label = format!("{}-{caller}-{number}", life.round);
            lock(&self.labels).insert(label.clone());
            let body = json!({ "label": label, "scopes": ["*"] });
            let issued = life.done(life.operator(Method::POST, KEYS, &body)).await?;
            let id = text(&issued, "id");
            lock(&self.keys).insert(id.clone(), text(&issued, "key"));
            if number % 3 == 0 {
                continue;
            }
            lock(&self.revoking).insert(id.clone());
            let (method, path) = match number % 3 {
                1 => (Method::DELETE, format!("{KEYS}/{id}")),
                _ => (Method::POST, format!("{KEYS}/{id}/rotate")),
            };
            let done = life
                .done(life.operator(method, &path, &Value::Null))
                .await?;
            lock(&self.revoked).insert(id.clone());
            if text(&done, "id") != id {
                lock(&self.keys).insert(text(&done, "id"), text(&done, "key"));
            }
        }
        None
    }

    async fn entitle(&self, life: &Life<'_>, caller: usize) -> Option<()> {
        let label = format!("account {}-{caller}", life.round);
        lock(&self.labels).insert(label.clone());
        let opened = life.operator(Method::POST, ACCOUNTS, &json!({ "label": label }));
        let id = text(&life.done(opened).await?, "id");
        lock(&self.accounts).insert(id.clone(), (0, 0));
        for credits in 1.. {
            lock(&self.accounts).insert(id.clone(), (credits - 1, credits));
            let terms = json!({ "plan": "paid", "creditsPerMonth": credits });
            let path = format!("{ACCOUNTS}/{id}/entitlement");
            life.done(life.operator(Method::PUT, &path, &terms)).await?;
            lock(&self.accounts).insert(id.clone(), (credits, credits));
            *lock(&self.entitlements) += 1;
        }
        None
    }

    async fn count(&self, life: &Life<'_>, key: &str) -> Option<()> {
        loop {
            for _ in 0..3 {
                *lock(&self.calls_asked) += 1;
                let call = life
                    .metered
                    .service
                    .bare(Method::POST, "/api/v1/test/unmetered");
                life.done(call.bearer_auth(key).json(&json!({}))).await?;
            }
            let usage = life.operator(Method::GET, "/admin/v1/usage", &Value::Null);
            let told = calls(&life.done(usage).await?);
            *lock(&self.calls_told) = told;
        }
    }

    pub(super) async fn check(&mut self, metered: &Metered) {
        self.check_keys(metered).await;
        let accounts = metered.service.told(ACCOUNTS).await;
        let mut seen = HashSet::new();
        for account in accounts["accounts"].as_array().expect("accounts") {
            assert!(seen.insert(text(account, "id")), "{account} is doubled");
            let Some((told, asked)) = lock(&self.accounts).get(&text(account, "id")).copied()
            else {
                continue;
            };
            let credits = account["entitlement"]["creditsPerMonth"]
                .as_u64()
                .unwrap_or(0);
            assert!(
                [told, asked].contains(&credits),
                "{told} was told: {account}"
            );
        }
        let lost = lock(&self.accounts)
            .keys()
            .find(|id| !seen.contains(*id))
            .cloned();
        assert_eq!(lost, None, "an account is lost");
        let counted = calls(&metered.service.told("/admin/v1/usage").await);
        let (told, asked) = (*lock(&self.calls_told), *lock(&self.calls_asked));
        assert!(
            (told..=asked).contains(&counted),
            "{told} {counted} {asked}"
        );
    }

    async fn check_keys(&self, metered: &Metered) {
        let keys = metered.service.told(KEYS).await;
        let mut found: HashMap<String, bool> = HashMap::new();
        let mut labels: HashMap<String, usize> = HashMap::new();
        for key in keys["keys"].as_array().expect("keys") {
            found.insert(text(key, "id"), !key["revokedAt"].is_null());
            *labels.entry(text(key, "label")).or_default() += 1;
        }
        for label in lock(&self.labels).iter() {
            // A key that was rotated has the label of the one in its place.
            let keys = labels.get(label).copied().unwrap_or(0);
            assert!(keys <= 2, "{keys} keys are called {label}");
        }
        let known = Vec::from_iter(lock(&self.keys).clone());
        for (id, key) in known {
            let is_revoked = *found.get(&id).unwrap_or_else(|| panic!("key {id} is lost"));
            let (told, asked) = (
                lock(&self.revoked).contains(&id),
                lock(&self.revoking).contains(&id),
            );
            assert!(is_revoked || !told, "a revocation of {id} is lost");
            assert!(asked || !is_revoked, "nobody revoked {id}");
            let call = metered.service.bare(Method::POST, "/api/v1/test/unmetered");
            let answer = Service::send(call.bearer_auth(key).json(&json!({}))).await;
            assert_eq!(answer.status, if is_revoked { 403 } else { 200 }, "{id}");
            // What is checked once is what it is.
            lock(&self.keys).remove(&id);
            *lock(&self.calls_asked) += u64::from(!is_revoked);
        }
    }
}

impl fmt::Display for KnownCustomers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let accounts = lock(&self.accounts).len();
        write!(
            f,
            "{} keys or accounts asked for, {} keys revoked, {accounts} accounts with {} entitlements, {} calls counted",
            lock(&self.labels).len(),
            lock(&self.revoked).len(),
            lock(&self.entitlements),
            lock(&self.calls_told),
        )
    }
}
