//! How one set of grants differs from another, for whoever approves the change.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Atom, Grants};

/// What became of each atom. An atom whose size or methods alone changed is told as widened or narrowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct GrantDifference {
    added: Grants,
    removed: Grants,
    kept: Grants,
    widened: Vec<ResizedAtom>,
    narrowed: Vec<ResizedAtom>,
    /// What the added atoms alone do not tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<AtomNote>,
    /// Whether something is allowed after it that was not before. An added atom that another covers allows nothing new.
    pub(crate) widens: bool,
}

/// One atom before and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
struct ResizedAtom {
    from: Atom,
    to: Atom,
}

/// What whoever approves an atom should know of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
struct AtomNote {
    atom: Atom,
    note: String,
}

impl GrantDifference {
    pub(crate) fn between(before: &Grants, after: &Grants) -> Self {
        let fresh = |atom: &&Atom| !before.0.contains(*atom);
        let mut gone: Vec<&Atom> = before
            .iter()
            .filter(|atom| !after.0.contains(*atom))
            .collect();
        let mut difference = Self {
            added: Grants::default(),
            removed: Grants::default(),
            kept: before
                .iter()
                .filter(|atom| after.0.contains(*atom))
                .cloned()
                .collect(),
            widened: Vec::new(),
            narrowed: Vec::new(),
            notes: Vec::new(),
            widens: after.iter().any(|atom| !before.covers(atom)),
        };
        for to in after.iter().filter(fresh) {
            let resized = |from: &&Atom| {
                from.is_about_the_same_as(to) && (from.covers(to) || to.covers(from))
            };
            let Some(place) = gone.iter().position(resized) else {
                difference.added.0.insert(to.clone());
                continue;
            };
            let from = gone.remove(place).clone();
            let list = if to.covers(&from) {
                &mut difference.widened
            } else {
                &mut difference.narrowed
            };
            list.push(ResizedAtom {
                from,
                to: to.clone(),
            });
        }
        let note = |atom: &Atom| {
            Some(AtomNote {
                atom: atom.clone(),
                note: atom.note()?.to_owned(),
            })
        };
        difference.notes = difference.added.iter().filter_map(note).collect();
        difference.removed = gone.into_iter().cloned().collect();
        difference
    }

    /// Whether the two sets are equal.
    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            added,
            removed,
            kept: _,
            widened,
            narrowed,
            notes: _,
            widens: _,
        } = self;
        added.0.is_empty() && removed.0.is_empty() && widened.is_empty() && narrowed.is_empty()
    }
}

/// One line for each change, in canonical order: `+ added (what it does besides)`, `- removed`, `~ after, was before (wider)`.
impl fmt::Display for GrantDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resized = |one: &ResizedAtom, how| format!("~ {}, was {} ({how})", one.to, one.from);
        let mut lines: Vec<(&Atom, String)> = Vec::new();
        lines.extend(self.removed.iter().map(|atom| (atom, format!("- {atom}"))));
        lines.extend(self.added.iter().map(|atom| {
            let note = atom.note().map(|note| format!(" ({note})"));
            (atom, format!("+ {atom}{}", note.unwrap_or_default()))
        }));
        lines.extend(
            self.widened
                .iter()
                .map(|one| (&one.to, resized(one, "wider"))),
        );
        lines.extend(
            self.narrowed
                .iter()
                .map(|one| (&one.to, resized(one, "narrower"))),
        );
        lines.sort_by(|one, two| one.0.cmp(two.0));
        lines.iter().try_for_each(|(_, line)| writeln!(f, "{line}"))
    }
}
