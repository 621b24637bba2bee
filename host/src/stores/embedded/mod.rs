//! The embedded engine: one redb file, owned by one process. Must not know what a row means.

pub(super) mod folder;
mod rows;
mod upgrade;
mod writer;

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use redb::{Database, DatabaseError, ReadableDatabase as _, WriteTransaction};

use self::folder::Unfit;
use self::rows::TransactionRows;
use self::writer::Writer;
use super::engine::{ChangeRule, StoreError};
use crate::base::tasks::blocking;
use crate::records::rows::{Reads, RowFault, decide};

const FILE: &str = "switchbay.redb";

impl<E: Into<redb::Error>> From<E> for RowFault {
    fn from(error: E) -> Self {
        Self::Engine(Arc::new(error.into()))
    }
}

/// The open file. Reads are snapshots.
pub(in crate::stores) struct EmbeddedEngine {
    // Before the database, so that everything queued is written before it is closed.
    writer: Writer,
    database: Arc<Database>,
}

/// Makes sure that a data folder, which is made where it is missing, is this user's alone: whoever serves from it runs the
/// code that is there.
pub(super) fn secure(folder: &Path) -> Result<(), StoreError> {
    folder::make(folder)
        .map_err(Unfit::Io)
        .and_then(|()| folder::secure(folder, FILE))
        .map_err(|unfit| match unfit {
            Unfit::Fault(fault) => fault.into(),
            Unfit::Io(error) => unusable(folder, error),
        })
}

fn unusable(folder: &Path, error: std::io::Error) -> StoreError {
    StoreError::Folder {
        folder: folder.to_owned(),
        source: Arc::new(error),
    }
}

impl EmbeddedEngine {
    /// Opens the file in a data folder, where there is one.
    pub(super) fn open_existing(folder: &Path) -> Result<Self, StoreError> {
        if folder.join(FILE).exists() {
            return Self::open(folder);
        }
        let folder = folder.to_owned();
        Err(StoreError::Missing { folder })
    }

    /// Opens or creates the file in a data folder.
    pub(super) fn open(folder: &Path) -> Result<Self, StoreError> {
        folder::make(folder).map_err(|error| unusable(folder, error))?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(folder.join(FILE))
            .map_err(|error| unusable(folder, error))?;
        let database = Database::builder().create_file(file);
        let database = database.map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => StoreError::InUse {
                folder: folder.to_owned(),
            },
            other => StoreError::Rows(other.into()),
        })?;
        upgrade(&database)?;
        let database = Arc::new(database);
        let writer =
            Writer::start(Arc::clone(&database)).map_err(|error| unusable(folder, error))?;
        Ok(Self { writer, database })
    }

    pub(super) fn view<T>(
        &self,
        rule: impl FnMut(&mut dyn Reads) -> Result<T, RowFault>,
    ) -> Result<T, StoreError> {
        Ok(read(&self.database, rule)?)
    }

    pub(super) async fn survey<T: Send + 'static>(
        &self,
        rule: impl FnMut(&mut dyn Reads) -> Result<T, RowFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let database = Arc::clone(&self.database);
        Ok(blocking(move || read(&database, rule)).await?)
    }

    pub(super) async fn change<T: Send + 'static>(
        &self,
        partition: &str,
        mut rule: impl ChangeRule<T>,
        after: impl FnOnce() + Send + 'static,
    ) -> Result<T, StoreError> {
        let partition = partition.to_owned();
        let change = move |transaction: &WriteTransaction| make(transaction, &partition, &mut rule);
        self.writer.write(1, change, after).await
    }

    pub(super) async fn change_each<T: Send + 'static>(
        &self,
        mut changes: Vec<(String, impl ChangeRule<T>)>,
    ) -> Result<Vec<Result<T, RowFault>>, StoreError> {
        let count = changes.len();
        let change = move |transaction: &WriteTransaction| {
            let made = changes.iter_mut().map(|(partition, rule)| {
                match make(transaction, partition, rule) {
                    // Something may have been written: the transaction is thrown away.
                    Err(fault @ RowFault::Engine(_)) => Err(fault),
                    made => Ok(made),
                }
            });
            made.collect()
        };
        self.writer.write(count, change, || {}).await
    }

    pub(super) fn is_healthy(&self) -> bool {
        !self.writer.fails() && self.database.begin_read().is_ok()
    }
}

/// Runs the rule of a change within a transaction, and writes what it decides.
fn make<T>(
    transaction: &WriteTransaction,
    partition: &str,
    rule: &mut impl ChangeRule<T>,
) -> Result<T, RowFault> {
    let decision = decide(partition, &mut TransactionRows(transaction), rule)?;
    rows::write(transaction, &decision.writes)?;
    Ok(decision.outcome)
}

/// Makes rows of what a store of an earlier format holds.
fn upgrade(database: &Database) -> Result<(), RowFault> {
    let transaction = database.begin_write()?;
    if upgrade::upgrade(&transaction)? {
        Ok(transaction.commit()?)
    } else {
        Ok(transaction.abort()?)
    }
}

fn read<T>(
    database: &Database,
    mut rule: impl FnMut(&mut dyn Reads) -> Result<T, RowFault>,
) -> Result<T, RowFault> {
    let transaction = database.begin_read()?;
    rule(&mut TransactionRows(&transaction))
}
