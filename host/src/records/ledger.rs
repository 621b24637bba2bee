//! The rules of the ledger of credits: reservations with how they ended, and the balances and sums that they add up to.
//!
//! All rows are their account's. A reservation is written with its balance, its end with its balance and its sum, each only
//! once: the first end stands. An identifier of an operation (`Idempotency-Key`) is burnt in the write of the reservation that
//! it names, so that there is never one without the other. Time is passed in.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::credits::{Balance, Reservation, ReservationOutcome, ReservationRefused};
use super::month::Month;
use super::rows::{
    Decision, Reads, Row, RowFault, RowName, RowQuery, RowRange, RowWrite, Space,
    counted_unreadable, decode,
};

/// Account, id → [`LedgerEntry`]; due while it is open.
pub(crate) const ENTRIES: Space = Space::new("credit.entry");
/// Account, month → [`MonthBalance`]; due when its month is over.
pub(crate) const BALANCES: Space = Space::new("credit.balance");
/// Account, month, key, operation → [`Spent`].
pub(crate) const SPENT: Space = Space::new("credit.spent");
/// Account, key, identifier → [`BurntIdentifier`]; due when it is free again.
pub(crate) const BURNT: Space = Space::new("credit.identifier");

/// How long an identifier stays burnt, whatever came of the call.
const BURNT_SECONDS: u64 = 24 * 3600;

/// A reservation and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LedgerEntry {
    pub(crate) reservation: Reservation,
    /// How it ended and when, in Unix seconds.
    pub(crate) resolution: Option<(ReservationOutcome, u64)>,
}

/// What an account spent and holds reserved in a month, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MonthBalance {
    pub(crate) account: String,
    pub(crate) month: Month,
    pub(crate) balance: Balance,
}

/// Credits that one key's calls of one operation spent in one month.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spent {
    pub(crate) month: Month,
    pub(crate) key: String,
    /// Plugin and operation, with a slash between.
    pub(crate) operation: String,
    pub(crate) credits: u64,
}

/// An identifier that cannot be used until its day is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BurntIdentifier {
    pub(crate) account: String,
    pub(crate) key: String,
    pub(crate) identifier: String,
    /// The id of the reservation that it names.
    pub(crate) reservation: u128,
    /// Unix seconds.
    pub(crate) at: u64,
}

impl LedgerEntry {
    pub(crate) fn row_name(account: &str, id: u128) -> RowName {
        RowName::of(ENTRIES, account).id(id)
    }

    pub(crate) fn row(&self) -> Result<Row, RowFault> {
        let Reservation {
            id,
            account,
            made_at,
            ..
        } = &self.reservation;
        let row = Row::record(Self::row_name(account, *id), self)?;
        Ok(match self.resolution {
            None => row.due(*made_at),
            Some(_) => row,
        })
    }
}

impl MonthBalance {
    fn row_name(account: &str, month: Month) -> RowName {
        RowName::of(BALANCES, account).number(month.number())
    }

    pub(crate) fn row(account: &str, month: Month, balance: Balance) -> Result<Row, RowFault> {
        let record = Self {
            account: account.to_owned(),
            month,
            balance,
        };
        let row = Row::record(Self::row_name(account, month), &record)?;
        Ok(row.due(month.ends_at()))
    }
}

impl Spent {
    pub(crate) fn row_name(&self, account: &str) -> RowName {
        let name = RowName::of(SPENT, account).number(self.month.number());
        name.text(&self.key).text(&self.operation)
    }

    pub(crate) fn row(&self, account: &str) -> Result<Row, RowFault> {
        Row::record(self.row_name(account), self)
    }

    /// With what is stored of the same month, key and operation.
    fn stored(self, read: &mut dyn Reads, account: &str) -> Result<Self, RowFault> {
        let stored = read.record(&self.row_name(account))?;
        Ok(stored.unwrap_or(self))
    }
}

impl BurntIdentifier {
    fn row_name(account: &str, key: &str, identifier: &str) -> RowName {
        RowName::of(BURNT, account).text(key).text(identifier)
    }

    pub(crate) fn name(&self) -> RowName {
        Self::row_name(&self.account, &self.key, &self.identifier)
    }

    pub(crate) fn row(&self) -> Result<Row, RowFault> {
        Ok(Row::record(self.name(), self)?.due(self.free_at()))
    }

    fn free_at(&self) -> u64 {
        self.at.saturating_add(BURNT_SECONDS)
    }
}

/// Reserves and burns the identifier, or says why not. Reserving again with the same id changes nothing.
pub(crate) fn reserve(
    read: &mut dyn Reads,
    reservation: &Reservation,
    limit: u64,
) -> Result<Decision<Result<(), ReservationRefused>>, RowFault> {
    let Reservation {
        id,
        account,
        month,
        amount,
        made_at,
        ..
    } = reservation;
    if read.has(&LedgerEntry::row_name(account, *id))? {
        return Ok(Decision::unchanged(Ok(())));
    }
    let reserved = balance(read, account, *month)?.reserve(*amount, limit);
    // Told before that the credits do not suffice; a call that is not admitted burns nothing.
    if let Some(identifier) = &reservation.identifier
        && let Some(refused) = burnt(read, account, &reservation.key, identifier, *made_at)?
    {
        return Ok(Decision::unchanged(Err(refused)));
    }
    let balance = match reserved {
        Ok(balance) => balance,
        Err(exceeded) => return Ok(Decision::unchanged(Err(exceeded))),
    };
    let entry = LedgerEntry {
        reservation: reservation.clone(),
        resolution: None,
    };
    let balance = MonthBalance::row(account, *month, balance)?;
    let mut writes = vec![entry.row()?.into(), balance.into()];
    if let Some(identifier) = &reservation.identifier {
        let burnt = BurntIdentifier {
            account: account.clone(),
            key: reservation.key.clone(),
            identifier: identifier.clone(),
            reservation: *id,
            at: *made_at,
        };
        writes.push(burnt.row()?.into());
    }
    Ok(Decision::write(Ok(()), writes))
}

/// Ends a reservation. The outcome is the end that stands, an earlier one if there was one; `None` where nothing was reserved
/// under the id.
pub(crate) fn resolve(
    read: &mut dyn Reads,
    account: &str,
    id: u128,
    outcome: ReservationOutcome,
    now_s: u64,
) -> Result<Decision<Option<ReservationOutcome>>, RowFault> {
    let entry: Option<LedgerEntry> = read.record(&LedgerEntry::row_name(account, id))?;
    let Some(mut entry) = entry else {
        return Ok(Decision::unchanged(None));
    };
    if let Some((stands, _)) = entry.resolution {
        return Ok(Decision::unchanged(Some(stands)));
    }
    entry.resolution = Some((outcome, now_s));
    let (month, amount) = (entry.reservation.month, entry.reservation.amount);
    let balance = balance(read, account, month)?.resolve(amount, outcome);
    let balance = MonthBalance::row(account, month, balance)?;
    let mut writes = vec![entry.row()?.into(), balance.into()];
    if outcome == ReservationOutcome::Settled {
        let mut spent = spent_by(&entry.reservation).stored(read, account)?;
        spent.credits = spent.credits.saturating_add(amount);
        writes.push(spent.row(account)?.into());
    }
    Ok(Decision::write(Some(outcome), writes))
}

/// What an account spent and holds reserved in a month.
pub(crate) fn balance(
    read: &mut dyn Reads,
    account: &str,
    month: Month,
) -> Result<Balance, RowFault> {
    let stored = read.record(&MonthBalance::row_name(account, month))?;
    Ok(stored.map_or_else(Balance::default, |stored: MonthBalance| stored.balance))
}

/// Why an identifier cannot be used now, if it was burnt.
pub(crate) fn burnt(
    read: &mut dyn Reads,
    account: &str,
    key: &str,
    identifier: &str,
    now_s: u64,
) -> Result<Option<ReservationRefused>, RowFault> {
    let name = BurntIdentifier::row_name(account, key, identifier);
    let stored: Option<BurntIdentifier> = read.record(&name)?;
    let Some(burnt) = stored.filter(|burnt| burnt.free_at() > now_s) else {
        return Ok(None);
    };
    let entry: Option<LedgerEntry> =
        read.record(&LedgerEntry::row_name(account, burnt.reservation))?;
    let outcome = entry.and_then(|entry| entry.resolution);
    Ok(Some(match outcome {
        Some((ReservationOutcome::Expired, _)) => ReservationRefused::Lapsed,
        Some((ReservationOutcome::Settled | ReservationOutcome::Released, _)) | None => {
            ReservationRefused::Handled
        }
    }))
}

/// Forgets those of an account's identifiers whose day is over; one that was burnt anew since then stands. The outcome is how
/// many rows cannot be read, which are left.
pub(crate) fn forget_burnt(
    read: &mut dyn Reads,
    names: &[RowName],
    now_s: u64,
) -> Result<Decision<usize>, RowFault> {
    let (mut writes, mut unreadable) = (Vec::new(), 0);
    for name in names {
        let stored = read.record(name);
        let stored: Option<BurntIdentifier> =
            stored.or_else(counted_unreadable(&mut unreadable))?;
        if stored.is_some_and(|burnt| burnt.free_at() <= now_s) {
            writes.push(RowWrite::Delete(name.clone()));
        }
    }
    Ok(Decision::write(unreadable, writes))
}

/// The accounts that have a ledger.
pub(crate) fn accounts(read: &mut dyn Reads) -> Result<BTreeSet<String>, RowFault> {
    let mut accounts = BTreeSet::new();
    for space in [ENTRIES, BALANCES, SPENT] {
        let mut next = RowRange::all(space, 1);
        while let Some(name) =
            read.one(RowQuery::Keys(&next), |key| Ok(RowName::read(space, key)))?
        {
            let Some(name) = name else { break };
            let account = name.partition_text();
            next = next.after(&RowName::of(space, &account));
            accounts.insert(account);
        }
    }
    Ok(accounts)
}

/// What an account spent by one of its keys in a month, by operation.
pub(crate) fn spent(
    read: &mut dyn Reads,
    account: &str,
    key: &str,
    month: Month,
) -> Result<Vec<Spent>, RowFault> {
    let name = RowName::of(SPENT, account).number(month.number()).text(key);
    read.records(RowQuery::Range(&RowRange::under(&name, usize::MAX)))
}

/// An account's entries after the one with this id, oldest first.
pub(crate) fn entries(
    read: &mut dyn Reads,
    account: &str,
    after: u128,
    entries_max: usize,
) -> Result<Vec<LedgerEntry>, RowFault> {
    let all = RowRange::under(&RowName::of(ENTRIES, account), entries_max);
    let range = all.after(&LedgerEntry::row_name(account, after));
    read.records(RowQuery::Range(&range))
}

/// Forgets an account's entries of months before this one that have ended, oldest first, with what they added to balances
/// and sums: these are at every moment what the kept entries add up to. Looks at no more than `entries_max`; the outcome is
/// how many went.
pub(crate) fn forget_months(
    read: &mut dyn Reads,
    account: &str,
    before: Month,
    entries_max: usize,
) -> Result<Decision<usize>, RowFault> {
    // Their ids are in the order of time.
    let range = RowRange::under(&RowName::of(ENTRIES, account), entries_max);
    let mut over: Vec<LedgerEntry> = Vec::new();
    let mut unreadable = 0;
    read.ask(RowQuery::Range(&range), &mut |value| {
        let entry = decode(value).map(Some);
        let entry: Option<LedgerEntry> = entry.or_else(counted_unreadable(&mut unreadable))?;
        if let Some(entry) = entry {
            if entry.reservation.month >= before {
                return Ok(ControlFlow::Break(()));
            }
            over.push(entry);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    // An account is found by its balances: they do not go before its last entry, nor where one cannot be read.
    let is_last = unreadable == 0 && over.len() < entries_max;
    over.retain(|entry| entry.resolution.is_some());
    let mut writes = Vec::with_capacity(over.len() + 8);
    let mut sums = OldSums::default();
    for entry in &over {
        let name = LedgerEntry::row_name(account, entry.reservation.id);
        writes.push(RowWrite::Delete(name));
        sums.take_back(read, account, entry)?;
    }
    if is_last {
        sums.read_all(read, account, before)?;
    }
    sums.write(account, is_last, &mut writes)?;
    Ok(Decision::write(over.len(), writes))
}

/// Balances and sums of months that are over, by their names.
#[derive(Default)]
struct OldSums {
    balances: BTreeMap<Month, Balance>,
    spent: BTreeMap<RowName, Spent>,
}

impl OldSums {
    /// Takes what an entry added out of its balance and its sum.
    fn take_back(
        &mut self,
        read: &mut dyn Reads,
        account: &str,
        entry: &LedgerEntry,
    ) -> Result<(), RowFault> {
        if !matches!(entry.resolution, Some((ReservationOutcome::Settled, _))) {
            return Ok(());
        }
        let Reservation { month, amount, .. } = entry.reservation;
        let old = match self.balances.get(&month) {
            Some(old) => *old,
            None => balance(read, account, month)?,
        };
        let posted = old.posted.saturating_sub(amount);
        self.balances.insert(month, Balance { posted, ..old });
        let spent = spent_by(&entry.reservation);
        let name = spent.row_name(account);
        let mut spent = match self.spent.remove(&name) {
            Some(known) => known,
            None => spent.stored(read, account)?,
        };
        spent.credits = spent.credits.saturating_sub(amount);
        self.spent.insert(name, spent);
        Ok(())
    }

    /// Adds those that nothing was taken out of.
    fn read_all(
        &mut self,
        read: &mut dyn Reads,
        account: &str,
        before: Month,
    ) -> Result<(), RowFault> {
        let old = |space| {
            let all = RowName::of(space, account);
            RowRange::under(&all, usize::MAX).before(&all.number(before.number()))
        };
        let balances: Vec<MonthBalance> = read.records(RowQuery::Range(&old(BALANCES)))?;
        for row in balances {
            self.balances.entry(row.month).or_insert(row.balance);
        }
        let spent: Vec<Spent> = read.records(RowQuery::Range(&old(SPENT)))?;
        for row in spent {
            self.spent.entry(row.row_name(account)).or_insert(row);
        }
        Ok(())
    }

    /// What is nothing any more goes with the last entries.
    fn write(
        self,
        account: &str,
        is_last: bool,
        writes: &mut Vec<RowWrite>,
    ) -> Result<(), RowFault> {
        for (month, old) in self.balances {
            writes.push(if is_last && old == Balance::default() {
                RowWrite::Delete(MonthBalance::row_name(account, month))
            } else {
                MonthBalance::row(account, month, old)?.into()
            });
        }
        for (name, old) in self.spent {
            writes.push(if is_last && old.credits == 0 {
                RowWrite::Delete(name)
            } else {
                old.row(account)?.into()
            });
        }
        Ok(())
    }
}

/// The sum that a reservation adds to, without anything in it.
fn spent_by(reservation: &Reservation) -> Spent {
    Spent {
        month: reservation.month,
        key: reservation.key.clone(),
        operation: reservation.operation.clone(),
        credits: 0,
    }
}
