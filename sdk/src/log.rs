//! Lines for the operator's log.
//!
//! Using this module makes the component import `wasi:logging/logging`, which the manifest grants with
//! the atom `logging`. The host adds plugin, revision, operation and request id, and limits the lines and
//! bytes of each call.

use crate::bindings::wasi::logging::logging::{Level, log};

/// Logs something that helps during development.
pub fn debug(message: &str) {
    log(Level::Debug, "", message);
}

/// Logs something worth knowing in normal operation.
pub fn info(message: &str) {
    log(Level::Info, "", message);
}

/// Logs something that the operator may want to look at.
pub fn warn(message: &str) {
    log(Level::Warn, "", message);
}

/// Logs something that the operator must look at.
pub fn error(message: &str) {
    log(Level::Error, "", message);
}
