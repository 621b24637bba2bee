//! What `quota` promises, case by case.

use arbtest::arbitrary::{Result, Unstructured};
use arbtest::arbtest;

use super::*;

/// A call that came in the last moment of a month, and is counted in the first one of the next, adds to what is stored.
#[test]
fn a_month_that_ends_under_a_call_loses_no_count() {
    let (usage, november) = (UsageCounts::default(), Month::of(1_796_083_199));
    let december = Month::of(1_796_083_200);
    let count = UsageCount {
        calls: 7,
        limited: 7,
    };
    let row = CountRow {
        owner: "o".to_owned(),
        month: november,
        operation: "p/a".to_owned(),
        count,
    };
    usage.load("o", november, vec![row.clone()]);
    assert_eq!(
        usage.unwritten(december),
        [],
        "it is written, and forgotten"
    );
    let call = CountedCall {
        owner: "o",
        operation: "p/a",
        limit: Some(8),
        is_limited: true,
    };
    assert_eq!(
        usage.count(&call, november),
        None,
        "it cannot be counted from nothing"
    );
    let standing = usage
        .count_from(&call, november, vec![row])
        .expect("one is left");
    assert_eq!(standing.map(|standing| standing.remaining), Some(0));
    let written: Vec<UsageCount> = usage
        .unwritten(december)
        .iter()
        .map(|row| row.count)
        .collect();
    assert_eq!(
        written,
        [UsageCount {
            calls: 8,
            limited: 8
        }]
    );
}

/// Whatever is counted, written, failed to be written and lost by a crash: a limit is never passed by what was counted
/// since the last write that held, the stored counts never exceed the calls that were admitted, and a crash loses only
/// what was not written.
#[test]
fn a_crash_loses_what_was_not_written_and_never_adds_a_count() {
    arbtest(|u: &mut Unstructured<'_>| -> Result<()> {
        let limit: u64 = u.int_in_range(0..=6)?;
        let mut months = vec![Month::of(1_796_083_200)];
        let mut month = Month::of(1_796_083_199);
        let (mut usage, mut stored) = (
            UsageCounts::default(),
            HashMap::<(Month, String), UsageCount>::new(),
        );
        let (mut admitted, mut held) = (HashMap::<Month, u64>::new(), HashMap::<Month, u64>::new());
        while !u.is_empty() {
            match u.int_in_range(0..=7)? {
                0 => {
                    let rows = usage.unwritten(month);
                    if u.arbitrary::<bool>()? {
                        stored.extend(
                            rows.into_iter()
                                .map(|row| ((row.month, row.operation), row.count)),
                        );
                        held.clone_from(&admitted);
                    } else {
                        usage.not_written(&rows);
                    }
                }
                1 => {
                    usage = UsageCounts::default();
                    admitted.clone_from(&held);
                }
                2 => month = months.pop().unwrap_or(month),
                _ => {
                    if !usage.is_loaded("o", month) {
                        let rows = stored.iter().filter(|((of, _), _)| *of == month).map(
                            |((_, operation), count)| CountRow {
                                owner: "o".to_owned(),
                                month,
                                operation: operation.clone(),
                                count: *count,
                            },
                        );
                        usage.load("o", month, rows.collect());
                    }
                    let operation = *u.choose(&["p/a", "p/b"])?;
                    let call = CountedCall {
                        owner: "o",
                        operation,
                        limit: Some(limit),
                        is_limited: true,
                    };
                    let before = admitted.get(&month).copied().unwrap_or(0);
                    let counted = usage.count(&call, month).expect("it was loaded");
                    assert_eq!(counted.is_ok(), before < limit);
                    if let Ok(standing) = counted {
                        assert_eq!(
                            standing.map(|standing| standing.remaining),
                            Some(limit - before - 1)
                        );
                        *admitted.entry(month).or_default() += 1;
                    }
                }
            }
            for (month, held) in &held {
                let of_month = stored.iter().filter(|((of, _), _)| of == month);
                assert_eq!(of_month.map(|(_, count)| count.limited).sum::<u64>(), *held);
            }
        }
        Ok(())
    });
}
