//! What was used, for the operator to read and to take away: calls and credits by key, account and operation in a month, an
//! account's entries, and the audit of the balances. Nothing here changes anything.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::OperatorApi;
use super::accounts::unknown;
use super::endpoint::{EndpointParameters, PrintedAnswer};
use super::request::{RequestError, Timestamp, invalid};
use crate::base::clock::epoch_seconds;
use crate::records::ledger::LedgerEntry;
use crate::records::month::Month;
use crate::stores::Store;

const ROWS_MAX: usize = 100_000;
const ENTRIES_MAX: usize = 1000;

/// What the operator wants to see.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct UsageQuery {
    /// The calendar month, such as 2026-11. Default: the current one.
    pub(crate) month: Option<String>,
    /// Only this account.
    pub(crate) account: Option<String>,
    /// `json` (the default) or `csv`.
    pub(crate) format: ExportFormat,
}

impl EndpointParameters for UsageQuery {
    const RULE: &'static str = "must be `month`, `account`, or `format` with json or csv";
}

/// The form of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ExportFormat {
    #[default]
    Json,
    Csv,
}

/// Which page of an account's entries.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct EntriesQuery {
    /// Only entries after the one with this id.
    pub(crate) after: Option<Uuid>,
}

impl EndpointParameters for EntriesQuery {
    const RULE: &'static str = "must be the id of an entry";
}

/// Calls and credits of one month (UTC).
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct MonthUsage {
    month: String,
    pub(crate) rows: Vec<UsageRow>,
    /// Whether these are all rows that there are.
    complete: bool,
}

/// What one key's calls of one operation came to.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct UsageRow {
    pub(crate) account: Option<String>,
    pub(crate) key: String,
    /// Plugin and operation, with a slash between.
    pub(crate) operation: String,
    pub(crate) calls: u64,
    pub(crate) credits: u64,
}

/// A page of an account's entries, oldest first.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct EntryPage {
    entries: Vec<EntryView>,
    /// The `after` of the next page, where there is one.
    next: Option<Uuid>,
}

/// A reservation, and what came of it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EntryView {
    id: Uuid,
    month: String,
    credits: u64,
    key: String,
    operation: String,
    request_id: String,
    reserved_at: Timestamp,
    /// `settled`, `released` or `expired`; null while it is held.
    resolution: Option<String>,
    resolved_at: Option<Timestamp>,
}

/// The balances held against their entries.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct AuditReport {
    /// Records that were read.
    pub(crate) reservations: u64,
    /// Those without a resolution.
    pub(crate) pending: u64,
    pub(crate) disagreements: u64,
    /// The first of them, in words.
    pub(crate) told: Vec<String>,
}

/// Usage in the form that is asked for. What was counted is written first, so that it is told up to this moment.
pub(super) async fn export(
    api: &OperatorApi,
    query: UsageQuery,
) -> Result<PrintedAnswer, RequestError> {
    let format = query.format;
    api.usage.write().await;
    let used = usage(&api.store, query, SystemTime::now()).await?;
    Ok(match format {
        ExportFormat::Json => PrintedAnswer::enveloped(&used),
        ExportFormat::Csv => PrintedAnswer::of(used.csv(), "text/csv; charset=utf-8"),
    })
}

/// The usage of a month, as far as it was written.
pub(crate) async fn usage(
    store: &Store,
    query: UsageQuery,
    now: SystemTime,
) -> Result<MonthUsage, RequestError> {
    let month = match &query.month {
        None => Month::of(epoch_seconds(now)),
        Some(text) => match Month::parse(text) {
            Some(month) => month,
            None => return invalid("month", format!("is {text}; write a month such as 2026-11")),
        },
    };
    let mut keys = store.keys().await?;
    if let Some(account) = &query.account {
        store
            .account(account)
            .await?
            .ok_or_else(|| unknown(account))?;
        keys.retain(|key| key.account.as_ref() == Some(account));
    }
    let mut rows = Vec::new();
    for key in keys {
        let mut of_key: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for row in store.usage_of(&key.id, month).await? {
            of_key.entry(row.operation).or_default().0 = row.count.calls;
        }
        // What was spent is exact; a crash may have lost the counts of the same calls.
        if let Some(account) = &key.account {
            for spent in store.spent(account, &key.id, month).await? {
                of_key.entry(spent.operation).or_default().1 = spent.credits;
            }
        }
        let row = |(operation, (calls, credits))| UsageRow {
            account: key.account.clone(),
            key: key.id.clone(),
            operation,
            calls,
            credits,
        };
        rows.extend(of_key.into_iter().map(row));
        if rows.len() >= ROWS_MAX {
            break;
        }
    }
    Ok(MonthUsage {
        month: month.to_string(),
        complete: rows.len() < ROWS_MAX,
        rows,
    })
}

impl MonthUsage {
    /// RFC 4180 with a header; ids and names have nothing to quote.
    pub(crate) fn csv(&self) -> String {
        let mut rows = csv::WriterBuilder::new()
            .terminator(csv::Terminator::CRLF)
            .from_writer(Vec::new());
        let header = ["month", "account", "key", "operation", "calls", "credits"];
        rows.write_record(header).expect("a Vec takes all rows");
        for row in &self.rows {
            let record = [
                &self.month,
                row.account.as_deref().unwrap_or_default(),
                &row.key,
                &row.operation,
                &row.calls.to_string(),
                &row.credits.to_string(),
            ];
            rows.write_record(record).expect("a Vec takes all rows");
        }
        let text = rows.into_inner().expect("a Vec takes all rows");
        String::from_utf8(text).expect("the cells are text")
    }
}

/// The entries of an account behind one of them.
pub(crate) async fn entries(
    store: &Arc<Store>,
    account: &str,
    after: Option<Uuid>,
) -> Result<EntryPage, RequestError> {
    store
        .account(account)
        .await?
        .ok_or_else(|| unknown(account))?;
    let entries = store
        .entries(account, after.map_or(0, |id| id.as_u128()), ENTRIES_MAX)
        .await?;
    let last = entries.last().filter(|_| entries.len() == ENTRIES_MAX);
    Ok(EntryPage {
        next: last.map(|last| Uuid::from_u128(last.reservation.id)),
        entries: entries.iter().map(entry).collect(),
    })
}

fn entry(entry: &LedgerEntry) -> EntryView {
    let (reservation, resolution) = (&entry.reservation, entry.resolution);
    EntryView {
        id: Uuid::from_u128(reservation.id),
        month: reservation.month.to_string(),
        credits: reservation.amount,
        key: reservation.key.clone(),
        operation: reservation.operation.clone(),
        request_id: reservation.request_id.clone(),
        reserved_at: Timestamp::of(reservation.made_at),
        resolution: resolution.map(|(resolution, _)| resolution.name().to_owned()),
        resolved_at: resolution.map(|(_, at)| Timestamp::of(at)),
    }
}

/// Recomputes every balance from its records.
pub(crate) async fn audit(store: &Arc<Store>) -> Result<AuditReport, RequestError> {
    let audit = store.audit().await?;
    Ok(AuditReport {
        reservations: audit.reservations,
        pending: audit.pending,
        disagreements: audit.disagreements,
        told: audit.told,
    })
}
