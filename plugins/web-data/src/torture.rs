//! One page of everything that Markdown has trouble with, and how it is written.
//!
//! All of its `<main>` is kept here: what is content is not this test's subject. The expected text was read before it was
//! kept.

use crate::markdown::{self, Style};
use crate::tag::Tag;
use crate::tree::{ROOT, Step};
use crate::{address, html, parse, source};

const PAGE: &str = include_str!("../torture/page.html");

enum WrittenAs {
    As(Style),
    Html,
}

fn written(how: &WrittenAs) -> String {
    let tree = parse::parse(source::reduce(PAGE).html);
    let (main, _) = tree
        .elements(ROOT)
        .find(|(_, element)| element.tag == Tag::Main)
        .expect("the page has a main");
    let mut kept = vec![false; tree.nodes.len()];
    for step in tree.walk(main) {
        if let Step::Enter(id) = step {
            kept[id as usize] = true;
        }
    }
    let mut above = main;
    while let Some(kept) = kept.get_mut(above as usize) {
        *kept = true;
        above = tree.parent(above);
    }
    let base = address::base("https://pages.example/a/b", Some("/docs/"));
    match how {
        WrittenAs::As(style) => markdown::write(&tree, &kept, base.as_ref(), *style, usize::MAX),
        WrittenAs::Html => html::write(&tree, &kept, base.as_ref(), usize::MAX).0,
    }
}

#[test]
fn markdown_is_what_was_read() {
    assert_eq!(
        written(&WrittenAs::As(Style::Markdown)),
        include_str!("../torture/expected.md").trim_end()
    );
}

#[test]
fn text_is_what_was_read() {
    assert_eq!(
        written(&WrittenAs::As(Style::Text)),
        include_str!("../torture/expected.txt").trim_end()
    );
}

#[test]
fn html_has_nothing_that_runs_and_no_relative_address() {
    let html = written(&WrittenAs::Html);
    for gone in [
        "javascript:",
        "data:",
        "<script",
        "style=",
        "src=\"/",
        "href=\"one",
        "<nav",
    ] {
        assert!(!html.contains(gone), "{gone}: {html}");
    }
    for there in [
        "<a href=\"https://pages.example/docs/one.html\">relative link</a>",
        "a &lt;tag&gt; and &amp;amp; itself",
        "<td colspan=\"2\">wide</td>",
        "<ol start=\"3\">",
        "<img src=\"https://pages.example/lazy.jpg\" alt=\"A lazy one\">",
        "<pre class=\"language-shell\">",
        "First line<br>second line<br><br>after a gap",
        "<pre class=\"language-python\">print(\"x\")\nprint(\"y\")</pre>",
    ] {
        assert!(html.contains(there), "{there}: {html}");
    }
}
