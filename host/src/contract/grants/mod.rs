//! Grants: what a plugin wants and what an operator lends, as sets of atoms, and how two such sets stand to one another.
//!
//! Pure functions over text: reaches for nothing, and knows neither plugins nor how a right is used. The grammar of an atom
//! is `atom`'s, and a new interface is one row there.

mod atom;
mod difference;
mod host;
mod http;
mod rights;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use self::atom::AtomRule;
pub(crate) use self::atom::{Atom, AtomError};
pub(crate) use self::difference::GrantDifference;
pub(crate) use self::host::is_never_public;
pub(crate) use self::http::RequestForm;
pub(crate) use self::rights::Rights;

/// The interface whose rights are operations of other plugins.
pub(crate) const FEATURES: &str = "features";
/// The most atoms that one plugin may want or be granted.
const ATOMS_MAX: usize = 64;

/// A set of atoms, in canonical order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<String>")]
#[schemars(inline)]
pub(crate) struct Grants(BTreeSet<Atom>);

impl Grants {
    /// Reads a list as somebody wrote it. An atom that stands in it twice, two sizes of one thing and more than
    /// [`ATOMS_MAX`] atoms are errors, because whoever wrote them meant something else.
    pub(crate) fn parse<S: AsRef<str>>(
        atoms: impl IntoIterator<Item = S>,
    ) -> Result<Self, AtomError> {
        let mut grants = Self::default();
        for text in atoms {
            let atom = Atom::parse(text.as_ref())?;
            let broken = |rule| AtomError::new(text.as_ref(), rule);
            if grants.0.len() == ATOMS_MAX {
                return Err(broken(AtomRule::TooMany));
            }
            if let Some(other) = grants.0.iter().find(|other| atom.excludes(other)) {
                return Err(broken(AtomRule::Twice {
                    other: other.to_string(),
                }));
            }
            grants.0.insert(atom);
        }
        Ok(grants)
    }

    /// Whether every part of the atom is within one of these. Methods may come from several of them.
    pub(crate) fn covers(&self, wanted: &Atom) -> bool {
        wanted
            .parts()
            .iter()
            .all(|part| self.0.iter().any(|atom| atom.covers(part)))
    }

    /// Whether there is any right at all to the interface, such as `http`.
    pub(crate) fn any_of(&self, interface: &str) -> bool {
        self.0.iter().any(|atom| atom.interface() == interface)
    }

    /// How many bytes the atom of a kind that is granted by size lends.
    pub(crate) fn bytes_of(&self, interface: &str) -> Option<u64> {
        self.0
            .iter()
            .filter(|atom| atom.interface() == interface)
            .find_map(Atom::bytes)
    }

    /// Whether a request is within one of the atoms of `http`.
    pub(crate) fn allow(&self, asked: &RequestForm<'_>) -> bool {
        self.0.iter().any(|atom| atom.allows(asked))
    }

    /// Whether an atom of an interface whose rights are names, such as `dns`, has this name.
    pub(crate) fn grant_name(&self, interface: &str, name: &str) -> bool {
        self.0
            .iter()
            .any(|atom| atom.interface() == interface && atom.has_name(name))
    }

    /// The operations of other plugins that are granted, as `PLUGIN.OPERATION`.
    pub(crate) fn called_operations(&self) -> impl Iterator<Item = &str> {
        let features = self.0.iter().filter(|atom| atom.interface() == FEATURES);
        features.filter_map(Atom::name)
    }

    /// Whether an atom of `http` grants so much of the host on the port that bytes which nobody reads may go there.
    pub(crate) fn allow_tunnel(&self, name: Option<&str>, port: u16) -> bool {
        self.0.iter().any(|atom| atom.allows_tunnel(name, port))
    }

    /// Whether an atom of `line-query` covers the host on the port. `None` is a literal address, which only any host covers.
    pub(crate) fn allow_line(&self, host: Option<&str>, port: u16) -> bool {
        self.0.iter().any(|atom| atom.allows_line(host, port))
    }

    /// Whether an atom of `http` names the host on the port.
    pub(crate) fn name(&self, host: &str, port: u16) -> bool {
        self.0.iter().any(|atom| atom.names(host, port))
    }

    /// The rights that hold where these are granted and those are wanted: what both say, and so never more than either.
    pub(crate) fn effective(&self, wanted: &Grants) -> Grants {
        let meets: BTreeSet<Atom> = self
            .0
            .iter()
            .flat_map(|atom| wanted.0.iter().filter_map(|other| atom.meet(other)))
            .collect();
        // What another one says already is left out.
        meets
            .iter()
            .filter(|atom| {
                !meets
                    .iter()
                    .any(|other| other != *atom && other.covers(atom))
            })
            .cloned()
            .collect()
    }

    /// The wanted atoms that are not granted in full.
    pub(crate) fn uncovered(&self, wanted: &Grants) -> Grants {
        wanted
            .iter()
            .filter(|atom| !self.covers(atom))
            .cloned()
            .collect()
    }

    /// Whether nothing is granted or wanted.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In canonical order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Atom> {
        self.0.iter()
    }
}

impl FromIterator<Atom> for Grants {
    fn from_iter<I: IntoIterator<Item = Atom>>(atoms: I) -> Self {
        Self(atoms.into_iter().collect())
    }
}

impl TryFrom<Vec<String>> for Grants {
    type Error = AtomError;

    fn try_from(atoms: Vec<String>) -> Result<Self, AtomError> {
        Self::parse(atoms)
    }
}

impl Serialize for Grants {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.0)
    }
}
