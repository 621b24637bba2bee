//! When the key set may be fetched: one fetch at a time, one for each unknown key id, and a bounded number over time,
//! because anybody can make up key ids. Time is passed in; knows nothing of keys or fetching.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::base::token_bucket::TokenBucket;

/// Four fetches at once after a silence, then one every 15 seconds.
const FETCHES: TokenBucket = TokenBucket::new(4, Duration::from_secs(15));
/// How long a key id that a fetch did not bring causes no other.
const MISSING: Duration = Duration::from_secs(60);
/// Key ids that are remembered as missing; a full memory is begun anew.
const MISSING_MAX: usize = 1024;

/// What the fetches so far allow.
pub(super) struct Gate {
    fetches: TokenBucket,
    /// Which key id is being fetched for, while a fetch is under way.
    under_way: Option<Option<String>>,
    missing: HashMap<String, Instant>,
    /// Whether the last fetch brought nothing.
    failed: bool,
}

/// What a request for keys comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FetchTurn {
    /// The fetch is this request's to start.
    Start,
    /// One is under way.
    Wait,
    /// None may begin now.
    Closed,
}

impl Gate {
    pub(super) fn new() -> Self {
        Self {
            fetches: FETCHES,
            under_way: None,
            missing: HashMap::new(),
            failed: false,
        }
    }

    /// Asks for a fetch, for an unknown key id or because the keys are old.
    pub(super) fn ask(&mut self, kid: Option<&str>, now: Instant) -> FetchTurn {
        if self.under_way.is_some() {
            return FetchTurn::Wait;
        }
        let is_missing = |kid| {
            self.missing
                .get(kid)
                .is_some_and(|since| now.duration_since(*since) < MISSING)
        };
        if kid.is_some_and(is_missing) || !self.fetches.take(now) {
            return FetchTurn::Closed;
        }
        self.under_way = Some(kid.map(str::to_owned));
        FetchTurn::Start
    }

    /// The fetch that was under way has brought keys.
    pub(super) fn fetched(&mut self, now: Instant) {
        self.failed = false;
        if let Some(Some(kid)) = self.under_way.take() {
            if self.missing.len() >= MISSING_MAX {
                self.missing.clear();
            }
            // If it came, it is found before this is asked.
            self.missing.insert(kid, now);
        }
    }

    /// The fetch that was under way has brought nothing.
    pub(super) fn failed(&mut self) {
        self.failed = true;
        self.under_way = None;
    }

    /// Whether the last fetch brought nothing.
    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    /// How long until a fetch may begin.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.fetches.wait(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_fetched_for_once_a_minute() {
        let (mut gate, start) = (Gate::new(), Instant::now());
        assert_eq!(gate.ask(Some("a"), start), FetchTurn::Start);
        assert_eq!(gate.ask(Some("a"), start), FetchTurn::Wait);
        assert_eq!(gate.ask(Some("b"), start), FetchTurn::Wait);
        gate.fetched(start);
        assert_eq!(
            gate.ask(Some("a"), start + Duration::from_secs(59)),
            FetchTurn::Closed
        );
        assert_eq!(
            gate.ask(Some("a"), start + Duration::from_secs(60)),
            FetchTurn::Start
        );
    }

    #[test]
    fn a_failed_fetch_is_tried_again_for_the_same_key() {
        let (mut gate, start) = (Gate::new(), Instant::now());
        assert_eq!(gate.ask(Some("a"), start), FetchTurn::Start);
        gate.failed();
        assert!(gate.has_failed());
        assert_eq!(gate.ask(Some("a"), start), FetchTurn::Start);
        gate.fetched(start);
        assert!(!gate.has_failed());
    }

    #[test]
    fn any_number_of_unknown_keys_is_fetched_for_four_times_and_then_every_15_seconds() {
        let (mut gate, start) = (Gate::new(), Instant::now());
        let mut started = |tries: u32, now| {
            let mut asked = |number: u32| {
                let passage = gate.ask(Some(&format!("{now:?} {number}")), now);
                gate.fetched(now);
                passage == FetchTurn::Start
            };
            (0..tries).filter(|number| asked(*number)).count()
        };
        assert_eq!(started(5000, start), 4);
        assert_eq!(started(5000, start + Duration::from_millis(14_999)), 0);
        assert_eq!(started(5000, start + Duration::from_secs(15)), 1);
        assert_eq!(started(5000, start + Duration::from_secs(3600)), 4);
    }
}
