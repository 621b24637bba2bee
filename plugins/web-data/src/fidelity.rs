//! What is written of a page against what a browser shows of it: its words, and nothing that is live.
//!
//! Pages are the project's own and made up ones. What is written is read by other people's parsers.

use arbtest::arbitrary::{Result, Unstructured};
use pulldown_cmark::{Event, Options, Parser, Tag, html};

use crate::Format;
use crate::layout::{first_strange, words};
use crate::markdown::{self, Style};
use crate::page::{self, FetchedPage};
use crate::tree::{NONE, ROOT, Step};
use crate::{corpus, html as html_writer, layout, parse, source, tag};

const FORMATS: [Format; 3] = [Format::Markdown, Format::Text, Format::Html];

fn content(page: &str, format: Format) -> String {
    let answer = FetchedPage {
        url: "https://pages.example/a/page",
        status: 200,
        content_type: Some("text/html; charset=utf-8"),
        body: page.as_bytes(),
    };
    page::read(&answer, format)
        .content
        .expect("HTML has content")
}

fn parser(markdown: &str) -> Parser<'_> {
    Parser::new_ext(
        markdown,
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH,
    )
}

/// The words of content, as whoever gets it reads them.
fn words_of(content: &str, format: Format) -> Vec<String> {
    match format {
        Format::Html => words(content),
        Format::Text => content
            .split_whitespace()
            .filter(|word| !is_marker(word))
            .map(str::to_owned)
            .collect(),
        Format::Markdown => {
            let mut written = String::new();
            html::push_html(&mut written, parser(content));
            words(&written)
        }
    }
}

/// What stands before an item of an ordered list in plain text.
fn is_marker(word: &str) -> bool {
    word.strip_suffix('.')
        .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[track_caller]
fn check_words(page: &str) {
    let shown = words(page);
    for format in FORMATS {
        let content = content(page, format);
        let strange = first_strange(&words_of(&content, format), &shown);
        assert_eq!(strange, None, "{format:?} of {page}\nis {content}");
    }
}

/// What of Markdown is markup beyond Markdown: no more than line breaks in cells.
#[track_caller]
fn check_dead(page: &str) {
    let content = content(page, Format::Markdown);
    for event in parser(&content) {
        match event {
            Event::Html(live) | Event::InlineHtml(live) => {
                assert_eq!(&*live, "<br>", "of {page}\nis {content}");
            }
            Event::Start(Tag::Link { dest_url: to, .. } | Tag::Image { dest_url: to, .. }) => {
                assert!(
                    ["http:", "https:", "mailto:"]
                        .iter()
                        .any(|scheme| to.starts_with(scheme)),
                    "{to} of {page}"
                );
            }
            _ => {}
        }
    }
}

#[test]
fn white_space_between_elements_is_written() {
    #[track_caller]
    fn check(page: &str, markdown: &str, text: &str) {
        assert_eq!(
            (
                &*content(page, Format::Markdown),
                &*content(page, Format::Text)
            ),
            (markdown, text),
            "{page}"
        );
        check_words(page);
    }
    check(
        "<p><b>bold</b> <i>italic</i></p>",
        "**bold** *italic*",
        "bold italic",
    );
    check(
        "<p><code><span>pip</span> <span>install</span></code>",
        "`pip install`",
        "pip install",
    );
    check(
        "<p><a href=/x>one</a>\n<a href=/y>two</a>",
        "[one](https://pages.example/x) [two](https://pages.example/y)",
        "one two",
    );
    check("<p>a<b> </b>b <i></i> c", "a b c", "a b c");
    check("<p>a<span>b</span>c", "abc", "abc");
    check(
        "<p><code>a<a href=/x>b</a><img src=c>d</code>",
        "`abd`",
        "abd",
    );
    check(
        "one<hr>two<main>three</main>four",
        "one\n\n---\n\ntwo\n\nthree\n\nfour",
        "one\n\ntwo\n\nthree\n\nfour",
    );
    check("<main>one<b><hr></b>two", "one\n\n---\n\ntwo", "one\n\ntwo");
    check("<main>one<a href=/x><br></a>two", "one  \ntwo", "one\ntwo");
    check(
        "<main><code>a`</code><a><code>`b</code></a>c",
        "```a``b```c",
        "a``bc",
    );
    check(
        "<main><ol><li>a</li><p>b</p><li>c</ol>",
        "1. a\n\nb\n\n2. c",
        "1. a\n\nb\n\n2. c",
    );
    check("<pre>a<div>b</div>c</pre>", "```\na\nb\nc\n```", "a\nb\nc");
    check(
        "<table><tr><td>a<br>b<td>&lt;br&gt;c</table>",
        "| a<br>b | \\<br>c |\n| - | - |",
        "a b | <br>c",
    );
}

/// Each is written again with the next, so they are united up to a bound.
#[test]
fn pieces_of_code_that_touch_are_united_within_a_bound() {
    let united = format!("`{}`a", "a".repeat(256));
    let page = format!("<main><p>{}", "<code>a</code>".repeat(3 * 257));
    assert_eq!(content(&page, Format::Markdown), united.repeat(3));
    let fenced = format!(
        "<main><p><code>{}</code><code>&lt;br&gt;`*</code>",
        "a".repeat(256)
    );
    assert_eq!(
        content(&fenced, Format::Markdown),
        format!("`{}`\\<br>\\`\\*", "a".repeat(256))
    );
    check_dead(&page);
    check_dead(&fenced);
}

#[test]
fn what_stands_between_two_texts_parts_them_though_it_is_left_out() {
    let page = "<main>first<nav><a href=/1>Home</a></nav>second<form></form>third";
    let tree = parse::parse(source::reduce(page).html);
    let mut kept = vec![false; tree.nodes.len()];
    let mut walk = tree.walk(ROOT);
    while let Some(step) = walk.next() {
        match step {
            Step::Enter(id) if tree.tag(id) == tag::Tag::Nav => walk.skip_children(),
            Step::Enter(id) => {
                kept[id as usize] =
                    tree.text(id).is_some() || tree.nodes[id as usize].first != NONE;
            }
            Step::Leave(_) => {}
        }
    }
    for style in [Style::Markdown, Style::Text] {
        assert_eq!(
            markdown::write(&tree, &kept, None, style, usize::MAX),
            "first\n\nsecond\n\nthird"
        );
    }
    assert_eq!(
        html_writer::write(&tree, &kept, None, usize::MAX).0,
        "first<br>second<br>third"
    );
}

#[test]
fn the_words_of_pages_are_those_that_a_browser_shows() {
    for (_, page) in corpus::pages() {
        check_words(&page);
        check_dead(&page);
    }
}

#[test]
fn the_words_of_made_up_pages_are_those_that_a_browser_shows() {
    arbtest::arbtest(|u| {
        let mut page = String::from("<main>");
        let mut number = 0;
        for _ in 0..u.int_in_range(1..=12)? {
            element(u, &mut page, &mut number, 4)?;
        }
        check_words(&page);
        Ok(())
    })
    .budget_ms(1500);
}

/// Adds words, or an element with more of the same in it. No word is there twice.
fn element(
    u: &mut Unstructured<'_>,
    page: &mut String,
    number: &mut u32,
    levels: u32,
) -> Result<()> {
    const BESIDE: [&str; 9] = [
        "", "", " ", " ", "\n", "\t", "&nbsp;", "<!-- -->", "<b> </b>",
    ];
    const AROUND: [&str; 28] = [
        "b",
        "i",
        "em",
        "strong",
        "code",
        "span",
        "a href=/x",
        "del",
        "sup",
        "small",
        "kbd",
        "u",
        "p",
        "div",
        "ul><li",
        "h2",
        "blockquote",
        "section",
        "table><tr><td",
        "tr><td",
        "td",
        "li",
        "header",
        "dd",
        "center",
        "a",
        "fieldset",
        "ol><li",
    ];
    page.push_str(u.choose(&BESIDE)?);
    match u.int_in_range(0..=5)? {
        0 | 1 => {
            *number += 1;
            page.push_str(&format!("w{number}x"));
        }
        2 => page.push_str(u.choose(&[
            "<br>",
            "<hr>",
            "<img src=a.png>",
            "<wbr>",
            "<input>",
            "<div></div>",
        ])?),
        _ if levels > 0 => {
            let tags = u.choose(&AROUND)?;
            page.push_str(&format!("<{tags}>"));
            for _ in 0..u.int_in_range(0..=4)? {
                element(u, page, number, levels - 1)?;
            }
            for name in tags
                .split('>')
                .rev()
                .filter_map(|tag| tag.trim_start_matches('<').split(' ').next())
            {
                page.push_str(&format!("</{name}>"));
            }
        }
        _ => {}
    }
    page.push_str(u.choose(&BESIDE)?);
    Ok(())
}

#[test]
fn no_text_becomes_markup() {
    for page in [
        "<p>&lt;<i></i>img src=x onerror=alert(1)>",
        "<p>&lt;<span></span>/p><p>a &lt;<b>script</b>>",
        "<p><a href='mailto:a b<img src=x onerror=alert(1)>'>mail</a>",
        "<p><a href='mailto:a`b'>x</a> <code><img src=x></code><code>&lt;img src=x onerror=alert(1)></code>",
        "<p><a href='?`'>x</a> <code>&lt;img src=x onerror=alert(1)></code>",
        "<p>Look!<a href=/x>here</a>",
        "<table><tr><td><code>a\\|&lt;img src=x onerror=alert(1)></code><td>b</table>",
        "<table><tr><td><code>a|&lt;img src=x onerror=alert(1)></code><td>b</table>",
        "<xmp><img src=x onerror=alert(1)></xmp><listing>&lt;img></listing><plaintext><img src=x onerror=alert(1)>",
    ] {
        check_dead(page);
        check_words(page);
    }
    assert_eq!(
        content("<p>Look!<a href=/x>here</a>", Format::Markdown),
        "Look\\![here](https://pages.example/x)"
    );
    assert_eq!(
        content("<p>a &amp;<i></i>lt;b&gt; AT&amp;T", Format::Markdown),
        "a \\&lt;b> AT&T"
    );
    let html = content(
        "<xmp><i>a</i></xmp><listing>b</listing><plaintext></plaintext><p>c",
        Format::Html,
    );
    assert_eq!(
        html,
        "<pre>&lt;i&gt;a&lt;/i&gt;</pre><pre>b</pre><pre>&lt;/plaintext&gt;&lt;p&gt;c</pre>"
    );
}

#[test]
fn no_text_of_made_up_pages_becomes_markup() {
    const PIECES: [&str; 30] = [
        "&lt;",
        "&lt;img src=x onerror=y>",
        "img src=x>",
        "/b>",
        "!--",
        "<i></i>",
        "<b>",
        "</b>",
        "<i>",
        "</i>",
        "<code>",
        "</code>",
        "`",
        "``",
        "\\",
        "|",
        "&amp;",
        "lt;",
        "<a href='mailto:a`<b>'>",
        "<a href='?`'>",
        "</a>",
        "!",
        "[",
        "](x)",
        "<br>",
        " ",
        "<p>",
        "<table><tr><td>",
        "<td>",
        "</table>",
    ];
    arbtest::arbtest(|u| {
        let mut page = String::from("<p>word ");
        for _ in 0..u.int_in_range(1..=25)? {
            page.push_str(u.choose(&PIECES)?);
        }
        check_dead(&page);
        Ok(())
    })
    .budget_ms(1500);
}

#[test]
fn content_that_is_cut_is_whole_and_dead() {
    let hostile = "a `` ` `` &lt;img src=x onerror=alert(1)> ".repeat(5200);
    for around in [
        "code",
        "b><code",
        "a href=/x><code",
        "li><code",
        "table><tr><td>a<td><code",
    ] {
        for padding in 0..4 {
            let page = format!("<p>{}<{around}>{hostile}", "x".repeat(padding));
            let content = content(&page, Format::Markdown);
            assert!(
                (150_000..=page::CONTENT_CHARACTERS_MAX).contains(&content.chars().count()),
                "{around}"
            );
            for event in parser(&content) {
                assert!(
                    !matches!(event, Event::Html(_) | Event::InlineHtml(_)),
                    "{around} {padding}: {event:?}"
                );
            }
        }
    }
    let page = format!(
        "<p>a<ul>{}",
        "<li><a href=/x>b &amp; <b>c</b></a> <img src=d>".repeat(20_000)
    );
    let html = content(&page, Format::Html);
    assert!((199_000..=page::CONTENT_CHARACTERS_MAX).contains(&html.chars().count()));
    assert_eq!(html.matches("<ul>").count(), html.matches("</ul>").count());
    assert_eq!(html.matches("<a ").count(), html.matches("</a>").count());
    assert!(html.ends_with("</ul>") && layout::words(&html).len() > 1000);
}
