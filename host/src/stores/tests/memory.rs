//! An engine in memory that is as awkward as one that stands behind a network: it shows a rule nothing that it has not fetched,
//! lets others run whenever it is asked, and on request delays, fails or repeats.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::Mutex as AsyncMutex;

use crate::records::rows::{
    Decision, Reads, RowFault, RowName, RowQuery, RowRange, Space, VisitRow, decide,
};
use crate::records::tests::table::RowTable;
use crate::stores::StoreError;

/// What may go wrong with a change, each as often as one in so many; 0 is never.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::stores) struct Mishaps {
    /// Nothing is written, and an error is told.
    pub(in crate::stores) fails: u32,
    /// It is written, and an error is told.
    pub(in crate::stores) is_unheard: u32,
    /// It is made again after others had their turn.
    pub(in crate::stores) repeats: u32,
}

pub(in crate::stores) struct MemoryEngine {
    rows: Mutex<RowTable>,
    /// Of each partition, held over a change.
    partitions: Mutex<HashMap<String, Arc<AsyncMutex<()>>>>,
    mishaps: Mishaps,
    random: Mutex<SmallRng>,
}

impl MemoryEngine {
    pub(in crate::stores) fn new(mishaps: Mishaps, seed: u64) -> Self {
        Self {
            rows: Mutex::default(),
            partitions: Mutex::default(),
            mishaps,
            random: Mutex::new(SmallRng::seed_from_u64(seed)),
        }
    }

    pub(in crate::stores) async fn view<T>(
        &self,
        mut rule: impl FnMut(&mut dyn Reads) -> Result<T, RowFault>,
    ) -> Result<T, StoreError> {
        let mut fetched = FetchedRows::of(self.rows.lock().clone());
        loop {
            self.let_others_run().await;
            match rule(&mut fetched) {
                Err(RowFault::Unfetched) => fetched.fetch(),
                told => return Ok(told?),
            }
        }
    }

    pub(in crate::stores) async fn change<T>(
        &self,
        partition: &str,
        mut rule: impl FnMut(&mut dyn Reads) -> Result<Decision<T>, RowFault>,
    ) -> Result<T, StoreError> {
        if self.happens(self.mishaps.fails) {
            return Err(StoreError::Ended);
        }
        let mut told = self.make(partition, &mut rule).await?;
        if self.happens(self.mishaps.repeats) {
            self.let_others_run().await;
            told = self.make(partition, &mut rule).await?;
        }
        if self.happens(self.mishaps.is_unheard) {
            return Err(StoreError::Ended);
        }
        Ok(told)
    }

    async fn make<T>(
        &self,
        partition: &str,
        rule: &mut impl FnMut(&mut dyn Reads) -> Result<Decision<T>, RowFault>,
    ) -> Result<T, StoreError> {
        let lock = Arc::clone(
            self.partitions
                .lock()
                .entry(partition.to_owned())
                .or_default(),
        );
        let _held = lock.lock().await;
        let mut fetched = FetchedRows::of(self.rows.lock().clone());
        loop {
            self.let_others_run().await;
            match decide(partition, &mut fetched, rule) {
                Err(RowFault::Unfetched) => fetched.fetch(),
                Err(fault) => return Err(fault.into()),
                Ok(decision) => {
                    self.rows.lock().write(&decision.writes);
                    return Ok(decision.outcome);
                }
            }
        }
    }

    async fn let_others_run(&self) {
        let turns = self.random.lock().random_range(1..4);
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
    }

    fn happens(&self, one_in: u32) -> bool {
        one_in > 0 && self.random.lock().random_range(0..one_in) == 0
    }
}

/// A question that was asked.
#[derive(PartialEq, Eq)]
enum AskedRows {
    Named(RowName),
    Alias(Space, Vec<u8>),
    Range(RowRange),
    Due(Space, u64, usize),
}

impl AskedRows {
    fn of(query: RowQuery<'_>) -> Self {
        match query {
            RowQuery::Named(name) => Self::Named(name.clone()),
            RowQuery::Alias(space, alias) => Self::Alias(space, alias.to_vec()),
            RowQuery::Range(range) => Self::Range(range.clone()),
            RowQuery::Due(space, until, rows_max) => Self::Due(space, until, rows_max),
        }
    }

    fn query(&self) -> RowQuery<'_> {
        match self {
            Self::Named(name) => RowQuery::Named(name),
            Self::Alias(space, alias) => RowQuery::Alias(*space, alias),
            Self::Range(range) => RowQuery::Range(range),
            Self::Due(space, until, rows_max) => RowQuery::Due(*space, *until, *rows_max),
        }
    }
}

/// The rows that were fetched so far, of those of one moment.
struct FetchedRows {
    all: RowTable,
    fetched: Vec<(AskedRows, Vec<Vec<u8>>)>,
    missing: Option<AskedRows>,
}

impl FetchedRows {
    fn of(all: RowTable) -> Self {
        Self {
            all,
            fetched: Vec::new(),
            missing: None,
        }
    }

    /// Fetches what was asked for last.
    fn fetch(&mut self) {
        let asked = self.missing.take().expect("something was asked for");
        let rows = self.all.find(asked.query());
        let values = rows.into_iter().map(|row| row.value.clone()).collect();
        self.fetched.push((asked, values));
    }
}

impl Reads for FetchedRows {
    fn ask(&mut self, query: RowQuery<'_>, visit: &mut VisitRow<'_>) -> Result<(), RowFault> {
        let asked = AskedRows::of(query);
        let found = self.fetched.iter().find(|(fetched, _)| *fetched == asked);
        let Some((_, values)) = found else {
            self.missing = Some(asked);
            return Err(RowFault::Unfetched);
        };
        for value in values {
            if visit(value)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}
