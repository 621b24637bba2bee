//! What is asked of a DNS resolver, and whether a message answers it. Pure.
//!
//! Of the answer only the header and the question are read: they say that it belongs to this question (RFC 5452, 9.1; the
//! source is vouched for by TLS, so the id may be 0, as RFC 8484 wants it for caches). The records are the plugin's to read.

use std::net::Ipv4Addr;

use hickory_resolver::proto::op::{Edns, Header, Message, MessageType, OpCode, Query};
use hickory_resolver::proto::rr::rdata::opt::{ClientSubnet, EdnsOption};
use hickory_resolver::proto::rr::{DNSClass, Name, RecordType};
use hickory_resolver::proto::serialize::binary::{BinDecodable as _, BinDecoder};

use crate::config;

/// The longest name without its last dot, and the longest label, in characters.
const NAME_MAX: usize = 253;
const LABEL_MAX: usize = 63;
/// The size of an answer that is asked for: what passes through a network whole. A resolver may ignore it over HTTPS.
const PAYLOAD_BYTES: u16 = 1232;
/// OPT, a part of messages and none of a zone's data.
const OPT: u16 = 41;
/// Types of questions and of the protocol rather than of data, but for the last: ANY.
const META: std::ops::Range<u16> = 128..255;

/// What cannot be asked. No message repeats the name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QuestionError {
    #[error("has an empty label in its name")]
    EmptyLabel,
    #[error("has a label of {0} characters in its name; at most {LABEL_MAX} are allowed")]
    LongLabel(usize),
    #[error(
        "has a name of {0} characters; at most {NAME_MAX} are allowed, not counting a trailing dot"
    )]
    LongName(usize),
    #[error(
        "has a label with characters other than letters, digits, `-` and `_`; international labels must be A-labels"
    )]
    Characters,
    #[error("has the type {0}, which is not a data type")]
    Type(u16),
}

/// A message that does not answer the question.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Mismatch {
    #[error("it is not a DNS message")]
    Unreadable,
    #[error("it is not a response")]
    NoResponse,
    #[error("its id is not 0")]
    Id,
    #[error("it answers another question")]
    Question,
}

/// A question that can be asked.
#[derive(Clone, Debug)]
pub(super) struct SentQuestion(Query);

impl SentQuestion {
    /// Checks what the plugin asks.
    pub(super) fn read(name: &str, record_type: u16) -> Result<Self, QuestionError> {
        let bare = name.strip_suffix('.').unwrap_or(name);
        // The root alone has no labels.
        if name != "." {
            check_labels(bare)?;
        }
        if record_type == 0 || record_type == OPT || META.contains(&record_type) {
            return Err(QuestionError::Type(record_type));
        }
        // The checks leave nothing that could be refused here.
        let name = Name::from_ascii(format!("{bare}.")).map_err(|_| QuestionError::Characters)?;
        Ok(Self(Query::query(name, RecordType::from(record_type))))
    }

    /// The message that asks it.
    pub(super) fn message(&self, subnet: config::ClientSubnet) -> Option<Vec<u8>> {
        let mut message = Message::new(0, MessageType::Query, OpCode::Query);
        message.metadata.recursion_desired = true;
        // Asks for the bit in the answer without asking for signatures (RFC 6840, 5.7).
        message.metadata.authentic_data = true;
        message.add_query(self.0.clone());
        let mut edns = Edns::new();
        edns.set_max_payload(PAYLOAD_BYTES);
        match subnet {
            config::ClientSubnet::Unsaid => {}
            config::ClientSubnet::Withheld => {
                let none = ClientSubnet::new(Ipv4Addr::UNSPECIFIED.into(), 0, 0);
                edns.options_mut().insert(EdnsOption::Subnet(none));
            }
        }
        message.set_edns(edns);
        message.to_vec().ok()
    }

    /// Whether a message answers this.
    pub(super) fn check(&self, message: &[u8]) -> Result<(), Mismatch> {
        let mut decoder = BinDecoder::new(message);
        let header = Header::read(&mut decoder).map_err(|_| Mismatch::Unreadable)?;
        let metadata = &header.metadata;
        if (metadata.message_type, metadata.op_code) != (MessageType::Response, OpCode::Query) {
            return Err(Mismatch::NoResponse);
        }
        if metadata.id != 0 {
            return Err(Mismatch::Id);
        }
        if header.counts.queries != 1 {
            return Err(Mismatch::Question);
        }
        let echoed = Query::read(&mut decoder).map_err(|_| Mismatch::Unreadable)?;
        let is_same = echoed.name.eq_ignore_root(&self.0.name)
            && echoed.query_type == self.0.query_type
            && echoed.query_class == DNSClass::IN;
        if is_same {
            Ok(())
        } else {
            Err(Mismatch::Question)
        }
    }
}

fn check_labels(name: &str) -> Result<(), QuestionError> {
    for label in name.split('.') {
        if label.is_empty() {
            return Err(QuestionError::EmptyLabel);
        }
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
        if !label.bytes().all(is_plain) {
            return Err(QuestionError::Characters);
        }
        if label.len() > LABEL_MAX {
            return Err(QuestionError::LongLabel(label.len()));
        }
    }
    if name.len() > NAME_MAX {
        return Err(QuestionError::LongName(name.len()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: u16 = 1;

    /// The question of the messages below: `a.test`, type A, class IN.
    const QUESTION: &[u8] = b"\x01a\x04test\x00\x00\x01\x00\x01";

    fn asked() -> SentQuestion {
        SentQuestion::read("a.test", A).expect("a question")
    }

    #[test]
    fn a_question_is_one_message_of_known_bytes() {
        let head = b"\0\0\x01\x20\0\x01\0\0\0\0\0\x01".as_slice();
        let plain = b"\0\0\x29\x04\xd0\0\0\0\0\0\0".as_slice();
        assert_eq!(
            asked().message(config::ClientSubnet::Unsaid),
            Some([head, QUESTION, plain].concat())
        );
        let withheld = b"\0\0\x29\x04\xd0\0\0\0\0\0\x08\0\x08\0\x04\0\x01\0\0".as_slice();
        assert_eq!(
            asked().message(config::ClientSubnet::Withheld),
            Some([head, QUESTION, withheld].concat())
        );
    }

    #[test]
    fn a_name_is_of_labels_and_a_type_of_data() {
        let longest = format!("{0}.{0}.{0}.{1}", "a".repeat(63), "a".repeat(61));
        for name in [
            ".",
            "com",
            "a.test.",
            "_dmarc.A-b.test",
            "xn--dng-hoa.test",
            "1.2.0.192.in-addr.arpa",
            &longest,
        ] {
            assert!(SentQuestion::read(name, A).is_ok(), "{name}");
        }
        let refused = [
            ("", QuestionError::EmptyLabel),
            ("..", QuestionError::EmptyLabel),
            (".test", QuestionError::EmptyLabel),
            ("a..test", QuestionError::EmptyLabel),
            ("đặng.test", QuestionError::Characters),
            ("a b.test", QuestionError::Characters),
            ("*.test", QuestionError::Characters),
            ("a\\.b.test", QuestionError::Characters),
            ("a.test\0", QuestionError::Characters),
            (
                &format!("{}.test", "a".repeat(64)),
                QuestionError::LongLabel(64),
            ),
            (&format!("{longest}a."), QuestionError::LongName(254)),
        ];
        for (name, expected) in refused {
            assert_eq!(
                SentQuestion::read(name, A).expect_err(name),
                expected,
                "{name}"
            );
        }
        for record_type in [1, 28, 65, 127, 255, 257, 65_280] {
            assert!(
                SentQuestion::read("a.test", record_type).is_ok(),
                "{record_type}"
            );
        }
        for record_type in [0, 41, 128, 249, 252, 254] {
            assert_eq!(
                SentQuestion::read("a.test", record_type).expect_err("none"),
                QuestionError::Type(record_type)
            );
        }
    }

    #[test]
    fn a_message_answers_the_question_that_it_repeats() {
        let with =
            |head: &[u8; 12], question: &[u8]| asked().check(&[head.as_slice(), question].concat());
        let head = b"\0\0\x81\xa3\0\x01\0\0\0\0\0\0";
        assert_eq!(with(head, QUESTION), Ok(()));
        assert_eq!(with(head, b"\x01A\x04TeSt\x00\x00\x01\x00\x01"), Ok(()));
        assert_eq!(
            with(head, b"\x01b\x04test\x00\x00\x01\x00\x01"),
            Err(Mismatch::Question)
        );
        assert_eq!(
            with(head, b"\x01a\x04test\x00\x00\x1c\x00\x01"),
            Err(Mismatch::Question)
        );
        assert_eq!(
            with(head, b"\x01a\x04test\x00\x00\x01\x00\x03"),
            Err(Mismatch::Question)
        );
        assert_eq!(with(head, b"\x01a\x04te"), Err(Mismatch::Unreadable));
        assert_eq!(
            with(b"\0\0\x81\x80\0\0\0\0\0\0\0\0", b""),
            Err(Mismatch::Question)
        );
        assert_eq!(
            with(
                b"\0\0\x81\x80\0\x02\0\0\0\0\0\0",
                &[QUESTION, QUESTION].concat()
            ),
            Err(Mismatch::Question)
        );
        assert_eq!(
            with(b"\0\x01\x81\x80\0\x01\0\0\0\0\0\0", QUESTION),
            Err(Mismatch::Id)
        );
        assert_eq!(
            with(b"\0\0\x01\x20\0\x01\0\0\0\0\0\0", QUESTION),
            Err(Mismatch::NoResponse)
        );
        assert_eq!(
            with(b"\0\0\xa8\x80\0\x01\0\0\0\0\0\0", QUESTION),
            Err(Mismatch::NoResponse)
        );
        assert_eq!(asked().check(b"\0\0\x81"), Err(Mismatch::Unreadable));
    }

    #[test]
    fn no_bit_of_an_answer_that_says_whose_it_is_may_be_another() {
        let answer = [b"\0\0\x81\xa0\0\x01\0\0\0\0\0\0".as_slice(), QUESTION].concat();
        for bit in 0..answer.len() * 8 {
            let (byte, mask) = (bit / 8, 0x80 >> (bit % 8));
            let mut other = answer.clone();
            other[byte] ^= mask;
            // AA, TC and RD; RA, Z, AD, CD and the response code; how many records follow; the case of a letter.
            let is_free = match byte {
                2 => mask <= 0x04,
                3 | 6..12 => true,
                _ => mask == 0x20 && answer[byte].is_ascii_alphabetic(),
            };
            assert_eq!(asked().check(&other).is_ok(), is_free, "bit {bit}");
        }
    }
}
