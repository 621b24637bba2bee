//! An entry of a database as JSON, read within bounds.
//!
//! A damaged file can say of a few bytes that they are a map of millions, or a map within itself; so values, text and depth
//! are counted, and what is more is an error. Pure.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::{Map, Value};

/// Values of one entry, keys not counted. The largest entries in use have about 200.
const VALUES_MAX: u32 = 4096;
/// Bytes of one entry's keys and texts.
const TEXT_BYTES_MAX: usize = 64 * 1024;
/// Maps and lists within one another.
const DEPTH_MAX: u8 = 16;

/// An entry, and how many values it has.
pub(crate) struct DatabaseEntry {
    pub(crate) value: Value,
    pub(crate) values: u32,
}

/// What is left of one entry's bounds.
struct EntryBudget {
    values: Cell<u32>,
    text: Cell<usize>,
}

impl EntryBudget {
    fn value<E: Error>(&self) -> Result<(), E> {
        let left = self.values.get().checked_sub(1);
        let left =
            left.ok_or_else(|| E::custom(format_args!("it has more than {VALUES_MAX} values")))?;
        self.values.set(left);
        Ok(())
    }

    fn text<E: Error>(&self, text: &str) -> Result<String, E> {
        let left = self.text.get().checked_sub(text.len());
        let left = left.ok_or_else(|| {
            E::custom(format_args!(
                "it has more than {TEXT_BYTES_MAX} bytes of text"
            ))
        })?;
        self.text.set(left);
        Ok(text.to_owned())
    }
}

impl<'de> Deserialize<'de> for DatabaseEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let budget = EntryBudget {
            values: Cell::new(VALUES_MAX),
            text: Cell::new(TEXT_BYTES_MAX),
        };
        let value = Within {
            budget: &budget,
            depth: 0,
        }
        .deserialize(deserializer)?;
        Ok(Self {
            value,
            values: VALUES_MAX - budget.values.get(),
        })
    }
}

/// One value at a depth.
#[derive(Clone, Copy)]
struct Within<'b> {
    budget: &'b EntryBudget,
    depth: u8,
}

impl Within<'_> {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        if self.depth < DEPTH_MAX {
            Ok(Self {
                depth: self.depth + 1,
                ..self
            })
        } else {
            Err(E::custom(format_args!(
                "it is deeper than {DEPTH_MAX} levels"
            )))
        }
    }
}

impl<'de> DeserializeSeed<'de> for Within<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.budget.value()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Within<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of a database")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u128<E: de::Error>(self, value: u128) -> Result<Value, E> {
        Ok(u64::try_from(value).map_or(Value::Null, Value::from))
    }

    /// With the digits that a number of half the precision has: 37.422 stays that.
    fn visit_f32<E: de::Error>(self, value: f32) -> Result<Value, E> {
        Ok(value
            .to_string()
            .parse::<f64>()
            .map_or(Value::Null, Value::from))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        self.budget.text(value).map(Value::String)
    }

    fn visit_bytes<E: de::Error>(self, _: &[u8]) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let (deeper, mut list) = (self.deeper()?, Vec::new());
        while let Some(value) = sequence.next_element_seed(deeper)? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let (deeper, mut map) = (self.deeper()?, Map::new());
        while let Some(key) = entries.next_key::<&str>()? {
            let key = self.budget.text(key)?;
            map.insert(key, entries.next_value_seed(deeper)?);
        }
        Ok(Value::Object(map))
    }
}
