//! Switchbay: one process that serves a developer API whose every feature is a WebAssembly component.
//!
//! The rooms, from the ground up. A room uses only rooms that stand above it in this list; `tests/it/tidy` holds the table.
//!
//! - `base`: clocks, tasks, strict reading, addresses: what any room may use.
//! - `contract`: what a plugin says and may, and the one table from error code to status. Pure.
//! - `config`: what the operator has set.
//! - `records`: keys, accounts, credits, counts and jobs, as values.
//! - `observe`: what is counted, and the lines of the log.
//! - `stores`: what outlives the process.
//! - `places`: how much of a listener a peer may have.
//! - `metering`: windows, months and reservations, counted in this process.
//! - `egress`: what leaves the process, and where it may go.
//! - `auth`: who calls.
//! - `lookup`: IP databases and time zones that a plugin may be lent.
//! - `queue`: jobs that wait, and what they emitted.
//! - `runtime`: runs components, and what they are lent: `runtime::capabilities` has a file for each WIT interface.
//! - `catalogue`: what is served at one moment: rows of data, and what is counted beside them.
//! - `published`: documents made from the catalogue.
//! - `registry`: revisions and their life: staged, activated, drained, rolled back.
//! - `pipeline`: the one road to a plugin, one file a step.
//! - `runner`: takes jobs from the queue down the road.
//! - `transport`: the two listeners: HTTP, REST, MCP and the operator's API. They parse and print.
//! - `serve`: builds everything, hands each room what it needs, and owns every task.
//! - `native`: a function on the road in a component's place, for the benchmarks.
//! - `cli`: the command line.
//!
//! Invariants, checked by `tests/it/tidy`: no plugin is named here; hyper stays in `transport`, `egress` and the command line's
//! client, and `egress` alone makes connections outwards; wasmtime stays in `runtime`, reqwest in `egress`; `pipeline` alone
//! invokes a plugin; status numbers stand in `contract::error`, in the transports and in `egress::proxy`, which is one too.

mod auth;
mod base;
mod catalogue;
mod config;
mod contract;
mod egress;
mod lookup;
mod metering;
mod observe;
mod pipeline;
mod places;
mod published;
mod queue;
mod records;
mod registry;
mod runner;
mod runtime;
mod serve;
mod stores;
mod transport;

pub mod cli;
pub mod native;

pub use config::{Config, ConfigError, Flags, LogFormat};
pub use serve::{Listeners, OpenStore, Service, StartError};
