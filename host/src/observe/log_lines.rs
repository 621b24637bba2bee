//! The log: lines on standard error, as text or JSON, and the fields of every line that is about a call.
//!
//! No credential, token or query string may stand in a line. So lines name what the host knows (ids, codes, durations) and
//! never quote a request, and libraries, whose traces may print what they read, are heard from `info` up whatever the filter
//! says. The fields are on each line and not in a span: a span is formatted for every call, most of which log nothing.

use std::io::IsTerminal as _;

use tracing_subscriber::filter::{LevelFilter, ParseError, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, fmt};

use crate::config::LogFormat;
use crate::contract::operation::{CallOrigin, Owner};

/// The host's own targets, and the one of the plugins' lines.
const OWN: [&str; 2] = ["switchbay", "plugin"];

/// Starts logging. Once a process.
pub(crate) fn start(format: LogFormat, filter: &str) -> Result<(), ParseError> {
    let written = EnvFilter::builder().parse(filter)?;
    let quiet = filter_fn(|line| {
        *line.level() <= LevelFilter::INFO
            || line
                .target()
                .split("::")
                .next()
                .is_some_and(|root| OWN.contains(&root))
    });
    let lines = tracing_subscriber::registry().with(written).with(quiet);
    let form = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match format {
        LogFormat::Text => lines.with(form).init(),
        LogFormat::Json => lines.with(form.json().flatten_event(true)).init(),
    }
    Ok(())
}

/// The call that a line is about. Borrowed throughout, so that a line which is not written costs nothing.
#[derive(Clone, Copy)]
pub(crate) struct CallFields<'a> {
    pub(crate) request_id: &'a str,
    pub(crate) operation: &'a str,
    pub(crate) plugin: &'a str,
    /// The revision's number.
    pub(crate) revision: u64,
    /// Absent until the credential is judged.
    pub(crate) owner: Option<&'a Owner>,
    pub(crate) via: CallOrigin,
}

/// Writes a line about a call: `about_call!(warn, target, about, fields and message)`.
macro_rules! about_call {
    ($level:ident, $target:expr, $about:ident, $($rest:tt)+) => {
        tracing::$level!(target: $target, request_id = $about.request_id, operation = $about.operation,
            plugin = $about.plugin, revision = $about.revision, owner = $about.owner.map($crate::contract::operation::Owner::as_str),
            face = $about.via.name(), $($rest)+)
    };
}
pub(crate) use about_call;
