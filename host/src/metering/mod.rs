//! How often a caller may call and what it pays, and how often a plugin may write to the log. Must not know headers or what an
//! operation does.

mod admission;
pub(crate) mod bucket;
mod charge;
pub(crate) mod credits;
pub(crate) mod line_rate;
pub(crate) mod month;
pub(crate) mod quota;
mod reservations;
pub(crate) mod window;

pub(crate) use admission::{count_month, read_month, take_slots};
pub(crate) use bucket::Bucket;
pub(crate) use charge::{Charge, Charged, reserve};
pub(crate) use line_rate::LineRate;
pub(crate) use quota::{MonthStanding, UsageCounts};
pub(crate) use reservations::Reservations;
pub(crate) use window::Windows;

/// Where a call stands with its limits, for the response's headers.
#[derive(Debug, Default)]
pub(crate) struct Meters {
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
