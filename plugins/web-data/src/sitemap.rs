//! Reads sitemaps: urlsets and indexes, feeds, and lists in plain text, each of them packed or not.
//!
//! It must know nothing of sites or of what is done with the entries. Entities that a document declares are none, so that no
//! entity is ever expanded, and what is broken is read up to where it breaks: sites are full of sitemaps with a bare `&`.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use quick_xml::Reader;
use quick_xml::XmlVersion;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::QName;

use crate::charset;

/// Bytes of a sitemap when it is unpacked; what is beyond is not read. The protocol allows 50 MB, which is for search engines.
pub(crate) const BYTES_MAX: u32 = 12 << 20;
/// Pages of one sitemap, as the protocol has it, and sitemaps of one index that anybody could ask for.
const PAGES_MAX: usize = 50_000;
const SITEMAPS_MAX: usize = 1000;
/// Bytes of a text of an entry; what is beyond is cut.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// Times that a body may be packed: by its name, and once more by a server that does not know.
const PACKED_MAX: usize = 2;

/// What a sitemap lists, in its order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sitemap {
    pub(crate) pages: Vec<Listed>,
    /// The addresses of other sitemaps, as they were written.
    pub(crate) sitemaps: Vec<String>,
    /// Bytes that were read.
    pub(crate) bytes: usize,
}

/// A page that a sitemap lists.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    /// As it was written.
    pub(crate) url: String,
    /// What a feed or a list of news calls it. A feed's may have markup in it.
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
}

/// Reads an answer's body. What is no sitemap lists nothing.
pub(crate) fn read(body: &[u8], content_type: Option<&str>) -> Sitemap {
    let mut unpacked = None;
    for _ in 0..PACKED_MAX {
        let packed = unpacked.as_deref().unwrap_or(body);
        if !packed.starts_with(b"\x1f\x8b") {
            break;
        }
        unpacked = Some(unpack(packed));
    }
    // What a server says of a packed body is said of the packing.
    let content_type = content_type.filter(|_| unpacked.is_none());
    let body = unpacked.as_deref().unwrap_or(body);
    let text = charset::decode(body, content_type);
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let mut sitemap = if text.starts_with('<') {
        Entries::default().read(text)
    } else {
        plain(text)
    };
    sitemap.bytes = body.len();
    sitemap
}

/// A body unpacked, up to where it is broken or too long.
fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut unpacked = Vec::new();
    // What came before a failure is as good as if it had ended there.
    MultiGzDecoder::new(packed)
        .take(u64::from(BYTES_MAX))
        .read_to_end(&mut unpacked)
        .ok();
    unpacked
}

fn plain(text: &str) -> Sitemap {
    let is_address = |line: &&str| line.starts_with("http://") || line.starts_with("https://");
    let lines = text
        .lines()
        .map(str::trim)
        .filter(is_address)
        .take(PAGES_MAX);
    let pages = lines
        .map(|line| Listed {
            url: line.to_owned(),
            ..Listed::default()
        })
        .collect();
    Sitemap {
        pages,
        ..Sitemap::default()
    }
}

/// What a text belongs to.
#[derive(Clone, Copy, Debug)]
enum Part {
    Address,
    Title,
    Description,
}

/// The entries of a document while it is read.
#[derive(Default)]
struct Entries {
    sitemap: Sitemap,
    /// The entry that is open: whether it is of another sitemap, and what is known of it.
    open: Option<(bool, Listed)>,
    /// The part that is open, and its text.
    part: Option<(Part, String)>,
}

impl Entries {
    fn read(mut self, text: &str) -> Sitemap {
        let mut reader = Reader::from_str(text);
        let config = reader.config_mut();
        config.check_end_names = false;
        config.allow_unmatched_ends = true;
        config.allow_dangling_amp = true;
        while self.sitemap.pages.len() < PAGES_MAX && self.sitemap.sitemaps.len() < SITEMAPS_MAX {
            match reader.read_event() {
                Ok(Event::Start(tag)) => self.begin(&tag),
                Ok(Event::Empty(tag)) => {
                    self.begin(&tag);
                    self.end(tag.name());
                }
                Ok(Event::End(tag)) => self.end(tag.name()),
                Ok(Event::Text(text)) => self.text(&text.into_inner()),
                Ok(Event::CData(text)) => self.text(&text.into_inner()),
                Ok(Event::GeneralRef(reference)) => self.text(&resolved(&reference)),
                Ok(Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_)) => {}
                Ok(Event::Eof) | Err(_) => break,
            }
        }
        self.close();
        self.sitemap
    }

    fn begin(&mut self, tag: &BytesStart<'_>) {
        let name = tag.name();
        if let Some(is_sitemap) = entry(name) {
            self.close();
            self.open = Some((is_sitemap, Listed::default()));
            return;
        }
        let Some(part) = self.open.as_ref().and_then(|_| part(name)) else {
            return;
        };
        match (part, reference(tag)) {
            // Atom has the address in an attribute, among others that lead elsewhere.
            (Part::Address, Some(address)) => self.keep(Part::Address, &address),
            (_, _) => self.part = Some((part, String::new())),
        }
    }

    fn text(&mut self, text: &str) {
        if let Some((_, kept)) = &mut self.part {
            let room = TEXT_BYTES_MAX.saturating_sub(kept.len());
            kept.push_str(&text[..text.floor_char_boundary(room)]);
        }
    }

    fn end(&mut self, name: QName<'_>) {
        if entry(name).is_some() {
            self.close();
        } else if part(name).is_some()
            && let Some((part, text)) = self.part.take()
        {
            self.keep(part, &text);
        }
    }

    fn keep(&mut self, part: Part, text: &str) {
        let text = text.trim();
        let Some((_, listed)) = self.open.as_mut().filter(|_| !text.is_empty()) else {
            return;
        };
        match part {
            Part::Address if listed.url.is_empty() => text.clone_into(&mut listed.url),
            Part::Title => listed.title = Some(text.to_owned()),
            Part::Description => listed.description = Some(text.to_owned()),
            Part::Address => {}
        }
    }

    /// Ends the open entry, if there is one: the next one's begin ends it as well as its own end.
    fn close(&mut self) {
        self.part = None;
        match self
            .open
            .take()
            .filter(|(_, listed)| !listed.url.is_empty())
        {
            Some((true, listed)) => self.sitemap.sitemaps.push(listed.url),
            Some((false, listed)) => self.sitemap.pages.push(listed),
            None => {}
        }
    }
}

/// Whether an element is an entry, and if so whether of another sitemap.
fn entry(name: QName<'_>) -> Option<bool> {
    match name.local_name().as_ref() {
        "url" | "item" | "entry" => Some(false),
        "sitemap" => Some(true),
        _ => None,
    }
}

/// What an element of an entry tells. Those of other vocabularies tell it of the entry's pictures and films.
fn part(name: QName<'_>) -> Option<Part> {
    let (local, prefix) = name.decompose();
    let is_other = prefix.is_some_and(|prefix| {
        !matches!(prefix.as_ref(), "sm" | "sitemap" | "atom" | "ns0" | "ns1")
    });
    match (local.as_ref(), is_other) {
        ("loc" | "link", false) => Some(Part::Address),
        ("title", false) => Some(Part::Title),
        ("title", true) if prefix.is_some_and(|prefix| prefix.as_ref() == "news") => {
            Some(Part::Title)
        }
        ("description" | "summary", false) => Some(Part::Description),
        _ => None,
    }
}

/// Where a link of Atom leads that is the entry's own. The empty address, if it is another's.
fn reference(tag: &BytesStart<'_>) -> Option<String> {
    let value = |name| {
        let attribute = tag.try_get_attribute(name).ok()??;
        Some(
            attribute
                .normalized_value(XmlVersion::Implicit1_0)
                .ok()?
                .into_owned(),
        )
    };
    let address = value("href")?;
    let is_own = value("rel").is_none_or(|rel| rel == "alternate");
    Some(if is_own { address } else { String::new() })
}

/// The text of a reference; nothing of one that is none of XML's own.
fn resolved(reference: &BytesRef<'_>) -> String {
    let known = match &**reference {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => reference.resolve_char_ref().unwrap_or(None),
    };
    known.map(String::from).unwrap_or_default()
}

#[cfg(test)]
mod tests;
