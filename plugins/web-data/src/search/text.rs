//! Titles and snippets as plain text: providers write them with markup, with entities, or as they are.
//!
//! Pure. Surprising: a `<` that begins no element of HTML is text. Snippets are about code too, and some providers send them
//! unescaped: `Vec<T>` must not become `Vec`.

use crate::parse;
use crate::source;
use crate::tag::Tag;
use crate::tree::{self, ROOT};

/// Bytes of one text that are read: more than a description's characters take.
const TEXT_BYTES_MAX: usize = 64 * 1024;
/// Elements without a part in extraction that snippets have.
const OTHERS: [&str; 14] = [
    "acronym", "bdi", "bdo", "big", "blink", "canvas", "dfn", "font", "marquee", "nobr", "rt",
    "ruby", "svg", "wbr",
];

/// The text that a reader would see, its white space collapsed.
pub(super) fn plain(written: &str) -> String {
    let written = &written[..written.floor_char_boundary(TEXT_BYTES_MAX)];
    if written.contains(['<', '&']) {
        let tree = parse::parse(source::reduce(&shielded(written)).html);
        return tree.text_of(ROOT, TEXT_BYTES_MAX).trim().to_owned();
    }
    let mut text = String::with_capacity(written.len());
    tree::collapse_into(written.trim(), &mut text);
    text
}

/// The same with each `<` escaped that begins no element.
fn shielded(written: &str) -> String {
    let mut shielded = String::with_capacity(written.len() + 16);
    for (number, piece) in written.split('<').enumerate() {
        match number {
            0 => {}
            _ if is_markup(piece) => shielded.push('<'),
            _ => shielded.push_str("&lt;"),
        }
        shielded.push_str(piece);
    }
    shielded
}

/// Whether what stands behind a `<` is the rest of a tag or a comment. A name is in one case; of one letter it is in lower case,
/// because in upper case it is a type.
fn is_markup(rest: &str) -> bool {
    let name = rest.strip_prefix('/').unwrap_or(rest);
    let name = &name[..name
        .find(|c: char| !c.is_ascii_alphanumeric())
        .unwrap_or(name.len())];
    let lower = name.to_ascii_lowercase();
    let is_in_one_case = name == lower || name.len() > 1 && name == name.to_ascii_uppercase();
    let is_known = !matches!(Tag::of(&lower), Tag::None | Tag::Other) || OTHERS.contains(&&*lower);
    rest.starts_with("!--") || is_in_one_case && is_known && rest.contains('>')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(written: &str, expected: &str) {
        assert_eq!(plain(written), expected);
    }

    #[test]
    fn markup_goes_and_its_text_stays() {
        check("A <strong>bold</strong> word", "A bold word");
        check(
            "<p>one<BR>two</p> <a href=\"x>y\">three</a>",
            "one two three",
        );
        check(
            "<script>alert(1)</script>safe<!-- not said --><style>p {}</style>",
            "safe",
        );
        check("<img src=x onerror=alert(1)>picture", "picture");
        check("cut in the <stro", "cut in the <stro");
        check("  many \n spaces\t ", "many spaces");
        check("", "");
    }

    #[test]
    fn entities_are_decoded_once() {
        check(
            "Fish &amp; chips &#39;now&#x27; &eacute;",
            "Fish & chips 'now' é",
        );
        check("&amp;lt;b&amp;gt;", "&lt;b&gt;");
        check("&lt;b&gt; is a tag", "<b> is a tag");
        check("AT&T &unknown; 100 &", "AT&T &unknown; 100 &");
    }

    #[test]
    fn what_is_no_element_is_text() {
        check("if a < b && c > d", "if a < b && c > d");
        check(
            "Vec<T> and HashMap<String, Option<i32>>",
            "Vec<T> and HashMap<String, Option<i32>>",
        );
        check("Box<B> #include <stdio.h>", "Box<B> #include <stdio.h>");
        check("<my-element>x</my-element>", "<my-element>x</my-element>");
        check("1 <2 <= 3", "1 <2 <= 3");
    }

    #[test]
    fn a_long_text_is_read_in_part_and_without_harm() {
        assert!(plain(&"<b>".repeat(20_000)).is_empty());
        assert!(plain(&"é&amp;".repeat(100_000)).len() <= TEXT_BYTES_MAX);
        assert!(plain(&"<".repeat(100_000)).starts_with("<<<"));
    }
}
