//! Counts of calls by owner, month and operation.

use redb::{TableDefinition, WriteTransaction};

use super::embedded::{Store, StoreError};
use crate::records::month::Month;
use crate::records::usage::{CountRow, UsageCount};

/// Owner (a key's id), month, plugin and operation → calls, and those that count toward the monthly limit.
pub(super) const USAGE: TableDefinition<'_, (&str, u32, &str), (u64, u64)> =
    TableDefinition::new("usage");

pub(super) fn create_tables(transaction: &WriteTransaction) -> Result<(), StoreError> {
    transaction.open_table(USAGE)?;
    Ok(())
}

impl Store {
    /// The counts of an owner in a month.
    pub(crate) fn usage_of(&self, owner: &str, month: Month) -> Result<Vec<CountRow>, StoreError> {
        self.read(USAGE, |table| {
            let range = (owner, month.number(), "")..(owner, month.number() + 1, "");
            let mut rows = Vec::new();
            for entry in table.range(range)? {
                let (name, value) = entry?;
                let ((_, _, operation), (calls, limited)) = (name.value(), value.value());
                let (owner, operation) = (owner.to_owned(), operation.to_owned());
                rows.push(CountRow {
                    owner,
                    month,
                    operation,
                    count: UsageCount { calls, limited },
                });
            }
            Ok(rows)
        })
    }

    /// Writes counts as they stand; writing them again changes nothing. The rows need not be written together.
    pub(crate) async fn put_usage(&self, rows: Vec<CountRow>) -> Result<(), StoreError> {
        self.write(move |transaction| {
            let mut table = transaction.open_table(USAGE)?;
            for CountRow {
                owner,
                month,
                operation,
                count,
            } in &rows
            {
                let name = (owner.as_str(), month.number(), operation.as_str());
                table.insert(name, (count.calls, count.limited))?;
            }
            Ok(())
        })
        .await
    }
}
