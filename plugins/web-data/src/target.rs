//! The page that a caller names: read by one rule, whatever is to be done with it.
//!
//! It must know nothing of networks: where a name leads is the gate's to say ([`crate::outside::judge`]). No message repeats what
//! stands before an `@`, for it may be a credential.

use switchbay_sdk::Failure;
use switchbay_sdk::public_url::PublicUrl;
use url::Url;

use crate::{scrape, site};

/// The longest address, in characters as they were written (docs/api.md, "Web data").
const CHARACTERS_MAX: usize = 2048;

/// Reads an address. What it gives back is in the form of all addresses in answers: percent-encoded, the host in ASCII and
/// without a dot at its end, and without a fragment.
///
/// # Errors
/// The rule that it breaks.
pub(crate) fn read(written: &str) -> Result<Url, Failure> {
    let written = written.trim();
    let characters = written.chars().count();
    if characters > CHARACTERS_MAX {
        let rule = format!("`url` must have at most {CHARACTERS_MAX} characters, not {characters}");
        return Err(scrape::not_public(&rule).detail("max", CHARACTERS_MAX));
    }
    let url = parse(written).map_err(|rule| scrape::not_public(&format!("`url` {rule}")))?;
    Ok(site::plain(url))
}

fn parse(written: &str) -> Result<Url, String> {
    let url = PublicUrl::read(written).map_err(|broken| broken.to_string())?;
    Ok(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(written: &str, expected: Result<&str, &str>) {
        let read = parse(written.trim()).map(|url| String::from(site::plain(url)));
        assert_eq!(
            read.as_deref().map_err(String::as_str),
            expected,
            "{written}"
        );
    }

    #[test]
    fn an_address_is_read_into_the_form_of_all_answers() {
        check(" https://example.com/a?b#c ", Ok("https://example.com/a?b"));
        check("HTTP://EXAMPLE.com:80", Ok("http://example.com/"));
        check("http://example.com.:443/", Ok("http://example.com:443/"));
        check(
            "http://bücher.example/ü?ü",
            Ok("http://xn--bcher-kva.example/%C3%BC?%C3%BC"),
        );
        check("http://0x7f.1./", Ok("http://127.0.0.1/"));
    }

    #[test]
    fn an_address_that_breaks_a_rule_is_told_it() {
        check(
            "ftp://example.com/",
            Err("must have the scheme http or https, not `ftp`"),
        );
        check(
            "me:word@example.com://",
            Err("must have the scheme http or https"),
        );
        check("://example.com", Err("must have the scheme http or https"));
        for written in [
            "example.com",
            "http:example.com",
            "mailto:me@example.com",
            "",
        ] {
            check(
                written,
                Err("must be an absolute http or https URL, such as `https://example.com/`"),
            );
        }
        for written in [
            "https://me:word@example.com/",
            "https://me@example.com:8080/",
            "http://@example.com",
        ] {
            check(
                written,
                Err("must not contain credentials; remove the part before the `@`"),
            );
        }
        for written in ["https:///a", "https://", "http://?a"] {
            check(written, Err("must have a host"));
        }
        for written in [
            "https://exa mple.com/",
            "https://example.com/\na",
            "https://example.com/\u{3000}a",
        ] {
            check(
                written,
                Err("must not contain white space or control characters"),
            );
        }
        check(
            "http://example.com:8080/",
            Err("must have the port 80 or 443, not 8080"),
        );
        check(
            "http://example.com:99999/",
            Err("is not a valid URL: invalid port number"),
        );
        check(
            "http://1.2.3.4.5/",
            Err("is not a valid URL: invalid IPv4 address"),
        );
    }

    #[test]
    fn the_length_is_that_of_what_was_written() {
        let longest = format!("http://example.com/{}", "語".repeat(CHARACTERS_MAX - 19));
        assert!(read(&format!("  {longest} ")).is_ok_and(|url| url.as_str().len() > 9 * 2000));
        assert!(read(&format!("{longest}a")).is_err());
    }
}
