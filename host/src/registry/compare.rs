//! What an operator looks at before another revision serves: what it would be allowed, and what clients would see change.
//!
//! Reads what two revisions said of themselves when they were staged; nothing is loaded for it. Whether anything is granted
//! is decided elsewhere.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lifecycle::RevisionRecord;
use super::{Registry, RegistryError};
use crate::contract::grants::GrantDifference;

/// How one revision differs from another.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RevisionComparison {
    pub(crate) plugin: String,
    pub(crate) revision: u64,
    /// The revision that it is held against: the one that serves, where no other was asked for.
    pub(crate) against: Option<u64>,
    /// From what the other may do to what this one wants.
    pub(crate) rights: GrantDifference,
    /// What it wants and is not granted: what an approval would grant.
    pub(crate) missing: Vec<Missing>,
    /// One line for each operation that a client would find added, removed or changed.
    pub(crate) operations: Vec<String>,
}

/// A right that is wanted and not granted.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Missing {
    pub(crate) atom: String,
    /// The plugin's own words.
    pub(crate) why: String,
}

impl Registry {
    /// Compares a revision with another one of its plugin, or with the one that serves.
    pub(crate) async fn compare(
        &self,
        plugin: &str,
        number: u64,
        against: Option<u64>,
    ) -> Result<RevisionComparison, RegistryError> {
        let life = self.life_of(plugin).await?;
        let record = life.revision(number)?;
        let other = match against {
            Some(number) => Some(life.revision(number)?),
            None => life.active(),
        };
        let rights = other.map(|other| life.rights(other)).unwrap_or_default();
        let missing = life.missing(record);
        let wants = record
            .wants
            .iter()
            .filter(|want| missing.iter().any(|atom| *atom == want.atom));
        Ok(RevisionComparison {
            plugin: plugin.to_owned(),
            revision: number,
            against: other.map(|other| other.number),
            rights: GrantDifference::between(&rights, &record.wanted()),
            missing: wants
                .map(|want| Missing {
                    atom: want.atom.to_string(),
                    why: want.why.clone(),
                })
                .collect(),
            operations: operations(&self.faces(other).await?, &self.faces(Some(record)).await?),
        })
    }

    /// What clients see of a revision's operations, by id. One that was never described has none.
    async fn faces(
        &self,
        record: Option<&RevisionRecord>,
    ) -> Result<BTreeMap<String, ClientView>, RegistryError> {
        let Some(record) = record else {
            return Ok(BTreeMap::new());
        };
        let text = self.store.description(&record.digest).await?;
        let text = text.unwrap_or_default();
        // What is in the store was checked when it was staged.
        let description: Value = serde_json::from_str(&text).unwrap_or_default();
        let operations = description["operations"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        Ok(operations
            .iter()
            .map(|operation| (said(&operation["id"]), ClientView::of(operation)))
            .collect())
    }
}

/// What a client sees of one operation.
#[derive(Default, PartialEq)]
struct ClientView {
    route: Option<String>,
    tool: Option<String>,
    operator: Option<String>,
    input: Value,
    /// What only plugins may send.
    feature_input: Value,
    output: Value,
    rest: Value,
}

impl ClientView {
    fn of(operation: &Value) -> Self {
        let (rest, tool) = (&operation["rest"], &operation["tool"]);
        let scope = |face: &Value| said(&face["access"]["scope"]);
        let route = format!(
            "{} {} (scope {})",
            said(&rest["method"]),
            said(&rest["path"]),
            scope(rest)
        );
        Self {
            route: rest.is_object().then_some(route),
            tool: tool
                .is_object()
                .then(|| format!("tool {} (scope {})", said(&tool["name"]), scope(tool))),
            operator: operation["operator"]
                .is_object()
                .then(|| format!("operator's operation {}", said(&operation["id"]))),
            input: operation["input"].clone(),
            feature_input: operation["feature_input"].clone(),
            output: operation["output"].clone(),
            rest: rest.clone(),
        }
    }

    fn parts(&self) -> impl Iterator<Item = &String> {
        self.route.iter().chain(&self.tool).chain(&self.operator)
    }
}

fn said(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn operations(
    before: &BTreeMap<String, ClientView>,
    after: &BTreeMap<String, ClientView>,
) -> Vec<String> {
    let mut lines = Vec::new();
    for (id, face) in before {
        let now = after.get(id);
        let gone = face
            .parts()
            .filter(|part| !now.is_some_and(|now| now.parts().any(|other| other == *part)));
        lines.extend(gone.map(|part| format!("- {part}")));
    }
    for (id, face) in after {
        let was = before.get(id);
        let new = face
            .parts()
            .filter(|part| !was.is_some_and(|was| was.parts().any(|other| other == *part)));
        lines.extend(new.map(|part| format!("+ {part}")));
        let Some(was) = was else { continue };
        for (what, changed) in [
            ("input", was.input != face.input),
            ("feature input", was.feature_input != face.feature_input),
            ("output", was.output != face.output),
        ] {
            if changed {
                lines.push(format!("~ {id}: {what} schema"));
            }
        }
        if was.route == face.route && was.rest != face.rest {
            lines.push(format!("~ {id}: headers, caching or limits of its route"));
        }
    }
    lines
}

/// For people: what it would be allowed first, then what clients would see.
impl fmt::Display for RevisionComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.against {
            Some(against) => writeln!(
                f,
                "{}: revision {} against {against}",
                self.plugin, self.revision
            )?,
            None => writeln!(f, "{}: revision {}, the first", self.plugin, self.revision)?,
        }
        writeln!(f, "rights")?;
        if self.rights.is_empty() {
            writeln!(f, "  unchanged")?;
        } else {
            self.rights
                .to_string()
                .lines()
                .try_for_each(|line| writeln!(f, "  {line}"))?;
        }
        if !self.missing.is_empty() {
            writeln!(f, "not granted yet")?;
            self.missing
                .iter()
                .try_for_each(|Missing { atom, why }| writeln!(f, "  {atom}: {why}"))?;
        }
        writeln!(f, "operations")?;
        if self.operations.is_empty() {
            writeln!(f, "  unchanged")
        } else {
            self.operations
                .iter()
                .try_for_each(|line| writeln!(f, "  {line}"))
        }
    }
}
