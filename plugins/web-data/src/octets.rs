//! The octets of paths and queries in one form, so that what names the same compares as the same.
//!
//! It must know nothing of what is compared. The form is RFC 9309's (2.2.2): what needs no percent-encoding has none, what
//! needs one has it in upper case. Beyond the RFC, `:`, `/`, `?` and `@` count as unencoded in a query, where they mean
//! nothing: its own table wants `baz=https://foo.bar` and `baz=https%3A%2F%2Ffoo.bar` to be the same.

/// Pieces of a path, and of a query from the first `?` on, brought to one form one after the other.
#[derive(Debug, Default)]
pub(crate) struct OneForm {
    in_query: bool,
    octets: Vec<u8>,
}

/// A path with its query in one form. It has no `*` and no `$`: they are encoded.
pub(crate) fn one_form(written: &[u8]) -> Vec<u8> {
    let mut form = OneForm::default();
    form.add(written);
    form.into_octets()
}

impl OneForm {
    /// The next piece.
    pub(crate) fn add(&mut self, written: &[u8]) {
        let mut rest = written;
        while let Some((&octet, after)) = rest.split_first() {
            rest = after;
            match (octet, encoded(after)) {
                (b'%', Some(decoded)) => {
                    rest = &after[2..];
                    let is_plain =
                        is_unreserved(decoded) || (self.in_query && b":/?@".contains(&decoded));
                    self.put(decoded, is_plain);
                }
                (b'%' | b'*' | b'$', _) => self.put(octet, false),
                (_, _) => {
                    self.in_query |= octet == b'?';
                    self.put(
                        octet,
                        is_unreserved(octet) || b":/?#[]@!&'()+,;=".contains(&octet),
                    );
                }
            }
        }
    }

    /// An octet that stands for itself here, and in no written text.
    pub(crate) fn add_mark(&mut self, mark: u8) {
        self.octets.push(mark);
    }

    pub(crate) fn into_octets(self) -> Vec<u8> {
        self.octets
    }

    fn put(&mut self, octet: u8, is_plain: bool) {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        if is_plain {
            self.octets.push(octet);
        } else {
            let (high, low) = (usize::from(octet >> 4), usize::from(octet & 15));
            self.octets.extend([b'%', DIGITS[high], DIGITS[low]]);
        }
    }
}

/// The octet that two digits behind a `%` stand for.
fn encoded(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

fn is_unreserved(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || b"-._~".contains(&octet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(written: &str, expected: &str) {
        assert_eq!(
            String::from_utf8_lossy(&one_form(written.as_bytes())),
            expected,
            "{written}"
        );
        assert_eq!(
            one_form(expected.as_bytes()),
            expected.as_bytes(),
            "the form of a form"
        );
    }

    #[test]
    fn what_names_the_same_has_one_form() {
        check("/%62%61%7a", "/baz");
        check("/ツ", "/%E3%83%84");
        check("/%e3%83%84", "/%E3%83%84");
        check("/a%2fb:c", "/a%2Fb:c");
        check(
            "/a?b=https%3a%2F%2Ffoo.bar&c=%26",
            "/a?b=https://foo.bar&c=%26",
        );
        check("/a*b$", "/a%2Ab%24");
        check("/a b\"%zz%2", "/a%20b%22%25zz%252");
        check("", "");
    }
}
