//! The rules without a disk, and what the engines are compared with.

mod accounts;
pub(crate) mod jobs;
mod ledger;
pub(crate) mod ledger_model;
mod plugins;
pub(crate) mod table;
