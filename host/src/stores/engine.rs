//! The contract of an engine: it keeps rows, shows them to rules, and writes what rules decide.
//!
//! Two things are asked of it:
//!
//! - `view` runs a rule on the rows of one moment and tells its outcome.
//! - `change` runs a rule on the rows of a partition, alone among all changes of it, and writes what it decides: all of it,
//!   durably, before the outcome is told, or nothing. An engine that does not know whether a change was made may make it again;
//!   the outcome of the last time is told. One that is told to have failed may have been made: whoever needs to know makes it
//!   again. Neither changes anything, since each change is idempotent by an id in it.
//!
//! No change touches two partitions, so that a shared engine may lock one. Changes of several partitions that are asked for
//! together (`change_each`) may share a queue's place and a flush, or be made one after another: each stands or falls by
//! itself. Must not know what a row means.

use std::path::PathBuf;
use std::sync::Arc;

use super::embedded::EmbeddedEngine;
use super::embedded::folder::FolderFault;
#[cfg(test)]
use super::tests::memory::MemoryEngine;
use crate::records::instance::FORMAT;
use crate::records::rows::{Decision, Reads, RowFault};

/// A store that cannot be opened, read or written.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("another switchbay process is using the data folder {folder}")]
    InUse { folder: PathBuf },
    #[error("there is no store in {folder}; name the server's data folder with --data")]
    Missing { folder: PathBuf },
    #[error("cannot use the data folder {folder}: {source}")]
    Folder {
        folder: PathBuf,
        source: Arc<std::io::Error>,
    },
    #[error(
        "the store was written by a later version of switchbay (format {found}; this one reads up to {FORMAT}); run that version, \
         or restore the backup of before"
    )]
    Newer { found: u32 },
    #[error(transparent)]
    Unsafe(#[from] FolderFault),
    #[error(transparent)]
    Rows(#[from] RowFault),
    #[error("the store's writer has stopped")]
    Ended,
}

/// The rule of a change.
pub(super) trait ChangeRule<T>:
    FnMut(&mut dyn Reads) -> Result<Decision<T>, RowFault> + Send + 'static
{
}

impl<T, R> ChangeRule<T> for R where
    R: FnMut(&mut dyn Reads) -> Result<Decision<T>, RowFault> + Send + 'static
{
}

/// Changes that are asked for together at most: what shares a flush with them waits for all of them.
pub(super) const CHANGES_AT_ONCE_MAX: usize = 256;

/// The engine that a store uses.
pub(super) enum Engine {
    Embedded(EmbeddedEngine),
    #[cfg(test)]
    Memory(Arc<MemoryEngine>),
}

impl Engine {
    /// The outcome of a rule that reads a bounded few rows of one moment.
    pub(super) async fn view<T: Send>(
        &self,
        rule: impl FnMut(&mut dyn Reads) -> Result<T, RowFault> + Send,
    ) -> Result<T, StoreError> {
        match self {
            Self::Embedded(engine) => engine.view(rule),
            #[cfg(test)]
            Self::Memory(engine) => engine.view(rule).await,
        }
    }

    /// The same for a rule that may read many rows, away from the threads that serve.
    pub(super) async fn survey<T: Send + 'static>(
        &self,
        rule: impl FnMut(&mut dyn Reads) -> Result<T, RowFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        match self {
            Self::Embedded(engine) => engine.survey(rule).await,
            #[cfg(test)]
            Self::Memory(engine) => engine.view(rule).await,
        }
    }

    /// Writes what a rule decides on the rows of one partition, and gives back its outcome once that is durable. `after` runs
    /// once, when the change was made or has failed and before the caller is told which. A caller that went away stops neither.
    pub(super) async fn change<T: Send + 'static>(
        &self,
        partition: &str,
        rule: impl ChangeRule<T>,
        after: impl FnOnce() + Send + 'static,
    ) -> Result<T, StoreError> {
        match self {
            Self::Embedded(engine) => engine.change(partition, rule, after).await,
            #[cfg(test)]
            Self::Memory(engine) => engine.change(partition, rule, after).await,
        }
    }

    /// Makes a change of each of some partitions, at most [`CHANGES_AT_ONCE_MAX`], and gives back their outcomes in the same
    /// order. A rule that fails fails alone. Where the engine fails, any of them may have been made.
    pub(super) async fn change_each<T: Send + 'static>(
        &self,
        changes: Vec<(String, impl ChangeRule<T>)>,
    ) -> Result<Vec<Result<T, RowFault>>, StoreError> {
        match self {
            Self::Embedded(engine) => engine.change_each(changes).await,
            #[cfg(test)]
            Self::Memory(engine) => engine.change_each(changes).await,
        }
    }

    /// Whether it can be read, and what was written last could be.
    pub(super) fn is_healthy(&self) -> bool {
        match self {
            Self::Embedded(engine) => engine.is_healthy(),
            #[cfg(test)]
            Self::Memory(_) => true,
        }
    }
}
