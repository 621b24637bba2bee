//! Pages that are made to break a reader, and pages broken by chance: each is read, within the lengths of a document.
//!
//! What broke once while pages were mutated by hand for longer stays here as a shape.

use arbtest::arbitrary::{Result, Unstructured};

use crate::Format;
use crate::page::{self, CONTENT_CHARACTERS_MAX, FetchedPage, PageContent};
use crate::{blocks, charset, corpus, parse, source};

const FORMATS: [Format; 3] = [Format::Markdown, Format::Text, Format::Html];

fn read(body: &[u8], format: Format) -> PageContent {
    let answer = FetchedPage {
        url: "https://pages.example/",
        status: 200,
        content_type: Some("text/html"),
        body,
    };
    let document = page::read(&answer, format);
    let content = document.content.as_deref().expect("HTML has content");
    assert!(content.chars().count() <= CONTENT_CHARACTERS_MAX);
    assert!(
        !content.trim().is_empty() || !has_words(body),
        "a page with text is never without content"
    );
    document
}

fn has_words(body: &[u8]) -> bool {
    let text = charset::decode(body, Some("text/html"));
    let tree = parse::parse(source::reduce(&text).html);
    blocks::read(&tree, "", "")
        .blocks
        .iter()
        .any(|block| block.counts.letters > 0)
}

#[track_caller]
fn check(page: &str) {
    for format in FORMATS {
        read(page.as_bytes(), format);
    }
}

/// Bytes of a shape: unoptimised, as tests are built, a hundred shapes of it are read in some seconds.
const BYTES: usize = 40_000;

fn repeated(piece: &str) -> String {
    piece.repeat(BYTES / piece.len())
}

#[test]
fn deep_pages_are_read() {
    for piece in [
        "<div>",
        "<div><p>",
        "<b>",
        "<a href=x>",
        "<table><tr><td>",
        "<ul><li>a",
        "<blockquote>",
        "<span>a",
        "<svg>",
    ] {
        check(&repeated(piece));
    }
    for piece in [
        "<template>",
        "<select><option>a",
        "<button><p>",
        "<font>",
        "<math><mi>",
        "<dl><dt>a<dd>",
        "<noscript>",
    ] {
        check(&repeated(piece));
    }
}

#[test]
fn an_element_of_text_that_was_too_deep_once_ends_where_it_is_not() {
    for name in ["noframes", "textarea", "title", "xmp", "iframe"] {
        let (down, up) = ("<div>".repeat(300), "</div>".repeat(300));
        check(&format!("{down}<{name}>{up}<{name}></{name}><p>text"));
    }
}

#[test]
fn pages_that_make_parsers_repeat_themselves_are_read() {
    for piece in [
        "<p>a<b><i>",
        "<b></p>",
        "<a><div>",
        "</a></div>",
        "<b a><p>",
        "<table>a",
        "<h1><a>",
        "<img><br>",
        "<i>a</b>",
    ] {
        check(&repeated(piece));
    }
    let distinct: String = (0..1500).map(|n| format!("<p><b id={n}>x")).collect();
    check(&distinct);
}

#[test]
fn tags_without_an_end_are_read() {
    check(&format!(
        "<div {}>text",
        (0..20_000).map(|n| format!("a{n}=1 ")).collect::<String>()
    ));
    check(&format!(
        "</div {}>text",
        (0..20_000).map(|n| format!("a{n}=1 ")).collect::<String>()
    ));
    check(&format!("<div class='{}'>text", repeated("nav ")));
    for open in [
        "<!--",
        "<script>",
        "<style>",
        "<title>",
        "<textarea>",
        "<div class=\"",
        "<![CDATA[",
        "<?",
        "<!",
        "</",
        "<a href=",
    ] {
        check(&format!("before {open}{}", repeated("a < b -- > ")));
        check(&repeated(open));
    }
}

#[test]
fn references_and_wide_tables_are_read() {
    check(&repeated("&amp;&lt;&#x41;&unknown;"));
    check(&repeated("&#99999999999999;"));
    check(&format!(
        "<table>{}",
        repeated("<tr><td colspan=1000 rowspan=1000>a<td>b")
    ));
    check(&format!("<table><tr>{}", repeated("<td>a")));
    check(&format!("<p>{}", repeated("a|b*c_d`e[f]")));
    check(&format!("<pre>{}", repeated("`")));
    check(&format!("<p>{}</p>", repeated("<img src=a.png alt=a>")));
    check(&format!(
        "<div>{}<img src=a alt=b></div>",
        repeated("word ")
    ));
}

#[test]
fn a_page_of_any_length_is_cut_and_says_so() {
    let document = read(
        format!("<p>{}", "one two ".repeat(60_000)).as_bytes(),
        Format::Markdown,
    );
    assert!(document.truncated);
    let content = document.content.expect("content");
    assert!(
        (CONTENT_CHARACTERS_MAX - 10..=CONTENT_CHARACTERS_MAX).contains(&content.chars().count())
    );
    let described = format!(
        "<meta name=description content='{}'><p>text",
        "a ".repeat(1900)
    );
    assert!(!read(described.as_bytes(), Format::Text).truncated);
}

#[test]
fn mutated_pages_are_read() {
    let pages = corpus::pages();
    arbtest::arbtest(|u| {
        let page = &u.choose(&pages)?.1;
        let mutated = mutate(u, page.as_bytes())?;
        let format = *u.choose(&FORMATS)?;
        read(&mutated, format);
        Ok(())
    })
    .budget_ms(2000);
}

/// A page with some of its parts moved, repeated, cut or overwritten.
fn mutate(u: &mut Unstructured<'_>, page: &[u8]) -> Result<Vec<u8>> {
    const PIECES: [&str; 12] = [
        "<table>",
        "</table>",
        "<b>",
        "</p>",
        "<a href='/x'>",
        "<!--",
        "-->",
        "\"",
        "<script>",
        "\0",
        "&#x",
        "<li><pre>",
    ];
    let mut page = page.to_vec();
    for _ in 0..u.int_in_range(1..=12)? {
        let from = u.int_in_range(0..=page.len() - 1)?;
        let to = (from + u.int_in_range(0..=400)?).min(page.len());
        let piece = page[from..to].to_vec();
        let at = u.int_in_range(0..=page.len())?;
        match u.int_in_range(0..=4)? {
            0 => drop(page.drain(from..to)),
            1 => drop(page.splice(at..at, piece)),
            2 => drop(page.splice(at..at, u.choose(&PIECES)?.bytes())),
            3 => page[from..to].fill(u.arbitrary()?),
            _ => page.truncate(at.max(1)),
        }
        if page.is_empty() {
            page.push(b'a');
        }
    }
    Ok(page)
}

#[test]
fn text_is_never_lost_altogether() {
    for page in [
        "word",
        "<div>word",
        "<nav>word</nav>",
        "<footer><a href=/>word</a></footer>",
        "<table><td>word",
        "<button>word",
    ] {
        for format in FORMATS {
            assert!(
                read(page.as_bytes(), format)
                    .content
                    .is_some_and(|content| content.contains("word")),
                "{page}"
            );
        }
    }
}
