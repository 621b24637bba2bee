//! What is counted for the operator: calls of a revision, what its instances use, and answers of an operation.
//!
//! Each set of numbers is a field of what it is about (a revision, an operation, a listener), made when that is loaded.
//! So a request touches atomics alone, no map stands between, and the numbers of a revision go when it goes. Must not
//! know how they are printed to a client or what a plugin is.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use super::instrument::{Counter, Gauge, Histogram, PeakGauge, SumGauge};
use crate::contract::error::{Code, Refusal};

/// How a call of a plugin ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    Ok,
    Failure,
    Trap,
    Exit,
    TooLarge,
    Deadline,
    CpuSpent,
    MemorySpent,
    Busy,
    /// It had no place beside its tenant's own calls.
    OwnShare,
    NoRoom,
    Paused,
    /// Its tenant had used up its processor time.
    OverBudget,
    /// Its revision was replaced and had drained for long enough.
    Stopped,
    /// The plugin is disabled, or could not be loaded.
    Off,
    /// Nobody waited for its end: the client went away, or the request's own deadline passed.
    Abandoned,
}

impl CallOutcome {
    /// All of them in their order, which the test below checks.
    const ALL: [CallOutcome; 16] = [
        CallOutcome::Ok,
        CallOutcome::Failure,
        CallOutcome::Trap,
        CallOutcome::Exit,
        CallOutcome::TooLarge,
        CallOutcome::Deadline,
        CallOutcome::CpuSpent,
        CallOutcome::MemorySpent,
        CallOutcome::Busy,
        CallOutcome::OwnShare,
        CallOutcome::NoRoom,
        CallOutcome::Paused,
        CallOutcome::OverBudget,
        CallOutcome::Stopped,
        CallOutcome::Off,
        CallOutcome::Abandoned,
    ];

    /// The value of the label `outcome`.
    pub(crate) fn label(self) -> &'static str {
        match self {
            CallOutcome::Ok => "ok",
            CallOutcome::Failure => "failure",
            CallOutcome::Trap => "trap",
            CallOutcome::Exit => "exit",
            CallOutcome::TooLarge => "too_large",
            CallOutcome::Deadline => "deadline",
            CallOutcome::CpuSpent => "cpu_spent",
            CallOutcome::MemorySpent => "memory_spent",
            CallOutcome::Busy => "busy",
            CallOutcome::OwnShare => "own_share",
            CallOutcome::NoRoom => "no_room",
            CallOutcome::Paused => "paused",
            CallOutcome::OverBudget => "over_budget",
            CallOutcome::Stopped => "stopped",
            CallOutcome::Off => "off",
            CallOutcome::Abandoned => "abandoned",
        }
    }
}

/// The calls of one revision.
#[derive(Default)]
pub(crate) struct CallMetrics {
    ended: [Counter; CallOutcome::ALL.len()],
    duration: Histogram,
}

/// A call that is under way. Dropped without [`Running::end`], it counts as abandoned.
pub(crate) struct Running<'c> {
    calls: &'c CallMetrics,
    started: Instant,
    outcome: CallOutcome,
}

impl CallMetrics {
    pub(crate) fn begin(&self, now: Instant) -> Running<'_> {
        Running {
            calls: self,
            started: now,
            outcome: CallOutcome::Abandoned,
        }
    }

    /// How many ended in each way.
    pub(crate) fn ended(&self) -> impl Iterator<Item = (CallOutcome, u64)> {
        CallOutcome::ALL
            .into_iter()
            .map(|outcome| (outcome, self.ended[outcome as usize].get()))
    }

    pub(crate) fn duration(&self) -> &Histogram {
        &self.duration
    }
}

impl Running<'_> {
    pub(crate) fn end(mut self, outcome: CallOutcome) {
        self.outcome = outcome;
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.calls.ended[self.outcome as usize].increment();
        self.calls.duration.observe(self.started.elapsed());
    }
}

/// What the instances of one revision use.
#[derive(Default)]
pub(crate) struct InstanceMetrics {
    /// Instances that live, idle and running.
    pub(crate) instances: Arc<Gauge>,
    /// The most linear memory that one of them ever had, in bytes.
    pub(crate) memory_bytes: PeakGauge,
    /// The linear memory of all that live, in bytes.
    pub(crate) memory_held: SumGauge,
    /// Calls of a capability that were denied because it is not granted.
    pub(crate) denials: Counter,
    pub(crate) cache: CacheReads,
}

/// What reads of the plugin's cache found.
#[derive(Default)]
pub(crate) struct CacheReads {
    pub(crate) hits: Counter,
    /// An entry that is past its freshness.
    pub(crate) stale: Counter,
    pub(crate) misses: Counter,
}

/// What one operation answered, by face, and to other plugins.
pub(crate) struct Requests {
    pub(crate) rest: FaceAnswers,
    pub(crate) tool: FaceAnswers,
    pub(crate) operator: FaceAnswers,
    pub(crate) feature: FaceAnswers,
}

/// What one face of an operation answered.
pub(crate) struct FaceAnswers {
    ok: Counter,
    refused: Vec<(Cow<'static, str>, Counter)>,
}

impl Requests {
    /// Counters for the declared codes and the host's own: no others can be answered.
    pub(crate) fn new<'c>(declared: impl Iterator<Item = &'c str> + Clone) -> Self {
        Self {
            rest: FaceAnswers::new(declared.clone()),
            tool: FaceAnswers::new(declared.clone()),
            operator: FaceAnswers::new(declared.clone()),
            feature: FaceAnswers::new(declared),
        }
    }
}

impl FaceAnswers {
    fn new<'c>(declared: impl Iterator<Item = &'c str>) -> Self {
        let host = Code::names().map(Cow::Borrowed);
        let own = declared
            .filter(|code| Code::from_name(code).is_none())
            .map(|code| Cow::Owned(code.to_owned()));
        Self {
            ok: Counter::default(),
            refused: host
                .chain(own)
                .map(|code| (code, Counter::default()))
                .collect(),
        }
    }

    pub(crate) fn ok(&self) {
        self.ok.increment();
    }

    /// Counts a refusal. A walk along some twenty codes, which only a refused request pays.
    pub(crate) fn refused(&self, refusal: &Refusal) {
        if let Some((_, counter)) = self.refused.iter().find(|(code, _)| *code == refusal.code) {
            counter.increment();
        }
    }

    /// How often each code was answered, `ok` first.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&str, u64)> {
        let refused = self
            .refused
            .iter()
            .map(|(code, counter)| (code.as_ref(), counter.get()));
        std::iter::once(("ok", self.ok.get())).chain(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_stands_at_its_place_under_a_label_of_its_own() {
        for (index, outcome) in CallOutcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome as usize, index, "{outcome:?} stands out of order");
            let same = CallOutcome::ALL
                .into_iter()
                .filter(|other| other.label() == outcome.label())
                .count();
            assert_eq!(same, 1, "{}", outcome.label());
        }
    }
}
