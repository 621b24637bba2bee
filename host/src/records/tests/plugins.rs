//! What the rules of plugins' lives and of their records promise, without a disk.

use std::sync::Arc;

use serde_json::json;
use uuid::Uuid;

use super::table::RowTable;
use crate::records::plugin_life::{self, EventHistory, INSTANCE, PluginCommit};
use crate::records::plugin_state::{
    self, ExpectedVersion, RECORDS, RecordChange, RecordWrite, StateBatch, StateUsage, WriteRefusal,
};
use crate::records::rows::{Row, RowName, RowQuery};

/// A batch of writes, and when it is made.
fn batch(writes: Vec<RecordWrite>, now_ms: u64) -> StateBatch {
    StateBatch {
        id: Uuid::now_v7(),
        plugin: Arc::from("p"),
        writes,
        bytes_max: 1000,
        now_ms,
    }
}

fn put(key: &str, value: &[u8], expected: ExpectedVersion) -> RecordWrite {
    let change = RecordChange::Put {
        value: value.to_vec(),
        expires_ms: None,
    };
    RecordWrite {
        key: key.to_owned(),
        expected,
        change,
    }
}

fn delete(key: &str, expected: ExpectedVersion) -> RecordWrite {
    RecordWrite {
        key: key.to_owned(),
        expected,
        change: RecordChange::Delete,
    }
}

fn write(table: &mut RowTable, batch: &StateBatch) -> Result<u64, WriteRefusal> {
    table.change("p", |read| plugin_state::write(read, batch))
}

/// Makes one write.
fn one(table: &mut RowTable, record: RecordWrite) -> Result<u64, WriteRefusal> {
    write(table, &batch(vec![record], 0))
}

fn used(table: &mut RowTable) -> (u64, u64) {
    let used = table.view(|read| plugin_state::used(read));
    used.first()
        .map_or((0, 0), |used| (used.bytes, used.records))
}

/// The version and the value of a record.
fn read(table: &mut RowTable, key: &str, now_ms: u64) -> Option<(u64, Vec<u8>)> {
    let found = table.view(|read| plugin_state::record(read, "p", key, now_ms));
    found.map(|record| (record.version, record.value))
}

fn conflict(found: Option<u64>) -> Result<u64, WriteRefusal> {
    Err(WriteRefusal::Conflict(vec![(0, found)]))
}

const ANY: ExpectedVersion = ExpectedVersion::Any;
const ABSENT: ExpectedVersion = ExpectedVersion::Absent;

#[test]
fn a_record_is_set_where_it_is_as_it_was_read() {
    let mut table = RowTable::default();
    assert_eq!(one(&mut table, put("k", b"one\n\0", ABSENT)), Ok(1));
    let like_it = put("k", b"one", ABSENT);
    assert_eq!(one(&mut table, like_it.clone()), conflict(Some(1)));
    assert_eq!(read(&mut table, "k", 0), Some((1, b"one\n\0".to_vec())));
    assert_eq!(used(&mut table), (64 + 1 + 5, 1));
    let at = ExpectedVersion::Version;
    assert_eq!(one(&mut table, put("k", b"", at(1))), Ok(2));
    assert_eq!(used(&mut table), (64 + 1, 1));
    assert_eq!(one(&mut table, delete("k", at(1))), conflict(Some(2)));
    assert_eq!(one(&mut table, delete("k", at(2))), Ok(3));
    assert_eq!(one(&mut table, delete("k", at(2))), conflict(None));
    assert_eq!(used(&mut table), (0, 0));
    // To delete nothing writes nothing.
    let before = table.clone();
    assert_eq!(one(&mut table, delete("k", ANY)), Ok(3));
    assert!(table == before);
    // A version is never given twice.
    assert_eq!(one(&mut table, like_it), Ok(4));
}

#[test]
fn a_batch_is_made_whole_or_not_at_all_and_once() {
    let mut table = RowTable::default();
    one(&mut table, put("a", b"1", ANY)).expect("there is room");
    one(&mut table, put("b", b"1", ANY)).expect("there is room");
    let at = ExpectedVersion::Version;
    let stale = vec![
        put("a", b"2", at(1)),
        put("b", b"2", at(1)),
        delete("c", at(7)),
    ];
    let unmet = vec![(1, Some(2)), (2, None)];
    let refused = write(&mut table, &batch(stale, 0));
    assert_eq!(refused, Err(WriteRefusal::Conflict(unmet)));
    assert_eq!(read(&mut table, "a", 0), Some((1, b"1".to_vec())));
    let good = batch(
        vec![
            put("a", b"2", at(1)),
            delete("b", at(2)),
            put("c", b"2", ABSENT),
        ],
        0,
    );
    assert_eq!(write(&mut table, &good), Ok(3));
    // Made again at once, and after others wrote.
    assert_eq!(write(&mut table, &good), Ok(3));
    assert_eq!(one(&mut table, put("d", b"", ANY)), Ok(4));
    assert_eq!(write(&mut table, &good), Ok(3));
    assert_eq!(used(&mut table), (3 * 65 + 2, 3));
    for (key, version) in [("a", 3), ("c", 3), ("d", 4)] {
        let found = read(&mut table, key, 0).map(|(version, _)| version);
        assert_eq!(found, Some(version), "{key}");
    }
    // What is taken away makes room for what is put with it.
    let large = put("e", &[0; 900], ABSENT);
    let refused = one(&mut table, large.clone());
    assert!(matches!(refused, Err(WriteRefusal::NoBytes { .. })));
    let swap = vec![delete("a", ANY), delete("c", ANY), large];
    assert!(write(&mut table, &batch(swap, 0)).is_err());
    let smaller = vec![
        delete("a", ANY),
        delete("c", ANY),
        put("e", &[0; 800], ABSENT),
    ];
    assert_eq!(write(&mut table, &batch(smaller, 0)), Ok(5));
}

#[test]
fn a_batch_that_is_made_again_after_others_changes_nothing() {
    let mut table = RowTable::default();
    one(&mut table, put("a", b"1", ANY)).expect("there is room");
    let deletes = batch(vec![delete("a", ANY), delete("b", ANY)], 0);
    let puts = batch(vec![put("b", b"2", ANY)], 0);
    assert_eq!(write(&mut table, &deletes), Ok(2));
    assert_eq!(write(&mut table, &puts), Ok(3));
    // Others write over all that they wrote.
    for key in ["a", "b"] {
        one(&mut table, put(key, b"3", ANY)).expect("there is room");
    }
    let before = table.clone();
    assert_eq!(write(&mut table, &deletes), Ok(2));
    assert_eq!(write(&mut table, &puts), Ok(3));
    assert!(table == before);
    // Only so many are kept in mind.
    for _ in 0..500 {
        one(&mut table, put("a", b"4", ANY)).expect("there is room");
    }
    let used = table.view(|read| plugin_state::used(read));
    let row = used[0].row().expect("a row");
    assert!(row.value.len() < 4000, "{}", row.value.len());
}

#[test]
fn records_are_bounded_by_bytes_and_by_number() {
    let mut table = RowTable::default();
    let refused = WriteRefusal::NoBytes {
        bytes: 1001,
        bytes_max: 1000,
    };
    assert_eq!(one(&mut table, put("k", &[0; 936], ANY)), Err(refused));
    assert_eq!(used(&mut table), (0, 0));
    assert_eq!(one(&mut table, put("k", &[0; 935], ANY)), Ok(1));
    // What makes the sum smaller is made, even above the bound.
    let smaller = StateBatch {
        bytes_max: 10,
        ..batch(vec![put("k", &[0; 9], ANY)], 0)
    };
    assert_eq!(write(&mut table, &smaller), Ok(2));
    // As if the others were there: to write them takes minutes.
    let full = StateUsage {
        plugin: "p".to_owned(),
        bytes: 74,
        records: 100_000,
        last_version: 2,
        ..StateUsage::default()
    };
    let row = full.row().expect("a row");
    table.write(&[row.into()]);
    let another = one(&mut table, put("l", &[], ANY));
    assert_eq!(another, Err(WriteRefusal::NoRecords));
    assert_eq!(one(&mut table, put("k", &[], ANY)), Ok(3));
}

#[test]
fn a_record_that_has_expired_is_gone_and_counts_until_it_is_forgotten() {
    let mut table = RowTable::default();
    let lasting = |at| RecordWrite {
        change: RecordChange::Put {
            value: b"v".to_vec(),
            expires_ms: Some(at),
        },
        ..put("k", b"", ABSENT)
    };
    assert_eq!(one(&mut table, lasting(100)), Ok(1));
    assert!(read(&mut table, "k", 99).is_some());
    assert_eq!(read(&mut table, "k", 100), None);
    let mut list = |now_ms| {
        let all = ("", None);
        table.view(|read| plugin_state::records(read, "p", all, 9, now_ms))
    };
    assert_eq!((list(99).len(), list(100).len()), (1, 0));
    assert_eq!(used(&mut table), (66, 1));
    // In the place of what has expired is nothing, as far as a write tells.
    let again = batch(vec![lasting(200)], 100);
    assert_eq!(write(&mut table, &again), Ok(2));
    assert_eq!(used(&mut table), (66, 1));
    let forget = |table: &mut RowTable, now_ms| {
        let expired = table.view(|read| plugin_state::expired(read, now_ms, 9));
        table.change("p", |read| {
            plugin_state::forget_expired(read, "p", &expired, now_ms)
        });
        (expired.len(), table.count(RECORDS))
    };
    assert_eq!(forget(&mut table, 199), (0, 1));
    assert_eq!(forget(&mut table, 200), (1, 0));
    assert_eq!(used(&mut table), (0, 0));
    // What has expired before it is put deletes what is there.
    assert_eq!(one(&mut table, put("k", b"v", ABSENT)), Ok(3));
    let over = RecordWrite {
        expected: ANY,
        ..lasting(50)
    };
    assert_eq!(write(&mut table, &batch(vec![over], 50)), Ok(4));
    assert_eq!((used(&mut table), table.count(RECORDS)), ((0, 0), 0));
    // What was put anew since it was found stands.
    assert_eq!(one(&mut table, lasting(300)), Ok(5));
    table.change("p", |read| {
        let name = RowName::of(RECORDS, "p").text("k");
        plugin_state::forget_expired(read, "p", &[name], 250)
    });
    assert_eq!((used(&mut table), table.count(RECORDS)), ((66, 1), 1));
}

#[test]
fn expired_records_are_forgotten_a_mebibyte_at_once_and_one_that_cannot_be_read_is_left() {
    let mut table = RowTable::default();
    let large = |key: &str| RecordWrite {
        change: RecordChange::Put {
            value: vec![0; 400_000],
            expires_ms: Some(100),
        },
        ..put(key, b"", ABSENT)
    };
    for key in ["b", "c", "d", "e", "f"] {
        let batch = StateBatch {
            bytes_max: u64::MAX,
            ..batch(vec![large(key)], 0)
        };
        write(&mut table, &batch).expect("there is room");
    }
    let broken = RowName::of(RECORDS, "p").text("a");
    table.write(&[Row::bytes(broken, b"{".to_vec()).due(99).into()]);
    let mut sweep = || {
        let names = table.view(|read| plugin_state::expired(read, 100, 9));
        let unreadable = table.change("p", |read| {
            plugin_state::forget_expired(read, "p", &names, 100)
        });
        (names.len(), unreadable, used(&mut table).1)
    };
    assert_eq!(sweep(), (6, 1, 2));
    assert_eq!(sweep(), (3, 1, 0));
    assert_eq!(sweep(), (1, 1, 0));
}

#[test]
fn a_record_takes_about_what_it_counts() {
    let mut table = RowTable::default();
    for (key, value) in [("k", 0), ("a/longer/key", 100)] {
        one(&mut table, put(key, &vec![0; value], ANY)).expect("there is room");
        let name = RowName::of(RECORDS, "p").text(key);
        let stored = table.shown(RowQuery::Named(&name))[0].len();
        let counted = 64 + key.len() + value;
        assert!(name.key().len() + stored <= counted, "{key}: {stored}");
    }
}

#[test]
fn records_are_listed_by_prefix_and_from_after_a_key() {
    let mut table = RowTable::default();
    for key in ["a", "ab", "ab\0", "abc", "b"] {
        one(&mut table, put(key, b"", ANY)).expect("there is room");
    }
    let mut list = |prefix, after, most| {
        let keys = (prefix, after);
        let listed = table.view(|read| plugin_state::records(read, "p", keys, most, 0));
        Vec::from_iter(listed.into_iter().map(|record| record.key))
    };
    assert_eq!(list("", None, 9), ["a", "ab", "ab\0", "abc", "b"]);
    assert_eq!(list("ab", None, 9), ["ab", "ab\0", "abc"]);
    assert_eq!(list("ab", None, 2), ["ab", "ab\0"]);
    assert_eq!(list("ab", Some("ab"), 9), ["ab\0", "abc"]);
    assert_eq!(list("ab", Some("a"), 9), ["ab", "ab\0", "abc"]);
    assert_eq!(list("a", Some("z"), 9), [""; 0]);
}

#[test]
fn events_are_numbered_over_all_plugins_and_the_oldest_of_each_go() {
    let mut table = RowTable::default();
    let commit = |table: &mut RowTable, commit: &PluginCommit| {
        let kept = table.change(INSTANCE, |read| plugin_life::commit(read, commit));
        Vec::from_iter(kept.into_iter().map(|event| event.id))
    };
    let made = |plugin: &str, events: usize| PluginCommit {
        id: Uuid::now_v7(),
        plugin: plugin.to_owned(),
        record: json!({ "of": plugin }),
        events: vec![json!({ "event": "it" }); events],
        history: EventHistory::Changes,
    };
    let first = made("p", 2);
    assert_eq!(commit(&mut table, &first), [1, 2]);
    assert_eq!(commit(&mut table, &made("q", 1)), [3]);
    // The same commit once more, one without any event, and the first again after another.
    assert_eq!(commit(&mut table, &first), [1, 2]);
    assert_eq!(commit(&mut table, &made("q", 0)), [0; 0]);
    let before = (commit(&mut table, &made("p", 0)), table.clone());
    assert_eq!(commit(&mut table, &first), [1, 2]);
    assert!(before == (Vec::new(), table.clone()));
    assert_eq!(commit(&mut table, &made("p", 999)).len(), 999);
    let events = |table: &mut RowTable, plugin, after| {
        let events = table.view(|read| plugin_life::events(read, plugin, after));
        Vec::from_iter(events.into_iter().map(|event| event.id))
    };
    assert_eq!(events(&mut table, Some("q"), 0), [3]);
    let of_p = events(&mut table, Some("p"), 0);
    assert_eq!((of_p.len(), of_p[0], of_p[999]), (1000, 2, 1002));
    assert_eq!(events(&mut table, None, 1000), [1001, 1002]);
    // Calls have as many of their own, and push out none of these.
    for events in [999, 2] {
        let history = EventHistory::Calls;
        let calls = made("p", events);
        commit(&mut table, &PluginCommit { history, ..calls });
    }
    let of_p = events(&mut table, Some("p"), 0);
    assert_eq!(
        (of_p.len(), of_p[0], of_p[999], of_p[1000]),
        (2000, 2, 1002, 1004)
    );
    let records = table.view(|read| plugin_life::plugins(read));
    assert_eq!(records, [json!({ "of": "p" }), json!({ "of": "q" })]);
}
