//! What `reservations` promises, case by case.

use tempfile::TempDir;

use super::*;
use crate::records::month::Month;

const LIFETIME: Duration = Duration::from_secs(62);
const NOW_S: u64 = 1_796_083_199;

fn reservation(id: u128) -> Reservation {
    let text = |text: &str| text.to_owned();
    let (account, key, operation, request_id) = (text("a"), text("k"), text("p/o"), text("r"));
    let (month, identifier) = (Month::of(NOW_S), Some(format!("name-{id}")));
    Reservation {
        id,
        account,
        month,
        amount: 3,
        key,
        operation,
        request_id,
        identifier,
        made_at: NOW_S,
    }
}

async fn reserve(reservations: &Arc<Reservations>, id: u128) -> ReservationHold {
    reservations
        .reserve(reservation(id), 9, LIFETIME)
        .await
        .expect("written")
        .expect("reserved")
}

async fn open() -> (TempDir, Arc<Store>, Arc<Reservations>) {
    let folder = TempDir::new().expect("a temporary folder");
    let store = Arc::new(Store::open(folder.path()).await.expect("a store"));
    let reservations = Reservations::new(Arc::clone(&store));
    (folder, store, reservations)
}

async fn held(store: &Store) -> (u64, u64) {
    let balance = store
        .balance("a", Month::of(NOW_S))
        .await
        .expect("readable");
    (balance.posted, balance.pending)
}

#[tokio::test]
async fn what_is_dropped_is_released_and_what_nobody_resolves_expires() {
    let (_folder, store, reservations) = open().await;
    let now = Instant::now();
    let (settled, dropped, forgotten) = (
        reserve(&reservations, 1).await,
        reserve(&reservations, 2).await,
        reserve(&reservations, 3).await,
    );
    assert_eq!(held(&store).await, (0, 9));
    assert_eq!(
        settled
            .resolve(ReservationOutcome::Settled, NOW_S)
            .await
            .ok(),
        Some(ReservationOutcome::Settled)
    );
    drop(dropped);
    reservations.given_up().await;
    reservations.tend(now, NOW_S).await.expect("written");
    assert_eq!((held(&store).await, reservations.open()), ((3, 3), 1));
    // The wall clock jumps an hour, and into the next month: nothing is freed.
    reservations.tend(now, NOW_S + 3600).await.expect("written");
    assert_eq!(held(&store).await, (3, 3));
    reservations
        .tend(now + LIFETIME + Duration::from_secs(1), NOW_S)
        .await
        .expect("written");
    assert_eq!((held(&store).await, reservations.open()), ((3, 0), 0));
    assert_eq!(
        forgotten
            .resolve(ReservationOutcome::Settled, NOW_S)
            .await
            .ok(),
        Some(ReservationOutcome::Expired)
    );
    assert_eq!(
        held(&store).await,
        (3, 0),
        "a lapsed reservation is not settled"
    );
    let ends: Vec<u64> = reservations
        .counts()
        .resolved()
        .map(|(_, count)| count)
        .collect();
    assert_eq!(
        (ends, reservations.counts().credits_settled()),
        (vec![1, 1, 1], 3)
    );
    for (id, expected) in [
        (1, ReservationRefused::Handled),
        (2, ReservationRefused::Handled),
        (3, ReservationRefused::Lapsed),
    ] {
        let burnt = store
            .burnt("a", "k", &format!("name-{id}"), NOW_S)
            .await
            .expect("readable");
        assert_eq!(burnt, Some(expected));
    }
}

#[tokio::test]
async fn a_caller_that_goes_away_while_it_reserves_leaves_nothing() {
    let (_folder, store, reservations) = open().await;
    for id in 0..50 {
        let mut reserving = Box::pin(reservations.reserve(reservation(id), 9, LIFETIME));
        // Polled once, so that the write is on its way; then dropped.
        assert!(futures::poll!(&mut reserving).is_pending());
        drop(reserving);
        reservations.given_up().await;
        reservations
            .tend(Instant::now(), NOW_S)
            .await
            .expect("written");
        assert_eq!((held(&store).await, reservations.open()), ((0, 0), 0));
    }
}

#[tokio::test]
async fn an_account_has_its_places_back_when_calls_end() {
    let (_folder, _store, reservations) = open().await;
    let places = [reservations.place("a", 2), reservations.place("a", 2)];
    assert!(places.iter().all(Option::is_some) && reservations.place("a", 2).is_none());
    assert!(reservations.place("b", 2).is_some());
    drop(places);
    assert!(reservations.place("a", 1).is_some());
    assert_eq!(reservations.under_way.lock().calls.len(), 0);
}
