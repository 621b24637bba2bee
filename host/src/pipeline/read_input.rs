//! Reading a request's arguments (docs/api.md, "Requests"): one strict reading for both faces.
//!
//! Runs on the road, after the window and before the plugin, so that a malformed request still takes its slot. Gives back
//! the JSON object that fits the face's schema, or the first offence with its field.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use crate::base::json::{MalformedJson, strict_json};
use crate::contract::error::Refusal;
use crate::contract::operation::FeatureFace;
use crate::contract::schema::{FaceSchema, Offence};

/// Arguments as they came, not looked at yet.
pub(crate) enum UnreadArguments<'r> {
    Rest {
        /// Raw (percent-encoded) values of the path's parameters.
        params: Vec<(String, String)>,
        query: Option<&'r str>,
        body: &'r [u8],
        /// Where the arguments stand that are not in the path.
        source: ArgumentSource,
    },
    Tool {
        arguments: Map<String, Value>,
        fixed: &'r Map<String, Value>,
        /// The operation's body limit, which measures a tool's arguments too.
        bytes_max: usize,
    },
}

/// Where the arguments of a REST face stand that are not in its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentSource {
    Query,
    Body,
}

/// Reads arguments into the JSON object for the plugin.
pub(crate) fn read(
    unread: UnreadArguments<'_>,
    schema: &FaceSchema,
) -> Result<Map<String, Value>, Refusal> {
    match unread {
        UnreadArguments::Rest {
            params,
            query,
            body,
            source,
        } => {
            let mut input = path(params, schema)?;
            let from_query = (source == ArgumentSource::Query).then_some(schema);
            add_query(&mut input, query.unwrap_or_default(), from_query)?;
            add_body(&mut input, body, source)?;
            checked(input, schema)
        }
        UnreadArguments::Tool {
            arguments,
            fixed,
            bytes_max,
        } => {
            let bytes = serde_json::to_vec(&arguments).map_or(usize::MAX, |bytes| bytes.len());
            if bytes > bytes_max {
                return Err(Refusal::too_large(bytes_max));
            }
            let mut input = checked(arguments, schema)?;
            input.extend(
                fixed
                    .iter()
                    .map(|(name, value)| (name.clone(), value.clone())),
            );
            Ok(input)
        }
    }
}

/// Reads what another plugin sends, or says which rule it breaks, without the value.
pub(super) fn read_feature(text: &str, face: &FeatureFace) -> Result<Map<String, Value>, String> {
    if text.len() > face.bytes_max {
        let (bytes, most) = (text.len(), face.bytes_max);
        return Err(format!(
            "the input has {bytes} bytes; at most {most} are allowed"
        ));
    }
    let mut input = match strict_json(text.as_bytes()) {
        Ok(Value::Object(input)) => input,
        Ok(_) => return Err("the input must be a JSON object".to_owned()),
        Err(MalformedJson::Json { line, column }) => {
            return Err(format!(
                "the input is not valid JSON: line {line}, column {column}"
            ));
        }
        Err(MalformedJson::Duplicate(name)) => {
            return Err(format!("`{name}` appears more than once"));
        }
    };
    face.input.drop_nulls(&mut input);
    let input = Value::Object(input);
    face.input.check(&input).map_err(|offence| {
        let field = offence.field.as_deref().unwrap_or("the input");
        format!("`{field}` {}", offence.rule)
    })?;
    match input {
        Value::Object(input) => Ok(input),
        _ => Err("the input must be a JSON object".to_owned()),
    }
}

fn path(params: Vec<(String, String)>, schema: &FaceSchema) -> Result<Map<String, Value>, Refusal> {
    let mut input = Map::new();
    for (name, raw) in params {
        let decoded = percent_encoding::percent_decode_str(&raw).decode_utf8();
        let Ok(text) = decoded.map(Cow::into_owned) else {
            let rule = "must be UTF-8 when percent-decoded";
            return Err(Refusal::invalid(Some(&name), rule));
        };
        let value = typed(&text, schema.type_of(&name));
        input.insert(name, value);
    }
    Ok(input)
}

/// `schema` is absent where the operation takes nothing from the query.
fn add_query(
    input: &mut Map<String, Value>,
    query: &str,
    schema: Option<&FaceSchema>,
) -> Result<(), Refusal> {
    let path_names: Vec<String> = input.keys().cloned().collect();
    for (name, text) in form_urlencoded::parse(query.as_bytes()) {
        let refused = |rule| Err(Refusal::invalid(Some(&name), rule));
        let Some(schema) = schema else {
            return refused("is unknown: this operation has no query parameters");
        };
        if path_names.iter().any(|known| *known == name) {
            return refused("belongs in the path, not in the query");
        }
        let value = typed(&text, schema.type_of(&name));
        if input.insert(name.clone().into_owned(), value).is_some() {
            return refused("appears more than once");
        }
    }
    Ok(())
}

fn add_body(
    input: &mut Map<String, Value>,
    body: &[u8],
    source: ArgumentSource,
) -> Result<(), Refusal> {
    if body.is_empty() {
        return Ok(());
    }
    let value = strict_json(body).map_err(|malformed| match malformed {
        MalformedJson::Json { .. } => Refusal::invalid(None, &format!("The body {malformed}")),
        MalformedJson::Duplicate(name) => Refusal::invalid(Some(&name), "appears more than once"),
    })?;
    let Value::Object(members) = value else {
        return Err(Refusal::invalid(None, "The body must be a JSON object"));
    };
    for (name, value) in members {
        let refused = |rule| Err(Refusal::invalid(Some(&name), rule));
        if source == ArgumentSource::Query {
            return refused("is unknown: this operation takes no body");
        }
        if input.contains_key(&name) {
            return refused("belongs in the path, not in the body");
        }
        input.insert(name, value);
    }
    Ok(())
}

/// Text of a path or query as the schema's type. What does not fit stays text, which the schema then refuses by name.
fn typed(text: &str, kind: Option<&str>) -> Value {
    match kind {
        Some("integer") => strict_integer(text).map_or_else(|| Value::from(text), Value::Number),
        Some("boolean") => match text {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => Value::from(text),
        },
        _ => Value::from(text),
    }
}

/// Decimal digits, perhaps a minus, no leading zero, no plus, no fraction.
fn strict_integer(text: &str) -> Option<Number> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !plain || (digits.len() > 1 && digits.starts_with('0')) || text == "-0" {
        return None;
    }
    text.parse::<i64>()
        .map(Number::from)
        .ok()
        .or_else(|| text.parse::<u64>().map(Number::from).ok())
}

fn checked(
    mut input: Map<String, Value>,
    schema: &FaceSchema,
) -> Result<Map<String, Value>, Refusal> {
    schema.drop_nulls(&mut input);
    let input = Value::Object(input);
    schema.check(&input).map_err(|offence| offended(&offence))?;
    let Value::Object(input) = input else {
        return Err(Refusal::internal("a checked object is no longer an object"));
    };
    Ok(input)
}

fn offended(offence: &Offence) -> Refusal {
    let mut refusal = Refusal::invalid(offence.field.as_deref(), &offence.told());
    if let Some(min) = &offence.min {
        refusal = refusal.with("min", min.clone());
    }
    if let Some(max) = &offence.max {
        refusal = refusal.with("max", max.clone());
    }
    refusal
}
