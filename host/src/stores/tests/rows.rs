//! Rows: whatever is written, each engine finds what a sorted list would.

use std::ops::ControlFlow;
use std::time::Duration;

use arbtest::arbitrary::{Result, Unstructured};
use arbtest::arbtest;

use super::TestEngine;
use crate::records::rows::{
    Decision, Reads, Row, RowFault, RowName, RowQuery, RowRange, RowWrite, Space,
};
use crate::records::tests::table::RowTable;
use crate::stores::StoreError;
use crate::stores::engine::Engine;
use crate::stores::tests::memory::Mishaps;

const SPACES: [Space; 2] = [Space::new("a"), Space::new("ab")];
const PARTITIONS: [&str; 3] = ["", "o", "o\0p"];

fn any_name(u: &mut Unstructured<'_>, partition: &str) -> Result<RowName> {
    let name = RowName::of(*u.choose(&SPACES)?, partition);
    Ok(match u.int_in_range(0..=2)? {
        0 => name,
        1 => name.text(u.choose(&["", "a", "ab", "b"])?),
        _ => name.text("a").number(u32::from(u.arbitrary::<u8>()?) << 24),
    })
}

fn any_write(u: &mut Unstructured<'_>, partition: &str) -> Result<RowWrite> {
    let name = any_name(u, partition)?;
    if u.ratio(1, 4)? {
        return Ok(RowWrite::Delete(name));
    }
    // Another name of a row is its own: two rows never have the same.
    let alias = [name.key(), b"alias"].concat();
    let row = Row::bytes(name, vec![u.arbitrary::<u8>()?; 3]);
    let row = match u.int_in_range(0..=2_u64)? {
        0 => row,
        due => row.due(due * 250),
    };
    Ok(if u.arbitrary()? {
        row.alias(&alias)
    } else {
        row
    }
    .into())
}

fn any_range(u: &mut Unstructured<'_>) -> Result<RowRange> {
    let rows_max = u.int_in_range(0..=5)?;
    let partition = *u.choose(&PARTITIONS)?;
    let name = any_name(u, partition)?;
    let other = any_name(u, partition)?;
    let range = match u.int_in_range(0..=2)? {
        0 => RowRange::all(name.space(), rows_max),
        1 => RowRange::under(&name, rows_max),
        _ => RowRange::prefixed(&RowName::of(name.space(), partition), "a", rows_max),
    };
    Ok(match u.int_in_range(0..=3)? {
        0 => range.from(&other),
        1 => range.after(&other),
        2 => range.before(&other),
        _ => range,
    })
}

/// What a query shows.
async fn found(engine: &Engine, query: RowQuery<'_>) -> Vec<Vec<u8>> {
    let values = |read: &mut dyn Reads| {
        let mut values = Vec::new();
        read.ask(query, &mut |value| {
            values.push(value.to_vec());
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(values)
    };
    engine.view(values).await.expect("readable")
}

async fn compare(u: &mut Unstructured<'_>, engine: &Engine, table: &RowTable) -> Result<()> {
    let partition = *u.choose(&PARTITIONS)?;
    let name = any_name(u, partition)?;
    let alias = [name.key(), b"alias"].concat();
    let range = any_range(u)?;
    let due = RowQuery::Due(
        name.space(),
        u.int_in_range(0..=600)?,
        u.int_in_range(0..=4)?,
    );
    let due_keys = RowQuery::DueKeys(
        name.space(),
        u.int_in_range(0..=600)?,
        u.int_in_range(0..=2)?,
    );
    for query in [
        RowQuery::Named(&name),
        RowQuery::Alias(name.space(), &alias),
        RowQuery::Range(&range),
        RowQuery::Keys(&range),
        due,
        due_keys,
    ] {
        let expected = table.shown(query);
        assert_eq!(found(engine, query).await, expected, "{query:?}");
    }
    Ok(())
}

/// Writes to an engine and to a list, and asks both.
async fn drive(u: &mut Unstructured<'_>, engine: &Engine) -> Result<()> {
    let mut table = RowTable::default();
    while !u.is_empty() {
        let partition = *u.choose(&PARTITIONS)?;
        let writes: Result<Vec<RowWrite>> = (0..u.int_in_range(1..=4)?)
            .map(|_| any_write(u, partition))
            .collect();
        let writes = writes?;
        table.write(&writes);
        let rule = move |_: &mut dyn Reads| Ok(Decision::write((), writes.clone()));
        engine
            .change(partition, rule, || {})
            .await
            .expect("written");
        compare(u, engine, &table).await?;
    }
    Ok(())
}

#[test]
fn an_engine_finds_what_a_sorted_list_would() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let new: [fn() -> TestEngine; 2] = [TestEngine::embedded, || {
        TestEngine::memory(Mishaps::default())
    }];
    for new in new {
        arbtest(|u| runtime.block_on(drive(u, &new().engine)))
            .budget(Duration::from_secs(2))
            .size_max(600);
    }
}

#[tokio::test]
async fn a_change_that_touches_two_owners_or_fails_writes_nothing() {
    let name: fn(&str) -> RowName = |partition| RowName::of(SPACES[0], partition);
    for tested in [
        TestEngine::embedded(),
        TestEngine::memory(Mishaps::default()),
    ] {
        let engine = &tested.engine;
        let put = move |partition| RowWrite::from(Row::bytes(name(partition), vec![1]));
        let both = move |_: &mut dyn Reads| Ok(Decision::write((), vec![put("o"), put("p")]));
        let refused = engine.change("o", both, || {}).await;
        let is_refused = |told: std::result::Result<(), StoreError>| {
            matches!(told, Err(StoreError::Rows(RowFault::TwoPartitions)))
        };
        assert!(is_refused(refused));
        let other = move |read: &mut dyn Reads| {
            read.has(&name("p"))?;
            Ok(Decision::write((), vec![put("o")]))
        };
        assert!(is_refused(engine.change("o", other, || {}).await));
        let all = move |read: &mut dyn Reads| {
            let all = RowRange::all(SPACES[0], 9);
            let _: Vec<u8> = read.records(RowQuery::Range(&all))?;
            Ok(Decision::unchanged(()))
        };
        assert!(is_refused(engine.change("o", all, || {}).await));
        let fails = move |read: &mut dyn Reads| {
            read.has(&name("o"))?;
            Err::<Decision<()>, _>(RowFault::TwoPartitions)
        };
        assert!(is_refused(engine.change("o", fails, || {}).await));
        assert!(found(engine, RowQuery::Named(&name("o"))).await.is_empty());
        assert!(found(engine, RowQuery::Named(&name("p"))).await.is_empty());
    }
}

#[tokio::test]
async fn of_changes_asked_for_together_one_that_fails_fails_alone() {
    for tested in [
        TestEngine::embedded(),
        TestEngine::memory(Mishaps::default()),
    ] {
        let engine = &tested.engine;
        let changes = PARTITIONS.map(|partition| {
            let name = RowName::of(SPACES[0], partition);
            let put = move |read: &mut dyn Reads| {
                // Of another partition, for one of them.
                read.has(&RowName::of(
                    SPACES[0],
                    if partition == "o" { "" } else { partition },
                ))?;
                let writes = vec![Row::bytes(name.clone(), vec![1]).into()];
                Ok(Decision::write(partition, writes))
            };
            (partition.to_owned(), put)
        });
        let told = engine.change_each(Vec::from(changes)).await;
        let told = told.expect("the engine works");
        assert!(matches!(
            told.as_slice(),
            [Ok(""), Err(RowFault::TwoPartitions), Ok("o\0p")]
        ));
        for (partition, rows) in PARTITIONS.into_iter().zip([1, 0, 1]) {
            let name = RowName::of(SPACES[0], partition);
            let values = found(engine, RowQuery::Named(&name)).await;
            assert_eq!(values.len(), rows, "{partition:?}");
        }
    }
}

#[tokio::test]
async fn a_caller_that_goes_away_stops_neither_its_change_nor_what_follows_it() {
    for tested in [
        TestEngine::embedded(),
        TestEngine::memory(Mishaps::default()),
    ] {
        let name = RowName::of(SPACES[0], "o");
        let (put, (told, ended)) = (name.clone(), tokio::sync::oneshot::channel());
        let put = move |_: &mut dyn Reads| {
            Ok(Decision::write(
                (),
                vec![Row::bytes(put.clone(), vec![1]).into()],
            ))
        };
        let change = tested.engine.change("o", put, || {
            told.send(()).ok();
        });
        // Polled once, and dropped.
        drop(futures::FutureExt::now_or_never(change));
        ended.await.expect("what follows is done");
        let values = found(&tested.engine, RowQuery::Named(&name)).await;
        assert_eq!(values.len(), 1);
    }
}
