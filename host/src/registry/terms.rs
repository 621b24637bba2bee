//! What a description says of an operation's limits and price.

use crate::operation::{Consumed, Terms};

const PER_MINUTE_MAX: u32 = 1_000_000;

/// The members of an operation's row that its terms are made of.
pub(super) struct Written {
    pub(super) window_per_minute: Option<u32>,
    pub(super) consumes: Option<Vec<Consumed>>,
}

/// Checks them; what is not said takes the default: no window of its own, and every limit of the caller's.
pub(super) fn terms(written: Written) -> Result<Terms, String> {
    let Written { window_per_minute, consumes } = written;
    if let Some(limit) = window_per_minute.filter(|limit| !(1..=PER_MINUTE_MAX).contains(limit)) {
        return Err(format!("has `window_per_minute` {limit}; it must be from 1 to {PER_MINUTE_MAX}"));
    }
    Ok(Terms {
        per_minute: window_per_minute,
        consumes: consumes.unwrap_or_else(|| vec![Consumed::Window, Consumed::Month]),
    })
}
