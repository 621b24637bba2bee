//! `wasi:logging/logging`: a plugin's lines in the operator's log, attributed and bounded, for each call and over time.
//!
//! A guest cannot forge the attribution: its text is one field among the host's own, with control characters escaped. What
//! it writes to standard error, which is a panic's message more often than not, counts as lines of its own at `debug`: a
//! panic may quote the call's input by accident (`unwrap` does), and the default log holds no input. The host's own line
//! about the failure tells where the panic was, and not what it said.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use super::GuestState;
use super::bindings::wasi::logging::logging::{Host, Level};
use crate::base::line_rate::LineRate;
use crate::contract::operation::{Call, CallOrigin, Owner};
use crate::observe::log_lines::{CallFields, about_call};

const LINES_PER_CALL_MAX: u32 = 64;
const BYTES_PER_CALL_MAX: usize = 16 * 1024;
const MESSAGE_CHARACTERS_MAX: usize = 2000;
/// A longer place of a panic is none.
const PLACE_BYTES_MAX: usize = 200;

/// Whose lines these are, and how many more there may be. A scope without a call (while a plugin describes itself) drops
/// all.
#[derive(Default)]
pub(crate) struct LogScope {
    call: Option<LoggedCall>,
    lines: u32,
    bytes: usize,
}

struct LoggedCall {
    plugin: Arc<str>,
    revision: u64,
    rate: Arc<LineRate>,
    operation: String,
    request_id: String,
    owner: Owner,
    via: CallOrigin,
}

impl LogScope {
    /// For one call of an operation.
    pub(crate) fn call(
        plugin: &Arc<str>,
        revision: u64,
        rate: &Arc<LineRate>,
        call: &Call,
    ) -> Self {
        let call = LoggedCall {
            plugin: Arc::clone(plugin),
            revision,
            rate: Arc::clone(rate),
            operation: call.operation.clone(),
            request_id: call.request_id.clone(),
            owner: call.owner,
            via: call.via,
        };
        Self {
            call: Some(call),
            ..Self::default()
        }
    }

    /// For reading a description: every capability is denied, so nothing is written.
    pub(crate) fn silent() -> Self {
        Self::default()
    }

    /// Takes what a failed guest left on standard error, and gives back as much of it as the host's own line may tell: the
    /// place of a panic, or everything where there was no call and so nobody's input.
    pub(crate) fn last_words(&mut self, text: &str) -> String {
        if self.call.is_none() {
            return printable(text);
        }
        if text.is_empty() {
            return "it left no message".to_owned();
        }
        self.line(Level::Debug, "stderr", text);
        let place = panic_place(text).unwrap_or("it left a message");
        format!("{place} (the filter `plugin=debug` shows what it said)")
    }

    fn line(&mut self, level: Level, context: &str, message: &str) {
        let Some(call) = self.call.as_ref().filter(|_| is_enabled(level)) else {
            return;
        };
        self.bytes = self.bytes.saturating_add(context.len() + message.len());
        if self.bytes > BYTES_PER_CALL_MAX {
            self.lines = self.lines.max(LINES_PER_CALL_MAX);
        }
        self.lines = self.lines.saturating_add(1);
        let now = Instant::now();
        if self.lines > LINES_PER_CALL_MAX || !call.rate.admit(1, now) {
            return;
        }
        tell_of_dropped(&call.plugin, &call.rate, now);
        let (about, context, message) = (call.about(), printable(context), printable(message));
        match level {
            Level::Trace => about_call!(trace, "plugin", about, context, "{message}"),
            Level::Debug => about_call!(debug, "plugin", about, context, "{message}"),
            Level::Info => about_call!(info, "plugin", about, context, "{message}"),
            Level::Warn => about_call!(warn, "plugin", about, context, "{message}"),
            Level::Error | Level::Critical => {
                about_call!(error, "plugin", about, context, "{message}");
            }
        }
    }
}

impl LoggedCall {
    fn about(&self) -> CallFields<'_> {
        CallFields {
            request_id: &self.request_id,
            operation: &self.operation,
            plugin: &self.plugin,
            revision: self.revision,
            owner: Some(&self.owner),
            via: self.via,
        }
    }
}

/// Says how many of a plugin's lines were dropped because they came too fast, at most once a second.
pub(crate) fn tell_of_dropped(plugin: &str, rate: &LineRate, now: Instant) {
    if let Some(dropped) = rate.report(now) {
        tracing::warn!(
            plugin,
            dropped,
            "the plugin writes log lines too fast; some are dropped"
        );
    }
}

impl Drop for LogScope {
    fn drop(&mut self) {
        let dropped = self.lines.saturating_sub(LINES_PER_CALL_MAX);
        let Some(call) = self.call.as_ref().filter(|_| dropped > 0) else {
            return;
        };
        // The report counts as a line of the plugin's: a flood of reports would be one too.
        if call.rate.admit(u64::from(dropped), Instant::now()) {
            let about = call.about();
            about_call!(
                warn,
                module_path!(),
                about,
                dropped,
                "the plugin wrote too many log lines in one call; some are dropped"
            );
        }
    }
}

impl Host for GuestState {
    fn log(&mut self, level: Level, context: String, message: String) {
        // The interface has no error: what is not granted is not written, and counted.
        if self.may("logging") {
            self.log.line(level, &context, &message);
        }
    }
}

fn is_enabled(level: Level) -> bool {
    match level {
        Level::Trace => tracing::enabled!(target: "plugin", tracing::Level::TRACE),
        Level::Debug => tracing::enabled!(target: "plugin", tracing::Level::DEBUG),
        Level::Info => tracing::enabled!(target: "plugin", tracing::Level::INFO),
        Level::Warn => tracing::enabled!(target: "plugin", tracing::Level::WARN),
        Level::Error | Level::Critical => {
            tracing::enabled!(target: "plugin", tracing::Level::ERROR)
        }
    }
}

/// `panicked at FILE:LINE:COLUMN` of a Rust panic, by its last such line.
fn panic_place(text: &str) -> Option<&str> {
    let place = &text[text.rfind("panicked at ")?..];
    let place = place.lines().next()?.strip_suffix(':')?;
    let mut parts = place.rsplit(':');
    let is_number = |part: Option<&str>| {
        part.is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let numbered = is_number(parts.next()) && is_number(parts.next());
    (numbered && place.len() <= PLACE_BYTES_MAX && !place.contains(char::is_control))
        .then_some(place)
}

fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len().min(MESSAGE_CHARACTERS_MAX));
    for character in text.chars().take(MESSAGE_CHARACTERS_MAX) {
        if character.is_control() {
            write!(shown, "{}", character.escape_default())
                .expect("writing to a String does not fail");
        } else {
            shown.push(character);
        }
    }
    shown
}
