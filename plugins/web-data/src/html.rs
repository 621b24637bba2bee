//! Writes content as HTML that may stand in any page: a few elements, a few attributes, absolute addresses.
//!
//! It must know nothing of what was chosen. What is not on the lists here is left out, its text stays.

use url::Url;

use crate::address;
use crate::code;
use crate::tag::Tag;
use crate::tree::{Id, ROOT, Step, Tree};

/// Writes the kept nodes, until about `bytes_max` are written.
pub(crate) fn write(tree: &Tree, kept: &[bool], base: Option<&Url>, bytes_max: usize) -> String {
    let mut out = String::new();
    let mut open: Vec<Id> = Vec::new();
    let mut walk = tree.walk(ROOT);
    while let Some(step) = walk.next() {
        match step {
            Step::Enter(id) if tree.tag(id) == Tag::Br && !out.is_empty() => begin(&mut out, tree, id, base),
            Step::Enter(id) if !kept[id as usize] => {
                // An empty cell keeps its row in shape.
                let tag = tree.tag(id);
                if matches!(tag, Tag::Td | Tag::Th) && !open.is_empty() {
                    begin(&mut out, tree, id, base);
                    end(&mut out, tag);
                }
                walk.skip_children();
            }
            Step::Enter(id) if tree.tag(id).is_preformatted() => {
                begin(&mut out, tree, id, base);
                escape(&mut out, &code::text(tree, id));
                end(&mut out, tree.tag(id));
                walk.skip_children();
            }
            Step::Enter(id) if tree.tag(id) == Tag::Img && !has_address(tree, id, base) => {}
            Step::Enter(id) => match tree.text(id) {
                Some(text) => escape(&mut out, text),
                None if is_written(tree.tag(id)) && out.len() <= bytes_max => {
                    begin(&mut out, tree, id, base);
                    open.push(id);
                }
                None => {}
            },
            Step::Leave(id) if open.last() == Some(&id) => {
                open.pop();
                end(&mut out, tree.tag(id));
            }
            Step::Leave(_) => {}
        }
        if out.len() > bytes_max {
            break;
        }
    }
    for id in open.into_iter().rev() {
        end(&mut out, tree.tag(id));
    }
    out.trim().to_owned()
}

fn has_address(tree: &Tree, id: Id, base: Option<&Url>) -> bool {
    address::picture(base, |name| tree.attribute(id, name)).is_some()
}

fn is_written(tag: Tag) -> bool {
    tag.heading().is_some()
        || matches!(
            tag,
            Tag::A
                | Tag::Abbr
                | Tag::B
                | Tag::Blockquote
                | Tag::Caption
                | Tag::Cite
                | Tag::Code
                | Tag::Dd
                | Tag::Del
                | Tag::Dl
        )
        || matches!(
            tag,
            Tag::Dt | Tag::Em | Tag::Figcaption | Tag::Figure | Tag::I | Tag::Img | Tag::Ins | Tag::Kbd | Tag::Li
        )
        || matches!(
            tag,
            Tag::Mark | Tag::Ol | Tag::P | Tag::Pre | Tag::Q | Tag::S | Tag::Samp | Tag::Strike | Tag::Strong
        )
        || matches!(
            tag,
            Tag::Sub | Tag::Sup | Tag::Table | Tag::Tbody | Tag::Td | Tag::Tfoot | Tag::Th | Tag::Thead | Tag::Tr
        )
        || matches!(tag, Tag::Tt | Tag::U | Tag::Ul | Tag::Var | Tag::Div | Tag::Section | Tag::Article)
}

fn begin(out: &mut String, tree: &Tree, id: Id, base: Option<&Url>) {
    let tag = tree.tag(id);
    out.push('<');
    out.push_str(tag.name());
    let mut attribute = |name: &str, value: &str| {
        out.push(' ');
        out.push_str(name);
        out.push_str("=\"");
        escape_quoted(out, value);
        out.push('"');
    };
    let written = |name| tree.attribute(id, name).map(str::trim).filter(|value| !value.is_empty());
    match tag {
        Tag::A => {
            if let Some(address) = written("href").and_then(|href| address::link(base, href)) {
                attribute("href", &address);
            }
        }
        Tag::Img => {
            if let Some(address) = address::picture(base, |name| tree.attribute(id, name)) {
                attribute("src", &address);
            }
            attribute("alt", written("alt").unwrap_or_default());
        }
        Tag::Td | Tag::Th => {
            for name in ["colspan", "rowspan"] {
                if let Some(span) = written(name).and_then(|value| value.parse::<u16>().ok()).filter(|span| *span > 1) {
                    attribute(name, &span.min(1000).to_string());
                }
            }
        }
        Tag::Ol => {
            if let Some(start) = written("start").and_then(|value| value.parse::<u32>().ok()) {
                attribute("start", &start.to_string());
            }
        }
        Tag::Pre => {
            if let Some(language) = code::language(tree, id) {
                attribute("class", &format!("language-{language}"));
            }
        }
        _ => {}
    }
    out.push('>');
}

fn end(out: &mut String, tag: Tag) {
    if !matches!(tag, Tag::Img | Tag::Br) {
        out.push_str("</");
        out.push_str(tag.name());
        out.push('>');
    }
}

fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
}

fn escape_quoted(out: &mut String, value: &str) {
    for c in value.chars() {
        match c {
            '"' => out.push_str("&quot;"),
            c => escape(out, c.encode_utf8(&mut [0; 4])),
        }
    }
}

/// Text as one preformatted element.
pub(crate) fn preformatted(text: &str) -> String {
    around("pre", text)
}

/// Text as one paragraph.
pub(crate) fn paragraph(text: &str) -> String {
    around("p", text)
}

fn around(name: &str, text: &str) -> String {
    let mut out = format!("<{name}>");
    escape(&mut out, text);
    out.push_str("</");
    out.push_str(name);
    out.push('>');
    out
}
