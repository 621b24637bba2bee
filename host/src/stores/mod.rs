//! What outlives the process: keys, the life of each plugin, and the instance's own secret.
//!
//! One engine today, embedded. Records name their owner first and every write is idempotent by id, so that a shared engine
//! can follow. Must not know what a record means.

mod embedded;
mod key_cache;
mod plugins;

pub(crate) use embedded::{Store, StoreError};
pub(crate) use plugins::KeptEvent;
