//! What stands beside an operation's row while it is served: its counters, and what is remembered of its replies.
//!
//! Kept apart from the row, which is data. Knows no call and no plugin.

use std::num::NonZeroUsize;

use lru::LruCache;
use parking_lot::Mutex;

use crate::contract::operation::Operation;
use crate::observe::metrics::Requests;

/// How many digests are remembered of one operation: as many different replies as repeat within a short time.
const CHECKED_MAX: NonZeroUsize = NonZeroUsize::new(256).expect("it is not zero");

/// The counters and the memory of one operation of one revision.
pub(crate) struct OperationState {
    /// What it answered, for the operator.
    pub(crate) requests: Requests,
    /// Digests of the replies that passed their check lately: one that a plugin had kept, and so repeats, is not parsed again,
    /// which costs more than all the rest of its call. Held for one look; never over an await.
    checked: Mutex<LruCache<[u8; 32], ()>>,
}

impl OperationState {
    /// Nothing was called yet.
    pub(crate) fn new(operation: &Operation) -> Self {
        let declared = operation.errors.iter().map(|error| error.code.as_str());
        Self {
            requests: Requests::new(declared),
            checked: Mutex::new(LruCache::new(CHECKED_MAX)),
        }
    }

    /// Whether a reply with this digest passed its check lately.
    pub(crate) fn has_checked(&self, digest: &[u8; 32]) -> bool {
        self.replies(|checked| checked.get(digest).is_some())
    }

    /// Remembers that a reply passed its check.
    pub(crate) fn remember_checked(&self, digest: [u8; 32]) {
        self.replies(|checked| {
            checked.put(digest, ());
        });
    }

    fn replies<T>(&self, look: impl FnOnce(&mut LruCache<[u8; 32], ()>) -> T) -> T {
        look(&mut self.checked.lock())
    }
}
