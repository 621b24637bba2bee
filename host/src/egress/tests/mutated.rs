//! A hundred thousand broken URLs. What is let through must be, in the eyes of whoever sends it, what was judged.

use std::net::{IpAddr, Ipv4Addr};

use url::Url;

use super::{everything_public, hostile, public, text};
use crate::base::address::Public;
use crate::egress::policy::{Destination, DestinationUse, EgressDenial, Host};

const URLS: usize = 100_000;

/// Characters that parsers disagree about.
const PIECES: [&str; 46] = [
    "/",
    "\\",
    "@",
    ":",
    "?",
    "#",
    "%",
    ".",
    "..",
    "[",
    "]",
    "\t",
    "\n",
    "\r",
    " ",
    "\0",
    "%00",
    "%2e",
    "%2f",
    "%40",
    "%5c",
    "%31",
    "0x",
    "0",
    "1",
    "7",
    "127",
    "::",
    "::ffff:",
    "80",
    "443",
    "8080",
    "。",
    "．",
    "①",
    "ß",
    "ⓛ",
    "\u{ad}",
    "\u{200b}",
    "http://",
    "https:",
    "//",
    "localhost",
    "example.com",
    "127.0.0.1",
    "-",
];

/// Xorshift: the same URLs each time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap_or(0) % bound.max(1)
    }
}

fn mutate(url: &str, other: &str, random: &mut Random) -> String {
    let mut characters: Vec<char> = url.chars().take(200).collect();
    for _ in 0..=random.below(3) {
        let place = random.below(characters.len() + 1);
        match random.below(6) {
            0 | 1 => {
                characters.splice(place..place, PIECES[random.below(PIECES.len())].chars());
            }
            2 if place < characters.len() => {
                characters.remove(place);
            }
            3 if place < characters.len() => {
                characters[place] = PIECES[random.below(PIECES.len())]
                    .chars()
                    .next()
                    .unwrap_or('x');
            }
            4 => {
                let from = random.below(other.chars().count() + 1);
                characters.splice(place..place, other.chars().skip(from).take(12));
            }
            _ if place < characters.len() => {
                let encoded = format!("%{:02X}", u32::from(characters[place]) & 0xff);
                characters.splice(place..=place, encoded.chars());
            }
            _ => characters.truncate(place),
        }
    }
    characters.into_iter().collect()
}

/// As the C library reads an address: one to four numbers, decimal, octal or hexadecimal, the last of any size.
fn as_c_reads(name: &str) -> Option<Ipv4Addr> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let parts: Vec<u64> = name.split('.').map(number).collect::<Option<_>>()?;
    let (last, first) = parts.split_last()?;
    let bits = first
        .iter()
        .enumerate()
        .map(|(index, part)| (part & 0xff) << (24 - 8 * index))
        .sum::<u64>()
        + last;
    (parts.len() <= 4).then(|| Ipv4Addr::from_bits(u32::try_from(bits & 0xffff_ffff).unwrap_or(0)))
}

fn number(part: &str) -> Option<u64> {
    match part.strip_prefix("0x").or_else(|| part.strip_prefix("0X")) {
        Some("") => Some(0),
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None if part.len() > 1 && part.starts_with('0') => u64::from_str_radix(part, 8).ok(),
        None => part.parse().ok(),
    }
}

/// What is let through: the sender reads the same host and port, and there is no address in the name for anybody.
fn check_allowed(url: &str, destination: &Destination) {
    let uri = destination
        .uri_of(destination.url())
        .expect("it was written once");
    let host = uri
        .host()
        .expect("a host")
        .trim_start_matches('[')
        .trim_end_matches(']');
    match destination.host() {
        Host::Address(address) => {
            let dialled: IpAddr = host.parse().expect("an address in its one form");
            assert_eq!(Public::judge(dialled), Ok(*address), "{url:?}");
        }
        Host::Name(name) => {
            assert_eq!(name, host, "{url:?}");
            assert!(
                host.parse::<IpAddr>().is_err() && as_c_reads(host).is_none(),
                "{url:?} is an address: {host}"
            );
            assert!(
                host.contains('.') && !host.ends_with('.') && !host.ends_with(".localhost"),
                "{url:?}"
            );
        }
    }
    let usual = if destination.is_secure() { 443 } else { 80 };
    assert_eq!(
        uri.port_u16().unwrap_or(usual),
        destination.port(),
        "{url:?}"
    );
    assert!(matches!(destination.port(), 80 | 443), "{url:?}");
    assert!(
        !uri.authority()
            .expect("an authority")
            .as_str()
            .contains('@'),
        "{url:?} has credentials"
    );
}

/// What is denied: there is a reason that stands on its own.
fn check_denied(url: &str, denial: &EgressDenial) {
    let Ok(parsed) = Url::parse(url) else { return };
    let literal = match parsed.host() {
        Some(url::Host::Ipv4(address)) => Some(IpAddr::from(address)),
        Some(url::Host::Ipv6(address)) => Some(IpAddr::from(address)),
        Some(url::Host::Domain(_)) | None => None,
    };
    let is_formed = matches!(parsed.scheme(), "http" | "https")
        && parsed.username().is_empty()
        && parsed.password().is_none()
        && matches!(parsed.port_or_known_default(), Some(80 | 443));
    if let Some(address) = literal.filter(|_| is_formed) {
        assert!(
            Public::judge(address).is_err(),
            "{url:?} is denied for nothing: {denial}"
        );
        assert_eq!(denial.verdict(), "not_public", "{url:?}");
    }
    let label = |label: &str| {
        (1..64).contains(&label.len()) && label.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    let is_plain = parsed.host_str().is_some_and(|host| {
        host.len() < 200
            && host.ends_with(".com")
            && host.split('.').count() > 1
            && host.split('.').all(label)
    });
    assert!(
        !(is_formed && is_plain),
        "{url:?} is denied for nothing: {denial}"
    );
}

#[test]
fn the_verdict_on_a_url_is_the_verdict_on_what_is_dialled() {
    let rights = everything_public();
    let mut seeds: Vec<String> = hostile()
        .iter()
        .map(|row| text(&row[1]).to_owned())
        .collect();
    seeds.extend(
        public()
            .iter()
            .flat_map(|row| std::iter::repeat_n(text(&row[0]).to_owned(), 4)),
    );
    let mut random = Random(0x5eed_cafe_f00d_1234);
    let (mut allowed, mut denied) = (0, 0);
    for _ in 0..URLS {
        let (one, other) = (random.below(seeds.len()), random.below(seeds.len()));
        let url = mutate(&seeds[one], &seeds[other], &mut random);
        let judged = Destination::read(&url).and_then(|to| {
            to.permit(DestinationUse::Request { method: "GET" }, &rights)
                .map(|()| to)
        });
        match judged {
            Ok(destination) => {
                allowed += 1;
                check_allowed(&url, &destination);
            }
            Err(denial) => {
                denied += 1;
                check_denied(&url, &denial);
            }
        }
    }
    assert!(
        allowed > URLS / 20 && denied > URLS / 20,
        "{allowed} were let through and {denied} denied"
    );
}
