//! The publish profile: which schemas MCP and OpenAPI clients take without trouble.
//!
//! Popular clients reject a whole tool list for one reference, union, boolean schema or exotic keyword, so the loader
//! refuses such a schema before anybody sees it. Pure functions over JSON; knows nothing of plugins.

use serde_json::{Map, Value, json};

use super::pattern;

/// How deep an argument may be nested.
const DEPTH_MAX: usize = 4;
/// How deep a result may be nested.
const OUTPUT_DEPTH_MAX: usize = 32;

/// A schema outside the profile: where, and which rule.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("the schema at `{at}` {rule}")]
pub(crate) struct ProfileError {
    pub(crate) at: String,
    pub(crate) rule: String,
}

/// What a schema of any type may say.
const COMMON: [&str; 4] = ["type", "title", "description", "default"];

/// What an input schema of one type may say beyond that; a type that is not here is refused.
const INPUT_KEYWORDS: [(&str, &[&str]); 6] = [
    (
        "object",
        &["properties", "required", "additionalProperties"],
    ),
    ("array", &["items", "minItems", "maxItems"]),
    (
        "string",
        &["enum", "minLength", "maxLength", "pattern", "format"],
    ),
    ("integer", &["minimum", "maximum"]),
    ("number", &["minimum", "maximum"]),
    ("boolean", &[]),
];

/// What an output schema may say: no reference, and nothing that a walk over the schema does not reach.
const OUTPUT_KEYWORDS: [&str; 26] = [
    "type",
    "title",
    "description",
    "default",
    "examples",
    "enum",
    "const",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "items",
    "minItems",
    "maxItems",
    "uniqueItems",
    "properties",
    "required",
    "additionalProperties",
    "minProperties",
    "maxProperties",
    "anyOf",
];

/// Formats that an argument may name. Clients of tools know the first alone; the others stand in the OpenAPI document.
const INPUT_FORMATS: [&str; 4] = [ENFORCED_FORMAT, "idn-hostname", "uri", "uuid"];
/// The one format that this host enforces.
const ENFORCED_FORMAT: &str = "date-time";

/// Keywords that lead elsewhere.
const REFERENCES: [&str; 2] = ["$ref", "$dynamicRef"];

/// Checks an input schema: a closed object of plainly typed, documented properties.
pub(crate) fn check_input(schema: &Value) -> Result<(), ProfileError> {
    let root = schema
        .as_object()
        .ok_or_else(|| offence("", "must be an object schema"))?;
    if root.get("type") == Some(&json!("object")) {
        check_typed(root, "", 0)
    } else {
        Err(offence("", "must have the type `object`"))
    }
}

/// Checks a schema of one type; `at` is its path and `depth` how many schemas it stands in.
fn check_typed(schema: &Map<String, Value>, at: &str, depth: usize) -> Result<(), ProfileError> {
    if depth > DEPTH_MAX {
        return Err(offence(
            at,
            &format!("is nested deeper than {DEPTH_MAX} levels"),
        ));
    }
    refuse_references(schema, at)?;
    let kind = schema
        .get("type")
        .and_then(Value::as_str)
        .ok_or_else(|| offence(at, "must name exactly one type"))?;
    let row = INPUT_KEYWORDS.iter().find(|(name, _)| *name == kind);
    let (_, own) = row.ok_or_else(|| {
        offence(
            at,
            &format!("has the type `{kind}`, which is not allowed for arguments"),
        )
    })?;
    let unknown =
        |keyword: &&String| !COMMON.contains(&keyword.as_str()) && !own.contains(&keyword.as_str());
    if let Some(keyword) = schema.keys().find(unknown) {
        return Err(offence(
            at,
            &format!("uses `{keyword}`, which many clients do not support on type `{kind}`"),
        ));
    }
    for (low, high) in [
        ("minimum", "maximum"),
        ("minLength", "maxLength"),
        ("minItems", "maxItems"),
    ] {
        check_bounds(schema, at, low, high)?;
    }
    match kind {
        "object" => check_object(schema, at, depth),
        "array" => check_array(schema, at, depth),
        "string" => check_string(schema, at),
        _ => Ok(()),
    }
}

fn check_object(schema: &Map<String, Value>, at: &str, depth: usize) -> Result<(), ProfileError> {
    if schema.get("additionalProperties") != Some(&json!(false)) {
        return Err(offence(
            at,
            "must refuse unknown fields (`additionalProperties: false`)",
        ));
    }
    let none = Map::new();
    let properties = match schema.get("properties") {
        None => &none,
        Some(properties) => properties
            .as_object()
            .ok_or_else(|| offence(at, "has `properties` that are not an object"))?,
    };
    if let Some(required) = schema.get("required") {
        let names = required
            .as_array()
            .filter(|names| !names.is_empty() && is_unique(names));
        let known = |name: &Value| {
            name.as_str()
                .is_some_and(|name| properties.contains_key(name))
        };
        if !names.is_some_and(|names| names.iter().all(known)) {
            return Err(offence(
                at,
                "must list in `required` one or more of its properties, each once",
            ));
        }
    }
    for (name, property) in properties {
        let at = format!("{at}/{name}");
        let schema = property
            .as_object()
            .ok_or_else(|| offence(&at, "must be an object schema"))?;
        check_typed(schema, &at, depth + 1)?;
        if schema
            .get("description")
            .and_then(Value::as_str)
            .is_none_or(str::is_empty)
        {
            return Err(offence(&at, "must have a description"));
        }
    }
    Ok(())
}

fn check_array(schema: &Map<String, Value>, at: &str, depth: usize) -> Result<(), ProfileError> {
    let Some(Value::Object(items)) = schema.get("items") else {
        return Err(offence(at, "must have one object schema as its `items`"));
    };
    let at = format!("{at}/items");
    if items.get("type") == Some(&json!("array")) {
        Err(offence(
            &at,
            "has the type `array`, which is not allowed for items",
        ))
    } else {
        check_typed(items, &at, depth + 1)
    }
}

fn check_string(schema: &Map<String, Value>, at: &str) -> Result<(), ProfileError> {
    if let Some(allowed) = schema.get("enum") {
        let values = allowed
            .as_array()
            .filter(|values| !values.is_empty() && is_unique(values));
        if !values.is_some_and(|values| values.iter().all(Value::is_string)) {
            return Err(offence(
                at,
                "must list in `enum` one or more strings, each once",
            ));
        }
    }
    if let Some(format) = schema.get("format")
        && !format
            .as_str()
            .is_some_and(|format| INPUT_FORMATS.contains(&format))
    {
        return Err(offence(
            at,
            &format!(
                "has the format {format}; it must be one of {}",
                INPUT_FORMATS.join(", ")
            ),
        ));
    }
    check_pattern(schema, at, true)
}

fn check_pattern(
    schema: &Map<String, Value>,
    at: &str,
    anchored: bool,
) -> Result<(), ProfileError> {
    let Some(pattern) = schema.get("pattern") else {
        return Ok(());
    };
    let pattern = pattern
        .as_str()
        .ok_or_else(|| offence(at, "has a `pattern` that is not a string"))?;
    pattern::check(pattern, anchored)
        .map_err(|error| offence(at, &format!("has the pattern `{pattern}`: {error}")))
}

/// Lengths and counts are whole numbers, the others any; the lower bound is not above the upper.
fn check_bounds(
    schema: &Map<String, Value>,
    at: &str,
    low: &str,
    high: &str,
) -> Result<(), ProfileError> {
    let bound = |keyword: &str| {
        let Some(value) = schema.get(keyword) else {
            return Ok(None);
        };
        let whole = keyword == "minimum" || keyword == "maximum" || value.is_u64();
        let number = value.as_f64().filter(|_| whole);
        number.map(Some).ok_or_else(|| {
            offence(
                at,
                &format!("has the `{keyword}` {value}, which is not a valid number for it"),
            )
        })
    };
    match (bound(low)?, bound(high)?) {
        (Some(least), Some(most)) if least > most => Err(offence(
            at,
            &format!("has a `{low}` above its `{high}`: no value fits"),
        )),
        _ => Ok(()),
    }
}

fn is_unique(values: &[Value]) -> bool {
    values
        .iter()
        .enumerate()
        .all(|(index, value)| !values[..index].contains(value))
}

fn refuse_references(schema: &Map<String, Value>, at: &str) -> Result<(), ProfileError> {
    match schema
        .iter()
        .find(|(keyword, _)| REFERENCES.contains(&keyword.as_str()))
    {
        None => Ok(()),
        Some((keyword, to)) => Err(offence(
            at,
            &format!("refers to {to} by `{keyword}`: references must be inlined"),
        )),
    }
}

/// Checks an output schema: an object that refers to nothing outside itself and has no boolean schemas in it.
pub(crate) fn check_output(schema: &Value) -> Result<(), ProfileError> {
    if schema.get("type") == Some(&json!("object")) {
        check_part(schema, "", 0)
    } else {
        Err(offence("", "must have the type `object`"))
    }
}

fn check_part(schema: &Value, at: &str, depth: usize) -> Result<(), ProfileError> {
    if depth > OUTPUT_DEPTH_MAX {
        return Err(offence(
            at,
            &format!("is nested deeper than {OUTPUT_DEPTH_MAX} levels"),
        ));
    }
    let members = schema
        .as_object()
        .ok_or_else(|| offence(at, "must be an object schema"))?;
    refuse_references(members, at)?;
    if let Some(keyword) = members
        .keys()
        .find(|keyword| !OUTPUT_KEYWORDS.contains(&keyword.as_str()))
    {
        return Err(offence(
            at,
            &format!("uses `{keyword}`, which many clients do not support"),
        ));
    }
    check_pattern(members, at, false)?;
    for (name, property) in members
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        check_part(property, &format!("{at}/{name}"), depth + 1)?;
    }
    if let Some(items) = members.get("items") {
        check_part(items, &format!("{at}/items"), depth + 1)?;
    }
    if let Some(others) = members
        .get("additionalProperties")
        .filter(|others| !others.is_boolean())
    {
        check_part(others, &format!("{at}/additionalProperties"), depth + 1)?;
    }
    for (index, branch) in members
        .get("anyOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .enumerate()
    {
        check_part(branch, &format!("{at}/anyOf/{index}"), depth + 1)?;
    }
    Ok(())
}

/// Takes the formats out of a schema that this host does not enforce. Clients of tools refuse unknown ones, or hold results to
/// them more strictly than the web does: not every address that browsers take is a URI by RFC 3986.
pub(crate) fn without_formats(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members
                .get("format")
                .is_some_and(|format| format.is_string() && format != ENFORCED_FORMAT)
            {
                members.remove("format");
            }
            members.values_mut().for_each(without_formats);
        }
        Value::Array(parts) => parts.iter_mut().for_each(without_formats),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The schema that a tool publishes for its result: the data in the success envelope, nullable members written as
/// `anyOf`, which strict clients accept where they reject a list of types.
pub(crate) fn tool_output(data: &Value) -> Value {
    let mut data = with_anyof_nulls(data.clone());
    without_formats(&mut data);
    json!({
        "type": "object",
        "properties": {
            "success": { "type": "boolean", "description": "Always true; a failure carries no structured content." },
            "data": data,
        },
        "required": ["success", "data"],
    })
}

fn with_anyof_nulls(mut schema: Value) -> Value {
    let Value::Object(members) = &mut schema else {
        return schema;
    };
    for keyword in ["properties"] {
        if let Some(Value::Object(properties)) = members.get_mut(keyword) {
            for (_, property) in properties.iter_mut() {
                *property = with_anyof_nulls(property.take());
            }
        }
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = members.get_mut(keyword)
            && inner.is_object()
        {
            *inner = with_anyof_nulls(inner.take());
        }
    }
    if let Some(Value::Array(branches)) = members.get_mut("anyOf") {
        for branch in branches.iter_mut() {
            *branch = with_anyof_nulls(branch.take());
        }
    }
    let Some(Value::Array(types)) = members.get("type") else {
        return schema;
    };
    let kinds: Vec<Value> = types.clone();
    let description = members.remove("description");
    members.remove("type");
    let branches: Vec<Value> = kinds
        .into_iter()
        .map(|kind| match kind.as_str() {
            Some("null") => json!({ "type": "null" }),
            _ => {
                let mut branch = members.clone();
                branch.insert("type".to_owned(), kind);
                if let Some(Value::Array(allowed)) = branch.get_mut("enum") {
                    allowed.retain(|value| !value.is_null());
                }
                Value::Object(branch)
            }
        })
        .collect();
    let mut union = Map::new();
    if let Some(description) = description {
        union.insert("description".to_owned(), description);
    }
    union.insert("anyOf".to_owned(), Value::Array(branches));
    Value::Object(union)
}

fn offence(at: &str, rule: &str) -> ProfileError {
    let at = if at.is_empty() { "/" } else { at };
    ProfileError {
        at: at.to_owned(),
        rule: rule.to_owned(),
    }
}
