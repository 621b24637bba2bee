//! What the rules of jobs promise, without a disk.

use std::sync::Arc;

use uuid::Uuid;

use super::table::RowTable;
use crate::contract::operation::{CallerKind, Owner};
use crate::records::job::{BYTES_MAX, ITEMS_MAX, Job, JobName, JobProgress, JobState, RunEnd};
use crate::records::job_rules::{
    self, CHECKPOINTS, Earlier, ITEM_KEYS, ITEMS, ItemPage, JOBS, Keep, KeepOutcome, REQUEST_IDS,
    TakenRequestId,
};
use crate::records::rows::{Row, RowName, RowQuery};

const DAY_MS: u64 = 24 * 3600 * 1000;

/// A job that was submitted at a time and has not begun.
pub(crate) fn job(submitted_ms: u64) -> Job {
    let text = |text: &str| text.to_owned();
    Job {
        operation: text("crawl"),
        caller: CallerKind::ApiKey,
        tenant: None,
        key: None,
        request_id: text("r"),
        input: text("{}"),
        submitted_ms,
        due_ms: u64::MAX,
        expires_ms: u64::MAX,
        state: JobState::Pending,
        attempt: 0,
        run: None,
        progress: JobProgress::default(),
        items: 0,
        bytes: 0,
        checkpoint_bytes: Some(0),
        cpu_ms: 0,
        output: None,
        failure: None,
    }
}

pub(crate) fn name() -> JobName {
    JobName {
        owner: Owner::of(&[7; 32]),
        plugin: Arc::from("p"),
        id: Uuid::now_v7(),
    }
}

fn submit(table: &mut RowTable, name: &JobName, fingerprint: &str, at_ms: u64) -> Option<Earlier> {
    table.change(name.owner.as_str(), |read| {
        job_rules::submit(read, name, "id", fingerprint, &job(at_ms))
    })
}

fn keep(table: &mut RowTable, name: &JobName, keep: &Keep) -> KeepOutcome {
    table.change(name.owner.as_str(), |read| {
        job_rules::keep(read, name, keep)
    })
}

const RUN: Uuid = Uuid::from_u128(1);

/// A table with a job whose first run has begun.
fn running() -> (RowTable, JobName) {
    let (mut table, name) = (RowTable::default(), name());
    assert_eq!(submit(&mut table, &name, "f", 0), None);
    let begun = table.change(name.owner.as_str(), |read| {
        job_rules::change(read, &name, &mut |job| job.begin(RUN, 1))
    });
    assert_eq!(begun, Some(true));
    (table, name)
}

fn item(key: &str, value: &str) -> Keep {
    Keep {
        id: Uuid::now_v7(),
        run: RUN,
        item: Some((key.to_owned(), value.to_owned())),
        checkpoint: None,
        progress: JobProgress::default(),
        cpu_ms: 0,
    }
}

#[test]
fn a_request_id_is_taken_for_a_day_and_stays_taken_when_its_job_is_forgotten() {
    let (mut table, first, second) = (RowTable::default(), name(), name());
    assert_eq!(submit(&mut table, &first, "f", 100), None);
    // The same write once more.
    assert_eq!(submit(&mut table, &first, "f", 100), None);
    let earlier = |is_same| {
        let id = first.id;
        Some(Earlier { id, is_same })
    };
    assert_eq!(submit(&mut table, &second, "f", 101), earlier(true));
    assert_eq!(submit(&mut table, &second, "g", 101), earlier(false));
    assert_eq!(table.count(JOBS), 1);
    table.change(first.owner.as_str(), |read| job_rules::forget(read, &first));
    assert_eq!(submit(&mut table, &second, "f", 102), earlier(true));

    let free = |table: &mut RowTable, now_ms| {
        let over = RowQuery::Due(REQUEST_IDS, now_ms + 1, usize::MAX);
        let over: Vec<TakenRequestId> = table.view(|read| read.records(over));
        let names: Vec<RowName> = over.iter().map(TakenRequestId::name).collect();
        table.change(first.owner.as_str(), |read| {
            job_rules::free_request_ids(read, &names, now_ms)
        });
        table.count(REQUEST_IDS)
    };
    assert_eq!(free(&mut table, 99 + DAY_MS), 1);
    assert_eq!(free(&mut table, 100 + DAY_MS), 0);
    assert_eq!(submit(&mut table, &second, "f", 100 + DAY_MS), None);
}

#[test]
fn an_item_is_kept_once_and_in_its_place() {
    let (mut table, name) = running();
    let done = |is_new, bytes| KeepOutcome::Done { is_new, bytes };
    assert_eq!(keep(&mut table, &name, &item("a", "1")), done(true, 3));
    assert_eq!(keep(&mut table, &name, &item("bb", "22")), done(true, 9));
    assert_eq!(keep(&mut table, &name, &item("a", "1")), done(false, 9));
    let checkpoint = Keep {
        item: None,
        checkpoint: Some("half".to_owned()),
        ..item("", "")
    };
    for _ in 0..2 {
        assert_eq!(keep(&mut table, &name, &checkpoint), done(false, 13));
    }
    let mut page =
        |offset, max, bytes| table.view(|read| job_rules::items(read, &name, offset, max, bytes));
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let expected = |items: &[(String, String)], next| ItemPage {
        items: items.to_vec(),
        next,
    };
    let (a, bb) = (pair("a", "1"), pair("bb", "22"));
    assert_eq!(page(0, 9, 99), expected(&[a.clone(), bb.clone()], None));
    assert_eq!(page(0, 1, 99), expected(std::slice::from_ref(&a), Some(1)));
    assert_eq!(page(0, 9, 2), expected(&[a], Some(1)));
    assert_eq!(page(1, 9, 0), expected(&[bb], None));
    assert_eq!(page(2, 9, 99), expected(&[], None));
    let keys = table.view(|read| job_rules::item_keys(read, &name));
    assert_eq!(keys, ["a", "bb"]);
    let job = table.view(|read| job_rules::job(read, &name));
    let job = job.expect("it is kept");
    assert_eq!((job.items, job.bytes), (2, 13));

    table.change(name.owner.as_str(), |read| job_rules::forget(read, &name));
    for space in [JOBS, ITEMS, ITEM_KEYS, CHECKPOINTS] {
        assert_eq!(table.count(space), 0, "{space:?}");
    }
}

#[test]
fn what_is_not_the_jobs_run_or_has_no_room_is_not_kept() {
    let (mut table, name) = running();
    let late = Keep {
        run: Uuid::now_v7(),
        ..item("a", "1")
    };
    assert_eq!(keep(&mut table, &name, &late), KeepOutcome::Ended);
    let change = |table: &mut RowTable, change: &mut dyn FnMut(&mut Job)| {
        table.change(name.owner.as_str(), |read| {
            job_rules::change(read, &name, &mut |job| change(job))
        });
    };
    change(&mut table, &mut |job| job.bytes = BYTES_MAX - 2);
    assert_eq!(keep(&mut table, &name, &item("a", "1")), KeepOutcome::Full);
    change(&mut table, &mut |job| {
        (job.bytes, job.items) = (0, ITEMS_MAX);
    });
    assert_eq!(keep(&mut table, &name, &item("a", "1")), KeepOutcome::Full);
    change(&mut table, &mut |job| {
        job.end(RUN, RunEnd::Completed("{}".to_owned()), 2);
    });
    assert_eq!(keep(&mut table, &name, &item("a", "1")), KeepOutcome::Ended);
    assert_eq!(table.count(ITEMS) + table.count(ITEM_KEYS), 0);
}

#[test]
fn an_item_that_is_kept_again_is_as_new_as_it_was_and_takes_nothing_back() {
    let (mut table, name) = running();
    let both = |checkpoint: &str| Keep {
        checkpoint: Some(checkpoint.to_owned()),
        ..item(checkpoint, "1")
    };
    let (first, second) = (both("first"), both("second"));
    let done = |bytes| KeepOutcome::Done {
        is_new: true,
        bytes,
    };
    assert_eq!(keep(&mut table, &name, &first), done(16));
    assert_eq!(keep(&mut table, &name, &first), done(16));
    assert_eq!(keep(&mut table, &name, &second), done(30));
    assert_eq!(keep(&mut table, &name, &first), done(30));
    let checkpoint = table.view(|read| job_rules::checkpoint(read, &name));
    assert_eq!(checkpoint.as_deref(), Some("second"));
}

#[test]
fn an_item_is_kept_without_a_look_at_the_checkpoint() {
    let (mut table, name) = running();
    let row = name.checkpoint_row("").expect("a row");
    let unreadable = Row::bytes(row.name, b"no JSON".to_vec());
    table.write(&[unreadable.into()]);
    let kept = keep(&mut table, &name, &item("a", "1"));
    assert!(matches!(kept, KeepOutcome::Done { is_new: true, .. }));
}

#[test]
fn a_slow_run_keeps_nothing_of_the_run_after_it() {
    let (mut table, name) = running();
    let later = Uuid::now_v7();
    table.change(name.owner.as_str(), |read| {
        job_rules::change(read, &name, &mut |job| {
            job.end(RUN, RunEnd::CutOff, 2);
            job.begin(later, 2)
        })
    });
    let slow = Keep {
        checkpoint: Some("slow".to_owned()),
        ..item("a", "1")
    };
    assert_eq!(keep(&mut table, &name, &slow), KeepOutcome::Ended);
    let checkpoint = table.view(|read| job_rules::checkpoint(read, &name));
    assert_eq!(checkpoint, None);
}

#[test]
fn a_run_is_begun_once_however_often_it_is_written() {
    let (mut table, name) = running();
    let attempts = |table: &mut RowTable, run| {
        table.change(name.owner.as_str(), |read| {
            job_rules::change(read, &name, &mut |job| {
                job.begin(run, 1);
                job.attempt
            })
        })
    };
    let run = Uuid::now_v7();
    assert_eq!(attempts(&mut table, run), Some(2));
    assert_eq!(attempts(&mut table, run), Some(2));
    assert_eq!(attempts(&mut table, Uuid::now_v7()), Some(3));
}
