//! Which call of a plugin has the next place, so that no tenant has all of them.
//!
//! A tenant holds at most its share, and the last quarter of the places is for tenants that hold none. What has no place waits
//! behind its own tenant's calls; a place that is free goes to the tenant who holds fewest, and of several to the one whose
//! call waits longest. So a tenant that waits is served before anybody is served twice. Pure: nothing here waits or wakes;
//! whoever ends or changes something asks for [`PlaceShares::next`] until there is none.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::contract::tenant::Tenant;

/// How many places there are, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShareLimits {
    /// Calls at once.
    pub(crate) places: usize,
    /// Of one tenant.
    pub(crate) each: usize,
    /// Calls of one tenant that wait.
    pub(crate) waiting_each: usize,
}

impl ShareLimits {
    /// The places that are kept for tenants which hold none.
    fn kept(self) -> usize {
        self.places / 4
    }
}

/// What became of a call that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryOutcome {
    /// It has a place.
    Begun,
    /// It waits under this number.
    Waits(u64),
    /// As many calls of its tenant wait as may.
    Full,
}

/// The places of one plugin. A waiting call is known by its `W`.
pub(crate) struct PlaceShares<W> {
    limits: ShareLimits,
    running: usize,
    waiting: usize,
    /// Tenants that run or wait; no others.
    tenants: HashMap<Tenant, Holds<W>>,
    /// Tenants that wait, by how many places they hold and by their oldest waiting call.
    turns: BTreeMap<(usize, u64), Tenant>,
    /// The number of the next call that waits.
    number: u64,
}

struct Holds<W> {
    running: usize,
    waiting: VecDeque<(u64, W)>,
}

impl<W> Default for Holds<W> {
    fn default() -> Self {
        let (running, waiting) = (0, VecDeque::new());
        Self { running, waiting }
    }
}

impl<W> Holds<W> {
    /// Its place among those that wait.
    fn turn(&self) -> Option<(usize, u64)> {
        self.waiting
            .front()
            .map(|(number, _)| (self.running, *number))
    }
}

impl<W> PlaceShares<W> {
    pub(crate) fn new(limits: ShareLimits) -> Self {
        let (tenants, turns) = (HashMap::new(), BTreeMap::new());
        Self {
            limits,
            running: 0,
            waiting: 0,
            tenants,
            turns,
            number: 0,
        }
    }

    /// Other limits from now on. What runs goes on.
    pub(crate) fn resize(&mut self, limits: ShareLimits) {
        self.limits = limits;
    }

    pub(crate) fn limits(&self) -> ShareLimits {
        self.limits
    }

    /// Calls that have a place, and that wait for one.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.running, self.waiting)
    }

    /// A call comes. It is known by what `wait` makes, where it has to wait.
    pub(crate) fn enter(&mut self, tenant: &Tenant, wait: impl FnOnce() -> W) -> EntryOutcome {
        let (running, waiting) = self
            .tenants
            .get(tenant)
            .map_or((0, 0), |holds| (holds.running, holds.waiting.len()));
        // Whoever waits may not begin, or it would have: it is not overtaken by this call.
        let begins = waiting == 0 && self.may_begin(running);
        if !begins && waiting >= self.limits.waiting_each {
            return EntryOutcome::Full;
        }
        let holds = match self.tenants.get_mut(tenant) {
            Some(holds) => holds,
            None => self.tenants.entry(tenant.clone()).or_default(),
        };
        if begins {
            (holds.running, self.running) = (running + 1, self.running + 1);
            return EntryOutcome::Begun;
        }
        let number = self.number;
        self.number += 1;
        holds.waiting.push_back((number, wait()));
        self.waiting += 1;
        if waiting == 0 {
            self.turns.insert((running, number), tenant.clone());
        }
        EntryOutcome::Waits(number)
    }

    /// A call that had a place has ended.
    pub(crate) fn end(&mut self, tenant: &Tenant) {
        let running = &mut self.running;
        Self::change(&mut self.tenants, &mut self.turns, tenant, |holds| {
            (holds.running, *running) = (holds.running - 1, *running - 1);
        });
    }

    /// A call waits no longer. Gives back whether it still did; otherwise it was given a place.
    pub(crate) fn leave(&mut self, tenant: &Tenant, number: u64) -> bool {
        let before = self.waiting;
        let waiting = &mut self.waiting;
        Self::change(&mut self.tenants, &mut self.turns, tenant, |holds| {
            if let Some(at) = holds.waiting.iter().position(|(known, _)| *known == number) {
                holds.waiting.remove(at);
                *waiting -= 1;
            }
        });
        self.waiting < before
    }

    /// Gives a free place to the call whose turn it is, if there is one.
    pub(crate) fn next(&mut self) -> Option<W> {
        // Who holds fewest may begin before everybody else, so where it may not, nobody may.
        let (&(running, _), tenant) = self.turns.first_key_value()?;
        if !self.may_begin(running) {
            return None;
        }
        let (tenant, mut next) = (tenant.clone(), None);
        Self::change(&mut self.tenants, &mut self.turns, &tenant, |holds| {
            next = holds.waiting.pop_front();
            holds.running += 1;
        });
        let (_, waiter) = next?;
        (self.running, self.waiting) = (self.running + 1, self.waiting - 1);
        Some(waiter)
    }

    /// Whether the tenant waits for its own calls, and not for others'.
    pub(crate) fn is_at_share(&self, tenant: &Tenant) -> bool {
        let running = self.tenants.get(tenant).map_or(0, |holds| holds.running);
        running >= self.limits.each || (running > 0 && self.running < self.limits.places)
    }

    /// Whether a tenant that holds so many places may have one more.
    fn may_begin(&self, running: usize) -> bool {
        let ShareLimits { places, each, .. } = self.limits;
        let open = if running == 0 {
            places
        } else {
            places - self.limits.kept()
        };
        running < each && self.running < open
    }

    /// Changes what a tenant holds, and its turn with it. One that holds nothing and waits for nothing is forgotten.
    fn change(
        tenants: &mut HashMap<Tenant, Holds<W>>,
        turns: &mut BTreeMap<(usize, u64), Tenant>,
        tenant: &Tenant,
        change: impl FnOnce(&mut Holds<W>),
    ) {
        let Some(holds) = tenants.get_mut(tenant) else {
            return;
        };
        let before = holds.turn();
        change(holds);
        let after = holds.turn();
        let is_gone = holds.running == 0 && holds.waiting.is_empty();
        if before != after {
            let moved = before.and_then(|turn| turns.remove(&turn));
            if let Some(turn) = after {
                turns.insert(turn, moved.unwrap_or_else(|| tenant.clone()));
            }
        }
        if is_gone {
            tenants.remove(tenant);
        }
    }
}

#[cfg(test)]
mod tests;
