//! The ids of the changes that a record saw last: a change that is made again, also after others, is known and changes
//! nothing.
//!
//! An engine, or whoever was not told what came of a change, makes it again at once. So only changes that others make meanwhile
//! come between, which is what the bound must hold.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Ids that are kept.
const KEPT_MAX: usize = 32;

/// The last changes of a record, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct RecentChanges(Vec<Uuid>);

impl RecentChanges {
    /// Whether this change was made.
    pub(crate) fn has(&self, change: Uuid) -> bool {
        self.0.contains(&change)
    }

    /// Notes that a change is made.
    pub(crate) fn note(&mut self, change: Uuid) {
        self.0.push(change);
        let over = self.0.len().saturating_sub(KEPT_MAX);
        self.0.drain(..over);
    }
}
