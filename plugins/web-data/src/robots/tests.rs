//! What RFC 9309 says of each part of a file, by examples.

use super::*;

fn url(path: &str) -> Url {
    Url::parse("https://a.example")
        .and_then(|site| site.join(path))
        .expect("a URL")
}

/// Whether our rules allow each path.
#[track_caller]
fn check(file: &str, paths: &[(&str, bool)]) {
    let robots = Robots::read(file.as_bytes());
    for (path, expected) in paths {
        assert_eq!(robots.allows(&url(path)), *expected, "{path} by {file:?}");
    }
}

/// Whether a rule that forbids this pattern forbids the path.
#[track_caller]
fn matches(pattern: &str, path: &str, expected: bool) {
    check(
        &format!("user-agent: *\ndisallow: {pattern}"),
        &[(path, !expected)],
    );
}

#[test]
fn a_robot_is_found_by_its_product_whatever_its_case_and_version() {
    for name in [
        "switchbay",
        "SwitchBay",
        "Switchbay/1.0",
        "switchbay (of somebody)",
        "SWITCHBAY*",
    ] {
        check(
            &format!("User-agent: {name}\nDisallow: /a\n\nUser-agent: *\nDisallow: /"),
            &[("/a", false), ("/b", true)],
        );
    }
    for name in [
        "switch",
        "switchbay-images",
        "switchbay_x",
        "notswitchbay",
        "x switchbay",
        "",
    ] {
        check(&format!("User-agent: {name}\nDisallow: /"), &[("/a", true)]);
    }
}

#[test]
fn everyones_group_counts_where_no_group_is_ours() {
    check(
        "User-agent: *\nDisallow: /a",
        &[("/a", false), ("/b", true)],
    );
    check("User-agent: * for all\nDisallow: /a", &[("/a", false)]);
    check("User-agent: *bot\nDisallow: /a", &[("/a", true)]);
    check(
        "User-agent: *\nDisallow: /\nUser-agent: switchbay\nDisallow:",
        &[("/a", true)],
    );
    check(
        "User-agent: *\nDisallow: /a\n\nUser-agent: switchbay",
        &[("/a", true)],
    );
    check("User-agent: other\nDisallow: /", &[("/a", true)]);
    check("Disallow: /", &[("/a", true)]);
    check("", &[("/", true)]);
}

#[test]
fn groups_of_one_robot_are_one() {
    let file = "user-agent: switchbay\ndisallow: /a\nuser-agent: *\ndisallow: /b\nuser-agent: SWITCHBAY\ndisallow: /c";
    check(file, &[("/a", false), ("/b", true), ("/c", false)]);
}

#[test]
fn nothing_but_a_rule_ends_the_names_of_a_group() {
    for between in [
        "",
        "\n\n",
        "# a comment\n",
        "Sitemap: https://a.example/s\n",
        "Crawl-delay: 3\n",
        "Unknown: 3\n",
    ] {
        let file = format!("user-agent: switchbay\n{between}user-agent: other\ndisallow: /a");
        check(&file, &[("/a", false)]);
    }
    check(
        "user-agent: switchbay\ndisallow: /a\nuser-agent: other\ndisallow: /b",
        &[("/a", false), ("/b", true)],
    );
}

#[test]
fn the_most_specific_rule_counts_and_of_two_the_one_that_allows() {
    check(
        "user-agent: *\nallow: /a/b\ndisallow: /a\ndisallow: /a/b/c",
        &[
            ("/a", false),
            ("/a/x", false),
            ("/a/b", true),
            ("/a/b/c/d", false),
            ("/", true),
        ],
    );
    check("user-agent: *\ndisallow: /a\nallow: /a", &[("/a", true)]);
    check(
        "user-agent: *\ndisallow: /*.gif$\nallow: /b/",
        &[("/a.gif", false), ("/b/c.gif", false), ("/b/c", true)],
    );
    check(
        "user-agent: *\nallow: /example/page/\ndisallow: /example/page/disallowed.gif",
        &[
            ("/example/page/", true),
            ("/example/page/disallowed.gif", false),
        ],
    );
    check(
        "user-agent: *\ndisallow: /axb\nallow: /a*b",
        &[("/axb", true)],
    );
    check(
        "user-agent: *\ndisallow: /a*b\nallow: /a",
        &[("/ab", false), ("/ac", true)],
    );
    check(
        "user-agent: *\ndisallow: /a*b\nallow: /a*c\nallow: /axb",
        &[("/axbc", true), ("/ab", false)],
    );
}

#[test]
fn of_many_rules_the_longest_that_matches_is_found() {
    let file: String = (0..500)
        .map(|n| format!("disallow: /{n}\nallow: /{n}/open\n"))
        .collect();
    let file = format!("user-agent: *\nallow: /\ndisallow: /2/open/not\n{file}");
    check(
        &file,
        &[
            ("/499", false),
            ("/499/open/x", true),
            ("/2/open/not", false),
            ("/2/open", true),
            ("/x", true),
        ],
    );
}

#[test]
fn a_star_is_anything_and_a_dollar_the_end() {
    matches("/", "/", true);
    matches("/a", "/ab?c", true);
    matches("/a", "/A", false);
    matches("/a$", "/a", true);
    matches("/a$", "/ab", false);
    matches("/a$b", "/a$bc", true);
    matches("/*.php", "/x/y.php?z", true);
    matches("/*.php$", "/x/y.php?z", false);
    matches("/*.php$", "/x.php.php", true);
    matches("*.php", "/x.php", true);
    matches("/a*", "/a", true);
    matches("/a**b", "/axb", true);
    matches("/*a*ab$", "/aab", true);
    matches("/ab*b$", "/ab", false);
    matches("/*/b/*?c=", "/a/b/x?y&c=", false);
    matches("/*/b/*?*c=", "/a/b/x?y&c=", true);
    matches("a", "/a", false);
    matches("", "/a", false);
    matches("$", "/", false);
    matches("/$", "/", true);
    matches("/$", "/a", false);
}

#[test]
fn octets_are_compared_in_one_form() {
    matches("/foo/bar?baz=quz", "/foo/bar?baz=quz", true);
    matches(
        "/foo/bar?baz=https://foo.bar",
        "/foo/bar?baz=https%3A%2F%2Ffoo.bar",
        true,
    );
    matches(
        "/foo/bar?baz=https%3A%2F%2Ffoo.bar",
        "/foo/bar?baz=https://foo.bar",
        true,
    );
    matches("/foo/bar/ツ", "/foo/bar/%E3%83%84", true);
    matches("/foo/bar/%e3%83%84", "/foo/bar/ツ", true);
    matches("/foo/bar/%62%61%7A", "/foo/bar/baz", true);
    matches("/foo/bar/baz", "/foo/bar/%62%61%7a", true);
    matches("/a%2Fb", "/a/b", false);
    matches("/a/b", "/a%2Fb", false);
    matches("/a-%2A.html", "/a-*.html", true);
    matches("/a-%2A.html", "/a-b.html", false);
    matches("/a-%24", "/a-$", true);
    matches("/a b", "/a%20b", true);
}

#[test]
fn lines_are_read_as_they_are_written() {
    let rules = ["user-agent: *", "disallow: /a", "disallow: /b"];
    for end in ["\n", "\r\n", "\r", "\n\n", "\n \t\n"] {
        check(
            &rules.join(end),
            &[("/a", false), ("/b", false), ("/c", true)],
        );
    }
    check(
        "\u{feff}User-Agent : *\n  DISALLOW:/a # not that\n",
        &[("/a", false), ("/b", true)],
    );
    check(
        "user-agent *\ndisallow /a\nallow /a/ b",
        &[("/a", false), ("/a/", false)],
    );
    check("user agent: *\ndissalow: /a", &[("/a", false)]);
    check("<html><body>User-agent: *<br>Disallow: /", &[("/a", true)]);
    let robots = Robots::read(b"user-agent: *\ndisallow: /\xff\xfe");
    assert!(!robots.allows(&url("/%FF%FE")) && robots.allows(&url("/%FF")));
}

#[test]
fn the_file_itself_may_always_be_asked_for() {
    check(
        "user-agent: *\ndisallow: /",
        &[
            ("/robots.txt", true),
            ("/robots.txt2", false),
            ("/robots.txt?a", false),
        ],
    );
    assert!(Robots::default().allows(&url("/")));
}

#[test]
fn a_file_is_read_up_to_its_limit_by_whole_lines() {
    let head = "user-agent: *\n";
    let fill = "#".repeat(BYTES_MAX - head.len() - 20);
    let check_at = |more: usize, expected: bool| {
        let file = format!(
            "{head}{fill}{}\ndisallow: /abcdef\nallow: /\n",
            "#".repeat(more)
        );
        assert_eq!(
            Robots::read(file.as_bytes()).allows(&url("/abcdef")),
            expected,
            "{more}"
        );
        assert!(
            Robots::read(file.as_bytes()).allows(&url("/abc")),
            "half a rule counts: {more}"
        );
    };
    check_at(0, false);
    for more in 3..20 {
        check_at(more, true);
    }
}

#[test]
fn a_delay_is_that_of_the_group_that_counts() {
    let delay = |file: &str| {
        Robots::read(file.as_bytes())
            .crawl_delay()
            .map(|delay| delay.as_secs_f64())
    };
    assert_eq!(delay("user-agent: *\ncrawl-delay: 2.5"), Some(2.5));
    assert_eq!(
        delay("user-agent: *\ncrawl-delay: 2\n\nuser-agent: switchbay\ndisallow:\nCrawl-Delay:7"),
        Some(7.0)
    );
    assert_eq!(
        delay("user-agent: *\ncrawl-delay: 2\ndisallow:\nuser-agent: switchbay\ndisallow:"),
        None
    );
    assert_eq!(
        delay("user-agent: *\ncrawl-delay: 1\ncrawl-delay: 9"),
        Some(1.0)
    );
    assert_eq!(
        delay("user-agent: *\ncrawl-delay: 1e300"),
        Some(DELAY_SECONDS_MAX)
    );
    for none in ["-1", "NaN", "inf", "soon", ""] {
        assert_eq!(
            delay(&format!("user-agent: *\ncrawl-delay: {none}")),
            None,
            "{none}"
        );
    }
}

#[test]
fn sitemaps_are_told_of_whatever_their_group() {
    let file = "Sitemap: https://a.example/1\nuser-agent: other\nSITEMAP:/2 # here\ndisallow: /\nsitemap: /2\nsitemap:\n";
    assert_eq!(
        Robots::read(file.as_bytes()).sitemaps(),
        ["https://a.example/1", "/2"]
    );
    let many: String = (0..200).map(|n| format!("sitemap: /{n}\n")).collect();
    assert_eq!(Robots::read(many.as_bytes()).sitemaps().len(), SITEMAPS_MAX);
    let long = format!("sitemap: /{}", "a".repeat(SITEMAP_BYTES_MAX));
    assert_eq!(Robots::read(long.as_bytes()).sitemaps().len(), 0);
}

#[test]
fn what_a_path_is_held_against_has_a_limit() {
    // Rules of five hundred octets: all that is kept of them is what one path costs.
    let dear: String = (0..900)
        .map(|n| format!("disallow: /{}{n}\n", "*a".repeat(250)))
        .collect();
    let robots = Robots::read(
        format!("user-agent: *\n{dear}disallow: /b*c\ndisallow: /forbidden\n").as_bytes(),
    );
    let octets = robots
        .group
        .wildcards
        .iter()
        .map(|(wildcard, _)| wildcard.text.len())
        .sum::<usize>();
    assert!((30_000..=WILDCARD_OCTETS_MAX).contains(&octets), "{octets}");
    assert!(
        !robots.allows(&url("/bc")),
        "a short rule has room where a long one has none"
    );
    assert!(!robots.allows(&url("/forbidden")));
}

#[test]
fn a_file_that_is_made_to_take_long_does_not() {
    // Each is as large as a file may be: half a million rules that share their begins, and as many stars as are read.
    let chain: String = (1..700)
        .map(|n| format!("allow: /{}\n", "a".repeat(n)))
        .collect();
    let stars: String = (0..8000)
        .map(|n| format!("disallow: /*a*a*a*a*a*a*a*b{n}$\n"))
        .collect();
    let one = format!("user-agent: *\ndisallow: /{}", "*a".repeat(200_000));
    let long = format!("/{}", "a".repeat(2000));
    for file in [
        format!("user-agent: *\n{chain}"),
        format!("user-agent: *\n{stars}"),
        one,
    ] {
        let robots = Robots::read(file.as_bytes());
        assert!(
            robots.group.wildcards.len() <= WILDCARDS_MAX
                && robots.group.wildcard_octets <= WILDCARD_OCTETS_MAX
        );
        assert!(robots.allows(&url(&long)), "{}", &file[..60]);
    }
}
