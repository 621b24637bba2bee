//! Addresses of every form and range: which are looked up, and which are refused before any database is asked.

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::IpNet;
use mmdb_writer::IpVersion;
use reqwest::Method;
use serde_json::json;
use tokio::sync::OnceCell;

use super::databases::{self, Databases};
use super::{ask, serve};
use crate::support::{Service, failure};

/// The service that all share which only want an answer or none.
async fn shared() -> &'static Service {
    static SHARED: OnceCell<(Service, Databases)> = OnceCell::const_new();
    let start = async || {
        // Every network is there, so that what is answered with nulls was not refused.
        let all = databases::file(
            "all",
            IpVersion::V6,
            &[("::/0", json!({ "country_code": "VN" }))],
        );
        let databases = Databases::new().with("city", "own", &[("all.mmdb", &all)]);
        (serve(databases.config()).await, databases)
    };
    &SHARED.get_or_init(start).await.0
}

/// The address that is answered for, or the message of the refusal, which names the field on both faces.
async fn verdict(ip: &str) -> Result<String, String> {
    let service = shared().await;
    let answer = ask(service, ip).await;
    if answer.status == 200 {
        return Ok(answer.json()["data"]["ip"]
            .as_str()
            .expect("an address")
            .to_owned());
    }
    assert_eq!(
        answer.refusal(),
        (400, "VALIDATION_ERROR".to_owned()),
        "{ip}"
    );
    assert_eq!(answer.json()["data"]["field"], "ip", "{ip}");
    let called = service
        .tool("lookup_ip_information", &json!({ "ip": ip }))
        .await;
    let (code, envelope) = failure(&called);
    assert_eq!(
        (code.as_str(), &envelope["data"]["field"]),
        ("VALIDATION_ERROR", &json!("ip")),
        "{ip}"
    );
    Err(answer.json()["error"]["message"]
        .as_str()
        .expect("a message")
        .to_owned())
}

/// The rows of IANA's registries, and what stands beside them: prefix, whether it is global, name.
fn special() -> Vec<(IpNet, bool, String)> {
    serde_json::from_str(include_str!("special.json")).expect("a table")
}

/// Whether the most special of the rows that have it calls an address global; IPv6 that is not handed out is not.
fn expected(rows: &[(IpNet, bool, String)], address: IpAddr) -> bool {
    let inner = rows
        .iter()
        .filter(|(row, ..)| row.contains(&address))
        .max_by_key(|(row, ..)| row.prefix_len());
    match (inner, address) {
        (Some((_, global, _)), _) => *global,
        (None, IpAddr::V4(_)) => true,
        (None, IpAddr::V6(v6)) => v6.segments()[0] & 0xe000 == 0x2000,
    }
}

fn neighbours(row: IpNet) -> Vec<IpAddr> {
    let step = |address: IpAddr, by: i128| match address {
        IpAddr::V4(v4) => u32::try_from(i128::from(v4.to_bits()) + by)
            .ok()
            .map(|bits| IpAddr::from(std::net::Ipv4Addr::from_bits(bits))),
        IpAddr::V6(v6) if by < 0 => v6
            .to_bits()
            .checked_sub(1)
            .map(|bits| std::net::Ipv6Addr::from_bits(bits).into()),
        IpAddr::V6(v6) => v6
            .to_bits()
            .checked_add(1)
            .map(|bits| std::net::Ipv6Addr::from_bits(bits).into()),
    };
    [step(row.network(), -1), step(row.broadcast(), 1)]
        .into_iter()
        .flatten()
        .collect()
}

#[tokio::test]
async fn special_ranges_are_refused_before_any_database_and_their_neighbours_are_not() {
    let rows = special();
    let mut seen = HashMap::new();
    for (row, ..) in &rows {
        // What only stands for an IPv4 address is judged as that one: see below.
        let carries =
            ["::ffff:0:0/96", "64:ff9b::/96", "2002::/16"].contains(&row.to_string().as_str());
        let ends = [row.network(), row.broadcast()]
            .into_iter()
            .filter(|_| !carries);
        for address in ends.chain(neighbours(*row)) {
            let is_within = |prefix: &str| {
                prefix
                    .parse::<IpNet>()
                    .is_ok_and(|prefix| prefix.contains(&address))
            };
            if is_within("::ffff:0:0/96") || is_within("64:ff9b::/96") || is_within("2002::/16") {
                continue;
            }
            let told = verdict(&address.to_string()).await;
            assert_eq!(
                told.is_ok(),
                expected(&rows, address),
                "{address}: {told:?}"
            );
            seen.insert(address, told);
        }
    }
    let refused = seen.values().filter(|told| told.is_err()).count();
    assert!(
        seen.len() > 150 && refused > 80,
        "{} addresses, {refused} refused",
        seen.len()
    );
    let told = seen[&"10.0.0.0".parse::<IpAddr>().expect("an address")].clone();
    assert_eq!(
        told,
        Err("`ip` must be a public address; 10.0.0.0 is in a private network".to_owned())
    );
}

#[tokio::test]
async fn an_address_that_stands_for_another_is_looked_up_as_that_one() {
    for (text, expected) in [
        ("::ffff:8.8.8.8", Ok("8.8.8.8")),
        ("::ffff:808:808", Ok("8.8.8.8")),
        ("64:ff9b::8.8.8.8", Ok("8.8.8.8")),
        ("2002:808:808::1", Ok("8.8.8.8")),
        ("::ffff:10.0.0.1", Err("10.0.0.1 is in a private network")),
        ("::FFFF:127.0.0.1", Err("127.0.0.1 is loopback")),
        ("64:ff9b::a9fe:a9fe", Err("169.254.169.254 is link-local")),
        (
            "2002:c0a8:101::",
            Err("192.168.1.1 is in a private network"),
        ),
        (
            "64:ff9b:1::808:808",
            Err("is a locally translated IPv4 address"),
        ),
        ("::8.8.8.8", Err("is a compatible IPv4 address")),
        ("::ffff:0:8.8.8.8", Err("is a translated IPv4 address")),
    ] {
        match (verdict(text).await, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
            (Err(found), Err(expected)) => assert!(found.ends_with(expected), "{text}: {found}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }
}

#[tokio::test]
async fn an_address_is_a_literal_by_itself_and_is_told_in_one_spelling() {
    for (text, expected) in [
        ("8.8.8.8", "8.8.8.8"),
        ("2606:4700:0:0:0:0:0:1111", "2606:4700::1111"),
        ("2606:4700:0000:0000:0000:0000:0000:1111", "2606:4700::1111"),
        ("2A02:00:00::0AbC", "2a02::abc"),
        ("2001:4860:0:2001::68", "2001:4860:0:2001::68"),
        ("2606:4700::8.8.8.8", "2606:4700::808:808"),
    ] {
        assert_eq!(verdict(text).await.as_deref(), Ok(expected), "{text}");
    }
    let none = [
        "8.8.8",
        "8.8.8.8.8",
        "8.8.8.256",
        "08.8.8.8",
        "8.8.8.08",
        "0x8.8.8.8",
        "134744072",
        "8.8.8.8:53",
        "8.8.8.8/32",
        "8.8.8.8.",
        " 8.8.8.8",
        "8.8.8.8 ",
        "8.8.8.-8",
        "８.８.８.８",
        "[2606:4700::1111]",
        "[2606:4700::1111]:443",
        "2606:4700::1111%eth0",
        "fe80::1%1",
        "2606:4700::1111/64",
        "2606:4700:::1111",
        "2606:4700::1::1",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "2606:47000::1",
        "g::1",
        ":",
        "::ffff:08.8.8.8",
        "localhost",
        "example.com",
        "%",
        "8.8.8.8\u{0}",
        "8.8.8.8\n",
        "xx",
    ];
    for text in none {
        let told = verdict(text).await.expect_err(text);
        assert!(
            told.starts_with("`ip` must be only an IPv4 or IPv6 address") || told.contains("`ip`"),
            "{text}: {told}"
        );
    }
    for text in [
        "1",
        &"1".repeat(65),
        &format!("2606:4700::{}", "0".repeat(2000)),
    ] {
        let answer = ask(shared().await, text).await;
        assert_eq!(
            (answer.refusal().0, &answer.json()["data"]["field"]),
            (400, &json!("ip")),
            "{text}"
        );
    }
}

#[tokio::test]
async fn the_body_is_empty_or_an_empty_object() {
    let service = shared().await;
    let path = "/api/v1/ip-info/8.8.8.8";
    let empty = Service::send(service.request(Method::POST, path)).await;
    assert_eq!(empty.status, 200, "{empty:?}");
    let unknown = service.post(path, &json!({ "lang": "en" })).await;
    assert_eq!(
        (unknown.refusal().0, &unknown.json()["data"]["field"]),
        (400, &json!("lang"))
    );
    let twice = service.post(path, &json!({ "ip": "1.1.1.1" })).await;
    assert_eq!(twice.refusal(), (400, "VALIDATION_ERROR".to_owned()));
    assert_eq!(service.post_raw(path, "[]").await.refusal().0, 400);
    assert_eq!(service.post_raw(path, "{").await.refusal().0, 400);
    assert_eq!(
        service.post_raw(path, " ".repeat(20_000)).await.refusal().0,
        413
    );
    assert_eq!(
        service.get(path).await.refusal(),
        (405, "METHOD_NOT_ALLOWED".to_owned())
    );
    let bare = Service::send(service.bare(Method::POST, path)).await;
    assert_eq!(bare.refusal(), (401, "UNAUTHORIZED".to_owned()));
    let other = service.issue(&["--scope", "bank-qr:banks"]);
    let forbidden = Service::send(service.bare(Method::POST, path).bearer_auth(other)).await;
    assert_eq!(forbidden.refusal(), (403, "FORBIDDEN".to_owned()));
}
