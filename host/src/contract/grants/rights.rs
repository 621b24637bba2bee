//! What a revision may do: what it wants and is granted.

use std::ops::Deref;

use serde::{Serialize, Serializer};

use super::Grants;

/// The rights of one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rights {
    effective: Grants,
    named: Grants,
}

impl Rights {
    /// What both sides say, and which of it the operator granted by the name of one host.
    pub(crate) fn between(granted: &Grants, wanted: &Grants) -> Self {
        let named: Grants = granted
            .iter()
            .filter(|atom| atom.names_one_host())
            .cloned()
            .collect();
        Self {
            effective: granted.effective(wanted),
            named: named.effective(wanted),
        }
    }

    /// Those that the operator granted by the name of one host. They alone lead into the operator's own network: a wide grant
    /// such as `public` does not become one of these because the plugin wants a host by its name.
    pub(crate) fn named(&self) -> &Grants {
        &self.named
    }

    /// All of it as one list. What a wide atom covers is told as well where the operator named the host, because it does more.
    pub(crate) fn all(&self) -> Grants {
        self.effective
            .iter()
            .chain(self.named.iter())
            .cloned()
            .collect()
    }
}

/// The rights that the operator wrote, each for all that it says.
impl From<Grants> for Rights {
    fn from(granted: Grants) -> Self {
        Self::between(&granted, &granted)
    }
}

/// What both sides say, without what another atom of it says already.
impl Deref for Rights {
    type Target = Grants;

    fn deref(&self) -> &Grants {
        &self.effective
    }
}

impl Serialize for Rights {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.all().serialize(serializer)
    }
}
