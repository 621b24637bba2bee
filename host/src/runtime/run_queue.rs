//! Whose guest computes next: one tenant's long computations take turns with everybody else's.
//!
//! A guest that has computed for a while goes on only with a quantum, of which there are as many as processors. Those who wait
//! for one are served tenant by tenant, so eight calls of one tenant slow another's single call down no more than one would.
//! Must not know what a guest is, nor measure anything.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::contract::tenant::Tenant;

/// The quanta of one process.
pub(crate) struct RunQueue {
    /// Never held over an await.
    state: Mutex<QueueState>,
}

struct QueueState {
    free: usize,
    /// Of each tenant in `tenants`, oldest first; never empty.
    waiting: HashMap<Tenant, VecDeque<oneshot::Sender<()>>>,
    /// Those who wait, by whose turn it is.
    tenants: VecDeque<Tenant>,
}

/// The right to compute until it is dropped.
pub(crate) struct Quantum(Arc<RunQueue>);

impl RunQueue {
    /// For so many that compute at once.
    pub(crate) fn new(processors: usize) -> Arc<Self> {
        let state = QueueState {
            free: processors.max(1),
            waiting: HashMap::new(),
            tenants: VecDeque::new(),
        };
        Arc::new(Self {
            state: Mutex::new(state),
        })
    }

    /// Asks for a quantum, from now on. Whoever computes asks for the next before it gives up its own, or it would stand
    /// behind all who wait, however many of them are one tenant's.
    pub(crate) fn ask(self: Arc<Self>, tenant: Tenant) -> QuantumRequest {
        let (bell, told) = oneshot::channel();
        let is_free = {
            let mut state = self.state.lock();
            let is_free = state.free > 0;
            if is_free {
                state.free -= 1;
            } else {
                state.wait(tenant, bell);
            }
            is_free
        };
        if is_free {
            QuantumRequest::Given(Quantum(self))
        } else {
            QuantumRequest::Waits(WaitingQuantum { queue: self, told })
        }
    }

    /// Hands a quantum on, or keeps it for the next who comes.
    fn give_back(&self) {
        let mut state = self.state.lock();
        while let Some(bell) = state.next() {
            if bell.send(()).is_ok() {
                return;
            }
        }
        state.free += 1;
    }
}

impl QueueState {
    fn wait(&mut self, tenant: Tenant, bell: oneshot::Sender<()>) {
        if let Some(bells) = self.waiting.get_mut(&tenant) {
            return bells.push_back(bell);
        }
        self.tenants.push_back(tenant.clone());
        self.waiting.insert(tenant, VecDeque::from([bell]));
    }

    /// The oldest of the tenant whose turn it is, who then stands last.
    fn next(&mut self) -> Option<oneshot::Sender<()>> {
        let tenant = self.tenants.pop_front()?;
        let bells = self.waiting.get_mut(&tenant)?;
        let bell = bells.pop_front();
        if bells.is_empty() {
            self.waiting.remove(&tenant);
        } else {
            self.tenants.push_back(tenant);
        }
        bell
    }
}

impl Drop for Quantum {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

/// A quantum that was asked for.
pub(crate) enum QuantumRequest {
    Given(Quantum),
    Waits(WaitingQuantum),
}

impl QuantumRequest {
    /// Waits until it is there.
    pub(crate) async fn quantum(self) -> Quantum {
        match self {
            Self::Given(quantum) => quantum,
            Self::Waits(mut waiting) => {
                // Nobody drops the other end without a word while the queue stands.
                (&mut waiting.told).await.ok();
                Quantum(Arc::clone(&waiting.queue))
            }
        }
    }
}

/// Whoever waits. Dropped, it hands on what it was given meanwhile.
pub(crate) struct WaitingQuantum {
    queue: Arc<RunQueue>,
    told: oneshot::Receiver<()>,
}

impl Drop for WaitingQuantum {
    fn drop(&mut self) {
        self.told.close();
        if self.told.try_recv().is_ok() {
            self.queue.give_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: usize) -> Tenant {
        Tenant::key(&name.to_string())
    }

    /// One waits, in a task of its own.
    #[expect(clippy::disallowed_methods, reason = "the test's runtime ends it")]
    fn waits(
        queue: &Arc<RunQueue>,
        name: usize,
        served: &Arc<Mutex<Vec<usize>>>,
    ) -> tokio::task::JoinHandle<()> {
        let (queue, served) = (Arc::clone(queue), Arc::clone(served));
        tokio::spawn(async move {
            let quantum = queue.ask(tenant(name)).quantum().await;
            served.lock().push(name);
            drop(quantum);
        })
    }

    #[tokio::test]
    async fn tenants_are_served_in_turn_however_many_of_each_wait() {
        let (queue, served) = (RunQueue::new(1), Arc::default());
        let held = Arc::clone(&queue).ask(tenant(0)).quantum().await;
        let all: Vec<_> = [1, 1, 1, 2, 3, 2]
            .map(|name| waits(&queue, name, &served))
            .into_iter()
            .collect();
        while queue
            .state
            .lock()
            .waiting
            .values()
            .map(VecDeque::len)
            .sum::<usize>()
            < 6
        {
            tokio::task::yield_now().await;
        }
        drop(held);
        futures::future::join_all(all).await;
        assert_eq!(*served.lock(), [1, 2, 3, 1, 2, 1]);
    }

    #[tokio::test]
    async fn who_goes_away_leaves_nothing_behind_and_takes_nothing_along() {
        let (queue, served) = (RunQueue::new(2), Arc::default());
        let held = [
            Arc::clone(&queue).ask(tenant(0)).quantum().await,
            Arc::clone(&queue).ask(tenant(0)).quantum().await,
        ];
        let gone: Vec<_> = (0..4).map(|name| waits(&queue, name, &served)).collect();
        while queue.state.lock().tenants.len() < 4 {
            tokio::task::yield_now().await;
        }
        // Two go before they are told, and two when they were told and did not know it yet.
        gone[..2].iter().for_each(tokio::task::JoinHandle::abort);
        tokio::task::yield_now().await;
        drop(held);
        gone.iter().for_each(tokio::task::JoinHandle::abort);
        futures::future::join_all(gone).await;
        let state = queue.state.lock();
        assert_eq!(
            (state.free, state.waiting.len(), state.tenants.len()),
            (2, 0, 0)
        );
    }
}
