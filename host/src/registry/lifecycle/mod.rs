//! The life of one plugin's revisions: a state machine without a clock, a file, a lock or a guest.
//!
//! ```text
//! fetched → verified → compiled → linked → described → compared ─┬→ staged ────────────┬→ active → draining → retained
//!     │        │          │         │          │          │      └→ awaiting-approval ─┘    ↑                     │
//!     └────────┴──────────┴─────────┴──────────┴──────────┴→ rejected ←─┘ (replaced)        └──── (roll back) ────┘
//! ```
//!
//! A share of calls for a candidate (a canary) will stand between `staged` and `active`. A [`PluginRecord`] is one record of the
//! store: the flip, the approvals that it needs and what it replaces are one write. Every method either changes the record
//! and notes why, or refuses and leaves it to be thrown away: callers work on a copy. Must not know how a component is
//! compiled, or what an atom lends.

mod approvals;
mod record;
#[cfg(test)]
mod tests;
mod way_in;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(crate) use self::record::{
    Described, Fetched, LifeError, LifecycleEvent, OperatorNote, RevisionRecord, RevisionState,
    SeenEntry,
};
use crate::contract::grants::{Atom, Grants, Rights};

/// Revisions that stay ready for a rollback, beside the active one and those that drain.
pub(crate) const RETAINED_MAX: usize = 3;
/// Rejected revisions whose record is kept for the operator to read.
const REJECTED_MAX: usize = 10;

/// All that is kept of one plugin.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PluginRecord {
    plugin: String,
    last_number: u64,
    last_turn: u64,
    revisions: Vec<RevisionRecord>,
    /// Atoms that an operator approved beyond the manifest, each with who, when and why.
    approvals: BTreeMap<Atom, OperatorNote>,
    /// What the manifest grants, as it was last read.
    manifest_grants: Grants,
    seen: Option<SeenEntry>,
    disabled: Option<OperatorNote>,
    #[serde(skip)]
    events: Vec<LifecycleEvent>,
}

impl PluginRecord {
    pub(crate) fn new(plugin: &str) -> Self {
        Self {
            plugin: plugin.to_owned(),
            ..Self::default()
        }
    }

    pub(crate) fn plugin(&self) -> &str {
        &self.plugin
    }

    /// Oldest first.
    pub(crate) fn revisions(&self) -> &[RevisionRecord] {
        &self.revisions
    }

    pub(crate) fn approvals(&self) -> &BTreeMap<Atom, OperatorNote> {
        &self.approvals
    }

    pub(crate) fn seen(&self) -> Option<&SeenEntry> {
        self.seen.as_ref()
    }

    pub(crate) fn disabled(&self) -> Option<&OperatorNote> {
        self.disabled.as_ref()
    }

    pub(crate) fn active(&self) -> Option<&RevisionRecord> {
        self.revisions
            .iter()
            .find(|record| record.state == RevisionState::Active)
    }

    /// The staged or waiting revision; there is at most one.
    pub(crate) fn candidate(&self) -> Option<&RevisionRecord> {
        self.revisions
            .iter()
            .find(|record| record.state.is_candidate())
    }

    pub(crate) fn revision(&self, number: u64) -> Result<&RevisionRecord, LifeError> {
        let found = self.revisions.iter().find(|record| record.number == number);
        found.ok_or_else(|| LifeError::Unknown {
            plugin: self.plugin.clone(),
            number,
        })
    }

    /// The revision to start from when nothing newer is trusted: the latest to serve that has answered a call well.
    pub(crate) fn last_known_good(&self) -> Option<&RevisionRecord> {
        let served = |record: &&RevisionRecord| {
            record.state == RevisionState::Active || record.state.is_ready()
        };
        let proven = self
            .revisions
            .iter()
            .filter(served)
            .filter(|record| record.proven);
        proven
            .max_by_key(|record| record.turn)
            .or_else(|| self.active())
    }

    /// What happened since this was last asked, to be written with the record.
    pub(crate) fn take_events(&mut self) -> Vec<LifecycleEvent> {
        std::mem::take(&mut self.events)
    }

    /// Makes a staged or kept revision the one that serves. What served before drains.
    pub(crate) fn activate(&mut self, number: u64, mark: OperatorNote) -> Result<(), LifeError> {
        let record = self.revision(number)?;
        let (state, missing) = (record.state, self.lacking(record));
        match state {
            RevisionState::Active => {
                return Err(self.refused_in(number, state, "it is already serving"));
            }
            RevisionState::Rejected => {
                return Err(self.refused_in(number, state, "stage it again"));
            }
            state if state.is_under_way() => {
                return Err(self.under_way(number, state));
            }
            _ => {}
        }
        if !missing.is_empty() {
            return Err(LifeError::NotGranted {
                plugin: self.plugin.clone(),
                number,
                missing,
            });
        }
        if let Some(active) = self.active().map(|active| active.number) {
            let why = format!("revision {number} is serving");
            self.set(active, RevisionState::Draining, mark.because(why));
        }
        self.last_turn += 1;
        let turn = self.last_turn;
        if let Some(record) = self.record(number) {
            record.turn = turn;
        }
        self.set(number, RevisionState::Active, mark);
        Ok(())
    }

    /// The revision that a rollback goes to: the named one, or the newest kept one that is older than what serves, so that
    /// rolling back again goes back further.
    pub(crate) fn before(&self, to: Option<u64>) -> Result<u64, LifeError> {
        let plugin = || self.plugin.clone();
        let active = self
            .active()
            .ok_or_else(|| LifeError::NoActive { plugin: plugin() })?
            .number;
        if let Some(number) = to {
            let state = self.revision(number)?.state;
            if !state.is_ready() {
                let rule = "only a revision that served before can be rolled back to";
                return Err(self.refused_in(number, state, rule));
            }
            return Ok(number);
        }
        let kept = self
            .revisions
            .iter()
            .filter(|record| record.state.is_ready() && record.number < active);
        let latest = kept.map(|record| record.number).max();
        latest.ok_or_else(|| LifeError::NothingBefore {
            plugin: plugin(),
            active,
        })
    }

    /// Notes that the last call of a draining revision has ended. One that serves again is left alone. Gives back whether
    /// anything changed.
    pub(crate) fn drained(&mut self, number: u64, mark: OperatorNote) -> bool {
        let drains = self
            .revision(number)
            .is_ok_and(|record| record.state == RevisionState::Draining);
        if drains {
            self.set(number, RevisionState::Retained, mark);
            self.trim();
        }
        drains
    }

    /// Notes that a revision has answered a call well. Gives back whether that is news.
    pub(crate) fn prove(&mut self, number: u64) -> bool {
        self.record(number)
            .is_some_and(|record| !std::mem::replace(&mut record.proven, true))
    }

    pub(crate) fn disable(&mut self, mark: OperatorNote) -> Result<(), LifeError> {
        if self.disabled.is_some() {
            return Err(LifeError::Already {
                plugin: self.plugin.clone(),
                disabled: true,
            });
        }
        self.disabled = Some(mark.clone());
        self.note(None, "disabled", mark);
        Ok(())
    }

    pub(crate) fn enable(&mut self, mark: OperatorNote) -> Result<(), LifeError> {
        if self.disabled.take().is_none() {
            return Err(LifeError::Already {
                plugin: self.plugin.clone(),
                disabled: false,
            });
        }
        self.note(None, "enabled", mark);
        Ok(())
    }

    /// Notes that the operator calls an operation of a revision, or how that call ended.
    pub(crate) fn note_call(
        &mut self,
        revision: u64,
        operation: &str,
        outcome: Option<&str>,
        mark: OperatorNote,
    ) {
        self.events.push(LifecycleEvent {
            plugin: self.plugin.clone(),
            revision: Some(revision),
            event: if outcome.is_some() {
                "call-ended"
            } else {
                "called"
            },
            atoms: Grants::default(),
            operation: Some(operation.to_owned()),
            outcome: outcome.map(str::to_owned),
            mark,
        });
    }

    /// After a restart: what was half way in is discarded, and nothing drains any more.
    pub(crate) fn recover(&mut self, mark: &OperatorNote) {
        let numbers: Vec<(u64, RevisionState)> = self
            .revisions
            .iter()
            .map(|record| (record.number, record.state))
            .collect();
        for (number, state) in numbers {
            if state.is_under_way() {
                let why = format!("the process ended while the revision was {}", state.name());
                self.set(number, RevisionState::Rejected, mark.because(why));
            } else if state == RevisionState::Draining {
                self.set(number, RevisionState::Retained, mark.clone());
            }
        }
        self.trim();
    }

    fn record(&mut self, number: u64) -> Option<&mut RevisionRecord> {
        self.revisions
            .iter_mut()
            .find(|record| record.number == number)
    }

    fn set(&mut self, number: u64, to: RevisionState, mark: OperatorNote) {
        if let Some(record) = self.record(number) {
            record.state = to;
            record.changed = mark.clone();
        }
        self.note(Some(number), to.name(), mark);
    }

    fn note(&mut self, revision: Option<u64>, event: &'static str, mark: OperatorNote) {
        self.note_of(revision, event, Grants::default(), mark);
    }

    fn note_of(
        &mut self,
        revision: Option<u64>,
        event: &'static str,
        atoms: Grants,
        mark: OperatorNote,
    ) {
        self.events.push(LifecycleEvent {
            plugin: self.plugin.clone(),
            revision,
            event,
            atoms,
            operation: None,
            outcome: None,
            mark,
        });
    }

    fn under_way(&self, number: u64, state: RevisionState) -> LifeError {
        LifeError::UnderWay {
            plugin: self.plugin.clone(),
            number,
            state,
        }
    }

    /// What a revision is that only its grants may keep from serving.
    fn candidacy(&self, record: &RevisionRecord) -> RevisionState {
        if self.lacking(record).is_empty() {
            RevisionState::Staged
        } else {
            RevisionState::AwaitingApproval
        }
    }

    fn refused_in(&self, number: u64, state: RevisionState, rule: &'static str) -> LifeError {
        LifeError::State {
            plugin: self.plugin.clone(),
            number,
            state,
            rule,
        }
    }

    /// Forgets retained revisions beyond the last few that served, and rejected ones beyond the last few.
    fn trim(&mut self) {
        for (state, most) in [
            (RevisionState::Retained, RETAINED_MAX),
            (RevisionState::Rejected, REJECTED_MAX),
        ] {
            let mut rank: Vec<(u64, u64)> = self
                .revisions
                .iter()
                .filter(|r| r.state == state)
                .map(|r| (r.turn, r.number))
                .collect();
            rank.sort_unstable();
            let gone = rank.len().saturating_sub(most);
            for (_, number) in &rank[..gone] {
                self.revisions.retain(|record| record.number != *number);
            }
        }
    }
}
