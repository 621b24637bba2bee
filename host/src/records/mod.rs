//! What outlives the process, as values: keys, accounts, credits, counts and jobs. Knows no store and no transport.

pub(crate) mod account;
pub(crate) mod api_key;
pub(crate) mod credits;
pub(crate) mod job;
pub(crate) mod month;
pub(crate) mod usage;
