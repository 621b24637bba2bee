//! What one call has under way at once: a place for each act, of so many of its kind.
//!
//! Knows no kind: whoever takes a place names it and says how many there are, so that a new one is told here of nothing.

use std::sync::Arc;

use parking_lot::Mutex;

/// The acts that are under way for one instance.
#[derive(Clone, Default)]
pub(crate) struct ActsInFlight {
    /// Of each kind that was ever one. Never held over an await.
    counts: Arc<Mutex<Vec<(&'static str, usize)>>>,
}

/// A place of one act, until it is dropped.
pub(crate) struct ActPlace {
    acts: ActsInFlight,
    kind: &'static str,
}

impl ActsInFlight {
    /// A place among so many of a kind, if one is free.
    pub(crate) fn place(&self, kind: &'static str, most: usize) -> Option<ActPlace> {
        let mut counts = self.counts.lock();
        let at = match counts.iter().position(|(known, _)| *known == kind) {
            Some(at) => at,
            None => {
                counts.push((kind, 0));
                counts.len() - 1
            }
        };
        let (_, under_way) = &mut counts[at];
        if *under_way >= most {
            return None;
        }
        *under_way += 1;
        Some(ActPlace {
            acts: self.clone(),
            kind,
        })
    }

    /// Whether nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.counts
            .lock()
            .iter()
            .all(|(_, under_way)| *under_way == 0)
    }
}

impl Drop for ActPlace {
    fn drop(&mut self) {
        let mut counts = self.acts.counts.lock();
        let known = counts.iter_mut().find(|(kind, _)| *kind == self.kind);
        if let Some((_, under_way)) = known {
            *under_way -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_places_of_its_own_and_gets_them_back() {
        let acts = ActsInFlight::default();
        let held = acts.place("one", 1);
        assert!(held.is_some() && acts.place("one", 1).is_none());
        assert!(acts.place("two", 1).is_some());
        assert!(!acts.is_idle());
        drop(held);
        assert!(acts.is_idle());
        assert!(acts.place("one", 1).is_some());
    }
}
