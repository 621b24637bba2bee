//! An operation's schemas, compiled: what a face takes, and what the plugin must answer.
//!
//! The validators are built once a revision. A value that fits costs one pass; only one that does not is walked again to
//! find the offence that the client is told of. Knows no transport and no envelope.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, ValidationOptions, Validator};
use serde_json::{Map, Value};

use super::profile;

/// A schema that cannot be compiled.
#[derive(Debug, thiserror::Error)]
#[error("its schema cannot be compiled: {0}")]
pub(crate) struct SchemaError(String);

/// The input schema of one face, which fits the publish profile (see `profile`). What it says of some properties may be for the
/// documents alone, where the operation judges them itself.
pub(crate) struct FaceSchema {
    document: Value,
    validator: Validator,
}

/// The first offence of an input, in the order that the client wrote it (then missing fields in schema order).
#[derive(Debug, PartialEq)]
pub(crate) struct Offence {
    /// The path of the offending field, `a.b` or `a.0`; `None` when the whole input is no object.
    pub(crate) field: Option<String>,
    pub(crate) rule: String,
    /// What was found instead, where it is short.
    found: Option<String>,
    pub(crate) min: Option<Value>,
    pub(crate) max: Option<Value>,
}

impl Offence {
    /// The rule with what was found, for whoever sent it.
    pub(crate) fn told(&self) -> String {
        match &self.found {
            Some(found) => format!("{}, not {found}", self.rule),
            None => self.rule.clone(),
        }
    }
}

impl FaceSchema {
    /// Compiles a schema. Of the properties that the operation judges itself the type alone is enforced.
    pub(crate) fn compile(document: Value, judged: &[String]) -> Result<Self, SchemaError> {
        // Draft 4 is the only draft whose `integer` excludes 1.0, as the contract does; the keywords that the profile
        // allows mean the same in it as in 2020-12.
        let validator = options(Draft::Draft4)
            .should_validate_formats(true)
            .build(&enforced(&document, judged))
            .map_err(|error| SchemaError(error.to_string()))?;
        Ok(Self {
            document,
            validator,
        })
    }

    /// The schema as published.
    pub(crate) fn document(&self) -> &Value {
        &self.document
    }

    /// The names and schemas of the arguments, in order.
    pub(crate) fn properties(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.document
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
    }

    /// The declared type of an argument.
    pub(crate) fn type_of(&self, name: &str) -> Option<&str> {
        self.document
            .get("properties")?
            .get(name)?
            .get("type")?
            .as_str()
    }

    /// Takes the optional properties that are `null` out of an input: they count as omitted.
    pub(crate) fn drop_nulls(&self, input: &mut Map<String, Value>) {
        drop_nulls(input, &self.document);
    }

    /// Checks an input without nulls.
    pub(crate) fn check(&self, input: &Value) -> Result<(), Offence> {
        if self.validator.is_valid(input) {
            return Ok(());
        }
        let errors = self.validator.iter_errors(input);
        let offences = errors.map(|error| locate(&error, input, &self.document));
        match offences.min_by(|one, two| one.0.cmp(&two.0)) {
            Some((_, offence)) => Err(offence),
            None => Ok(()),
        }
    }
}

/// The full output schema of an operation's `data`.
pub(crate) struct OutputSchema {
    document: Value,
    validator: Validator,
}

impl OutputSchema {
    pub(crate) fn compile(document: Value) -> Result<Self, SchemaError> {
        let validator = options(Draft::Draft202012)
            .build(&document)
            .map_err(|error| SchemaError(error.to_string()))?;
        Ok(Self {
            document,
            validator,
        })
    }

    pub(crate) fn document(&self) -> &Value {
        &self.document
    }

    /// Where and how a reply breaks the schema, for the log; never the value itself, which may be personal.
    pub(crate) fn check(&self, data: &Value) -> Result<(), String> {
        if self.validator.is_valid(data) {
            return Ok(());
        }
        match self.validator.iter_errors(data).next() {
            Some(error) => {
                let (at, rule) = (error.instance_path(), error.schema_path());
                Err(format!("`{at}` violates `{rule}`"))
            }
            None => Ok(()),
        }
    }
}

/// What of a published schema is enforced here.
fn enforced(document: &Value, judged: &[String]) -> Value {
    let mut schema = document.clone();
    profile::without_formats(&mut schema);
    let properties = schema.get_mut("properties");
    let properties = properties.and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flatten() {
        if let (true, Some(members)) = (judged.contains(name), property.as_object_mut()) {
            members.retain(|keyword, _| keyword == "type");
        }
    }
    schema
}

/// Patterns run in an engine without backtracking, so that none takes more than linear time; one that needs backtracking is
/// refused when it is compiled.
fn options(draft: Draft) -> ValidationOptions<'static> {
    jsonschema::options()
        .with_draft(draft)
        .with_pattern_options(PatternOptions::regex())
}

fn drop_nulls(input: &mut Map<String, Value>, schema: &Value) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
    input.retain(|name, value| {
        !(value.is_null() && properties.contains_key(name) && !is_required(name))
    });
    for (name, value) in input {
        if let (Value::Object(inner), Some(schema)) = (value, properties.get(name)) {
            drop_nulls(inner, schema);
        }
    }
}

/// An error's place in the document, for sorting, and what to tell of it. An absent field sorts behind all that is there.
fn locate(error: &ValidationError<'_>, input: &Value, schema: &Value) -> (Vec<usize>, Offence) {
    let segments = error.instance_path().iter();
    let mut path: Vec<String> = segments.map(|segment| segment.to_string()).collect();
    let mut place = place_of(&path, input);
    let at = path.iter().try_fold(input, |value, segment| {
        step(value, segment).map(|(_, value)| value)
    });
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            place.push(usize::MAX);
            place.push(order_in_schema(schema, name));
            path.push(name.to_owned());
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let position = |name: &String| {
                at.and_then(|value| step(value, name))
                    .map_or(0, |(position, _)| position)
            };
            if let Some(name) = unexpected.iter().min_by_key(|name| position(name)) {
                place.push(position(name));
                path.push(name.clone());
            }
        }
        // Where the schema names no property at all, the validator tells only that there is one.
        ValidationErrorKind::FalseSchema => {
            let members = at.and_then(Value::as_object);
            if let Some(name) = members.and_then(|members| members.keys().next()) {
                place.push(0);
                path.push(name.clone());
            }
        }
        _ => {}
    }
    let field = (!path.is_empty()).then(|| path.join("."));
    let (min, max) = bounds(error.kind());
    let (rule, found) = rule(error, schema);
    let offence = Offence {
        field,
        rule,
        found,
        min,
        max,
    };
    (place, offence)
}

fn place_of(path: &[String], input: &Value) -> Vec<usize> {
    let mut value = input;
    let positions = path.iter().map_while(|segment| {
        let (position, next) = step(value, segment)?;
        value = next;
        Some(position)
    });
    positions.collect()
}

fn step<'v>(value: &'v Value, segment: &str) -> Option<(usize, &'v Value)> {
    match value {
        Value::Object(members) => {
            let position = members.keys().position(|name| name == segment)?;
            Some((position, members.get(segment)?))
        }
        Value::Array(items) => {
            let index: usize = segment.parse().ok()?;
            Some((index, items.get(index)?))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn order_in_schema(schema: &Value, name: &str) -> usize {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .and_then(|properties| properties.keys().position(|key| key == name))
        .unwrap_or(usize::MAX)
}

fn bounds(kind: &ValidationErrorKind) -> (Option<Value>, Option<Value>) {
    match kind {
        ValidationErrorKind::Minimum { limit } => (Some(limit.clone()), None),
        ValidationErrorKind::MinLength { limit } | ValidationErrorKind::MinItems { limit } => {
            (Some(Value::from(*limit)), None)
        }
        ValidationErrorKind::Maximum { limit } => (None, Some(limit.clone())),
        ValidationErrorKind::MaxLength { limit } | ValidationErrorKind::MaxItems { limit } => {
            (None, Some(Value::from(*limit)))
        }
        _ => (None, None),
    }
}

/// The rule in words, and the value beside it, where it is short and a scalar.
fn rule(error: &ValidationError<'_>, schema: &Value) -> (String, Option<String>) {
    let value = || Some(shown(error.instance()));
    let characters = || {
        let text = error.instance().as_str();
        Some(text.map_or(0, |text| text.chars().count()).to_string())
    };
    match error.kind() {
        ValidationErrorKind::Required { .. } => ("is required".to_owned(), None),
        ValidationErrorKind::AdditionalProperties { .. } | ValidationErrorKind::FalseSchema => {
            (unknown(schema), None)
        }
        ValidationErrorKind::Type { .. } => {
            let expected = schema_at(schema, error).unwrap_or("another type");
            let rule = format!("must be {} {expected}", article(expected));
            (rule, value())
        }
        ValidationErrorKind::Minimum { limit } => (format!("must be at least {limit}"), value()),
        ValidationErrorKind::Maximum { limit } => (format!("must be at most {limit}"), value()),
        ValidationErrorKind::MinLength { limit } => {
            let rule = format!("must have at least {limit} characters");
            (rule, characters())
        }
        ValidationErrorKind::MaxLength { limit } => {
            let rule = format!("must have at most {limit} characters");
            (rule, characters())
        }
        ValidationErrorKind::MinItems { limit } => {
            (format!("must have at least {limit} items"), None)
        }
        ValidationErrorKind::MaxItems { limit } => {
            (format!("must have at most {limit} items"), None)
        }
        ValidationErrorKind::Pattern { pattern } => match title_beside(schema, error) {
            Some(title) => (format!("must be {} {title}", article(title)), value()),
            None => (format!("must match {pattern}"), None),
        },
        ValidationErrorKind::Enum { options } => (format!("must be one of {options}"), value()),
        ValidationErrorKind::Format { format } => (format!("must be a {format}"), None),
        other => (format!("violates the rule `{}`", other.keyword()), None),
    }
}

fn unknown(schema: &Value) -> String {
    let properties = schema.get("properties").and_then(Value::as_object);
    let known = properties.into_iter().flat_map(Map::keys);
    let known: Vec<&str> = known.map(String::as_str).collect();
    if known.is_empty() {
        "is unknown: this operation takes no fields".to_owned()
    } else {
        format!("is unknown; the known fields are {}", known.join(", "))
    }
}

fn schema_at<'s>(schema: &'s Value, error: &ValidationError<'_>) -> Option<&'s str> {
    schema.pointer(error.schema_path().as_str())?.as_str()
}

/// What the schema that a keyword stands in calls its values: people read that instead of a pattern.
fn title_beside<'s>(schema: &'s Value, error: &ValidationError<'_>) -> Option<&'s str> {
    let (beside, _keyword) = error.schema_path().as_str().rsplit_once('/')?;
    schema.pointer(beside)?.get("title")?.as_str()
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) if text.chars().count() <= 40 => format!("the string {value}"),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
