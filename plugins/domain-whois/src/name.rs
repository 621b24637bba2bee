//! The domain that a caller means: from a domain, a subdomain or an HTTP(S) URL to a host name and the registrable
//! domain above it. Knows no registry.

use std::net::Ipv6Addr;

use switchbay_sdk::host_name::ends_in_number;

use crate::suffixes;

/// Characters of a host name in its A-label form (RFC 1035).
const NAME_MAX: usize = 253;

/// A host name that has a registrable domain; both in A-labels and lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// The host name as it was asked for.
    pub(crate) asked: String,
    /// The domain that a registry of the ICANN section may have registered.
    pub(crate) registrable: String,
}

impl Name {
    /// Reads what a caller gave; space around it, a URL's port, path and credentials, and one dot at its end are left
    /// out.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let (written, host) = host(text.trim())?;
        if is_address(written) {
            return Err("`domain` must be a domain name, not an IP address".to_owned());
        }
        let Some(asked) = host_name(host) else {
            let host: String = host.chars().take(80).collect();
            return Err(format!(
                "`domain` must be a host name of letters, digits and hyphens, not `{host}`"
            ));
        };
        let labels: Vec<&str> = asked.split('.').collect();
        if labels.len() < 2 {
            return Err(format!(
                "`domain` must have at least two labels; `{asked}` has one"
            ));
        }
        let suffix = suffixes::labels(&asked);
        match labels.len().checked_sub(suffix + 1) {
            Some(first) => {
                let registrable = labels[first..].join(".");
                Ok(Self { asked, registrable })
            }
            None => Err(format!(
                "`domain` must be below a public suffix; `{asked}` is itself a public suffix"
            )),
        }
    }
}

/// The host of a URL as it is written there, and without its port; or the text itself, which may have none.
fn host(text: &str) -> Result<(&str, &str), String> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Ok((text, text));
    };
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err("`domain` must have the scheme http or https if it is a URL".to_owned());
    }
    let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    Ok((host, without_port(host)))
}

fn without_port(host: &str) -> &str {
    let port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    host.rsplit_once(':')
        .filter(|(_, after)| port(after))
        .map_or(host, |(name, _)| name)
}

/// Whether this is an address, with a port or without, in whatever form a URL may write it.
fn is_address(host: &str) -> bool {
    let six = host.starts_with('[') || host.parse::<Ipv6Addr>().is_ok();
    six || host_name(without_port(host)).is_some_and(|name| ends_in_number(&name))
}

/// A host name in A-labels and lower case, by the strict rules of IDNA, without a dot at its end.
pub(crate) fn host_name(text: &str) -> Option<String> {
    let text = text.strip_suffix(['.', '。', '．', '｡']).unwrap_or(text);
    // Shorter than any work that a hostile text could cause.
    let ascii = (text.len() <= 2048).then(|| idna::domain_to_ascii_strict(text).ok())??;
    (!ascii.is_empty() && ascii.len() <= NAME_MAX && !ascii.ends_with('.')).then_some(ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, asked: &str, registrable: &str) {
        let expected = Name {
            asked: asked.to_owned(),
            registrable: registrable.to_owned(),
        };
        assert_eq!(Name::read(text), Ok(expected), "{text:?}");
    }

    #[test]
    fn domains_subdomains_and_urls_are_read() {
        check("example.com", "example.com", "example.com");
        check(" WWW.Example.COM. ", "www.example.com", "example.com");
        check(
            "https://a.b.example.co.uk:8443/path?q#f",
            "a.b.example.co.uk",
            "example.co.uk",
        );
        check("HTTP://me:word@example.com", "example.com", "example.com");
        check("http://example.com.:80", "example.com", "example.com");
        check("foo.github.io", "foo.github.io", "github.io");
        check("www.city.kobe.jp", "www.city.kobe.jp", "city.kobe.jp");
        check("example.unlisted", "example.unlisted", "example.unlisted");
        check("1.example.com", "1.example.com", "example.com");
    }

    #[test]
    fn international_names_become_a_labels() {
        check("www.faß.de", "www.xn--fa-hia.de", "xn--fa-hia.de");
        check("ＥＸＡＭＰＬＥ．ｃｏｍ", "example.com", "example.com");
        check(
            "例え。テスト。",
            "xn--r8jz45g.xn--zckzah",
            "xn--r8jz45g.xn--zckzah",
        );
        check(
            "https://bücher.example.de/ä",
            "xn--bcher-kva.example.de",
            "example.de",
        );
    }

    fn refused(text: &str, rule: &str) {
        let told = Name::read(text).expect_err(text).to_string();
        assert!(told.contains(rule), "{text:?}: {told}");
    }

    #[test]
    fn literals_bare_suffixes_and_what_is_no_name_are_refused_by_their_rule() {
        for address in [
            "1.2.3.4",
            "http://1.2.3.4/",
            "1.2.3.4:80",
            "[::1]",
            "http://[::1]:80/",
            "::1",
            "0x7f.1",
            "http://2130706433",
            "１.２.３.４",
            "1。2。3。4",
            "１２７．０．０．１",
            "https://１２７。０。０。１:80/",
            "example.０ｘ７ｆ",
            "example.123.",
        ] {
            refused(address, "not an IP address");
        }
        for suffix in ["co.uk", "https://co.uk/", "kobe.jp.", "公司.cn", "test.ck"] {
            match suffix {
                // Only what stands below the rule `*.kobe.jp` is a suffix.
                "kobe.jp." => check(suffix, "kobe.jp", "kobe.jp"),
                _ => refused(suffix, "is itself a public suffix"),
            }
        }
        for label in ["com", "localhost", "http://localhost/"] {
            refused(label, "at least two labels");
        }
        refused("ftp://example.com", "scheme http or https");
        let no_names = [
            "",
            ".",
            "a..com",
            "-a.com",
            "a b.com",
            "a_b.com",
            "me@example.com",
            "example.com/path",
            "example.com:80",
        ];
        for text in no_names.into_iter().chain([
            "https://",
            "exa\u{0}mple.com",
            "example.com..",
            "xn--a.com",
        ]) {
            refused(text, "must be a host name");
        }
        refused(&format!("{}.com", "a".repeat(64)), "must be a host name");
        refused(
            &format!("{}com", "a23456789.".repeat(26)),
            "must be a host name",
        );
    }
}
