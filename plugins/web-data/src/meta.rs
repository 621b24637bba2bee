//! What a page says of itself: titles, descriptions, kind, address, language.
//!
//! It must know nothing of the page's text blocks.

use serde_json::Value;

use crate::tag::Tag;
use crate::tree::{ROOT, Tree};

/// Kinds of page that are told apart.
pub(crate) const KINDS: usize = 11;

/// The kind of articles.
const ARTICLE: usize = 0;

/// Types beside those of articles whose structured data is about the page itself.
const SUBJECTS: [&str; 6] = [
    "product",
    "discussionforumposting",
    "question",
    "recipe",
    "webpage",
    "event",
];

/// Values of structured data that are looked at.
const VALUES_MAX: usize = 20_000;
/// Bytes of a title that are read.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// What a page declares.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) kinds: [bool; KINDS],
    pub(crate) title: Option<String>,
    pub(crate) og_title: Option<String>,
    pub(crate) og_description: Option<String>,
    pub(crate) site_name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) twitter_description: Option<String>,
    /// `headline` or `name`, and `description`, of structured data about the page's subject.
    pub(crate) headline: Option<String>,
    pub(crate) structured_description: Option<String>,
    /// The longest text that structured data has of an article or a posting.
    pub(crate) structured_body: Option<String>,
    pub(crate) canonical: Option<String>,
    pub(crate) base: Option<String>,
    pub(crate) language: Option<String>,
    /// A `<meta http-equiv=refresh>`, as it was written.
    pub(crate) refresh: Option<String>,
}

impl Facts {
    /// All that it says of its title, and of its description.
    pub(crate) fn words(&self) -> (String, String) {
        let join = |texts: &[&Option<String>]| {
            let texts: Vec<&str> = texts.iter().filter_map(|text| text.as_deref()).collect();
            texts.join(" ")
        };
        let titles = join(&[&self.title, &self.og_title, &self.headline]);
        let [short, shared] = [&self.description, &self.og_description];
        let [long, tweeted] = [&self.structured_description, &self.twitter_description];
        (titles, join(&[short, shared, long, tweeted]))
    }
}

/// Reads what a page declares, in its tree and in its structured data.
pub(crate) fn read(tree: &Tree, structured: &[String]) -> Facts {
    let mut facts = Facts::default();
    for (id, element) in tree.elements(ROOT) {
        let attribute = |name| {
            element
                .attribute(name)
                .map(str::trim)
                .filter(|value| !value.is_empty())
        };
        match element.tag {
            Tag::Html => facts.language = attribute("lang").map(str::to_owned),
            Tag::Title if facts.title.is_none() => {
                facts.title = clean(&tree.text_of(id, TEXT_BYTES_MAX));
            }
            Tag::Base if facts.base.is_none() => facts.base = attribute("href").map(str::to_owned),
            Tag::Link => {
                let is_canonical = attribute("rel").is_some_and(|rel| {
                    rel.split_whitespace()
                        .any(|r| r.eq_ignore_ascii_case("canonical"))
                });
                if is_canonical && facts.canonical.is_none() {
                    facts.canonical = attribute("href").map(str::to_owned);
                }
            }
            Tag::Meta => {
                let name = attribute("property")
                    .or(attribute("name"))
                    .or(attribute("http-equiv"));
                if let (Some(name), Some(content)) = (name, attribute("content")) {
                    declare(&mut facts, &name.to_ascii_lowercase(), content);
                }
            }
            _ => {}
        }
    }
    for text in structured {
        if let Ok(value) = serde_json::from_str(text.trim().trim_end_matches(';')) {
            structure(&mut facts, &value);
        }
    }
    facts
}

fn declare(facts: &mut Facts, name: &str, content: &str) {
    let place = match name {
        "og:title" => &mut facts.og_title,
        "og:description" => &mut facts.og_description,
        "og:site_name" => &mut facts.site_name,
        "description" => &mut facts.description,
        "twitter:description" => &mut facts.twitter_description,
        "refresh" => &mut facts.refresh,
        "og:type" => {
            add_kind(facts, &content.to_ascii_lowercase());
            return;
        }
        _ => return,
    };
    if place.is_none() {
        *place = clean(content);
    }
}

/// The kind that a type of structured data, or an `og:type`, is of.
fn kind(name: &str) -> Option<usize> {
    Some(match name {
        "article" | "newsarticle" | "blogposting" | "report" | "scholarlyarticle"
        | "techarticle" => ARTICLE,
        "product" | "productgroup" | "og:product" | "offer" | "product.item" => 1,
        "itemlist" | "collectionpage" | "offercatalog" | "searchresultspage" | "product.group" => 2,
        "discussionforumposting" | "qapage" | "question" | "answer" => 3,
        "service" | "localbusiness" | "professionalservice" | "organization" | "corporation" => 4,
        "faqpage" => 5,
        "breadcrumblist" => 6,
        "website" => 7,
        "review" | "aggregaterating" => 8,
        "person" | "profilepage" => 9,
        "video" | "videoobject" | "video.other" | "recipe" | "event" | "jobposting" | "course" => {
            10
        }
        _ => return None,
    })
}

fn add_kind(facts: &mut Facts, name: &str) {
    if let Some(kind) = kind(name) {
        facts.kinds[kind] = true;
    }
}

fn structure(facts: &mut Facts, value: &Value) {
    let mut open = vec![value];
    for _ in 0..VALUES_MAX {
        match open.pop() {
            None => return,
            Some(Value::Array(values)) => open.extend(values.iter().rev()),
            Some(Value::Object(object)) => {
                let mut is_subject = false;
                let types = match object.get("@type") {
                    Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).collect(),
                    Some(Value::String(name)) => vec![name.as_str()],
                    _ => Vec::new(),
                };
                for name in types {
                    let name = name.to_ascii_lowercase();
                    add_kind(facts, &name);
                    is_subject |= kind(&name) == Some(ARTICLE) || SUBJECTS.contains(&&*name);
                }
                let text = |name: &str| object.get(name).and_then(Value::as_str).and_then(clean);
                if is_subject {
                    facts.headline = facts
                        .headline
                        .take()
                        .or_else(|| text("headline"))
                        .or_else(|| text("name"));
                    facts.structured_description = facts
                        .structured_description
                        .take()
                        .or_else(|| text("description"));
                    for body in [text("articleBody"), text("text")].into_iter().flatten() {
                        if facts
                            .structured_body
                            .as_ref()
                            .is_none_or(|present| present.len() < body.len())
                        {
                            facts.structured_body = Some(body);
                        }
                    }
                }
                open.extend(
                    object
                        .values()
                        .filter(|value| value.is_array() || value.is_object()),
                );
            }
            Some(_) => {}
        }
    }
}

/// A text without markup's white space; nothing of an empty one. However long it is, it is cut where its page is written.
fn clean(text: &str) -> Option<String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then_some(text)
}
