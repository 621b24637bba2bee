//! JSON read strictly: an object that names a member twice is malformed.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Parses JSON text, refusing an object that names a member twice.
pub(crate) fn strict_json(bytes: &[u8]) -> Result<Value, MalformedJson> {
    let duplicate = RefCell::new(None);
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let parsed = Strict {
        duplicate: &duplicate,
    }
    .deserialize(&mut deserializer)
    .and_then(|value| deserializer.end().map(|()| value));
    parsed.map_err(|error| match duplicate.take() {
        Some(name) => MalformedJson::Duplicate(name),
        None => MalformedJson::Json {
            line: error.line(),
            column: error.column(),
        },
    })
}

/// Text that is no JSON, or JSON that says a thing twice.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum MalformedJson {
    #[error("is not valid JSON: line {line}, column {column}")]
    Json { line: usize, column: usize },
    #[error("has `{0}` more than once")]
    Duplicate(String),
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
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number is out of range"))
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
                return Err(A::Error::custom("a member appears more than once"));
            }
            object.insert(name, members.next_value_seed(self)?);
        }
        Ok(Value::Object(object))
    }
}
