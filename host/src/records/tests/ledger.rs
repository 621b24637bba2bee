//! What the rules of the ledger promise, without a disk.

use std::time::Duration;

use arbtest::arbtest;

use super::ledger_model::{DrivenLedger, drive, reservation};
use super::table::RowTable;
use crate::records::credits::{Balance, Reservation, ReservationOutcome, ReservationRefused};
use crate::records::ledger::{self, BALANCES, BURNT, BurntIdentifier, ENTRIES, LedgerEntry, SPENT};
use crate::records::ledger_audit::{self, LedgerAudit};
use crate::records::month::Month;
use crate::records::rows::{Row, RowName, RowQuery, RowWrite};

const DAY_S: u64 = 24 * 3600;
const MONTHS_S: [u64; 3] = [1_704_067_200, 1_706_745_600, 1_709_251_200];

impl DrivenLedger for RowTable {
    fn reserve(&mut self, reservation: Reservation, limit: u64) -> bool {
        self.change(&reservation.account, |read| {
            ledger::reserve(read, &reservation, limit)
        })
        .is_ok()
    }

    fn resolve(
        &mut self,
        account: &str,
        id: u128,
        outcome: ReservationOutcome,
        now_s: u64,
    ) -> Option<ReservationOutcome> {
        self.change(account, |read| {
            ledger::resolve(read, account, id, outcome, now_s)
        })
    }

    fn reopen(&mut self, now_s: u64) -> usize {
        let open = RowQuery::Due(ENTRIES, u64::MAX, usize::MAX);
        let open: Vec<LedgerEntry> = self.view(|read| read.records(open));
        for entry in &open {
            let Reservation { account, id, .. } = &entry.reservation;
            DrivenLedger::resolve(self, account, *id, ReservationOutcome::Expired, now_s);
        }
        open.len()
    }

    fn balance(&mut self, account: &str, month: Month) -> Balance {
        self.view(|read| ledger::balance(read, account, month))
    }

    fn audit(&mut self) -> LedgerAudit {
        let mut audit = LedgerAudit::default();
        for account in self.view(|read| ledger::accounts(read)) {
            audit.add(self.view(|read| ledger_audit::audit(read, &account)));
        }
        audit
    }
}

#[test]
fn the_ledger_does_what_a_list_of_reservations_would() {
    arbtest(|u| drive(u, &mut RowTable::default()))
        .budget(Duration::from_secs(2))
        .size_max(400);
}

/// Breaks a sound ledger in one place, and gives back how many of its reservations are open, how many disagreements are found,
/// and what is told.
fn broken(write: Option<RowWrite>) -> (u64, u64, Vec<String>) {
    let mut table = RowTable::default();
    for id in 1..=4 {
        assert!(table.reserve(reservation(id, "a", 5, 0), 100));
    }
    DrivenLedger::resolve(&mut table, "a", 1, ReservationOutcome::Settled, 0);
    DrivenLedger::resolve(&mut table, "a", 2, ReservationOutcome::Released, 0);
    table.write(&Vec::from_iter(write));
    let audit = table.audit();
    (audit.pending, audit.disagreements, audit.told)
}

#[test]
fn what_does_not_add_up_is_told() {
    assert_eq!(broken(None), (2, 0, Vec::new()));
    let wrong = Balance {
        posted: 6,
        pending: 10,
    };
    let row = ledger::MonthBalance::row("a", Month::of(0), wrong).expect("a row");
    let (_, count, told) = broken(Some(row.into()));
    assert_eq!(count, 1);
    assert!(
        told[0].contains("posted: 6") && told[0].contains("add up to Balance { posted: 5"),
        "{told:?}"
    );
    // The settled entry is gone: its balance, and its sum.
    let gone = RowWrite::Delete(LedgerEntry::row_name("a", 1));
    assert_eq!(broken(Some(gone)).1, 2);
    let name = RowName::of(SPENT, "a").number(Month::of(0).number());
    let gone = RowWrite::Delete(name.text("k").text("p/o"));
    let (_, count, told) = broken(Some(gone));
    assert_eq!(count, 1);
    assert!(told[0].contains("is missing"), "{told:?}");
    assert!(
        told[0].contains("by a in month, by key and operation (1970-01, "),
        "{told:?}"
    );
    // A sum of an account without anything else.
    let spent = ledger::Spent {
        month: Month::of(0),
        key: "k".to_owned(),
        operation: "p/o".to_owned(),
        credits: 5,
    };
    let row: Row = spent.row("b").expect("a row");
    assert_eq!(broken(Some(row.into())).1, 1);
    // An open entry that nothing finds when it is to be given back, and one that has ended and is found.
    let mut entry = LedgerEntry {
        reservation: reservation(3, "a", 5, 0),
        resolution: None,
    };
    let row = Row {
        due: None,
        ..entry.row().expect("a row")
    };
    let (_, count, told) = broken(Some(row.into()));
    assert_eq!(
        (count, &*told[0]),
        (1, "an open entry of a is not listed as open")
    );
    entry.reservation = reservation(2, "a", 5, 0);
    entry.resolution = Some((ReservationOutcome::Released, 0));
    let row = entry.row().expect("a row").due(0);
    assert_eq!(broken(Some(row.into())).1, 1);
    // An entry of an account without a balance.
    let entry = LedgerEntry {
        reservation: reservation(9, "b", 5, 0),
        resolution: None,
    };
    let row: Row = entry.row().expect("a row");
    assert_eq!(broken(Some(row.into())).1, 1);
}

#[test]
fn an_identifier_is_burnt_for_a_day_and_then_forgotten() {
    let mut table = RowTable::default();
    let reserve = |table: &mut RowTable, id, made_at| {
        let asked = Reservation {
            identifier: Some("name".to_owned()),
            ..reservation(id, "a", 1, made_at)
        };
        table.change("a", |read| ledger::reserve(read, &asked, 9))
    };
    let forget = |table: &mut RowTable, now_s| {
        let over = RowQuery::Due(BURNT, now_s + 1, usize::MAX);
        let over: Vec<BurntIdentifier> = table.view(|read| read.records(over));
        let names: Vec<RowName> = over.iter().map(BurntIdentifier::name).collect();
        table.change("a", |read| ledger::forget_burnt(read, &names, now_s));
        table.count(BURNT)
    };
    assert_eq!(reserve(&mut table, 1, 100), Ok(()));
    let again = reserve(&mut table, 2, 100 + DAY_S - 1);
    assert_eq!(again, Err(ReservationRefused::Handled));
    assert_eq!(forget(&mut table, 100 + DAY_S - 1), 1);
    assert_eq!(reserve(&mut table, 3, 100 + DAY_S), Ok(()));
    // The first day is over, and the second one's burning stands.
    assert_eq!(forget(&mut table, 100 + DAY_S), 1);
    let again = reserve(&mut table, 4, 101 + DAY_S);
    assert_eq!(again, Err(ReservationRefused::Handled));
    DrivenLedger::resolve(&mut table, "a", 3, ReservationOutcome::Expired, 0);
    let again = reserve(&mut table, 5, 101 + DAY_S);
    assert_eq!(again, Err(ReservationRefused::Lapsed));
    assert_eq!(forget(&mut table, 100 + 2 * DAY_S), 0);
}

#[test]
fn a_call_that_is_refused_burns_nothing() {
    let mut table = RowTable::default();
    let asked = Reservation {
        identifier: Some("name".to_owned()),
        ..reservation(1, "a", 10, 0)
    };
    let mut reserve = |limit| table.change("a", |read| ledger::reserve(read, &asked, limit));
    assert!(matches!(
        reserve(9),
        Err(ReservationRefused::Exceeded { .. })
    ));
    assert_eq!(reserve(10), Ok(()));
}

/// In each month an entry of the account `a` that ended in each way, and an open one.
fn fill(table: &mut RowTable) {
    for (at, month) in MONTHS_S.into_iter().zip(0..) {
        for (end, number) in ReservationOutcome::ALL.into_iter().zip(0_u128..) {
            let id = 10 * month + number;
            assert!(table.reserve(reservation(id, "a", 2, at), 10_000));
            DrivenLedger::resolve(table, "a", id, end, at);
        }
        assert!(table.reserve(reservation(10 * month + 3, "a", 2, at), 10_000));
    }
}

#[test]
fn months_that_are_over_are_forgotten_with_their_sums_and_the_others_stay() {
    let mut table = RowTable::default();
    fill(&mut table);
    let months = MONTHS_S.map(Month::of);
    let forget = |table: &mut RowTable, before, entries_max| {
        let forgotten = table.change("a", |read| {
            ledger::forget_months(read, "a", before, entries_max)
        });
        let audit = table.audit();
        assert_eq!(audit.told, Vec::<String>::new(), "what is kept adds up");
        forgotten
    };
    let balances = |table: &mut RowTable| months.map(|month| table.balance("a", month));
    let balance = |posted, pending| Balance { posted, pending };
    assert_eq!(forget(&mut table, months[0], 500), 0);
    assert_eq!(balances(&mut table), [balance(2, 2); 3]);
    assert_eq!(forget(&mut table, months[1], 2), 2);
    assert_eq!(forget(&mut table, months[1], 2), 1);
    assert_eq!(forget(&mut table, months[1], 500), 0);
    // What is open stays until it has ended.
    let expected = [balance(0, 2), balance(2, 2), balance(2, 2)];
    assert_eq!(balances(&mut table), expected);
    let mut spent = |month| table.view(|read| ledger::spent(read, "a", "k", month));
    assert_eq!(spent(months[0]), Vec::new());
    assert_eq!(spent(months[1])[0].credits, 2);
    DrivenLedger::resolve(&mut table, "a", 3, ReservationOutcome::Expired, 0);
    assert_eq!(forget(&mut table, months[1], 500), 1);
    assert_eq!(table.count(BALANCES), 2);
    let entries = table.view(|read| ledger::entries(read, "a", 0, 100));
    assert_eq!(entries.len(), 8);
}
