//! What an operator asks of plugins: the parameters and bodies of their endpoints, and what they come to.
//!
//! Must not know the registry's state, nor what becomes of a request.

use std::path::PathBuf;

use bytes::Bytes;
use http::HeaderMap;
use hyper::body::Incoming;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::contract::error::{Code, Refusal};
use crate::contract::grants::{Atom, AtomError, Grants};
use crate::registry::lifecycle::OperatorNote;
use crate::registry::{PluginAction, mark};
use crate::runtime::components::COMPONENT_BYTES_MAX;
use crate::transport::operator::OperatorApi;
use crate::transport::operator::endpoint::{
    EndpointBody, EndpointParameters, EndpointPayload, EndpointSchemas, is_component, json_content,
    read_json,
};
use crate::transport::rest;

/// Characters of a reason, and of a name.
const WHY_CHARACTERS_MAX: usize = 500;
const BY_CHARACTERS_MAX: usize = 100;
/// The actor where a request names nobody.
const OPERATOR: &str = "operator";
const COMPONENT: &str = "application/wasm";

/// Which plugin.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct PluginPath {
    /// Its name in the manifest.
    pub(crate) plugin: String,
}

impl EndpointParameters for PluginPath {
    const RULE: &'static str = "must be the name of a plugin";
}

/// Which revision of which plugin.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct RevisionPath {
    /// The plugin's name in the manifest.
    pub(crate) plugin: String,
    /// The revision's number.
    #[schemars(range(min = 1))]
    pub(crate) revision: u64,
}

impl EndpointParameters for RevisionPath {
    const RULE: &'static str = "must be a number";
}

/// What to compare with.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CompareQuery {
    /// The revision to compare with. Default: the active one.
    pub(crate) against: Option<u64>,
}

impl EndpointParameters for CompareQuery {
    const RULE: &'static str = "must be `against` with the number of a revision";
}

/// What is said of an uploaded component.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StageQuery {
    /// Who stages an uploaded component, for the history.
    pub(crate) by: Option<String>,
    /// Why.
    pub(crate) why: Option<String>,
    /// Its SHA-256, in hexadecimal.
    pub(crate) digest: Option<String>,
    /// Serve it as soon as everything that it wants is granted.
    pub(crate) activate: bool,
}

impl EndpointParameters for StageQuery {
    const RULE: &'static str = "is not a parameter of this route, or has an invalid value";
}

/// The body of an act: who does it and why, and the order itself. No body at all orders nothing in particular.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct ActRequest<T> {
    /// Who does it, for the history.
    pub(crate) by: Option<String>,
    /// Why.
    pub(crate) why: Option<String>,
    #[serde(flatten)]
    pub(crate) order: T,
}

/// Of an act that takes no more words.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PlainOrder {}

/// What to stage, where it is not uploaded.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ComponentOrder {
    /// A file that the server can read. Default: the source in the manifest entry.
    pub(crate) path: Option<PathBuf>,
    /// The component's SHA-256, in hexadecimal.
    pub(crate) digest: Option<String>,
    /// Serve it as soon as everything that it wants is granted.
    #[serde(default)]
    pub(crate) activate: bool,
}

/// What to approve.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ApproveOrder {
    /// The atoms that were reviewed; nothing else is granted.
    pub(crate) grants: Option<Vec<String>>,
    /// Serve it as soon as everything that it wants is granted.
    #[serde(default)]
    pub(crate) activate: bool,
}

/// What to go back to.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RollbackOrder {
    /// The revision's number. Default: the one before the active one.
    pub(crate) to: Option<u64>,
}

/// What to take back.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RevokeOrder {
    /// The approved atom to take back.
    pub(crate) atom: Option<String>,
}

impl<T> ActRequest<T> {
    /// Who does it, when and why.
    pub(crate) fn mark(&self) -> Result<OperatorNote, Refusal> {
        let words = |name, value: Option<&String>, most, default: &str| {
            let text = value.map_or(default, String::as_str);
            if text.chars().count() <= most && !text.chars().any(char::is_control) {
                Ok(text.to_owned())
            } else {
                let rule = format!("must have at most {most} printable characters");
                Err(Refusal::invalid(Some(name), &rule))
            }
        };
        let by = words("by", self.by.as_ref(), BY_CHARACTERS_MAX, OPERATOR)?;
        Ok(mark(
            if by.is_empty() { OPERATOR } else { &by },
            &words("why", self.why.as_ref(), WHY_CHARACTERS_MAX, "")?,
        ))
    }
}

impl ActRequest<ApproveOrder> {
    /// The approval of a revision.
    pub(crate) fn approval(&self, number: u64) -> Result<PluginAction, Refusal> {
        let looked_at = self.order.grants.as_ref().map(Grants::parse).transpose();
        Ok(PluginAction::Approve {
            number,
            looked_at: looked_at.map_err(|error| no_atom("grants", &error))?,
            goes_live: self.order.activate,
        })
    }
}

impl ActRequest<RevokeOrder> {
    /// That an approval is taken back.
    pub(crate) fn revocation(&self) -> Result<PluginAction, Refusal> {
        let text = self.order.atom.as_deref();
        let text = text.ok_or_else(|| Refusal::invalid(Some("atom"), "is missing"))?;
        let atom = Atom::parse(text).map_err(|error| no_atom("atom", &error))?;
        Ok(PluginAction::Revoke { atom })
    }
}

fn no_atom(field: &str, error: &AtomError) -> Refusal {
    Refusal::new(Code::ValidationError, error.to_string()).with("field", field)
}

impl<T> ActRequest<T>
where
    T: Default + Serialize + DeserializeOwned,
{
    /// Reads it; nothing at all orders nothing in particular.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_slice(bytes).map_err(|error| match Self::foreign_member(bytes) {
            Some(name) => {
                let rule = format!("is not a member of this route's body: {error}");
                Refusal::invalid(Some(&name), &rule)
            }
            None => {
                let rule = format!("The body is not valid for this route: {error}");
                Refusal::invalid(None, &rule)
            }
        })
    }

    /// The first member that a body of this form does not have.
    fn foreign_member(bytes: &[u8]) -> Option<String> {
        let members: Map<String, Value> = serde_json::from_slice(bytes).ok()?;
        let known = json!(Self::default());
        let mut names = members.into_iter().map(|(name, _)| name);
        names.find(|name| known.get(name).is_none())
    }
}

impl<T> EndpointBody for ActRequest<T>
where
    T: Default + Serialize + DeserializeOwned + JsonSchema + Send,
{
    async fn read(api: &OperatorApi, headers: &HeaderMap, body: Incoming) -> Result<Self, Refusal> {
        Self::parse(&read_json(api, headers, body).await?)
    }

    fn describe(schemas: &mut EndpointSchemas) -> Option<Value> {
        let content = json_content(schemas.taken.subschema_for::<Self>());
        Some(json!({ "required": false, "content": content }))
    }

    fn payload(self) -> EndpointPayload {
        EndpointPayload::json(&self)
    }
}

/// A component, or JSON that says where one is.
pub(crate) enum StagedComponent {
    Written(ActRequest<ComponentOrder>),
    Upload(Bytes),
}

impl Default for StagedComponent {
    fn default() -> Self {
        Self::Written(ActRequest::default())
    }
}

impl StagedComponent {
    /// What is ordered, and the component where it came along.
    pub(crate) fn ordered(self, query: StageQuery) -> (ActRequest<ComponentOrder>, Option<Bytes>) {
        let StageQuery {
            by,
            why,
            digest,
            activate,
        } = query;
        let order = ComponentOrder {
            path: None,
            digest,
            activate,
        };
        match self {
            Self::Written(asked) => (asked, None),
            Self::Upload(bytes) => (ActRequest { by, why, order }, Some(bytes)),
        }
    }
}

impl EndpointBody for StagedComponent {
    async fn read(api: &OperatorApi, headers: &HeaderMap, body: Incoming) -> Result<Self, Refusal> {
        if !is_component(headers) {
            return ActRequest::read(api, headers, body)
                .await
                .map(Self::Written);
        }
        let bytes_max = usize::try_from(COMPONENT_BYTES_MAX).unwrap_or(usize::MAX);
        let time = api.config.file.limits.request_ms.time();
        rest::read_bytes(body, bytes_max, time)
            .await
            .map(Self::Upload)
    }

    fn describe(schemas: &mut EndpointSchemas) -> Option<Value> {
        let mut body = ActRequest::<ComponentOrder>::describe(schemas)?;
        body["content"][COMPONENT] = json!({ "schema": { "type": "string", "format": "binary" } });
        Some(body)
    }

    fn payload(self) -> EndpointPayload {
        match self {
            Self::Written(asked) => asked.payload(),
            Self::Upload(bytes) => EndpointPayload {
                media_type: COMPONENT,
                bytes,
            },
        }
    }
}
