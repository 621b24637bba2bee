//! An answer's body, read as a document.
//!
//! This is the road from bytes to content: what kind of body, its characters, its tree, its blocks, the choice among them,
//! and how that is written. It must know nothing of requests or of the wire's names.

use switchbay_sdk::http::media_type;

use crate::Format;
use crate::address;
use crate::blocks;
use crate::browser::{self, Reason};
use crate::charset;
use crate::escape;
use crate::html;
use crate::markdown::{self, Style};
use crate::meta::{self, Facts};
use crate::parse;
use crate::select;
use crate::source;
use crate::title;
use crate::tree::{Id, NONE, ROOT, Tree};

/// Characters of content (docs/api.md, "Web data").
pub(crate) const CONTENT_CHARACTERS_MAX: usize = 200_000;
/// Characters of a description.
pub(crate) const DESCRIPTION_CHARACTERS_MAX: usize = 10_000;
/// Characters of a title.
pub(crate) const TITLE_CHARACTERS_MAX: usize = 10_000;
/// Characters of the lines around a body that is code.
const FENCES_CHARACTERS: usize = 64;
/// Bytes that are written before the cut: no character takes more than four.
const WRITTEN_BYTES_MAX: usize = 4 * CONTENT_CHARACTERS_MAX;

/// An answer that came from the outside.
pub(crate) struct FetchedPage<'a> {
    /// Where it came from, after redirects.
    pub(crate) url: &'a str,
    pub(crate) status: u16,
    pub(crate) content_type: Option<&'a str>,
    pub(crate) body: &'a [u8],
}

/// What an answer holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageContent {
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    /// None where the body is of no kind that is text.
    pub(crate) content: Option<String>,
    /// How the content is written: as it was asked for, but for plain text, which is no Markdown.
    pub(crate) format: Format,
    /// Title, description or content was cut at its length, or the page at what reading it may cost.
    pub(crate) truncated: bool,
    /// Where the page sends its reader on, and after how many seconds.
    pub(crate) refresh: Option<(u32, String)>,
    /// Why a browser would show more.
    pub(crate) needs_browser: Option<Reason>,
}

/// Reads an answer's body. It never fails: a body that cannot be read is a document without content.
pub(crate) fn read(answer: &FetchedPage<'_>, format: Format) -> PageContent {
    let kind = BodyKind::of(answer.content_type, answer.body);
    let text = match kind {
        BodyKind::Opaque => return PageContent::default(),
        BodyKind::Html | BodyKind::Plain | BodyKind::Markdown | BodyKind::Code(_) => {
            charset::decode(answer.body, answer.content_type)
        }
    };
    match kind {
        BodyKind::Html => page(answer, &text, format),
        BodyKind::Plain | BodyKind::Markdown | BodyKind::Code(_) | BodyKind::Opaque => {
            literal(&text, kind, format)
        }
    }
}

/// Whether an answer's body is a page of HTML.
pub(crate) fn is_html(answer: &FetchedPage<'_>) -> bool {
    BodyKind::of(answer.content_type, answer.body) == BodyKind::Html
}

/// What a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyKind {
    Html,
    Plain,
    Markdown,
    /// Text in a language.
    Code(&'static str),
    /// No text: an image, an archive, a PDF.
    Opaque,
}

impl BodyKind {
    fn of(content_type: Option<&str>, body: &[u8]) -> Self {
        let essence = content_type.map(media_type).unwrap_or_default();
        match &*essence {
            "text/html" | "application/xhtml+xml" => Self::Html,
            "text/markdown" | "text/x-markdown" => Self::Markdown,
            "" | "application/octet-stream" | "text/plain" => Self::of_bytes(body, &essence),
            name if name == "application/json"
                || name.ends_with("+json")
                || name == "text/json" =>
            {
                Self::Code("json")
            }
            "application/xml" | "text/xml" => Self::of_xml(body),
            name if name.ends_with("+xml") && !name.starts_with("image/") => Self::Code("xml"),
            "text/css" => Self::Code("css"),
            "text/javascript" | "application/javascript" => Self::Code("javascript"),
            "text/csv" => Self::Code("csv"),
            "application/yaml" | "text/yaml" => Self::Code("yaml"),
            name if name.starts_with("text/") => Self::Plain,
            _ => Self::Opaque,
        }
    }

    fn of_bytes(body: &[u8], essence: &str) -> Self {
        let head = &body[..body.len().min(1024)];
        let is_binary =
            head.contains(&0) && !head.starts_with(b"\xff\xfe") && !head.starts_with(b"\xfe\xff");
        let begin = head.trim_ascii_start().to_ascii_lowercase();
        match essence {
            _ if is_binary || head.starts_with(b"%PDF-") => Self::Opaque,
            "text/plain" => Self::Plain,
            _ if begin.starts_with(b"<!doctype html") || begin.starts_with(b"<html") => Self::Html,
            "" => Self::Html,
            _ => Self::Opaque,
        }
    }

    /// Pages of the last century's next one are served as XML.
    fn of_xml(body: &[u8]) -> Self {
        let head = body[..body.len().min(1024)].to_ascii_lowercase();
        if memchr::memmem::find(&head, b"<html").is_some() {
            Self::Html
        } else {
            Self::Code("xml")
        }
    }
}

/// A body that is its own content.
fn literal(text: &str, kind: BodyKind, format: Format) -> PageContent {
    let text = text.trim_matches(['\u{feff}', '\n', '\r']);
    let format = match (format, kind) {
        (Format::Markdown, BodyKind::Plain) => Format::Text,
        (format, _) => format,
    };
    let (content, truncated) = match (format, kind) {
        (Format::Html, _) => html::element("pre", text, CONTENT_CHARACTERS_MAX),
        (Format::Text, _) | (Format::Markdown, BodyKind::Markdown) => {
            cut(text, CONTENT_CHARACTERS_MAX)
        }
        (Format::Markdown, kind) => {
            let (body, is_cut) = cut(text, CONTENT_CHARACTERS_MAX - FENCES_CHARACTERS);
            let language = match kind {
                BodyKind::Code(language) => Some(language),
                BodyKind::Html | BodyKind::Plain | BodyKind::Markdown | BodyKind::Opaque => None,
            };
            let (content, again) = cut(
                &crate::code::fenced(&body, language),
                CONTENT_CHARACTERS_MAX,
            );
            (content, is_cut || again)
        }
    };
    let title = match kind {
        BodyKind::Markdown => text
            .lines()
            .find_map(|line| line.strip_prefix("# "))
            .map(str::trim),
        BodyKind::Html | BodyKind::Plain | BodyKind::Code(_) | BodyKind::Opaque => None,
    };
    let title = title.map(|title| cut(title, TITLE_CHARACTERS_MAX));
    let truncated = truncated || title.as_ref().is_some_and(|(_, is_cut)| *is_cut);
    PageContent {
        title: title.map(|(title, _)| title),
        content: Some(content),
        format,
        truncated,
        ..PageContent::default()
    }
}

fn page(answer: &FetchedPage<'_>, text: &str, format: Format) -> PageContent {
    let source = source::reduce(text);
    let tree = parse::parse(source.html);
    let facts = meta::read(&tree, &source.structured);
    let (titles, descriptions) = facts.words();
    let page = blocks::read(&tree, &titles, &descriptions);
    let words = page.blocks.iter().map(|block| block.counts.words).sum();
    let kept = kept_nodes(&tree, &page, &select::content(&tree, &page, &facts));
    let base = address::base(answer.url, facts.base.as_deref());
    let (content, content_cut) = match structured_instead(&facts, words) {
        Some(body) => written_body(body, format),
        None => written(&tree, &kept, base.as_ref(), format),
    };
    let needs_browser = browser::needed(&browser::PageSigns {
        status: answer.status,
        page: text,
        tree: &tree,
        script_bytes: source.script_bytes,
        has_frames: source.has_frames,
        words,
    });
    let title = title::of(&tree, &page, &facts).map(|title| cut(&title, TITLE_CHARACTERS_MAX));
    let description =
        title::description(&tree, &page, &facts).map(|text| cut(&text, DESCRIPTION_CHARACTERS_MAX));
    let is_cut = |text: &Option<(String, bool)>| text.as_ref().is_some_and(|(_, is_cut)| *is_cut);
    PageContent {
        truncated: tree.is_cut || content_cut || is_cut(&title) || is_cut(&description),
        title: title.map(|(text, _)| text),
        description: description.map(|(text, _)| text),
        content: Some(content),
        format,
        refresh: facts
            .refresh
            .as_deref()
            .and_then(|written| refresh(written, base.as_ref())),
        needs_browser,
    }
}

/// The kept nodes, at most as long as content may be, and whether something of them is missing.
fn written(tree: &Tree, kept: &[bool], base: Option<&url::Url>, format: Format) -> (String, bool) {
    let style = match format {
        Format::Html => return html::write(tree, kept, base, CONTENT_CHARACTERS_MAX),
        Format::Markdown => Style::Markdown,
        Format::Text => Style::Text,
    };
    cut_as(
        &markdown::write(tree, kept, base, style, WRITTEN_BYTES_MAX),
        format,
    )
}

/// A text of structured data as content.
fn written_body(body: &str, format: Format) -> (String, bool) {
    match format {
        Format::Html => html::element("p", body, CONTENT_CHARACTERS_MAX),
        Format::Text => cut(body, CONTENT_CHARACTERS_MAX),
        Format::Markdown => {
            let inline = escape::inline(body, false);
            cut_as(
                &escape::line_starts(inline.as_deref().unwrap_or(body)),
                format,
            )
        }
    }
}

/// Content cut at its length, and whether it is.
fn cut_as(content: &str, format: Format) -> (String, bool) {
    let (mut content, is_cut) = cut(content, CONTENT_CHARACTERS_MAX);
    if is_cut && format == Format::Markdown {
        escape::end_code(&mut content);
    }
    (content, is_cut)
}

/// The text that structured data has of a page whose own text is next to nothing.
fn structured_instead(facts: &Facts, words: u32) -> Option<&str> {
    let body = facts.structured_body.as_deref()?;
    (words < 50 && body.split_whitespace().count() > 2 * words as usize).then_some(body)
}

/// For each node whether it or something in it is content.
pub(crate) fn kept_nodes(tree: &Tree, page: &blocks::BlockList, blocks: &[bool]) -> Vec<bool> {
    let mut kept = vec![false; tree.nodes.len()];
    kept[ROOT as usize] = true;
    for (at, place) in page.places.iter().enumerate() {
        if !blocks
            .get(place.block as usize)
            .copied()
            .unwrap_or_default()
        {
            continue;
        }
        let mut id = Id::try_from(at).unwrap_or(NONE);
        while id != NONE && !kept[id as usize] {
            kept[id as usize] = true;
            id = tree.parent(id);
        }
    }
    kept
}

/// Where `5; url=/next` leads, and after how many seconds.
pub(crate) fn refresh(written: &str, base: Option<&url::Url>) -> Option<(u32, String)> {
    let (seconds, rest) = written.split_once([';', ','])?;
    let seconds = seconds.trim().split('.').next()?.parse().ok()?;
    let rest = rest.trim_start();
    let address = match rest.get(..3) {
        Some(name) if name.eq_ignore_ascii_case("url") => {
            rest[3..].trim_start().strip_prefix('=')?
        }
        Some(_) | None => rest,
    };
    Some((
        seconds,
        address::image(base, address.trim().trim_matches(['"', '\'']))?,
    ))
}

/// At most so many characters, ended at a line where one is near, and whether any are missing.
pub(crate) fn cut(text: &str, characters_max: usize) -> (String, bool) {
    let Some((end, _)) = text.char_indices().nth(characters_max) else {
        return (text.to_owned(), false);
    };
    let text = &text[..end];
    let line = text.rfind('\n').filter(|at| *at > end - end / 50);
    (text[..line.unwrap_or(end)].trim_end().to_owned(), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as(content_type: &str, body: &str) -> PageContent {
        let content_type = Some(content_type).filter(|kind| !kind.is_empty());
        let answer = FetchedPage {
            url: "https://pages.example/a",
            status: 200,
            content_type,
            body: body.as_bytes(),
        };
        read(&answer, Format::Markdown)
    }

    #[track_caller]
    fn check(content_type: &str, body: &str, expected: Option<&str>) {
        assert_eq!(
            read_as(content_type, body).content.as_deref(),
            expected,
            "{content_type}"
        );
    }

    #[test]
    fn plain_text_is_no_markdown() {
        let read = read_as("text/plain", "a <i>b</i>");
        assert_eq!(
            (read.content.as_deref(), read.format),
            (Some("a <i>b</i>"), Format::Text)
        );
        assert_eq!(read_as("text/css", "a").format, Format::Markdown);
    }

    #[test]
    fn a_body_is_what_its_type_says_or_what_it_looks_like() {
        check("text/plain", "a *b*", Some("a *b*"));
        check("application/ld+json", "{}", Some("```json\n{}\n```"));
        check("application/rss+xml", "<rss/>", Some("```xml\n<rss/>\n```"));
        check(
            "application/xml",
            "<?xml version='1.0'?><html><body><p>a</p></body></html>",
            Some("a"),
        );
        check("", "<p>a</p>", Some("a"));
        check("", "%PDF-1.7", None);
        check("text/plain", "a\0b", None);
        check("image/svg+xml", "<svg/>", None);
        check("application/zip", "PK", None);
        check("application/json", "```", Some("````json\n```\n````"));
    }

    #[test]
    fn pages_that_hide_their_text_are_read_all_the_same() {
        let posts = "<body><noscript><p>What a reader without scripts is shown.</p></noscript>";
        check(
            "text/html",
            posts,
            Some("What a reader without scripts is shown."),
        );
        let body = "Sixty words of an article that its page shows to scripts alone, ".repeat(6);
        let state = format!(
            "<script type='application/ld+json'>{{\"@type\":\"NewsArticle\",\"articleBody\":\"{body}\"}}</script>"
        );
        check("text/html", &state, Some(body.trim()));
    }

    #[test]
    fn a_page_that_needs_a_browser_is_told_from_one_that_is_short() {
        let reason = |status, body: &str| {
            let answer = FetchedPage {
                url: "https://pages.example/",
                status,
                content_type: Some("text/html"),
                body: body.as_bytes(),
            };
            read(&answer, Format::Text).needs_browser
        };
        assert_eq!(
            reason(200, "<div id=root></div><script>go()</script>"),
            Some(Reason::EmptyMount)
        );
        assert_eq!(
            reason(200, "<app-root></app-root>"),
            Some(Reason::EmptyMount)
        );
        assert_eq!(
            reason(200, "<body><noscript>Please enable JavaScript</noscript>"),
            Some(Reason::AsksForScripts)
        );
        assert_eq!(
            reason(200, "<frameset><frame src=a></frameset>"),
            Some(Reason::Frames)
        );
        assert_eq!(
            reason(200, &format!("<p>hi<script>{}</script>", "x".repeat(5000))),
            Some(Reason::ScriptsAlone)
        );
        assert_eq!(
            reason(403, "<script src=/cdn-cgi/challenge-platform/x></script>"),
            Some(Reason::Challenge)
        );
        assert_eq!(reason(404, "<p>There is no such page"), None);
        let long = format!(
            "<div id=root><p>{}</div><script>{}</script>",
            "word ".repeat(80),
            "x".repeat(50_000)
        );
        assert_eq!(reason(200, &long), None);
    }

    #[test]
    fn where_a_page_sends_its_reader_is_told() {
        let refresh = |content: &str| {
            read_as(
                "text/html",
                &format!("<meta http-equiv=Refresh content=\"{content}\">"),
            )
            .refresh
        };
        assert_eq!(
            refresh("0; URL='/b'"),
            Some((0, "https://pages.example/b".to_owned()))
        );
        assert_eq!(
            refresh("5,url=c"),
            Some((5, "https://pages.example/c".to_owned()))
        );
        assert_eq!(
            refresh("1.5; url=//other.example/"),
            Some((1, "https://other.example/".to_owned()))
        );
        assert_eq!(refresh("300"), None);
        assert_eq!(refresh("0; url=javascript:alert(1)"), None);
    }

    #[test]
    fn a_title_is_the_heading_that_another_place_agrees_with() {
        let title = |page: &str| read_as("text/html", page).title;
        assert_eq!(
            title("<title>A walk | Site</title><h1>A walk</h1>").as_deref(),
            Some("A walk")
        );
        let site =
            "<title>A walk - Site</title><meta property=og:site_name content=Site><h1>Welcome</h1>";
        assert_eq!(title(site).as_deref(), Some("A walk"));
        assert_eq!(
            title("<title>T</title><meta property=og:title content='Other words'><h1>Site</h1>")
                .as_deref(),
            Some("Other words")
        );
        assert_eq!(title("<h1>Alone</h1>").as_deref(), Some("Alone"));
        assert_eq!(title("<h2>Second</h2>").as_deref(), Some("Second"));
        assert_eq!(title("<p>None"), None);
    }
}
