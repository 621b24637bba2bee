//! Tables of fields: what an operation takes, and what it answers, from the published schemas.

use std::fmt::{self, Write as _};

use serde_json::{Map, Value};

use crate::contract::schema::FaceSchema;

/// The arguments of an operation.
pub(crate) fn write_input(text: &mut String, input: &FaceSchema) -> fmt::Result {
    let names: Vec<&str> = input.properties().map(|(name, _)| name.as_str()).collect();
    if names.is_empty() {
        writeln!(text, "None.\n")
    } else {
        write_some(text, input, &names)
    }
}

/// These arguments of it.
pub(crate) fn write_some(text: &mut String, input: &FaceSchema, names: &[&str]) -> fmt::Result {
    let required = input.document().get("required").and_then(Value::as_array);
    writeln!(
        text,
        "| field | type | required | default | bounds | meaning |\n| - | - | - | - | - | - |"
    )?;
    for (name, schema) in input
        .properties()
        .filter(|(name, _)| names.contains(&name.as_str()))
    {
        let is_required =
            required.is_some_and(|names| names.iter().any(|required| required == name));
        let need = if is_required { "yes" } else { "no" };
        let default = schema.get("default").map_or_else(String::new, shown);
        let (kind, bounds, meaning) = (kind(schema), bounds(schema), meaning(schema));
        writeln!(
            text,
            "| {name} | {kind} | {need} | {default} | {bounds} | {meaning} |"
        )?;
    }
    writeln!(text)
}

/// The fields of an answer's data, with those of the objects in it.
pub(crate) fn write_output(text: &mut String, output: &Value) -> fmt::Result {
    writeln!(
        text,
        "| field | type | values | meaning |\n| - | - | - | - |"
    )?;
    write_members(text, output, "", &mut Vec::new())?;
    writeln!(text)
}

/// The members of an object. Those of one that was written already are not written again.
fn write_members<'s>(
    text: &mut String,
    schema: &'s Value,
    prefix: &str,
    written: &mut Vec<(&'s Map<String, Value>, String)>,
) -> fmt::Result {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(());
    };
    let required = schema.get("required").and_then(Value::as_array);
    for (name, schema) in properties {
        let path = format!("{prefix}{name}");
        let is_there = required.is_some_and(|names| names.iter().any(|required| required == name));
        let absent = if is_there { "" } else { ", may be absent" };
        let (inner, suffix) = within(schema);
        let members = inner
            .and_then(|inner| inner.get("properties"))
            .and_then(Value::as_object);
        let known = members.and_then(|members| written.iter().find(|(known, _)| *known == members));
        let again = known.map_or_else(String::new, |(_, at)| format!(" Same fields as `{at}`."));
        let (kind, bounds, meaning) = (kind(schema), bounds(plain(schema)), meaning(schema));
        writeln!(
            text,
            "| {path} | {kind}{absent} | {bounds} | {meaning}{again} |"
        )?;
        if let (Some(inner), Some(members), true) = (inner, members, again.is_empty()) {
            let at = format!("{path}{suffix}");
            written.push((members, at.clone()));
            write_members(text, inner, &format!("{at}."), written)?;
        }
    }
    Ok(())
}

/// The object that a field holds, or each of its items is, and how that is written behind the field's name.
fn within(schema: &Value) -> (Option<&Value>, &'static str) {
    let schema = plain(schema);
    match schema.get("items") {
        Some(items) => (Some(plain(items)), "[]"),
        None => (Some(schema), ""),
    }
}

/// A schema without the branch that says that it may be null.
fn plain(schema: &Value) -> &Value {
    let branches = schema.get("anyOf").and_then(Value::as_array);
    let is_null = |branch: &&Value| branch.get("type").and_then(Value::as_str) == Some("null");
    branches
        .and_then(|branches| branches.iter().find(|branch| !is_null(branch)))
        .unwrap_or(schema)
}

/// A schema's type in words.
fn kind(schema: &Value) -> String {
    let names: Vec<&str> = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        Some(kind) => kind.as_str().into_iter().collect(),
        None => {
            let branches = schema
                .get("anyOf")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let kinds: Vec<String> = branches.map(kind).collect();
            return if kinds.is_empty() {
                "any".to_owned()
            } else {
                kinds.join(" or ")
            };
        }
    };
    let format = schema
        .get("format")
        .and_then(Value::as_str)
        .map(|format| format!(" ({format})"));
    let named = |name: &&str| match (*name, schema.get("items")) {
        ("array", Some(items)) => format!("array of {}s", kind(items)),
        ("string", _) => format!("string{}", format.as_deref().unwrap_or_default()),
        (name, _) => name.to_owned(),
    };
    names.iter().map(named).collect::<Vec<_>>().join(" or ")
}

/// A schema's type and values, in words that stand in a sentence.
pub(crate) fn value(schema: &Value) -> String {
    if let Some(value) = schema.get("const") {
        return shown(value);
    }
    if schema.get("maxItems") == Some(&Value::from(0)) {
        return "empty".to_owned();
    }
    let bounds = bounds(schema);
    match (kind(schema), bounds.is_empty()) {
        (kind, true) => kind,
        (_, false) if schema.get("enum").is_some() => bounds,
        (kind, false) => format!("{kind} ({bounds})"),
    }
}

fn bounds(schema: &Value) -> String {
    let of = |name: &str| schema.get(name).map(ToString::to_string);
    let span = |min: Option<String>, max: Option<String>, unit: &str| match (min, max) {
        (Some(min), Some(max)) => Some(format!("{min} to {max}{unit}")),
        (Some(min), None) => Some(format!("at least {min}{unit}")),
        (None, Some(max)) => Some(format!("at most {max}{unit}")),
        (None, None) => None,
    };
    // A format says it shorter.
    let pattern = schema
        .get("pattern")
        .and_then(Value::as_str)
        .filter(|_| schema.get("format").is_none());
    let pattern = pattern.map(|pattern| format!("`{}`", pattern.replace('|', "\\|")));
    let allowed = schema.get("enum").and_then(Value::as_array);
    let named = |values: &Vec<Value>| {
        values
            .iter()
            .filter(|value| !value.is_null())
            .map(shown)
            .collect::<Vec<_>>()
    };
    let all = [
        // Of a list of values nothing else needs to be said.
        span(of("minimum"), of("maximum"), "").filter(|_| allowed.is_none()),
        span(of("minLength"), of("maxLength"), " characters"),
        span(of("minItems"), of("maxItems"), " items"),
        pattern,
        allowed.map(|values| named(values).join(", ")),
        schema.get("const").map(shown),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            format!("`{value}`")
        }
    }
}

fn meaning(schema: &Value) -> String {
    cell(
        schema
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default(),
    )
}

/// Text as it stands in a cell of a table.
pub(crate) fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}
