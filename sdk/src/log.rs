//! Lines for the operator's log.
//!
//! Using this module makes the component import `wasi:logging/logging`, which the manifest grants with the atom
//! `logging`. The host adds plugin, revision, operation and request id, and bounds lines and bytes per call.

use crate::bindings::wasi::logging::logging::{Level, log};

/// Something that helps while developing.
pub fn debug(message: &str) {
    log(Level::Debug, "", message);
}

/// Something worth knowing in normal operation.
pub fn info(message: &str) {
    log(Level::Info, "", message);
}

/// Something that an operator may want to look at.
pub fn warn(message: &str) {
    log(Level::Warn, "", message);
}

/// Something that an operator must look at.
pub fn error(message: &str) {
    log(Level::Error, "", message);
}
