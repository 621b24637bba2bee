//! What an operator does to a plugin: one change of its record each, written before it is served.

use std::sync::Arc;

use super::lifecycle::{OperatorNote, PluginRecord, RevisionState};
use super::{RecordsGuard, Registry, RegistryError};
use crate::catalogue::revision::Revision;
use crate::contract::grants::{Atom, Grants};

/// One act of an operator on one plugin.
#[derive(Debug)]
pub(crate) enum PluginAction {
    /// Grant what a revision wants beyond what is granted, and nothing that was not looked at. One that was staged to go
    /// live does.
    Approve {
        number: u64,
        looked_at: Option<Grants>,
        goes_live: bool,
    },
    Reject {
        number: u64,
    },
    Activate {
        number: u64,
    },
    /// To a revision that served before; to the one before what serves where none is named.
    Rollback {
        to: Option<u64>,
    },
    Disable,
    Enable,
    /// Take an approval back.
    Revoke {
        atom: Atom,
    },
}

impl Registry {
    /// Does it, and gives back the record as it is then. On an error nothing has changed.
    pub(crate) async fn act(
        self: &Arc<Self>,
        plugin: &str,
        act: PluginAction,
        mark: OperatorNote,
    ) -> Result<PluginRecord, RegistryError> {
        let (registry, plugin) = (Arc::clone(self), plugin.to_owned());
        self.tasks
            .spawn_uncancellable(async move { registry.act_now(&plugin, act, mark).await })
            .await
    }

    async fn act_now(
        self: &Arc<Self>,
        plugin: &str,
        act: PluginAction,
        mark: OperatorNote,
    ) -> Result<PluginRecord, RegistryError> {
        let mut turn = self.lives.lock().await;
        let mut next = self.life_in(&turn, plugin)?;
        match act {
            PluginAction::Approve {
                number,
                looked_at,
                goes_live,
            } => {
                next.approve(number, looked_at.as_ref(), mark.clone())?;
                let record = next.revision(number)?;
                if record.state == RevisionState::Staged && (goes_live || record.goes_live) {
                    self.go_live(&mut turn, next, number, mark).await?;
                } else {
                    self.refresh(&mut turn, next).await?;
                }
            }
            PluginAction::Reject { number } => {
                next.reject(number, mark)?;
                self.commit(&mut turn, next).await?;
                self.cancel(plugin, number);
            }
            PluginAction::Activate { number } => {
                self.go_live(&mut turn, next, number, mark).await?;
            }
            PluginAction::Rollback { to } => {
                let number = next.before(to)?;
                self.go_live(&mut turn, next, number, mark).await?;
            }
            PluginAction::Disable => {
                next.disable(mark)?;
                self.rebuild(&mut turn, next).await?;
            }
            PluginAction::Enable => {
                next.enable(mark)?;
                self.rebuild(&mut turn, next).await?;
            }
            PluginAction::Revoke { atom } => {
                next.revoke(&atom, mark)?;
                self.refresh(&mut turn, next).await?;
            }
        }
        self.life_in(&turn, plugin)
    }

    /// Keeps in the history that the operator calls an operation, or how that call ended.
    pub(crate) async fn note_call(
        &self,
        revision: &Revision,
        operation: &str,
        outcome: Option<&str>,
        mark: OperatorNote,
    ) -> Result<(), RegistryError> {
        let mut turn = self.lives.lock().await;
        let mut next = self.life_in(&turn, &revision.plugin)?;
        next.note_call(revision.number, operation, outcome, mark);
        self.commit(&mut turn, next).await
    }

    /// Writes a record in which grants have changed, and gives what serves the rights that it has now.
    pub(super) async fn refresh(
        self: &Arc<Self>,
        turn: &mut RecordsGuard<'_>,
        next: PluginRecord,
    ) -> Result<(), RegistryError> {
        let lost_or_gained = |serving: &Arc<Revision>| {
            next.revision(serving.number)
                .is_ok_and(|record| next.rights(record) != serving.rights)
        };
        let changed = self
            .serving(next.plugin())
            .as_ref()
            .is_some_and(lost_or_gained);
        if changed {
            self.rebuild(turn, next).await
        } else {
            self.commit(turn, next).await
        }
    }

    /// Writes a record and serves anew what serves of it, or what is active where nothing does: in safe mode these are not the
    /// same. A revision that cannot be loaded does not keep the record from being written.
    pub(super) async fn rebuild(
        self: &Arc<Self>,
        turn: &mut RecordsGuard<'_>,
        next: PluginRecord,
    ) -> Result<(), RegistryError> {
        let serving = self.serving(next.plugin()).map(|serving| serving.number);
        let Some(number) = serving.or(next.active().map(|active| active.number)) else {
            return self.commit(turn, next).await;
        };
        let record = next.revision(number)?.clone();
        let revision = self.build_or_off(&next, &record).await?;
        self.flip(turn, next, revision).await
    }

    /// The revision of a plugin that is served at the moment.
    pub(crate) fn serving(&self, plugin: &str) -> Option<Arc<Revision>> {
        self.current()
            .catalogue
            .revisions()
            .iter()
            .find(|revision| *revision.plugin == *plugin)
            .cloned()
    }
}
