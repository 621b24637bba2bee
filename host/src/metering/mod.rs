//! How often a caller may call and what it has used: windows, months and reservations, counted in this process. Must not know
//! headers, or what an operation does.

pub(crate) mod identifier;
pub(crate) mod quota;
pub(crate) mod reservations;
pub(crate) mod usage_writer;
pub(crate) mod window;

pub(crate) use self::quota::{MonthStanding, UsageCounts};
pub(crate) use self::window::Windows;

/// Where a call stands with its limits, for the response's headers.
#[derive(Debug, Default)]
pub(crate) struct CallMeters {
    /// The window that refused or that has the least left, where the call has any.
    pub(crate) window: Option<WindowStanding>,
    /// The address's window, where a first-party browser calls.
    pub(crate) address: Option<WindowStanding>,
    /// The month, where the caller has a monthly limit.
    pub(crate) month: Option<MonthStanding>,
    /// The credits, where an account pays.
    pub(crate) credits: Option<CreditStanding>,
}

/// What a call reserved of its account's credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CreditStanding {
    /// What was reserved for this call, also where its failure gave it back; 0 where it was refused before.
    pub(crate) cost: u64,
    /// The account's credits of a month.
    pub(crate) limit: u64,
    /// When the month ends, in Unix seconds.
    pub(crate) reset_epoch_s: u64,
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
