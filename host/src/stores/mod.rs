//! What outlives the process: keys and the instance's own secret.
//!
//! One engine today, embedded. Records name their owner first and every write is idempotent by id, so that a shared engine
//! can follow. Must not know what a record means.

mod embedded;
mod key_cache;

pub(crate) use embedded::{Store, StoreError};
