//! How often a caller may call, and a plugin write to the log. Knows callers by their owner and limits alone; must not know
//! operations or headers.

pub(crate) mod bucket;
pub(crate) mod line_rate;
pub(crate) mod window;

pub(crate) use bucket::Bucket;
pub(crate) use line_rate::LineRate;
pub(crate) use window::Windows;

/// Where a call stands with its limits, for the response's headers.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    /// The key's window, where the key has a limit.
    pub(crate) window: Option<WindowStanding>,
}

/// One window after a call was counted in it or refused by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowStanding {
    pub(crate) limit: u32,
    pub(crate) remaining: u32,
    /// When the window ends, in Unix seconds.
    pub(crate) reset_epoch_s: u64,
    /// How long it is, in seconds.
    pub(crate) window_s: u32,
}
