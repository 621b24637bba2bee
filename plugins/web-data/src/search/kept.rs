//! The hits that become results: web pages alone, each once, and no more than were asked for.
//!
//! Pure. It must know nothing of providers.

use switchbay_sdk::public_url::web_url;
use url::Url;

use super::answer::Hit;
use super::text;
use crate::page::{self, CONTENT_CHARACTERS_MAX, DESCRIPTION_CHARACTERS_MAX, TITLE_CHARACTERS_MAX};
use crate::{Document, site};

/// Bytes of content of all results together: as much as a page of a crawl has.
const CONTENT_BYTES_MAX: usize = 1 << 20;

/// Results, in the order in which they came.
pub(super) struct Kept {
    limit: usize,
    documents: Vec<Document>,
    /// Bytes of content that there is room for.
    room: usize,
}

impl Kept {
    pub(super) fn new(limit: u32) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Self {
            limit,
            documents: Vec::new(),
            room: CONTENT_BYTES_MAX,
        }
    }

    /// Takes those that are new, up to the limit.
    pub(super) fn add(&mut self, hits: Vec<Hit>) {
        for hit in hits {
            if !self.is_short() {
                return;
            }
            let Some(url) = page_of(&hit.url) else {
                continue;
            };
            if self.documents.iter().any(|known| known.url == url.as_str()) {
                continue;
            }
            let document = document(&url, hit, self.room);
            self.room -= document.content.as_ref().map_or(0, String::len);
            self.documents.push(document);
        }
    }

    /// Whether there is room for more.
    pub(super) fn is_short(&self) -> bool {
        self.documents.len() < self.limit
    }

    pub(super) fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    pub(super) fn into_documents(self) -> Vec<Document> {
        self.documents
    }
}

/// The URL of a web page, in the form of all addresses in answers. Some name a place within their page by a fragment, and are
/// the same page.
fn page_of(written: &str) -> Option<Url> {
    web_url(written.trim()).map(site::plain)
}

fn document(url: &Url, hit: Hit, room: usize) -> Document {
    let known = |text: String| Some(text).filter(|text| !text.is_empty());
    let (title, title_cut) = page::cut(&text::plain(&hit.title), TITLE_CHARACTERS_MAX);
    let (description, description_cut) =
        page::cut(&text::plain(&hit.snippet), DESCRIPTION_CHARACTERS_MAX);
    let content = hit
        .content
        .map(|(text, format)| (within(text.trim(), room), format));
    let (content, content_cut, content_format) = match content {
        Some(((text, cut), format)) if !text.is_empty() => (Some(text), cut, Some(format)),
        Some(((_, cut), _)) => (None, cut, None),
        None => (None, false, None),
    };
    Document {
        url: url.as_str().to_owned(),
        title: known(title),
        description: known(description),
        content,
        content_format,
        content_truncated: content_cut || description_cut || title_cut,
        http_status: None,
    }
}

/// At most so many bytes of a content, and whether any of it is missing.
fn within(content: &str, room: usize) -> (String, bool) {
    let fits = &content[..content.floor_char_boundary(room)];
    let (text, cut) = page::cut(fits, CONTENT_CHARACTERS_MAX);
    (text, cut || fits.len() < content.len())
}
