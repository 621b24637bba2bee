//! What is taken for an atom and what is refused, with the words that the operator reads.

use serde_json::json;

use super::{atom, grants};
use crate::contract::grants::{Atom, Grants, host};

/// The text is refused, and the message is the text in backticks and this.
fn refused(text: &str, rule: &str) {
    match Atom::parse(text) {
        Ok(atom) => panic!("{atom} is taken"),
        Err(error) => assert_eq!(
            error.to_string(),
            format!("`{}` {rule}", text.escape_debug())
        ),
    }
}

#[test]
fn plugins_are_told_of_the_names_that_are_refused_here() {
    assert_eq!(host::NEVER_PUBLIC, switchbay_sdk::host_name::NEVER_PUBLIC);
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
        assert_eq!(
            serde_json::from_value::<Atom>(json!(text)).expect("an atom"),
            atom
        );
    }
    let all = grants(&taken[..2]);
    assert_eq!(
        serde_json::to_value(&all).expect("JSON"),
        json!(["blobs:256MiB", "browser"])
    );
    assert_eq!(
        serde_json::from_value::<Grants>(json!(["browser", "blobs:256MiB"])).expect("grants"),
        all
    );
}

#[test]
fn an_atom_that_is_none_is_told_why() {
    let known = "is not a grant that this host knows; it knows blobs, browser, cache, config, dns, features, http, \
        ip-database, jobs, line-query, logging, media, state";
    for text in [
        "fetch",
        "*",
        "Config",
        " config",
        "config ",
        "fetch:x",
        ":",
        "https://example.com/",
        "cönfig",
    ] {
        refused(text, known);
    }
    refused("", "is not a grant: it is empty");
    let long = Atom::parse(&"c".repeat(513)).expect_err("a long one");
    assert_eq!(
        long.to_string(),
        format!(
            "`{}` has 513 bytes; a grant may have at most 512",
            "c".repeat(200)
        )
    );
    refused(
        "http:GET\tpublic",
        "has the character '\\t', which is not allowed in a grant",
    );
    refused(
        "config\0",
        "has the character '\\0', which is not allowed in a grant",
    );
    refused(
        "dns:a\u{a0}b",
        "has the character '\\u{a0}', which is not allowed in a grant",
    );
    refused(
        "dns:\u{202e}b",
        "has the character '\\u{202e}', which is not allowed in a grant",
    );
}

#[test]
fn an_atom_of_another_form_is_told_its_own() {
    let form = |interface: &str, form: &str| {
        format!("does not have the form of its interface: `{interface}` takes {form}")
    };
    for text in ["config:x", "config:"] {
        refused(text, &form("config", "only its name"));
    }
    for text in [
        "cache",
        "cache:",
        "cache:MiB",
        "cache:-1",
        "cache:1 MiB",
        "cache:1.5MiB",
        "cache:1mib",
        "cache:1MB",
    ] {
        refused(text, &form("cache", "a size, such as `64MiB`"));
    }
    for text in [
        "dns",
        "dns:",
        "dns:*",
        "dns:Cloudflare",
        "dns:1x",
        "dns:a b",
        "dns:a.b",
    ] {
        refused(text, &form("dns", "a name of a-z, 0-9, - and _"));
    }
    for text in [
        "features",
        "features:a",
        "features:a.",
        "features:.b",
        "features:a.b.c",
        "features:a.*",
    ] {
        refused(
            text,
            &form(
                "features",
                "a plugin and one of its operations, such as `plugin.operation`",
            ),
        );
    }
    for text in [
        "http",
        "http:GET",
        "http:GET  public",
        "http:GET public ",
        "http:GET *",
        "http:GET example.com/",
    ] {
        let takes = "methods and a target, such as `GET https://example.com/api/` or `GET public`";
        refused(text, &form("http", takes));
    }
    for text in ["line-query", "line-query:*", "line-query:whois.example.net"] {
        refused(
            text,
            &form(
                "line-query",
                "a host and a port, such as `whois.example.net:43` or `*:43`",
            ),
        );
    }
}

#[test]
fn a_right_has_one_spelling() {
    let spelled = |text: &str, canonical: &str| {
        refused(text, &format!("must be spelled `{canonical}`"));
    };
    spelled("cache:1024KiB", "cache:1MiB");
    spelled("cache:064MiB", "cache:64MiB");
    spelled("state:1073741824", "state:1GiB");
    spelled("http:POST,GET public", "http:GET,POST public");
    spelled("http:GET https://x.org", "http:GET https://x.org/");
    spelled("http:GET https://X.org/", "http:GET https://x.org/");
    spelled("http:GET https://x.org:443/", "http:GET https://x.org/");
    spelled("http:GET http://x.org:80/", "http:GET http://x.org/");
    spelled(
        "http:GET https://bücher.example/",
        "http:GET https://xn--bcher-kva.example/",
    );
    spelled("http:GET https://%78.org/", "http:GET https://x.org/");
    spelled(
        "line-query:WHOIS.example.net:43",
        "line-query:whois.example.net:43",
    );
    refused("cache:0", "grants a size of zero");
    refused("cache:0GiB", "grants a size of zero");
    let large = "18446744073709551615KiB";
    refused(
        &format!("cache:{large}"),
        &format!("has the size `{large}`, which is too large for any machine"),
    );
}

#[test]
fn a_method_is_known_and_stands_once() {
    for method in ["get", "TRACE", "CONNECT", "*", "", "GET;"] {
        let rule = "the methods are GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, in upper case";
        refused(
            &format!("http:{method} public"),
            &format!("has the method `{method}`; {rule}"),
        );
    }
    refused(
        "http:GET, public",
        "has the method ``; the methods are GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, in upper case",
    );
    refused("http:GET,GET public", "has the method `GET` more than once");
}

fn refused_target(text: &str, rule: &str) {
    refused(&format!("http:GET {text}"), rule);
}

#[test]
fn a_target_is_an_origin_and_a_plain_path() {
    let target = refused_target;
    target(
        "ftp://x.org/",
        "has the scheme `ftp`; it must be https or http",
    );
    target(
        "HTTPS://x.org/",
        "has the scheme `HTTPS`; it must be https or http",
    );
    target(
        "https://me:word@x.org/",
        "has credentials in its target; bind them as `secrets` instead",
    );
    target(
        "https://x.org/?a=b",
        "has a query; a grant ends with the path",
    );
    target(
        "https://x.org?a#b",
        "has a query; a grant ends with the path",
    );
    target(
        "https://x.org/#b?",
        "has a fragment; a grant ends with the path",
    );
    for port in ["0", "65536", "080", "+80", "a", "", "-1"] {
        let rule = format!("has the port `{port}`; it must be from 1 to 65535, in decimal");
        target(&format!("https://x.org:{port}/"), &rule);
        refused(&format!("line-query:*:{port}"), &rule);
    }
    for path in [
        "/a*", "/*", "/../", "/a/../b/", "/.", "/%2e%2e/", "/a%2fb/", "//", "/a//b", "/a\\b",
        "/ä/", "/a;b/",
    ] {
        let rule = "its segments may have a-z, A-Z, 0-9 and -._~@:+=, and must not be only dots";
        target(
            &format!("https://x.org{path}"),
            &format!("has the path `{path}`; {rule}"),
        );
    }
}

#[test]
fn the_host_of_a_target_is_a_name_that_may_be_public() {
    let target = refused_target;
    for host in ["*", "*.com", "a.*.com", "*a.x.org", "*.*.x.org", "x.*"] {
        let rule = "it may only stand for the whole first label, with at least two labels after it";
        target(
            &format!("https://{host}/"),
            &format!("has a wildcard in `{host}`; {rule}"),
        );
    }
    for address in [
        "127.0.0.1",
        "1.1.1.1",
        "[::1]",
        "[2606:4700::1111]",
        "0x7f.1",
        "2130706433",
        "*.1.1",
    ] {
        let told = address.trim_start_matches("*.");
        let rule = format!(
            "has the address `{told}`; write a name: its addresses are checked when it is resolved"
        );
        target(&format!("https://{address}/"), &rule);
    }
    for host in [
        "localhost",
        "a.localhost",
        "printer.local",
        "db.internal",
        "x.onion",
        "x.home.arpa",
        "intranet",
    ] {
        target(
            &format!("https://{host}/"),
            &format!("has the host `{host}`, which is never public"),
        );
    }
    let long = format!("{}.org", "a".repeat(64));
    for host in [
        "",
        "x..org",
        "x.org.",
        ".x.org",
        "-x.org",
        "x-.org",
        "x_y.org",
        "xn--a.org",
        &long,
    ] {
        target(
            &format!("https://{host}/"),
            &format!("has the host `{host}`, which is not a valid host name"),
        );
    }
}
