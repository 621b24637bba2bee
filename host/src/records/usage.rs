//! Calls counted by calendar month, as they are kept.

use super::month::Month;

/// The calls of one owner to one operation in one month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UsageCount {
    pub(crate) calls: u64,
    /// Those among them that count toward the monthly limit.
    pub(crate) limited: u64,
}

/// One count as it is stored, by owner first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CountRow {
    pub(crate) owner: String,
    pub(crate) month: Month,
    /// Plugin and operation, with a slash between.
    pub(crate) operation: String,
    pub(crate) count: UsageCount,
}
