//! A plugin: its name and its operations, how they are described to the host and dispatched.
//!
//! A plugin is built once in each instance, so building it must stay cheap: the schemas are functions
//! that only `describe` calls.

use serde_json::{Value, json};

use crate::Operation;
use crate::bindings::switchbay::plugin0_2_0::types as wire;

/// A plugin under construction.
pub struct Plugin {
    name: &'static str,
    version: &'static str,
    summary: &'static str,
    wants: Vec<Want>,
    operations: Vec<Operation>,
}

struct Want {
    atom: &'static str,
    why: &'static str,
    optional: bool,
}

impl Plugin {
    /// `name` is the plugin's name in the operator's manifest (lower case with hyphens), `version` its
    /// semantic version, `summary` one line. [`plugin!`](crate::plugin!) takes name and version from Cargo.
    pub fn new(name: &'static str, version: &'static str, summary: &'static str) -> Self {
        Self {
            name,
            version,
            summary,
            wants: Vec::new(),
            operations: Vec::new(),
        }
    }

    /// Asks for a capability: a grant atom such as `logging`, and the reason, which the operator reads.
    /// A capability that is not asked for is never granted. What was asked for before is not asked for again.
    #[must_use]
    pub fn wants(self, atom: &'static str, why: &'static str) -> Self {
        self.want(atom, why, false)
    }

    /// Asks for an optional capability: the plugin serves without it, and until it is granted each use
    /// is denied.
    #[must_use]
    pub fn welcomes(self, atom: &'static str, why: &'static str) -> Self {
        self.want(atom, why, true)
    }

    fn want(mut self, atom: &'static str, why: &'static str, optional: bool) -> Self {
        let want = Want {
            atom,
            why,
            optional,
        };
        if self.wants.iter().all(|known| known.atom != atom) {
            self.wants.push(want);
        }
        self
    }

    /// Adds an operation.
    #[must_use]
    pub fn operation(mut self, operation: Operation) -> Self {
        self.operations.push(operation);
        self
    }
}

impl Want {
    fn describe(&self) -> Value {
        if self.optional {
            json!({ "atom": self.atom, "why": self.why, "optional": true })
        } else {
            json!({ "atom": self.atom, "why": self.why })
        }
    }
}

/// The description of a plugin, as the JSON text that `describe` exports.
pub fn describe(plugin: &Plugin) -> String {
    let wants: Vec<Value> = plugin.wants.iter().map(Want::describe).collect();
    let operations: Vec<Value> = plugin.operations.iter().map(Operation::describe).collect();
    json!({
        "schema": 2,
        "name": plugin.name,
        "version": plugin.version,
        "summary": plugin.summary,
        "wants": wants,
        "operations": operations,
    })
    .to_string()
}

/// Runs the operation that a call names. Traps if this plugin did not describe the operation, which
/// would be a bug in the host.
pub async fn invoke(
    plugin: &'static Plugin,
    call: wire::Call,
    input: String,
) -> Result<wire::Reply, wire::Failure> {
    named(plugin, &call).run(call, input).await
}

/// Runs the worker of the operation that a job's call names. Traps if the operation has no worker.
pub async fn work(
    plugin: &'static Plugin,
    call: wire::Call,
    input: String,
) -> Result<wire::Reply, wire::Failure> {
    named(plugin, &call).work(call, input).await
}

fn named(plugin: &'static Plugin, call: &wire::Call) -> &'static Operation {
    let operation = plugin
        .operations
        .iter()
        .find(|operation| operation.id() == call.operation);
    operation.unwrap_or_else(|| panic!("the plugin has no operation `{}`", call.operation))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_is_asked_for_once_with_its_first_reason() {
        let plugin = crate::plugin!("Does things")
            .wants("config", "to read an address")
            .welcomes("config", "to read a number")
            .welcomes("logging", "to log");
        let described: Value = serde_json::from_str(&describe(&plugin)).expect("JSON");
        let expected = json!([
            { "atom": "config", "why": "to read an address" },
            { "atom": "logging", "why": "to log", "optional": true },
        ]);
        assert_eq!(described["wants"], expected);
        assert_eq!(described["name"], "switchbay-sdk");
    }
}
