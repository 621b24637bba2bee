//! The one writer: a thread that takes changes from a bounded queue and commits all that wait as one group.
//!
//! A commit waits for the disk, so whatever arrives meanwhile shares the next one. A caller hears of its change when the
//! group is durable, never before. A change that fails does not spoil its group: the transaction is thrown away and the
//! others are made again, which is why a change must be able to run twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use redb::{Database, Durability, WriteTransaction};
use tokio::sync::{mpsc, oneshot};

use crate::records::rows::RowFault;
use crate::stores::engine::StoreError;

/// Changes that may wait for the writer; their callers wait in turn when it is full.
const QUEUE_MAX: usize = 4096;
/// Changes in one commit; those that are asked for together are not torn apart.
const GROUP_MAX: usize = 256;

/// The way to the writer. Dropping it ends the thread after everything that was queued.
pub(super) struct Writer {
    /// `None` only while this is dropped.
    queue: Option<mpsc::Sender<Box<dyn QueuedChange>>>,
    thread: Option<JoinHandle<()>>,
    /// Whether the engine failed at the last group.
    fails: Arc<AtomicBool>,
}

/// A change with its caller, the type of its value forgotten.
trait QueuedChange: Send {
    /// How many changes it is.
    fn count(&self) -> usize;
    /// Makes the change within a transaction; may be called again with another when that one was thrown away.
    fn make(&mut self, transaction: &WriteTransaction) -> Result<(), RowFault>;
    /// Tells the caller, once.
    fn tell(self: Box<Self>, committed: Result<(), StoreError>);
}

struct WaitingWrite<T, F, A> {
    count: usize,
    change: F,
    made: Option<T>,
    after: A,
    caller: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F, A> QueuedChange for WaitingWrite<T, F, A>
where
    T: Send,
    F: FnMut(&WriteTransaction) -> Result<T, RowFault> + Send,
    A: FnOnce() + Send,
{
    fn count(&self) -> usize {
        self.count
    }

    fn make(&mut self, transaction: &WriteTransaction) -> Result<(), RowFault> {
        self.made = Some((self.change)(transaction)?);
        Ok(())
    }

    fn tell(self: Box<Self>, committed: Result<(), StoreError>) {
        let made = self.made;
        (self.after)();
        let told = committed.and_then(|()| made.ok_or(StoreError::Ended));
        // A caller that went away needs no answer; its change stands.
        drop(self.caller.send(told));
    }
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(database: Arc<Database>) -> std::io::Result<Self> {
        let (queue, changes) = mpsc::channel(QUEUE_MAX);
        let fails = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&fails);
        let thread = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || write(&database, changes, &told))?;
        Ok(Self {
            queue: Some(queue),
            thread: Some(thread),
            fails,
        })
    }

    /// Whether what was written last could not be: an engine that failed stays so until the store is opened again.
    pub(super) fn fails(&self) -> bool {
        self.fails.load(Ordering::Relaxed)
    }

    /// Makes a change, which counts as so many, and gives back its value when it is durable. The writer runs `after` between the
    /// end of the commit, successful or not, and telling the caller of it. A caller that is dropped meanwhile undoes nothing.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        count: usize,
        change: impl FnMut(&WriteTransaction) -> Result<T, RowFault> + Send + 'static,
        after: impl FnOnce() + Send + 'static,
    ) -> Result<T, StoreError> {
        let (caller, told) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or(StoreError::Ended)?;
        queue
            .send(Box::new(WaitingWrite {
                count,
                change,
                made: None,
                after,
                caller,
            }))
            .await
            .map_err(|_| StoreError::Ended)?;
        told.await.unwrap_or(Err(StoreError::Ended))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was told by its panic hook.
            drop(thread.join());
        }
    }
}

fn write(
    database: &Database,
    mut changes: mpsc::Receiver<Box<dyn QueuedChange>>,
    fails: &AtomicBool,
) {
    while let Some(first) = changes.blocking_recv() {
        let mut count = first.count();
        let mut group = vec![first];
        while count < GROUP_MAX
            && let Ok(next) = changes.try_recv()
        {
            count += next.count();
            group.push(next);
        }
        commit_group(database, group, fails);
    }
}

fn commit_group(database: &Database, mut group: Vec<Box<dyn QueuedChange>>, fails: &AtomicBool) {
    while !group.is_empty() {
        let committed = commit(database, &mut group);
        // Before whoever waits is told.
        fails.store(
            committed.as_ref().is_err_and(Failed::is_the_engines),
            Ordering::Relaxed,
        );
        match committed {
            Ok(()) => return group.into_iter().for_each(|change| change.tell(Ok(()))),
            Err(Failed::One(index, error)) => group.remove(index).tell(Err(error.into())),
            Err(Failed::All(error)) => {
                return group
                    .into_iter()
                    .for_each(|change| change.tell(Err(error.clone().into())));
            }
        }
    }
}

enum Failed {
    /// The change at this place; the others were not looked at or are undone.
    One(usize, RowFault),
    All(RowFault),
}

impl Failed {
    fn is_the_engines(&self) -> bool {
        let (Self::One(_, error) | Self::All(error)) = self;
        matches!(error, RowFault::Engine(_))
    }
}

fn commit(database: &Database, group: &mut [Box<dyn QueuedChange>]) -> Result<(), Failed> {
    let all = |error: redb::Error| Failed::All(error.into());
    let mut transaction = database.begin_write().map_err(|error| all(error.into()))?;
    transaction
        .set_durability(Durability::Immediate)
        .map_err(|error| all(error.into()))?;
    for (index, change) in group.iter_mut().enumerate() {
        // A transaction that is dropped without a commit is undone.
        change
            .make(&transaction)
            .map_err(|error| Failed::One(index, error))?;
    }
    transaction.commit().map_err(|error| all(error.into()))
}

#[cfg(test)]
mod tests {
    use redb::{ReadableDatabase as _, TableDefinition};

    use super::*;

    const TABLE: TableDefinition<'_, u64, u64> = TableDefinition::new("numbers");

    fn insert(transaction: &WriteTransaction, number: u64) -> Result<(), RowFault> {
        let mut table = transaction.open_table(TABLE)?;
        table.insert(number, number)?;
        Ok(())
    }

    #[tokio::test]
    async fn a_change_that_fails_leaves_the_others_of_its_group() {
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let database = Arc::new(Database::create(folder.path().join("file")).expect("a database"));
        let writer = Writer::start(Arc::clone(&database)).expect("a thread");
        let changes = (0..600_u64).map(|number| {
            let change = move |transaction: &WriteTransaction| {
                insert(transaction, number)?;
                match number % 7 {
                    0 => Err(RowFault::TwoPartitions),
                    _ => Ok(number),
                }
            };
            writer.write(1, change, || {})
        });
        let told = futures::future::join_all(changes).await;
        for (number, told) in (0_u64..).zip(told) {
            assert_eq!(told.ok(), (number % 7 != 0).then_some(number));
        }
        drop(writer);
        let transaction = database.begin_read().expect("a transaction");
        let table = transaction.open_table(TABLE).expect("the table");
        for number in 0..600 {
            assert_eq!(
                table.get(number).expect("readable").is_some(),
                number % 7 != 0,
                "{number}"
            );
        }
    }
}
