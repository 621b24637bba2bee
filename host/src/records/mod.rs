//! What outlives the process: keys, accounts, credits, counts, jobs, plugins and their records, as values, and the rules by
//! which they change. Knows no store and no transport.

pub(crate) mod account;
pub(crate) mod api_key;
pub(crate) mod credits;
pub(crate) mod instance;
pub(crate) mod job;
pub(crate) mod job_rules;
pub(crate) mod ledger;
pub(crate) mod ledger_audit;
pub(crate) mod month;
pub(crate) mod plugin_life;
pub(crate) mod plugin_state;
pub(crate) mod recent;
pub(crate) mod rows;
pub(crate) mod usage;

#[cfg(test)]
pub(crate) mod tests;
