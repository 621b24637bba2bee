//! How a call ends without an answer: each end by its name, and what it says of the processor time that was used.
//!
//! Must not know what a client is told of it.

use std::time::Duration;

use wasmtime::{Store, Trap};
use wasmtime_wasi::I32Exit;

use super::Off;
use crate::contract::manifest::PluginLimits;
use crate::contract::operation::UncheckedAnswer;
use crate::runtime::call_places::{Barred, Ended, NoPlace};
use crate::runtime::capabilities::GuestState;
use crate::runtime::guest_store::{CpuBudgetSpent, JobBudgetSpent};
use crate::runtime::processor::CpuMeter;

/// How a call ended without an answer of the plugin's.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("all {limit} places of the plugin stayed taken until the deadline")]
    Busy { limit: usize },
    #[error(
        "the caller had up to {limit} calls running, and got no place for another one until the deadline"
    )]
    OwnShare { limit: usize },
    #[error("{limit} calls of the caller are already waiting for a place")]
    Crowded { limit: usize },
    #[error(
        "calls of several callers used up their processor budget, and the plugin is paused for {seconds} s"
    )]
    PluginPaused { seconds: u64 },
    #[error(
        "the caller's calls used up their processor budget several times, and it is paused for {seconds} s"
    )]
    Paused { seconds: u64 },
    #[error("the caller used up its processor time per minute; it has some again in {seconds} s")]
    OverBudget { seconds: u64 },
    #[error("the job used up its processor time of {0:?}")]
    JobSpent(Duration),
    #[error("the host has no room for another instance: {0}")]
    NoRoom(String),
    #[error("the call did not finish within its {0:?}")]
    Deadline(Duration),
    #[error("the call used up its processor budget of {0:?}")]
    CpuSpent(Duration),
    #[error("the plugin used up its memory of {bytes_max} bytes: {last_words}")]
    MemorySpent {
        bytes_max: usize,
        last_words: String,
    },
    #[error("the plugin trapped: {cause}: {last_words}")]
    Trapped { cause: String, last_words: String },
    #[error("the plugin exited with code {0} instead of answering")]
    Exited(i32),
    #[error("the plugin returned {bytes} bytes; at most {bytes_max} are allowed")]
    TooLarge { bytes: usize, bytes_max: usize },
    #[error("the call was ended because another revision replaced its own")]
    Stopped,
    #[error("the plugin has no worker to run jobs")]
    NoWorker,
    #[error(
        "the plugin's version {version} of `switchbay:plugin` does not know this kind of caller"
    )]
    CallerUnknown { version: &'static str },
    #[error("the plugin is off: {}", match .0 { Off::Disabled => "the operator disabled it", Off::Unloadable(why) => why })]
    Off(Off),
}

/// Why there is no instance.
pub(crate) fn unmade(
    error: &wasmtime::Error,
    store: &mut Store<GuestState>,
    limits: &PluginLimits,
    cpu: &CpuMeter,
) -> CallError {
    if error.is::<wasmtime::PoolConcurrencyLimitError>() {
        CallError::NoRoom(error.to_string())
    } else {
        named(error, store, limits, cpu)
    }
}

/// Gives what ended a call its name.
pub(crate) fn named(
    error: &wasmtime::Error,
    store: &mut Store<GuestState>,
    limits: &PluginLimits,
    cpu: &CpuMeter,
) -> CallError {
    let state = store.data_mut();
    if let Some(JobBudgetSpent(whole)) = error.downcast_ref() {
        return CallError::JobSpent(*whole);
    }
    if error.is::<CpuBudgetSpent>() || cpu.used() >= limits.cpu {
        return CallError::CpuSpent(limits.cpu);
    }
    if let Some(exit) = error.downcast_ref::<I32Exit>() {
        return CallError::Exited(exit.0);
    }
    if state.memory_was_denied() {
        return CallError::MemorySpent {
            bytes_max: limits.memory_bytes,
            last_words: state.last_words(),
        };
    }
    let cause = match error.downcast_ref::<Trap>() {
        Some(trap) => trap.to_string(),
        None => format!("{error:#}"),
    };
    CallError::Trapped {
        cause,
        last_words: state.last_words(),
    }
}

/// What the end of a call says of its processor time.
pub(crate) fn ended(outcome: &Result<UncheckedAnswer, CallError>) -> Ended {
    match outcome {
        Err(CallError::CpuSpent(_)) => Ended::Killed,
        Ok(_)
        | Err(
            CallError::MemorySpent { .. }
            | CallError::Trapped { .. }
            | CallError::Exited(_)
            | CallError::TooLarge { .. },
        ) => Ended::Within,
        Err(
            CallError::Busy { .. }
            | CallError::OwnShare { .. }
            | CallError::Crowded { .. }
            | CallError::PluginPaused { .. }
            | CallError::Paused { .. }
            | CallError::OverBudget { .. }
            | CallError::JobSpent(_)
            | CallError::NoRoom(_)
            | CallError::Deadline(_)
            | CallError::Stopped
            | CallError::NoWorker
            | CallError::CallerUnknown { .. }
            | CallError::Off(_),
        ) => Ended::Dropped,
    }
}

impl From<NoPlace> for CallError {
    fn from(reason: NoPlace) -> Self {
        match reason {
            NoPlace::Barred(barred) => barred.into(),
            NoPlace::Crowded { most } => Self::Crowded { limit: most },
            NoPlace::OwnShare { most } => Self::OwnShare { limit: most },
            NoPlace::Taken { places } => Self::Busy { limit: places },
        }
    }
}

impl From<Barred> for CallError {
    fn from(barred: Barred) -> Self {
        let (Barred::Tenant(left) | Barred::Plugin(left) | Barred::OverBudget(left)) = barred;
        let seconds = u64::try_from(left.as_millis().div_ceil(1000)).unwrap_or(u64::MAX);
        let seconds = seconds.max(1);
        match barred {
            Barred::Tenant(_) => Self::Paused { seconds },
            Barred::Plugin(_) => Self::PluginPaused { seconds },
            Barred::OverBudget(_) => Self::OverBudget { seconds },
        }
    }
}
