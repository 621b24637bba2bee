//! Reading JSON that somebody else writes, who may change it: what is not as expected is as good as not there, and costs
//! nothing else. Pure: using it imports nothing.
//!
//! ```
//! use serde::Deserialize;
//! use switchbay_sdk::lenient::{First, Text};
//!
//! #[derive(Deserialize)]
//! struct Answer {
//!     results: First<Hit, 100>,
//! }
//!
//! #[derive(Default, Deserialize)]
//! #[serde(default)]
//! struct Hit {
//!     title: Text,
//!     snippet: Text,
//! }
//!
//! let answer = r#"{ "results": [{ "title": "Harbour lights", "snippet": 5 }] }"#;
//! let Answer { results } = serde_json::from_str(answer).expect("an answer");
//! assert_eq!((results.0[0].title.0.as_str(), results.0[0].snippet.0.as_str()), ("Harbour lights", ""));
//! ```

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// A text; empty where there is something else.
#[derive(Debug, Default)]
pub struct Text(pub String);

/// The first members of a list, at most `MAX`. The others are looked over and never kept, so no list takes more memory than
/// its own length.
#[derive(Debug)]
pub struct First<T, const MAX: usize>(pub Vec<T>);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_str<E>(self, text: &str) -> Result<Text, E> {
        Ok(Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Text, E> {
        Ok(Text(text))
    }

    fn visit_unit<E>(self) -> Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut members: A) -> Result<Text, A::Error> {
        while members.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Text::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Text, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Text::default())
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for First<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(FirstVisitor(PhantomData))
    }
}

struct FirstVisitor<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for FirstVisitor<T, MAX> {
    type Value = First<T, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut members: A) -> Result<First<T, MAX>, A::Error> {
        let mut first = Vec::new();
        while first.len() < MAX {
            match members.next_element()? {
                Some(member) => first.push(member),
                None => return Ok(First(first)),
            }
        }
        while members.next_element::<IgnoredAny>()?.is_some() {}
        Ok(First(first))
    }
}

/// A JSON document that is asked by paths, several of them where schemas call one thing by different names. A document that
/// is not there answers nothing, an empty text is nothing, and a number may be written as text.
#[derive(Debug, Default)]
pub struct LooseJson(Value);

/// Steps into objects; a number steps into a list.
pub type Path<'p> = &'p [&'p str];

impl LooseJson {
    /// Reads a text, which may be missing or no JSON.
    pub fn read(json: Option<&str>) -> Self {
        Self(
            json.and_then(|json| serde_json::from_str(json).ok())
                .unwrap_or_default(),
        )
    }

    /// The first text that is not empty, without the space around it.
    pub fn text(&self, paths: &[Path<'_>]) -> Option<String> {
        let found =
            |path: &Path<'_>| Some(self.at(path)?.as_str()?.trim()).filter(|text| !text.is_empty());
        paths.iter().find_map(found).map(str::to_owned)
    }

    /// The first finite number.
    pub fn number(&self, paths: &[Path<'_>]) -> Option<f64> {
        let read = |value: &Value| match value {
            Value::String(text) => text.trim().parse().ok(),
            other => other.as_f64(),
        };
        paths
            .iter()
            .find_map(|path| read(self.at(path)?).filter(|number: &f64| number.is_finite()))
    }

    /// The first whole number from 0 to 4,294,967,295.
    pub fn count(&self, paths: &[Path<'_>]) -> Option<u32> {
        let read = |value: &Value| match value {
            Value::String(text) => text.trim().parse().ok(),
            other => other.as_u64().and_then(|number| u32::try_from(number).ok()),
        };
        paths.iter().find_map(|path| read(self.at(path)?))
    }

    /// Whether any of these is true.
    pub fn is_any(&self, paths: &[Path<'_>]) -> bool {
        paths
            .iter()
            .any(|path| self.at(path).is_some_and(|value| *value == true))
    }

    fn at(&self, path: Path<'_>) -> Option<&Value> {
        path.iter().try_fold(&self.0, |value, step| match value {
            Value::Array(list) => list.get(step.parse::<usize>().ok()?),
            other => other.get(step),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_none_and_costs_nothing_else() {
        for written in [
            "5",
            "-5",
            "5.5",
            "true",
            "null",
            "[1, [2]]",
            "{\"a\": {\"b\": 1}}",
        ] {
            let read: Vec<Text> =
                serde_json::from_str(&format!("[{written}, \"a\"]")).expect(written);
            let read: Vec<String> = read.into_iter().map(|text| text.0).collect();
            assert_eq!(read, ["", "a"], "{written}");
        }
    }

    #[test]
    fn a_list_is_kept_up_to_its_bound_and_read_to_its_end() {
        let many = format!("[{}1]", "1,".repeat(100_000));
        let read: First<u8, 100> = serde_json::from_str(&many).expect("a list");
        assert_eq!(read.0.len(), 100);
        assert!(
            serde_json::from_str::<First<u8, 100>>(&format!("{many}]")).is_err(),
            "there is more behind it"
        );
        assert!(serde_json::from_str::<First<u8, 100>>("null").is_err());
    }

    #[test]
    fn the_first_path_that_has_a_value_answers() {
        let text = r#"{ "a": " ", "b": { "c": " x " }, "list": [{ "n": "7" }], "n": 4294967296, "f": "1.5", "t": true }"#;
        let loose = LooseJson::read(Some(text));
        assert_eq!(loose.text(&[&["a"], &["b", "c"]]).as_deref(), Some("x"));
        assert_eq!(loose.text(&[&["n"], &["b"], &["b", "c", "d"]]), None);
        assert_eq!(loose.count(&[&["n"], &["f"], &["list", "0", "n"]]), Some(7));
        assert_eq!(
            loose.count(&[&["list", "1", "n"], &["list", "x", "n"]]),
            None
        );
        assert_eq!(loose.number(&[&["a"], &["f"]]), Some(1.5));
        assert!(loose.is_any(&[&["a"], &["t"]]) && !loose.is_any(&[&["a"], &["n"]]));
    }

    #[test]
    fn what_is_no_json_answers_nothing() {
        for text in [None, Some(""), Some("{"), Some("null"), Some("[]")] {
            let loose = LooseJson::read(text);
            assert_eq!(
                (loose.text(&[&["a"]]), loose.count(&[&["0"]])),
                (None, None)
            );
        }
        let infinite = LooseJson::read(Some(r#"{ "n": "inf" }"#));
        assert_eq!(infinite.number(&[&["n"]]), None);
    }
}
