//! Counts of calls by owner, month and operation.

use std::collections::BTreeMap;

use super::{Store, StoreError, by_partition};
use crate::records::month::Month;
use crate::records::rows::{Decision, Reads, RowFault, RowWrite};
use crate::records::usage::{self, CountRow, USAGE};

/// Owners whose months that are over one look finds.
const OWNERS_AT_ONCE: usize = 64;
/// Counts of one of them that are forgotten in one change.
const ROWS_AT_ONCE: usize = 500;

impl Store {
    /// The counts of an owner in a month.
    pub(crate) async fn usage_of(
        &self,
        owner: &str,
        month: Month,
    ) -> Result<Vec<CountRow>, StoreError> {
        let owner = owner.to_owned();
        self.engine
            .survey(move |read| usage::counts(read, &owner, month))
            .await
    }

    /// Writes counts as they stand; writing them again changes nothing. Those of one owner are written together.
    pub(crate) async fn put_usage(&self, rows: Vec<CountRow>) -> Result<(), StoreError> {
        let mut by_owner: BTreeMap<String, Vec<CountRow>> = BTreeMap::new();
        for row in rows {
            by_owner.entry(row.owner.clone()).or_default().push(row);
        }
        let written = by_owner.into_iter().map(|(owner, rows)| {
            let put = move |_: &mut dyn Reads| {
                let writes = rows.iter().map(|row| Ok(row.row()?.into()));
                let writes: Result<Vec<RowWrite>, RowFault> = writes.collect();
                Ok(Decision::write((), writes?))
            };
            (owner, put)
        });
        self.change_each(written).await.map(drop)
    }

    /// Forgets counts of months before this one, of some owners, and gives back how many. What is not reached is there for the
    /// next time.
    pub(crate) async fn forget_counts(&self, before: Month) -> Result<usize, StoreError> {
        let over = before.begins_at() + 1;
        let over = move |read: &mut dyn Reads| read.due_names(USAGE, over, 1);
        let mut over = self.engine.survey(over).await?;
        over.truncate(OWNERS_AT_ONCE);
        let forgotten = by_partition(over).into_keys().map(|owner| {
            let named = owner.clone();
            let forget = move |read: &mut dyn Reads| {
                usage::forget_counts(read, &named, before, ROWS_AT_ONCE)
            };
            (owner, forget)
        });
        Ok(self.change_each(forgotten).await?.into_iter().sum())
    }
}
