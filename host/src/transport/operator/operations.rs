//! Operations that plugins serve to the operator alone: called, and added to the OpenAPI document of the operator's API.
//!
//! Must not know what any of them does, nor how it is run.

use http::HeaderMap;
use hyper::body::Incoming;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::endpoint::{
    Endpoint, EndpointBody, EndpointParameters, EndpointPayload, EndpointRequest, EndpointSchemas,
    PrintedAnswer,
};
use super::plugins::ActRequest;
use super::routes::CallOperation;
use super::{OperatorApi, openapi};
use crate::base::json::{MalformedJson, strict_json};
use crate::catalogue::{Bound, Catalogue};
use crate::contract::error::Refusal;
use crate::contract::operation::OperatorFace;
use crate::pipeline::operator_call::OperatorCall;
use crate::transport::http::connection::HttpResponse;
use crate::transport::http::envelope;
use crate::transport::rest;

/// The largest input that a description may allow is a mebibyte; the words beside it are short.
const BODY_BYTES_MAX: usize = (1 << 20) + 16 * 1024;

/// Which operation of which plugin.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct OperationPath {
    /// The plugin's name in the manifest.
    pub(crate) plugin: String,
    /// The operation's id.
    pub(crate) operation: String,
}

impl EndpointParameters for OperationPath {
    const RULE: &'static str = "must be a name";
}

/// What the operation is called with.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CallOrder {
    /// The operation's input. Default: an empty object.
    #[serde(default)]
    pub(crate) input: Map<String, Value>,
}

/// The body of a call. It may be as large as an operation's input.
#[derive(Default)]
pub(crate) struct CalledOperation(pub(crate) ActRequest<CallOrder>);

impl EndpointBody for CalledOperation {
    async fn read(api: &OperatorApi, headers: &HeaderMap, body: Incoming) -> Result<Self, Refusal> {
        let time = api.config.file.limits.body_ms.time();
        let bytes = rest::read_body(headers, body, BODY_BYTES_MAX, time).await?;
        if let Err(MalformedJson::Duplicate(name)) = strict_json(&bytes) {
            return Err(Refusal::invalid(Some(&name), "appears more than once"));
        }
        ActRequest::parse(&bytes).map(Self)
    }

    fn describe(schemas: &mut EndpointSchemas) -> Option<Value> {
        ActRequest::<CallOrder>::describe(schemas)
    }

    fn payload(self) -> EndpointPayload {
        self.0.payload()
    }
}

/// Calls an operation; the answer is what the plugin says.
pub(super) async fn call(
    api: &OperatorApi,
    request: EndpointRequest<CallOperation>,
) -> Result<PrintedAnswer, Refusal> {
    let CalledOperation(asked) = request.body;
    let call = OperatorCall {
        mark: asked.mark()?,
        plugin: request.path.plugin,
        operation: request.path.operation,
        input: asked.order.input,
        request_id: request.request_id,
    };
    let reply = api.pipeline.call_by_operator(&api.registry, call).await?;
    let response: HttpResponse =
        envelope::json(http::StatusCode::OK, envelope::success(&reply.data));
    Ok(PrintedAnswer(response))
}

/// Adds a path to the document for each operation that is served.
pub(super) fn publish(paths: &mut Map<String, Value>, catalogue: &Catalogue) {
    let (template, generic) = (
        CallOperation::PATH,
        CallOperation::METHOD.to_ascii_lowercase(),
    );
    let Some(known) = paths.get(template).map(|path| path[&generic].clone()) else {
        return;
    };
    let served = catalogue.of_the_operator();
    for (bound, face) in served.filter(|(bound, _)| bound.revision.is_published()) {
        let (plugin, id) = (&*bound.revision.plugin, &bound.operation.id);
        let path = template
            .replace("{plugin}", plugin)
            .replace("{operation}", id);
        let method = described(known.clone(), bound, face);
        paths.insert(path, json!({ &generic: method }));
    }
}

/// The description of any call, made into that of one operation's.
fn described(mut row: Value, bound: &Bound, face: &OperatorFace) -> Value {
    let (plugin, operation) = (&bound.revision.plugin, &bound.operation);
    // A plugin's name has no underscore, so no two of these are one.
    row["operationId"] = json!(format!("call_{plugin}_{}", operation.id));
    row["tags"] = json!([**plugin]);
    row["summary"] = json!(operation.title);
    row["description"] = json!(operation.description);
    row["parameters"] = json!([]);
    let input = face.input.document();
    let is_required = input["required"]
        .as_array()
        .is_some_and(|names| !names.is_empty());
    row["requestBody"]["required"] = json!(is_required);
    let body = &mut row["requestBody"]["content"]["application/json"];
    body["schema"]["properties"]["input"] = input.clone();
    if is_required {
        body["schema"]["required"] = json!(["input"]);
    }
    for (index, example) in operation.examples.iter().enumerate() {
        body["examples"][format!("example{}", index + 1)] =
            json!({ "summary": example.title, "value": { "input": example.input } });
    }
    let responses = &mut row["responses"];
    responses["200"]["content"]["application/json"]["schema"]["properties"]["data"] =
        operation.output.document().clone();
    for error in &operation.errors {
        let told = format!("`{}`: {}", error.code, error.when);
        let refused = &mut responses[error.status.as_str()];
        if refused.is_null() {
            *refused = openapi::refused(&told);
        } else {
            let known = refused["description"].as_str().unwrap_or_default();
            refused["description"] = json!(format!("{known} {told}"));
        }
    }
    row
}
