//! The faces of an operation as a description writes them, checked: its REST route, its tool, and that of the operator.
//!
//! Whether two operations have one face is the catalogue's to say. Must not know of plugins, or of what both faces share.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use http::{HeaderName, HeaderValue, Method, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::operation::{RestFace, Scope, ToolFace};
use super::profile;
use super::schema::{FaceSchema, Offence, OutputSchema};

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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAccess {
    scope: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenRest {
    method: String,
    path: String,
    access: WrittenAccess,
    pub(crate) body_bytes_max: Option<usize>,
    outcomes: BTreeMap<String, u16>,
    #[serde(default)]
    narrowed: BTreeMap<String, Map<String, Value>>,
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
pub(crate) struct WrittenTool {
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

/// The operator's face. It came with schema 2 of descriptions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenOperatorFace {
    pub(crate) body_bytes_max: Option<usize>,
}

pub(crate) fn is_identifier(text: &str, length_max: usize) -> bool {
    text.len() <= length_max
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// The first that stands twice.
pub(crate) fn twice<T: PartialEq>(values: impl Iterator<Item = T> + Clone) -> Option<T> {
    values
        .clone()
        .enumerate()
        .find(|(index, value)| values.clone().take(*index).any(|other| other == *value))
        .map(|(_, value)| value)
}

fn scope(access: &WrittenAccess) -> Result<Scope, String> {
    Scope::parse(&access.scope)
        .ok_or_else(|| format!("has the scope `{}`; write `area:action`", access.scope))
}

pub(crate) fn rest_face(
    row: WrittenRest,
    input: Arc<FaceSchema>,
    output: &Value,
    body_bytes_max: usize,
) -> Result<RestFace, String> {
    let method = match row.method.as_str() {
        "GET" => Method::GET,
        "POST" => Method::POST,
        "DELETE" => Method::DELETE,
        other => {
            return Err(format!(
                "has the method `{other}`; it must be GET, POST or DELETE"
            ));
        }
    };
    if !is_path(&row.path) {
        return Err(format!(
            "has the path `{}`; write /api/v1/ and segments of a-z, 0-9, - or {{name}}",
            row.path
        ));
    }
    if let Some(name) = twice(path_parameters(&row.path)) {
        return Err(format!("has {{{name}}} more than once in its path"));
    }
    let is_absent = |name: &&str| input.type_of(name).is_none();
    if let Some(name) = path_parameters(&row.path).find(is_absent) {
        return Err(format!(
            "has {{{name}}} in its path, which its input does not have"
        ));
    }
    if row.outcomes.is_empty() {
        return Err("declares no outcome".to_owned());
    }
    let outcomes = outcomes(row.outcomes)?;
    let narrowed = narrowed(row.narrowed, &outcomes, output)?;
    let header = |name: String| {
        let lower = name.to_ascii_lowercase();
        let is_own = HOST_HEADERS.contains(&lower.as_str())
            || lower.starts_with("x-apikey-")
            || lower.starts_with("access-control-");
        let parsed = HeaderName::from_bytes(lower.as_bytes()).ok();
        let parsed = parsed.filter(|_| !is_own);
        parsed.ok_or_else(|| format!("declares the header `{name}`, which plugins may not set"))
    };
    let cache_control = |text: String| {
        HeaderValue::from_str(&text).map_err(|_| {
            format!("has the cache_control `{text}`, which is not a valid header value")
        })
    };
    Ok(RestFace {
        method,
        headers: row
            .headers
            .into_iter()
            .map(header)
            .collect::<Result<_, _>>()?,
        cache_control: row.cache_control.map(cache_control).transpose()?,
        scope: scope(&row.access)?,
        path: row.path,
        input,
        body_bytes_max,
        outcomes,
        narrowed,
        etag: row.etag,
        decoded_length: row.decoded_length,
    })
}

fn outcomes(rows: BTreeMap<String, u16>) -> Result<HashMap<String, StatusCode>, String> {
    let mut outcomes = HashMap::new();
    for (outcome, status) in rows {
        if !is_identifier(&outcome, 40) {
            return Err(format!(
                "declares the outcome `{outcome}`; write 1 to 40 characters of a-z, 0-9 and _"
            ));
        }
        // 204 and 205 have no body, and every answer has one.
        let fits =
            |status: &StatusCode| status.is_success() && !matches!(status.as_u16(), 204 | 205);
        let parsed = StatusCode::from_u16(status).ok().filter(fits);
        let status = parsed.ok_or_else(|| {
            format!("declares the outcome `{outcome}` with status {status}; it must be a 2xx that has a body")
        })?;
        outcomes.insert(outcome, status);
    }
    Ok(outcomes)
}

/// The schemas of outcomes whose data is of a narrower form than the operation's output.
fn narrowed(
    rows: BTreeMap<String, Map<String, Value>>,
    outcomes: &HashMap<String, StatusCode>,
    output: &Value,
) -> Result<HashMap<String, OutputSchema>, String> {
    let mut narrowed = HashMap::new();
    for (outcome, properties) in rows {
        if !outcomes.contains_key(&outcome) {
            return Err(format!(
                "narrows the outcome `{outcome}`, which it does not declare"
            ));
        }
        let mut schema = output.clone();
        for (name, mut property) in properties {
            let properties = schema.get_mut("properties");
            let Some(known) = properties.and_then(|properties| properties.get_mut(&name)) else {
                return Err(format!("narrows `{name}`, which its output does not have"));
            };
            if let (Value::Object(members), Some(description)) =
                (&mut property, known.get("description"))
            {
                let told = members.entry("description");
                told.or_insert_with(|| description.clone());
            }
            *known = property;
        }
        let broken =
            |error: &dyn std::fmt::Display| format!("narrows the outcome `{outcome}`: {error}");
        profile::check_output(&schema).map_err(|error| broken(&error))?;
        let schema = OutputSchema::compile(schema).map_err(|error| broken(&error))?;
        narrowed.insert(outcome, schema);
    }
    Ok(narrowed)
}

fn is_path(path: &str) -> bool {
    let Some(rest) = path.strip_prefix("/api/v1/") else {
        return false;
    };
    path.len() <= 200
        && rest.split('/').all(|segment| {
            let name = segment
                .strip_prefix('{')
                .and_then(|rest| rest.strip_suffix('}'));
            let text = name.unwrap_or(segment);
            let allowed = |b: u8| match name {
                Some(_) => b.is_ascii_alphanumeric(),
                None => b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-',
            };
            !text.is_empty() && text.bytes().all(allowed)
        })
}

/// The names of a path's `{name}` segments.
pub(crate) fn path_parameters(path: &str) -> impl Iterator<Item = &str> + Clone {
    path.split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
}

pub(crate) fn tool_face(
    row: WrittenTool,
    input: FaceSchema,
    bytes_max: usize,
) -> Result<ToolFace, String> {
    if !is_identifier(&row.name, 40) || row.name.len() < 3 {
        return Err(format!(
            "has the tool name `{}`; write 3 to 40 characters of a-z, 0-9 and _",
            row.name
        ));
    }
    const HINTS: [&str; 4] = [
        "readOnlyHint",
        "destructiveHint",
        "idempotentHint",
        "openWorldHint",
    ];
    let is_unknown =
        |(name, hint): &(&String, &Value)| !HINTS.contains(&name.as_str()) || !hint.is_boolean();
    if let Some((name, _)) = row.annotations.iter().find(is_unknown) {
        return Err(format!(
            "has the tool annotation `{name}`; the annotations are the booleans {}",
            HINTS.join(", ")
        ));
    }
    Ok(ToolFace {
        scope: scope(&row.access)?,
        name: row.name,
        annotations: row.annotations,
        input,
        fixed: row.fixed,
        bytes_max,
    })
}

/// The first of some arguments that breaks the schema of its property; the others may be missing.
pub(crate) fn schema_error(
    input: &Value,
    arguments: &Map<String, Value>,
) -> Result<Option<Offence>, String> {
    let properties = input.get("properties").cloned();
    let properties = properties.unwrap_or_else(|| json!({}));
    let schema = json!({ "type": "object", "properties": properties });
    let schema = FaceSchema::compile(schema, &[]).map_err(|error| error.to_string())?;
    Ok(schema.check(&Value::Object(arguments.clone())).err())
}

/// The input schema of a tool face: the operation's, less what the face fixes and hides, and what it adds.
pub(crate) fn tool_input(input: &Value, tool: &WrittenTool) -> Result<Value, String> {
    let mut schema = input.clone();
    let properties = schema["properties"].as_object().cloned();
    let properties = properties.unwrap_or_default();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let taken = |name: &str| {
        tool.fixed.contains_key(name) || tool.hidden.iter().any(|hidden| hidden == name)
    };
    let is_known = |name: &&String| properties.contains_key(*name);
    let mut less = tool.fixed.keys().chain(&tool.hidden);
    if let Some(name) = less.find(|name| !is_known(name)) {
        return Err(format!(
            "fixes or hides `{name}`, which its input does not have"
        ));
    }
    let is_required = |name: &&String| required.contains(&json!(name));
    if let Some(name) = tool.hidden.iter().find(is_required) {
        return Err(format!("hides `{name}`, which its input requires"));
    }
    if let Some(name) = tool.added.keys().find(is_known) {
        return Err(format!("adds `{name}`, which its input already has"));
    }
    if let Some(offence) = schema_error(input, &tool.fixed)? {
        let (field, rule) = (offence.field.as_deref().unwrap_or_default(), offence.told());
        return Err(format!("fixes `{field}`, which {rule}"));
    }
    let kept = properties.into_iter().filter(|(name, _)| !taken(name));
    schema["properties"] = Value::Object(kept.chain(tool.added.clone()).collect());
    profile::without_formats(&mut schema);
    let is_kept = |name: &Value| !name.as_str().is_some_and(taken);
    let required: Vec<Value> = required.into_iter().filter(is_kept).collect();
    if let Some(members) = schema.as_object_mut() {
        members.remove("required");
        if !required.is_empty() {
            members.insert("required".to_owned(), Value::Array(required));
        }
    }
    Ok(schema)
}
