//! The ledger against a list of reservations: whatever is asked of both, in whatever order, both say the same.

use std::collections::BTreeMap;
use std::time::Duration;

use arbtest::arbitrary::{Result, Unstructured};
use arbtest::arbtest;
use tempfile::TempDir;

use super::*;

/// What the reference model keeps of a reservation.
struct Kept {
    account: usize,
    month: Month,
    amount: u64,
    resolution: Option<ReservationOutcome>,
}

/// The reference: a list of reservations, whose sums are the balances.
#[derive(Default)]
struct Model {
    reservations: BTreeMap<u128, Kept>,
}

impl Model {
    fn sum(&self, account: usize, month: Month, resolution: Option<ReservationOutcome>) -> u64 {
        let matching = |kept: &&Kept| {
            (kept.account, kept.month, kept.resolution) == (account, month, resolution)
        };
        self.reservations
            .values()
            .filter(matching)
            .map(|kept| kept.amount)
            .sum()
    }

    /// Gives back whether a reservation is there: it was, or the credits suffice.
    fn reserve(&mut self, id: u128, account: usize, month: Month, amount: u64) -> bool {
        let before = self.balance(account, month);
        let known = self.reservations.contains_key(&id);
        let fits = before.posted + before.pending + amount <= LIMITS[account];
        if !known && fits {
            self.reservations.insert(
                id,
                Kept {
                    account,
                    month,
                    amount,
                    resolution: None,
                },
            );
        }
        known || fits
    }

    fn expire_all(&mut self) -> usize {
        let all = self.reservations.values_mut();
        let open = all.filter(|kept| kept.resolution.is_none());
        open.map(|kept| kept.resolution = Some(ReservationOutcome::Expired))
            .count()
    }

    fn balance(&self, account: usize, month: Month) -> Balance {
        let posted = self.sum(account, month, Some(ReservationOutcome::Settled));
        Balance {
            posted,
            pending: self.sum(account, month, None),
        }
    }
}

/// An account and an id of its reservations.
fn any_name(u: &mut Unstructured<'_>) -> Result<(usize, u128)> {
    let (account, id) = (
        u.choose_index(2)?,
        u128::from(u.int_in_range::<u8>(0..=15)?),
    );
    Ok((account, id + 1000 * account as u128))
}

const ACCOUNTS: [&str; 2] = ["a", "b"];
const LIMITS: [u64; 2] = [20, 7];

/// Drives the store and the model by the same commands: reserve (again, too), resolve in each way (again, too), a process
/// that ends and another that starts, a clock that jumps an hour over the end of a month.
fn drive(u: &mut Unstructured<'_>, runtime: &tokio::runtime::Runtime) -> Result<()> {
    let folder = TempDir::new().expect("a temporary folder");
    let open = || Store::open(folder.path()).expect("a store");
    let (mut store, mut model, mut now_s) = (open(), Model::default(), 1_796_083_200 - 1800);
    while !u.is_empty() {
        match u.int_in_range(0..=11)? {
            0..=4 => {
                let (account, id) = any_name(u)?;
                let (month, amount) = (Month::of(now_s), u64::from(u.int_in_range::<u8>(0..=9)?));
                let reservation = reservation(id, ACCOUNTS[account], month, amount, now_s);
                let reserved = runtime
                    .block_on(store.reserve(reservation, LIMITS[account]))
                    .expect("written");
                assert_eq!(reserved.is_ok(), model.reserve(id, account, month, amount));
            }
            5..=8 => {
                let (account, id) = any_name(u)?;
                let asked = *u.choose(&[
                    ReservationOutcome::Settled,
                    ReservationOutcome::Released,
                    ReservationOutcome::Expired,
                ])?;
                let stands = runtime
                    .block_on(store.resolve(ACCOUNTS[account], id, asked, now_s))
                    .expect("written");
                let kept = model.reservations.get_mut(&id);
                assert_eq!(
                    stands,
                    kept.map(|kept| *kept.resolution.get_or_insert(asked))
                );
            }
            9 => {
                drop(store);
                store = open();
                assert_eq!(
                    runtime.block_on(store.expire_all(now_s)).expect("written"),
                    model.expire_all()
                );
            }
            10 => now_s += 3600,
            _ => now_s -= 3600,
        }
        assert_eq!(store.audit().expect("readable").told, Vec::<String>::new());
        for (account, month) in [(0, now_s), (0, now_s + 3600), (1, now_s), (1, now_s - 3600)] {
            let balance = store
                .balance(ACCOUNTS[account], Month::of(month))
                .expect("readable");
            assert_eq!(balance, model.balance(account, Month::of(month)));
            assert!(balance.posted + balance.pending <= LIMITS[account]);
        }
    }
    Ok(())
}

fn reservation(id: u128, account: &str, month: Month, amount: u64, now_s: u64) -> Reservation {
    let text = |text: &str| text.to_owned();
    let (account, key, operation, request_id) = (text(account), text("k"), text("p/o"), text("r"));
    Reservation {
        id,
        account,
        month,
        amount,
        key,
        operation,
        request_id,
        identifier: None,
        made_at: now_s,
    }
}

#[test]
fn the_ledger_does_what_a_list_of_reservations_would() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    arbtest(|u| drive(u, &runtime))
        .budget(Duration::from_secs(2))
        .size_max(400);
}
