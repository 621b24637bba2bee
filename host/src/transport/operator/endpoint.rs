//! What an endpoint of the operator's API is: its path, query, body and answer as types, read from a request here and written
//! into one by the command line's client.
//!
//! Must not know which endpoints there are, nor what any of them does.

use std::marker::PhantomData;

use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use hyper::body::{Bytes, Incoming};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::OperatorApi;
use super::request::RequestError;
use crate::contract::error::Refusal;
use crate::transport::http::connection::HttpResponse;
use crate::transport::http::envelope;
use crate::transport::rest;

const BODY_BYTES_MAX: usize = 16 * 1024;
const JSON: &str = "application/json";

/// An endpoint: one row of the table of routes.
pub(crate) trait Endpoint: Sized + Send + 'static {
    type Path: EndpointParameters;
    type Query: EndpointParameters;
    type Body: EndpointBody;
    type Answer: EndpointAnswer;

    /// The operation's id in the OpenAPI document, which never changes.
    const ID: &'static str;
    const METHOD: &'static str;
    /// With its parameters in braces.
    const PATH: &'static str;
    /// What it does, as one sentence without its full stop.
    const SUMMARY: &'static str;

    /// Does it.
    fn answer(
        api: &OperatorApi,
        request: EndpointRequest<Self>,
    ) -> impl Future<Output = Result<HttpResponse, Refusal>> + Send;
}

/// A request that arrived at an endpoint's path and is not read yet.
pub(crate) struct ArrivedRequest {
    pub(crate) parts: Parts,
    /// Of the path, decoded.
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) body: Incoming,
    pub(crate) request_id: String,
}

/// A request of one endpoint, as the client makes it and the server reads it.
pub(crate) struct EndpointRequest<E: Endpoint> {
    pub(crate) path: E::Path,
    pub(crate) query: E::Query,
    pub(crate) body: E::Body,
    /// As they arrived; the client sends none of its own.
    pub(crate) headers: HeaderMap,
    /// The server's own; the client sends none.
    pub(crate) request_id: String,
}

impl<E: Endpoint> Default for EndpointRequest<E> {
    fn default() -> Self {
        Self {
            path: E::Path::default(),
            query: E::Query::default(),
            body: E::Body::default(),
            headers: HeaderMap::new(),
            request_id: String::new(),
        }
    }
}

impl<E: Endpoint> EndpointRequest<E> {
    pub(crate) fn at(path: E::Path) -> Self {
        Self {
            path,
            ..Self::default()
        }
    }

    pub(crate) fn with(self, body: E::Body) -> Self {
        Self { body, ..self }
    }

    /// Reads what arrived at the endpoint's path.
    pub(crate) async fn read(api: &OperatorApi, arrived: ArrivedRequest) -> Result<Self, Refusal> {
        let ArrivedRequest {
            parts,
            parameters,
            body,
            request_id,
        } = arrived;
        let query = parts.uri.query().unwrap_or_default().as_bytes();
        let pairs = form_urlencoded::parse(query).into_owned();
        Ok(Self {
            path: read_parameters(parameters)?,
            query: read_parameters(pairs)?,
            body: E::Body::read(api, &parts.headers, body).await?,
            headers: parts.headers,
            request_id,
        })
    }

    /// The path and the query that it is sent to.
    pub(crate) fn target(&self) -> String {
        let mut target = E::PATH.to_owned();
        for (name, value) in pairs(&self.path) {
            let value = utf8_percent_encode(&value, NON_ALPHANUMERIC).to_string();
            target = target.replace(&format!("{{{name}}}"), &value);
        }
        let mut query = form_urlencoded::Serializer::new(String::new());
        let query = query.extend_pairs(pairs(&self.query)).finish();
        if !query.is_empty() {
            target = format!("{target}?{query}");
        }
        target
    }
}

/// What stands in a path, or behind its `?`. A type that denies unknown fields refuses other names; any other ignores them.
pub(crate) trait EndpointParameters:
    Default + Serialize + DeserializeOwned + JsonSchema + Send
{
    /// What a parameter that cannot be read is told behind its name.
    const RULE: &'static str;
}

/// None.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct NoParameters {}

impl EndpointParameters for NoParameters {
    const RULE: &'static str = "is not a parameter of this route";
}

/// Reads parameters, of which the last of a name counts.
fn read_parameters<P: EndpointParameters>(
    given: impl IntoIterator<Item = (String, String)>,
) -> Result<P, Refusal> {
    let mut read = Map::new();
    for (name, text) in given {
        let meant = [
            text.parse::<u64>().ok().map(Value::from),
            text.parse::<bool>().ok().map(Value::from),
            Some(Value::String(text)),
        ];
        let fits = |value: &Value| serde_json::from_value::<P>(json!({ &name: value })).is_ok();
        let value = meant.into_iter().flatten().find(fits);
        let value = value.ok_or_else(|| Refusal::invalid(Some(&name), P::RULE))?;
        read.insert(name, value);
    }
    serde_json::from_value(read.into()).map_err(|error| Refusal::internal(error.to_string()))
}

/// The parameters that have a value, as text.
fn pairs(parameters: &impl Serialize) -> Vec<(String, String)> {
    let Ok(Value::Object(members)) = serde_json::to_value(parameters) else {
        return Vec::new();
    };
    let pair = |(name, value)| match value {
        Value::Null => None,
        Value::String(text) => Some((name, text)),
        other => Some((name, other.to_string())),
    };
    members.into_iter().filter_map(pair).collect()
}

/// What an endpoint takes as its body.
pub(crate) trait EndpointBody: Default + Send {
    /// Reads it within the limits of its size and time.
    fn read(
        api: &OperatorApi,
        headers: &HeaderMap,
        body: Incoming,
    ) -> impl Future<Output = Result<Self, Refusal>> + Send;

    /// As the OpenAPI document has it, where there is one.
    fn describe(schemas: &mut EndpointSchemas) -> Option<Value>;

    /// As the client sends it.
    fn payload(self) -> EndpointPayload;
}

/// The bytes of a body with their media type.
pub(crate) struct EndpointPayload {
    pub(crate) media_type: &'static str,
    pub(crate) bytes: Bytes,
}

impl EndpointPayload {
    pub(crate) fn json(body: &impl Serialize) -> Self {
        Self {
            media_type: JSON,
            bytes: json!(body).to_string().into(),
        }
    }
}

/// None; what arrives is not read.
#[derive(Default)]
pub(crate) struct NoBody;

impl EndpointBody for NoBody {
    async fn read(_: &OperatorApi, _: &HeaderMap, _: Incoming) -> Result<Self, Refusal> {
        Ok(Self)
    }

    fn describe(_: &mut EndpointSchemas) -> Option<Value> {
        None
    }

    fn payload(self) -> EndpointPayload {
        EndpointPayload {
            media_type: JSON,
            bytes: Bytes::new(),
        }
    }
}

/// JSON that must be there.
#[derive(Default)]
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: Default + Serialize + DeserializeOwned + JsonSchema + Send> EndpointBody for JsonBody<T> {
    async fn read(api: &OperatorApi, headers: &HeaderMap, body: Incoming) -> Result<Self, Refusal> {
        let bytes = read_json(api, headers, body).await?;
        let read = serde_json::from_slice(&bytes).map_err(RequestError::Malformed)?;
        Ok(Self(read))
    }

    fn describe(schemas: &mut EndpointSchemas) -> Option<Value> {
        let content = json_content(schemas.taken.subschema_for::<T>());
        Some(json!({ "required": true, "content": content }))
    }

    fn payload(self) -> EndpointPayload {
        EndpointPayload::json(&self.0)
    }
}

/// Reads a body that says that it is JSON.
pub(crate) async fn read_json(
    api: &OperatorApi,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<Bytes, Refusal> {
    let time = api.config.file.limits.body_ms.time();
    rest::read_body(headers, body, BODY_BYTES_MAX, time).await
}

/// Whether a body is a component and not JSON about one.
pub(crate) fn is_component(headers: &HeaderMap) -> bool {
    let media_type = headers.get(CONTENT_TYPE);
    media_type.is_some_and(|value| value == "application/wasm")
}

/// What an endpoint answers with where it does not refuse.
pub(crate) trait EndpointAnswer {
    const STATUS: StatusCode;

    /// Its media type with its schema, as the OpenAPI document has them.
    fn describe(schemas: &mut EndpointSchemas) -> Value;
}

/// Data in the envelope, with 200 or another status of success.
pub(crate) struct Enveloped<T, const STATUS: u16 = 200>(PhantomData<T>);

impl<T: JsonSchema, const STATUS: u16> EndpointAnswer for Enveloped<T, STATUS> {
    const STATUS: StatusCode = match STATUS {
        200 => StatusCode::OK,
        201 => StatusCode::CREATED,
        202 => StatusCode::ACCEPTED,
        _ => panic!("no status of success"),
    };

    fn describe(schemas: &mut EndpointSchemas) -> Value {
        json_content(json!({
            "type": "object",
            "required": ["success", "data"],
            "properties": { "success": { "const": true }, "data": schemas.told.subschema_for::<T>() },
        }))
    }
}

/// An answer without an envelope.
pub(crate) struct PlainAnswer<F>(PhantomData<F>);

/// The form of an answer without an envelope.
pub(crate) trait PlainForm {
    const MEDIA_TYPE: &'static str;
    const JSON_TYPE: &'static str = "string";
}

impl<F: PlainForm> EndpointAnswer for PlainAnswer<F> {
    const STATUS: StatusCode = StatusCode::OK;

    fn describe(_: &mut EndpointSchemas) -> Value {
        json!({ F::MEDIA_TYPE: { "schema": { "type": F::JSON_TYPE } } })
    }
}

/// What a handler gives back, made into the answer `A`.
pub(crate) trait EndpointReply<A> {
    fn response(self) -> HttpResponse;
}

impl<T: Serialize, const STATUS: u16> EndpointReply<Enveloped<T, STATUS>> for T
where
    Enveloped<T, STATUS>: EndpointAnswer,
{
    fn response(self) -> HttpResponse {
        let PrintedAnswer(mut response) = PrintedAnswer::enveloped(&self);
        *response.status_mut() = Enveloped::<T, STATUS>::STATUS;
        response
    }
}

/// An answer that its handler has made itself.
pub(crate) struct PrintedAnswer(pub(crate) HttpResponse);

impl PrintedAnswer {
    /// Data in the envelope.
    pub(crate) fn enveloped(data: &impl Serialize) -> Self {
        let data = json!(data).to_string();
        Self(envelope::json(StatusCode::OK, envelope::success(&data)))
    }

    /// A text of a media type.
    pub(crate) fn of(text: String, media_type: &'static str) -> Self {
        let mut response = envelope::json(StatusCode::OK, text);
        envelope::set(response.headers_mut(), CONTENT_TYPE, media_type);
        Self(response)
    }
}

impl<A> EndpointReply<A> for PrintedAnswer {
    fn response(self) -> HttpResponse {
        self.0
    }
}

/// The schemas of what is taken and of what is told, with what they refer to.
pub(crate) struct EndpointSchemas {
    pub(crate) taken: SchemaGenerator,
    pub(crate) told: SchemaGenerator,
}

impl Default for EndpointSchemas {
    fn default() -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.definitions_path = "/components/schemas".into();
        Self {
            taken: settings.clone().into_generator(),
            told: settings.for_serialize().into_generator(),
        }
    }
}

impl EndpointSchemas {
    /// What their references name.
    pub(crate) fn referred(mut self) -> Map<String, Value> {
        let mut referred = self.taken.take_definitions(true);
        referred.extend(self.told.take_definitions(true));
        referred
    }
}

/// The schemas of parameters by their names.
pub(crate) fn parameter_schemas<P: EndpointParameters>() -> Map<String, Value> {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<P>();
    let properties = schema.remove("properties").unwrap_or_default();
    let mut properties = properties.as_object().cloned().unwrap_or_default();
    for (_, schema) in &mut properties {
        // Absent is none: a text cannot be null.
        if let Some(kind) = schema["type"].get(0).cloned() {
            schema["type"] = kind;
        }
        schema
            .as_object_mut()
            .and_then(|schema| schema.remove("default"));
    }
    properties
}

/// JSON of a schema, as the OpenAPI document has it.
pub(crate) fn json_content(schema: impl Into<Value>) -> Value {
    json!({ JSON: { "schema": schema.into() } })
}
