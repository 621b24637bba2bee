//! Calls counted by calendar month, as they are kept.

use serde::{Deserialize, Serialize};

use super::month::Month;
use super::rows::{Decision, Reads, Row, RowFault, RowName, RowQuery, RowRange, RowWrite, Space};

/// The calls of one owner to one operation in one month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UsageCount {
    pub(crate) calls: u64,
    /// Those among them that count toward the monthly limit.
    pub(crate) limited: u64,
}

/// One count as it is stored, by owner first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CountRow {
    pub(crate) owner: String,
    pub(crate) month: Month,
    /// Plugin and operation, with a slash between.
    pub(crate) operation: String,
    pub(crate) count: UsageCount,
}

/// Owner (a key's id), month, plugin and operation → [`CountRow`]; due when its month is over.
pub(crate) const USAGE: Space = Space::new("usage.count");

impl CountRow {
    fn row_name(&self) -> RowName {
        let name = RowName::of(USAGE, &self.owner).number(self.month.number());
        name.text(&self.operation)
    }

    pub(crate) fn row(&self) -> Result<Row, RowFault> {
        let row = Row::record(self.row_name(), self)?;
        Ok(row.due(self.month.ends_at()))
    }
}

/// The counts of an owner in a month.
pub(crate) fn counts(
    read: &mut dyn Reads,
    owner: &str,
    month: Month,
) -> Result<Vec<CountRow>, RowFault> {
    let name = RowName::of(USAGE, owner).number(month.number());
    read.records(RowQuery::Range(&RowRange::under(&name, usize::MAX)))
}

/// Forgets an owner's counts of months before this one, at most so many; the outcome is how many.
pub(crate) fn forget_counts(
    read: &mut dyn Reads,
    owner: &str,
    before: Month,
    rows_max: usize,
) -> Result<Decision<usize>, RowFault> {
    let all = RowName::of(USAGE, owner);
    let over = RowRange::under(&all, rows_max).before(&all.number(before.number()));
    let writes: Vec<RowWrite> = read
        .names(&over)?
        .into_iter()
        .map(RowWrite::Delete)
        .collect();
    Ok(Decision::write(writes.len(), writes))
}
