//! `wasi:logging/logging`: a plugin's lines in the operator's log, attributed and bounded.
//!
//! A guest cannot forge the attribution: its text is one field among the host's own, with control characters escaped.

use std::fmt::Write as _;
use std::sync::Arc;

use super::State;
use super::bindings::wasi::logging::logging::{Host, Level};

const LINES_PER_CALL_MAX: u32 = 64;
const BYTES_PER_CALL_MAX: usize = 16 * 1024;
const MESSAGE_CHARACTERS_MAX: usize = 2000;

/// Whose lines these are, and how many more there may be. A scope without an operation (while a plugin describes itself)
/// drops all.
pub(crate) struct LogScope {
    plugin: Arc<str>,
    revision: Arc<str>,
    call: Option<LoggedCall>,
    lines: u32,
    bytes: usize,
}

struct LoggedCall {
    operation: String,
    request_id: String,
}

impl LogScope {
    /// For one call of an operation.
    pub(crate) fn call(plugin: &Arc<str>, revision: &Arc<str>, operation: &str, request_id: &str) -> Self {
        let call = LoggedCall { operation: operation.to_owned(), request_id: request_id.to_owned() };
        Self { plugin: Arc::clone(plugin), revision: Arc::clone(revision), call: Some(call), lines: 0, bytes: 0 }
    }

    /// For reading a description: every capability is denied, so nothing is written.
    pub(crate) fn silent(plugin: &Arc<str>, revision: &Arc<str>) -> Self {
        Self { plugin: Arc::clone(plugin), revision: Arc::clone(revision), call: None, lines: 0, bytes: 0 }
    }
}

impl Drop for LogScope {
    fn drop(&mut self) {
        let dropped = self.lines.saturating_sub(LINES_PER_CALL_MAX);
        if let Some(call) = self.call.as_ref().filter(|_| dropped > 0) {
            tracing::warn!(plugin = %self.plugin, revision = %self.revision, operation = %call.operation,
                request_id = %call.request_id, dropped, "the plugin wrote more log lines than a call may");
        }
    }
}

impl Host for State {
    fn log(&mut self, level: Level, context: String, message: String) -> wasmtime::Result<()> {
        let scope = &mut self.log;
        scope.bytes = scope.bytes.saturating_add(context.len() + message.len());
        if scope.bytes > BYTES_PER_CALL_MAX {
            scope.lines = scope.lines.max(LINES_PER_CALL_MAX);
        }
        scope.lines = scope.lines.saturating_add(1);
        let Some(call) = scope.call.as_ref().filter(|_| scope.lines <= LINES_PER_CALL_MAX) else { return Ok(()) };
        let (context, message) = (printable(&context), printable(&message));
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(target: "plugin", plugin = %scope.plugin, revision = %scope.revision,
                    operation = %call.operation, request_id = %call.request_id, context, "{message}")
            };
        }
        match level {
            Level::Trace => line!(trace),
            Level::Debug => line!(debug),
            Level::Info => line!(info),
            Level::Warn => line!(warn),
            Level::Error | Level::Critical => line!(error),
        }
        Ok(())
    }
}

fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len().min(MESSAGE_CHARACTERS_MAX));
    for character in text.chars().take(MESSAGE_CHARACTERS_MAX) {
        match character.is_control() {
            true => write!(shown, "{}", character.escape_default()).expect("writing to a String does not fail"),
            false => shown.push(character),
        }
    }
    shown
}
