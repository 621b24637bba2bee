//! The name that a caller asks for, as it is asked of a resolver: lower case, ASCII, without the trailing dot.
//!
//! Names with letters beyond ASCII become A-labels (UTS 46). ASCII is taken as it stands, `xn--` labels included: what the
//! DNS can hold may be asked for. It must know nothing of DNS messages.

use std::net::IpAddr;

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};
use switchbay_sdk::host_name::ends_in_number;

/// The longest name, in its ASCII form and without the trailing dot.
pub(crate) const CHARACTERS_MAX: usize = 253;
const LABEL_CHARACTERS_MAX: usize = 63;

/// A hostname that can be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hostname(String);

/// The rule that a text breaks which is no [`Hostname`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotHostname {
    #[error("must be a hostname; it is empty")]
    Empty,
    #[error("must be a hostname, not an IP address")]
    Address,
    #[error("must be a bare hostname, without scheme, port, path or spaces; {0:?} is not allowed")]
    Character(char),
    #[error("must be a valid internationalized hostname")]
    Letters,
    #[error(
        "must have at most {CHARACTERS_MAX} characters in ASCII form without the trailing dot, not \
         {0}"
    )]
    TooLong(usize),
    #[error("must not have an empty label")]
    EmptyLabel,
    #[error("must have labels of at most {LABEL_CHARACTERS_MAX} characters in ASCII form, not {0}")]
    LongLabel(usize),
    #[error("must not have a label that begins or ends with a hyphen")]
    Hyphen,
}

impl Hostname {
    /// Reads what a caller gave; one trailing dot may stand.
    ///
    /// # Errors
    /// The first rule that the text breaks.
    pub(crate) fn read(text: &str) -> Result<Self, NotHostname> {
        if text.parse::<IpAddr>().is_ok() {
            return Err(NotHostname::Address);
        }
        let mut name = if text.is_ascii() {
            text.to_ascii_lowercase()
        } else {
            ascii(text)?
        };
        if name.ends_with('.') {
            name.pop();
        }
        check(&name)?;
        Ok(Self(name))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

fn ascii(text: &str) -> Result<String, NotHostname> {
    // Characters that no label has are looked for in what comes out: some become them only there.
    let ascii = Uts46::new().to_ascii(
        text.as_bytes(),
        AsciiDenyList::EMPTY,
        Hyphens::Allow,
        DnsLength::Ignore,
    );
    ascii.map(|name| name.into_owned()).map_err(|_| {
        match text.chars().find(|c| c.is_whitespace() || c.is_control()) {
            Some(character) => NotHostname::Character(character),
            None => NotHostname::Letters,
        }
    })
}

fn check(name: &str) -> Result<(), NotHostname> {
    if name.is_empty() {
        return Err(NotHostname::Empty);
    }
    let stands = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if let Some(character) = name.chars().find(|c| !stands(c)) {
        return Err(NotHostname::Character(character));
    }
    if name.len() > CHARACTERS_MAX {
        return Err(NotHostname::TooLong(name.len()));
    }
    for label in name.split('.') {
        match label.len() {
            0 => return Err(NotHostname::EmptyLabel),
            1..=LABEL_CHARACTERS_MAX if label.starts_with('-') || label.ends_with('-') => {
                return Err(NotHostname::Hyphen);
            }
            1..=LABEL_CHARACTERS_MAX => {}
            length => return Err(NotHostname::LongLabel(length)),
        }
    }
    if ends_in_number(name) {
        return Err(NotHostname::Address);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, NotHostname>) {
        assert_eq!(
            Hostname::read(text).map(|name| name.0),
            expected.map(str::to_owned),
            "{text:?}"
        );
    }

    #[test]
    fn a_hostname_is_taken_in_lower_case_and_without_its_dot() {
        check("example.com", Ok("example.com"));
        check("WWW.Example.COM.", Ok("www.example.com"));
        check("com", Ok("com"));
        check("_dmarc.example.com", Ok("_dmarc.example.com"));
        check("_443._tcp.example.com", Ok("_443._tcp.example.com"));
        check("1.0.0.127.in-addr.arpa", Ok("1.0.0.127.in-addr.arpa"));
        check("3com.com", Ok("3com.com"));
        check("a-b.example", Ok("a-b.example"));
        check("xn--bcher-kva.example", Ok("xn--bcher-kva.example"));
        check("XN--NO-SUCH-LABEL.example", Ok("xn--no-such-label.example"));
    }

    #[test]
    fn other_letters_become_ascii() {
        check("bücher.example", Ok("xn--bcher-kva.example"));
        check("BÜCHER.example.", Ok("xn--bcher-kva.example"));
        check("bu\u{308}cher.example", Ok("xn--bcher-kva.example"));
        check("faß.de", Ok("xn--fa-hia.de"));
        check("_dmarc.bücher.example", Ok("_dmarc.xn--bcher-kva.example"));
        check("例え。テスト", Ok("xn--r8jz45g.xn--zckzah"));
        check("ｅｘａｍｐｌｅ.com", Ok("example.com"));
        check("việt.vn", Ok("xn--vit-5kz.vn"));
    }

    #[test]
    fn an_address_is_no_hostname() {
        for text in [
            "192.0.2.1",
            "192.0.2.1.",
            "2130706433",
            "0x7f.1",
            "0x7f000001",
            "127.1",
            "１２７.0.0.1",
        ] {
            check(text, Err(NotHostname::Address));
        }
        for text in ["::1", "2001:db8::1", "::ffff:192.0.2.1"] {
            check(text, Err(NotHostname::Address));
        }
        check("[2001:db8::1]", Err(NotHostname::Character('[')));
        check("example.123", Err(NotHostname::Address));
    }

    #[test]
    fn a_url_and_its_parts_are_no_hostname() {
        check("https://example.com", Err(NotHostname::Character(':')));
        check("example.com/", Err(NotHostname::Character('/')));
        check("example.com:443", Err(NotHostname::Character(':')));
        check("me@example.com", Err(NotHostname::Character('@')));
        check("exa mple.com", Err(NotHostname::Character(' ')));
        check(" example.com", Err(NotHostname::Character(' ')));
        check("example.com\n", Err(NotHostname::Character('\n')));
        check("*.example.com", Err(NotHostname::Character('*')));
        check("example\\.com", Err(NotHostname::Character('\\')));
        check("example.com\0", Err(NotHostname::Character('\0')));
        check("℀.example", Err(NotHostname::Character('/')));
        check("bü cher.example", Err(NotHostname::Character(' ')));
        check("\u{FFFD}.example", Err(NotHostname::Letters));
    }

    #[test]
    fn labels_have_1_to_63_characters() {
        let label = "a".repeat(63);
        check(&format!("{label}.example"), Ok(&format!("{label}.example")));
        check(
            &format!("{label}a.example"),
            Err(NotHostname::LongLabel(64)),
        );
        check("", Err(NotHostname::Empty));
        check(".", Err(NotHostname::Empty));
        check("..", Err(NotHostname::EmptyLabel));
        check("a..b", Err(NotHostname::EmptyLabel));
        check(".example.com", Err(NotHostname::EmptyLabel));
        check("example.com..", Err(NotHostname::EmptyLabel));
        check("-a.example", Err(NotHostname::Hyphen));
        check("a-.example", Err(NotHostname::Hyphen));
    }

    #[test]
    fn a_name_has_at_most_253_characters_in_ascii() {
        let longest = format!("{}{}", format!("{}.", "a".repeat(62)).repeat(4), "a");
        assert_eq!(longest.len(), 253);
        check(&longest, Ok(&longest));
        check(&format!("{longest}."), Ok(&longest));
        check(&format!("{longest}a"), Err(NotHostname::TooLong(254)));
        check(&"a".repeat(300), Err(NotHostname::TooLong(300)));
        // Fewer characters than that, and more once they are ASCII.
        let letters = "bücher.".repeat(30) + "example";
        assert!(letters.chars().count() < 253);
        check(
            &letters,
            Err(NotHostname::TooLong(30 * "xn--bcher-kva.".len() + 7)),
        );
    }

    #[test]
    fn no_text_panics_and_what_is_taken_is_taken_again() {
        arbtest::arbtest(|u| {
            let text: String = u.arbitrary()?;
            if let Ok(name) = Hostname::read(&text) {
                assert_eq!(Hostname::read(name.as_str()), Ok(name.clone()), "{text:?}");
            }
            Ok(())
        });
    }
}
