//! What outlives the process: keys, accounts, credits, counts, jobs, plugins and their records, as values, and the rules by
//! which they change. Knows no store and no transport.

pub(crate) mod account;
pub(crate) mod api_key;
pub(crate) mod credits;
pub(crate) mod instance;
pub(crate) mod job;
pub(crate) mod job_rules;
#[cfg(test)]
pub(crate) mod job_tests;
pub(crate) mod ledger;
pub(crate) mod ledger_audit;
#[cfg(test)]
pub(crate) mod ledger_model;
#[cfg(test)]
mod ledger_tests;
pub(crate) mod month;
pub(crate) mod plugin_life;
pub(crate) mod plugin_state;
#[cfg(test)]
mod plugin_tests;
pub(crate) mod rows;
pub(crate) mod usage;
