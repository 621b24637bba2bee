//! Hostile markup, judged by a real parser: html5ever reads what is passed on, as a browser would in each place that a page
//! may put it, and finds no script, handler, code or foreign frame.

use std::fmt::Write as _;

use arbtest::arbitrary::{Arbitrary, Result, Unstructured};
use html5ever::driver::ParseOpts;
use html5ever::tendril::TendrilSink;
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{LocalName, QualName, local_name, ns, parse_document, parse_fragment};
use markup5ever_rcdom::{Handle, NodeData, RcDom};

use crate::markup::clean;
use crate::networks::{self, Network};

const PIECES: &str = include_str!("hostile.txt");
/// Pieces that the set must have.
const PIECES_MIN: usize = 60;
/// Elements that a page may put the markup into.
const CONTEXTS: [LocalName; 6] = [
    local_name!("div"),
    local_name!("body"),
    local_name!("p"),
    local_name!("td"),
    local_name!("select"),
    local_name!("template"),
];

fn pieces() -> impl Iterator<Item = String> {
    let lines = PIECES
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| {
        line.replace("\\n", "\n")
            .replace("\\t", "\t")
            .replace("\\0", "\0")
    })
}

/// Reads markup as each network's, and judges what is passed on.
fn judge(html: &str) {
    for network in networks::ALL {
        let Some(rules) = &network.markup else {
            continue;
        };
        let clean = clean(html, rules, network.pictures);
        for (document, place) in documents(&clean.html) {
            let mut found = String::new();
            walk(&document, network, &mut found);
            assert!(
                found.is_empty(),
                "{}: {found} in {place} of {:?} from {html:?}",
                network.name,
                clean.html
            );
        }
        for script in &clean.scripts {
            let host = script
                .src
                .strip_prefix("https://")
                .and_then(|rest| rest.split('/').next());
            let known = rules
                .scripts
                .iter()
                .any(|known| known.split('/').nth(2) == host);
            assert!(
                known && !script.src.contains(['<', '>', '"', '\'']),
                "{script:?} from {html:?}"
            );
        }
    }
}

/// The trees of a piece of markup: as a document and as a fragment, for a browser with scripts and one without.
fn documents(html: &str) -> Vec<(Handle, String)> {
    let mut all = Vec::new();
    for scripting_enabled in [true, false] {
        let options = || ParseOpts {
            tree_builder: TreeBuilderOpts {
                scripting_enabled,
                ..Default::default()
            },
            ..Default::default()
        };
        let dom = parse_document(RcDom::default(), options()).one(html);
        all.push((
            dom.document,
            format!("a document, scripts {scripting_enabled}"),
        ));
        for context in CONTEXTS {
            let name = QualName::new(None, ns!(html), context.clone());
            let dom = parse_fragment(
                RcDom::default(),
                options(),
                name,
                Vec::new(),
                scripting_enabled,
            )
            .one(html);
            all.push((
                dom.document,
                format!("<{context}>, scripts {scripting_enabled}"),
            ));
        }
    }
    all
}

/// Says what a tree has that it may not have.
fn walk(node: &Handle, network: &Network, found: &mut String) {
    match &node.data {
        NodeData::Element { name, attrs, .. } => {
            let element = &*name.local;
            let bad = [
                "script",
                "style",
                "svg",
                "math",
                "object",
                "embed",
                "applet",
                "form",
                "input",
                "button",
                "textarea",
                "select",
                "option",
                "meta",
                "link",
                "base",
                "template",
                "noscript",
                "video",
                "audio",
                "source",
                "frame",
                "frameset",
                "xmp",
                "plaintext",
                "title",
                "noembed",
                "noframes",
                "marquee",
                "portal",
                "dialog",
                "animate",
            ];
            if bad.contains(&element) || name.ns != ns!(html) {
                write!(found, "<{element}> ").expect("text");
            }
            for attribute in attrs.borrow().iter() {
                let (key, value) = (&*attribute.name.local, &*attribute.value);
                if !is_harmless(element, key, value, network) {
                    write!(found, "{element}[{key}={value:?}] ").expect("text");
                }
            }
        }
        NodeData::Comment { contents } => write!(found, "<!--{contents}--> ").expect("text"),
        NodeData::ProcessingInstruction { .. } | NodeData::Doctype { .. } => {
            found.push_str("a declaration ");
        }
        NodeData::Document | NodeData::Text { .. } => {}
    }
    if let NodeData::Element {
        template_contents, ..
    } = &node.data
    {
        template_contents
            .borrow()
            .iter()
            .for_each(|inside| walk(inside, network, found));
    }
    node.children
        .borrow()
        .iter()
        .for_each(|child| walk(child, network, found));
}

fn is_harmless(element: &str, key: &str, value: &str, network: &Network) -> bool {
    let squeezed: String = value
        .chars()
        .filter(|c| !c.is_whitespace() && !c.is_control())
        .flat_map(char::to_lowercase)
        .collect();
    let is_code = ["javascript:", "vbscript:", "data:"]
        .iter()
        .any(|word| squeezed.contains(word));
    let host = || {
        value
            .strip_prefix("https://")
            .and_then(|rest| rest.split('/').next())
            .unwrap_or_default()
    };
    let fits = match (element, key) {
        (
            _,
            "style" | "id" | "name" | "srcdoc" | "srcset" | "sandbox" | "action" | "formaction"
            | "background",
        ) => false,
        (_, key) if key.starts_with("on") || key.contains(':') => false,
        ("iframe", "src") => {
            let rules = network.markup.as_ref().expect("it has markup");
            rules
                .frames
                .iter()
                .any(|known| known.split('/').nth(2) == Some(host()))
        }
        ("img", "src") => network.has_pictures(host()),
        (_, "src") => false,
        (_, "href" | "cite") => value.starts_with("https://"),
        _ => true,
    };
    fits && !is_code
}

#[test]
fn nothing_of_the_hostile_set_is_left() {
    assert!(pieces().count() >= PIECES_MIN);
    for piece in pieces() {
        judge(&piece);
        judge(&format!("<blockquote><p>a</p>{piece}</blockquote>"));
        judge(&format!(
            "<a title='{piece}' href=\"{piece}\" data-embed-x='{piece}' class=\"{piece}\">b</a>"
        ));
    }
}

#[test]
fn nothing_is_left_of_the_whole_set_at_once() {
    let all: Vec<String> = pieces().collect();
    judge(&all.concat());
    let turned: Vec<String> = all.iter().rev().cloned().collect();
    judge(&turned.join("<p>"));
}

/// Text that no list has: pieces cut, joined, doubled and strewn with what parsers trip over.
struct Mutated(String);

impl<'a> Arbitrary<'a> for Mutated {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        const STRAY: [&str; 24] = [
            "<",
            ">",
            "\"",
            "'",
            "`",
            "=",
            "/",
            "&",
            "&#",
            "&#x6a;",
            "\0",
            "\n",
            "<!--",
            "-->",
            "]]>",
            "<![CDATA[",
            "<svg>",
            "</p>",
            "<math>",
            "<template>",
            "</style>",
            "<iframe src=",
            " onload=x ",
            "<p ",
        ];
        let all: Vec<String> = pieces().collect();
        let mut text = String::new();
        for _ in 0..u.int_in_range(1..=5)? {
            let piece: Vec<char> = u.choose(&all)?.chars().collect();
            let from = u.int_in_range(0..=piece.len())?;
            let to = u.int_in_range(from..=piece.len())?;
            text.extend(&piece[from..to]);
            if u.ratio(2, 3)? {
                text.push_str(u.choose(&STRAY)?);
            }
            if u.ratio(1, 4)? {
                text.push(u.arbitrary()?);
            }
        }
        Ok(Self(text))
    }
}

#[test]
fn nothing_is_left_of_mutated_markup() {
    arbtest::arbtest(|u| {
        let Mutated(text) = u.arbitrary()?;
        judge(&text);
        Ok(())
    })
    .budget_ms(2000);
}
