//! Rows: what an engine keeps, and how a rule asks for them.
//!
//! A row has a name and a value, perhaps a time at which it is due, and perhaps an alias by which it is found too. Its name begins
//! with its partition: whose it is. A rule is a pure function: it asks for rows through [`Reads`] and says what is to be
//! written. An engine may run a rule as often as it must, with or without its writes taking place, so a rule does nothing but
//! ask and decide. All that the rule of a change touches is of one partition. Knows no engine, and not what a value means.

mod name;

use std::error::Error;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use self::name::{RowName, RowRange, Space, partition_of};

/// A row as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) name: RowName,
    pub(crate) value: Vec<u8>,
    /// When it is to be looked at again, in the unit of its space.
    pub(crate) due: Option<u64>,
    /// Another name of it, unique in its space.
    pub(crate) alias: Option<Vec<u8>>,
}

/// A change of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RowWrite {
    /// In the place of what is there.
    Put(Row),
    /// Nothing where it is not there.
    Delete(RowName),
}

/// What a rule decided: what is written, all or nothing, and what is told once it is.
#[derive(Debug)]
pub(crate) struct Decision<T> {
    pub(crate) writes: Vec<RowWrite>,
    pub(crate) outcome: T,
}

/// Which rows are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowQuery<'q> {
    /// The one with this name.
    Named(&'q RowName),
    /// The one with this alias.
    Alias(Space, &'q [u8]),
    /// Those in a range, in the order of their names.
    Range(&'q RowRange),
    /// The keys of those in a range, in the place of their values.
    Keys(&'q RowRange),
    /// Those that are due before a time, the earliest first, at most so many.
    Due(Space, u64, usize),
    /// The keys of those, in the place of their values, at most so many of each partition: for a sweep in which nobody's rows
    /// wait for another's, and that reads no value.
    DueKeys(Space, u64, usize),
}

/// Why rows could not be asked for.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum RowFault {
    /// The engine fetches what was asked for, and then runs the rule again.
    #[error("a row has not been fetched yet")]
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the embedded engine fetches nothing")
    )]
    Unfetched,
    #[error("a change of the rows of one partition touches those of another")]
    TwoPartitions,
    #[error("a stored record is unreadable: {0}")]
    Record(#[source] Arc<serde_json::Error>),
    #[error(
        "a record in `{table}` of a store of an earlier format cannot be read ({source}); nothing was changed: run the version \
         that wrote it, or restore a backup"
    )]
    Upgrade {
        table: String,
        source: Arc<serde_json::Error>,
    },
    #[error("the store failed: {0}")]
    Engine(#[source] Arc<dyn Error + Send + Sync>),
}

/// What is done with the value (or key, where that is asked for) of each row that is found: reading goes on, or is enough.
pub(crate) type VisitRow<'v> = dyn FnMut(&[u8]) -> Result<ControlFlow<()>, RowFault> + 'v;

/// The rows of one moment, as an engine shows them to a rule.
pub(crate) trait Reads {
    /// Shows the rows that are asked for, until `visit` has enough.
    fn ask(&mut self, query: RowQuery<'_>, visit: &mut VisitRow<'_>) -> Result<(), RowFault>;
}

impl dyn Reads + '_ {
    /// What `read` makes of the one row that is asked for; `None` where there is none.
    pub(crate) fn one<T>(
        &mut self,
        query: RowQuery<'_>,
        mut read: impl FnMut(&[u8]) -> Result<T, RowFault>,
    ) -> Result<Option<T>, RowFault> {
        let mut found = None;
        self.ask(query, &mut |value| {
            found = Some(read(value)?);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// Whether there is a row with this name.
    pub(crate) fn has(&mut self, name: &RowName) -> Result<bool, RowFault> {
        let found = self.one(RowQuery::Named(name), |_| Ok(()))?;
        Ok(found.is_some())
    }

    /// The record in the row with this name.
    pub(crate) fn record<T: DeserializeOwned>(
        &mut self,
        name: &RowName,
    ) -> Result<Option<T>, RowFault> {
        self.one(RowQuery::Named(name), decode)
    }

    /// The names of the rows in a range.
    pub(crate) fn names(&mut self, range: &RowRange) -> Result<Vec<RowName>, RowFault> {
        let mut names = Vec::new();
        self.ask(RowQuery::Keys(range), &mut |key| {
            names.extend(RowName::read(range.space(), key));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(names)
    }

    /// The names of the rows that are due before a time, the earliest first, at most so many of each partition.
    pub(crate) fn due_names(
        &mut self,
        space: Space,
        until: u64,
        each_max: usize,
    ) -> Result<Vec<RowName>, RowFault> {
        let mut names = Vec::new();
        self.ask(RowQuery::DueKeys(space, until, each_max), &mut |key| {
            names.extend(RowName::read(space, key));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(names)
    }

    /// The records in the rows that are asked for, without those that cannot be read; and how many these are.
    pub(crate) fn readable<T: DeserializeOwned>(
        &mut self,
        query: RowQuery<'_>,
    ) -> Result<(Vec<T>, usize), RowFault> {
        let (mut records, mut unreadable) = (Vec::new(), 0);
        self.ask(query, &mut |value| {
            let record = decode(value).map(Some);
            records.extend(record.or_else(counted_unreadable(&mut unreadable))?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok((records, unreadable))
    }

    /// The records in the rows that are asked for.
    pub(crate) fn records<T: DeserializeOwned>(
        &mut self,
        query: RowQuery<'_>,
    ) -> Result<Vec<T>, RowFault> {
        let mut records = Vec::new();
        self.ask(query, &mut |value| {
            records.push(decode(value)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(records)
    }
}

impl Row {
    /// A row with a value of bytes.
    pub(crate) fn bytes(name: RowName, value: Vec<u8>) -> Self {
        Self {
            name,
            value,
            due: None,
            alias: None,
        }
    }

    /// A row with a record.
    pub(crate) fn record(name: RowName, record: &impl Serialize) -> Result<Self, RowFault> {
        Ok(Self::bytes(name, encode(record)?))
    }

    /// The same, due at a time.
    pub(crate) fn due(self, at: u64) -> Self {
        let due = Some(at);
        Self { due, ..self }
    }

    /// The same, found by an alias too.
    pub(crate) fn alias(self, alias: &[u8]) -> Self {
        let alias = Some(alias.to_vec());
        Self { alias, ..self }
    }
}

impl RowWrite {
    /// The row that is changed.
    pub(crate) fn name(&self) -> &RowName {
        match self {
            Self::Put(row) => &row.name,
            Self::Delete(name) => name,
        }
    }
}

impl From<Row> for RowWrite {
    fn from(row: Row) -> Self {
        Self::Put(row)
    }
}

impl<T> Decision<T> {
    /// Nothing is written.
    pub(crate) fn unchanged(outcome: T) -> Self {
        Self::write(outcome, Vec::new())
    }

    pub(crate) fn write(outcome: T, writes: Vec<RowWrite>) -> Self {
        Self { writes, outcome }
    }
}

/// Runs the rule of a change on the rows of its partition, and on no others.
pub(crate) fn decide<T>(
    partition: &str,
    read: &mut dyn Reads,
    rule: &mut impl FnMut(&mut dyn Reads) -> Result<Decision<T>, RowFault>,
) -> Result<Decision<T>, RowFault> {
    let partition = name::partition_key(partition);
    let mut read = PartitionRows {
        partition: &partition,
        read,
    };
    let decision = rule(&mut read)?;
    let is_its = |write: &RowWrite| write.name().partition() == partition;
    if decision.writes.iter().all(is_its) {
        Ok(decision)
    } else {
        Err(RowFault::TwoPartitions)
    }
}

/// The rows of one partition.
struct PartitionRows<'r> {
    partition: &'r [u8],
    read: &'r mut dyn Reads,
}

impl Reads for PartitionRows<'_> {
    fn ask(&mut self, query: RowQuery<'_>, visit: &mut VisitRow<'_>) -> Result<(), RowFault> {
        let partition = match query {
            RowQuery::Named(name) => Some(name.partition()),
            RowQuery::Range(range) | RowQuery::Keys(range) => range.partition(),
            RowQuery::Alias(..) | RowQuery::Due(..) | RowQuery::DueKeys(..) => None,
        };
        if partition == Some(self.partition) {
            self.read.ask(query, visit)
        } else {
            Err(RowFault::TwoPartitions)
        }
    }
}

/// Leaves a row out that cannot be read, and counts it: a sweep goes on with the others.
pub(crate) fn counted_unreadable<T>(
    unreadable: &mut usize,
) -> impl FnOnce(RowFault) -> Result<Option<T>, RowFault> {
    move |fault| match fault {
        RowFault::Record(_) => {
            *unreadable += 1;
            Ok(None)
        }
        RowFault::Unfetched
        | RowFault::TwoPartitions
        | RowFault::Upgrade { .. }
        | RowFault::Engine(_) => Err(fault),
    }
}

/// A record as a value.
pub(crate) fn encode(record: &impl Serialize) -> Result<Vec<u8>, RowFault> {
    serde_json::to_vec(record).map_err(unreadable)
}

/// The record in a value.
pub(crate) fn decode<T: DeserializeOwned>(value: &[u8]) -> Result<T, RowFault> {
    serde_json::from_slice(value).map_err(unreadable)
}

pub(crate) fn unreadable(error: serde_json::Error) -> RowFault {
    RowFault::Record(Arc::new(error))
}
