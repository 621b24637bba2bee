//! Which call of a plugin has the next place, so that no tenant has all of them.
//!
//! A tenant holds at most its share, and the last quarter of the places is for tenants that hold none. What has no place waits
//! behind its own tenant's calls; a place that is free goes to the tenant who holds fewest, and of several to the one whose
//! call waits longest. So a tenant that waits is served before anybody is served twice. Pure: nothing here waits or wakes;
//! whoever ends or changes something asks for [`PlaceShares::next`] until there is none.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::auth::tenant::Tenant;

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
pub(super) enum Entered {
    /// It has a place.
    Begun,
    /// It waits under this number.
    Waits(u64),
    /// As many calls of its tenant wait as may.
    Full,
}

/// The places of one plugin. A waiting call is known by its `W`.
pub(super) struct PlaceShares<W> {
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

impl<W> Holds<W> {
    /// Its place among those that wait.
    fn turn(&self) -> Option<(usize, u64)> {
        self.waiting.front().map(|(number, _)| (self.running, *number))
    }
}

impl<W> PlaceShares<W> {
    pub(super) fn new(limits: ShareLimits) -> Self {
        let (tenants, turns) = (HashMap::new(), BTreeMap::new());
        Self { limits, running: 0, waiting: 0, tenants, turns, number: 0 }
    }

    /// Other limits from now on. What runs goes on.
    pub(super) fn resize(&mut self, limits: ShareLimits) {
        self.limits = limits;
    }

    pub(super) fn limits(&self) -> ShareLimits {
        self.limits
    }

    /// Calls that have a place, and that wait for one.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.running, self.waiting)
    }

    /// A call comes. It is known by what `wait` makes, where it has to wait.
    pub(super) fn enter(&mut self, tenant: &Tenant, wait: impl FnOnce() -> W) -> Entered {
        let (running, waiting) = self.tenants.get(tenant).map_or((0, 0), |holds| (holds.running, holds.waiting.len()));
        // Whoever waits may not begin, or it would have: it is not overtaken by this call.
        let begins = waiting == 0 && self.may_begin(running);
        if !begins && waiting >= self.limits.waiting_each {
            return Entered::Full;
        }
        if !self.tenants.contains_key(tenant) {
            self.tenants.insert(tenant.clone(), Holds { running: 0, waiting: VecDeque::new() });
        }
        let Some(holds) = self.tenants.get_mut(tenant) else {
            return Entered::Full;
        };
        if begins {
            (holds.running, self.running) = (running + 1, self.running + 1);
            return Entered::Begun;
        }
        let number = self.number;
        self.number += 1;
        holds.waiting.push_back((number, wait()));
        self.waiting += 1;
        if waiting == 0 {
            self.turns.insert((running, number), tenant.clone());
        }
        Entered::Waits(number)
    }

    /// A call that had a place has ended.
    pub(super) fn end(&mut self, tenant: &Tenant) {
        let running = &mut self.running;
        Self::change(&mut self.tenants, &mut self.turns, tenant, |holds| {
            (holds.running, *running) = (holds.running - 1, *running - 1);
        });
    }

    /// A call waits no longer. Gives back whether it still did; otherwise it was given a place.
    pub(super) fn leave(&mut self, tenant: &Tenant, number: u64) -> bool {
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
    pub(super) fn next(&mut self) -> Option<W> {
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
    pub(super) fn is_at_share(&self, tenant: &Tenant) -> bool {
        let running = self.tenants.get(tenant).map_or(0, |holds| holds.running);
        running >= self.limits.each || (running > 0 && self.running < self.limits.places)
    }

    /// Whether a tenant that holds so many places may have one more.
    fn may_begin(&self, running: usize) -> bool {
        let ShareLimits { places, each, .. } = self.limits;
        let open = if running == 0 { places } else { places - self.limits.kept() };
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
mod tests {
    use arbtest::arbitrary::{Result, Unstructured};
    use arbtest::arbtest;

    use super::*;

    fn tenant(name: usize) -> Tenant {
        Tenant::key(&name.to_string())
    }

    /// What a plain list of all calls says, against which the shares are held.
    #[derive(Default)]
    struct SharesModel {
        /// Tenant and number of calls that wait, oldest first.
        waiting: Vec<(usize, u64)>,
        running: Vec<usize>,
    }

    impl SharesModel {
        fn of(&self, name: usize) -> usize {
            self.running.iter().filter(|one| **one == name).count()
        }

        fn may_begin(&self, name: usize, limits: ShareLimits) -> bool {
            let holds = self.of(name);
            let free = limits.places.saturating_sub(self.running.len());
            holds < limits.each && free > if holds == 0 { 0 } else { limits.places / 4 }
        }

        /// The oldest call of each tenant that waits, and among them the one of who holds fewest.
        fn next(&self, limits: ShareLimits) -> Option<(usize, u64)> {
            let may = self.waiting.iter().filter(|(name, _)| self.may_begin(*name, limits));
            may.min_by_key(|(name, number)| (self.of(*name), *number)).copied()
        }

        fn begin(&mut self, call: (usize, u64)) {
            self.waiting.retain(|one| *one != call);
            self.running.push(call.0);
        }
    }

    fn limits(u: &mut Unstructured<'_>) -> Result<ShareLimits> {
        let places = u.int_in_range(1..=12)?;
        let (each, waiting_each) = (u.int_in_range(1..=places)?, u.int_in_range(0..=3)?);
        Ok(ShareLimits { places, each, waiting_each })
    }

    /// Lets everybody begin who may, each when it is its turn.
    fn begin_all(shares: &mut PlaceShares<(usize, u64)>, model: &mut SharesModel, now: ShareLimits) {
        while let Some(begun) = shares.next() {
            assert_eq!(Some(begun), model.next(now), "it is another's turn");
            model.begin(begun);
            assert!(model.running.len() <= now.places && model.of(begun.0) <= now.each);
            let others_kept = now.places - model.running.len() >= now.places / 4;
            assert!(others_kept || model.of(begun.0) == 1, "the quarter is for those who hold none");
        }
    }

    /// Whatever comes, ends, gives up and is resized: nobody is over the places or its share, the quarter is kept, exactly the
    /// call begins whose turn it is, nobody waits who may begin, and what has gone leaves nothing.
    #[test]
    fn places_are_shared_whatever_comes_and_goes() {
        arbtest(|u: &mut Unstructured<'_>| -> Result<()> {
            let mut now = limits(u)?;
            let (mut shares, mut model) = (PlaceShares::new(now), SharesModel::default());
            while !u.is_empty() {
                let name = u.int_in_range(0..=4)?;
                match u.int_in_range(0..=9)? {
                    0..=4 => {
                        let number = shares.number;
                        let waits = model.waiting.iter().filter(|(of, _)| *of == name).count();
                        let expected = match waits == 0 && model.may_begin(name, now) {
                            true => Entered::Begun,
                            false if waits >= now.waiting_each => Entered::Full,
                            false => Entered::Waits(number),
                        };
                        assert_eq!(shares.enter(&tenant(name), || (name, number)), expected);
                        match expected {
                            Entered::Begun => model.running.push(name),
                            Entered::Waits(number) => model.waiting.push((name, number)),
                            Entered::Full => {}
                        }
                    }
                    5..=7 if !model.running.is_empty() => {
                        let at = u.choose_index(model.running.len())?;
                        shares.end(&tenant(model.running.swap_remove(at)));
                    }
                    8 if !model.waiting.is_empty() => {
                        let (name, number) = model.waiting.remove(u.choose_index(model.waiting.len())?);
                        assert!(shares.leave(&tenant(name), number));
                        assert!(!shares.leave(&tenant(name), number));
                    }
                    9 => {
                        now = limits(u)?;
                        shares.resize(now);
                    }
                    _ => {}
                }
                begin_all(&mut shares, &mut model, now);
                assert_eq!(model.next(now), None, "nobody waits who may begin");
                assert_eq!(shares.counts(), (model.running.len(), model.waiting.len()));
                let known =
                    (0..=4).filter(|name| model.of(*name) > 0 || model.waiting.iter().any(|(waits, _)| waits == name));
                assert_eq!((shares.tenants.len(), shares.turns.len() <= shares.tenants.len()), (known.count(), true));
            }
            Ok(())
        });
    }

    /// Against tenants without number, a call waits no longer than it takes to serve everybody once who came before it.
    #[test]
    fn nobody_starves_however_many_come() {
        let limits = ShareLimits { places: 4, each: 3, waiting_each: 64 };
        let mut shares = PlaceShares::new(limits);
        let mut running = VecDeque::new();
        for name in 0..100 {
            if shares.enter(&tenant(name), || name) == Entered::Begun {
                running.push_back(name);
            }
        }
        // This one holds a place, and wants more of them than everybody else.
        let mine: Vec<Entered> = (0..3).map(|_| shares.enter(&tenant(0), || 0)).collect();
        assert!(mine.iter().all(|entered| matches!(entered, Entered::Waits(_))));
        let (mut served, mut newcomer) = (0, 100);
        for _ in 0..200 {
            let ended = running.pop_front().expect("something runs");
            shares.end(&tenant(ended));
            while let Some(name) = shares.next() {
                served += usize::from(name == 0);
                running.push_back(name);
            }
            // Another stranger for each call that ends.
            assert!(matches!(shares.enter(&tenant(newcomer), || newcomer), Entered::Waits(_)));
            newcomer += 1;
        }
        assert_eq!(served, 3, "each of its calls stood behind those who came before, and behind nobody else");
    }
}
