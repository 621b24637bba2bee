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

/// Where a schema stands in the one that is checked.
struct SchemaPlace {
    path: String,
    /// How many schemas it stands in.
    depth: usize,
}

impl SchemaPlace {
    fn root() -> Self {
        let (path, depth) = (String::new(), 0);
        Self { path, depth }
    }

    fn below(&self, step: &str) -> Self {
        Self {
            path: format!("{}/{step}", self.path),
            depth: self.depth + 1,
        }
    }

    fn offence(&self, rule: impl Into<String>) -> ProfileError {
        let at = if self.path.is_empty() {
            "/"
        } else {
            &self.path
        };
        ProfileError {
            at: at.to_owned(),
            rule: rule.into(),
        }
    }

    fn refuse<T>(&self, rule: impl Into<String>) -> Result<T, ProfileError> {
        Err(self.offence(rule))
    }

    fn members<'s>(&self, schema: &'s Value) -> Result<&'s Map<String, Value>, ProfileError> {
        let members = schema.as_object();
        members.ok_or_else(|| self.offence("must be an object schema"))
    }
}

/// Checks an input schema: a closed object of plainly typed, documented properties.
pub(crate) fn check_input(schema: &Value) -> Result<(), ProfileError> {
    let root = SchemaPlace::root();
    let members = root.members(schema)?;
    if members.get("type") == Some(&json!("object")) {
        check_typed(members, &root)
    } else {
        root.refuse("must have the type `object`")
    }
}

/// Checks a schema of one type.
fn check_typed(schema: &Map<String, Value>, at: &SchemaPlace) -> Result<(), ProfileError> {
    if at.depth > DEPTH_MAX {
        return at.refuse(format!("is nested deeper than {DEPTH_MAX} levels"));
    }
    refuse_references(schema, at)?;
    let Some(kind) = schema.get("type").and_then(Value::as_str) else {
        return at.refuse("must name exactly one type");
    };
    let Some((_, own)) = INPUT_KEYWORDS.iter().find(|(name, _)| *name == kind) else {
        return at.refuse(format!(
            "has the type `{kind}`, which is not allowed for arguments"
        ));
    };
    let unknown =
        |keyword: &&String| !COMMON.contains(&keyword.as_str()) && !own.contains(&keyword.as_str());
    if let Some(keyword) = schema.keys().find(unknown) {
        return at.refuse(format!(
            "uses `{keyword}`, which many clients do not support on type `{kind}`"
        ));
    }
    check_bounds(schema, at, ["minimum", "maximum"])?;
    check_bounds(schema, at, ["minLength", "maxLength"])?;
    check_bounds(schema, at, ["minItems", "maxItems"])?;
    match kind {
        "object" => check_object(schema, at),
        "array" => check_array(schema, at),
        "string" => check_string(schema, at),
        _ => Ok(()),
    }
}

fn check_object(schema: &Map<String, Value>, at: &SchemaPlace) -> Result<(), ProfileError> {
    if schema.get("additionalProperties") != Some(&json!(false)) {
        return at.refuse("must refuse unknown fields (`additionalProperties: false`)");
    }
    let none = json!({});
    let properties = schema.get("properties").unwrap_or(&none).as_object();
    let Some(properties) = properties else {
        return at.refuse("has `properties` that are not an object");
    };
    if let Some(required) = schema.get("required") {
        let is_known = |name: &str| properties.contains_key(name);
        if !is_list_of(required, |name| name.as_str().is_some_and(is_known)) {
            return at.refuse("must list in `required` one or more of its properties, each once");
        }
    }
    for (name, property) in properties {
        let at = at.below(name);
        let schema = at.members(property)?;
        check_typed(schema, &at)?;
        let description = schema.get("description").and_then(Value::as_str);
        if description.is_none_or(str::is_empty) {
            return at.refuse("must have a description");
        }
    }
    Ok(())
}

fn check_array(schema: &Map<String, Value>, at: &SchemaPlace) -> Result<(), ProfileError> {
    let Some(Value::Object(items)) = schema.get("items") else {
        return at.refuse("must have one object schema as its `items`");
    };
    let at = at.below("items");
    if items.get("type") == Some(&json!("array")) {
        at.refuse("has the type `array`, which is not allowed for items")
    } else {
        check_typed(items, &at)
    }
}

fn check_string(schema: &Map<String, Value>, at: &SchemaPlace) -> Result<(), ProfileError> {
    let allowed = schema.get("enum");
    if allowed.is_some_and(|allowed| !is_list_of(allowed, Value::is_string)) {
        return at.refuse("must list in `enum` one or more strings, each once");
    }
    let is_known = |format: &str| INPUT_FORMATS.contains(&format);
    if let Some(format) = schema.get("format")
        && !format.as_str().is_some_and(is_known)
    {
        let known = INPUT_FORMATS.join(", ");
        return at.refuse(format!(
            "has the format {format}; it must be one of {known}"
        ));
    }
    check_pattern(schema, at, true)
}

fn check_pattern(
    schema: &Map<String, Value>,
    at: &SchemaPlace,
    anchored: bool,
) -> Result<(), ProfileError> {
    let Some(pattern) = schema.get("pattern") else {
        return Ok(());
    };
    let Some(pattern) = pattern.as_str() else {
        return at.refuse("has a `pattern` that is not a string");
    };
    let checked = pattern::check(pattern, anchored);
    checked.map_err(|error| at.offence(format!("has the pattern `{pattern}`: {error}")))
}

/// Lengths and counts are whole numbers, the others any; the lower bound is not above the upper.
fn check_bounds(
    schema: &Map<String, Value>,
    at: &SchemaPlace,
    [low, high]: [&str; 2],
) -> Result<(), ProfileError> {
    let bound = |keyword: &str| {
        let Some(value) = schema.get(keyword) else {
            return Ok(None);
        };
        let whole = keyword == "minimum" || keyword == "maximum" || value.is_u64();
        match value.as_f64().filter(|_| whole) {
            Some(number) => Ok(Some(number)),
            None => at.refuse(format!(
                "has the `{keyword}` {value}, which is not a valid number for it"
            )),
        }
    };
    match (bound(low)?, bound(high)?) {
        (Some(least), Some(most)) if least > most => {
            at.refuse(format!("has a `{low}` above its `{high}`: no value fits"))
        }
        _ => Ok(()),
    }
}

/// Whether this is a list of one value or more, each of a kind and there once.
fn is_list_of(list: &Value, is: impl Fn(&Value) -> bool) -> bool {
    let values = list.as_array().map_or(&[][..], Vec::as_slice);
    let mut each = values.iter().enumerate();
    !values.is_empty() && each.all(|(index, value)| is(value) && !values[..index].contains(value))
}

fn refuse_references(schema: &Map<String, Value>, at: &SchemaPlace) -> Result<(), ProfileError> {
    let is_reference = |(keyword, _): &(&String, &Value)| REFERENCES.contains(&keyword.as_str());
    match schema.iter().find(is_reference) {
        None => Ok(()),
        Some((keyword, to)) => at.refuse(format!(
            "refers to {to} by `{keyword}`: references must be inlined"
        )),
    }
}

/// Checks an output schema: an object that refers to nothing outside itself and has no boolean schemas in it.
pub(crate) fn check_output(schema: &Value) -> Result<(), ProfileError> {
    let root = SchemaPlace::root();
    if schema.get("type") == Some(&json!("object")) {
        check_part(schema, &root)
    } else {
        root.refuse("must have the type `object`")
    }
}

fn check_part(schema: &Value, at: &SchemaPlace) -> Result<(), ProfileError> {
    if at.depth > OUTPUT_DEPTH_MAX {
        return at.refuse(format!("is nested deeper than {OUTPUT_DEPTH_MAX} levels"));
    }
    let members = at.members(schema)?;
    refuse_references(members, at)?;
    let is_unknown = |keyword: &&String| !OUTPUT_KEYWORDS.contains(&keyword.as_str());
    if let Some(keyword) = members.keys().find(is_unknown) {
        return at.refuse(format!(
            "uses `{keyword}`, which many clients do not support"
        ));
    }
    check_pattern(members, at, false)?;
    let properties = members.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        check_part(property, &at.below(name))?;
    }
    if let Some(items) = members.get("items") {
        check_part(items, &at.below("items"))?;
    }
    let others = members.get("additionalProperties");
    if let Some(others) = others.filter(|others| !others.is_boolean()) {
        check_part(others, &at.below("additionalProperties"))?;
    }
    let branches = members.get("anyOf").and_then(Value::as_array);
    for (index, branch) in branches.into_iter().flatten().enumerate() {
        check_part(branch, &at.below(&format!("anyOf/{index}")))?;
    }
    Ok(())
}

/// Takes the formats out of a schema that this host does not enforce. Clients of tools refuse unknown ones, or hold results to
/// them more strictly than the web does: not every address that browsers take is a URI by RFC 3986.
pub(crate) fn without_formats(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let format = members.get("format");
            if format.is_some_and(|format| format.is_string() && format != ENFORCED_FORMAT) {
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
    let mut data = data.clone();
    write_nulls_as_anyof(&mut data);
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

fn write_nulls_as_anyof(schema: &mut Value) {
    let Value::Object(members) = schema else {
        return;
    };
    for (keyword, inner) in members.iter_mut() {
        match (keyword.as_str(), inner) {
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(write_nulls_as_anyof);
            }
            ("anyOf", Value::Array(branches)) => branches.iter_mut().for_each(write_nulls_as_anyof),
            ("items" | "additionalProperties", inner) => write_nulls_as_anyof(inner),
            _ => {}
        }
    }
    let Some(Value::Array(kinds)) = members.get("type").cloned() else {
        return;
    };
    let description = members.remove("description");
    members.remove("type");
    let branch = |kind: Value| {
        if kind == "null" {
            return json!({ "type": "null" });
        }
        let mut branch = members.clone();
        branch.insert("type".to_owned(), kind);
        if let Some(Value::Array(allowed)) = branch.get_mut("enum") {
            allowed.retain(|value| !value.is_null());
        }
        Value::Object(branch)
    };
    let branches: Value = kinds.into_iter().map(branch).collect();
    let mut union = Map::new();
    union.extend(description.map(|description| ("description".to_owned(), description)));
    union.insert("anyOf".to_owned(), branches);
    *schema = Value::Object(union);
}
