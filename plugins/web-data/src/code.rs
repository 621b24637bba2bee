//! Preformatted text: its characters, its language, and its fence.
//!
//! It must know nothing of the rest of a page.

use crate::tag::Tag;
use crate::tree::{Id, NONE, Step, Tree};

/// Classes of the numbers that stand beside lines of code.
const GUTTERS: [&str; 6] = [
    "gutter",
    "lineno",
    "linenos",
    "line-numbers-rows",
    "hljs-ln-numbers",
    "linenodiv",
];
/// What stands before a language's name in a class.
const PREFIXES: [&str; 6] = [
    "language-",
    "lang-",
    "highlight-source-",
    "highlight-text-",
    "highlight-",
    "brush:",
];
/// Names behind such prefixes that are none of a language.
const NO_LANGUAGES: [&str; 7] = [
    "default",
    "none",
    "plaintext",
    "source",
    "wrapper",
    "text",
    "container",
];

/// The characters of a preformatted element as they stand.
pub(crate) fn text(tree: &Tree, id: Id) -> String {
    let mut text = String::new();
    let mut is_parted = false;
    let mut walk = tree.walk(id);
    while let Some(step) = walk.next() {
        let id = match step {
            Step::Enter(id) => id,
            Step::Leave(id) => {
                is_parted |= is_line(tree.tag(id));
                continue;
            }
        };
        let classes = tree.attribute(id, "class").unwrap_or_default();
        if classes
            .split_whitespace()
            .any(|class| GUTTERS.contains(&class))
            || tree.tag(id).is_unread()
        {
            walk.skip_children();
            continue;
        }
        let tag = tree.tag(id);
        let piece = tree.text(id).unwrap_or_default();
        is_parted |= is_line(tag);
        if tag == Tag::Br {
            text.push('\n');
        } else if !piece.is_empty() {
            if std::mem::take(&mut is_parted) && !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(piece);
        }
    }
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

/// Whether an element in preformatted text is a line of its own.
fn is_line(tag: Tag) -> bool {
    matches!(tag, Tag::Div | Tag::P | Tag::Li | Tag::Tr)
}

/// The language that the element, its `<code>` or an element around it names.
pub(crate) fn language(tree: &Tree, id: Id) -> Option<&str> {
    let inner = tree
        .children(id)
        .find(|child| tree.tag(*child) == Tag::Code)
        .unwrap_or(NONE);
    let around = tree.parent(id);
    let further = tree
        .nodes
        .get(around as usize)
        .map_or(NONE, |node| node.parent);
    [inner, id, around, further].into_iter().find_map(|id| {
        let element = tree.element(id)?;
        let declared = element
            .attribute("data-lang")
            .or_else(|| element.attribute("data-language"));
        let named = || {
            element
                .attribute("class")?
                .split_whitespace()
                .find_map(of_class)
        };
        declared.filter(|name| is_name(name)).or_else(named)
    })
}

fn of_class(class: &str) -> Option<&str> {
    let name = PREFIXES
        .iter()
        .find_map(|prefix| class.strip_prefix(prefix))?;
    is_name(name).then_some(name)
}

fn is_name(name: &str) -> bool {
    let is_plain = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"+#-_.".contains(&byte));
    !name.is_empty() && name.len() <= 24 && is_plain && !NO_LANGUAGES.contains(&name)
}

/// Code in a fence that nothing in it ends.
pub(crate) fn fenced(text: &str, language: Option<&str>) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}{}\n{text}\n{fence}", language.unwrap_or_default())
}

/// Code in running text.
pub(crate) fn inline(text: &str) -> String {
    let text = text.replace('\n', " ");
    let run = longest_run(&text);
    let fence = "`".repeat(if run == 0 { 1 } else { run + 1 });
    let space = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{space}{text}{space}{fence}")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default()
}
