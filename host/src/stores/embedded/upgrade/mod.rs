//! Stores of the first format, which had tables of their own for each kind of record: what is in them becomes rows, once.

use std::sync::Arc;

use redb::{ReadableTable as _, TableDefinition, TableHandle as _, WriteTransaction};
use serde_json::Value;
use uuid::Uuid;

use super::rows::write;
use crate::contract::operation::Owner;
use crate::records::account::{self, Account};
use crate::records::api_key::{self, KeyRecord};
use crate::records::credits::{Balance, Reservation, ReservationOutcome};
use crate::records::instance;
use crate::records::job::{Job, JobName};
use crate::records::job_rules::TakenRequestId;
use crate::records::ledger::{BurntIdentifier, LedgerEntry, MonthBalance, Spent};
use crate::records::month::Month;
use crate::records::plugin_life::{self, CompiledDigest, ComponentDescription, EventHistory};
use crate::records::plugin_state::{RecordHead, StateUsage};
use crate::records::recent::RecentChanges;
use crate::records::rows::{Row, RowFault, RowWrite, decode};
use crate::records::usage::{CountRow, UsageCount};

const INSTANCE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("instance");
const KEYS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("keys");
const ACCOUNTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("accounts");
const USAGE: TableDefinition<'_, (&str, u32, &str), (u64, u64)> = TableDefinition::new("usage");
/// Month, amount, when it was made, key, operation, request id.
type Reserved<'r> = (u32, u64, u64, &'r str, &'r str, &'r str);
const RESERVATIONS: TableDefinition<'_, (&str, u128), Reserved<'_>> =
    TableDefinition::new("credit-reservations");
const RESOLUTIONS: TableDefinition<'_, (&str, u128), (u8, u64)> =
    TableDefinition::new("credit-resolutions");
const BALANCES: TableDefinition<'_, (&str, u32), (u64, u64)> =
    TableDefinition::new("credit-balances");
const SPENT: TableDefinition<'_, (&str, u32, &str, &str), u64> =
    TableDefinition::new("credit-spent");
const BURNT: TableDefinition<'_, (&str, &str, &str), (u128, u64)> =
    TableDefinition::new("idempotency");
type JobKey<'k> = (&'k str, &'k str, u128);
const JOBS: TableDefinition<'_, JobKey<'_>, &[u8]> = TableDefinition::new("jobs");
const ITEMS: TableDefinition<'_, (&str, &str, u128, u32), (&str, &str)> =
    TableDefinition::new("job-items");
const CHECKPOINTS: TableDefinition<'_, JobKey<'_>, &str> = TableDefinition::new("job-checkpoints");
const REQUEST_IDS: TableDefinition<'_, (&str, &str, &str), (u128, &str, u64)> =
    TableDefinition::new("job-request-ids");
const PLUGINS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("plugins");
const EVENTS: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("plugin-events");
const LAST_EVENT: TableDefinition<'_, (), u64> = TableDefinition::new("last-event");
const DESCRIPTIONS: TableDefinition<'_, &str, &str> = TableDefinition::new("plugin-descriptions");
const CODES: TableDefinition<'_, (&str, &str), [u8; 32]> = TableDefinition::new("compiled-code");
const RECORDS: TableDefinition<'_, (&str, &str), (u64, &[u8])> =
    TableDefinition::new("plugin-records");
const USED: TableDefinition<'_, &str, (u64, u64, u64)> =
    TableDefinition::new("plugin-records-used");

/// Every table of the first format, those too that only led to others.
const TABLES: [&str; 25] = [
    "instance",
    "keys",
    "key-ids",
    "accounts",
    "usage",
    "credit-reservations",
    "credit-resolutions",
    "credit-pending",
    "credit-balances",
    "credit-spent",
    "idempotency",
    "idempotency-times",
    "jobs",
    "job-items",
    "job-item-keys",
    "job-checkpoints",
    "job-request-ids",
    "job-request-id-times",
    "plugins",
    "plugin-events",
    "plugin-descriptions",
    "compiled-code",
    "last-event",
    "plugin-records",
    "plugin-records-used",
];

/// Where a program of before keeps the instance's values, in a form that it cannot open: it fails at its start, before it takes
/// the store for an empty one.
const BARRIER: TableDefinition<'_, u64, u64> = TableDefinition::new("instance");

/// Makes rows of what a store of the first format holds, and removes its tables. Gives back whether anything was written.
pub(super) fn upgrade(transaction: &WriteTransaction) -> Result<bool, RowFault> {
    let tables = Vec::from_iter(transaction.list_tables()?);
    let is_upgraded = tables
        .iter()
        .any(|table| table.name() == instance::VALUES.name());
    let old = tables
        .into_iter()
        .filter(|table| TABLES.contains(&table.name()));
    let old = Vec::from_iter(old);
    if is_upgraded {
        return Ok(false);
    }
    if old.is_empty() {
        transaction.open_table(BARRIER)?;
        return Ok(true);
    }
    callers(transaction)?;
    ledger(transaction)?;
    jobs(transaction)?;
    plugins(transaction)?;
    state(transaction)?;
    for table in old {
        transaction.delete_table(table)?;
    }
    transaction.open_table(BARRIER)?;
    Ok(true)
}

/// What cannot be read is not left out, since its table goes: the upgrade fails, and the store stays as it was.
fn in_table(fault: RowFault, table: &str) -> RowFault {
    match fault {
        RowFault::Record(source) => RowFault::Upgrade {
            table: table.to_owned(),
            source,
        },
        RowFault::Unfetched
        | RowFault::TwoPartitions
        | RowFault::Upgrade { .. }
        | RowFault::Engine(_) => fault,
    }
}

/// Writes what is made of each entry of a table.
macro_rules! each {
    ($transaction:ident, $table:ident, |$key:pat_param, $value:pat_param| $rows:expr) => {{
        let table = $transaction.open_table($table)?;
        for entry in table.iter()? {
            let (key, value) = entry?;
            let ($key, $value) = (key.value(), value.value());
            // In a function, so that what fails in it is told with its table.
            let rows = || -> Result<Vec<RowWrite>, RowFault> { Ok($rows) };
            let rows = rows().map_err(|fault| in_table(fault, $table.name()))?;
            write($transaction, &rows)?;
        }
    }};
}

/// Who calls: keys and accounts with their counts, and the secret that makes callers' names.
fn callers(transaction: &WriteTransaction) -> Result<(), RowFault> {
    each!(transaction, INSTANCE, |name, value| {
        let secret = <[u8; 32]>::try_from(value).ok();
        match secret.filter(|_| name == "owner-secret") {
            Some(secret) => vec![instance::owner_secret_row(&secret)?.into()],
            None => Vec::new(),
        }
    });
    each!(transaction, KEYS, |digest, record| {
        let record: KeyRecord = decode(record)?;
        one(api_key::row(digest, &record)?)
    });
    each!(transaction, ACCOUNTS, |_, record| {
        let record: Account = decode(record)?;
        one(account::row(&record)?)
    });
    each!(
        transaction,
        USAGE,
        |(owner, month, operation), (calls, limited)| {
            let row = CountRow {
                owner: owner.to_owned(),
                month: Month::from_number(month),
                operation: operation.to_owned(),
                count: UsageCount { calls, limited },
            };
            one(row.row()?)
        }
    );
    Ok(())
}

fn ledger(transaction: &WriteTransaction) -> Result<(), RowFault> {
    let resolutions = transaction.open_table(RESOLUTIONS)?;
    each!(transaction, RESERVATIONS, |(account, id),
                                      (
        month,
        amount,
        made_at,
        key,
        operation,
        request_id,
    )| {
        let resolution = resolutions.get((account, id))?.map(|value| value.value());
        let resolution = resolution.and_then(|(number, at)| Some((outcome(number)?, at)));
        let reservation = Reservation {
            id,
            account: account.to_owned(),
            month: Month::from_number(month),
            amount,
            key: key.to_owned(),
            operation: operation.to_owned(),
            request_id: request_id.to_owned(),
            identifier: None,
            made_at,
        };
        let entry = LedgerEntry {
            reservation,
            resolution,
        };
        one(entry.row()?)
    });
    each!(
        transaction,
        BALANCES,
        |(account, month), (posted, pending)| {
            let balance = Balance { posted, pending };
            one(MonthBalance::row(
                account,
                Month::from_number(month),
                balance,
            )?)
        }
    );
    each!(transaction, SPENT, |(account, month, key, operation),
                               credits| {
        let spent = Spent {
            month: Month::from_number(month),
            key: key.to_owned(),
            operation: operation.to_owned(),
            credits,
        };
        one(spent.row(account)?)
    });
    each!(
        transaction,
        BURNT,
        |(account, key, identifier), (reservation, at)| {
            let burnt = BurntIdentifier {
                account: account.to_owned(),
                key: key.to_owned(),
                identifier: identifier.to_owned(),
                reservation,
                at,
            };
            one(burnt.row()?)
        }
    );
    Ok(())
}

/// How a reservation ended, as it was stored.
fn outcome(number: u8) -> Option<ReservationOutcome> {
    match number {
        1 => Some(ReservationOutcome::Settled),
        2 => Some(ReservationOutcome::Released),
        3 => Some(ReservationOutcome::Expired),
        _ => None,
    }
}

fn jobs(transaction: &WriteTransaction) -> Result<(), RowFault> {
    let named = |owner: &str, plugin: &str, id: u128| {
        Some(JobName {
            owner: Owner::read(owner)?,
            plugin: Arc::from(plugin),
            id: Uuid::from_u128(id),
        })
    };
    each!(transaction, JOBS, |(owner, plugin, id), record| {
        let job: Job = decode(record)?;
        let rows = named(owner, plugin, id).map(|name| name.row(&job));
        Vec::from_iter(rows.transpose()?.map(RowWrite::from))
    });
    each!(
        transaction,
        ITEMS,
        |(owner, plugin, id, place), (key, value)| {
            let rows =
                named(owner, plugin, id).map(|name| name.item_rows(place, key, value, Uuid::nil()));
            let rows = rows.transpose()?.into_iter().flatten();
            Vec::from_iter(rows.map(RowWrite::from))
        }
    );
    each!(
        transaction,
        CHECKPOINTS,
        |(owner, plugin, id), checkpoint| {
            let rows = named(owner, plugin, id).map(|name| name.checkpoint_row(checkpoint));
            Vec::from_iter(rows.transpose()?.map(RowWrite::from))
        }
    );
    each!(
        transaction,
        REQUEST_IDS,
        |(owner, plugin, request_id), (id, fingerprint, until_ms)| {
            let taken = TakenRequestId {
                owner: owner.to_owned(),
                plugin: plugin.to_owned(),
                request_id: request_id.to_owned(),
                id: Uuid::from_u128(id),
                fingerprint: fingerprint.to_owned(),
                until_ms,
            };
            one(taken.row()?)
        }
    );
    Ok(())
}

fn plugins(transaction: &WriteTransaction) -> Result<(), RowFault> {
    each!(transaction, PLUGINS, |plugin, record| {
        let record: Value = decode(record)?;
        one(plugin_life::plugin_row(
            plugin,
            RecentChanges::default(),
            &record,
        )?)
    });
    each!(transaction, EVENTS, |(plugin, id), event| {
        let event = plugin_life::earlier_event(id, decode(event)?);
        one(event.row(EventHistory::Changes, plugin)?)
    });
    each!(transaction, LAST_EVENT, |(), id| one(
        plugin_life::last_event_row(id)?
    ));
    each!(transaction, DESCRIPTIONS, |component, text| {
        let described = ComponentDescription {
            component: component.to_owned(),
            text: text.to_owned(),
        };
        one(described.row()?)
    });
    each!(transaction, CODES, |(engine, component), code| {
        let compiled = CompiledDigest {
            component: component.to_owned(),
            engine: engine.to_owned(),
            code,
        };
        one(compiled.row()?)
    });
    Ok(())
}

fn state(transaction: &WriteTransaction) -> Result<(), RowFault> {
    each!(transaction, RECORDS, |(plugin, key), (version, value)| {
        let head = RecordHead {
            key: key.to_owned(),
            version,
            expires_ms: None,
        };
        one(head.row(plugin, value)?)
    });
    each!(
        transaction,
        USED,
        |plugin, (bytes, records, last_version)| {
            let used = StateUsage {
                plugin: plugin.to_owned(),
                bytes,
                records,
                last_version,
                ..StateUsage::default()
            };
            one(used.row()?)
        }
    );
    Ok(())
}

fn one(row: Row) -> Vec<RowWrite> {
    vec![row.into()]
}

#[cfg(test)]
mod tests;
