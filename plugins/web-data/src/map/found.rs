//! The pages of a site that were found, each of them once.
//!
//! It must know nothing of where they were found.

use std::collections::HashSet;

use url::Url;

use super::Link;
use crate::site::{self, Key};

/// Pages in the order in which they were found, up to a limit.
#[derive(Debug)]
pub(super) struct FoundPages {
    limit: usize,
    /// Keys of all that were ever found; one that was taken out is not found again.
    known: HashSet<Key>,
    links: Vec<(Key, Link)>,
}

impl FoundPages {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            known: HashSet::new(),
            links: Vec::new(),
        }
    }

    /// Whether the page was ever found.
    pub(super) fn knows(&self, url: &Url) -> bool {
        self.known.contains(&Key::of(url))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.links.len() >= self.limit
    }

    /// Puts a page behind the others, and says whether it is new and there was room.
    pub(super) fn add(&mut self, url: &Url) -> bool {
        if self.is_full() {
            return false;
        }
        let (key, shown) = (Key::of(url), site::shown(url));
        let is_new = self.known.insert(key.clone());
        if is_new {
            self.links.push((
                key,
                Link {
                    url: shown.into(),
                    title: None,
                    description: None,
                },
            ));
        }
        is_new
    }

    /// Says what a page is, if it is among these. What is known of it already stays where nothing is said.
    pub(super) fn describe(
        &mut self,
        url: &Url,
        title: Option<String>,
        description: Option<String>,
    ) {
        let key = Key::of(url);
        if let Some((_, link)) = self.links.iter_mut().find(|(known, _)| *known == key) {
            link.title = title.or(link.title.take());
            link.description = description.or(link.description.take());
        }
    }

    /// Takes a page out that is none.
    pub(super) fn remove(&mut self, url: &Url) {
        let key = Key::of(url);
        self.links.retain(|(known, _)| *known != key);
        self.known.insert(key);
    }

    /// Says that a page has another address, and gives back whether that one is new. It takes the page's place, or the page
    /// goes where the address is listed already; one that was taken out is not put back, or two pages that name each other
    /// would both go.
    pub(super) fn replace(&mut self, url: &Url, by: &Url) -> bool {
        let (key, other) = (Key::of(url), Key::of(by));
        if key == other {
            return false;
        }
        let is_new = self.known.insert(other.clone());
        let is_listed = self.links.iter().any(|(known, _)| *known == other);
        if is_listed {
            self.links.retain(|(known, _)| *known != key);
        } else if let Some(place) = self
            .links
            .iter_mut()
            .find(|(known, _)| is_new && *known == key)
        {
            (place.0, place.1.url) = (other, site::shown(by).into());
        }
        is_new
    }

    pub(super) fn into_links(self) -> Vec<Link> {
        self.links.into_iter().map(|(_, link)| link).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(path: &str) -> Url {
        Url::parse("https://a.example")
            .and_then(|site| site.join(path))
            .expect("a URL")
    }

    #[track_caller]
    fn check(found: &FoundPages, expected: &[&str]) {
        let shown: Vec<&str> = found
            .links
            .iter()
            .map(|(_, link)| link.url.trim_start_matches("https://a.example"))
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn each_page_is_found_once_and_never_more_than_the_limit() {
        let mut found = FoundPages::new(3);
        assert!(
            found.add(&url("/a?utm_source=x#y"))
                && !found.add(&url("/a/"))
                && found.add(&url("/b"))
        );
        assert!(
            !found.is_full() && found.add(&url("/c")) && found.is_full() && !found.add(&url("/d"))
        );
        check(&found, &["/a", "/b", "/c"]);
    }

    #[test]
    fn a_page_that_is_taken_out_is_not_found_again() {
        let mut found = FoundPages::new(3);
        found.add(&url("/a"));
        found.remove(&url("/a/"));
        assert!(!found.add(&url("/a")));
        found.remove(&url("/b"));
        assert!(!found.add(&url("/b")));
        check(&found, &[]);
    }

    #[test]
    fn a_page_with_another_address_stands_there_once_whatever_the_order() {
        let mut found = FoundPages::new(5);
        ["/a", "/b", "/c"]
            .iter()
            .for_each(|path| assert!(found.add(&url(path))));
        assert!(
            !found.replace(&url("/a"), &url("/a/index.html"))
                && found.replace(&url("/a"), &url("/x"))
        );
        assert!(!found.replace(&url("/b"), &url("/x")));
        check(&found, &["/x", "/c"]);
        assert!(!found.replace(&url("/x"), &url("/a")) && !found.add(&url("/a")));
        check(&found, &["/x", "/c"]);
    }

    #[test]
    fn what_is_known_of_a_page_stays() {
        let mut found = FoundPages::new(5);
        found.add(&url("/a"));
        found.describe(&url("/a"), Some("A".to_owned()), None);
        found.describe(&url("/a/"), None, Some("d".to_owned()));
        found.describe(&url("/b"), Some("B".to_owned()), None);
        let links = found.into_links();
        assert_eq!(
            (links[0].title.as_deref(), links[0].description.as_deref()),
            (Some("A"), Some("d"))
        );
    }
}
