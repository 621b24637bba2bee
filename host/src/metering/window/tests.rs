//! What `window` promises, case by case.

use arbtest::arbitrary::{Result, Unstructured};
use arbtest::arbtest;

use super::*;

fn slot(subject: &str, limit: u32, length: WindowLength) -> Slot {
    Slot {
        subject: subject.to_owned(),
        kind: SubjectKind::Credential,
        limit,
        length,
    }
}

#[test]
fn as_many_addresses_as_there_is_room_for_fill_nobody_elses() {
    let windows = Windows::default();
    let take = |kind, subject: usize| {
        let slot = Slot {
            subject: subject.to_string(),
            kind,
            limit: 1,
            length: WindowLength::Minute,
        };
        windows.take(vec![slot], 60).is_ok()
    };
    assert!((0..SUBJECTS_MAX).all(|subject| take(SubjectKind::Address, subject)));
    assert!(
        !take(SubjectKind::Address, SUBJECTS_MAX),
        "there is no room for one more address"
    );
    assert!(take(SubjectKind::Credential, SUBJECTS_MAX));
}

#[test]
fn a_window_is_aligned_and_counts_each_subject_apart() {
    let windows = Windows::default();
    let take =
        |subject, now_s| match windows.take(vec![slot(subject, 2, WindowLength::Minute)], now_s) {
            Ok(standing) => (
                true,
                standing.expect("one window").remaining,
                standing.expect("one").reset_epoch_s,
            ),
            Err(standing) => (false, standing.remaining, standing.reset_epoch_s),
        };
    assert_eq!(take("a", 119), (true, 1, 120));
    assert_eq!(take("a", 119), (true, 0, 120));
    assert_eq!(take("a", 119), (false, 0, 120));
    assert_eq!(take("b", 119), (true, 1, 120));
    assert_eq!(take("a", 120), (true, 1, 180));
}

#[test]
fn a_clock_set_back_within_a_minute_gives_no_second_window() {
    let windows = Windows::default();
    let take = |now_s| {
        windows
            .take(vec![slot("a", 1, WindowLength::Minute)], now_s)
            .is_ok()
    };
    assert_eq!(
        [take(120), take(119), take(120), take(180), take(179)],
        [true, false, false, true, false]
    );
}

#[test]
fn the_window_that_refused_is_told_or_the_one_with_the_least_left() {
    let windows = Windows::default();
    let slots = |key| {
        vec![
            slot("key", key, WindowLength::Second),
            slot("operation", 3, WindowLength::Minute),
        ]
    };
    let told = |standing: WindowStanding| (standing.window_s, standing.remaining);
    assert_eq!(
        windows.take(slots(9), 60).map(|s| s.map(told)),
        Ok(Some((60, 2)))
    );
    assert_eq!(
        windows.take(slots(2), 60).map(|s| s.map(told)),
        Ok(Some((1, 0)))
    );
    assert_eq!(windows.take(slots(2), 60).map_err(told), Err((1, 0)));
    assert_eq!(
        windows.take(slots(9), 61).map(|s| s.map(told)),
        Ok(Some((60, 0)))
    );
    assert_eq!(windows.take(slots(9), 61).map_err(told), Err((60, 0)));
    assert_eq!(windows.take(Vec::new(), 61), Ok(None));
}

/// Against a list of everything that was ever admitted: while time goes on, a call is admitted exactly when each of its
/// windows has room, and a refused call takes nothing.
#[test]
fn exactly_the_limit_is_admitted_in_every_aligned_window() {
    arbtest(|u: &mut Unstructured<'_>| -> Result<()> {
        let windows = Windows::default();
        let limits: [u32; 4] = [
            u.int_in_range(0..=4)?,
            u.int_in_range(1..=9)?,
            u.int_in_range(0..=3)?,
            5,
        ];
        let mut admitted: Vec<(usize, u64)> = Vec::new();
        let mut now_s: u64 = u.int_in_range(0..=200)?;
        while !u.is_empty() {
            now_s += u.choose(&[0, 0, 0, 0, 1, 2, 30, 3600])?;
            let chosen: u8 = u.int_in_range(0..=15)?;
            let subjects: Vec<usize> = (0..4)
                .filter(|subject| chosen & (1 << subject) != 0)
                .collect();
            let length = |subject: usize| {
                if subject < 2 {
                    WindowLength::Second
                } else {
                    WindowLength::Minute
                }
            };
            let window = |subject: usize, at: u64| at / u64::from(length(subject).seconds());
            let used = |subject: usize| {
                let same = |one: &&(usize, u64)| {
                    one.0 == subject && window(subject, one.1) == window(subject, now_s)
                };
                u32::try_from(admitted.iter().filter(same).count()).expect("few")
            };
            let fits = subjects
                .iter()
                .all(|subject| used(*subject) < limits[*subject]);
            let slots = subjects
                .iter()
                .map(|subject| slot(&subject.to_string(), limits[*subject], length(*subject)));
            let taken = windows.take(slots.collect(), now_s);
            assert_eq!(taken.is_ok(), fits);
            if fits {
                let least = subjects
                    .iter()
                    .map(|subject| limits[*subject] - used(*subject) - 1)
                    .min();
                assert_eq!(
                    taken.ok().flatten().map(|standing| standing.remaining),
                    least
                );
                admitted.extend(subjects.iter().map(|subject| (*subject, now_s)));
            }
        }
        Ok(())
    });
}
