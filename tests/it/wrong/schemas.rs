//! Schemas outside the publish profile: what many clients cannot read, what is not closed, and what has no bound in time.

use serde_json::{Value, json};

use super::Floor;

impl Floor {
    /// Describes an input with one property.
    async fn check_property(&mut self, property: Value, message: &str) {
        let input = json!({ "type": "object", "properties": { "colour": property }, "additionalProperties": false });
        self.check_input(input, message).await;
    }

    async fn check_input(&mut self, input: Value, message: &str) {
        let message = format!("operation `first`, input: the schema at {message}");
        self.check_with(&[("/operations/0/input", input)], &message)
            .await;
    }

    async fn check_output(&mut self, output: Value, message: &str) {
        let message = format!("operation `first`, output: the schema at {message}");
        self.check_with(&[("/operations/0/output", output)], &message)
            .await;
    }
}

/// A property of this type with these members.
fn property(kind: &str, members: Value) -> Value {
    let mut property = json!({ "type": kind, "description": "A colour." });
    let all = property.as_object_mut().expect("an object");
    all.extend(members.as_object().expect("members").clone());
    property
}

async fn roots(floor: &mut Floor) {
    floor
        .check_input(json!(true), "`/` must be an object schema")
        .await;
    floor
        .check_input(
            json!({ "type": "array" }),
            "`/` must have the type `object`",
        )
        .await;
    let open = "`/` must refuse unknown fields (`additionalProperties: false`)";
    floor
        .check_input(json!({ "type": "object", "properties": {} }), open)
        .await;
    let root = |members: Value| {
        let mut root = property("object", members);
        root["additionalProperties"] = json!(false);
        root
    };
    for keyword in [
        "oneOf",
        "anyOf",
        "allOf",
        "not",
        "enum",
        "if",
        "$schema",
        "$defs",
        "patternProperties",
    ] {
        let rule =
            format!("`/` uses `{keyword}`, which many clients do not support on type `object`");
        floor.check_input(root(json!({ keyword: [] })), &rule).await;
    }
    let required = "`/` must list in `required` one or more of its properties, each once";
    floor
        .check_input(root(json!({ "required": ["shape"] })), required)
        .await;
}

async fn properties(floor: &mut Floor) {
    floor
        .check_property(json!(true), "`/colour` must be an object schema")
        .await;
    floor
        .check_property(
            json!({ "type": "string" }),
            "`/colour` must have a description",
        )
        .await;
    let types = json!({ "type": ["string", "null"], "description": "A colour." });
    floor
        .check_property(types, "`/colour` must name exactly one type")
        .await;
    floor
        .check_property(
            property("null", json!({})),
            "`/colour` has the type `null`, which is not allowed for arguments",
        )
        .await;
    let low = "`/colour` uses `minimum`, which many clients do not support on type `string`";
    floor
        .check_property(property("string", json!({ "minimum": 1 })), low)
        .await;
    let one = "`/colour` uses `const`, which many clients do not support on type `string`";
    floor
        .check_property(property("string", json!({ "const": "red" })), one)
        .await;
    let format =
        "`/colour` has the format \"email\"; it must be one of date-time, idn-hostname, uri, uuid";
    floor
        .check_property(property("string", json!({ "format": "email" })), format)
        .await;
    let strings = "`/colour` must list in `enum` one or more strings, each once";
    floor
        .check_property(property("string", json!({ "enum": ["red", 3] })), strings)
        .await;
    let length = "`/colour` has the `minLength` -1, which is not a valid number for it";
    floor
        .check_property(property("string", json!({ "minLength": -1 })), length)
        .await;
    let bounds = "`/colour` has a `minimum` above its `maximum`: no value fits";
    floor
        .check_property(
            property("integer", json!({ "minimum": 3, "maximum": 2 })),
            bounds,
        )
        .await;
}

async fn nested(floor: &mut Floor) {
    let open = "`/colour` must refuse unknown fields (`additionalProperties: false`)";
    floor
        .check_property(property("object", json!({ "properties": {} })), open)
        .await;
    let undocumented =
        json!({ "properties": { "hue": { "type": "integer" } }, "additionalProperties": false });
    floor
        .check_property(
            property("object", undocumented),
            "`/colour/hue` must have a description",
        )
        .await;
    let items = |items: Value| property("array", json!({ "items": items }));
    let none = "`/colour` must have one object schema as its `items`";
    floor
        .check_property(property("array", json!({})), none)
        .await;
    let array = "`/colour/items` has the type `array`, which is not allowed for items";
    floor
        .check_property(items(json!({ "type": "array", "items": {} })), array)
        .await;
    let strings = "`/colour/items` must list in `enum` one or more strings, each once";
    floor
        .check_property(items(json!({ "type": "string", "enum": [] })), strings)
        .await;
    let anchors = "it must begin with ^ and end with $, with alternatives in a group";
    let pattern = format!("`/colour/items` has the pattern `red`: {anchors}");
    floor
        .check_property(
            items(json!({ "type": "string", "pattern": "red" })),
            &pattern,
        )
        .await;
    let open = "`/colour/items` must refuse unknown fields (`additionalProperties: false`)";
    floor
        .check_property(
            items(json!({ "type": "object", "additionalProperties": true })),
            open,
        )
        .await;
    let mut deep = property("string", json!({}));
    for _ in 0..4 {
        deep = property(
            "object",
            json!({ "properties": { "d": deep }, "additionalProperties": false }),
        );
    }
    floor
        .check_property(deep, "`/colour/d/d/d/d` is nested deeper than 4 levels")
        .await;
}

async fn patterns(floor: &mut Floor) {
    let anchors = "it must begin with ^ and end with $, with alternatives in a group";
    for pattern in ["red", "^a|b$", r"^red\$"] {
        let rule = format!("`/colour` has the pattern `{pattern}`: {anchors}");
        floor
            .check_property(property("string", json!({ "pattern": pattern })), &rule)
            .await;
    }
    for (pattern, part) in [
        (r"^(a)\1$", r"\1"),
        ("^(?=a)b$", "(?="),
        ("^(?<!a)b$", "(?<!"),
    ] {
        let rule = format!(
            "`/colour` has the pattern `{pattern}`: `{part}` needs backtracking, which has no time limit"
        );
        floor
            .check_property(property("string", json!({ "pattern": pattern })), &rule)
            .await;
    }
    let flag =
        "`/colour` has the pattern `^(?m)a$`: `(?m)` means something else in other regex engines";
    floor
        .check_property(property("string", json!({ "pattern": "^(?m)a$" })), flag)
        .await;
    let open = "`/colour` has the pattern `^(a$`: it cannot be parsed: unclosed group";
    floor
        .check_property(property("string", json!({ "pattern": "^(a$" })), open)
        .await;
}

async fn references(floor: &mut Floor) {
    for to in [
        "https://example.com/colour.json",
        "#/$defs/colour",
        "#/properties/shape",
    ] {
        let rule = format!("`/colour` refers to \"{to}\" by `$ref`: references must be inlined");
        floor.check_property(json!({ "$ref": to }), &rule).await;
        let output =
            |schema: Value| json!({ "type": "object", "properties": { "served": schema } });
        let rule =
            format!("`/served/items` refers to \"{to}\" by `$ref`: references must be inlined");
        floor
            .check_output(
                output(json!({ "type": "array", "items": { "$ref": to } })),
                &rule,
            )
            .await;
        let rule =
            format!("`/served/anyOf/1` refers to \"{to}\" by `$ref`: references must be inlined");
        floor
            .check_output(
                output(json!({ "anyOf": [{ "type": "null" }, { "$ref": to }] })),
                &rule,
            )
            .await;
    }
}

async fn outputs(floor: &mut Floor) {
    floor
        .check_output(
            json!({ "type": "string" }),
            "`/` must have the type `object`",
        )
        .await;
    let output = |schema: Value| json!({ "type": "object", "properties": { "served": schema } });
    floor
        .check_output(output(json!(true)), "`/served` must be an object schema")
        .await;
    let items = "`/served/items` must be an object schema";
    floor
        .check_output(output(json!({ "type": "array", "items": true })), items)
        .await;
    for keyword in [
        "$defs",
        "patternProperties",
        "prefixItems",
        "if",
        "not",
        "nullable",
    ] {
        let rule = format!("`/served` uses `{keyword}`, which many clients do not support");
        floor
            .check_output(output(json!({ keyword: {} })), &rule)
            .await;
    }
    let slow =
        r"`/served` has the pattern `(a)\1`: `\1` needs backtracking, which has no time limit";
    floor
        .check_output(
            output(json!({ "type": "string", "pattern": r"(a)\1" })),
            slow,
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_outside_the_publish_profile_is_told_by_place_and_rule() {
    let mut floor = Floor::open().await;
    roots(&mut floor).await;
    properties(&mut floor).await;
    nested(&mut floor).await;
    patterns(&mut floor).await;
    references(&mut floor).await;
    outputs(&mut floor).await;
}
