//! What was used, for the operator to read and to take away: calls and credits by key, account and operation in a month, an
//! account's entries, and the audit of the balances. Nothing here changes anything.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::accounts::unknown;
use super::request::{RequestError, invalid, timestamp};
use crate::base::clock::epoch_seconds;
use crate::records::ledger::LedgerEntry;
use crate::records::month::Month;
use crate::stores::Store;

/// Calls and credits; `month`, `account` and `format` in its query.
pub(crate) const USAGE: &str = "/admin/v1/usage";
/// Balances recomputed from their records.
pub(crate) const AUDIT: &str = "/admin/v1/audit";

const ROWS_MAX: usize = 100_000;
const ENTRIES_MAX: usize = 1000;

/// What the operator wants to see.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsageRequest {
    /// `2026-11`; absent is the current one.
    pub(crate) month: Option<String>,
    /// One account alone.
    pub(crate) account: Option<String>,
}

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExportFormat {
    Json,
    Csv,
}

/// Calls and credits of one month.
pub(crate) struct MonthUsage {
    month: Month,
    rows: Vec<UsageRow>,
    is_whole: bool,
}

#[derive(Serialize, Deserialize)]
struct UsageRow {
    account: Option<String>,
    key: String,
    operation: String,
    calls: u64,
    credits: u64,
}

impl UsageRequest {
    /// Reads a query; other names are refused.
    pub(crate) fn read(query: &str) -> Result<(Self, ExportFormat), RequestError> {
        let (mut request, mut format) = (Self::default(), ExportFormat::Json);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match (&*name, &*value) {
                ("month", month) => request.month = Some(month.to_owned()),
                ("account", account) => request.account = Some(account.to_owned()),
                ("format", "json") => format = ExportFormat::Json,
                ("format", "csv") => format = ExportFormat::Csv,
                ("format", other) => {
                    return invalid("format", format!("is {other}; it must be json or csv"));
                }
                _ => return invalid("query", "may only have month, account and format"),
            }
        }
        Ok((request, format))
    }

    /// The path that asks a server for this.
    pub(crate) fn path(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let names = [("month", &self.month), ("account", &self.account)];
        query.extend_pairs(
            names
                .into_iter()
                .filter_map(|(name, value)| Some((name, value.as_ref()?))),
        );
        format!("{USAGE}?{}", query.finish())
    }
}

/// Reads the usage of a month, as far as it was written.
pub(crate) async fn usage(
    store: &Store,
    request: &UsageRequest,
    now: SystemTime,
) -> Result<MonthUsage, RequestError> {
    let month = match &request.month {
        None => Month::of(epoch_seconds(now)),
        Some(text) => match Month::parse(text) {
            Some(month) => month,
            None => return invalid("month", format!("is {text}; write a month such as 2026-11")),
        },
    };
    let mut keys = store.keys().await?;
    if let Some(account) = &request.account {
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
    let is_whole = rows.len() < ROWS_MAX;
    Ok(MonthUsage {
        month,
        rows,
        is_whole,
    })
}

impl MonthUsage {
    /// Reads what [`MonthUsage::json`] wrote.
    pub(crate) fn read(json: &Value) -> Self {
        let month = json["month"].as_str().and_then(Month::parse);
        Self {
            month: month.unwrap_or(Month::of(0)),
            rows: Vec::deserialize(&json["rows"]).unwrap_or_default(),
            is_whole: json["complete"] == true,
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "month": self.month.to_string(), "rows": self.rows, "complete": self.is_whole })
    }

    /// RFC 4180 with a header; ids and names have nothing to quote.
    pub(crate) fn csv(&self) -> String {
        let mut rows = csv::WriterBuilder::new()
            .terminator(csv::Terminator::CRLF)
            .from_writer(Vec::new());
        let header = ["month", "account", "key", "operation", "calls", "credits"];
        rows.write_record(header).expect("a Vec takes all rows");
        for row in &self.rows {
            let record = [
                &self.month.to_string(),
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

/// A page of an account's entries, oldest first.
pub(crate) async fn entries(
    store: &Store,
    account: &str,
    after: Option<&str>,
) -> Result<Value, RequestError> {
    store
        .account(account)
        .await?
        .ok_or_else(|| unknown(account))?;
    let after = match after.map(Uuid::parse_str) {
        None => 0,
        Some(Ok(id)) => id.as_u128(),
        Some(Err(_)) => return invalid("after", "must be the id of an entry"),
    };
    let entries = store.entries(account, after, ENTRIES_MAX).await?;
    let next = (entries.len() == ENTRIES_MAX)
        .then(|| entries.last().map(|one| uuid(one.reservation.id)))
        .flatten();
    let entries: Vec<Value> = entries.iter().map(entry).collect();
    Ok(json!({ "entries": entries, "next": next }))
}

fn entry(entry: &LedgerEntry) -> Value {
    let (reservation, resolution) = (&entry.reservation, entry.resolution);
    json!({
        "id": uuid(reservation.id),
        "month": reservation.month.to_string(),
        "credits": reservation.amount,
        "key": reservation.key,
        "operation": reservation.operation,
        "requestId": reservation.request_id,
        "reservedAt": timestamp(reservation.made_at),
        "resolution": resolution.map(|(resolution, _)| resolution.name()),
        "resolvedAt": resolution.map(|(_, at)| timestamp(at)),
    })
}

fn uuid(id: u128) -> String {
    Uuid::from_u128(id).to_string()
}

/// Recomputes every balance from its records.
pub(crate) async fn audit(store: &Store) -> Result<Value, RequestError> {
    let audit = store.audit().await?;
    Ok(json!({
        "reservations": audit.reservations,
        "pending": audit.pending,
        "disagreements": audit.disagreements,
        "told": audit.told,
    }))
}
