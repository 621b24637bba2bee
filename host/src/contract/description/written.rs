//! A description as it is written: each member with its default, unknown keys are errors. What it means, and whether it may
//! be served, is the parent's to say.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::contract::faces::{WrittenOperatorFace, WrittenRest, WrittenTool};
use crate::contract::operation::{Consumed, IdempotencySource};
use crate::contract::terms::SettlementPoint;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenWant {
    pub(crate) atom: String,
    pub(crate) why: String,
    #[serde(default)]
    pub(crate) optional: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenDescription {
    pub(crate) schema: u32,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) summary: String,
    #[serde(default)]
    pub(crate) wants: Vec<WrittenWant>,
    pub(crate) operations: Vec<WrittenOperation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenOperation {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) input: Value,
    pub(crate) output: Value,
    pub(crate) rest: Option<WrittenRest>,
    pub(crate) tool: Option<WrittenTool>,
    pub(crate) operator: Option<WrittenOperatorFace>,
    #[serde(default)]
    pub(crate) errors: Vec<WrittenError>,
    #[serde(default)]
    pub(crate) examples: Vec<WrittenExample>,
    pub(crate) deadline_ms: Option<u32>,
    pub(crate) on_deadline: Option<WrittenFailure>,
    pub(crate) on_unavailable: Option<WrittenFailure>,
    pub(crate) window_per_minute: Option<u32>,
    pub(crate) first_party_per_minute: Option<u32>,
    pub(crate) consumes: Option<Vec<Consumed>>,
    pub(crate) cost: Option<u32>,
    pub(crate) settle: Option<SettlementPoint>,
    pub(crate) idempotency: Option<IdempotencySource>,
    #[serde(default)]
    pub(crate) judges: Vec<String>,
    /// Properties of its input that only other plugins may send.
    #[serde(default)]
    pub(crate) feature_input: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenError {
    pub(crate) code: String,
    pub(crate) status: u16,
    pub(crate) when: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenExample {
    pub(crate) title: String,
    pub(crate) input: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenFailure {
    pub(crate) code: String,
    pub(crate) retry_after_s: Option<u64>,
}
