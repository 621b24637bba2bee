//! What it costs to read pages that are made to cost much, counted in steps and not in time: steps of the parser, and nodes
//! that are looked at by all that comes behind it. Where strings are handled instead, a page twice as long may not take three
//! times as long.
//!
//! A shape stands for a kind of token or of nesting; what once cost seconds stays here.

use std::time::{Duration, Instant};

use crate::Format;
use crate::page::{self, FetchedPage};
use crate::tree::looked_at;
use crate::{links, meta, outline, parse, source};

/// Bytes of a page. The tests are built unoptimised.
const BYTES: usize = 8000;
/// Bytes of one that is parsed alone.
const PARSED_BYTES: usize = 30_000;
/// Steps of the parser for each byte, and for any page; steps that one token more may take.
const PARSER_STEPS: u64 = 8;
const PARSER_STEPS_MIN: u64 = 2_000_000;
const TOKEN_STEPS: u64 = 100_000;
/// Looks at nodes for each node of the tree.
const LOOKS: u64 = 60;
/// Below it, times say nothing.
const TIME_MIN: Duration = Duration::from_millis(50);
/// How often two times are compared: what is quadratic is so each time, and a busy machine is not.
const TRIES: u32 = 10;

/// A page of about so many bytes: what it begins with, and what it repeats.
fn page(begin: &str, piece: &str, bytes: usize) -> String {
    let pieces = piece.matches("NUMBER").count();
    let repeated = (0..bytes / piece.len()).map(|at| match pieces {
        0 => piece.to_owned(),
        _ => piece.replace("NUMBER", &at.to_string()),
    });
    format!("{begin}{}", repeated.collect::<String>())
}

/// Pieces that stand for a kind of token or of nesting each, with `~` for a space.
const PIECES: &str = "</b> </span> </br> </p> </template> <img> <img~src=x> <img~src=NUMBER~alt='a~b'> <br> <hr> <input> <p> <div> <b> <i>a</b> \
    <b></p> <a><div> </a></div> <p>a<b~id=NUMBER> <nobr> <font> <h1> <h1><a> <li> <dd><dt> <ul><li>a <form> <button> <select> \
    <select><option>a <option>a</option> <optgroup> <textarea> <template> <template><p>a</template> <template><td> <noscript> \
    <object> <applet></b> <marquee> <svg> <svg><p></svg> <math> <math><mi>a <math><annotation-xml><svg> <table> <table>a \
    <table><tr><td>a <td>a <tr> <col> <caption> <colgroup> <tbody> <table><b> <table><select> <table><form> <frameset> <frame> \
    <iframe> <noembed> <xmp>a</xmp> <listing> <plaintext> <pre>a</pre> <pre><code>`</code></pre> <title> <style> <script> \
    <script~type=application/ld+json></script> <script~type=application/ld+json>{}</script> <base~href=/NUMBER> \
    <meta~name=description~content=NUMBER> <link~rel=canonical~href=NUMBER> <html~lNUMBER=a> <body~class=a> <!doctype~html> \
    <!--~a~--> <!-- <? <!a> &amp; &#x41; &NUMBER &CounterClockwise; &# a|b*c_d`e[f] ` *a_ a~ \0 <ruby><rt>a <a~href=NUMBER>x</a> \
    <a~href=/NUMBER>x</a> <area~href=NUMBER> <iframe~src=NUMBER> <code>a</code> <code>`</code> <blockquote>a \
    <span~class='a~b~NUMBER'>a</span> <p~style='display:none'>a <div~id=root> <br><br>a <details><summary>a <dialog> <q>a</q>";

fn shapes() -> Vec<(String, String)> {
    let repeated = |piece: &str, times: usize| piece.repeat(times);
    let attributes: String = (0..30)
        .map(|at| format!(" {}=NUMBER", source::READ[at]))
        .collect();
    let base = format!("<base href='/{}/'>", "b".repeat(1900));
    let formatting: String = (0..60)
        .map(|at| format!("<b {}>", attributes.replace("NUMBER", &at.to_string())))
        .collect();
    let mut shapes = vec![
        (repeated("<span>", 250), "</b>".to_owned()),
        (repeated("<span>", 250), "</NUMBERx>".to_owned()),
        (repeated("<span>", 250), "</p>".to_owned()),
        (repeated("<div>", 250), "<li>".to_owned()),
        (repeated("<b>", 60), "</i><p>".to_owned()),
        (formatting, format!("<b {attributes}></b>")),
        (String::new(), format!("<b>{}</b>", "<div>".repeat(9))),
        (String::new(), format!("<a href=x>{}</a>", "<p>".repeat(9))),
        (
            "<table>".to_owned(),
            "<tr><td><object></td></tr><b></b>".to_owned(),
        ),
        (
            format!(
                "{}<p>",
                repeated("<table><tr><td><marquee></td></tr></table>", 300)
            ),
            "<i></i>".to_owned(),
        ),
        (
            String::new(),
            format!(
                "<math><title><p {}></title></math>",
                "aNUMBER=1 bNUMBER ".repeat(500)
            ),
        ),
        (format!("<div>{base}"), "<a href='NUMBER'>x</a>".to_owned()),
        (
            base.clone(),
            "<a href='NUMBER'> </a><img src=NUMBER alt='a b NUMBER'>".to_owned(),
        ),
        (
            format!("<table><tr><td>a<td>{base}"),
            "<a href='NUMBER'>x</a>".to_owned(),
        ),
        (
            "<p>a <div>some words around</div>".to_owned(),
            "<img src=NUMBER alt='other words NUMBER'>".to_owned(),
        ),
        ("<ul><li>".repeat(60), "<p>a<li>b".to_owned()),
        (
            "<a href=/>".to_owned(),
            "<table><tr><td><a href=/NUMBER>x".to_owned(),
        ),
        (
            "<p>".to_owned(),
            format!("<app-root>{}</app-root>", "<i></i>".repeat(40)),
        ),
        (
            "<noscript>".repeat(100),
            "<noscript><i></i></noscript>".to_owned(),
        ),
    ];
    shapes.extend(
        PIECES
            .split_whitespace()
            .map(|piece| (String::new(), piece.replace('~', " "))),
    );
    shapes
}

fn read(page: &str, format: Format) {
    let answer = FetchedPage {
        url: "https://pages.example/a/page",
        status: 200,
        content_type: Some("text/html"),
        body: page.as_bytes(),
    };
    page::read(&answer, format)
        .content
        .expect("HTML has content");
}

#[test]
fn no_page_costs_more_steps_than_its_length_allows() {
    for (begin, piece) in shapes() {
        let reduced = source::reduce(&page(&begin, &piece, PARSED_BYTES)).html;
        let bytes = reduced.len() as u64;
        let (_, steps) = parse::counted(reduced);
        let most = PARSER_STEPS * bytes + PARSER_STEPS_MIN + TOKEN_STEPS;
        assert!(steps <= most, "{steps} steps for {bytes} bytes of {piece}");
        let page = page(&begin, &piece, BYTES);
        let tree = parse::parse(source::reduce(&page).html);
        let before = looked_at();
        read(&page, Format::Markdown);
        let (looks, nodes) = (looked_at() - before, tree.nodes.len() as u64);
        assert!(
            looks <= LOOKS * nodes + TOKEN_STEPS,
            "{looks} looks at {nodes} nodes of {piece}"
        );
    }
}

#[test]
fn a_page_of_more_steps_is_cut_and_says_so() {
    let page = page(&"<span>".repeat(250), "</b>", 1 << 20);
    let (tree, _) = parse::counted(source::reduce(&format!("<p>before{page}after")).html);
    assert!(tree.is_cut);
    let body = format!("<p>before</p>{page}<p>after");
    let answer = FetchedPage {
        url: "https://pages.example/",
        status: 200,
        content_type: Some("text/html"),
        body: body.as_bytes(),
    };
    let document = page::read(&answer, Format::Text);
    assert_eq!(
        (document.content.as_deref(), document.truncated),
        (Some("before"), true)
    );
}

#[test]
fn a_page_twice_as_long_takes_no_three_times_as_long() {
    for (begin, piece) in shapes() {
        let ratio = || {
            let [one, two] = [1, 2].map(|times| page(&begin, &piece, times * BYTES));
            let (one, two) = (time(&one), time(&two));
            if two < TIME_MIN {
                0.0
            } else {
                two.as_secs_f64() / one.as_secs_f64()
            }
        };
        let ratio = (0..TRIES).map(|_| ratio()).find(|ratio| *ratio < 3.0);
        assert!(ratio.is_some(), "{piece}");
    }
}

/// The time to read a page in all ways.
fn time(page: &str) -> Duration {
    let begin = Instant::now();
    read(page, Format::Markdown);
    read(page, Format::Html);
    let answer = FetchedPage {
        url: "https://pages.example/",
        status: 200,
        content_type: None,
        body: page.as_bytes(),
    };
    outline::read(&answer, &url::Url::parse(answer.url).expect("a URL"));
    begin.elapsed()
}

#[test]
fn what_a_page_may_hold_is_bounded() {
    let scripts = "<script type=application/ld+json></script>".repeat(5000);
    assert!(source::reduce(&scripts).structured.len() <= 1000);
    let page = page("", "<a href=NUMBER>x</a>", 1 << 20);
    let tree = parse::parse(source::reduce(&page).html);
    let url = url::Url::parse("https://pages.example/").expect("a URL");
    assert_eq!(
        links::read(&tree, &meta::read(&tree, &[]), &url)
            .links
            .len(),
        5000
    );
}
