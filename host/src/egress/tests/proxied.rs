//! The proxy comes to the verdicts of the tables, in both of its forms, and to no others.
//!
//! A row is asked for as a client asks a proxy: with the URL as it stands where a request can carry that, else as a URL parser
//! writes it; and for a tunnel, with the host and port that the URL leads to.

use std::net::IpAddr;

use url::{Host as UrlHost, Url};

use super::{answers, everything_public, hostile, judge, public, text};
use crate::base::address::Public;
use crate::contract::grants::Grants;
use crate::egress::policy::{Destination, EgressDenial, Host, PrivateTarget};
use crate::egress::proxy::head::{ProxyHead, ProxyRequest};

fn asked(method: &str, target: &str) -> Option<ProxyRequest> {
    let head = format!("{method} {target} HTTP/1.1\r\nHost: whatever.test\r\n\r\n");
    Some(ProxyHead::read(head.as_bytes()).ok()??.asked)
}

/// As the proxy comes to it.
fn verdict(
    asked: &ProxyRequest,
    answers: &[IpAddr],
    rights: &Grants,
) -> Result<Destination, EgressDenial> {
    let destination = asked.destination()?;
    destination.permit(asked.way(), rights)?;
    if let Host::Name(_) = destination.host() {
        Public::judge_all(answers.iter().copied()).map_err(PrivateTarget::from)?;
    }
    Ok(destination)
}

fn told(verdict: &Result<Destination, EgressDenial>) -> String {
    match verdict {
        Ok(destination) => format!("{}:{}", destination.host_text(), destination.port()),
        Err(denial) => denial.verdict().to_owned(),
    }
}

/// The host and port of a URL, where a tunnel could be asked for by them.
fn authority(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let is_plain = matches!(url.scheme(), "http" | "https")
        && url.username().is_empty()
        && url.password().is_none();
    let host = url
        .host()
        .filter(|_| is_plain && url.as_str().len() <= 24_576)?;
    let port = url.port_or_known_default()?;
    Some(match host {
        UrlHost::Domain(name) => format!("{name}:{port}"),
        UrlHost::Ipv4(address) => format!("{address}:{port}"),
        UrlHost::Ipv6(address) => format!("[{address}]:{port}"),
    })
}

fn rows() -> Vec<(String, Vec<IpAddr>)> {
    let hostile = hostile()
        .into_iter()
        .map(|row| (text(&row[1]).to_owned(), answers(row.get(2))));
    let public = public()
        .into_iter()
        .map(|row| (text(&row[0]).to_owned(), answers(row.get(1))));
    hostile.chain(public).collect()
}

#[test]
fn an_absolute_url_has_the_verdict_of_a_request_by_the_plugin() {
    let (rights, mut judged, mut unsayable) = (everything_public(), 0, 0);
    for (url, answers) in rows() {
        let expected = told(&judge(&url, &answers, &rights));
        let is_sayable = !url.is_empty() && url.bytes().all(|byte| byte.is_ascii_graphic());
        let raw = asked("GET", &url).map(|asked| told(&verdict(&asked, &answers, &rights)));
        if is_sayable && !url.starts_with('/') {
            assert_eq!(raw, Some(expected.clone()), "{url:?}");
            judged += 1;
        } else {
            assert_eq!(raw, None, "{url:?} is no target");
            unsayable += 1;
        }
        if let Ok(parsed) = Url::parse(&url) {
            let written = asked("GET", parsed.as_str())
                .map(|asked| told(&verdict(&asked, &answers, &rights)));
            // What a parser has taken out is not there any more: a fragment, a character within a name.
            assert_eq!(written, Some(expected), "{url:?} as {parsed}");
        }
    }
    assert!(
        judged >= 450 && unsayable < 40,
        "{judged} were judged and {unsayable} cannot be said"
    );
}

#[test]
fn a_tunnel_has_the_verdict_of_a_request_to_the_same_host_and_port() {
    let (rights, mut judged) = (everything_public(), 0);
    for (url, answers) in rows() {
        let Some(authority) = authority(&url) else {
            continue;
        };
        let expected = told(&judge(&url, &answers, &rights));
        let raw =
            asked("CONNECT", &authority).map(|asked| told(&verdict(&asked, &answers, &rights)));
        assert_eq!(raw, Some(expected), "{url:?} as {authority}");
        judged += 1;
    }
    assert!(judged >= 400, "{judged} were judged");
}

#[test]
fn whatever_is_put_into_the_target_of_a_tunnel_it_is_no_more_than_a_host_and_a_port() {
    let (rights, mut opened) = (everything_public(), 0);
    for (url, answers) in rows() {
        // The text between the slashes as it stands, with whatever stands for a host and a port there.
        let text = url
            .split_once("//")
            .map_or(url.as_str(), |(_, rest)| rest)
            .split('/')
            .next()
            .unwrap_or_default();
        for target in [
            url.clone(),
            text.to_owned(),
            format!("{text}:443"),
            format!("example.com@{text}:80"),
        ] {
            let Some(Ok(destination)) =
                asked("CONNECT", &target).map(|asked| verdict(&asked, &answers, &rights))
            else {
                continue;
            };
            opened += 1;
            // A name is what stands there, to the letter; of an address there are several spellings.
            if let Host::Name(name) = destination.host() {
                let read = percent_encoding::percent_decode_str(&target)
                    .decode_utf8_lossy()
                    .to_ascii_lowercase();
                assert_eq!(read, format!("{name}:{}", destination.port()), "{target:?}");
            }
        }
    }
    assert!(opened > 40, "{opened} were opened");
}

/// An atom, the target of a tunnel, and the verdict on it.
const TUNNELS: [(&str, &str, &str); 17] = [
    ("http:GET public", "example.com:443", "opened"),
    ("http:GET public", "example.com:80", "opened"),
    ("http:POST public", "93.184.215.14:443", "opened"),
    ("http:GET public", "example.com:8443", "not_acceptable"),
    ("http:GET https://example.com/", "example.com:443", "opened"),
    ("http:GET https://example.com/", "EXAMPLE.com:443", "opened"),
    (
        "http:GET https://example.com/",
        "example.com:80",
        "not_granted",
    ),
    (
        "http:GET https://example.com/",
        "www.example.com:443",
        "not_granted",
    ),
    (
        "http:GET https://example.com/",
        "93.184.215.14:443",
        "not_granted",
    ),
    (
        "http:GET https://example.com/",
        "example.com:444",
        "not_acceptable",
    ),
    (
        "http:GET https://*.example.com:8443/",
        "a.b.example.com:8443",
        "opened",
    ),
    (
        "http:GET https://*.example.com:8443/",
        "example.com:8443",
        "not_acceptable",
    ),
    (
        "http:GET https://example.com/api/",
        "example.com:443",
        "not_granted",
    ),
    (
        "http:GET https://example.com/api",
        "example.com:443",
        "not_granted",
    ),
    (
        "http:GET http://example.com/",
        "example.com:80",
        "not_granted",
    ),
    (
        "http:GET http://example.com:8080/",
        "example.com:8080",
        "not_granted",
    ),
    (
        "line-query:example.com:443",
        "example.com:443",
        "not_granted",
    ),
];

#[test]
fn a_tunnel_takes_a_whole_origin_of_https_or_all_that_is_public() {
    let opens = |atom: &str, target: &str| {
        let rights = Grants::parse([atom]).expect("an atom");
        let asked = asked("CONNECT", target).expect("a head");
        verdict(&asked, &[IpAddr::from([93, 184, 215, 14])], &rights)
            .map_err(|denial| denial.verdict())
    };
    for (atom, target, expected) in TUNNELS {
        let told = opens(atom, target).map_or_else(str::to_owned, |_| "opened".to_owned());
        assert_eq!(told, expected, "{atom} {target}");
    }
}
