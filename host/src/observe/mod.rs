//! What is counted and what is told of it. Knows what a call is and nothing of what runs it.

pub(crate) mod exposition;
pub(crate) mod instrument;
pub(crate) mod log_lines;
pub(crate) mod metrics;
