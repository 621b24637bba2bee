//! Which addresses are of one site, and which of them are one page.
//!
//! It must know nothing of pages. A site is a host, with or without `www.`, by http or https; other subdomains are other
//! sites, so that no list of public suffixes is needed.

use switchbay_sdk::public_url::is_web;
use switchbay_sdk::tracking;
use url::{Position, Url};

use crate::octets::one_form;

/// Bytes of an address that a page, a sitemap or a server names.
pub(crate) const ADDRESS_BYTES_MAX: usize = 2048;
/// Bytes of an address that a caller names, and of where its server says that it is instead: of 2,048 characters, each takes
/// twelve bytes at most. The host sends no longer one.
pub(crate) const NAMED_BYTES_MAX: usize = 24_576;

/// What the addresses of one page have in common, and no other page's has: compare them by it, and show the address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key(Vec<u8>);

impl Key {
    /// Scheme, port and `www.` do not count, nor fragments, parameters that track, a slash or an index page at the end, and
    /// how octets are encoded. The order of a query's parameters does: to some sites it means something.
    pub(crate) fn of(url: &Url) -> Self {
        let mut octets = name(url).as_bytes().to_vec();
        octets.push(b'/');
        let path = url.path();
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        let path = if matches!(file, "index.html" | "index.htm" | "index.php") {
            folder
        } else {
            path
        };
        let path = path.trim_matches('/');
        octets.extend(match kept_query(url) {
            Some(query) => one_form(format!("{path}?{query}").as_bytes()),
            None => one_form(path.as_bytes()),
        });
        Self(octets)
    }
}

/// Whether both addresses are of one site.
pub(crate) fn same_site(one: &Url, other: &Url) -> bool {
    name(one) == name(other)
}

/// An address without its fragment and without the dot at the end of its host, which says that the name is absolute: all names
/// are. Servers know themselves without it.
pub(crate) fn plain(mut url: Url) -> Url {
    url.set_fragment(None);
    let bare = url
        .host_str()
        .and_then(|host| host.strip_suffix('.'))
        .map(str::to_owned);
    if let Some(bare) = bare {
        // What is no host then is none with the dot either, and stays as it is.
        url.set_host(Some(&bare)).ok();
    }
    url
}

/// An address as it is shown: [`plain`], and without what tracks its reader.
pub(crate) fn shown(url: &Url) -> Url {
    let mut shown = plain(url.clone());
    shown.set_query(kept_query(url).as_deref());
    shown
}

/// An address that may be asked for where a page, a sitemap or a server named it.
pub(crate) fn is_askable(url: &Url) -> bool {
    has_askable_form(url) && url.as_str().len() <= ADDRESS_BYTES_MAX
}

/// The same of where the server of the page that a caller named says that it is instead, which may be as long as that.
pub(crate) fn is_askable_as_named(url: &Url) -> bool {
    has_askable_form(url) && url.as_str().len() <= NAMED_BYTES_MAX
}

/// Whether it is http or https on their own ports, without credentials.
fn has_askable_form(url: &Url) -> bool {
    is_web(url)
        && url.port().is_none_or(|port| port == 80 || port == 443)
        && url[Position::AfterScheme..Position::BeforeHost] == *"://"
}

/// The host's name without `www.` and the dot at its end.
fn name(url: &Url) -> &str {
    let host = url.host_str().unwrap_or_default();
    let host = host.strip_suffix('.').unwrap_or(host);
    host.strip_prefix("www.").unwrap_or(host)
}

/// The query without what tracks; what stays is as it was written.
fn kept_query(url: &Url) -> Option<String> {
    tracking::kept_query(url.query()?, |name| {
        name.is_empty() || tracking::is_tracking(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(written: &str) -> Url {
        Url::parse(written).expect("a URL")
    }

    #[track_caller]
    fn check(one: &str, other: &str, are_one: bool) {
        assert_eq!(
            Key::of(&url(one)) == Key::of(&url(other)),
            are_one,
            "{one} {other}"
        );
    }

    #[test]
    fn the_addresses_of_a_page_have_one_key() {
        for other in [
            "https://example.com/a",
            "http://www.example.com:80/a/",
            "https://EXAMPLE.com:443/a#part",
            "http://example.com./%61?utm_source=x&fbclid=y",
            "http://example.com/a/index.html",
            "http://example.com/b/../a?",
        ] {
            check("http://example.com/a", other, true);
        }
        check(
            "http://example.com",
            "https://www.example.com/index.php",
            true,
        );
        check(
            "http://example.com/a?b=1&c=2#x",
            "http://example.com/a/?utm_medium=z&b=1&c=2",
            true,
        );
        check("http://example.com/ü", "http://example.com/%c3%bc", true);
    }

    #[test]
    fn other_pages_have_other_keys() {
        for other in [
            "http://example.com/A",
            "http://example.com/a?b",
            "http://sub.example.com/a",
            "http://example.com/a/b",
            "http://example.com/aindex.html",
            "http://example.com/%2Fa%2F",
            "http://example.com/a%3Fb",
        ] {
            check("http://example.com/a", other, false);
        }
        check(
            "http://example.com/a?b=1&c=2",
            "http://example.com/a?c=2&b=1",
            false,
        );
        check("http://example.com/a?b", "http://example.com/a%3Fb", false);
    }

    #[test]
    fn a_site_is_a_host_with_or_without_www() {
        let same = |one: &str, other: &str| same_site(&url(one), &url(other));
        assert!(same("http://example.com/a", "https://www.example.com/b"));
        assert!(!same("http://example.com/", "http://docs.example.com/"));
        assert!(!same(
            "http://example.com/",
            "http://example.com.evil.example/"
        ));
        assert!(same(
            "http://bücher.example/",
            "http://xn--bcher-kva.example/"
        ));
    }

    #[test]
    fn an_address_is_shown_without_what_tracks() {
        assert_eq!(
            shown(&url("https://a.example/b?utm_id=1&c=%20d&gclid=2#e")).as_str(),
            "https://a.example/b?c=%20d"
        );
        assert_eq!(
            shown(&url("https://a.example/?")).as_str(),
            "https://a.example/"
        );
        assert_eq!(
            shown(&url("https://a.example.:80/b#c")).as_str(),
            "https://a.example:80/b"
        );
        assert_eq!(
            shown(&url("https://a.example../")).as_str(),
            "https://a.example./"
        );
    }

    #[test]
    fn what_may_be_asked_for_is_told() {
        assert!(is_askable(&url("http://a.example:443/")));
        for written in [
            "ftp://a.example/",
            "http://a.example:8080/",
            "http://me@a.example/",
            "http://:x@a.example/",
            "mailto:a@b",
        ] {
            assert!(!is_askable(&url(written)), "{written}");
        }
        assert!(!is_askable(&url(&format!(
            "http://a.example/{}",
            "a".repeat(2048)
        ))));
    }
}
