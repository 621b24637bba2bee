//! Reading a request's arguments (decisions, "Reading a request"): one strict reading for both faces.
//!
//! Runs on the road, after the window and before the plugin, so that a malformed request still takes its slot. Gives back
//! the JSON object that fits the face's schema, or the first offence with its field.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;

use http::HeaderMap;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::error::{Code, Refusal};
use crate::registry::schema::{FaceSchema, Offence};

/// Arguments as they came, not looked at yet.
pub(crate) enum Unread<'r> {
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

/// The header that names one call of a self-service key (spec, "Authentication" 7).
pub(crate) const IDEMPOTENCY_KEY: &str = "Idempotency-Key";
const IDENTIFIER_BYTES_MAX: usize = 80;

/// What a caller calls its operation by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Identifier {
    Absent,
    Given(String),
    /// Not of the pattern, or given in more than one way.
    Unusable,
}

impl Identifier {
    pub(crate) fn read(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
        let is_name = |text: &&str| {
            (1..=IDENTIFIER_BYTES_MAX).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
        };
        match (values.next(), values.next()) {
            (None, _) => Self::Absent,
            (Some(value), None) => {
                value.to_str().ok().filter(is_name).map_or(Self::Unusable, |text| Self::Given(text.to_owned()))
            }
            (Some(_), Some(_)) => Self::Unusable,
        }
    }

    /// Refuses one that cannot be used.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        match self {
            Self::Absent | Self::Given(_) => Ok(()),
            Self::Unusable => {
                Err(invalid(Some(IDEMPOTENCY_KEY), "must be one of 1 to 80 characters of A-Z, a-z, 0-9, _ and -"))
            }
        }
    }

    pub(crate) fn given(&self) -> Option<&str> {
        match self {
            Self::Given(text) => Some(text),
            Self::Absent | Self::Unusable => None,
        }
    }
}

/// Reads arguments into the JSON object for the plugin.
pub(crate) fn read(unread: Unread<'_>, schema: &FaceSchema) -> Result<Map<String, Value>, Refusal> {
    match unread {
        Unread::Rest { params, query, body, source } => {
            let mut input = path(params, schema)?;
            let from_query = (source == ArgumentSource::Query).then_some(schema);
            add_query(&mut input, query.unwrap_or_default(), from_query)?;
            add_body(&mut input, body, source)?;
            checked(input, schema)
        }
        Unread::Tool { arguments, fixed, bytes_max } => {
            let bytes = serde_json::to_vec(&arguments).map_or(usize::MAX, |bytes| bytes.len());
            if bytes > bytes_max {
                return Err(Refusal::too_large(bytes_max));
            }
            let mut input = checked(arguments, schema)?;
            input.extend(fixed.iter().map(|(name, value)| (name.clone(), value.clone())));
            Ok(input)
        }
    }
}

/// Parses JSON text, refusing an object that names a member twice.
pub(crate) fn strict_json(bytes: &[u8]) -> Result<Value, MalformedJson> {
    let duplicate = RefCell::new(None);
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let parsed = Strict { duplicate: &duplicate }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value));
    parsed.map_err(|error| match duplicate.take() {
        Some(name) => MalformedJson::Duplicate(name),
        None => MalformedJson::Json { line: error.line(), column: error.column() },
    })
}

/// Text that is no JSON, or JSON that says a thing twice.
#[derive(Debug, PartialEq)]
pub(crate) enum MalformedJson {
    Json { line: usize, column: usize },
    Duplicate(String),
}

fn path(params: Vec<(String, String)>, schema: &FaceSchema) -> Result<Map<String, Value>, Refusal> {
    let mut input = Map::new();
    for (name, raw) in params {
        let decoded = percent_encoding::percent_decode_str(&raw).decode_utf8();
        let Ok(text) = decoded.map(Cow::into_owned) else {
            return Err(invalid(Some(&name), "must be UTF-8 when percent-decoded"));
        };
        let value = typed(&text, schema.type_of(&name));
        input.insert(name, value);
    }
    Ok(input)
}

/// `schema` is absent where the operation takes nothing from the query.
fn add_query(input: &mut Map<String, Value>, query: &str, schema: Option<&FaceSchema>) -> Result<(), Refusal> {
    let path_names: Vec<String> = input.keys().cloned().collect();
    for (name, text) in form_urlencoded::parse(query.as_bytes()) {
        let Some(schema) = schema else {
            return Err(invalid(Some(&name), "is unknown: this operation takes nothing from the query"));
        };
        if path_names.iter().any(|known| *known == name) {
            return Err(invalid(Some(&name), "is taken from the path, not from the query"));
        }
        let value = typed(&text, schema.type_of(&name));
        if input.insert(name.clone().into_owned(), value).is_some() {
            return Err(invalid(Some(&name), "is given twice"));
        }
    }
    Ok(())
}

fn add_body(input: &mut Map<String, Value>, body: &[u8], source: ArgumentSource) -> Result<(), Refusal> {
    if body.is_empty() {
        return Ok(());
    }
    let value = strict_json(body).map_err(|malformed| match malformed {
        MalformedJson::Json { line, column } => {
            invalid(None, &format!("The body is no JSON text: it breaks at line {line}, column {column}"))
        }
        MalformedJson::Duplicate(name) => invalid(Some(&name), "is given twice"),
    })?;
    let Value::Object(members) = value else {
        return Err(invalid(None, "The body must be a JSON object"));
    };
    for (name, value) in members {
        if source == ArgumentSource::Query {
            return Err(invalid(Some(&name), "is unknown: this operation takes no body"));
        }
        if input.contains_key(&name) {
            return Err(invalid(Some(&name), "is taken from the path, not from the body"));
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
    text.parse::<i64>().map(Number::from).ok().or_else(|| text.parse::<u64>().map(Number::from).ok())
}

fn checked(mut input: Map<String, Value>, schema: &FaceSchema) -> Result<Map<String, Value>, Refusal> {
    schema.drop_nulls(&mut input);
    let input = Value::Object(input);
    schema.check(&input).map_err(|offence| offended(&offence))?;
    let Value::Object(input) = input else {
        return Err(Refusal::internal("an object stayed no object"));
    };
    Ok(input)
}

fn offended(offence: &Offence) -> Refusal {
    let mut refusal = invalid(offence.field.as_deref(), &offence.rule);
    if let Some(min) = &offence.min {
        refusal = refusal.with("min", min.clone());
    }
    if let Some(max) = &offence.max {
        refusal = refusal.with("max", max.clone());
    }
    refusal
}

fn invalid(field: Option<&str>, rule: &str) -> Refusal {
    match field {
        Some(field) => {
            let shown: String = field.chars().take(100).collect();
            Refusal::new(Code::ValidationError, format!("`{shown}` {rule}")).with("field", shown)
        }
        None => Refusal::new(Code::ValidationError, rule.to_owned()),
    }
}

/// Builds a [`Value`], and stops at a member that is named twice.
#[derive(Clone, Copy)]
struct Strict<'d> {
    duplicate: &'d RefCell<Option<String>>,
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number is out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if object.contains_key(&name) {
                *self.duplicate.borrow_mut() = Some(name);
                return Err(A::Error::custom("a member is named twice"));
            }
            object.insert(name, members.next_value_seed(self)?);
        }
        Ok(Value::Object(object))
    }
}
