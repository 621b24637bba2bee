//! The verdicts by table, and by a hundred thousand URLs that nobody would write.
//!
//! A row of `hostile.json` is the verdict, a URL and what its name is answered with; one of `public.json` is a URL and its
//! answers. All is judged with a grant for any public destination, so that nothing but the rules stands in the way.

mod mutated;
mod proxied;

use std::net::IpAddr;

use serde_json::Value;

use super::policy::{Destination, DestinationUse, EgressDenial, Host, PrivateTarget};
use crate::base::address::Public;
use crate::contract::grants::{Grants, Rights};

fn everything_public() -> Grants {
    Grants::parse(["http:GET public"]).expect("an atom")
}

/// The verdict as the gate comes to it: the URL, the grants, and then the addresses that the name leads to.
fn judge(url: &str, answers: &[IpAddr], rights: &Grants) -> Result<Destination, EgressDenial> {
    let destination = Destination::read(url)?;
    destination.permit(DestinationUse::Request { method: "GET" }, rights)?;
    if let Host::Name(_) = destination.host() {
        Public::judge_all(answers.iter().copied()).map_err(PrivateTarget::from)?;
    }
    Ok(destination)
}

fn rows(text: &str) -> Vec<Vec<Value>> {
    serde_json::from_str(text).expect("a table")
}

fn hostile() -> Vec<Vec<Value>> {
    rows(include_str!("hostile.json"))
}

fn public() -> Vec<Vec<Value>> {
    rows(include_str!("public.json"))
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

fn answers(value: Option<&Value>) -> Vec<IpAddr> {
    let answers = value.and_then(Value::as_array).cloned().unwrap_or_default();
    answers
        .iter()
        .map(|answer| text(answer).parse().expect("an address"))
        .collect()
}

#[test]
fn no_hostile_destination_is_let_through() {
    let (rows, rights) = (hostile(), everything_public());
    assert!(rows.len() >= 250, "{} rows", rows.len());
    let mut wrong = Vec::new();
    for row in &rows {
        let (expected, url) = (text(&row[0]), text(&row[1]));
        let told = match judge(url, &answers(row.get(2)), &rights) {
            Ok(destination) => format!("let through to {}", destination.host_text()),
            Err(denial) if denial.verdict() == expected => continue,
            Err(denial) => format!("{}: {denial}", denial.verdict()),
        };
        wrong.push(format!("{url:?} should be {expected} and is {told}"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_public_is_let_through() {
    let (rows, rights) = (public(), everything_public());
    assert!(rows.len() >= 60, "{} rows", rows.len());
    let refused = |row: &Vec<Value>| {
        let refusal = judge(text(&row[0]), &answers(row.get(1)), &rights).err()?;
        Some(format!("{}: {refusal}", row[0]))
    };
    let wrong: Vec<String> = rows.iter().filter_map(refused).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn verdict(method: &str, url: &str, atoms: &[&str]) -> &'static str {
    let rights = Grants::parse(atoms).expect("atoms");
    match Destination::read(url)
        .and_then(|destination| destination.permit(DestinationUse::Request { method }, &rights))
    {
        Ok(()) => "allowed",
        Err(denial) => denial.verdict(),
    }
}

#[test]
fn a_request_is_within_an_atom_or_denied() {
    let rdap = ["http:GET,HEAD https://api.example.com/rdap/"];
    let check = |method: &str, url: &str, expected: &str| {
        assert_eq!(verdict(method, url, &rdap), expected, "{url}");
    };
    check("GET", "https://api.example.com/rdap/", "allowed");
    check(
        "HEAD",
        "https://api.example.com/rdap/domain/x?q=1#f",
        "allowed",
    );
    check(
        "GET",
        "https://API.example.com:443/rdap/../rdap/a",
        "allowed",
    );
    check("GET", "https://api.example.com/rdap/a%2Fb", "allowed");
    check("GET", "https://api.example.com/rdap/a.b/..c/.d", "allowed");
    check("POST", "https://api.example.com/rdap/", "not_granted");
    check("get", "https://api.example.com/rdap/", "not_granted");
    check("GET", "http://api.example.com/rdap/", "not_granted");
    check("GET", "https://api.example.com:80/rdap/", "not_granted");
    check("GET", "https://api.example.com/rdap", "not_granted");
    check("GET", "https://api.example.com/rdapx/", "not_granted");
    check("GET", "https://www.api.example.com/rdap/", "not_granted");
    check(
        "GET",
        "https://api.example.com.evil.org/rdap/",
        "not_granted",
    );
    check("GET", "https://93.184.215.14/rdap/", "not_granted");
    check(
        "GET",
        "https://api.example.com:8443/rdap/",
        "not_acceptable",
    );
    check("GET", "https://localhost/rdap/", "not_public");
    let upwards = [
        "/rdap/../secret",
        "/rdap/%2e%2e/secret",
        "/rdap/.%2E/secret",
        "/rdap/..%2fsecret",
        "/rdap/%2e%2e%2fsecret",
        "/rdap/a%2f..%2f..%2fsecret",
        "/rdap/..%5csecret",
        "/rdap/..\\secret",
        "/rdap/%252e%252e%252fsecret",
        "/rdap/%25252e%25252e%25252fsecret",
        "/rdap/..;/secret",
        "/rdap/..;a=b/secret",
        "/rdap/..%3b/secret",
        "/rdap/%00",
        "/%72dap/x",
        "//rdap/x",
    ];
    for path in upwards {
        check(
            "GET",
            &format!("https://api.example.com{path}"),
            "not_granted",
        );
    }
}

#[test]
fn atoms_of_hosts_ports_and_single_resources_hold_to_the_letter() {
    let zones = ["http:DELETE https://*.example.com:8443/v1/zones/"];
    assert_eq!(
        verdict("DELETE", "https://a.b.example.com:8443/v1/zones/1", &zones),
        "allowed"
    );
    assert_eq!(
        verdict("DELETE", "https://example.com:8443/v1/zones/1", &zones),
        "not_acceptable"
    );
    assert_eq!(
        verdict("DELETE", "http://a.example.com:8443/v1/zones/1", &zones),
        "not_granted"
    );
    assert_eq!(
        verdict("DELETE", "https://a.example.com:8444/v1/zones/1", &zones),
        "not_acceptable"
    );
    let one = ["http:GET https://example.com/rdap/dns.json"];
    assert_eq!(
        verdict("GET", "https://example.com/rdap/dns.json?x=1", &one),
        "allowed"
    );
    for path in [
        "/rdap/dns.json/",
        "/rdap/dns.jso%6e",
        "/rdap//dns.json",
        "/rdap/dns.json%00",
        "/rdap/DNS.json",
    ] {
        assert_eq!(
            verdict("GET", &format!("https://example.com{path}"), &one),
            "not_granted",
            "{path}"
        );
    }
    let whole = ["http:GET https://example.com/"];
    assert_eq!(
        verdict("GET", "https://example.com/..%2f..%5c", &whole),
        "allowed"
    );
    // Whatever is granted, what is not public stays so.
    let wide = [
        "http:GET,POST,PUT,DELETE public",
        "http:GET https://*.example.com/",
    ];
    assert_eq!(verdict("GET", "http://127.0.0.1/", &wide), "not_public");
    assert_eq!(
        verdict("TRACE", "http://example.com/", &wide),
        "not_granted"
    );
    assert_eq!(verdict("GET", "http://example.com/", &[]), "not_granted");
}

#[test]
fn a_right_names_a_host_only_where_the_operator_does() {
    let rights = |granted: &[&str], wanted: &[&str]| {
        let grants = |atoms: &[&str]| Grants::parse(atoms).expect("atoms");
        Rights::between(&grants(granted), &grants(wanted))
    };
    let named = |granted: &[&str], wanted: &[&str]| rights(granted, wanted).named().clone();
    let (public, search) = (
        "http:GET public",
        "http:GET https://search.example.com/api/",
    );
    assert!(
        named(&[public], &[search]).is_empty(),
        "a wish does not make a name of a wide grant"
    );
    assert!(named(&["http:GET https://*.example.com/"], &[search]).is_empty());
    assert!(named(&["line-query:*:43"], &["line-query:whois.example.net:43"]).is_empty());
    assert_eq!(
        named(&[public, search], &[public]),
        Grants::parse([search]).expect("an atom")
    );
    let both = rights(&[public, search], &[public]);
    assert_eq!(
        serde_json::to_value(&both).expect("JSON"),
        serde_json::json!([public, search])
    );
    assert_ne!(
        both,
        rights(&[public], &[public]),
        "a name is a right of its own"
    );
    let whole = [
        "http:GET,POST https://search.example.com/",
        "line-query:whois.example.net:43",
    ];
    assert_eq!(
        named(&whole, &[search, "line-query:*:43"]),
        Grants::parse([search, whole[1]]).expect("atoms")
    );
}

#[test]
fn a_redirect_is_read_against_where_it_came_from_and_judged_anew() {
    let from = Destination::read("https://example.com/a/b?c").expect("it is public");
    let to = |location: &str| {
        from.redirected(location)
            .map(|to| to.url().as_str().to_owned())
    };
    assert_eq!(to("d?e#f"), Ok("https://example.com/a/d?e".to_owned()));
    assert_eq!(
        to("//other.example.com"),
        Ok("https://other.example.com/".to_owned())
    );
    assert_eq!(to(""), Ok("https://example.com/a/b?c".to_owned()));
    for location in [
        "//127.0.0.1/",
        "http://[::1]/",
        "http://2130706433/",
        "\\\\localhost\\x",
        "http://169.254.169.254",
    ] {
        assert_eq!(
            to(location).as_ref().map_err(EgressDenial::verdict),
            Err("not_public"),
            "{location}"
        );
    }
    for location in [
        "file:///etc/passwd",
        "javascript:0",
        "http://a:b@example.com/",
        "http://",
        "data:,x",
    ] {
        assert_eq!(
            to(location).as_ref().map_err(EgressDenial::verdict),
            Err("not_acceptable"),
            "{location}"
        );
    }
}

/// The verdict on a host alone, as for a query of one line.
fn judge_line(host: &str, answers: &[IpAddr]) -> Result<Host, EgressDenial> {
    let host = Host::read(host)?;
    host.permit_line(43, &Grants::parse(["line-query:*:43"]).expect("an atom"))?;
    if let Host::Name(_) = &host {
        Public::judge_all(answers.iter().copied()).map_err(PrivateTarget::from)?;
    }
    Ok(host)
}

/// The host of a URL as it is written, where it is plain to see which part that is.
fn written_host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest
        .split(['/', '\\', '?', '#'])
        .next()
        .filter(|authority| !authority.contains('@'))?;
    let end = authority
        .rfind(':')
        .filter(|colon| !authority[*colon..].contains(']'))
        .unwrap_or(authority.len());
    Some(&authority[..end]).filter(|host| !host.is_empty())
}

#[test]
fn a_host_alone_is_judged_as_in_a_url() {
    let mut judged = 0;
    for row in hostile().iter().filter(|row| text(&row[0]) == "not_public") {
        let (url, answers) = (text(&row[1]), answers(row.get(2)));
        if let Some(host) = written_host(url) {
            // What a URL's parser takes out of the text (a tab, a newline) is no host here, and let through neither way.
            assert!(judge_line(host, &answers).is_err(), "{host:?}");
        }
        let parsed = url::Url::parse(url).expect("a URL");
        let host = parsed.host_str().expect("a host");
        let verdict = judge_line(host, &answers);
        assert_eq!(
            verdict.as_ref().map_err(EgressDenial::verdict),
            Err("not_public"),
            "{host:?}"
        );
        judged += 1;
    }
    assert!(judged >= 150, "{judged} rows");
    for row in public() {
        let parsed = url::Url::parse(text(&row[0])).expect("a URL");
        let host = parsed.host_str().expect("a host");
        assert!(judge_line(host, &answers(row.get(1))).is_ok(), "{host:?}");
    }
}

#[test]
fn a_query_of_one_line_is_within_an_atom_or_denied() {
    let verdict = |host: &str, port: u16, atoms: &[&str]| {
        let rights = Grants::parse(atoms).expect("atoms");
        let judged = Host::read(host).and_then(|host| host.permit_line(port, &rights));
        judged
            .as_ref()
            .map_or_else(EgressDenial::verdict, |()| "allowed")
    };
    let named = [
        "line-query:whois.example.net:43",
        "line-query:*.example.org:4343",
        "http:GET public",
    ];
    assert_eq!(verdict("whois.example.net", 43, &named), "allowed");
    assert_eq!(verdict("WHOIS.example.NET", 43, &named), "allowed");
    assert_eq!(verdict("a.b.example.org", 4343, &named), "allowed");
    for (host, port) in [
        ("whois.example.net", 4343),
        ("whois.example.net", 80),
        ("whois.example.net", 0),
        ("example.org", 4343),
        ("a.example.org", 43),
        ("example.net", 43),
        ("93.184.215.14", 43),
        ("[2606:2800:21f:cb07:6820:80da:af6b:8b2c]", 43),
    ] {
        assert_eq!(verdict(host, port, &named), "not_granted", "{host}:{port}");
    }
    let any = ["line-query:*:43"];
    for host in [
        "whois.example.net",
        "93.184.215.14",
        "[2606:2800:21f:cb07:6820:80da:af6b:8b2c]",
    ] {
        assert_eq!(verdict(host, 43, &any), "allowed", "{host}");
        assert_eq!(verdict(host, 80, &any), "not_granted", "{host}");
    }
    for host in [
        "",
        "a b.example",
        "a.example\r\nb",
        "a.example\0",
        "user@a.example",
        "a.example:43",
        "a.example/x",
        "::1",
    ] {
        assert_eq!(verdict(host, 43, &any), "not_acceptable", "{host:?}");
    }
    for host in [
        "localhost",
        "whois",
        "127.1",
        "0x7f000001",
        "[::1]",
        "a.internal",
        "\u{ff11}27.0.0.1",
    ] {
        assert_eq!(verdict(host, 43, &any), "not_public", "{host:?}");
    }
}
