//! The grammar by examples of what is taken and what is refused, and the laws of the sets by properties. Here stand the sets
//! by examples, and what all of the tests read their atoms with.

mod properties;
mod spelling;

use serde_json::json;

use super::difference::GrantDifference;
use super::{ATOMS_MAX, Atom, Grants};

fn atom(text: &str) -> Atom {
    Atom::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn grants(atoms: &[&str]) -> Grants {
    Grants::parse(atoms).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_list_says_each_thing_once_and_has_a_limit() {
    let twice = |atoms: [&str; 2], text: &str| match Grants::parse(atoms) {
        Ok(_) => panic!("{atoms:?} is taken"),
        Err(error) => assert_eq!(error.to_string(), text),
    };
    twice(
        ["config", "config"],
        "`config` repeats or contradicts `config`",
    );
    twice(
        ["cache:2KiB", "cache:1KiB"],
        "`cache:1KiB` repeats or contradicts `cache:2KiB`",
    );
    assert!(
        Grants::parse(["cache:1KiB", "state:2KiB"]).is_ok(),
        "two interfaces have a size each"
    );
    let names: Vec<String> = (0..=ATOMS_MAX)
        .map(|index| format!("dns:n{index}"))
        .collect();
    assert!(Grants::parse(&names[..ATOMS_MAX]).is_ok());
    let error = Grants::parse(&names).expect_err("one too many");
    assert_eq!(
        error.to_string(),
        "`dns:n64` is one too many; a plugin may have at most 64"
    );
}

#[test]
fn an_atom_covers_what_lies_within_it() {
    let covers = |one: &str, two: &str| atom(one).covers(&atom(two));
    let within = [
        (
            "http:GET https://x.org/rdap/",
            "http:GET https://x.org/rdap/a",
        ),
        (
            "http:GET https://x.org/rdap/",
            "http:GET https://x.org/rdap/a/",
        ),
        ("http:GET,POST https://x.org/", "http:POST https://x.org/"),
        ("http:GET https://*.x.org/", "http:GET https://a.b.x.org/c"),
        ("http:GET https://*.x.org/", "http:GET https://*.a.x.org/"),
        ("http:GET public", "http:GET https://x.org/"),
        ("http:GET public", "http:GET http://*.x.org/a"),
        ("http:GET public", "http:GET https://x.org:80/"),
        ("cache:64MiB", "cache:16MiB"),
        ("line-query:*:43", "line-query:whois.example.net:43"),
        ("line-query:*:43", "line-query:*.example.net:43"),
    ];
    for (one, two) in within {
        assert!(covers(one, two), "{one} covers {two}");
        assert!(!covers(two, one), "{two} covers {one} too");
    }
    let apart = [
        (
            "http:GET https://x.org/rdap/",
            "http:GET https://x.org/rdapx",
        ),
        (
            "http:GET https://x.org/rdap/",
            "http:GET https://x.org/rdap",
        ),
        (
            "http:GET https://x.org/rdap",
            "http:GET https://x.org/rdap/a",
        ),
        ("http:GET https://x.org/", "http:GET http://x.org/"),
        ("http:GET https://x.org/", "http:GET https://x.org:8443/"),
        ("http:GET https://x.org/", "http:HEAD https://x.org/"),
        ("http:GET https://*.x.org/", "http:GET https://x.org/"),
        ("http:GET https://*.x.org/", "http:GET https://ax.org/"),
        ("http:GET public", "http:GET https://x.org:8443/"),
        ("line-query:*:43", "line-query:whois.example.net:4343"),
        ("cache:64MiB", "state:16MiB"),
        ("dns:cloudflare", "dns:google"),
    ];
    for (one, two) in apart {
        assert!(
            !covers(one, two) && !covers(two, one),
            "{one} and {two} are apart"
        );
        assert_eq!(atom(one).meet(&atom(two)), None);
    }
}

#[test]
fn a_right_holds_as_far_as_it_is_wanted_and_granted() {
    let check = |granted: &[&str], wanted: &[&str], effective: &[&str], uncovered: &[&str]| {
        let (granted, wanted) = (grants(granted), grants(wanted));
        assert_eq!(granted.effective(&wanted), grants(effective));
        assert_eq!(granted.uncovered(&wanted), grants(uncovered));
    };
    check(
        &["cache:16MiB"],
        &["cache:64MiB"],
        &["cache:16MiB"],
        &["cache:64MiB"],
    );
    check(&["cache:64MiB"], &["cache:16MiB"], &["cache:16MiB"], &[]);
    let one = "http:GET https://x.org/a";
    check(&[one], &["http:GET public"], &[one], &["http:GET public"]);
    check(
        &["http:GET public", one],
        &["http:GET public"],
        &["http:GET public"],
        &[],
    );
    check(
        &["http:GET,PUT public"],
        &["http:GET,POST https://x.org/"],
        &["http:GET https://x.org/"],
        &["http:GET,POST https://x.org/"],
    );
    // Two grants may cover one wish between them.
    let split = ["http:GET https://x.org/", "http:POST https://x.org/"];
    check(&split, &["http:GET,POST https://x.org/"], &split, &[]);
    check(&["config"], &["logging"], &[], &["logging"]);
    assert!(grants(&[one]).any_of("http") && !grants(&[one]).any_of("dns"));
}

#[test]
fn a_difference_is_told_line_by_line() {
    let before = [
        "cache:16MiB",
        "config",
        "http:GET https://x.org/",
        "http:GET,PUT https://y.org/",
        "state:2KiB",
        "dns:a",
    ];
    let after = [
        "cache:64MiB",
        "config",
        "http:GET,POST https://x.org/",
        "http:GET https://y.org/",
        "state:1KiB",
        "dns:b",
    ];
    let difference = GrantDifference::between(&grants(&before), &grants(&after));
    let told = "~ cache:64MiB, was cache:16MiB (wider)\n\
                - dns:a\n\
                + dns:b\n\
                ~ http:GET,POST https://x.org/, was http:GET https://x.org/ (wider)\n\
                ~ http:GET https://y.org/, was http:GET,PUT https://y.org/ (narrower)\n\
                ~ state:1KiB, was state:2KiB (narrower)\n";
    assert_eq!(difference.to_string(), told);
    let expected = json!({
        "added": ["dns:b"],
        "removed": ["dns:a"],
        "kept": ["config"],
        "widened": [
            { "from": "cache:16MiB", "to": "cache:64MiB" },
            { "from": "http:GET https://x.org/", "to": "http:GET,POST https://x.org/" },
        ],
        "narrowed": [
            { "from": "http:GET,PUT https://y.org/", "to": "http:GET https://y.org/" },
            { "from": "state:2KiB", "to": "state:1KiB" },
        ],
        "widens": true,
    });
    assert_eq!(serde_json::to_value(&difference).expect("JSON"), expected);
    assert!(difference.widens && !difference.is_empty());

    // What an atom does not tell by itself stands behind it.
    let after = grants(&["features:other.decode", "state:1KiB"]);
    let difference = GrantDifference::between(&Grants::default(), &after);
    let told =
        "+ features:other.decode (its callers need no scope for that operation)\n+ state:1KiB\n";
    assert_eq!(difference.to_string(), told);
    let notes = json!([{
        "atom": "features:other.decode",
        "note": "its callers need no scope for that operation",
    }]);
    assert_eq!(
        serde_json::to_value(&difference).expect("JSON")["notes"],
        notes
    );

    // What another atom covers is added, and allows nothing new; other methods are neither wider nor narrower.
    let public = grants(&["http:GET,POST public"]);
    let listed = grants(&["http:GET,POST public", "http:GET https://x.org/"]);
    let difference = GrantDifference::between(&public, &listed);
    assert_eq!(difference.to_string(), "+ http:GET https://x.org/\n");
    assert!(!difference.widens && !difference.is_empty());
    let difference =
        GrantDifference::between(&grants(&["http:GET public"]), &grants(&["http:PUT public"]));
    assert_eq!(
        difference.to_string(),
        "- http:GET public\n+ http:PUT public\n"
    );
}
