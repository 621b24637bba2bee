//! Rows in memory: what an engine's are compared with, and what rules run on without a disk.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::records::rows::{
    Decision, Reads, Row, RowFault, RowName, RowQuery, RowRange, RowWrite, Space, VisitRow, decide,
};

/// The rows, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowTable {
    rows: BTreeMap<(Space, Vec<u8>), Row>,
}

impl RowTable {
    /// Makes changes of rows.
    pub(crate) fn write(&mut self, writes: &[RowWrite]) {
        for write in writes {
            let name = write.name();
            let key = (name.space(), name.key().to_vec());
            match write {
                RowWrite::Put(row) => drop(self.rows.insert(key, row.clone())),
                RowWrite::Delete(_) => drop(self.rows.remove(&key)),
            }
        }
    }

    /// Runs the rule of a change, and makes it.
    pub(crate) fn change<T>(
        &mut self,
        partition: &str,
        mut rule: impl FnMut(&mut dyn Reads) -> Result<Decision<T>, RowFault>,
    ) -> T {
        let decision = decide(partition, self, &mut rule).expect("the rule decides");
        self.write(&decision.writes);
        decision.outcome
    }

    /// Runs a rule that reads.
    pub(crate) fn view<T>(
        &mut self,
        mut rule: impl FnMut(&mut dyn Reads) -> Result<T, RowFault>,
    ) -> T {
        rule(self).expect("the rule reads")
    }

    /// How many rows a space has.
    pub(crate) fn count(&self, space: Space) -> usize {
        self.rows.keys().filter(|(of, _)| *of == space).count()
    }

    /// What is shown of the rows that are asked for, in their order.
    pub(crate) fn shown(&self, query: RowQuery<'_>) -> Vec<Vec<u8>> {
        let shows_keys = matches!(query, RowQuery::DueKeys(..) | RowQuery::Keys(_));
        let shown = |row: &Row| {
            if shows_keys {
                row.name.key().to_vec()
            } else {
                row.value.clone()
            }
        };
        self.find(query).into_iter().map(shown).collect()
    }

    /// The rows that are asked for, in their order.
    fn find(&self, query: RowQuery<'_>) -> Vec<&Row> {
        match query {
            RowQuery::Named(name) => self.named(name).into_iter().collect(),
            RowQuery::Alias(space, alias) => {
                let has_alias = |row: &&Row| row.alias.as_deref() == Some(alias);
                self.of(space).filter(has_alias).collect()
            }
            RowQuery::Range(range) | RowQuery::Keys(range) => self.range(range),
            RowQuery::Due(space, until, rows_max) => {
                let mut due: Vec<&Row> = self
                    .of(space)
                    .filter(|row| row.due.is_some_and(|due| due < until))
                    .collect();
                due.sort_by_key(|row| (row.due, row.name.clone()));
                due.truncate(rows_max);
                due
            }
            RowQuery::DueKeys(space, until, each_max) => {
                let mut shown: BTreeMap<&[u8], usize> = BTreeMap::new();
                let mut due = self.find(RowQuery::Due(space, until, usize::MAX));
                due.retain(|row| {
                    let of_partition = shown.entry(row.name.partition()).or_default();
                    *of_partition += 1;
                    *of_partition <= each_max
                });
                due
            }
        }
    }

    fn named(&self, name: &RowName) -> Option<&Row> {
        self.rows.get(&(name.space(), name.key().to_vec()))
    }

    fn of(&self, space: Space) -> impl Iterator<Item = &Row> {
        self.rows
            .values()
            .filter(move |row| row.name.space() == space)
    }

    fn range(&self, range: &RowRange) -> Vec<&Row> {
        let Some((from, until)) = range.bounds() else {
            return Vec::new();
        };
        let space = range.space();
        let from = Bound::Included((space, from.to_vec()));
        let rows = self.rows.range((from, Bound::Unbounded));
        rows.map(|(_, row)| row)
            .take_while(|row| {
                let is_before = until.is_none_or(|until| row.name.key() < until);
                row.name.space() == space && is_before
            })
            .take(range.rows_max())
            .collect()
    }
}

impl Reads for RowTable {
    fn ask(&mut self, query: RowQuery<'_>, visit: &mut VisitRow<'_>) -> Result<(), RowFault> {
        for shown in self.shown(query) {
            if visit(&shown)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}
