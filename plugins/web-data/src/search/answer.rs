//! What providers' answers have in common, read leniently and within bounds.
//!
//! A field that is not what it should be is one that is not there: one odd result must not cost the others. What is beyond
//! [`HITS_MAX`] is looked over and never kept, so that no answer takes more memory than its own length.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::Format;

/// Members of one list that are kept.
const HITS_MAX: usize = 100;

/// What a provider answered.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SearchAnswer {
    pub(super) hits: Vec<Hit>,
    /// Something that the provider asks did not answer: without a hit, this is no empty result.
    pub(super) is_outage: bool,
}

/// One result, as the provider wrote it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) url: String,
    pub(super) title: String,
    pub(super) snippet: String,
    pub(super) content: Option<(String, Format)>,
}

/// A text, empty where there is something else.
#[derive(Debug, Default)]
pub(super) struct Text(pub(super) String);

/// The first members of a list.
#[derive(Debug)]
pub(super) struct First<T>(pub(super) Vec<T>);

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

impl<'de, T: Deserialize<'de>> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(FirstVisitor(PhantomData))
    }
}

struct FirstVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FirstVisitor<T> {
    type Value = First<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut members: A) -> Result<First<T>, A::Error> {
        let mut first = Vec::new();
        while first.len() < HITS_MAX {
            match members.next_element()? {
                Some(member) => first.push(member),
                None => return Ok(First(first)),
            }
        }
        while members.next_element::<IgnoredAny>()?.is_some() {}
        Ok(First(first))
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
        let read: First<u8> = serde_json::from_str(&many).expect("a list");
        assert_eq!(read.0.len(), HITS_MAX);
        assert!(
            serde_json::from_str::<First<u8>>(&format!("{many}]")).is_err(),
            "there is more behind it"
        );
        assert!(serde_json::from_str::<First<u8>>("null").is_err());
    }
}
