//! The networks, one file each: which URLs are posts there, whom to ask about them, and how to read what is answered.
//!
//! A network is a row of [`ALL`]. Another one is a file here and a line there; nothing else of the plugin names one.

mod facebook;
mod graph;
mod instagram;
mod reddit;
mod threads;
mod tiktok;
mod x;

use std::ops::RangeInclusive;

use serde_json::Value;
use switchbay_sdk::public_url::web_url;
use url::Url;

use crate::markup::Rules;
use crate::trouble::Trouble;

/// All of them, in the order in which the contract lists them.
pub(crate) const ALL: [&Network; 6] = [
    &x::NETWORK,
    &facebook::NETWORK,
    &instagram::NETWORK,
    &threads::NETWORK,
    &tiktok::NETWORK,
    &reddit::NETWORK,
];

/// A social network.
#[derive(Debug)]
pub(crate) struct Network {
    /// As `provider` and the plugin's settings name it.
    pub(crate) name: &'static str,
    /// As people know it.
    pub(crate) title: &'static str,
    /// Its own page.
    pub(crate) home: &'static str,
    /// Its sites. A question mark stands for one letter.
    pub(crate) hosts: &'static [&'static str],
    /// Parameters of its URLs that tell nothing of a post.
    pub(crate) tracking: &'static [&'static str],
    /// What a URL of its sites is.
    pub(crate) place: fn(&Link<'_>) -> Place,
    /// Whom to ask.
    pub(crate) provider: Provider,
    /// Where it serves pictures from: a host, or with `*.` any below.
    pub(crate) pictures: &'static [&'static str],
    /// How its markup is made safe; `None` where it is not passed on.
    pub(crate) markup: Option<Rules>,
    /// Where an answer names its post, beside its `url`.
    pub(crate) named_by: &'static [Naming],
    /// Where an answer that names no page of its author says by what it is found: a member, and what all pages begin with.
    pub(crate) author_page: Option<(&'static str, &'static str)>,
    /// Grants beside the provider's: where short links lead through.
    pub(crate) walks: &'static [&'static str],
}

/// A network's oEmbed provider.
#[derive(Debug)]
pub(crate) struct Provider {
    /// With a slash at its end. The operator may name another in the settings.
    pub(crate) base_url: &'static str,
    /// A segment between the base and the resource, which the operator may change.
    pub(crate) version: Option<&'static str>,
    /// Parameters beside `url`.
    pub(crate) query: &'static [(&'static str, &'static str)],
    /// The grant for it.
    pub(crate) atom: &'static str,
    /// Reads an answer that is none: a status of failure, or a body that says so.
    pub(crate) trouble: fn(&Answered<'_>) -> Option<Trouble>,
}

/// What a provider answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a [u8],
    /// The header `retry-after`, where it is a number.
    pub(crate) retry_after_s: Option<u64>,
}

/// An attribute of the markup that names the post: the first element that has it counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Naming {
    /// By its URL.
    Url(&'static str),
    /// By its id.
    Id(&'static str),
}

/// What a URL of a network is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Post(Post),
    /// A link that leads to a post.
    Short,
    /// Where those are sent who may not see a post.
    Login,
    Other,
}

/// A post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Post {
    /// Its one URL.
    pub(crate) url: String,
    /// What an answer must name it by, where it names any.
    pub(crate) id: String,
    /// Whether the URL lacks something that an answer may tell, such as the author.
    pub(crate) partial: bool,
    /// The provider's resource.
    pub(crate) resource: &'static str,
    /// The URL that the provider is asked about, where that is another.
    pub(crate) asked: Option<String>,
    /// Name and page of the author, as far as the URL tells.
    pub(crate) author: Option<(String, String)>,
}

impl Post {
    /// A post whose URL says all of it.
    fn new(resource: &'static str, id: &str, url: String) -> Self {
        Self {
            url,
            id: id.to_owned(),
            partial: false,
            resource,
            asked: None,
            author: None,
        }
    }

    /// A post of which no more than the id is known.
    pub(crate) fn named_by_id(id: &str) -> Self {
        Self {
            partial: true,
            ..Self::new("", id, String::new())
        }
    }
}

/// A URL of a network's site, taken apart.
pub(crate) struct Link<'u> {
    pub(crate) host: &'u str,
    /// Its segments, still encoded, empty ones left out.
    pub(crate) path: Vec<&'u str>,
    url: &'u Url,
}

impl<'u> Link<'u> {
    pub(crate) fn new(url: &'u Url) -> Self {
        let path = url
            .path()
            .split('/')
            .filter(|segment| !segment.is_empty())
            .collect();
        Self {
            host: url.host_str().unwrap_or_default(),
            path,
            url,
        }
    }

    /// The first value of a query parameter.
    fn query(&self, name: &str) -> Option<String> {
        self.url
            .query_pairs()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.into_owned())
    }
}

impl Network {
    /// Whether a host is one of its sites.
    pub(crate) fn has(&self, host: &str) -> bool {
        self.hosts.iter().any(|known| {
            let fits = |(k, h): (u8, u8)| k == h || k == b'?' && h.is_ascii_lowercase();
            known.len() == host.len() && known.bytes().zip(host.bytes()).all(fits)
        })
    }

    /// Whether a host serves its pictures.
    pub(crate) fn has_pictures(&self, host: &str) -> bool {
        is_of(host, self.pictures)
    }

    /// The page of the author that an answer's member names.
    pub(crate) fn page_of(&self, said: &Value) -> Option<String> {
        let (member, below) = self.author_page?;
        let name = said
            .get(member)?
            .as_str()
            .filter(|name| is_made_of(name, "._-", 1..=32))?;
        Some(format!("{below}{name}"))
    }

    /// What a URL is, if it is of this network.
    pub(crate) fn read(&self, text: &str) -> Option<Place> {
        let url = web_url(text)?;
        self.has(url.host_str()?)
            .then(|| (self.place)(&Link::new(&url)))
    }
}

/// Whether a host is in a list of hosts, in which `*.` stands for any below.
pub(crate) fn is_of(host: &str, known: &[&str]) -> bool {
    known.iter().any(|known| match known.strip_prefix('*') {
        Some(below) => host.ends_with(below) && host.len() > below.len(),
        None => host == *known,
    })
}

/// The network that a host is a site of.
pub(crate) fn of_host(host: &str) -> Option<&'static Network> {
    ALL.into_iter().find(|network| network.has(host))
}

/// The names of all, for the published schema.
pub(crate) fn names() -> Vec<&'static str> {
    ALL.iter().map(|network| network.name).collect()
}

/// What a status says that no network gives a meaning of its own.
fn by_status(answered: &Answered<'_>) -> Option<Trouble> {
    match answered.status {
        200..=299 => None,
        404 | 410 => Some(Trouble::NotFound),
        401 | 403 | 451 => Some(Trouble::Private),
        429 => Some(Trouble::rate_limited(answered.retry_after_s)),
        _ => Some(Trouble::Upstream),
    }
}

/// Whether a text is so long and made of ASCII letters, digits and these.
fn is_made_of(text: &str, more: &str, lengths: RangeInclusive<usize>) -> bool {
    lengths.contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || more.as_bytes().contains(&b))
}

/// Whether a text is the id that a counter gave: decimal, no leading zero, 64 bits.
fn is_number(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
        && !text.starts_with('0')
        && text.parse::<u64>().is_ok()
}
