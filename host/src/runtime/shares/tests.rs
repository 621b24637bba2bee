//! What `shares` promises, case by case.

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
        let may = self
            .waiting
            .iter()
            .filter(|(name, _)| self.may_begin(*name, limits));
        may.min_by_key(|(name, number)| (self.of(*name), *number))
            .copied()
    }

    fn begin(&mut self, call: (usize, u64)) {
        self.waiting.retain(|one| *one != call);
        self.running.push(call.0);
    }
}

fn limits(u: &mut Unstructured<'_>) -> Result<ShareLimits> {
    let places = u.int_in_range(1..=12)?;
    let (each, waiting_each) = (u.int_in_range(1..=places)?, u.int_in_range(0..=3)?);
    Ok(ShareLimits {
        places,
        each,
        waiting_each,
    })
}

/// Lets everybody begin who may, each when it is its turn.
fn begin_all(shares: &mut PlaceShares<(usize, u64)>, model: &mut SharesModel, now: ShareLimits) {
    while let Some(begun) = shares.next() {
        assert_eq!(Some(begun), model.next(now), "it is another's turn");
        model.begin(begun);
        assert!(model.running.len() <= now.places && model.of(begun.0) <= now.each);
        let others_kept = now.places - model.running.len() >= now.places / 4;
        assert!(
            others_kept || model.of(begun.0) == 1,
            "the quarter is for those who hold none"
        );
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
                        true => EntryOutcome::Begun,
                        false if waits >= now.waiting_each => EntryOutcome::Full,
                        false => EntryOutcome::Waits(number),
                    };
                    assert_eq!(shares.enter(&tenant(name), || (name, number)), expected);
                    match expected {
                        EntryOutcome::Begun => model.running.push(name),
                        EntryOutcome::Waits(number) => model.waiting.push((name, number)),
                        EntryOutcome::Full => {}
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
            let known = (0..=4).filter(|name| {
                model.of(*name) > 0 || model.waiting.iter().any(|(waits, _)| waits == name)
            });
            assert_eq!(
                (
                    shares.tenants.len(),
                    shares.turns.len() <= shares.tenants.len()
                ),
                (known.count(), true)
            );
        }
        Ok(())
    });
}

/// Against tenants without number, a call waits no longer than it takes to serve everybody once who came before it.
#[test]
fn nobody_starves_however_many_come() {
    let limits = ShareLimits {
        places: 4,
        each: 3,
        waiting_each: 64,
    };
    let mut shares = PlaceShares::new(limits);
    let mut running = VecDeque::new();
    for name in 0..100 {
        if shares.enter(&tenant(name), || name) == EntryOutcome::Begun {
            running.push_back(name);
        }
    }
    // This one holds a place, and wants more of them than everybody else.
    let mine: Vec<EntryOutcome> = (0..3).map(|_| shares.enter(&tenant(0), || 0)).collect();
    assert!(
        mine.iter()
            .all(|entered| matches!(entered, EntryOutcome::Waits(_)))
    );
    let (mut served, mut newcomer) = (0, 100);
    for _ in 0..200 {
        let ended = running.pop_front().expect("something runs");
        shares.end(&tenant(ended));
        while let Some(name) = shares.next() {
            served += usize::from(name == 0);
            running.push_back(name);
        }
        // Another stranger for each call that ends.
        assert!(matches!(
            shares.enter(&tenant(newcomer), || newcomer),
            EntryOutcome::Waits(_)
        ));
        newcomer += 1;
    }
    assert_eq!(
        served, 3,
        "each of its calls stood behind those who came before, and behind nobody else"
    );
}
