//! What a plugin is granted, by the manifest and by approvals, and what of that its revisions lack.
//!
//! Must not know what an atom lends, nor which revision serves.

use super::{
    Atom, Grants, LifeError, OperatorNote, PluginRecord, RevisionRecord, RevisionState, Rights,
};

impl PluginRecord {
    /// What manifest and approvals grant together.
    pub(crate) fn granted(&self) -> Grants {
        self.manifest_grants
            .iter()
            .chain(self.approvals.keys())
            .cloned()
            .collect()
    }

    /// What a revision may do: what it wants and is granted.
    pub(crate) fn rights(&self, record: &RevisionRecord) -> Rights {
        Rights::between(&self.granted(), &record.wanted())
    }

    /// What a revision wants and is not granted: what an approval grants.
    pub(crate) fn missing(&self, record: &RevisionRecord) -> Grants {
        self.granted().uncovered(&record.wanted())
    }

    /// What of that it cannot do without: what it waits for.
    pub(crate) fn lacking(&self, record: &RevisionRecord) -> Grants {
        self.granted().uncovered(&record.needed())
    }

    /// Grants what a waiting or kept revision wants beyond what is granted. Where `looked_at` says what the operator was
    /// shown, nothing else is granted.
    pub(crate) fn approve(
        &mut self,
        number: u64,
        looked_at: Option<&Grants>,
        mark: OperatorNote,
    ) -> Result<(), LifeError> {
        let record = self.revision(number)?;
        let (state, missing) = (record.state, self.missing(record));
        if state.is_under_way() {
            return Err(self.under_way(number, state));
        }
        if state == RevisionState::Rejected {
            return Err(self.refused_in(number, state, "stage it again"));
        }
        let unseen = looked_at
            .map(|seen| seen.uncovered(&missing))
            .unwrap_or_default();
        if !unseen.is_empty() {
            return Err(LifeError::Changed {
                plugin: self.plugin.clone(),
                number,
                missing: unseen,
            });
        }
        for atom in missing.iter() {
            self.approvals.insert(atom.clone(), mark.clone());
        }
        self.note_of(Some(number), "approved", missing, mark.clone());
        self.settle_candidate(&mark);
        Ok(())
    }

    /// Takes an approval back. What runs loses the right at once; what is staged and needs it waits again.
    pub(crate) fn revoke(&mut self, atom: &Atom, mark: OperatorNote) -> Result<(), LifeError> {
        if self.approvals.remove(atom).is_none() {
            return Err(LifeError::NotApproved {
                plugin: self.plugin.clone(),
                atom: atom.clone(),
            });
        }
        let revoked = [atom.clone()].into_iter().collect();
        self.note_of(None, "revoked", revoked, mark.clone());
        self.settle_candidate(&mark);
        Ok(())
    }

    /// Takes over what the manifest grants now. Gives back whether that is something else.
    pub(crate) fn edit(&mut self, grants: &Grants, mark: OperatorNote) -> bool {
        if self.manifest_grants == *grants {
            return false;
        }
        self.manifest_grants = grants.clone();
        self.note_of(None, "granted", grants.clone(), mark.clone());
        self.settle_candidate(&mark);
        true
    }

    /// A candidate waits exactly as long as something that it needs is not granted.
    fn settle_candidate(&mut self, mark: &OperatorNote) {
        let Some(candidate) = self.candidate() else {
            return;
        };
        let (number, state, to) = (candidate.number, candidate.state, self.candidacy(candidate));
        if to != state {
            self.set(number, to, mark.clone());
        }
    }
}
