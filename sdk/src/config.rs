//! The plugin's settings: the `config` table of its entry in the operator's manifest.
//!
//! Using this module makes the component import `wasi:config/store`, which the manifest grants with the atom `config`.
//! A setting is read as the type that it has to be. What does not fit is told with the setting, the rule and the value:
//!
//! ```no_run
//! use serde::Deserialize;
//! use switchbay_sdk::config::{self, SettingError};
//!
//! #[derive(Deserialize)]
//! struct Settings {
//!     base_url: Option<String>,
//!     #[serde(default = "switchbay_sdk::number::<8000>")]
//!     request_ms: u32,
//! }
//!
//! fn settings() -> Result<Settings, SettingError> {
//!     config::read()
//! }
//! ```

use std::fmt;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;

use crate::bindings::wasi::config::store;

/// Characters of a value that an error shows.
const SHOWN_MAX: usize = 80;

/// Returns the value of a setting, or `None` if the operator did not set it or does not grant `config`
/// (or no longer does). TOML values other than strings are returned as JSON text.
pub fn get(key: &str) -> Option<String> {
    store::get(key).ok().flatten()
}

/// Returns a setting as a value of type `T`: a text, a number, an enum, or a table as a struct. `None` as for [`get`].
///
/// # Errors
/// If the setting is not of this type.
pub fn value<T: DeserializeOwned>(key: &str) -> Result<Option<T>, SettingError> {
    get(key).map(|text| parse(key, &text)).transpose()
}

/// Reads settings into a struct, each field from the setting of its name. Other settings are not looked at.
///
/// # Errors
/// If a setting is not of its field's type, or is missing and its field has no default.
pub fn read<T: DeserializeOwned>() -> Result<T, SettingError> {
    T::deserialize(SettingTable(get))
}

/// Reads the text of a setting, as [`get`] returns it, as [`value`] does.
///
/// # Errors
/// If the setting is not of this type.
pub fn parse<T: DeserializeOwned>(key: &str, text: &str) -> Result<T, SettingError> {
    T::deserialize(SettingText(text)).map_err(|error| wrong(key, text, &error))
}

/// A setting that cannot be used. Displayed, it names the setting, the value and the rule, for the operator's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError(String);

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingError {}

impl de::Error for SettingError {
    fn custom<T: fmt::Display>(told: T) -> Self {
        Self(format!("the settings cannot be used: {told}"))
    }

    fn missing_field(field: &'static str) -> Self {
        Self(format!("the setting `{field}` is missing"))
    }
}

fn wrong(key: &str, text: &str, error: &serde_json::Error) -> SettingError {
    let shown: String = text.chars().take(SHOWN_MAX).collect();
    let cut = if shown.len() < text.len() { "…" } else { "" };
    SettingError(format!(
        "the setting `{key}` must not be `{shown}{cut}`: {error}"
    ))
}

/// The text of one setting. A string stands there as it is, anything else as JSON; only the type that is wanted tells
/// which of them it is.
struct SettingText<'t>(&'t str);

impl SettingText<'_> {
    fn json(&self) -> Value {
        serde_json::from_str(self.0).unwrap_or_else(|_| Value::String(self.0.to_owned()))
    }
}

impl<'de> Deserializer<'de> for SettingText<'_> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.json().deserialize_any(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_str(self.0)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.json().deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct seq
        tuple tuple_struct map struct identifier ignored_any
    }
}

/// All settings, by a function that finds the text of one.
struct SettingTable<G>(G);

impl<'de, G: Fn(&str) -> Option<String>> Deserializer<'de> for SettingTable<G> {
    type Error = SettingError;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Self::Error> {
        Err(de::Error::custom("they are read into a struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        let found = fields
            .iter()
            .filter_map(|field| Some((*field, (self.0)(field)?)));
        let settings = SettingFields {
            rest: found.collect::<Vec<_>>().into_iter(),
            value: None,
        };
        MapAccessDeserializer::new(settings).deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The settings of a struct's fields, one after the other.
struct SettingFields {
    rest: std::vec::IntoIter<(&'static str, String)>,
    value: Option<(&'static str, String)>,
}

impl<'de> MapAccess<'de> for SettingFields {
    type Error = SettingError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Self::Error> {
        self.value = self.rest.next();
        let key = self.value.as_ref().map(|(key, _)| *key);
        key.map(|key| seed.deserialize(StrDeserializer::new(key)))
            .transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, Self::Error> {
        let (key, text) = self
            .value
            .take()
            .ok_or_else(|| de::Error::custom("a value was asked for before its key"))?;
        seed.deserialize(SettingText(&text))
            .map_err(|error| wrong(key, &text, &error))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        Fast,
        Careful,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Place {
        host: String,
        #[serde(default)]
        port: u16,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Settings {
        version: String,
        request_ms: Option<u32>,
        mode: Option<Mode>,
        #[serde(default)]
        is_loud: bool,
        place: Option<Place>,
    }

    fn settings(texts: &[(&str, &str)]) -> Result<Settings, String> {
        let get = |key: &str| {
            let found = texts.iter().find(|(known, _)| *known == key);
            found.map(|(_, text)| (*text).to_owned())
        };
        Settings::deserialize(SettingTable(get)).map_err(|error| error.to_string())
    }

    #[test]
    fn each_field_is_read_as_its_type() {
        let read = settings(&[
            // A text that looks like a number is a text all the same.
            ("version", "25"),
            ("request_ms", "8000"),
            ("mode", "careful"),
            ("is_loud", "true"),
            ("place", r#"{"host": "a.example", "port": 80}"#),
            ("other", "{"),
        ]);
        let expected = Settings {
            version: "25".to_owned(),
            request_ms: Some(8000),
            mode: Some(Mode::Careful),
            is_loud: true,
            place: Some(Place {
                host: "a.example".to_owned(),
                port: 80,
            }),
        };
        assert_eq!(read, Ok(expected));
        let few = settings(&[("version", "")]).expect("the others have a default");
        assert_eq!((few.version.as_str(), few.request_ms), ("", None));
    }

    #[test]
    fn what_cannot_be_used_is_told_with_setting_and_value() {
        assert_eq!(
            settings(&[]),
            Err("the setting `version` is missing".to_owned())
        );
        for (key, text, rule) in [
            (
                "request_ms",
                "soon",
                r#"invalid type: string "soon", expected u32"#,
            ),
            (
                "request_ms",
                "-1",
                "invalid value: integer `-1`, expected u32",
            ),
            (
                "request_ms",
                "1.5",
                "invalid type: floating point `1.5`, expected u32",
            ),
            (
                "mode",
                "slow",
                "unknown variant `slow`, expected `fast` or `careful`",
            ),
            (
                "is_loud",
                "yes",
                r#"invalid type: string "yes", expected a boolean"#,
            ),
            ("place", "{}", "missing field `host`"),
        ] {
            let expected = format!("the setting `{key}` must not be `{text}`: {rule}");
            assert_eq!(settings(&[("version", "1"), (key, text)]), Err(expected));
        }
    }

    #[test]
    fn a_long_value_is_shown_by_its_beginning() {
        let error = parse::<u32>("request_ms", &"ä".repeat(1000)).expect_err("no number");
        let shown = format!("must not be `{}…`", "ä".repeat(SHOWN_MAX));
        assert!(error.to_string().contains(&shown), "{error}");
        assert_eq!(parse::<String>("name", "[1]"), Ok("[1]".to_owned()));
    }
}
