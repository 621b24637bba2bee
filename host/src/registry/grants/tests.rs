//! The grammar by examples of what is taken and what is refused, and the laws of the sets by properties.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::json;

use super::difference::Difference;
use super::{ATOMS_MAX, Atom, Grants};

fn atom(text: &str) -> Atom {
    Atom::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn grants(atoms: &[&str]) -> Grants {
    Grants::parse(atoms).unwrap_or_else(|error| panic!("{error}"))
}

/// The text is refused, and the message is the text in backticks and this.
fn refused(text: &str, rule: &str) {
    match Atom::parse(text) {
        Ok(atom) => panic!("{atom} is taken"),
        Err(error) => assert_eq!(error.to_string(), format!("`{}` {rule}", text.escape_debug())),
    }
}

#[test]
fn plugins_are_told_of_the_names_that_are_refused_here() {
    assert_eq!(super::host::NEVER_PUBLIC, switchbay_sdk::host_name::NEVER_PUBLIC);
}

#[test]
fn each_interface_has_its_form() {
    let taken = [
        "blobs:256MiB",
        "browser",
        "cache:1",
        "cache:1025",
        "cache:3GiB",
        "config",
        "dns:cloudflare",
        "features:web-data.read_page",
        "http:DELETE https://api.example.com:8443/v1/zones/",
        "http:GET http://example.com/",
        "http:GET http://example.com:443/",
        "http:GET https://*.example.co.uk/",
        "http:GET https://data.iana.org/rdap/dns.json",
        "http:GET https://xn--bcher-kva.example/",
        "http:GET public",
        "http:GET,HEAD,POST,PUT,PATCH,DELETE,OPTIONS public",
        "ip-database:city",
        "jobs",
        "line-query:*.example.com:65535",
        "line-query:*:43",
        "line-query:whois.verisign-grs.com:43",
        "logging",
        "media:yt-dlp",
        "state:16KiB",
    ];
    for text in taken {
        let atom = atom(text);
        assert_eq!(atom.to_string(), text);
        assert_eq!(Some(atom.interface()), text.split(':').next());
        assert_eq!(serde_json::to_value(&atom).expect("JSON"), json!(text));
        assert_eq!(serde_json::from_value::<Atom>(json!(text)).expect("an atom"), atom);
    }
    let all = grants(&taken[..2]);
    assert_eq!(serde_json::to_value(&all).expect("JSON"), json!(["blobs:256MiB", "browser"]));
    assert_eq!(serde_json::from_value::<Grants>(json!(["browser", "blobs:256MiB"])).expect("grants"), all);
}

#[test]
fn an_atom_that_is_none_is_told_why() {
    let known = "is no grant that this host knows; it knows blobs, browser, cache, config, dns, features, http, \
                 ip-database, jobs, line-query, logging, media, state";
    for text in ["fetch", "*", "Config", " config", "config ", "fetch:x", ":", "https://example.com/", "cönfig"] {
        refused(text, known);
    }
    refused("", "is no grant: it is empty");
    let long = Atom::parse(&"c".repeat(513)).expect_err("a long one");
    assert_eq!(long.to_string(), format!("`{}` has 513 bytes; a grant has at most 512", "c".repeat(200)));
    refused("http:GET\tpublic", "has the character '\\t', which no grant may have");
    refused("config\0", "has the character '\\0', which no grant may have");
    refused("dns:a\u{a0}b", "has the character '\\u{a0}', which no grant may have");
    refused("dns:\u{202e}b", "has the character '\\u{202e}', which no grant may have");
}

#[test]
fn an_atom_of_another_form_is_told_its_own() {
    let form = |interface: &str, form: &str| format!("is not of its interface's form: `{interface}` takes {form}");
    for text in ["config:x", "config:"] {
        refused(text, &form("config", "nothing behind the name"));
    }
    for text in ["cache", "cache:", "cache:MiB", "cache:-1", "cache:1 MiB", "cache:1.5MiB", "cache:1mib", "cache:1MB"] {
        refused(text, &form("cache", "a size, such as `64MiB`"));
    }
    for text in ["dns", "dns:", "dns:*", "dns:Cloudflare", "dns:1x", "dns:a b", "dns:a.b"] {
        refused(text, &form("dns", "a name of a-z, 0-9, - and _"));
    }
    for text in ["features", "features:a", "features:a.", "features:.b", "features:a.b.c", "features:a.*"] {
        refused(text, &form("features", "a plugin and one of its operations, such as `plugin.operation`"));
    }
    for text in ["http", "http:GET", "http:GET  public", "http:GET public ", "http:GET *", "http:GET example.com/"] {
        let takes = "methods and a target, such as `GET https://example.com/api/` or `GET public`";
        refused(text, &form("http", takes));
    }
    for text in ["line-query", "line-query:*", "line-query:whois.example.net"] {
        refused(text, &form("line-query", "a host and a port, such as `whois.example.net:43` or `*:43`"));
    }
}

#[test]
fn a_right_has_one_spelling() {
    let spelled = |text: &str, canonical: &str| refused(text, &format!("has one spelling here: `{canonical}`"));
    spelled("cache:1024KiB", "cache:1MiB");
    spelled("cache:064MiB", "cache:64MiB");
    spelled("state:1073741824", "state:1GiB");
    spelled("http:POST,GET public", "http:GET,POST public");
    spelled("http:GET https://x.org", "http:GET https://x.org/");
    spelled("http:GET https://X.org/", "http:GET https://x.org/");
    spelled("http:GET https://x.org:443/", "http:GET https://x.org/");
    spelled("http:GET http://x.org:80/", "http:GET http://x.org/");
    spelled("http:GET https://bücher.example/", "http:GET https://xn--bcher-kva.example/");
    spelled("http:GET https://%78.org/", "http:GET https://x.org/");
    spelled("line-query:WHOIS.example.net:43", "line-query:whois.example.net:43");
    refused("cache:0", "grants a size of zero");
    refused("cache:0GiB", "grants a size of zero");
    let large = "18446744073709551615KiB";
    refused(&format!("cache:{large}"), &format!("has the size `{large}`, which is more than any machine has"));
}

#[test]
fn a_method_is_known_and_stands_once() {
    for method in ["get", "TRACE", "CONNECT", "*", "", "GET;"] {
        let rule = "the methods are GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, in upper case";
        refused(&format!("http:{method} public"), &format!("has the method `{method}`; {rule}"));
    }
    refused(
        "http:GET, public",
        "has the method ``; the methods are GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, in upper case",
    );
    refused("http:GET,GET public", "has the method `GET` twice");
}

#[test]
fn a_target_is_a_name_that_may_be_public_and_a_plain_path() {
    let target = |text: &str, rule: &str| refused(&format!("http:GET {text}"), rule);
    target("ftp://x.org/", "has the scheme `ftp`; it must be https or http");
    target("HTTPS://x.org/", "has the scheme `HTTPS`; it must be https or http");
    target("https://me:word@x.org/", "has credentials in its target; the operator binds secrets apart");
    target("https://x.org/?a=b", "has a query; a grant ends with the path");
    target("https://x.org?a#b", "has a query; a grant ends with the path");
    target("https://x.org/#b?", "has a fragment; a grant ends with the path");
    for port in ["0", "65536", "080", "+80", "a", "", "-1"] {
        let rule = format!("has the port `{port}`; it must be from 1 to 65535, in decimal");
        target(&format!("https://x.org:{port}/"), &rule);
        refused(&format!("line-query:*:{port}"), &rule);
    }
    for host in ["*", "*.com", "a.*.com", "*a.x.org", "*.*.x.org", "x.*"] {
        let rule = "one may stand only for the whole first label above a name of at least two";
        target(&format!("https://{host}/"), &format!("has a wildcard in `{host}`; {rule}"));
    }
    for address in ["127.0.0.1", "1.1.1.1", "[::1]", "[2606:4700::1111]", "0x7f.1", "2130706433", "*.1.1"] {
        let told = address.trim_start_matches("*.");
        let rule = format!("has the address `{told}`; write a name, addresses are judged when it is resolved");
        target(&format!("https://{address}/"), &rule);
    }
    for host in ["localhost", "a.localhost", "printer.local", "db.internal", "x.onion", "x.home.arpa", "intranet"] {
        target(&format!("https://{host}/"), &format!("has the host `{host}`, which is never public"));
    }
    let long = format!("{}.org", "a".repeat(64));
    for host in ["", "x..org", "x.org.", ".x.org", "-x.org", "x-.org", "x_y.org", "xn--a.org", &long] {
        target(&format!("https://{host}/"), &format!("has the host `{host}`, which is no host name"));
    }
    for path in ["/a*", "/*", "/../", "/a/../b/", "/.", "/%2e%2e/", "/a%2fb/", "//", "/a//b", "/a\\b", "/ä/", "/a;b/"]
    {
        let rule = "it must be of segments of a-z, A-Z, 0-9 and -._~@:+=, without dots alone";
        target(&format!("https://x.org{path}"), &format!("has the path `{path}`; {rule}"));
    }
}

#[test]
fn a_list_says_each_thing_once_and_has_a_limit() {
    let twice = |atoms: [&str; 2], text: &str| match Grants::parse(atoms) {
        Ok(_) => panic!("{atoms:?} is taken"),
        Err(error) => assert_eq!(error.to_string(), text),
    };
    twice(["config", "config"], "`config` stands beside `config`, which says it already or says otherwise");
    twice(
        ["cache:2KiB", "cache:1KiB"],
        "`cache:1KiB` stands beside `cache:2KiB`, which says it already or says otherwise",
    );
    assert!(Grants::parse(["cache:1KiB", "state:2KiB"]).is_ok(), "two interfaces have a size each");
    let names: Vec<String> = (0..=ATOMS_MAX).map(|index| format!("dns:n{index}")).collect();
    assert!(Grants::parse(&names[..ATOMS_MAX]).is_ok());
    let error = Grants::parse(&names).expect_err("one too many");
    assert_eq!(error.to_string(), "`dns:n64` is one too many; a plugin has at most 64");
}

#[test]
fn an_atom_covers_what_lies_within_it() {
    let covers = |one: &str, two: &str| atom(one).covers(&atom(two));
    let within = [
        ("http:GET https://x.org/rdap/", "http:GET https://x.org/rdap/a"),
        ("http:GET https://x.org/rdap/", "http:GET https://x.org/rdap/a/"),
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
        ("http:GET https://x.org/rdap/", "http:GET https://x.org/rdapx"),
        ("http:GET https://x.org/rdap/", "http:GET https://x.org/rdap"),
        ("http:GET https://x.org/rdap", "http:GET https://x.org/rdap/a"),
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
        assert!(!covers(one, two) && !covers(two, one), "{one} and {two} are apart");
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
    check(&["cache:16MiB"], &["cache:64MiB"], &["cache:16MiB"], &["cache:64MiB"]);
    check(&["cache:64MiB"], &["cache:16MiB"], &["cache:16MiB"], &[]);
    let one = "http:GET https://x.org/a";
    check(&[one], &["http:GET public"], &[one], &["http:GET public"]);
    check(&["http:GET public", one], &["http:GET public"], &["http:GET public"], &[]);
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
    let before =
        ["cache:16MiB", "config", "http:GET https://x.org/", "http:GET,PUT https://y.org/", "state:2KiB", "dns:a"];
    let after =
        ["cache:64MiB", "config", "http:GET,POST https://x.org/", "http:GET https://y.org/", "state:1KiB", "dns:b"];
    let difference = Difference::between(&grants(&before), &grants(&after));
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

    // What another atom covers is added, and allows nothing new; other methods are neither wider nor narrower.
    let public = grants(&["http:GET,POST public"]);
    let listed = grants(&["http:GET,POST public", "http:GET https://x.org/"]);
    let difference = Difference::between(&public, &listed);
    assert_eq!(difference.to_string(), "+ http:GET https://x.org/\n");
    assert!(!difference.widens && !difference.is_empty());
    let difference = Difference::between(&grants(&["http:GET public"]), &grants(&["http:PUT public"]));
    assert_eq!(difference.to_string(), "- http:GET public\n+ http:PUT public\n");
}

/// Atoms of few words, so that many overlap.
fn atoms() -> impl Strategy<Value = Atom> {
    let methods = subsequence(vec!["GET", "POST", "DELETE"], 1..=3);
    let hosts = select(vec!["x.org", "a.x.org", "b.a.x.org", "*.x.org", "*.a.x.org", "y.net"]);
    let (schemes, ports) = (select(vec!["https", "http"]), select(vec!["", ":8443"]));
    let paths = select(vec!["/", "/a", "/a/", "/a/b", "/a/b/", "/ab"]);
    let origin = (schemes, hosts.clone(), ports, paths).prop_map(|(s, h, p, path)| format!("{s}://{h}{p}{path}"));
    let target = prop_oneof![1 => Just("public".to_owned()), 6 => origin];
    let http = (methods, target).prop_map(|(methods, target)| format!("http:{} {target}", methods.join(",")));
    // An odd number of a unit is in its one spelling.
    let units = select(vec!["", "KiB", "MiB", "GiB"]);
    let interfaces = select(vec!["cache", "state"]);
    let size = (interfaces, 0..4096_u64, units).prop_map(|(i, number, unit)| format!("{i}:{}{unit}", number * 2 + 1));
    let place = prop_oneof![1 => Just("*"), 3 => hosts];
    let line = (place, select(vec![43, 4343])).prop_map(|(host, port)| format!("line-query:{host}:{port}"));
    let other = select(vec!["config", "jobs", "dns:a", "dns:b", "features:a.b"]).prop_map(str::to_owned);
    prop_oneof![4 => http, 2 => size, 2 => line, 1 => other].prop_map(|text| atom(&text))
}

fn sets() -> impl Strategy<Value = Grants> {
    proptest::collection::vec(atoms(), 0..8).prop_map(Grants::from_iter)
}

proptest! {
    #[test]
    fn what_is_taken_is_spelled_as_it_was_written(text in r"(http:GET (https?://)?|line-query:|cache:|dns:)?[ -~ä]{0,24}") {
        if let Ok(atom) = Atom::parse(&text) {
            prop_assert_eq!(atom.to_string(), text);
        }
    }

    #[test]
    fn a_target_is_what_a_client_of_the_url_would_ask_for(rest in r"[a-c.]{1,8}\.org(:[0-9]{1,3})?(/[a-c.%2e]{0,4}){0,3}") {
        let target = format!("https://{rest}");
        if Atom::parse(&format!("http:GET {target}")).is_ok() {
            let url = url::Url::parse(&target).expect("a URL");
            prop_assert_eq!(url.as_str(), target);
        }
    }

    #[test]
    fn parsing_undoes_display(one in atoms()) {
        prop_assert_eq!(Atom::parse(&one.to_string()), Ok(one));
    }

    #[test]
    fn covering_is_reflexive_and_transitive(one in atoms(), two in atoms(), three in atoms()) {
        prop_assert!(one.covers(&one));
        prop_assert!(!(one.covers(&two) && two.covers(&three)) || one.covers(&three));
        prop_assert!(!(one.covers(&two) && two.covers(&one)) || one == two);
    }

    #[test]
    fn a_meet_is_what_both_cover_and_no_less(one in atoms(), two in atoms(), three in atoms()) {
        let meet = one.meet(&two);
        prop_assert_eq!(&meet, &two.meet(&one));
        prop_assert!(meet.as_ref().is_none_or(|meet| one.covers(meet) && two.covers(meet)));
        let within_both = one.covers(&three) && two.covers(&three);
        prop_assert_eq!(within_both, meet.is_some_and(|meet| meet.covers(&three)));
    }

    #[test]
    fn the_effective_rights_exceed_neither_side(granted in sets(), wanted in sets(), asked in atoms()) {
        let effective = granted.effective(&wanted);
        for atom in effective.iter() {
            prop_assert!(granted.covers(atom) && wanted.covers(atom), "{atom}");
        }
        prop_assert_eq!(effective.covers(&asked), granted.covers(&asked) && wanted.covers(&asked));
        prop_assert_eq!(&effective, &wanted.effective(&granted));
        prop_assert_eq!(granted.uncovered(&wanted).iter().count() == 0, wanted.iter().all(|atom| effective.covers(atom)));
    }

    #[test]
    fn a_difference_accounts_for_every_atom(before in sets(), after in sets()) {
        prop_assert!(Difference::between(&before, &before).is_empty());
        prop_assert!(!Difference::between(&before, &before).widens);
        let difference = Difference::between(&before, &after);
        prop_assert_eq!(difference.is_empty(), before == after);
        prop_assert_eq!(difference.widens, before.uncovered(&after).iter().count() > 0);
        let told = serde_json::to_value(&difference).expect("JSON");
        let count = |member: &str| told[member].as_array().map_or(0, Vec::len);
        let resized = count("widened") + count("narrowed");
        prop_assert_eq!(count("kept") + count("removed") + resized, before.iter().count());
        prop_assert_eq!(count("kept") + count("added") + resized, after.iter().count());
        prop_assert_eq!(difference.to_string().lines().count(), count("added") + count("removed") + resized);
    }
}
