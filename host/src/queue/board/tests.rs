//! Whose turn it is and who has too much, by examples with a clock that is passed in.

use uuid::Uuid;

use super::*;
use crate::contract::operation::Owner;

const LIMITS: JobLimits = JobLimits {
    running: 3,
    open: 6,
    owner_running: 2,
    owner_open: 4,
    owner_kept: 5,
    owner_bytes: 100,
    cpu: Duration::from_secs(60),
};

fn name(owner: u8, id: u128) -> JobName {
    JobName {
        owner: Owner::of(&[owner; 32]),
        plugin: "p".into(),
        id: Uuid::from_u128(id),
    }
}

fn submit(board: &mut JobBoard, name: &JobName, now: Instant) -> bool {
    let (tenant, key) = (Tenant::owner(&name.owner), Some("k".into()));
    let entry = QueuedJob {
        name: name.clone(),
        tenant,
        key,
        due_ms: 1000,
        expires_ms: 2000,
        bytes: 0,
    };
    let is_admitted = board.admit(entry);
    if is_admitted {
        board.wait(name.clone(), now);
    }
    is_admitted
}

fn turns(board: &mut JobBoard, now: Instant, now_ms: u64) -> Vec<u128> {
    std::iter::from_fn(|| board.next(now, now_ms))
        .map(|turn| turn.name.id.as_u128())
        .collect()
}

#[test]
fn nobody_has_more_than_a_share() {
    let (mut board, now) = (JobBoard::new(LIMITS), Instant::now());
    let admitted: Vec<u128> = (0..8)
        .filter(|id| submit(&mut board, &name(1, *id), now))
        .collect();
    assert_eq!(admitted, [0, 1, 2, 3], "an owner has four open jobs");
    let admitted: Vec<u128> = (10..18)
        .filter(|id| submit(&mut board, &name(2, *id), now))
        .collect();
    assert_eq!(
        admitted,
        [10],
        "the last of the six is for one who has none"
    );
    assert!(submit(&mut board, &name(4, 11), now));
    assert!(
        !submit(&mut board, &name(5, 12), now),
        "the plugin has six open jobs"
    );
    // Whoever runs fewest is next, and of several the one who came first.
    assert_eq!(turns(&mut board, now, 0), [0, 10, 11]);
    board.ran(&name(4, 11), RunEnding::Over, now);
    assert_eq!(turns(&mut board, now, 0), [1]);
    for id in [0, 2, 3] {
        board.end(&name(1, id));
    }
    board.ran(&name(1, 0), RunEnding::Over, now);
    board.ran(&name(1, 1), RunEnding::Over, now);
    assert_eq!(
        turns(&mut board, now, 0),
        [0; 0],
        "what was cancelled while it waited has no turn"
    );
    assert!(submit(&mut board, &name(1, 5), now));
    assert!(
        !submit(&mut board, &name(1, 6), now),
        "five jobs are kept for an owner"
    );
    board.forget(&name(1, 0));
    for _ in 0..2 {
        board.has_bytes(&name(1, 5), 99);
    }
    assert!(submit(&mut board, &name(1, 7), now));
    board.forget(&name(1, 1));
    board.has_bytes(&name(1, 5), 100);
    assert!(!submit(&mut board, &name(1, 8), now), "and a hundred bytes");
    board.has_bytes(&name(1, 5), 99);
    board.forget(&name(1, 2));
    assert!(submit(&mut board, &name(1, 8), now));
}

/// Two who have many jobs, and one who comes last with one: it is next, and nobody is left behind for ever.
#[test]
fn whoever_runs_fewest_is_next() {
    let limits = JobLimits {
        running: 4,
        open: 100,
        owner_running: 4,
        owner_open: 50,
        owner_kept: 50,
        ..LIMITS
    };
    let (mut board, now) = (JobBoard::new(limits), Instant::now());
    for id in 0..10 {
        assert!(
            submit(&mut board, &name(1, id), now) && submit(&mut board, &name(2, 100 + id), now)
        );
    }
    assert_eq!(
        turns(&mut board, now, 0),
        [0, 100, 1],
        "the last quarter is for one who runs none"
    );
    assert!(submit(&mut board, &name(3, 200), now));
    assert_eq!(turns(&mut board, now, 0), [200]);
    board.ran(&name(1, 0), RunEnding::Over, now);
    board.ran(&name(1, 1), RunEnding::Over, now);
    assert_eq!(turns(&mut board, now, 0), [2]);
}

#[test]
fn a_key_is_known_by_the_jobs_that_it_has_open() {
    let (mut board, now) = (JobBoard::new(LIMITS), Instant::now());
    assert!(submit(&mut board, &name(1, 1), now) && submit(&mut board, &name(1, 2), now));
    assert_eq!(
        (board.keys(), board.of_key("k").len()),
        (vec!["k".into()], 2)
    );
    assert_eq!(
        board.next(now, 0).and_then(|turn| turn.key).as_deref(),
        Some("k")
    );
    board.ran(&name(1, 1), RunEnding::Over, now);
    assert_eq!(board.of_key("k"), [name(1, 2)]);
    board.end(&name(1, 2));
    assert_eq!((board.keys(), board.of_key("k").len()), (Vec::new(), 0));
}

#[test]
fn what_is_cut_off_is_tried_again_later_and_later_and_what_is_late_at_once() {
    let (mut board, mut now) = (JobBoard::new(LIMITS), Instant::now());
    assert!(submit(&mut board, &name(1, 1), now));
    for pause_s in [0, 1, 2, 4, 8, 16, 30, 30] {
        assert_eq!(turns(&mut board, now, 0), [1]);
        board.ran(&name(1, 1), RunEnding::CutOff, now);
        let pause = Duration::from_secs(pause_s);
        assert_eq!(
            board.pause(now),
            Some(pause).filter(|pause| !pause.is_zero())
        );
        if pause_s > 0 {
            assert_eq!(
                turns(&mut board, now + pause - Duration::from_millis(1), 999),
                [0_u128; 0]
            );
        }
        now += pause;
    }
    assert_eq!(
        turns(&mut board, now - PAUSE_MAX, 1000),
        [1],
        "its time is over"
    );
    // Where the store fails, being late does not help.
    board.ran(&name(1, 1), RunEnding::Failed, now);
    assert_eq!(
        turns(&mut board, now + PAUSE_MAX - Duration::from_millis(1), 1000),
        [0_u128; 0]
    );
    assert_eq!(turns(&mut board, now + PAUSE_MAX, 1000), [1]);
}

#[test]
fn a_run_is_told_of_its_end_and_an_expired_job_leaves_nothing() {
    let (mut board, now) = (JobBoard::new(LIMITS), Instant::now());
    assert!(submit(&mut board, &name(1, 1), now) && submit(&mut board, &name(1, 2), now));
    let turn = board.next(now, 0).expect("its turn");
    assert_eq!(board.expired(1999, 9), []);
    assert_eq!(board.expired(2000, 9), [name(1, 1), name(1, 2)]);
    for id in [1, 2] {
        board.forget(&name(1, id));
    }
    assert!(turn.cancelled.is_cancelled());
    board.ran(&name(1, 1), RunEnding::Over, now);
    let lane = &board.lanes["p"];
    assert_eq!(
        (lane.waiting.len(), lane.running.len(), lane.known.len()),
        (0, 0, 0)
    );
    assert!(lane.tenants.is_empty() && board.keyed.is_empty());
    assert!(board.expired(u64::MAX, 9).is_empty());
}
