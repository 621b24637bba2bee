//! A description as it is written: each member with its default, unknown keys are errors. What it means, and whether it may
//! be served, is the parent's to say.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::operation::{Consumed, Idempotency};
use crate::registry::faces::{WrittenRest, WrittenTool};
use crate::registry::terms::Settle;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenWant {
    pub(super) atom: String,
    pub(super) why: String,
    #[serde(default)]
    pub(super) optional: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenDescription {
    pub(super) schema: u32,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) summary: String,
    #[serde(default)]
    pub(super) wants: Vec<WrittenWant>,
    pub(super) operations: Vec<WrittenOperation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenOperation {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) input: Value,
    pub(super) output: Value,
    pub(super) rest: Option<WrittenRest>,
    pub(super) tool: Option<WrittenTool>,
    #[serde(default)]
    pub(super) errors: Vec<WrittenError>,
    #[serde(default)]
    pub(super) examples: Vec<WrittenExample>,
    pub(super) deadline_ms: Option<u32>,
    pub(super) on_deadline: Option<WrittenFailure>,
    pub(super) on_unavailable: Option<WrittenFailure>,
    pub(super) window_per_minute: Option<u32>,
    pub(super) first_party_per_minute: Option<u32>,
    pub(super) consumes: Option<Vec<Consumed>>,
    pub(super) cost: Option<u32>,
    pub(super) settle: Option<Settle>,
    pub(super) idempotency: Option<Idempotency>,
    #[serde(default)]
    pub(super) judges: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenError {
    pub(super) code: String,
    pub(super) status: u16,
    pub(super) when: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenExample {
    pub(super) title: String,
    pub(super) input: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenFailure {
    pub(super) code: String,
    pub(super) retry_after_s: Option<u64>,
}
