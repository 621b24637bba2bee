//! A resolver's answer, taken apart: flags, status, and the records of its three sections.
//!
//! It reads itself rather than by a library: data is shown from its bytes, as what it is or as RFC 3597 says, while the
//! libraries at hand refuse a whole message for one record whose data does not fit, or bring what has no use in a guest. It
//! must know nothing of how a record's data is shown.

use serde::Serialize;
use switchbay_sdk::schemars::{self, JsonSchema};

use crate::wire::{Malformed, Name, Reader};

/// The type of the pseudo-record that carries extensions (RFC 6891). It is no record and counts as none.
const OPT: u16 = 41;
const INTERNET: u16 = 1;

/// Where in an answer a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(description = "The section of the answer that holds the record.")]
pub(crate) enum Section {
    Answer,
    Authority,
    Additional,
}

/// The bits of an answer's head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Flags {
    /// The answer is truncated.
    #[serde(rename = "tc")]
    pub(crate) truncated: bool,
    /// Recursion was desired.
    #[serde(rename = "rd")]
    pub(crate) recursion_desired: bool,
    /// Recursion is available.
    #[serde(rename = "ra")]
    pub(crate) recursion_available: bool,
    /// The resolver validated the answer with DNSSEC.
    #[serde(rename = "ad")]
    pub(crate) authentic_data: bool,
    /// Checking was disabled.
    #[serde(rename = "cd")]
    pub(crate) checking_disabled: bool,
}

/// A record, its data not yet read.
#[derive(Debug)]
pub(crate) struct RawRecord<'m> {
    pub(crate) section: Section,
    pub(crate) owner: Name,
    pub(crate) code: u16,
    pub(crate) ttl: u32,
    pub(crate) data: Reader<'m>,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Message<'m> {
    pub(crate) flags: Flags,
    /// With the upper bits that OPT carries.
    pub(crate) response_code: u16,
    pub(crate) records: Vec<RawRecord<'m>>,
}

/// Bytes that are no answer to the question.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotAnswer {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("the message is not an answer to a query")]
    Query,
    #[error("the message answers a different question")]
    OtherQuestion,
}

impl<'m> Message<'m> {
    /// Reads the answer to the question for a name, in lower case and without trailing dot, and a type.
    ///
    /// # Errors
    /// It is malformed, or none to this question.
    pub(crate) fn read(bytes: &'m [u8], name: &str, code: u16) -> Result<Self, NotAnswer> {
        let mut reader = Reader::new(bytes);
        let _id = reader.u16()?;
        let head = reader.u16()?;
        if head & 0xF800 != 0x8000 {
            return Err(NotAnswer::Query);
        }
        let bit = |bit: u16| head & bit != 0;
        let flags = Flags {
            truncated: bit(0x0200),
            recursion_desired: bit(0x0100),
            recursion_available: bit(0x0080),
            authentic_data: bit(0x0020),
            checking_disabled: bit(0x0010),
        };
        let questions = reader.u16()?;
        let counts = [reader.u16()?, reader.u16()?, reader.u16()?];
        // A resolver that refuses may leave the question out.
        for _ in 0..questions {
            let asked = reader.name()?.plain().to_ascii_lowercase();
            if (asked.as_str(), reader.u16()?, reader.u16()?) != (name, code, INTERNET) {
                return Err(NotAnswer::OtherQuestion);
            }
        }
        let mut message = Self {
            flags,
            response_code: head & 0x000F,
            records: Vec::new(),
        };
        let sections = [Section::Answer, Section::Authority, Section::Additional];
        for (section, count) in sections.into_iter().zip(counts) {
            for _ in 0..count {
                message.add(section, &mut reader)?;
            }
        }
        if reader.is_at_end() {
            Ok(message)
        } else {
            Err(reader.malformed().into())
        }
    }

    fn add(&mut self, section: Section, reader: &mut Reader<'m>) -> Result<(), Malformed> {
        let owner = reader.name()?;
        let code = reader.u16()?;
        let class = reader.u16()?;
        let ttl = reader.u32()?;
        let length = usize::from(reader.u16()?);
        let data = reader.part(length)?;
        match code {
            OPT => self.response_code |= u16::try_from(ttl >> 24 << 4).unwrap_or_default(),
            // A time of more than 31 bits is none (RFC 2181, 8).
            _ if class == INTERNET => {
                let ttl = i32::try_from(ttl).map_or(0, i32::unsigned_abs);
                self.records.push(RawRecord {
                    section,
                    owner,
                    code,
                    ttl,
                    data,
                });
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Sample, record};

    #[track_caller]
    fn check(bytes: &[u8], expected: NotAnswer) {
        assert_eq!(
            Message::read(bytes, "example.com", 1).map(|_| ()),
            Err(expected)
        );
    }

    #[test]
    fn an_answer_is_taken_apart() {
        let bytes = Sample::of("Example.com", 1)
            .head(0x83A3)
            .answer(record("Example.com", 1, 300, &[192, 0, 2, 1]))
            .authority(record("com", 2, 60, b"\x01a\0"))
            .additional(record("a", 1, 0x8000_0000, &[192, 0, 2, 2]))
            .bytes();
        let message = Message::read(&bytes, "example.com", 1).expect("an answer");
        assert_eq!(message.response_code, 3);
        let flags = Flags {
            truncated: true,
            recursion_desired: true,
            recursion_available: true,
            authentic_data: true,
            checking_disabled: false,
        };
        assert_eq!(message.flags, flags);
        let records: Vec<(Section, String, u16, u32)> = message
            .records
            .iter()
            .map(|record| {
                (
                    record.section,
                    record.owner.plain(),
                    record.code,
                    record.ttl,
                )
            })
            .collect();
        let expected = [
            (Section::Answer, "Example.com".to_owned(), 1, 300),
            (Section::Authority, "com".to_owned(), 2, 60),
            (Section::Additional, "a".to_owned(), 1, 0),
        ];
        assert_eq!(records, expected);
    }

    #[test]
    fn extensions_are_no_record_and_raise_the_status() {
        let opt = [b"\0\0\x29\x04\xD0".as_slice(), &[1, 0, 0, 0, 0, 0]].concat();
        let bytes = Sample::of("example.com", 1).additional(opt).bytes();
        let message = Message::read(&bytes, "example.com", 1).expect("an answer");
        assert_eq!((message.response_code, message.records.len()), (16, 0));
    }

    #[test]
    fn a_record_of_another_class_is_none() {
        let mut other = record("example.com", 16, 1, b"\x01a");
        other["\x07example\x03com\0".len() + 3] = 3;
        let bytes = Sample::of("example.com", 1).answer(other).bytes();
        assert_eq!(
            Message::read(&bytes, "example.com", 1)
                .expect("an answer")
                .records
                .len(),
            0
        );
    }

    #[test]
    fn what_is_no_answer_to_the_question_is_refused() {
        let good = Sample::of("example.com", 1)
            .answer(record("example.com", 1, 300, &[192, 0, 2, 1]))
            .bytes();
        assert!(Message::read(&good, "example.com", 1).is_ok());
        check(
            &Sample::of("example.com", 1).head(0x0100).bytes(),
            NotAnswer::Query,
        );
        check(
            &Sample::of("example.com", 1).head(0xA180).bytes(),
            NotAnswer::Query,
        );
        check(
            &Sample::of("example.net", 1).bytes(),
            NotAnswer::OtherQuestion,
        );
        check(
            &Sample::of("example.com", 28).bytes(),
            NotAnswer::OtherQuestion,
        );
        for length in 0..good.len() {
            let broken = Message::read(&good[..length], "example.com", 1);
            assert!(
                matches!(broken, Err(NotAnswer::Malformed(_))),
                "{length} bytes: {broken:?}"
            );
        }
        let longer = [good.as_slice(), &[0]].concat();
        assert!(matches!(
            Message::read(&longer, "example.com", 1),
            Err(NotAnswer::Malformed(_))
        ));
    }

    #[test]
    fn a_refusal_without_the_question_is_an_answer() {
        let refusal = b"\0\0\x80\x05\0\0\0\0\0\0\0\0";
        assert_eq!(
            Message::read(refusal, "example.com", 1)
                .expect("an answer")
                .response_code,
            5
        );
    }
}
