//! The ledger against a list of reservations: whatever is asked of both, in whatever order, both say the same.

use std::collections::BTreeMap;

use arbtest::arbitrary::{Result, Unstructured};

use crate::records::credits::{Balance, Reservation, ReservationOutcome};
use crate::records::ledger_audit::LedgerAudit;
use crate::records::month::Month;

/// A ledger that is driven beside the model.
pub(crate) trait DrivenLedger {
    fn reserve(&mut self, reservation: Reservation, limit: u64) -> bool;
    fn resolve(
        &mut self,
        account: &str,
        id: u128,
        outcome: ReservationOutcome,
        now_s: u64,
    ) -> Option<ReservationOutcome>;
    /// As the next process finds it, with everything given back that was reserved; how much that was.
    fn reopen(&mut self, now_s: u64) -> usize;
    fn balance(&mut self, account: &str, month: Month) -> Balance;
    fn audit(&mut self) -> LedgerAudit;
}

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
            let kept = Kept {
                account,
                month,
                amount,
                resolution: None,
            };
            self.reservations.insert(id, kept);
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

/// Drives a ledger and the model by the same commands: reserve (again, too), resolve in each way (again, too), a process that
/// ends and another that starts, a clock that jumps an hour over the end of a month.
pub(crate) fn drive(u: &mut Unstructured<'_>, ledger: &mut impl DrivenLedger) -> Result<()> {
    let (mut model, mut now_s) = (Model::default(), 1_796_083_200 - 1800);
    while !u.is_empty() {
        match u.int_in_range(0..=11)? {
            0..=4 => {
                let (account, id) = any_name(u)?;
                let (month, amount) = (Month::of(now_s), u64::from(u.int_in_range::<u8>(0..=9)?));
                let asked = reservation(id, ACCOUNTS[account], amount, now_s);
                let reserved = ledger.reserve(asked, LIMITS[account]);
                assert_eq!(reserved, model.reserve(id, account, month, amount));
            }
            5..=8 => {
                let (account, id) = any_name(u)?;
                let asked = *u.choose(&ReservationOutcome::ALL)?;
                let stands = ledger.resolve(ACCOUNTS[account], id, asked, now_s);
                let kept = model.reservations.get_mut(&id);
                let expected = kept.map(|kept| *kept.resolution.get_or_insert(asked));
                assert_eq!(stands, expected);
            }
            9 => assert_eq!(ledger.reopen(now_s), model.expire_all()),
            10 => now_s += 3600,
            _ => now_s -= 3600,
        }
        assert_eq!(ledger.audit().told, Vec::<String>::new());
        for (account, month) in [(0, now_s), (0, now_s + 3600), (1, now_s), (1, now_s - 3600)] {
            let month = Month::of(month);
            let balance = ledger.balance(ACCOUNTS[account], month);
            assert_eq!(balance, model.balance(account, month));
            assert!(balance.posted + balance.pending <= LIMITS[account]);
        }
    }
    Ok(())
}

/// A reservation of so many credits, made at a time for the month it is in.
pub(crate) fn reservation(id: u128, account: &str, amount: u64, now_s: u64) -> Reservation {
    let text = |text: &str| text.to_owned();
    Reservation {
        id,
        account: text(account),
        month: Month::of(now_s),
        amount,
        key: text("k"),
        operation: text("p/o"),
        request_id: text("r"),
        identifier: None,
        made_at: now_s,
    }
}
