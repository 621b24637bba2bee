//! How much of what is written may wait, in bytes: changes that hold a body of their own (a batch of records, a submission, an
//! item) before they are queued.
//!
//! Each owner has a share, and only then stands in the line of all, so that nobody's bodies keep another's waiting for long.
//! Small changes, those of paid calls among them, are bounded by the number that an engine queues, and never wait here.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What is smaller is not counted.
const SMALL_BYTES: usize = 4096;
/// Bytes of all that wait.
const ALL_BYTES: usize = 64 << 20;
/// Bytes of one owner's that wait. The largest change fits.
const OWNER_BYTES: usize = 8 << 20;
/// Owners by their hashes: whoever shares a line with another shares its bytes.
const LINES: usize = 64;

/// Room for the bodies that wait to be written.
pub(super) struct LargeWrites {
    lines: [Arc<Semaphore>; LINES],
    all: Arc<Semaphore>,
    hasher: RandomState,
}

/// Room that is taken until this is dropped.
pub(super) struct WriteRoom {
    _room: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

impl Default for LargeWrites {
    fn default() -> Self {
        Self {
            lines: std::array::from_fn(|_| Arc::new(Semaphore::new(OWNER_BYTES))),
            all: Arc::new(Semaphore::new(ALL_BYTES)),
            hasher: RandomState::new(),
        }
    }
}

impl LargeWrites {
    /// Waits for room for so many bytes of an owner's. It is to be dropped with the change, not by its caller, who may go away
    /// before.
    pub(super) async fn room(&self, owner: &str, bytes: usize) -> WriteRoom {
        if bytes < SMALL_BYTES {
            return WriteRoom { _room: None };
        }
        let line = usize::try_from(self.hasher.hash_one(owner) % LINES as u64).unwrap_or(0);
        let bytes = u32::try_from(bytes.min(OWNER_BYTES)).unwrap_or(u32::MAX);
        let of_owner = Arc::clone(&self.lines[line])
            .acquire_many_owned(bytes)
            .await;
        let of_all = Arc::clone(&self.all).acquire_many_owned(bytes).await;
        WriteRoom {
            _room: of_owner.ok().zip(of_all.ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn nobodys_bodies_keep_small_changes_or_anothers_waiting() {
        let writes = LargeWrites::default();
        let share = 1 << 20;
        let mut taken = Vec::new();
        while let Some(room) = writes.room("many", share).now_or_never() {
            taken.push(room);
        }
        assert_eq!(taken.len(), OWNER_BYTES / share);
        assert!(writes.room("many", 100).now_or_never().is_some());
        // One of these shares a line with the first.
        let others = ["a", "b", "c", "d"].map(|owner| writes.room(owner, share).now_or_never());
        assert!(others.iter().flatten().count() >= 3);
        taken.pop();
        assert!(writes.room("many", share).now_or_never().is_some());
        // More than a share has room when nothing else is there.
        drop(taken);
        assert!(writes.room("many", 1 << 30).now_or_never().is_some());
    }

    #[tokio::test]
    async fn all_bodies_together_are_bounded() {
        let writes = LargeWrites::default();
        let mut taken = Vec::new();
        for owner in 0..1000 {
            let room = writes.room(&owner.to_string(), OWNER_BYTES).now_or_never();
            taken.extend(room);
        }
        assert_eq!(taken.len(), ALL_BYTES / OWNER_BYTES);
    }
}
