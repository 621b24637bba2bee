//! JSON Schemas of the operations' types, in the form that the host accepts.
//!
//! The schemas are inlined (MCP clients choke on `$ref`), have no `$schema`, and lose schemars' numeric
//! formats (`uint32`), which no published dialect knows. This module knows nothing about operations.

use schemars::generate::{Contract, SchemaSettings};
use schemars::transform::{self, Transform as _};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// The schema that an operation's input must fit. `null` is removed from optional properties: the host
/// drops them before it validates.
pub(crate) fn of_input<T: JsonSchema>() -> Value {
    let mut schema = generate::<T>(Contract::Deserialize);
    transform::RecursiveTransform(drop_null).transform(&mut schema);
    schema.to_value()
}

/// The schema that an operation's output fits. `null` is removed from properties that may be left out: what has no value
/// is left out then (`skip_serializing_if`).
pub(crate) fn of_output<T: JsonSchema>() -> Value {
    let mut schema = generate::<T>(Contract::Serialize);
    transform::RecursiveTransform(drop_skipped_null).transform(&mut schema);
    schema.to_value()
}

fn generate<T: JsonSchema>(contract: Contract) -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
        settings.contract = contract;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    transform::RecursiveTransform(strip_numeric_format).transform(&mut schema);
    transform::RecursiveTransform(put_format_last).transform(&mut schema);
    schema
}

/// A type that knows its format is published as one whose field says it.
fn put_format_last(schema: &mut Schema) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    if let Some(format) = members.shift_remove("format") {
        members.insert("format".to_owned(), format);
    }
}

fn strip_numeric_format(schema: &mut Schema) {
    let numeric = matches!(schema.get("format").and_then(Value::as_str),
        Some(format) if format.starts_with("int") || format.starts_with("uint") || matches!(format, "float" | "double"));
    if numeric {
        schema.remove("format");
    }
}

fn drop_skipped_null(schema: &mut Schema) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required = |name: &str| {
        let mut names = required.as_array().into_iter().flatten();
        names.any(|known| known == name)
    };
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    for (name, property) in properties {
        if let (false, Ok(property)) = (is_required(name), property.try_into()) {
            drop_null(property);
        }
    }
}

fn drop_null(schema: &mut Schema) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(allowed)) = schema.get_mut("enum") {
        allowed.retain(|value| !value.is_null());
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize, serde::Serialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        /// How many.
        #[schemars(range(min = 1, max = 9))]
        count: Option<u32>,
        /// A word.
        word: String,
    }

    #[derive(serde::Serialize, JsonSchema)]
    struct Sparse {
        #[serde(skip_serializing_if = "Option::is_none")]
        word: Option<String>,
        place: Option<String>,
    }

    #[test]
    fn what_is_left_out_is_never_null() {
        let schema = of_output::<Sparse>();
        assert_eq!(schema["properties"]["word"]["type"], "string");
        assert_eq!(schema["properties"]["place"]["type"][1], "null");
        assert_eq!(schema["required"], serde_json::json!(["place"]));
    }

    #[test]
    fn an_input_schema_is_flat_and_without_null() {
        assert_eq!(
            of_input::<Sample>(),
            serde_json::json!({
                "type": "object",
                "properties": {
                    "count": { "description": "How many.", "type": "integer", "minimum": 1, "maximum": 9 },
                    "word": { "description": "A word.", "type": "string" },
                },
                "additionalProperties": false,
                "required": ["word"],
            })
        );
    }

    #[test]
    fn an_output_schema_requires_what_is_always_written() {
        let schema = of_output::<Sample>();
        assert_eq!(schema["required"], serde_json::json!(["count", "word"]));
        assert_eq!(
            schema["properties"]["count"]["type"],
            serde_json::json!(["integer", "null"])
        );
    }
}
