//! What outlives the process: keys, accounts, counts of calls, credits, jobs, the life of each plugin and its records, and the
//! instance's own secret.
//!
//! One engine today, embedded. Records name their owner first, no write touches two owners, and every write is idempotent
//! by id, so that a shared engine can follow. Time is passed in. Must not know what a record means.

mod accounts;
mod audit;
mod cache;
mod embedded;
mod folder;
mod idempotency;
mod jobs;
mod keys;
mod ledger;
mod plugins;
mod retention;
mod state;
mod usage;
mod writer;

pub(crate) use self::embedded::{Store, StoreError};
pub(crate) use self::jobs::{Earlier, ItemPage, Keep, KeepOutcome};
pub(crate) use self::ledger::LedgerEntry;
pub(crate) use self::plugins::KeptEvent;
pub(crate) use self::state::{ExpectedVersion, KeptRecord, ListedRecord, WriteRefusal};
