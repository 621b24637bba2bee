//! Sixty-four callers at once: nothing is lost and nothing is made twice, whatever goes wrong on the way.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use uuid::Uuid;

use super::{again, stores};
use crate::records::api_key::KeyRecord;
use crate::records::credits::{Reservation, ReservationOutcome, ReservationRefused};
use crate::records::job::{JobName, JobProgress};
use crate::records::job_rules::{JOBS, Keep, KeepOutcome};
use crate::records::ledger::{BURNT, LedgerEntry};
use crate::records::month::Month;
use crate::records::plugin_life::PluginCommit;
use crate::records::plugin_state::{ExpectedVersion, RecordChange, RecordWrite, StateBatch};
use crate::records::rows::{Decision, Reads, Row, RowName};
use crate::records::tests::jobs::{job, name};
use crate::records::tests::ledger_model::reservation;
use crate::records::usage::{CountRow, UsageCount};
use crate::stores::Store;
use crate::stores::engine::Engine;
use crate::stores::tests::memory::{MemoryEngine, Mishaps};

const CALLERS: usize = 64;

/// Runs what each caller does, all at once, and gives back what they are told.
async fn all<T>(store: &Arc<Store>, caller: impl AsyncFn(Arc<Store>, usize) -> T) -> Vec<T> {
    let callers = (0..CALLERS).map(|number| caller(Arc::clone(store), number));
    futures::future::join_all(callers).await
}

#[tokio::test]
async fn credits_are_reserved_up_to_the_limit_and_each_is_spent_once() {
    for (store, _folder) in stores().await {
        let told = all(&store, async |store, number| {
            let account = ["a", "b"][number % 2];
            let id = Uuid::now_v7().as_u128();
            let asked = reservation(id, account, 1, 0);
            let reserved = again(async || store.reserve(asked.clone(), 20).await).await;
            if reserved.is_err() {
                return None;
            }
            let outcome = ReservationOutcome::ALL[number / 2 % 3];
            let ends = async || store.resolve(account, id, outcome, 1).await;
            assert_eq!(again(ends).await, Some(outcome));
            Some((account, outcome))
        })
        .await;
        let audit = store.audit().await.expect("readable");
        assert_eq!((audit.pending, audit.told), (0, Vec::new()));
        for account in ["a", "b"] {
            let settled = Some((account, ReservationOutcome::Settled));
            let settled = told.iter().filter(|told| **told == settled).count();
            let balance = store.balance(account, Month::of(0)).await;
            let balance = balance.expect("readable");
            assert_eq!(balance.posted, u64::try_from(settled).expect("it fits"));
            let spent = store.spent(account, "k", Month::of(0)).await;
            assert_eq!(spent.expect("readable")[0].credits, balance.posted);
        }
    }
}

#[tokio::test]
async fn one_of_those_that_share_an_identifier_is_admitted() {
    for (store, _folder) in stores().await {
        let told = all(&store, async |store, _| {
            let asked = Reservation {
                identifier: Some("name".to_owned()),
                ..reservation(Uuid::now_v7().as_u128(), "a", 1, 0)
            };
            again(async || store.reserve(asked.clone(), 1000).await).await
        })
        .await;
        let admitted = told.iter().filter(|told| told.is_ok()).count();
        assert_eq!(admitted, 1);
        let handled = Err(ReservationRefused::Handled);
        assert!(told.iter().all(|told| told.is_ok() || *told == handled));
    }
}

#[tokio::test]
async fn no_addition_by_compare_and_set_is_lost() {
    for (store, _folder) in stores().await {
        all(&store, async |store, _| {
            loop {
                let read = store.record(Arc::from("p"), "sum".to_owned(), 0).await;
                let read = read.expect("readable");
                let sum = read.as_ref().map_or(0, |record| record.value[0]);
                let expected = read.map_or(ExpectedVersion::Absent, |record| {
                    ExpectedVersion::Version(record.version)
                });
                let change = RecordChange::Put {
                    value: vec![sum + 1],
                    expires_ms: None,
                };
                let batch = StateBatch {
                    id: Uuid::now_v7(),
                    plugin: Arc::from("p"),
                    writes: vec![RecordWrite {
                        key: "sum".to_owned(),
                        expected,
                        change,
                    }],
                    bytes_max: 1000,
                    now_ms: 0,
                };
                let write = async || store.write_records(batch.clone()).await;
                if again(write).await.is_ok() {
                    return;
                }
            }
        })
        .await;
        let sum = store.record(Arc::from("p"), "sum".to_owned(), 0).await;
        let sum = sum.expect("readable").expect("it is kept").value[0];
        assert_eq!(usize::from(sum), CALLERS);
        let used = store.records_used().await.expect("readable");
        assert_eq!((used.len(), used[0].records), (1, 1));
    }
}

#[tokio::test]
async fn a_request_id_makes_one_job_and_its_items_are_kept_once() {
    for (store, _folder) in stores().await {
        let told = all(&store, async |store, _| {
            let name = name();
            let submit = async || {
                let (id, fingerprint) = ("id".to_owned(), "f".to_owned());
                store
                    .submit_job(name.clone(), id, fingerprint, job(0))
                    .await
            };
            let earlier = again(submit).await;
            earlier.map_or(name.id, |earlier| earlier.id)
        })
        .await;
        assert!(told.iter().all(|id| *id == told[0]));
        let jobs = store.jobs().await.expect("readable");
        assert_eq!(jobs.len(), 1);
        let name = jobs[0].0.clone();
        let run = Uuid::now_v7();
        let begun = again(async || {
            let begin = move |job: &mut crate::records::job::Job| job.begin(run, 1);
            store.change_job(name.clone(), begin).await
        });
        assert_eq!(begun.await, Some(true));
        let kept = all(&store, async |store, number| {
            keep(store, name.clone(), run, number / 2).await
        })
        .await;
        let is_told_new = |kept: &&KeepOutcome| match kept {
            KeepOutcome::Done { is_new, .. } => *is_new,
            KeepOutcome::Ended | KeepOutcome::Full => panic!("{kept:?}"),
        };
        assert_eq!(kept.iter().filter(is_told_new).count(), CALLERS / 2);
        let mut keys = store.job_item_keys(&name).await.expect("readable");
        keys.sort_unstable();
        let expected = (0..CALLERS / 2).map(|number| format!("{number:02}"));
        assert_eq!(keys, Vec::from_iter(expected));
        let job = store.job(&name).await.expect("readable");
        assert_eq!(job.expect("it is kept").items, 32);
    }
}

/// Emits an item that another caller emits too.
async fn keep(store: Arc<Store>, name: JobName, run: Uuid, number: usize) -> KeepOutcome {
    let keep = Keep {
        id: Uuid::now_v7(),
        run,
        item: Some((format!("{number:02}"), "value".to_owned())),
        checkpoint: Some(number.to_string()),
        progress: JobProgress::default(),
        cpu_ms: 0,
    };
    again(async || store.keep_for_job(name.clone(), keep.clone()).await).await
}

#[tokio::test]
async fn events_are_numbered_without_a_gap_and_told_once() {
    for (store, _folder) in stores().await {
        let told = all(&store, async |store, number| {
            let plugin = format!("p{}", number % 4);
            let record = json!({ "name": plugin });
            let commit = PluginCommit::new(&plugin, &record, &[json!({ "of": number })]);
            let commit = commit.expect("JSON");
            again(async || store.put_plugin(commit.clone()).await).await
        })
        .await;
        let mut heard: Vec<u64> = told.iter().flatten().map(|event| event.id).collect();
        heard.sort_unstable();
        let kept = store.plugin_events(None, 0).await.expect("readable");
        let kept: Vec<u64> = kept.iter().map(|event| event.id).collect();
        let last = u64::try_from(CALLERS).expect("it fits");
        assert_eq!(kept, Vec::from_iter(1..=last));
        assert_eq!(heard, kept);
    }
}

#[tokio::test]
async fn counts_are_written_as_they_stand_and_forgotten_when_their_month_is_over() {
    for (store, _folder) in stores().await {
        let month = Month::of(0);
        all(&store, async |store, number| {
            let row = |owner: String| CountRow {
                owner,
                month,
                operation: format!("p/{}", number % 8),
                count: UsageCount {
                    calls: 3,
                    limited: 1,
                },
            };
            let rows = vec![row(format!("k{}", number % 4)), row("k".to_owned())];
            again(async || store.put_usage(rows.clone()).await).await;
        })
        .await;
        let counts = store.usage_of("k", month).await.expect("readable");
        assert_eq!(counts.len(), 8);
        assert!(counts.iter().all(|row| row.count.calls == 3));
        let mut left = 1;
        while left > 0 {
            left = again(async || store.forget_counts(Month::of(2_678_400)).await).await;
        }
        for owner in ["k", "k0", "k3"] {
            let counts = store.usage_of(owner, month).await.expect("readable");
            assert_eq!(counts, Vec::new(), "{owner}");
        }
    }
}

#[tokio::test]
async fn a_key_is_what_was_written_last_for_whoever_asks_by_it() {
    for (store, _folder) in stores().await {
        let told = all(&store, async |store, number| {
            let digest = [u8::try_from(number).expect("it fits"); 32];
            let record = key(&format!("key {number}"));
            again(async || store.put_key(digest, &record).await).await;
            let read = async || store.key(&digest).await;
            let before = again(read).await.expect("it is kept").revoked_at;
            again(async || store.revoke_key(&record.id, 7).await).await;
            let again_revoked = again(async || store.revoke_key(&record.id, 8).await).await;
            let after = again(read).await.expect("it is kept").revoked_at;
            (before, again_revoked.and_then(|key| key.revoked_at), after)
        })
        .await;
        assert_eq!(told, [(None, Some(7), Some(7)); CALLERS]);
        assert_eq!(store.keys().await.expect("readable").len(), CALLERS);
        let unknown = async || store.revoke_key("nobody's", 7).await;
        assert!(again(unknown).await.is_none());
    }
}

fn key(id: &str) -> KeyRecord {
    KeyRecord {
        id: id.to_owned(),
        label: String::new(),
        prefix: String::new(),
        last4: String::new(),
        scopes: Vec::new(),
        account: None,
        per_minute: None,
        per_month: None,
        per_second: None,
        windows: BTreeMap::new(),
        created_at: 0,
        expires_at: None,
        revoked_at: None,
    }
}

#[tokio::test]
async fn counts_of_many_owners_are_asked_for_together() {
    let engine = MemoryEngine::new(Mishaps::default(), 1);
    let store = Store::of(Engine::Memory(Arc::clone(&engine))).await;
    let (store, before) = (store.expect("a store"), engine.asked());
    let owners = (0..1000).map(|number| format!("k{number}"));
    let rows = owners.clone().map(|owner| CountRow {
        owner,
        month: Month::of(0),
        operation: "p/o".to_owned(),
        count: UsageCount::default(),
    });
    let rows = Vec::from_iter(rows);
    store.put_usage(rows.clone()).await.expect("written");
    assert_eq!(engine.asked() - before, 4);
    for (owner, row) in owners.zip(rows) {
        let counts = store.usage_of(&owner, Month::of(0)).await;
        assert_eq!(counts.expect("readable"), [row]);
    }
}

#[tokio::test]
async fn no_plugins_expired_records_wait_for_anothers() {
    for (store, _folder) in stores().await {
        let put = async |plugin: &str, at_ms: u64, records: usize| {
            for some in Vec::from_iter(0..records).chunks(64) {
                let write = |number: &usize| RecordWrite {
                    key: number.to_string(),
                    expected: ExpectedVersion::Any,
                    change: RecordChange::Put {
                        value: Vec::new(),
                        expires_ms: Some(at_ms),
                    },
                };
                let batch = StateBatch {
                    id: Uuid::now_v7(),
                    plugin: Arc::from(plugin),
                    writes: some.iter().map(write).collect(),
                    bytes_max: u64::MAX,
                    now_ms: 0,
                };
                let written = again(async || store.write_records(batch.clone()).await).await;
                written.expect("there is room");
            }
        };
        put("many", 1, 1100).await;
        put("one", 2, 1).await;
        let sweep = async || store.forget_expired_records(2).await;
        again(sweep).await;
        let used = store.records_used().await.expect("readable");
        let left = used.iter().map(|used| (&*used.plugin, used.records));
        let left = Vec::from_iter(left);
        assert_eq!(left[1], ("one", 0));
        while again(sweep).await {}
        let used = store.records_used().await.expect("readable");
        assert_eq!(used[0].records, 0);
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_read_stops_no_sweep_and_no_start() {
    for (store, _folder) in stores().await {
        for name in [
            LedgerEntry::row_name("a", 0),
            RowName::of(BURNT, "a").text("k").text("0"),
            RowName::of(JOBS, "a").text("p").id(0),
        ] {
            let row = Row::bytes(name, b"{".to_vec()).due(0);
            let put = async || {
                let row = row.clone();
                let put =
                    move |_: &mut dyn Reads| Ok(Decision::write((), vec![row.clone().into()]));
                store.change("a", put).await
            };
            again(put).await;
        }
        let asked = Reservation {
            identifier: Some("name".to_owned()),
            ..reservation(1, "a", 1, 0)
        };
        let reserved = again(async || store.reserve(asked.clone(), 9).await).await;
        assert_eq!(reserved, Ok(()));
        again(async || store.expire_all(1).await).await;
        let balance = store.balance("a", Month::of(0)).await;
        assert_eq!(balance.expect("readable").pending, 0);
        again(async || store.forget_burnt(100_000).await).await;
        let burnt = |read: &mut dyn Reads| read.due_names(BURNT, u64::MAX, 9);
        let burnt = store.engine.view(burnt).await.expect("readable");
        assert_eq!(burnt.len(), 1, "the one that cannot be read");
        assert!(store.jobs().await.expect("readable").is_empty());
    }
}
