//! Self-written pages of seven kinds, three each, and how much of what their authors marked as content is found.
//!
//! A page is a file in `pages`; what stands between its comments `content` and `/content` is the gold text, and the
//! extractor never sees comments. The measure is F1 over the bags of their words, as public benchmarks count it.

use std::collections::HashMap;

use crate::Format;
use crate::page::{self, FetchedPage};

const KINDS: [&str; 7] = [
    "article",
    "collection",
    "documentation",
    "forum",
    "listing",
    "product",
    "service",
];

/// What all pages reach on average, and what each kind does.
const F1_MIN: f64 = 0.92;
const F1_MIN_OF_A_KIND: f64 = 0.80;

fn folder() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("pages")
}

/// Every page of the folder with its name.
pub(crate) fn pages() -> Vec<(String, String)> {
    let mut pages: Vec<(String, String)> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    pages.sort();
    pages
}

fn extracted(page: &str, format: Format) -> String {
    let answer = FetchedPage {
        url: "https://pages.example/a/page",
        status: 200,
        content_type: Some("text/html; charset=utf-8"),
        body: page.as_bytes(),
    };
    page::read(&answer, format)
        .content
        .expect("a page of HTML has content")
}

/// The text between the marks, without tags.
fn gold(page: &str) -> String {
    let mut text = String::new();
    for marked in page.split("<!--content-->").skip(1) {
        let marked = marked
            .split_once("<!--/content-->")
            .expect("each mark is ended")
            .0;
        let mut in_tag = false;
        for c in marked.chars() {
            match c {
                '<' => in_tag = true,
                '>' if in_tag => {
                    in_tag = false;
                    text.push(' ');
                }
                c if !in_tag => text.push(c),
                _ => {}
            }
        }
        text.push(' ');
    }
    text.replace("&amp;", "&").replace("&lt;", "<")
}

fn bag(text: &str) -> HashMap<String, usize> {
    let mut bag = HashMap::new();
    for word in text
        .to_lowercase()
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
    {
        *bag.entry(word.to_owned()).or_default() += 1;
    }
    bag
}

fn f1(found: &str, gold: &str) -> f64 {
    let (found, gold) = (bag(found), bag(gold));
    let shared: usize = found
        .iter()
        .map(|(word, count)| (*count).min(gold.get(word).copied().unwrap_or(0)))
        .sum();
    let (found, gold): (usize, usize) = (found.values().sum(), gold.values().sum());
    2.0 * shared as f64 / (found + gold) as f64
}

#[test]
fn the_measure_is_what_it_is_called() {
    assert_eq!(f1("a b b", "A, b c"), 2.0 / 3.0);
    assert_eq!(f1("a", "b"), 0.0);
}

#[test]
fn content_is_found_on_pages_of_every_kind() {
    let pages = pages();
    let mut of_kinds = Vec::new();
    for kind in KINDS {
        let scores: Vec<f64> = pages
            .iter()
            .filter(|(name, _)| name.starts_with(kind))
            .map(|(name, page)| {
                let score = f1(&extracted(page, Format::Text), &gold(page));
                println!("{name} {score:.3}");
                score
            })
            .collect();
        assert_eq!(scores.len(), 3, "{kind}");
        let score = scores.iter().sum::<f64>() / 3.0;
        assert!(score >= F1_MIN_OF_A_KIND, "{kind}: {score:.3}");
        of_kinds.push(score);
    }
    let score = of_kinds.iter().sum::<f64>() / of_kinds.len() as f64;
    assert!(score >= F1_MIN, "{score:.3}");
}

#[test]
fn what_no_page_is_about_is_left_out() {
    for (name, page) in pages() {
        let content = extracted(&page, Format::Markdown).to_lowercase();
        for boilerplate in [
            "all rights reserved",
            "privacy policy",
            "add to cart",
            "unsubscribe",
            "log in",
            "data:image",
        ] {
            assert!(
                !content.contains(boilerplate),
                "{name}: {boilerplate}: {content}"
            );
        }
    }
}
