//! An engine in memory that is as awkward as one that stands behind a network: it shows a rule nothing that it has not fetched,
//! lets others run whenever it is asked, and on request delays, fails or repeats.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::Mutex as AsyncMutex;

use crate::records::rows::{Reads, RowFault, RowName, RowQuery, RowRange, Space, VisitRow, decide};
use crate::records::tests::table::RowTable;
use crate::stores::StoreError;
use crate::stores::engine::{CHANGES_AT_ONCE_MAX, ChangeRule};

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
    /// What was asked for to be changed, several changes at once as one.
    asked: AtomicUsize,
}

impl MemoryEngine {
    pub(in crate::stores) fn new(mishaps: Mishaps, seed: u64) -> Arc<Self> {
        Arc::new(Self {
            rows: Mutex::default(),
            partitions: Mutex::default(),
            mishaps,
            random: Mutex::new(SmallRng::seed_from_u64(seed)),
            asked: AtomicUsize::new(0),
        })
    }

    pub(in crate::stores) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
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

    pub(in crate::stores) async fn change<T: Send + 'static>(
        self: &Arc<Self>,
        partition: &str,
        mut rule: impl ChangeRule<T>,
        after: impl FnOnce() + Send + 'static,
    ) -> Result<T, StoreError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let (engine, partition) = (Arc::clone(self), partition.to_owned());
        let_run(async move {
            let changed = engine.change_one(&partition, &mut rule).await;
            after();
            changed
        })
        .await
    }

    pub(in crate::stores) async fn change_each<T: Send + 'static>(
        self: &Arc<Self>,
        changes: Vec<(String, impl ChangeRule<T>)>,
    ) -> Result<Vec<Result<T, RowFault>>, StoreError> {
        assert!(changes.len() <= CHANGES_AT_ONCE_MAX, "{}", changes.len());
        self.asked.fetch_add(1, Ordering::Relaxed);
        let engine = Arc::clone(self);
        let_run(async move {
            let mut made = Vec::with_capacity(changes.len());
            for (partition, mut rule) in changes {
                match engine.change_one(&partition, &mut rule).await {
                    Ok(outcome) => made.push(Ok(outcome)),
                    Err(StoreError::Rows(fault)) => made.push(Err(fault)),
                    Err(error) => return Err(error),
                }
            }
            Ok(made)
        })
        .await
    }

    async fn change_one<T>(
        &self,
        partition: &str,
        rule: &mut impl ChangeRule<T>,
    ) -> Result<T, StoreError> {
        if self.happens(self.mishaps.fails) {
            return Err(StoreError::Ended);
        }
        let mut told = self.make(partition, rule).await?;
        if self.happens(self.mishaps.repeats) {
            self.let_others_run().await;
            told = self.make(partition, rule).await?;
        }
        if self.happens(self.mishaps.is_unheard) {
            return Err(StoreError::Ended);
        }
        Ok(told)
    }

    async fn make<T>(
        &self,
        partition: &str,
        rule: &mut impl ChangeRule<T>,
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

/// Does something to its end, also where nobody waits for it any more.
async fn let_run<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    #[expect(
        clippy::disallowed_methods,
        reason = "a test's tasks end with its runtime"
    )]
    tokio::spawn(work).await.expect("no rule panics")
}

/// A question that was asked.
#[derive(PartialEq, Eq)]
enum AskedRows {
    Named(RowName),
    Alias(Space, Vec<u8>),
    Range(RowRange),
    Keys(RowRange),
    Due(Space, u64, usize),
    DueKeys(Space, u64, usize),
}

impl AskedRows {
    fn of(query: RowQuery<'_>) -> Self {
        match query {
            RowQuery::Named(name) => Self::Named(name.clone()),
            RowQuery::Alias(space, alias) => Self::Alias(space, alias.to_vec()),
            RowQuery::Range(range) => Self::Range(range.clone()),
            RowQuery::Keys(range) => Self::Keys(range.clone()),
            RowQuery::Due(space, until, rows_max) => Self::Due(space, until, rows_max),
            RowQuery::DueKeys(space, until, each_max) => Self::DueKeys(space, until, each_max),
        }
    }

    fn query(&self) -> RowQuery<'_> {
        match self {
            Self::Named(name) => RowQuery::Named(name),
            Self::Alias(space, alias) => RowQuery::Alias(*space, alias),
            Self::Range(range) => RowQuery::Range(range),
            Self::Keys(range) => RowQuery::Keys(range),
            Self::Due(space, until, rows_max) => RowQuery::Due(*space, *until, *rows_max),
            Self::DueKeys(space, until, each_max) => RowQuery::DueKeys(*space, *until, *each_max),
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
        let values = self.all.shown(asked.query());
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
