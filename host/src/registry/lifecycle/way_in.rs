//! The way of a component into a record: fetched, taken step by step, and staged or rejected.
//!
//! Must not know what a step does, nor how a revision comes to serve.

use super::{
    Described, Fetched, LifeError, OperatorNote, PluginRecord, RevisionRecord, RevisionState,
    SeenEntry,
};

impl PluginRecord {
    /// Takes in a fetched component as a new revision.
    pub(crate) fn begin(&mut self, fetched: Fetched, mark: OperatorNote) -> Result<u64, LifeError> {
        if let Some(record) = self
            .revisions
            .iter()
            .find(|record| record.state.is_under_way())
        {
            return Err(self.under_way(record.number, record.state));
        }
        self.last_number += 1;
        let number = self.last_number;
        self.revisions.push(RevisionRecord {
            number,
            state: RevisionState::Fetched,
            digest: fetched.digest,
            bytes: fetched.bytes,
            source: fetched.source,
            settings: fetched.settings,
            goes_live: fetched.goes_live,
            version: String::new(),
            summary: String::new(),
            wants: Vec::new(),
            staged: mark.clone(),
            changed: mark.clone(),
            turn: 0,
            proven: false,
        });
        self.note(Some(number), RevisionState::Fetched.name(), mark);
        Ok(number)
    }

    /// Remembers what the manifest's entry brought in, so that a restart does not bring it in again.
    pub(crate) fn see(&mut self, seen: SeenEntry) {
        self.seen = Some(seen);
    }

    /// Takes a revision that is under way one step further, up to `compared`.
    pub(crate) fn advance(
        &mut self,
        number: u64,
        to: RevisionState,
        mark: OperatorNote,
    ) -> Result<(), LifeError> {
        let state = self.revision(number)?.state;
        if state.next() != Some(to) || to == RevisionState::Staged {
            return Err(self.refused_in(number, state, "it cannot take that step now"));
        }
        self.set(number, to, mark);
        Ok(())
    }

    /// Notes what a component says of itself.
    pub(crate) fn describe(
        &mut self,
        number: u64,
        described: Described,
        mark: OperatorNote,
    ) -> Result<(), LifeError> {
        self.advance(number, RevisionState::Described, mark)?;
        if let Some(record) = self.record(number) {
            record.version = described.version;
            record.summary = described.summary;
            record.wants = described.wants;
        }
        Ok(())
    }

    /// Ends a revision's way in: staged where all that it needs is granted, waiting for approval otherwise. An older
    /// candidate is superseded.
    pub(crate) fn stage(
        &mut self,
        number: u64,
        mark: OperatorNote,
    ) -> Result<RevisionState, LifeError> {
        let record = self.revision(number)?;
        if record.state != RevisionState::Compared {
            return Err(self.refused_in(number, record.state, "it has not been compared"));
        }
        let to = self.candidacy(record);
        let older: Vec<u64> = self
            .revisions
            .iter()
            .filter(|r| r.state.is_candidate())
            .map(|r| r.number)
            .collect();
        for superseded in older {
            let why = format!("superseded by revision {number}");
            self.set(superseded, RevisionState::Rejected, mark.because(why));
        }
        self.set(number, to, mark);
        self.trim();
        Ok(to)
    }

    /// Rejects a revision that does not serve and never did. Rejecting it again changes nothing.
    pub(crate) fn reject(&mut self, number: u64, mark: OperatorNote) -> Result<(), LifeError> {
        let state = self.revision(number)?.state;
        if state == RevisionState::Rejected {
            return Ok(());
        }
        if !state.is_under_way() && !state.is_candidate() {
            return Err(self.refused_in(
                number,
                state,
                "only a revision that has never served can be rejected; roll back instead",
            ));
        }
        self.set(number, RevisionState::Rejected, mark);
        self.trim();
        Ok(())
    }
}
