//! Revisions that were replaced and whose calls go on: seen until the last one ends, and stopped when that takes too long.
//!
//! A call that took its snapshot before the swap may begin after it, while its body still arrives; so a revision has its
//! longest call and the time of a body; where another plugin may call it, from the same snapshot, the longest call of that one.
//! A job that runs on it longer than that is cut off, and goes on with the next one.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use super::{Registry, mark};
use crate::catalogue::revision::Revision;

/// Revisions of one plugin that drain at once. One more stops the oldest.
const DRAINING_MAX: usize = 16;

/// All that drain now.
pub(super) struct DrainingRevisions {
    /// For the body of a request to arrive.
    body: Duration,
    /// Oldest first. Never held over an await.
    revisions: Mutex<Vec<Weak<Revision>>>,
}

impl DrainingRevisions {
    /// With the time that the body of a request has.
    pub(super) fn new(body: Duration) -> Self {
        Self {
            body,
            revisions: Mutex::default(),
        }
    }

    pub(super) fn all(&self) -> Vec<Arc<Revision>> {
        let mut revisions = self.revisions.lock();
        revisions.retain(|revision| revision.strong_count() > 0);
        revisions.iter().filter_map(Weak::upgrade).collect()
    }

    fn add(&self, revision: &Arc<Revision>) {
        let of_plugin: Vec<Arc<Revision>> = self
            .all()
            .into_iter()
            .filter(|other| other.plugin == revision.plugin)
            .collect();
        if let Some(oldest) = of_plugin
            .first()
            .filter(|_| of_plugin.len() >= DRAINING_MAX)
        {
            tracing::warn!(
                plugin = &*oldest.plugin,
                revision = oldest.number,
                "too many revisions are draining; stopping the oldest"
            );
            oldest.stop();
        }
        let mut revisions = self.revisions.lock();
        revisions.push(Arc::downgrade(revision));
    }
}

impl Registry {
    /// Sees a replaced revision to its end.
    pub(super) fn drain(self: &Arc<Self>, replaced: Arc<Revision>) {
        self.drains.add(&replaced);
        let (registry, gone) = (Arc::clone(self), replaced.gone());
        let time = self.longest_with(&replaced) + self.drains.body;
        let (plugin, number) = (Arc::clone(&replaced.plugin), replaced.number);
        let replaced = {
            let weak = Arc::downgrade(&replaced);
            drop(replaced);
            weak
        };
        let stopping = self.tasks.stopping();
        self.tasks.spawn_to_end(async move {
            let last_call = async {
                if tokio::time::timeout(time, gone.cancelled()).await.is_err() {
                    if let Some(replaced) = replaced.upgrade() {
                        tracing::warn!(
                            plugin = &*plugin,
                            revision = number,
                            "a draining revision is stopped"
                        );
                        replaced.stop();
                    }
                    gone.cancelled().await;
                }
            };
            // What still drains when the process stops, the next one notes.
            tokio::select! {
                () = stopping.cancelled() => return,
                () = last_call => {}
            }
            registry.drained(&plugin, number).await;
        });
    }

    /// The time of the longest call that may still reach a revision: one of its own, or one that calls other plugins, however
    /// many of them stand between.
    fn longest_with(&self, replaced: &Revision) -> Duration {
        let (current, draining) = (self.current(), self.drains.all());
        let others = current.catalogue.revisions().iter().chain(&draining);
        let callers = others.filter(|revision| revision.calls_features);
        let times = callers.map(|revision| revision.longest_call());
        times.fold(replaced.longest_call(), Duration::max)
    }

    async fn drained(&self, plugin: &str, number: u64) {
        let mut turn = self.lives.lock().await;
        // The revision may have served again in between and be draining once more.
        if self
            .drains
            .all()
            .iter()
            .any(|other| *other.plugin == *plugin && other.number == number)
        {
            return;
        }
        let Some(life) = turn.get(plugin) else { return };
        let mut next = life.clone();
        if !next.drained(number, mark("host", "its last call has ended")) {
            return;
        }
        let forgot = next.revisions().len() < life.revisions().len();
        if let Err(error) = self.commit(&mut turn, next).await {
            tracing::error!(plugin, revision = number, %error, "cannot note that a revision has drained");
        } else if forgot {
            self.tidy(&turn).await;
        }
    }
}
