//! What `retention` promises, case by case.

use tempfile::TempDir;

use super::*;
use crate::records::credits::Balance;
use crate::records::credits::Reservation;
use crate::records::usage::CountRow;
use crate::records::usage::UsageCount;

const MONTHS_S: [u64; 3] = [1_704_067_200, 1_706_745_600, 1_709_251_200];

async fn reserve(
    store: &Store,
    account: &str,
    id: u128,
    month: Month,
    then: Option<ReservationOutcome>,
) {
    let text = |text: &str| text.to_owned();
    let (account, key, operation, request_id) = (text(account), text("k"), text("p/o"), text("r"));
    let name = account.clone();
    let reservation = Reservation {
        id,
        account,
        month,
        amount: 2,
        key,
        operation,
        request_id,
        identifier: None,
        made_at: 0,
    };
    store
        .reserve(reservation, 10_000)
        .await
        .expect("written")
        .expect("reserved");
    if let Some(resolution) = then {
        store
            .resolve(&name, id, resolution, 0)
            .await
            .expect("written");
    }
}

/// Forgets until nothing is left to be forgotten, and gives back how much each look came to.
async fn forget(store: &Store, before: Month) -> Vec<usize> {
    let mut looks = Vec::new();
    loop {
        let over = store.months_over(before).expect("readable");
        looks.push(store.forget_months(over, before).await.expect("written"));
        let audit = store.audit().expect("readable");
        assert_eq!(
            audit.told,
            Vec::<String>::new(),
            "what is kept adds up, whenever one looks"
        );
        if looks.last() == Some(&0) {
            return looks;
        }
    }
}

/// In each month an entry of the account `a` that ended in each way and an open one, and counts of two owners.
async fn fill(store: &Store, months: &[Month]) {
    let ends = [
        Some(ReservationOutcome::Settled),
        Some(ReservationOutcome::Released),
        Some(ReservationOutcome::Expired),
        None,
    ];
    for (month, at) in months.iter().zip(0_u128..) {
        for (end, number) in ends.iter().zip(0_u128..) {
            reserve(store, "a", 10 * at + number, *month, *end).await;
        }
        let row = |owner: &str, operation: &str| {
            let count = UsageCount {
                calls: 3,
                limited: 1,
            };
            CountRow {
                owner: owner.to_owned(),
                month: *month,
                operation: operation.to_owned(),
                count,
            }
        };
        store
            .put_usage(vec![row("k", "p/o"), row("k", "p/q"), row("l", "p/o")])
            .await
            .expect("written");
    }
}

#[tokio::test]
async fn months_that_are_over_are_forgotten_with_their_sums_and_the_others_stay() {
    let folder = TempDir::new().expect("a temporary folder");
    let store = Store::open(folder.path()).expect("a store");
    let months = MONTHS_S.map(Month::of);
    fill(&store, &months).await;
    // An account of which nothing is left, whose last entry was given back.
    reserve(
        &store,
        "b",
        100,
        months[0],
        Some(ReservationOutcome::Released),
    )
    .await;
    let counts = || {
        months.map(|month| {
            ["k", "l"].map(|owner| store.usage_of(owner, month).expect("readable").len())
        })
    };
    let balances = || months.map(|month| store.balance("a", month).expect("readable"));
    let whole = Balance {
        posted: 2,
        pending: 2,
    };
    assert_eq!((counts(), balances()), ([[2, 1]; 3], [whole; 3]));
    assert_eq!(forget(&store, months[0]).await, [0]);
    assert_eq!((counts(), balances()), ([[2, 1]; 3], [whole; 3]));

    assert_eq!(
        forget(&store, months[1]).await,
        [7, 0],
        "three of an account, one of the other, three counts"
    );
    assert_eq!(counts(), [[0, 0], [2, 1], [2, 1]]);
    // What is open stays until it has ended.
    assert_eq!(
        balances(),
        [
            Balance {
                posted: 0,
                pending: 2
            },
            whole,
            whole
        ]
    );
    assert_eq!(store.spent("a", "k", months[0]).expect("readable").len(), 0);
    assert_eq!(
        store.spent("a", "k", months[1]).expect("readable")[0].credits,
        2
    );
    store
        .resolve("a", 3, ReservationOutcome::Expired, 0)
        .await
        .expect("written");
    assert_eq!(forget(&store, months[1]).await, [1, 0]);
    assert_eq!(
        store.months_over(months[1]).expect("readable"),
        Over::default()
    );
    assert_eq!(store.entries("a", 0, 100).expect("readable").len(), 8);
}

#[tokio::test]
async fn one_write_forgets_no_more_than_so_many() {
    let folder = TempDir::new().expect("a temporary folder");
    let store = Store::open(folder.path()).expect("a store");
    let [month, next, _] = MONTHS_S.map(Month::of);
    let all = (1..=u128::try_from(ROWS_AT_ONCE).expect("it fits") + 10).map(|id| {
        let end = if id % 2 == 0 {
            ReservationOutcome::Settled
        } else {
            ReservationOutcome::Released
        };
        reserve(&store, "a", id, month, Some(end))
    });
    futures::future::join_all(all).await;
    assert_eq!(forget(&store, next).await, [ROWS_AT_ONCE, 10, 0]);
    assert_eq!(store.months_over(next).expect("readable"), Over::default());
}
