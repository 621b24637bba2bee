//! What a plugin says of itself: the JSON of `describe`, checked and turned into operations.
//!
//! Everything that could be wrong with an operation is found here, at load, so that the road and the transports may trust
//! each row. Unknown keys are errors. Must not know which plugin it reads.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::profile::{self, ProfileError};
use super::schema::{FaceSchema, OutputSchema, SchemaError};
use super::terms::{self, Settle};
use crate::error::Code;
use crate::metrics::Requests;
use crate::operation::{
    Consumed, DeclaredError, DeclaredFailure, Example, Idempotency, Operation, RestFace, Scope, ToolFace,
};

const BODY_BYTES_DEFAULT: usize = 16 * 1024;
const BODY_BYTES_MAX: usize = 1 << 20;
const DEADLINE_MS_DEFAULT: u32 = 10_000;
const DEADLINE_MS_MAX: u32 = 150_000;
const OPERATIONS_MAX: usize = 64;

/// Response headers that are the host's own; a plugin may declare none of them.
const HOST_HEADERS: [&str; 9] = [
    "content-length",
    "content-type",
    "transfer-encoding",
    "connection",
    "set-cookie",
    "cache-control",
    "etag",
    "www-authenticate",
    "server-timing",
];

/// A description that cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DescriptionError {
    #[error("its description is no JSON of the expected form: {0}")]
    Malformed(#[source] serde_json::Error),
    #[error("its description has schema {0}; this host reads schema 1")]
    Schema(u32),
    #[error("its description says that it is `{0}`")]
    Name(String),
    #[error("its description {0}")]
    Rule(String),
    #[error("operation `{operation}` {rule}")]
    Operation { operation: String, rule: String },
    #[error("operation `{operation}`, {part}: {source}")]
    Profile { operation: String, part: &'static str, source: ProfileError },
    #[error("operation `{operation}`, {part}: {source}")]
    Compile { operation: String, part: &'static str, source: SchemaError },
}

/// A checked description.
pub(crate) struct Description {
    pub(crate) version: String,
    pub(crate) summary: String,
    /// The grant atoms that the plugin asks for.
    pub(crate) wants: Vec<String>,
    pub(crate) operations: Vec<Operation>,
}

/// A wish for a capability, with the reason that an operator reads.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Want {
    atom: String,
    why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    schema: u32,
    name: String,
    version: String,
    summary: String,
    #[serde(default)]
    wants: Vec<Want>,
    operations: Vec<WrittenOperation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenOperation {
    id: String,
    title: String,
    description: String,
    input: Value,
    output: Value,
    rest: Option<WrittenRest>,
    tool: Option<WrittenTool>,
    #[serde(default)]
    errors: Vec<WrittenError>,
    #[serde(default)]
    examples: Vec<WrittenExample>,
    deadline_ms: Option<u32>,
    on_deadline: Option<WrittenFailure>,
    on_unavailable: Option<WrittenFailure>,
    window_per_minute: Option<u32>,
    first_party_per_minute: Option<u32>,
    consumes: Option<Vec<Consumed>>,
    cost: Option<u32>,
    settle: Option<Settle>,
    idempotency: Option<Idempotency>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAccess {
    scope: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRest {
    method: String,
    path: String,
    access: WrittenAccess,
    body_bytes_max: Option<usize>,
    outcomes: BTreeMap<String, u16>,
    #[serde(default)]
    headers: Vec<String>,
    cache_control: Option<String>,
    #[serde(default)]
    etag: bool,
    #[serde(default)]
    decoded_length: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTool {
    name: String,
    access: WrittenAccess,
    #[serde(default)]
    annotations: Map<String, Value>,
    #[serde(default)]
    fixed: Map<String, Value>,
    #[serde(default)]
    hidden: Vec<String>,
    #[serde(default)]
    added: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenError {
    code: String,
    status: u16,
    when: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenExample {
    title: String,
    input: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFailure {
    code: String,
    retry_after_s: Option<u64>,
}

impl Description {
    /// Reads the description of the plugin that the manifest calls `name`.
    pub(crate) fn read(text: &str, name: &str) -> Result<Self, DescriptionError> {
        let written: Written = serde_json::from_str(text).map_err(DescriptionError::Malformed)?;
        if written.schema != 1 {
            return Err(DescriptionError::Schema(written.schema));
        }
        if written.name != name {
            return Err(DescriptionError::Name(written.name));
        }
        if written.operations.is_empty() || written.operations.len() > OPERATIONS_MAX {
            let found = written.operations.len();
            return Err(DescriptionError::Rule(format!("must have 1 to {OPERATIONS_MAX} operations, not {found}")));
        }
        if written.version.is_empty() || written.version.len() > 64 || written.summary.len() > 200 {
            return Err(DescriptionError::Rule("must have a version and a summary of at most 200 bytes".to_owned()));
        }
        let mut operations: Vec<Operation> = Vec::with_capacity(written.operations.len());
        for row in written.operations {
            if operations.iter().any(|other| other.id == row.id) {
                return Err(DescriptionError::Operation { operation: row.id, rule: "is described twice".to_owned() });
            }
            operations.push(operation(row)?);
        }
        if let Some(want) = written.wants.iter().find(|want| want.why.is_empty()) {
            return Err(DescriptionError::Rule(format!("must say why it wants `{}`", want.atom)));
        }
        let wants = written.wants.into_iter().map(|want| want.atom).collect();
        Ok(Self { version: written.version, summary: written.summary, wants, operations })
    }
}

fn operation(row: WrittenOperation) -> Result<Operation, DescriptionError> {
    let id = row.id.clone();
    let broken = |rule: String| DescriptionError::Operation { operation: id.clone(), rule };
    let outside = |part| {
        let operation = id.clone();
        move |source| DescriptionError::Profile { operation, part, source }
    };
    let uncompiled = |part| {
        let operation = id.clone();
        move |source| DescriptionError::Compile { operation, part, source }
    };
    words(&row).map_err(&broken)?;
    let errors = row.errors.into_iter().map(declared_error).collect::<Result<Vec<_>, _>>().map_err(&broken)?;
    let deadline_ms = row.deadline_ms.unwrap_or(DEADLINE_MS_DEFAULT);
    if !(1..=DEADLINE_MS_MAX).contains(&deadline_ms) {
        return Err(broken(format!("has a deadline of {deadline_ms} ms; it must be from 1 to {DEADLINE_MS_MAX}")));
    }
    if row.rest.is_none() && row.tool.is_none() {
        return Err(broken("has neither a REST face nor a tool face".to_owned()));
    }
    profile::check_input(&row.input).map_err(outside("input"))?;
    profile::check_output(&row.output).map_err(outside("output"))?;
    let bytes_max = row.rest.as_ref().and_then(|rest| rest.body_bytes_max).unwrap_or(BODY_BYTES_DEFAULT);
    if !(1..=BODY_BYTES_MAX).contains(&bytes_max) {
        return Err(broken(format!("has `body_bytes_max` {bytes_max}; it must be from 1 to {BODY_BYTES_MAX}")));
    }
    let tool = match row.tool {
        None => None,
        Some(tool) => {
            let input = tool_input(&row.input, &tool).map_err(&broken)?;
            profile::check_input(&input).map_err(outside("tool input"))?;
            let input = FaceSchema::compile(input).map_err(uncompiled("tool input"))?;
            Some(tool_face(tool, input, bytes_max).map_err(&broken)?)
        }
    };
    let rest = match row.rest {
        None => None,
        Some(rest) => {
            let input = FaceSchema::compile(row.input).map_err(uncompiled("input"))?;
            Some(rest_face(rest, input, bytes_max).map_err(&broken)?)
        }
    };
    let examples = examples(row.examples, rest.as_ref().map(|face| &face.input)).map_err(&broken)?;
    let terms = terms::Written {
        window_per_minute: row.window_per_minute,
        first_party_per_minute: row.first_party_per_minute,
        consumes: row.consumes,
        cost: row.cost,
        settle: row.settle,
        idempotency: row.idempotency,
    };
    Ok(Operation {
        terms: terms::terms(terms).map_err(&broken)?,
        output: OutputSchema::compile(row.output).map_err(uncompiled("output"))?,
        deadline: Duration::from_millis(u64::from(deadline_ms)),
        on_deadline: own_failure(row.on_deadline, Code::UpstreamTimeout, &errors).map_err(&broken)?,
        on_unavailable: own_failure(row.on_unavailable, Code::ServiceUnavailable, &errors).map_err(&broken)?,
        id: row.id,
        title: row.title,
        description: row.description,
        rest,
        tool,
        requests: Requests::new(errors.iter().map(|error| error.code.as_str())),
        errors,
        examples,
        last_checked: Mutex::new(None),
    })
}

fn words(row: &WrittenOperation) -> Result<(), String> {
    if !is_identifier(&row.id, 40) {
        return Err("must have an id of 1 to 40 characters of a-z, 0-9 and _, a letter first".to_owned());
    }
    let (title, description) = (row.title.chars().count(), row.description.chars().count());
    if !(1..=60).contains(&title) {
        return Err(format!("must have a title of 1 to 60 characters, not {title}"));
    }
    if !(20..=1000).contains(&description) {
        return Err(format!("must have a description of 20 to 1000 characters, not {description}"));
    }
    Ok(())
}

fn is_identifier(text: &str, length_max: usize) -> bool {
    text.len() <= length_max
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

fn scope(access: &WrittenAccess) -> Result<Scope, String> {
    Scope::parse(&access.scope).ok_or_else(|| format!("has the scope `{}`; write `area:action`", access.scope))
}

fn declared_error(row: WrittenError) -> Result<DeclaredError, String> {
    let code = row.code;
    if code.is_empty() || code.len() > 64 || !code.bytes().all(|b| b.is_ascii_uppercase() || b == b'_') {
        return Err(format!("declares the error code `{code}`; write upper-case words with underscores"));
    }
    let status = error_status(row.status)
        .ok_or_else(|| format!("declares `{code}` with status {}; it must be from 400 to 599", row.status))?;
    match Code::from_name(&code) {
        Some(known) if known.status() != status => {
            Err(format!("declares `{code}` with status {status}; this service answers it with {}", known.status()))
        }
        // The host alone judges credentials: a client reads these as a challenge.
        Some(Code::Unauthorized | Code::Forbidden) => Err(format!("declares `{code}`, which is the host's own")),
        _ => Ok(DeclaredError { code, status, when: row.when }),
    }
}

fn error_status(status: u16) -> Option<StatusCode> {
    StatusCode::from_u16(status).ok().filter(|status| status.is_client_error() || status.is_server_error())
}

fn own_failure(
    written: Option<WrittenFailure>,
    default: Code,
    errors: &[DeclaredError],
) -> Result<DeclaredFailure, String> {
    let Some(written) = written else {
        let code = default.name().to_owned();
        return Ok(DeclaredFailure { code, status: default.status(), retry_after_s: None });
    };
    let declared = errors.iter().find(|error| error.code == written.code).map(|error| error.status);
    let Some(status) = declared.or_else(|| Code::from_name(&written.code).map(Code::status)) else {
        return Err(format!("answers `{}` in the host's name without declaring it", written.code));
    };
    Ok(DeclaredFailure { code: written.code, status, retry_after_s: written.retry_after_s })
}

fn rest_face(row: WrittenRest, input: FaceSchema, body_bytes_max: usize) -> Result<RestFace, String> {
    let method = match row.method.as_str() {
        "GET" => Method::GET,
        "POST" => Method::POST,
        "DELETE" => Method::DELETE,
        other => return Err(format!("has the method `{other}`; it must be GET, POST or DELETE")),
    };
    if !is_path(&row.path) {
        return Err(format!("has the path `{}`; write /api/v1/ and segments of a-z, 0-9, - or {{name}}", row.path));
    }
    for name in path_parameters(&row.path) {
        if input.type_of(name).is_none() {
            return Err(format!("has {{{name}}} in its path, which its input does not have"));
        }
    }
    if row.outcomes.is_empty() {
        return Err("declares no outcome".to_owned());
    }
    let mut outcomes = HashMap::new();
    for (outcome, status) in row.outcomes {
        let status = StatusCode::from_u16(status).ok().filter(StatusCode::is_success);
        let status = status.ok_or_else(|| format!("declares the outcome `{outcome}` without a 2xx status"))?;
        outcomes.insert(outcome, status);
    }
    let mut headers = Vec::with_capacity(row.headers.len());
    for name in row.headers {
        let refused = HOST_HEADERS.contains(&name.to_ascii_lowercase().as_str())
            || name.to_ascii_lowercase().starts_with("x-apikey-")
            || name.to_ascii_lowercase().starts_with("access-control-");
        let parsed = HeaderName::from_bytes(name.as_bytes()).ok().filter(|_| !refused);
        headers.push(parsed.ok_or_else(|| format!("declares the header `{name}`, which is no plugin's to set"))?);
    }
    let cache_control = match row.cache_control {
        None => None,
        Some(text) => Some(
            HeaderValue::from_str(&text)
                .map_err(|_| format!("has the cache_control `{text}`, which is no header value"))?,
        ),
    };
    let scope = scope(&row.access)?;
    let (etag, decoded_length) = (row.etag, row.decoded_length);
    let path = row.path;
    Ok(RestFace { method, path, scope, input, body_bytes_max, outcomes, headers, cache_control, etag, decoded_length })
}

fn is_path(path: &str) -> bool {
    let Some(rest) = path.strip_prefix("/api/v1/") else { return false };
    path.len() <= 200
        && rest.split('/').all(|segment| {
            let name = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
            let text = name.unwrap_or(segment);
            let allowed = |b: u8| match name {
                Some(_) => b.is_ascii_alphanumeric(),
                None => b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-',
            };
            !text.is_empty() && text.bytes().all(allowed)
        })
}

/// The names of a path's `{name}` segments.
pub(crate) fn path_parameters(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
}

fn tool_face(row: WrittenTool, input: FaceSchema, bytes_max: usize) -> Result<ToolFace, String> {
    if !is_identifier(&row.name, 40) || row.name.len() < 3 {
        return Err(format!("has the tool name `{}`; write 3 to 40 characters of a-z, 0-9 and _", row.name));
    }
    const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
    if let Some((name, _)) =
        row.annotations.iter().find(|(name, hint)| !HINTS.contains(&name.as_str()) || !hint.is_boolean())
    {
        return Err(format!("has the tool annotation `{name}`; the annotations are the booleans {}", HINTS.join(", ")));
    }
    let scope = scope(&row.access)?;
    Ok(ToolFace { name: row.name, scope, annotations: row.annotations, input, fixed: row.fixed, bytes_max })
}

/// The input schema of a tool face: the operation's, less what the face fixes and hides, and what it adds.
fn tool_input(input: &Value, tool: &WrittenTool) -> Result<Value, String> {
    let mut schema = input.clone();
    let empty = || json!({});
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let required: Vec<Value> = schema["required"].as_array().cloned().unwrap_or_default();
    let taken = |name: &str| tool.fixed.contains_key(name) || tool.hidden.iter().any(|hidden| hidden == name);
    for name in tool.fixed.keys().chain(&tool.hidden) {
        if !properties.contains_key(name) {
            return Err(format!("fixes or hides `{name}`, which its input does not have"));
        }
    }
    if let Some(name) = tool.hidden.iter().find(|name| required.contains(&json!(name))) {
        return Err(format!("hides `{name}`, which its input requires"));
    }
    if let Some(name) = tool.added.keys().find(|name| properties.contains_key(*name)) {
        return Err(format!("adds `{name}`, which its input has already"));
    }
    let kept: Map<String, Value> = properties.into_iter().filter(|(name, _)| !taken(name)).collect();
    schema["properties"] = empty();
    if let Some(all) = schema["properties"].as_object_mut() {
        all.extend(kept);
        all.extend(tool.added.clone());
    }
    let required: Vec<Value> = required.into_iter().filter(|name| !name.as_str().is_some_and(taken)).collect();
    if let Some(members) = schema.as_object_mut() {
        members.remove("required");
        if !required.is_empty() {
            members.insert("required".to_owned(), Value::Array(required));
        }
    }
    Ok(schema)
}

fn examples(rows: Vec<WrittenExample>, input: Option<&FaceSchema>) -> Result<Vec<Example>, String> {
    let mut examples = Vec::with_capacity(rows.len());
    for WrittenExample { title, input: example } in rows {
        if let Some(Err(offence)) = input.map(|schema| schema.check(&Value::Object(example.clone()))) {
            let field = offence.field.unwrap_or_default();
            return Err(format!("has the example `{title}`, whose `{field}` {}", offence.rule));
        }
        examples.push(Example { title, input: example });
    }
    Ok(examples)
}
