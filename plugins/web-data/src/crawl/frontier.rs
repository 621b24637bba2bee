//! Which page of a site is next, what is known of it, and when a crawl is over.
//!
//! Pure: it asks for nothing and knows no job. Pages come out in one order, breadth first and as the pages before them link to
//! them, however long each takes; so a crawl that is taken up again goes on as it would have gone. It is kept whole in each
//! checkpoint, which its bounds keep below [`BYTES_MAX`].

use std::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use url::Url;

use crate::site::{self, Key};

/// Requests for pages at once.
pub(super) const AT_ONCE: usize = 2;
/// Addresses that one crawl knows; of more it never comes to the end.
const KNOWN_MAX: usize = 150;
/// Bytes of these and of those that pages moved to: the first page's may be long.
const KNOWN_BYTES_MAX: usize = 480 << 10;
/// Requests for pages whose answers were looked at: those that came to no document are among them.
const REQUESTS_MAX: u32 = 100;
/// Times that one page may be elsewhere.
const MOVES_MAX: u32 = 10;
/// Requests for one page whose server wants to be asked later.
const TRIES_MAX: u32 = 2;
/// What its JSON form stays below.
#[cfg(test)]
const BYTES_MAX: usize = 1 << 20;

/// A crawl as far as it has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Frontier {
    limit: u32,
    depth_max: u32,
    /// An address of the site that is crawled.
    home: Url,
    /// Pages to come, in their order.
    queue: VecDeque<PendingPage>,
    /// Every address that was ever among them.
    known: Vec<Url>,
    /// The same, by what is one page.
    #[serde(skip)]
    keys: BTreeSet<Key>,
    /// Numbers that are given.
    numbers: u32,
    /// Requests that were made.
    requests: u32,
    /// Documents there are.
    shown: u32,
}

/// A page to come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PendingPage {
    /// Told apart by this from every other page of the crawl, also from itself elsewhere.
    pub(super) number: u32,
    pub(super) url: Url,
    /// Links from the first page to this one.
    depth: u32,
    /// How often it was elsewhere.
    moves: u32,
    /// How often it was asked for in vain.
    tries: u32,
}

/// What became of the next page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NextPage {
    /// A document, which links to these.
    Document(Vec<Url>),
    /// The server says where it is instead.
    Moved(Url),
    /// The server wants to be asked later.
    Later,
    /// Nothing that could be shown but its failure.
    Failure,
    /// It may not be asked for.
    Forbidden,
}

impl PendingPage {
    /// Whether the caller named it, and no page or server.
    pub(super) fn is_asked_for(&self) -> bool {
        self.depth == 0 && self.moves == 0
    }
}

impl Frontier {
    /// A crawl that begins at a page.
    pub(super) fn new(seed: Url, limit: u32, depth_max: u32) -> Self {
        let (home, known) = (seed.clone(), vec![seed.clone()]);
        let keys = BTreeSet::from([Key::of(&seed)]);
        let first = PendingPage {
            number: 0,
            url: seed,
            depth: 0,
            moves: 0,
            tries: 0,
        };
        let queue = VecDeque::from([first]);
        Self {
            limit,
            depth_max,
            home,
            queue,
            known,
            keys,
            numbers: 1,
            requests: 0,
            shown: 0,
        }
    }

    /// A crawl that a checkpoint had, which leaves out what follows from the rest.
    pub(super) fn resumed(mut self) -> Self {
        self.keys = self.known.iter().map(Key::of).collect();
        self
    }

    /// The pages that may be asked for now: the next one, and those behind it that will be wanted whatever becomes of it.
    pub(super) fn due(&self) -> impl Iterator<Item = &PendingPage> {
        let wanted = self.limit.saturating_sub(self.shown);
        let left = REQUESTS_MAX.saturating_sub(self.requests);
        let due = usize::try_from(wanted.min(left)).unwrap_or(AT_ONCE);
        self.queue.iter().take(due.min(AT_ONCE))
    }

    /// The page that is settled next. `None` when the crawl is over.
    pub(super) fn next(&self) -> Option<&PendingPage> {
        self.queue.front()
    }

    /// Documents there are, and how many there will be as far as is known.
    pub(super) fn progress(&self) -> (u32, u32) {
        let waiting = u32::try_from(self.queue.len()).unwrap_or(self.limit);
        let expected = self.shown.saturating_add(waiting);
        (self.shown, expected.min(self.limit))
    }

    /// Whether a page is the one that the crawl began with: it is shown whatever becomes of it.
    pub(super) fn is_first(&self, page: &PendingPage) -> bool {
        self.shown == 0 && page.depth == 0
    }

    /// Whether an address leads to a page of the site that is not known.
    pub(super) fn is_news(&self, url: &Url) -> bool {
        site::same_site(&self.home, url) && !self.keys.contains(&Key::of(url))
    }

    /// Whether the links of a page are followed.
    pub(super) fn leads_on(&self, page: &PendingPage) -> bool {
        page.depth < self.depth_max
    }

    /// Settles the next page by what became of it. Gives back its number among the documents, if it is one of them.
    pub(super) fn settle(&mut self, found: NextPage) -> Option<u32> {
        let page = self.queue.pop_front()?;
        self.requests += u32::from(found != NextPage::Forbidden);
        let shown = match found {
            NextPage::Document(links) => {
                let number = self.show();
                self.follow(&page, links);
                Some(number)
            }
            NextPage::Moved(to) => self.moved(page, to),
            NextPage::Later if page.tries + 1 < TRIES_MAX => {
                let number = self.number();
                self.queue.push_front(PendingPage {
                    number,
                    tries: page.tries + 1,
                    ..page
                });
                None
            }
            NextPage::Later | NextPage::Failure => Some(self.show()),
            NextPage::Forbidden if self.is_first(&page) => Some(self.show()),
            NextPage::Forbidden => None,
        };
        if self.shown >= self.limit || self.requests >= REQUESTS_MAX {
            self.queue.clear();
        }
        shown
    }

    /// Whether the next page is asked for where its server says that it is.
    pub(super) fn follows(&self, page: &PendingPage, to: &Url) -> bool {
        // Where the first page leads is what the caller means, be it another site.
        let (may, is_ours) = if self.is_first(page) {
            (site::is_askable_as_named(to), true)
        } else {
            (site::is_askable(to), site::same_site(&self.home, to))
        };
        may && page.moves < MOVES_MAX && (is_itself(page, to) || is_ours && self.may_learn(to))
    }

    fn moved(&mut self, page: PendingPage, to: Url) -> Option<u32> {
        let (follows, is_first) = (self.follows(&page, &to), self.is_first(&page));
        match (follows, is_first) {
            (true, _) => {
                if !is_itself(&page, &to) {
                    self.learn(&to);
                }
                if is_first {
                    self.home = to.clone();
                }
                let number = self.number();
                self.queue.push_front(PendingPage {
                    number,
                    url: to,
                    moves: page.moves + 1,
                    tries: 0,
                    ..page
                });
                None
            }
            (false, true) => Some(self.show()),
            (false, false) => None,
        }
    }

    fn follow(&mut self, page: &PendingPage, links: Vec<Url>) {
        if !self.leads_on(page) {
            return;
        }
        for url in links {
            if self.known.len() >= KNOWN_MAX {
                return;
            }
            if site::same_site(&self.home, &url) && site::is_askable(&url) && self.learn(&url) {
                let number = self.number();
                self.queue.push_back(PendingPage {
                    number,
                    url,
                    depth: page.depth + 1,
                    moves: 0,
                    tries: 0,
                });
            }
        }
    }

    /// Takes an address among the known ones, and tells whether it was none of them.
    fn learn(&mut self, url: &Url) -> bool {
        let is_new = self.may_learn(url);
        if is_new {
            self.keys.insert(Key::of(url));
            self.known.push(url.clone());
        }
        is_new
    }

    /// Whether an address is none of the known ones, and there is room for it.
    fn may_learn(&self, url: &Url) -> bool {
        let bytes: usize = self.known.iter().map(|known| known.as_str().len()).sum();
        bytes + url.as_str().len() <= KNOWN_BYTES_MAX && !self.keys.contains(&Key::of(url))
    }

    fn show(&mut self) -> u32 {
        self.shown += 1;
        self.shown - 1
    }

    fn number(&mut self) -> u32 {
        self.numbers += 1;
        self.numbers - 1
    }
}

/// Whether an address is the same page's, such as by https instead of http.
fn is_itself(page: &PendingPage, to: &Url) -> bool {
    page.url != *to && Key::of(&page.url) == Key::of(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(path: &str) -> Url {
        Url::parse("http://lab.test/")
            .and_then(|home| home.join(path))
            .expect("a URL")
    }

    fn urls(paths: &[&str]) -> Vec<Url> {
        paths.iter().map(|path| url(path)).collect()
    }

    fn due(frontier: &Frontier) -> Vec<&str> {
        frontier.due().map(|page| page.url.path()).collect()
    }

    #[test]
    fn pages_come_breadth_first_and_each_once() {
        let mut frontier = Frontier::new(url("/"), 5, 2);
        assert_eq!(due(&frontier), ["/"]);
        let links = [
            "/a",
            "/b/",
            "/a#x",
            "/",
            "//other.test/",
            "//www.lab.test/b?utm_source=x",
        ];
        assert_eq!(frontier.settle(NextPage::Document(urls(&links))), Some(0));
        assert_eq!(
            (due(&frontier), frontier.progress()),
            (vec!["/a", "/b/"], (1, 3))
        );
        assert_eq!(
            frontier.settle(NextPage::Document(urls(&["/b", "/c", "/d", "/e"]))),
            Some(1)
        );
        assert_eq!(frontier.settle(NextPage::Forbidden), None);
        assert_eq!(
            frontier.settle(NextPage::Document(urls(&["/too-deep"]))),
            Some(2)
        );
        assert_eq!(due(&frontier), ["/d", "/e"]);
        assert_eq!(frontier.settle(NextPage::Failure), Some(3));
        assert_eq!((due(&frontier), frontier.progress()), (vec!["/e"], (4, 5)));
        assert_eq!(frontier.settle(NextPage::Document(Vec::new())), Some(4));
        assert_eq!(due(&frontier), [""; 0]);
        assert_eq!(frontier.settle(NextPage::Failure), None);
    }

    #[test]
    fn no_more_is_asked_for_than_is_wanted() {
        let mut frontier = Frontier::new(url("/"), 2, 1);
        frontier.settle(NextPage::Document(urls(&["/a", "/b", "/c"])));
        assert_eq!(due(&frontier), ["/a"]);
        assert_eq!(frontier.settle(NextPage::Moved(url("/b"))), None);
        assert_eq!(due(&frontier), ["/b"]);
    }

    #[test]
    fn what_is_elsewhere_keeps_its_place() {
        let mut frontier = Frontier::new(url("/"), 9, 1);
        frontier.settle(NextPage::Document(urls(&["/a", "/b", "/c"])));
        for (to, next) in [
            ("/new", "/new"),
            ("https://www.lab.test/new/", "/new/"),
            ("/c", "/b"),
            ("//other.test/", "/c"),
        ] {
            assert_eq!(frontier.settle(NextPage::Moved(url(to))), None);
            assert_eq!(due(&frontier)[0], next, "{to}");
        }
        assert_eq!(frontier.settle(NextPage::Moved(url("/c"))), None);
        assert_eq!(due(&frontier), [""; 0]);
    }

    #[test]
    fn a_server_is_asked_for_a_page_again_once() {
        let mut frontier = Frontier::new(url("/"), 9, 1);
        let first = frontier.next().expect("the first page").number;
        assert_eq!(frontier.settle(NextPage::Later), None);
        let again = frontier.next().expect("the first page").clone();
        assert!(again.number != first && again.is_asked_for());
        assert_eq!(
            (frontier.settle(NextPage::Later), frontier.due().count()),
            (Some(0), 0)
        );
    }

    /// Whatever a site does, a crawl ends, within its limits, with its first page, and goes on from its checkpoints alike.
    #[test]
    fn every_crawl_ends() {
        arbtest::arbtest(|u| {
            let (limit, depth) = (u.int_in_range(1..=20)?, u.int_in_range(1..=3)?);
            let mut frontier = Frontier::new(url("/"), limit, depth);
            let (mut shown, mut requests) = (Vec::new(), 0);
            while let Some(page) = frontier.next().cloned() {
                let link = |u: &mut arbtest::arbitrary::Unstructured<'_>| {
                    let host =
                        u.choose(&["", "//www.lab.test", "//other.test", "https://lab.test"])?;
                    Ok(url(&format!(
                        "{host}/{}{}",
                        u.int_in_range(0..=400)?,
                        u.choose(&["", "/", "#x"])?
                    )))
                };
                let found = match u.int_in_range(0..=6)? {
                    0 => NextPage::Moved(link(u)?),
                    1 => NextPage::Later,
                    2 => NextPage::Failure,
                    3 => NextPage::Forbidden,
                    _ => NextPage::Document(
                        (0..u.int_in_range(0..=60)?)
                            .map(|_| link(u))
                            .collect::<Result<_, _>>()?,
                    ),
                };
                requests += u32::from(found != NextPage::Forbidden);
                let number = frontier.settle(found);
                assert!(number.is_none_or(|number| {
                    usize::try_from(number).is_ok_and(|number| number == shown.len())
                }));
                shown.extend(number.map(|_| Key::of(&page.url)));
                let checkpoint = serde_json::to_string(&frontier).expect("a JSON form");
                assert!(checkpoint.len() < BYTES_MAX);
                let read: Frontier = serde_json::from_str(&checkpoint).expect("a frontier");
                assert_eq!(read.resumed(), frontier);
            }
            let distinct: BTreeSet<&Key> = shown.iter().collect();
            assert_eq!((distinct.len(), shown.is_empty()), (shown.len(), false));
            assert!(
                u32::try_from(shown.len()).is_ok_and(|shown| shown <= limit)
                    && requests <= REQUESTS_MAX
            );
            Ok(())
        });
    }

    #[test]
    fn the_longest_addresses_fit_a_checkpoint() {
        let long = |number: u32| url(&format!("/{number:04}{}", "a".repeat(2000)));
        let longest = |number: u32| {
            url(&format!(
                "/{number}{}",
                "a".repeat(site::NAMED_BYTES_MAX - 17)
            ))
        };
        assert_eq!(longest(0).as_str().len(), site::NAMED_BYTES_MAX);
        let mut frontier = Frontier::new(longest(0), 20, 1);
        for number in 1..MOVES_MAX {
            assert!(
                frontier
                    .next()
                    .is_some_and(|page| frontier.follows(page, &longest(number))),
                "{number}"
            );
            frontier.settle(NextPage::Moved(longest(number)));
        }
        frontier.settle(NextPage::Document((0..1000).map(long).collect()));
        for _ in MOVES_MAX + 1..REQUESTS_MAX - 1 {
            frontier.settle(NextPage::Moved(long(frontier.numbers + 2000)));
        }
        assert!(frontier.next().is_some());
        let bytes = serde_json::to_string(&frontier).expect("a JSON form").len();
        assert!((BYTES_MAX / 2..BYTES_MAX).contains(&bytes), "{bytes}");
    }
}
