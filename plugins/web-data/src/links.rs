//! Where a page leads.
//!
//! It must know nothing of what is done with its links. `nofollow` is noted, of a link or of all the page's: RFC 9309 asks
//! nothing by it, so a map lists such a link, and nobody asks for it.

use std::collections::HashSet;

use url::Url;

use crate::address;
use crate::meta::Facts;
use crate::page;
use crate::site::{self, Key};
use crate::tag::Tag;
use crate::tree::{ROOT, Tree};

/// Links of one page, and elements that may be one: a page may repeat a link a million times.
const LINKS_MAX: usize = 5000;
const LOOKED_AT_MAX: usize = 20_000;
/// Robots that a page's `<meta>` may speak to.
const MEANT: [&str; 2] = ["robots", "switchbay"];

/// Where a page leads.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// The address that the page names as its own.
    pub(crate) canonical: Option<Url>,
    /// In the order of the page, each page once, and all of them such as may be asked for (see [`site::is_askable`]). They
    /// may be of other sites.
    pub(crate) links: Vec<PageLink>,
}

/// A link, with the first address that it has in the page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PageLink {
    /// Absolute, without fragment and what tracks.
    pub(crate) url: Url,
    /// The page asks not to follow it.
    pub(crate) is_nofollow: bool,
}

/// Reads where a page leads that came from this address.
pub(crate) fn read(tree: &Tree, facts: &Facts, url: &Url) -> Links {
    let base = address::base(url.as_str(), facts.base.as_deref());
    let base = base.as_ref().unwrap_or(url);
    let resolve = |written: &str| {
        let written = written.trim();
        let url = base.join(written).ok().filter(|_| !written.is_empty())?;
        site::is_askable(&url).then(|| site::shown(&url))
    };
    let mut links = Links::default();
    let mut known = HashSet::new();
    let (mut none_followed, mut looked_at) = (false, 0);
    if let Some((_, next)) = facts
        .refresh
        .as_deref()
        .and_then(|written| page::refresh(written, Some(base)))
        && let Some(url) = resolve(&next)
    {
        known.insert(Key::of(&url));
        links.links.push(PageLink {
            url,
            is_nofollow: false,
        });
    }
    for (_, element) in tree.elements(ROOT) {
        let attribute = |name| element.attribute(name);
        let leads = match element.tag {
            Tag::A | Tag::Other if element.tag == Tag::A || &*element.name.local == "area" => {
                attribute("href")
            }
            Tag::Frame | Tag::Iframe => attribute("src"),
            Tag::Link if has_word(attribute("rel"), &["next", "prev"]) => attribute("href"),
            Tag::Meta if is_meant(attribute("name")) => {
                none_followed |= has_word(attribute("content"), &["nofollow", "none"]);
                None
            }
            _ => None,
        };
        let Some(leads) = leads else { continue };
        looked_at += 1;
        if looked_at > LOOKED_AT_MAX || links.links.len() >= LINKS_MAX {
            continue;
        }
        let Some(url) = resolve(leads) else { continue };
        if known.insert(Key::of(&url)) {
            links.links.push(PageLink {
                url,
                is_nofollow: has_word(attribute("rel"), &["nofollow"]),
            });
        }
    }
    links
        .links
        .iter_mut()
        .for_each(|link| link.is_nofollow |= none_followed);
    links.canonical = facts.canonical.as_deref().and_then(resolve);
    links
}

fn is_meant(name: Option<&str>) -> bool {
    name.is_some_and(|name| {
        MEANT
            .iter()
            .any(|meant| name.trim().eq_ignore_ascii_case(meant))
    })
}

/// Whether a list of words, by spaces or commas, has one of these.
fn has_word(list: Option<&str>, words: &[&str]) -> bool {
    let mut listed = list
        .unwrap_or_default()
        .split(|c: char| c.is_ascii_whitespace() || c == ',');
    listed.any(|listed| words.iter().any(|word| listed.eq_ignore_ascii_case(word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{meta, parse, source};

    fn links(page: &str) -> Links {
        let tree = parse::parse(source::reduce(page).html);
        let facts = meta::read(&tree, &[]);
        read(
            &tree,
            &facts,
            &Url::parse("https://a.example/b/c").expect("a URL"),
        )
    }

    #[track_caller]
    fn check(page: &str, expected: &[&str]) {
        let links = links(page);
        let found: Vec<&str> = links.links.iter().map(|link| link.url.as_str()).collect();
        assert_eq!(found, expected, "{page}");
    }

    #[test]
    fn a_page_leads_where_its_links_and_frames_do() {
        check(
            "<a href=d>x</a> <a href='/e?f#g'>y</a>",
            &["https://a.example/b/d", "https://a.example/e?f"],
        );
        check("<base href=/z/><a href=d>", &["https://a.example/z/d"]);
        check(
            "<map><area href=//other.example/></map>",
            &["https://other.example/"],
        );
        check(
            "<frameset><frame src=f><frame src=g></frameset>",
            &["https://a.example/b/f", "https://a.example/b/g"],
        );
        check(
            "<iframe src=f></iframe><link rel='next' href='?p=2'>",
            &["https://a.example/b/f", "https://a.example/b/c?p=2"],
        );
        check(
            "<link rel=stylesheet href=x.css><img src=y.png><form action=z>",
            &[],
        );
    }

    #[test]
    fn a_page_leads_to_where_it_sends_its_reader_on() {
        check(
            "<meta http-equiv=refresh content='0; url=/d'><a href=/e>x</a><a href=/d>y</a>",
            &["https://a.example/d", "https://a.example/e"],
        );
    }

    #[test]
    fn a_page_that_is_linked_twice_is_one() {
        check(
            "<a href=/d/>x</a><a href=/d#y>y</a><a href='/d/index.html?utm_source=z'>",
            &["https://a.example/d/"],
        );
    }

    #[test]
    fn what_cannot_be_asked_for_is_no_link() {
        for href in [
            "",
            "#",
            "javascript:go()",
            "mailto:a@b.example",
            "http://a.example:8080/",
            "ftp://a.example/",
            "//",
        ] {
            let found = links(&format!("<a href='{href}'>x</a>")).links;
            // The fragment alone is the page itself.
            assert!(
                found.iter().all(|link| link.url.path() == "/b/c"),
                "{href}: {found:?}"
            );
        }
    }

    #[test]
    fn what_is_not_to_be_followed_is_noted() {
        let nofollow = |page: &str| {
            links(page)
                .links
                .iter()
                .map(|link| link.is_nofollow)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            nofollow("<a rel='ugc NoFollow' href=d>x</a><a rel=next href=e>y</a>"),
            [true, false]
        );
        assert_eq!(
            nofollow("<meta name=robots content='noindex,nofollow'><a href=d>x</a>"),
            [true]
        );
        assert_eq!(
            nofollow("<meta name=otherbot content=nofollow><a href=d>x</a>"),
            [false]
        );
    }

    #[test]
    fn the_address_that_a_page_names_as_its_own_is_told() {
        let canonical = |page: &str| links(page).canonical.map(String::from);
        assert_eq!(
            canonical("<link rel=canonical href='/x?utm_a=1'>"),
            Some("https://a.example/x".to_owned())
        );
        assert_eq!(
            canonical("<link rel=canonical href='ftp://x.example/'>"),
            None
        );
    }

    #[test]
    fn the_links_of_a_page_are_bounded() {
        let page: String = (0..6000).map(|n| format!("<a href={n}>")).collect();
        assert_eq!(links(&page).links.len(), LINKS_MAX);
        let repeated = format!("{}<a href=/z>", "<a href=/y>".repeat(LOOKED_AT_MAX - 1));
        check(&repeated, &["https://a.example/y", "https://a.example/z"]);
        check(&format!("<a href=/y>{repeated}"), &["https://a.example/y"]);
    }
}
