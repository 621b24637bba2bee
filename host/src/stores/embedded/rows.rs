//! Rows in redb: one table of a space's rows, and two that lead to rows by when they are due and by their aliases.

use std::collections::HashMap;
use std::ops::{Bound, ControlFlow, Range};

use redb::{
    ReadOnlyTable, ReadTransaction, ReadableTable, Table, TableDefinition, TableError,
    WriteTransaction,
};

use crate::records::rows::{
    Reads, Row, RowFault, RowQuery, RowRange, RowWrite, Space, VisitRow, partition_of,
};

type Bytes = &'static [u8];
type ByteTable<'d> = TableDefinition<'d, Bytes, Bytes>;

/// Space, when, key.
const DUE: ByteTable<'_> = TableDefinition::new("index.due");
/// Space, alias → key.
const ALIASES: ByteTable<'_> = TableDefinition::new("index.alias");

/// A stored value begins with what follows: a time, an alias, both or neither; and then the row's value.
const WITH_DUE: u8 = 1;
const WITH_ALIAS: u8 = 2;

/// A transaction whose tables can be read.
pub(super) trait OpenTable {
    /// The table; `None` where nothing was ever written to it.
    fn open(
        &self,
        table: ByteTable<'_>,
    ) -> Result<Option<impl ReadableTable<Bytes, Bytes>>, RowFault>;
}

impl OpenTable for ReadTransaction {
    fn open(
        &self,
        table: ByteTable<'_>,
    ) -> Result<Option<impl ReadableTable<Bytes, Bytes>>, RowFault> {
        let opened: Result<ReadOnlyTable<Bytes, Bytes>, TableError> = self.open_table(table);
        match opened {
            Ok(table) => Ok(Some(table)),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl OpenTable for WriteTransaction {
    fn open(
        &self,
        table: ByteTable<'_>,
    ) -> Result<Option<impl ReadableTable<Bytes, Bytes>>, RowFault> {
        Ok(Some(self.open_table(table)?))
    }
}

/// The rows as a transaction sees them.
pub(super) struct TransactionRows<'t, T>(pub(super) &'t T);

impl<T: OpenTable> Reads for TransactionRows<'_, T> {
    fn ask(&mut self, query: RowQuery<'_>, visit: &mut VisitRow<'_>) -> Result<(), RowFault> {
        match query {
            RowQuery::Named(name) => self.visit(name.space(), [name.key()], visit),
            RowQuery::Alias(space, alias) => {
                let key = match self.0.open(ALIASES)? {
                    Some(table) => table
                        .get(indexed(space, alias).as_slice())?
                        .map(|key| key.value().to_vec()),
                    None => None,
                };
                self.visit(space, key, visit)
            }
            RowQuery::Range(range) => self.visit_range(range, |_, value| visit(value)),
            RowQuery::Keys(range) => self.visit_range(range, |key, _| visit(key)),
            RowQuery::Due(space, until, rows_max) => {
                let keys = self.due(space, until, rows_max)?;
                self.visit(space, keys, visit)
            }
            RowQuery::DueKeys(space, until, each_max) => {
                self.due_keys(space, until, each_max, visit)
            }
        }
    }
}

impl<T: OpenTable> TransactionRows<'_, T> {
    fn visit(
        &self,
        space: Space,
        keys: impl IntoIterator<Item: AsRef<[u8]>>,
        visit: &mut VisitRow<'_>,
    ) -> Result<(), RowFault> {
        let Some(table) = self.0.open(TableDefinition::new(space.name()))? else {
            return Ok(());
        };
        for key in keys {
            if let Some(stored) = table.get(key.as_ref())?
                && visit(StoredRow::read(stored.value()).value)?.is_break()
            {
                break;
            }
        }
        Ok(())
    }

    fn visit_range(
        &self,
        range: &RowRange,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, RowFault>,
    ) -> Result<(), RowFault> {
        let (Some(table), Some((from, until))) = (
            self.0.open(TableDefinition::new(range.space().name()))?,
            range.bounds(),
        ) else {
            return Ok(());
        };
        let until = until.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = table.range::<&[u8]>((Bound::Included(from), until))?;
        for row in rows.take(range.rows_max()) {
            let (key, stored) = row?;
            let value = StoredRow::read(stored.value()).value;
            if visit(key.value(), value)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn due(&self, space: Space, until: u64, rows_max: usize) -> Result<Vec<Vec<u8>>, RowFault> {
        let Some(table) = self.0.open(DUE)? else {
            return Ok(Vec::new());
        };
        let (range, key_at) = due_range(space, until);
        let rows = table.range(range.start.as_slice()..range.end.as_slice())?;
        rows.take(rows_max)
            .map(|row| Ok(row?.0.value().get(key_at..).unwrap_or_default().to_vec()))
            .collect()
    }

    fn due_keys(
        &self,
        space: Space,
        until: u64,
        each_max: usize,
        visit: &mut VisitRow<'_>,
    ) -> Result<(), RowFault> {
        let Some(table) = self.0.open(DUE)? else {
            return Ok(());
        };
        let (range, key_at) = due_range(space, until);
        let mut shown: HashMap<Vec<u8>, usize> = HashMap::new();
        for row in table.range(range.start.as_slice()..range.end.as_slice())? {
            let indexed = row?.0;
            let key = indexed.value().get(key_at..).unwrap_or_default();
            let partition = partition_of(key).unwrap_or_default();
            let of_partition = match shown.get_mut(partition) {
                Some(known) => known,
                None => shown.entry(partition.to_vec()).or_default(),
            };
            if *of_partition < each_max {
                *of_partition += 1;
                if visit(key)?.is_break() {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Which part of the index leads to the rows of a space that are due before a time, and where the key begins in it.
fn due_range(space: Space, until: u64) -> (Range<Vec<u8>>, usize) {
    let from = indexed(space, &[]);
    let key_at = from.len() + size_of::<u64>();
    (from..indexed(space, &until.to_be_bytes()), key_at)
}

/// A stored value, in its parts.
struct StoredRow<'v> {
    due: Option<u64>,
    alias: Option<&'v [u8]>,
    value: &'v [u8],
}

impl<'v> StoredRow<'v> {
    /// What [`StoredRow::write`] wrote.
    fn read(stored: &'v [u8]) -> Self {
        let (flags, mut rest) = stored.split_first().map_or((0, stored), |(f, r)| (*f, r));
        let mut due = None;
        if flags & WITH_DUE != 0
            && let Some((bytes, after)) = rest.split_first_chunk()
        {
            (due, rest) = (Some(u64::from_be_bytes(*bytes)), after);
        }
        let mut alias = None;
        if flags & WITH_ALIAS != 0
            && let Some((bytes, after)) = rest.split_first_chunk()
            && let Some((bytes, after)) = after.split_at_checked(u16::from_be_bytes(*bytes).into())
        {
            (alias, rest) = (Some(bytes), after);
        }
        Self {
            due,
            alias,
            value: rest,
        }
    }

    /// As it is stored.
    fn write(row: &Row) -> Vec<u8> {
        let mut stored = Vec::with_capacity(row.value.len() + 48);
        let due = row.due.map_or(0, |_| WITH_DUE);
        stored.push(due | row.alias.as_ref().map_or(0, |_| WITH_ALIAS));
        stored.extend(row.due.into_iter().flat_map(u64::to_be_bytes));
        if let Some(alias) = &row.alias {
            let length = u16::try_from(alias.len()).unwrap_or(u16::MAX);
            stored.extend(length.to_be_bytes());
            stored.extend(alias.iter().take(length.into()));
        }
        stored.extend(&row.value);
        stored
    }
}

/// Where a row was indexed.
#[derive(Default)]
struct RowIndexes {
    due: Option<u64>,
    alias: Option<Vec<u8>>,
}

impl RowIndexes {
    fn of(stored: &[u8]) -> Self {
        let StoredRow { due, alias, .. } = StoredRow::read(stored);
        Self {
            due,
            alias: alias.map(<[u8]>::to_vec),
        }
    }
}

/// Makes changes of rows.
pub(super) fn write(transaction: &WriteTransaction, writes: &[RowWrite]) -> Result<(), RowFault> {
    for change in writes {
        let (space, key) = (change.name().space(), change.name().key());
        let mut table: Table<'_, Bytes, Bytes> =
            transaction.open_table(TableDefinition::new(space.name()))?;
        let (old, new) = match change {
            RowWrite::Put(row) => {
                let stored = StoredRow::write(row);
                let old = table.insert(key, stored.as_slice())?;
                let new = RowIndexes {
                    due: row.due,
                    alias: row.alias.clone(),
                };
                (old.map(|old| RowIndexes::of(old.value())), new)
            }
            RowWrite::Delete(_) => {
                let old = table.remove(key)?;
                (
                    old.map(|old| RowIndexes::of(old.value())),
                    RowIndexes::default(),
                )
            }
        };
        index(transaction, space, key, &old.unwrap_or_default(), &new)?;
    }
    Ok(())
}

/// Lets the indexes lead to a row as it is now.
fn index(
    transaction: &WriteTransaction,
    space: Space,
    key: &[u8],
    old: &RowIndexes,
    new: &RowIndexes,
) -> Result<(), RowFault> {
    if old.due != new.due {
        let mut table = transaction.open_table(DUE)?;
        let name = |due: u64| {
            let mut name = indexed(space, &due.to_be_bytes());
            name.extend(key);
            name
        };
        if let Some(due) = old.due {
            table.remove(name(due).as_slice())?;
        }
        if let Some(due) = new.due {
            table.insert(name(due).as_slice(), [].as_slice())?;
        }
    }
    if old.alias != new.alias {
        let mut table = transaction.open_table(ALIASES)?;
        if let Some(alias) = &old.alias {
            let alias = indexed(space, alias);
            // Another row may have taken it since.
            let leads_here = table
                .get(alias.as_slice())?
                .is_some_and(|leads_to| leads_to.value() == key);
            if leads_here {
                table.remove(alias.as_slice())?;
            }
        }
        if let Some(alias) = &new.alias {
            table.insert(indexed(space, alias).as_slice(), key)?;
        }
    }
    Ok(())
}

/// A key of an index, which leads to rows of all spaces.
fn indexed(space: Space, key: &[u8]) -> Vec<u8> {
    let name = space.name().as_bytes();
    let mut indexed = Vec::with_capacity(name.len() + 1 + key.len() + 64);
    indexed.extend(name);
    indexed.push(0);
    indexed.extend(key);
    indexed
}

#[cfg(test)]
mod tests {
    use redb::{Database, backends::InMemoryBackend};

    use super::*;
    use crate::records::rows::RowName;

    #[test]
    fn an_alias_that_another_row_took_stays_with_it() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new());
        let transaction = database.expect("a database").begin_write();
        let transaction = transaction.expect("a transaction");
        let space = Space::new("tests");
        let row = |partition: &str, value| {
            Row::bytes(RowName::of(space, partition), vec![value]).alias(b"alias")
        };
        let both = [row("a", 1).into(), row("b", 2).into()];
        write(&transaction, &both).expect("written");
        let gone = RowWrite::Delete(RowName::of(space, "a"));
        write(&transaction, &[gone]).expect("written");
        let found: &mut dyn Reads = &mut TransactionRows(&transaction);
        let found = found.one(RowQuery::Alias(space, b"alias"), |value| Ok(value.to_vec()));
        assert_eq!(found.expect("readable"), Some(vec![2]));
    }
}
