//! The table of URLs: what is accepted in which form, and what is refused with which code.

use std::collections::BTreeMap;

use crate::address::Address;
use crate::networks::{self, Place};
use crate::trouble::Trouble;

const TABLE: &str = include_str!("urls.txt");
/// Rows that each network must have.
const ROWS_MIN: usize = 20;

/// Section, input and expectation of each row.
fn rows() -> Vec<(&'static str, &'static str, &'static str)> {
    let mut section = "";
    let mut rows = Vec::new();
    for line in TABLE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        match line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            Some(name) => section = name,
            None => {
                let (input, expected) = line.split_once(" => ").expect("a row");
                rows.push((section, input, expected));
            }
        }
    }
    rows
}

fn outcome(input: &str) -> String {
    match Address::read(input) {
        Ok(address) => match address.place {
            Place::Post(post) => post.url,
            Place::Short => "short".to_owned(),
            Place::Login => "login".to_owned(),
            Place::Other => code(&Trouble::UnsupportedUrl).to_owned(),
        },
        Err(trouble) => code(&trouble).to_owned(),
    }
}

fn code(trouble: &Trouble) -> &'static str {
    match trouble {
        Trouble::Empty | Trouble::TooLong => "VALIDATION_ERROR",
        Trouble::InvalidUrl(_) => "OEMBED_INVALID_URL",
        Trouble::Unsafe(_) => "OEMBED_SECURITY_REJECTED",
        Trouble::UnsupportedProvider(_) => "OEMBED_UNSUPPORTED_PROVIDER",
        Trouble::UnsupportedUrl => "OEMBED_UNSUPPORTED_URL",
        other => panic!("reading a URL says {other:?}"),
    }
}

#[test]
fn every_url_of_the_table_becomes_what_it_says() {
    for (section, input, expected) in rows() {
        assert_eq!(outcome(input), expected, "[{section}] {input}");
        assert_eq!(
            outcome(&format!("\n {input}\t")),
            expected,
            "[{section}] {input}, with space around it"
        );
    }
}

#[test]
fn each_network_has_its_rows_on_its_own_hosts() {
    let mut counts = BTreeMap::new();
    for (section, input, expected) in rows() {
        *counts.entry(section).or_insert(0) += 1;
        if let Some(address) = Address::read(input).ok().filter(|_| section != "none") {
            assert_eq!(address.network.name, section, "{input} => {expected}");
        }
    }
    for name in networks::names() {
        assert!(counts[name] >= ROWS_MIN, "{name} has {} rows", counts[name]);
    }
}

#[test]
fn a_canonical_url_is_canonical() {
    for (section, input, expected) in rows()
        .into_iter()
        .filter(|(_, _, expected)| expected.starts_with("https:"))
    {
        let read = |text: &str| match Address::read(text).map(|address| address.place) {
            Ok(Place::Post(post)) => post,
            other => panic!("[{section}] {text} is {other:?}"),
        };
        assert_eq!(read(expected), read(input), "[{section}] {input}");
    }
}

#[test]
fn length_is_measured_without_the_space_around() {
    let long = |length: usize| {
        let url = "https://x.com/jack/status/20?q=";
        format!("{url}{}", "ä".repeat(length - url.len()))
    };
    assert_eq!(
        outcome(&format!("  {}  ", long(2048))),
        "https://x.com/jack/status/20"
    );
    assert_eq!(outcome(&long(2049)), "VALIDATION_ERROR");
    assert_eq!(outcome(""), "VALIDATION_ERROR");
    assert_eq!(outcome(" \t\r\n"), "VALIDATION_ERROR");
}

#[test]
fn what_is_told_back_is_https_without_fragment_and_trackers() {
    let original = |text: &str| Address::read(text).expect(text).url.to_string();
    let rows = [
        (
            "http://twitter.com/jack/status/20?s=20&lang=en#x",
            "https://twitter.com/jack/status/20?lang=en",
        ),
        (
            "http://x.com:80/jack/status/20",
            "https://x.com/jack/status/20",
        ),
        (
            "https://m.facebook.com/story.php?story_fbid=1&id=2&mibextid=x&utm_source=y",
            "https://m.facebook.com/story.php?story_fbid=1&id=2",
        ),
        (
            "https://www.facebook.com/photo?fbid=1&__cft__%5B0%5D=x",
            "https://www.facebook.com/photo?fbid=1",
        ),
        (
            "https://www.instagram.com/p/CuZabc12345/?igsh=a&img_index=2",
            "https://www.instagram.com/p/CuZabc12345/",
        ),
        (
            "https://www.threads.net/@zuck/post/CuP48CiS5sx?xmt=a",
            "https://www.threads.net/@zuck/post/CuP48CiS5sx",
        ),
        (
            "https://vm.tiktok.com/ZMabc123/?share_app_id=1233&k=1",
            "https://vm.tiktok.com/ZMabc123/?k=1",
        ),
        (
            "https://redd.it/1abc23?context=3&share_id=x",
            "https://redd.it/1abc23",
        ),
    ];
    for (input, expected) in rows {
        assert_eq!(original(input), expected, "{input}");
    }
}
