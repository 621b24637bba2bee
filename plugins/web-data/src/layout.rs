//! A second reader, for tests: the words of a page as a browser lays them out, by another tree and other rules.
//!
//! It knows what browsers do without a page's own styles: inline elements join what stands beside them; blocks, cells and
//! line breaks part it. Buttons part it too: they have a box of their own, whatever `innerText` says. It was held against the `innerText` of Chromium on 50 pages of other people without their styles and
//! scripts.

use std::collections::HashSet;

use html5ever::tendril::TendrilSink;
use html5ever::{ParseOpts, parse_document};
use markup5ever_rcdom::{Handle, NodeData, RcDom};

/// What a browser starts a line for, or a cell.
const PARTING: &str = "address article aside blockquote body br button caption center dd details dialog dir div dl dt fieldset \
    figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main menu nav ol optgroup option p \
    plaintext pre search section summary table tbody td tfoot th thead tr ul xmp";
/// What it does not lay out.
const UNSEEN: &str = "area audio base basefont canvas datalist embed head iframe input link meta noembed noframes object param \
    rp script source style template textarea title track video";

/// The words of a page in their order.
pub(crate) fn words(html: &str) -> Vec<String> {
    let mut options = ParseOpts::default();
    options.tree_builder.scripting_enabled = false;
    let page = parse_document(RcDom::default(), options).one(html);
    let mut text = String::new();
    read(&page.document, &mut text);
    text.split_whitespace().map(str::to_owned).collect()
}

fn read(node: &Handle, text: &mut String) {
    match &node.data {
        NodeData::Text { contents } => text.push_str(&contents.borrow()),
        NodeData::Document => node
            .children
            .borrow()
            .iter()
            .for_each(|child| read(child, text)),
        NodeData::Element { name, attrs, .. } => {
            let name = &*name.local;
            let has = |attribute: &str| {
                attrs
                    .borrow()
                    .iter()
                    .any(|given| &*given.name.local == attribute)
            };
            if is_one_of(name, UNSEEN) || has("hidden") || name == "dialog" && !has("open") {
                return;
            }
            let parts = is_one_of(name, PARTING);
            text.extend(parts.then_some('\n'));
            for child in node.children.borrow().iter() {
                let is_summary = matches!(&child.data, NodeData::Element { name, .. } if &*name.local == "summary");
                if name != "details" || has("open") || is_summary {
                    read(child, text);
                }
            }
            text.extend(parts.then_some('\n'));
        }
        NodeData::Doctype { .. }
        | NodeData::Comment { .. }
        | NodeData::ProcessingInstruction { .. } => {}
    }
}

fn is_one_of(name: &str, names: &str) -> bool {
    names.split(' ').any(|known| known == name)
}

/// The first word of `found` that is not among those of the page behind the one before it. Signs do not count: in Markdown
/// they are marks.
pub(crate) fn first_strange(found: &[String], page: &[String]) -> Option<String> {
    let plain = |word: &String| {
        word.chars()
            .filter(|c| c.is_alphanumeric())
            .collect::<String>()
    };
    let known: HashSet<String> = page.iter().map(plain).collect();
    let mut rest = page.iter().map(plain);
    let mut found = found.iter().map(plain).filter(|word| !word.is_empty());
    found.find(|word| !known.contains(word) || !rest.any(|next| next == *word))
}

#[test]
fn words_are_parted_as_browsers_part_them() {
    #[track_caller]
    fn check(html: &str, expected: &str) {
        assert_eq!(words(html).join(" "), expected, "{html}");
    }
    check("<b>bold</b> <i>italic</i>x<code>y</code>", "bold italicxy");
    check("a<div>b</div>c<br>d<hr>e<p>f</p>g", "a b c d e f g");
    check("<table><tr><td>a</td><td>b</td></tr></table>c", "a b c");
    check("<ul><li>a<li>b</ul><span>c</span>d<wbr>e", "a b cde");
    check(
        "<title>t</title>a<script>s</script>b<p hidden>c</p><details><summary>d</summary>e</details>",
        "ab d",
    );
    check("a<!-- c -->b&nbsp;c", "ab c");
}
