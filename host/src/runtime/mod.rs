//! Runs components: the engine, compiled code, instances under their limits, and what they are lent. Knows a plugin by its name
//! and limits, and nothing of revisions or routes.

pub(crate) mod background;
pub(crate) mod call_places;
pub(crate) mod capabilities;
pub(crate) mod compiler;
pub(crate) mod components;
pub(crate) mod engine;
mod exports;
mod guest_store;
mod in_flight;
pub(crate) mod instance;
pub(crate) mod job_run;
pub(crate) mod loader;
mod processor;
mod run_queue;
mod shares;
mod standings;
