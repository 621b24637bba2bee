//! The publish profile: which schemas MCP and OpenAPI clients take without trouble.
//!
//! Popular clients reject a whole tool list for one reference, union, boolean schema or exotic keyword, so the loader
//! refuses such a schema before anybody sees it. Pure functions over JSON; knows nothing of plugins.

use serde_json::{Map, Value, json};

const DEPTH_MAX: usize = 4;

/// A schema outside the profile: where, and which rule.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("the schema at `{at}` {rule}")]
pub(crate) struct ProfileError {
    pub(crate) at: String,
    pub(crate) rule: String,
}

/// What an input schema may say of a property. `format` is not among them: clients know `date-time` at most.
const INPUT_KEYWORDS: [&str; 15] = [
    "type",
    "description",
    "title",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "items",
    "minItems",
    "maxItems",
    "default",
    "properties",
    "required",
];

/// Checks an input schema: a closed object of plainly typed, documented properties.
pub(crate) fn check_input(schema: &Value) -> Result<(), ProfileError> {
    let root = schema.as_object().ok_or_else(|| offence("", "must be an object schema"))?;
    if root.get("type") != Some(&json!("object")) {
        return Err(offence("", "must have the type `object`"));
    }
    if root.get("additionalProperties") != Some(&json!(false)) {
        return Err(offence("", "must refuse unknown fields (`additionalProperties: false`)"));
    }
    check_object(root, "", 0)
}

fn check_object(schema: &Map<String, Value>, at: &str, depth: usize) -> Result<(), ProfileError> {
    if depth > DEPTH_MAX {
        return Err(offence(at, &format!("is nested deeper than {DEPTH_MAX} levels")));
    }
    for keyword in schema.keys() {
        let known = INPUT_KEYWORDS.contains(&keyword.as_str()) || keyword == "additionalProperties";
        let date = keyword == "format" && schema.get("format") == Some(&json!("date-time"));
        if !known && !date {
            return Err(offence(at, &format!("uses `{keyword}`, which many clients cannot read")));
        }
    }
    let Some(properties) = schema.get("properties") else { return Ok(()) };
    let properties = properties.as_object().ok_or_else(|| offence(at, "has `properties` that are no object"))?;
    for (name, property) in properties {
        check_property(property, &format!("{at}/{name}"), depth + 1)?;
    }
    Ok(())
}

fn check_property(property: &Value, at: &str, depth: usize) -> Result<(), ProfileError> {
    let schema = property.as_object().ok_or_else(|| offence(at, "must be an object schema"))?;
    let Some(Value::String(kind)) = schema.get("type") else {
        return Err(offence(at, "must name exactly one type"));
    };
    if schema.get("description").and_then(Value::as_str).is_none_or(str::is_empty) {
        return Err(offence(at, "must have a description"));
    }
    if let Some(allowed) = schema.get("enum") {
        let strings = allowed.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(Value::is_string));
        if !strings {
            return Err(offence(at, "may list only strings in `enum`"));
        }
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && !(pattern.starts_with('^') && pattern.ends_with('$'))
    {
        return Err(offence(at, "must anchor its `pattern` with ^ and $"));
    }
    if kind == "array" {
        let Some(Value::Object(items)) = schema.get("items") else {
            return Err(offence(at, "must have one object schema as its `items`"));
        };
        if !items.get("type").is_some_and(Value::is_string) {
            return Err(offence(&format!("{at}/items"), "must name exactly one type"));
        }
        check_object(items, &format!("{at}/items"), depth + 1)?;
    }
    check_object(schema, at, depth)
}

/// Checks an output schema: an object that refers to nothing outside itself and has no boolean schemas in it.
pub(crate) fn check_output(schema: &Value) -> Result<(), ProfileError> {
    if schema.get("type") != Some(&json!("object")) {
        return Err(offence("", "must have the type `object`"));
    }
    refuse_references(schema, "", 0)
}

fn refuse_references(schema: &Value, at: &str, depth: usize) -> Result<(), ProfileError> {
    if depth > 32 {
        return Err(offence(at, "is nested deeper than 32 levels"));
    }
    let Value::Object(members) = schema else { return Ok(()) };
    for keyword in ["$ref", "$dynamicRef", "$defs", "definitions", "$id", "$schema"] {
        if members.contains_key(keyword) {
            return Err(offence(at, &format!("uses `{keyword}`: references must be inlined")));
        }
    }
    for (name, property) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if property.is_boolean() {
            return Err(offence(&format!("{at}/{name}"), "must be an object schema"));
        }
        refuse_references(property, &format!("{at}/{name}"), depth + 1)?;
    }
    for keyword in ["items", "additionalProperties", "not"] {
        if let Some(inner) = members.get(keyword) {
            refuse_references(inner, &format!("{at}/{keyword}"), depth + 1)?;
        }
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        for inner in members.get(keyword).and_then(Value::as_array).into_iter().flatten() {
            refuse_references(inner, &format!("{at}/{keyword}"), depth + 1)?;
        }
    }
    Ok(())
}

/// The schema that a tool publishes for its result: the data in the success envelope, nullable members written as
/// `anyOf`, which strict clients accept where they reject a list of types.
pub(crate) fn tool_output(data: &Value) -> Value {
    json!({
        "type": "object",
        "properties": {
            "success": { "type": "boolean", "description": "Always true; a failure carries no structured content." },
            "data": with_anyof_nulls(data.clone()),
        },
        "required": ["success", "data"],
    })
}

fn with_anyof_nulls(mut schema: Value) -> Value {
    let Value::Object(members) = &mut schema else { return schema };
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
    let Some(Value::Array(types)) = members.get("type") else { return schema };
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
    ProfileError { at: at.to_owned(), rule: rule.to_owned() }
}
