//! Goes over a site: the page that was named, the sitemaps, then what pages link to.
//!
//! It must know nothing of requests beyond their answers, nor of the wire. What robots.txt forbids is neither asked for nor
//! listed. Every list, and what is read altogether, is bounded; what was found when the time is over is the map.

use std::collections::{HashSet, VecDeque};

use switchbay_sdk::Failure;
use switchbay_sdk::http::{Error, Response};
use url::Url;

use super::Link;
use super::arrival::{self, Arrival};
use super::found::FoundPages;
use super::visitor::{Request, Visitor};
use crate::outline::{self, Outline};
use crate::page;
use crate::robots::Robots;
use crate::site::{self, Key};
use crate::sitemap;
use crate::{BAD_RESPONSE, scrape};

/// Sitemaps that are asked for, and how deep indexes are followed.
const SITEMAPS_MAX: usize = 25;
const DEPTH_MAX: u32 = 3;
const SITEMAP_REDIRECTS_MAX: u32 = 5;
const SITEMAP_ACCEPT: &str = "application/xml,text/xml,text/plain;q=0.8,*/*;q=0.5";
/// Where sitemaps are of sites whose robots.txt names none that lists anything.
const WELL_KNOWN: [&str; 4] = [
    "/sitemap.xml",
    "/sitemap_index.xml",
    "/wp-sitemap.xml",
    "/sitemap.xml.gz",
];
/// Bytes of sitemaps, and of pages, that are read altogether: what the call's processor time is good for.
const SITEMAP_BYTES_MAX: usize = 40 << 20;
const PAGE_BYTES_MAX: usize = 24 << 20;
/// Addresses that are looked at, whether or not they are listed.
const LOOKED_AT_MAX: usize = 20_000;
/// Ends of paths that are no pages: a page's link to one is not listed.
const ASSETS: [&str; 38] = [
    "7z", "apk", "avi", "avif", "bmp", "bz2", "css", "deb", "dmg", "eot", "exe", "gif", "gz",
    "ico", "iso", "jpeg", "jpg", "js", "mjs", "mov", "mp3", "mp4", "mpeg", "msi", "ogg", "png",
    "rar", "rpm", "svg", "tar", "tgz", "ttf", "wav", "webm", "webp", "woff", "woff2", "zip",
];

/// Pages of the site of `start`, at most `limit`.
///
/// # Errors
/// Nothing was found, because the site gave no answer.
pub(super) async fn survey(start: Url, limit: usize) -> Result<Vec<Link>, Failure> {
    let mut visitor = Visitor::new();
    let Arrival {
        start,
        robots,
        answer,
    } = arrival::arrive(start, &mut visitor).await?;
    let mut survey = Survey::new(start, robots, limit);
    let trouble = answer.and_then(|answer| survey.take_start(answer));
    survey.go(&mut visitor).await;
    match trouble {
        Some(trouble) if survey.found.is_empty() => Err(trouble),
        Some(_) | None => Ok(survey.found.into_links()),
    }
}

struct Survey {
    start: Url,
    robots: Robots,
    found: FoundPages,
    /// Sitemaps to be asked for, and below how many indexes they stand.
    sitemaps: VecDeque<(Url, u32)>,
    /// Where others may be, while none has listed a page.
    guesses: VecDeque<Url>,
    sitemaps_known: HashSet<Key>,
    sitemaps_asked: usize,
    sitemap_bytes: usize,
    /// Addresses that pages linked to, in the order of the pages, to be listed when the sitemaps are read.
    linked: VecDeque<crate::links::PageLink>,
    /// Listed pages to be read for their links.
    pages: VecDeque<Url>,
    /// Pages that may still be read: a site where each page leads to one more is followed as far as its map may be long.
    pages_left: usize,
    page_bytes: usize,
    looked_at: usize,
}

/// What is asked for next.
enum Wanted {
    Sitemap(Url, u32),
    Page(Url),
}

impl Survey {
    fn new(start: Url, robots: Robots, limit: usize) -> Self {
        let mut survey = Self {
            guesses: WELL_KNOWN
                .iter()
                .filter_map(|path| start.join(path).ok())
                .collect(),
            found: FoundPages::new(limit),
            sitemaps: VecDeque::new(),
            sitemaps_known: HashSet::new(),
            sitemaps_asked: 0,
            sitemap_bytes: 0,
            linked: VecDeque::new(),
            pages: VecDeque::new(),
            pages_left: limit,
            page_bytes: 0,
            looked_at: 0,
            start,
            robots,
        };
        // Whoever names a sitemap in robots.txt offers it, on whatever host it is.
        let named: Vec<Url> = survey
            .robots
            .sitemaps()
            .iter()
            .filter_map(|named| survey.start.join(named).ok())
            .collect();
        for url in named {
            survey.want_sitemap(url, 0);
        }
        survey
    }

    async fn go(&mut self, visitor: &mut Visitor) {
        while !self.found.is_full() && self.looked_at < LOOKED_AT_MAX && !visitor.is_over() {
            let wanted = self.next(visitor.at_once());
            if wanted.is_empty() {
                return;
            }
            let requests: Vec<Request<'_>> = wanted.iter().map(Wanted::request).collect();
            let answers = visitor.ask(&requests).await;
            for (wanted, answer) in wanted.into_iter().zip(answers) {
                match (wanted, answer) {
                    (Wanted::Sitemap(url, depth), Ok(answer)) if answer.is_success() => {
                        self.take_sitemap(&url, depth, &answer);
                    }
                    (Wanted::Page(url), Ok(answer)) => self.take_page(&url, &answer),
                    // What has no answer is as good as not there; a page that is listed stays listed.
                    (Wanted::Sitemap(..), Ok(_) | Err(_)) | (Wanted::Page(_), Err(_)) => {}
                }
            }
        }
    }

    /// What is asked for next: sitemaps while there are any, then pages.
    fn next(&mut self, at_once: usize) -> Vec<Wanted> {
        let mut wanted = self.next_sitemaps(at_once);
        if !wanted.is_empty() {
            return wanted;
        }
        while let Some(link) = self.linked.pop_front() {
            if !is_asset(&link.url) && self.list(&link.url) && !link.is_nofollow {
                self.pages.push_back(link.url);
            }
        }
        while wanted.len() < at_once
            && self.pages_left > 0
            && !self.found.is_full()
            && self.page_bytes < PAGE_BYTES_MAX
        {
            let Some(page) = self.pages.pop_front() else {
                break;
            };
            self.pages_left -= 1;
            wanted.push(Wanted::Page(page));
        }
        wanted
    }

    fn next_sitemaps(&mut self, at_once: usize) -> Vec<Wanted> {
        // Places are guessed when no sitemap is left that something named.
        while self.sitemaps.is_empty()
            && let Some(guess) = self.guesses.pop_front()
        {
            if self.robots.allows(&guess) {
                self.want_sitemap(guess, 0);
            }
        }
        let left = if self.sitemap_bytes < SITEMAP_BYTES_MAX {
            SITEMAPS_MAX - self.sitemaps_asked
        } else {
            0
        };
        let count = at_once.min(left).min(self.sitemaps.len());
        self.sitemaps_asked += count;
        self.sitemaps
            .drain(..count)
            .map(|(url, depth)| Wanted::Sitemap(url, depth))
            .collect()
    }

    fn want_sitemap(&mut self, url: Url, depth: u32) {
        if site::is_askable(&url) && self.sitemaps_known.insert(Key::of(&url)) {
            self.sitemaps.push_back((url, depth));
        }
    }

    /// Takes what came for the page that was named. The failure that it is, if nothing else is found.
    fn take_start(&mut self, answer: Result<Response, Error>) -> Option<Failure> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Some(scrape::failure(error, arrival::PAGE_BYTES_MAX)),
        };
        let start = self.start.clone();
        // A page that says that there is none may lead to those that are.
        match (answer.status(), self.outline(&start, &answer)) {
            (200..300, Some(outline)) => {
                self.found.add(&start);
                self.take_outline(&start, outline);
                None
            }
            (200..300, None) => {
                self.sitemaps_known.insert(Key::of(&start));
                self.take_sitemap(&start, 0, &answer);
                // A file that is no list of others is itself what there is.
                if self.found.is_empty() && self.sitemaps.is_empty() {
                    self.found.add(&start);
                }
                None
            }
            (status, outline) => {
                self.linked.extend(
                    outline
                        .map(|outline| outline.links.links)
                        .unwrap_or_default(),
                );
                let message = format!(
                    "the page returned status {status}, and no other pages of the site were found"
                );
                (status >= 500).then(|| BAD_RESPONSE.failure(message))
            }
        }
    }

    fn take_sitemap(&mut self, url: &Url, depth: u32, answer: &Response) {
        let sitemap = sitemap::read(answer.bytes(), answer.header("content-type"));
        self.sitemap_bytes += sitemap.bytes;
        let from = Url::parse(answer.url()).unwrap_or_else(|_| url.clone());
        for listed in sitemap.pages {
            let Ok(page) = from.join(&listed.url) else {
                continue;
            };
            if self.list(&page) {
                // One that lists pages is a sitemap; there is no need to look for others.
                self.guesses.clear();
                let plain = |text: Option<String>, most| {
                    Some(page::cut(&outline::text(&text?), most).0).filter(|text| !text.is_empty())
                };
                let title = plain(listed.title, page::TITLE_CHARACTERS_MAX);
                let description = plain(listed.description, page::DESCRIPTION_CHARACTERS_MAX);
                self.found.describe(&page, title, description);
                self.pages.push_back(page);
            }
        }
        for nested in sitemap.sitemaps {
            let Ok(nested) = from.join(&nested) else {
                continue;
            };
            // An index speaks for its own host and for the site that names it.
            let is_own = site::same_site(&nested, &self.start) && self.robots.allows(&nested);
            if depth < DEPTH_MAX
                && (is_own
                    || site::same_site(&nested, url) && !site::same_site(&nested, &self.start))
            {
                self.want_sitemap(nested, depth + 1);
            }
        }
    }

    fn take_page(&mut self, url: &Url, answer: &Response) {
        match (arrival::redirect(url, answer), answer.status()) {
            (Some(next), _) if self.is_ours(&next) => {
                if self.found.replace(url, &next) {
                    self.pages.push_front(next);
                }
            }
            // It is a page of another site.
            (Some(_), _) => self.found.remove(url),
            (None, 200..300) => {
                if let Some(outline) = self.outline(url, answer) {
                    self.take_outline(url, outline);
                }
            }
            // A map lists what the site names: most of it is never asked for, so nobody learns what is not there.
            (None, _) => {}
        }
    }

    fn outline(&mut self, url: &Url, answer: &Response) -> Option<Outline> {
        self.page_bytes += answer.bytes().len();
        outline::read(&scrape::answer(answer), url)
    }

    fn take_outline(&mut self, url: &Url, outline: Outline) {
        self.found.describe(url, outline.title, outline.description);
        if let Some(canonical) = outline
            .links
            .canonical
            .filter(|canonical| self.is_ours(canonical))
        {
            self.found.replace(url, &canonical);
        }
        self.linked.extend(outline.links.links);
    }

    /// Lists a page of the site, if it is one and may be asked for; says whether it is new.
    fn list(&mut self, url: &Url) -> bool {
        self.looked_at += 1;
        self.looked_at < LOOKED_AT_MAX
            && !self.found.is_full()
            && !self.found.knows(url)
            && self.is_ours(url)
            && self.found.add(url)
    }

    /// Whether it is an address of the site that may be asked for. The robots.txt of one of the site's names, and of http or
    /// https, counts for all of them.
    fn is_ours(&self, url: &Url) -> bool {
        site::is_askable(url) && site::same_site(url, &self.start) && self.robots.allows(url)
    }
}

impl Wanted {
    fn request(&self) -> Request<'_> {
        match self {
            Self::Page(url) => arrival::page(url),
            Self::Sitemap(url, _) => Request {
                url,
                accept: SITEMAP_ACCEPT,
                redirects: SITEMAP_REDIRECTS_MAX,
                bytes_max: sitemap::BYTES_MAX,
            },
        }
    }
}

fn is_asset(url: &Url) -> bool {
    let file = url.path().rsplit('/').next().unwrap_or_default();
    let end = file
        .rsplit_once('.')
        .map(|(_, end)| end.to_ascii_lowercase());
    end.is_some_and(|end| ASSETS.binary_search(&&*end).is_ok())
}
