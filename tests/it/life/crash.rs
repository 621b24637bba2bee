//! `kill -9` at any moment of a change: the restarted server serves a complete revision, the last committed one.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use reqwest::Method;
use serde_json::{Value, json};

use super::{House, probe, serving};
use crate::support::Service;

/// Rounds; `SWITCHBAY_ROUNDS` asks for more.
fn rounds() -> usize {
    std::env::var("SWITCHBAY_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(10)
}

fn seed() -> u64 {
    std::env::var("SWITCHBAY_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| rand::rng().random())
}

const ATOMS: [&str; 3] = ["config", "logging", "http:GET https://api.example.com/"];

/// A change that is under way when the server is killed.
enum Change {
    Stage(Vec<u8>),
    Approve(u64),
    Activate(u64),
    Rollback,
}

/// Makes it, and gives back the revision's major version that serves by it, where one does.
async fn make(service: &Service, change: Change) -> Option<u32> {
    let act = async |path: &str, body: Value| {
        let answer = service
            .admin(
                Method::POST,
                &format!("/admin/v1/plugins/probe/{path}"),
                Some(&body),
            )
            .await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()["data"].clone()
    };
    let served = match change {
        Change::Stage(component) => super::stage(service, component, "?activate=true").await,
        Change::Approve(number) => {
            act(
                &format!("revisions/{number}/approve"),
                json!({ "activate": true }),
            )
            .await
        }
        Change::Activate(number) => act(&format!("revisions/{number}/activate"), json!({})).await,
        Change::Rollback => act("rollback", json!({})).await,
    };
    (served["state"] == "active").then(|| major(&served))
}

fn major(told: &Value) -> u32 {
    let version = told["version"].as_str().expect("a version");
    version
        .split('.')
        .next()
        .and_then(|major| major.parse().ok())
        .expect("a number")
}

/// The numbers of the revisions in a state, oldest first.
async fn numbers(service: &Service, state: &str) -> Vec<u64> {
    super::states(service)
        .await
        .into_iter()
        .filter(|one| one.1 == state)
        .map(|one| one.0)
        .collect()
}

/// Everything that a restart must find whole.
async fn check(service: &Service) -> u32 {
    let serves = serving(service).await;
    let told = service.told("/admin/v1/plugins/probe").await;
    assert_eq!(
        (&told["state"], &told["revision"]),
        (&json!("active"), &told["active"]),
        "{told}"
    );
    let of = |state: &str| -> Vec<&Value> {
        told["revisions"]
            .as_array()
            .expect("revisions")
            .iter()
            .filter(|one| one["state"] == state)
            .collect()
    };
    let active = of("active");
    assert_eq!(active.len(), 1, "{told}");
    // The flip and its approvals are one write: nothing serves that wants more than is granted.
    assert_eq!(active[0]["missing"], json!([]), "{told}");
    assert_eq!(active[0]["version"], format!("{serves}.0.0"));
    for half in [
        "fetched",
        "verified",
        "compiled",
        "linked",
        "described",
        "compared",
        "draining",
    ] {
        assert!(
            of(half).is_empty(),
            "a restart left a revision {half}: {told}"
        );
    }
    serves
}

/// A change to the plugin, and the power of two of the microseconds that it may take; none where it cannot be made.
async fn choose(random: &mut StdRng, service: &Service, version: u32) -> Option<(Change, u32)> {
    let wants = &ATOMS[random.random_range(0..ATOMS.len())..];
    // From at once to long after it is done, the early moments as likely as the late ones.
    Some(match random.random_range(0..4) {
        0 => {
            let wants = if random.random() { wants } else { &[] };
            (Change::Stage(probe(version, wants)), 22)
        }
        1 => {
            let staged = super::stage(service, probe(version, wants), "").await;
            let number = staged["revision"].as_u64().expect("a number");
            let is_waiting = staged["state"] == "awaiting-approval";
            if is_waiting {
                (Change::Approve(number), 16)
            } else {
                (Change::Activate(number), 16)
            }
        }
        2 => {
            let number = *numbers(service, "retained").await.last()?;
            (Change::Activate(number), 16)
        }
        _ => {
            let oldest = numbers(service, "retained").await.first().copied();
            let is_older = oldest < numbers(service, "active").await.first().copied();
            return is_older.then_some((Change::Rollback, 16));
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_moment_leaves_the_last_committed_revision() {
    let seed = seed();
    println!("SWITCHBAY_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let house = House::new("");
    let mut service = house.serve().await;
    // What a rollback and an activation choose from.
    for version in 2..=4 {
        assert_eq!(
            super::stage(&service, probe(version, &[]), "?activate=true").await["state"],
            "active"
        );
    }
    let mut serves = serving(&service).await;
    let mut version = serves;
    let (mut acknowledged, mut cut, mut committed) = (0, 0, 0);
    for round in 0..rounds() {
        version += 1;
        let Some((change, latest)) = choose(&mut random, &service, version).await else {
            continue;
        };
        let moment = Duration::from_micros(1 << random.random_range(8..latest));
        let outcome = tokio::time::timeout(moment, make(&service, change)).await;
        service.kill();
        drop(service);
        service = house.serve().await;
        let now = check(&service).await;
        match outcome {
            Ok(Some(expected)) => {
                acknowledged += 1;
                assert_eq!(
                    now, expected,
                    "round {round} of seed {seed}: an acknowledged change is lost"
                );
            }
            Ok(None) => assert_eq!(
                now, serves,
                "round {round} of seed {seed}: what waits serves"
            ),
            Err(_) => {
                cut += 1;
                committed += usize::from(now != serves);
            }
        }
        serves = now;
    }
    println!(
        "{} rounds: {acknowledged} acknowledged, {cut} cut, of which {committed} had been committed",
        rounds()
    );
}
