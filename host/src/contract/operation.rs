//! An operation as the host serves it, and the values that travel the road to it.
//!
//! An operation is one row of a plugin's description with its schemas compiled. Both transports read the same row; no
//! code here or elsewhere knows one operation from another.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::feature_call::FeatureDoor;
use super::schema::{FaceSchema, OutputSchema};
use super::tenant::Tenant;

/// One operation of a loaded revision.
pub(crate) struct Operation {
    /// The plugin's name for it; unique within the plugin.
    pub(crate) id: String,
    /// `PLUGIN/OPERATION`, as usage and credits are counted.
    pub(crate) counted_as: String,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) output: OutputSchema,
    pub(crate) rest: Option<RestFace>,
    pub(crate) tool: Option<ToolFace>,
    /// Never beside one of the other faces.
    pub(crate) operator: Option<OperatorFace>,
    pub(crate) feature: FeatureFace,
    /// The declared error codes.
    pub(crate) errors: Vec<DeclaredError>,
    /// How often it may be called and at what price.
    pub(crate) terms: OperationTerms,
    pub(crate) deadline: Duration,
    pub(crate) on_deadline: DeclaredFailure,
    pub(crate) on_unavailable: DeclaredFailure,
    pub(crate) examples: Vec<InputExample>,
}

/// What a call of an operation takes of its caller's limits, on both faces.
#[derive(Clone, Debug)]
pub(crate) struct OperationTerms {
    /// Calls a minute of each owner, beside the key's own limits.
    pub(crate) per_minute: Option<u32>,
    /// Calls a minute of each address without a credential; `None` allows none.
    pub(crate) first_party_per_minute: Option<u32>,
    /// Which of the caller's limits a call counts toward.
    pub(crate) consumes: Vec<Consumed>,
    /// Credits, where the configuration has no other price.
    pub(crate) cost: u32,
    pub(crate) idempotency: IdempotencySource,
}

/// A limit of the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Consumed {
    /// The windows of its key and account.
    Window,
    /// The month of its key.
    Month,
    /// The credits of its account.
    Credits,
}

/// What names one execution of an operation, so that it is not done twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum IdempotencySource {
    /// The header `Idempotency-Key`.
    Key,
    /// A `requestId` of its input, which its plugin looks at; the header is ignored.
    RequestId,
}

impl OperationTerms {
    pub(crate) fn consumes(&self, limit: Consumed) -> bool {
        self.consumes.contains(&limit)
    }
}

/// An error that an operation declares.
pub(crate) struct DeclaredError {
    pub(crate) code: String,
    pub(crate) status: StatusCode,
    pub(crate) when: String,
}

/// What the host answers in the operation's name.
#[derive(Clone)]
pub(crate) struct DeclaredFailure {
    pub(crate) code: String,
    pub(crate) status: StatusCode,
    pub(crate) retry_after_s: Option<u64>,
}

/// An example input, for the developer guide.
pub(crate) struct InputExample {
    pub(crate) title: String,
    pub(crate) input: Map<String, Value>,
}

/// The REST face: where an operation's arguments come from and how its reply is printed.
pub(crate) struct RestFace {
    pub(crate) method: Method,
    /// With `{name}` for path parameters.
    pub(crate) path: String,
    /// What the caller's credential must carry.
    pub(crate) scope: Scope,
    pub(crate) input: Arc<FaceSchema>,
    pub(crate) body_bytes_max: usize,
    pub(crate) outcomes: HashMap<String, StatusCode>,
    /// What the data of an outcome fits beside the operation's output, where it is narrower.
    pub(crate) narrowed: HashMap<String, OutputSchema>,
    pub(crate) headers: Vec<HeaderName>,
    pub(crate) cache_control: Option<HeaderValue>,
    pub(crate) etag: bool,
    pub(crate) decoded_length: bool,
}

/// The MCP face.
pub(crate) struct ToolFace {
    pub(crate) name: String,
    /// What the caller's credential must carry.
    pub(crate) scope: Scope,
    pub(crate) annotations: Map<String, Value>,
    pub(crate) input: FaceSchema,
    /// Arguments that the face sets itself.
    pub(crate) fixed: Map<String, Value>,
    /// The largest `arguments` in bytes: the operation's body limit.
    pub(crate) bytes_max: usize,
}

/// The face that only the operator of the service calls: without a scope, a limit of a caller's or a price.
pub(crate) struct OperatorFace {
    pub(crate) input: Arc<FaceSchema>,
    /// The largest input in bytes.
    pub(crate) bytes_max: usize,
}

/// What other plugins may send, where they are granted the operation. It has no scope: the grant stands for it.
pub(crate) struct FeatureFace {
    /// The operation's own input, with what it takes from plugins alone. No document shows it.
    pub(crate) input: Arc<FaceSchema>,
    /// The largest input in bytes: the operation's body limit.
    pub(crate) bytes_max: usize,
}

/// A scope such as `domain:dns`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Scope(String);

impl Scope {
    /// Takes `area:action`, each of lower-case letters, digits and hyphens.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let part = |part: &str| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        let (area, action) = text.split_once(':')?;
        (text.len() <= 64 && part(area) && part(action)).then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which face of the operation was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Face {
    Rest,
    Tool,
}

impl Face {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Face::Rest => "rest",
            Face::Tool => "tool",
        }
    }
}

/// The caller's name within one plugin: 32 hexadecimal digits, which tell nothing of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Owner([u8; 32]);

impl Owner {
    /// From the first half of a digest.
    pub(crate) fn of(digest: &[u8; 32]) -> Self {
        let digit = |value: u8| b"0123456789abcdef"[usize::from(value & 15)];
        Self(std::array::from_fn(|place| {
            let byte = digest[place / 2];
            digit(if place % 2 == 0 { byte >> 4 } else { byte })
        }))
    }

    /// As it was written by [`Owner::as_str`].
    pub(crate) fn read(text: &str) -> Option<Self> {
        let digits: [u8; 32] = text.as_bytes().try_into().ok()?;
        digits
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            .then_some(Self(digits))
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("the digits are ASCII")
    }
}

/// How a caller is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CallerKind {
    ApiKey,
    OAuth,
    /// By its address alone.
    FirstParty,
    /// By the operator's token.
    Operator,
}

/// One call, as a plugin gets it.
pub(crate) struct Call {
    pub(crate) request_id: String,
    pub(crate) operation: String,
    pub(crate) owner: Owner,
    /// Whose places, processor time and jobs it takes; a plugin does not learn it.
    pub(crate) tenant: Tenant,
    /// The id of the API key that it came with, or that its job was submitted with; a plugin does not learn that either.
    pub(crate) key: Option<Arc<str>>,
    pub(crate) caller: CallerKind,
    /// For the log; a plugin does not learn it.
    pub(crate) via: CallOrigin,
    pub(crate) deadline: Duration,
    /// A JSON object that fits the face's schema, or what a job was submitted with.
    pub(crate) input: String,
    /// The way to other plugins' operations, where the plugin is granted any.
    pub(crate) features: Option<Arc<dyn FeatureDoor>>,
}

/// What a call came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallOrigin {
    Face(Face),
    Job,
    Operator,
    /// Another plugin.
    Feature,
}

impl CallOrigin {
    pub(crate) fn name(self) -> &'static str {
        match self {
            CallOrigin::Face(face) => face.name(),
            CallOrigin::Job => "job",
            CallOrigin::Operator => "operator",
            CallOrigin::Feature => "feature",
        }
    }
}

/// What a plugin answers, before the road has checked it.
pub(crate) enum UncheckedAnswer {
    Success(Success),
    Failure(PluginFailure),
}

impl UncheckedAnswer {
    /// What of it came from the plugin, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            UncheckedAnswer::Success(success) => {
                let headers = success.headers.iter();
                let headers = headers.map(|(name, value)| name.len() + value.len());
                success.data.len() + success.outcome.len() + headers.sum::<usize>()
            }
            UncheckedAnswer::Failure(failure) => {
                let details = failure.details.as_ref().map_or(0, String::len);
                failure.code.len() + failure.message.len() + details
            }
        }
    }
}

/// A plugin's success.
pub(crate) struct Success {
    pub(crate) outcome: String,
    pub(crate) data: String,
    pub(crate) headers: Vec<(String, String)>,
    /// How many attachments came with it. No capability stores bytes yet, so any is refused.
    pub(crate) attachments: usize,
}

/// A plugin's failure.
pub(crate) struct PluginFailure {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) retry_after_ms: Option<u32>,
    pub(crate) details: Option<String>,
}

/// A checked success: everything in it was declared.
pub(crate) struct PluginReply {
    pub(crate) outcome: String,
    /// JSON text that fits the operation's output schema.
    pub(crate) data: String,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// Of `data`, where the operation's REST face sends ETags.
    pub(crate) digest: Option<[u8; 32]>,
}
