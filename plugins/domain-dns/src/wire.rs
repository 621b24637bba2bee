//! Reading bytes of a DNS message: numbers, strings and names, each within its bounds.
//!
//! Nothing is believed that a resolver sends: a read past the end, a name that points forward or grows too long is an error
//! and never a panic. It must know nothing of records.

use std::fmt::Write;

/// The longest name in octets, with the lengths of its labels (RFC 1035, 2.3.4).
const NAME_OCTETS_MAX: usize = 255;

/// Bytes that are no message, or no record of their type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message is malformed at byte {at}")]
pub(crate) struct Malformed {
    at: usize,
}

/// A place in a message, and how far may be read from there. Names may point to what stands before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'m> {
    message: &'m [u8],
    at: usize,
    end: usize,
}

impl<'m> Reader<'m> {
    pub(crate) fn new(message: &'m [u8]) -> Self {
        Self {
            message,
            at: 0,
            end: message.len(),
        }
    }

    /// What went wrong is here.
    pub(crate) fn malformed(&self) -> Malformed {
        Malformed { at: self.at }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.end
    }

    /// The next bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'m [u8], Malformed> {
        Ok(self.part(count)?.rest())
    }

    /// All bytes that are left.
    pub(crate) fn rest(&mut self) -> &'m [u8] {
        let rest = &self.message[self.at..self.end];
        self.at = self.end;
        rest
    }

    /// A reader of the next bytes alone, which are passed over here.
    pub(crate) fn part(&mut self, count: usize) -> Result<Self, Malformed> {
        if count <= self.end - self.at {
            let part = Self {
                end: self.at + count,
                ..*self
            };
            self.at += count;
            Ok(part)
        } else {
            Err(self.malformed())
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let bytes = self.bytes(N)?;
        bytes.try_into().map_err(|_| self.malformed())
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u128(&mut self) -> Result<u128, Malformed> {
        self.array().map(u128::from_be_bytes)
    }

    /// A character-string: a length and that many bytes.
    pub(crate) fn string(&mut self) -> Result<&'m [u8], Malformed> {
        let length = usize::from(self.u8()?);
        self.bytes(length)
    }

    /// A name, compressed or not. Each pointer must lead to before the piece that it ends, so that there is an end.
    pub(crate) fn name(&mut self) -> Result<Name, Malformed> {
        let mut labels = Vec::new();
        let mut octets = 1;
        let mut piece = *self;
        let mut began = self.at;
        let mut after = None;
        loop {
            let length = usize::from(piece.u8()?);
            match length {
                0 => break,
                1..=0x3F => {
                    octets += 1 + length;
                    if octets > NAME_OCTETS_MAX {
                        return Err(piece.malformed());
                    }
                    labels.push(piece.bytes(length)?.to_vec());
                }
                0xC0.. => {
                    let target = (length & 0x3F) << 8 | usize::from(piece.u8()?);
                    after = after.or(Some(piece.at));
                    if target >= began {
                        return Err(piece.malformed());
                    }
                    began = target;
                    piece = Self {
                        message: self.message,
                        at: target,
                        end: self.message.len(),
                    };
                }
                _ => return Err(piece.malformed()),
            }
        }
        self.at = after.unwrap_or(piece.at);
        Ok(Name { labels })
    }
}

/// A domain name as it stood in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    labels: Vec<Vec<u8>>,
}

impl Name {
    /// As it stood, without the trailing dot; the root is `.`.
    pub(crate) fn plain(&self) -> String {
        if self.labels.is_empty() {
            ".".to_owned()
        } else {
            self.joined()
        }
    }

    /// As it stood, with the trailing dot.
    pub(crate) fn absolute(&self) -> String {
        self.joined() + "."
    }

    fn joined(&self) -> String {
        let labels: Vec<String> = self.labels.iter().map(|label| label_text(label)).collect();
        labels.join(".")
    }
}

/// A label with what has a meaning in names escaped (RFC 1035, 5.1).
fn label_text(label: &[u8]) -> String {
    let mut text = String::with_capacity(label.len());
    for &byte in label {
        match byte {
            b'.' | b'\\' | b'"' | b'(' | b')' | b';' | b'@' | b'$' => {
                text.extend(['\\', char::from(byte)]);
            }
            0x21..=0x7E => text.push(char::from(byte)),
            _ => push_decimal(&mut text, byte),
        }
    }
    text
}

/// `\DDD`.
pub(crate) fn push_decimal(text: &mut String, byte: u8) {
    write!(text, "\\{byte:03}").expect("text takes all");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &[u8], at: usize, expected: Result<(&str, usize), usize>) {
        let mut reader = Reader {
            at,
            ..Reader::new(message)
        };
        let read = reader
            .name()
            .map(|name| (name.absolute(), reader.at))
            .map_err(|malformed| malformed.at);
        assert_eq!(read, expected.map(|(name, after)| (name.to_owned(), after)));
    }

    #[test]
    fn a_name_is_read_through_its_pointers() {
        let message = b"\x03com\0\x07Example\xC0\x00\x03www\xC0\x05after";
        check(message, 0, Ok(("com.", 5)));
        check(message, 5, Ok(("Example.com.", 15)));
        check(message, 15, Ok(("www.Example.com.", 21)));
        check(b"\0", 0, Ok((".", 1)));
    }

    #[test]
    fn a_name_that_has_no_end_is_refused() {
        check(b"\xC0\x00", 0, Err(2));
        check(b"\x01a\xC0\x00", 0, Err(4));
        check(b"\x01a\xC0\x04\xC0\x00", 4, Ok(("a.", 6)).and(Err(4)));
        check(b"\0\xC0\x05\xC0\x05\0", 3, Err(5));
        check(b"\x03ab", 0, Err(1));
        check(b"\xC0", 0, Err(1));
        check(b"", 0, Err(0));
        check(b"\x40a\0", 0, Err(1));
        check(b"\x80a\0", 0, Err(1));
    }

    #[test]
    fn a_name_has_at_most_255_octets() {
        let label = [&[63], [b'a'; 63].as_slice()].concat();
        let longest = [
            label.repeat(3),
            [&[61], [b'b'; 61].as_slice(), &[0]].concat(),
        ]
        .concat();
        assert_eq!(longest.len(), 255);
        assert!(Reader::new(&longest).name().is_ok());
        let longer = [
            label.repeat(3),
            [&[62], [b'b'; 62].as_slice(), &[0]].concat(),
        ]
        .concat();
        assert!(Reader::new(&longer).name().is_err());
    }

    #[test]
    fn what_has_a_meaning_in_a_name_is_escaped() {
        let name = Reader::new(b"\x05a.b c\x04\"\\;\xFF\x03c\0d\0")
            .name()
            .expect("a name");
        assert_eq!(name.plain(), "a\\.b\\032c.\\\"\\\\\\;\\255.c\\000d");
        assert_eq!(Reader::new(b"\0").name().expect("a name").plain(), ".");
    }
}
