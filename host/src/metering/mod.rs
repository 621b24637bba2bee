//! How often a caller may call, and a plugin write to the log. Must not know headers or what an operation does.

mod admission;
pub(crate) mod line_rate;
pub(crate) mod month;
pub(crate) mod quota;
pub(crate) mod window;

pub(crate) use admission::{admit, count, stand};
pub(crate) use line_rate::LineRate;
pub(crate) use quota::{MonthStanding, Usage};
pub(crate) use window::Windows;

/// Where a call stands with its limits, for the response's headers.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    /// The window that refused or that has the least left, where the call has any.
    pub(crate) window: Option<WindowStanding>,
    /// The month, where the caller has a monthly limit.
    pub(crate) month: Option<MonthStanding>,
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
