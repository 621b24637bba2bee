//! What a map tells of a page: its title, its description, and where it leads.
//!
//! It must know nothing of content: that is `page`'s, and takes far longer.

use url::Url;

use crate::links::{self, Links};
use crate::meta::Facts;
use crate::page::{self, FetchedPage};
use crate::tree::Tree;
use crate::{blocks, charset, meta, parse, source, title};

/// What a map tells of a page.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) links: Links,
}

/// Where an answer leads that came from `url`. Nothing but a page of HTML leads anywhere.
pub(crate) fn links(answer: &FetchedPage<'_>, url: &Url) -> Links {
    let read = parsed(answer).map(|(tree, facts)| links::read(&tree, &facts, url));
    read.unwrap_or_default()
}

fn parsed(answer: &FetchedPage<'_>) -> Option<(Tree, Facts)> {
    if !page::is_html(answer) {
        return None;
    }
    let source = source::reduce(&charset::decode(answer.body, answer.content_type));
    let tree = parse::parse(source.html);
    let facts = meta::read(&tree, &source.structured);
    Some((tree, facts))
}

/// Reads an answer that came from `url`. Nothing of what is no page of HTML.
pub(crate) fn read(answer: &FetchedPage<'_>, url: &Url) -> Option<Outline> {
    let (tree, facts) = parsed(answer)?;
    let (titles, descriptions) = facts.words();
    let blocks = blocks::read(&tree, &titles, &descriptions);
    Some(Outline {
        title: title::of(&tree, &blocks, &facts)
            .map(|title| page::cut(&title, page::TITLE_CHARACTERS_MAX).0),
        description: title::description(&tree, &blocks, &facts)
            .map(|text| page::cut(&text, page::DESCRIPTION_CHARACTERS_MAX).0),
        links: links::read(&tree, &facts, url),
    })
}

/// A text that may be a piece of HTML, as feeds have them, without its markup.
pub(crate) fn text(html: &str) -> String {
    let tree = parse::parse(source::reduce(html).html);
    tree.text_of(crate::tree::ROOT, html.len())
}
