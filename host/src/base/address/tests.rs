//! Both ends of every row and their neighbours, IANA's own tables, and every form of an address within an address.

use super::*;

fn is_public(address: &str) -> bool {
    Public::judge(address.parse().expect("an address")).is_ok()
}

fn last_v4(prefix: Ipv4Addr, length: u32) -> u32 {
    prefix.to_bits() | u32::MAX.checked_shr(length).unwrap_or(0)
}

fn last_v6(prefix: Ipv6Addr, length: u32) -> u128 {
    prefix.to_bits() | u128::MAX.checked_shr(length).unwrap_or(0)
}

#[test]
fn each_row_begins_where_its_prefix_does() {
    for (prefix, length, block) in V4.into_iter().chain(V4_GLOBAL) {
        assert_eq!(
            prefix.to_bits() & !(u32::MAX.checked_shl(32 - length).unwrap_or(0)),
            0,
            "{prefix}: {block}"
        );
    }
    for (prefix, length, block) in V6_WITHIN.into_iter().chain(V6_OUTSIDE).chain(V6_GLOBAL) {
        assert_eq!(
            prefix.to_bits() & !(u128::MAX.checked_shl(128 - length).unwrap_or(0)),
            0,
            "{prefix}: {block}"
        );
    }
}

#[test]
fn both_ends_of_every_block_are_refused_and_named() {
    for (prefix, length, block) in V4 {
        for bits in [prefix.to_bits(), last_v4(prefix, length)] {
            let address = Ipv4Addr::from_bits(bits);
            let refused = Public::judge(address.into()).expect_err("it is special");
            let is_broadcast = address == Ipv4Addr::BROADCAST;
            assert!(
                refused.block == block || is_broadcast,
                "{address}: {refused}"
            );
        }
    }
    for (prefix, length, _) in V6_WITHIN.into_iter().chain(V6_OUTSIDE) {
        for bits in [prefix.to_bits(), last_v6(prefix, length)] {
            let address = Ipv6Addr::from_bits(bits);
            assert!(Public::judge(address.into()).is_err(), "{address}");
        }
    }
}

#[test]
fn the_neighbours_of_a_block_are_public() {
    let neighbours = [
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "168.63.129.15",
        "168.63.129.17",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "191.255.255.255",
        "192.0.1.0",
        "192.0.1.255",
        "192.0.3.0",
        "192.31.196.1",
        "192.52.193.1",
        "192.88.98.255",
        "192.88.100.0",
        "192.167.255.255",
        "192.169.0.0",
        "192.175.48.1",
        "198.17.255.255",
        "198.20.0.0",
        "198.51.99.255",
        "198.51.101.0",
        "203.0.112.255",
        "203.0.114.0",
        "223.255.255.255",
        "2000::",
        "2000:ffff::1",
        "2001:200::",
        "2001:db7:ffff::1",
        "2001:db9::",
        "2001:ffff::1",
        "2003::",
        "2620:4f:8000::1",
        "2606:4700:4700::1111",
        "3ffe:ffff::1",
        "3fff:1000::",
        "3fff:ffff::1",
    ];
    for address in neighbours {
        assert!(is_public(address), "{address}");
    }
}

/// A row of `special.json`: a prefix, and whether IANA's registry calls it globally reachable. No row within another is
/// judged by the outer one.
fn special() -> Vec<(ipnet::IpNet, bool)> {
    let rows: Vec<(ipnet::IpNet, bool, String)> =
        serde_json::from_str(include_str!("../../../../tests/it/ip_info/special.json"))
            .expect("a table");
    rows.into_iter()
        .map(|(prefix, global, _)| (prefix, global))
        .collect()
}

#[test]
fn what_the_registries_call_special_is_named_and_global_where_they_say_so() {
    let rows = special();
    assert_eq!(rows.len(), 57);
    for (prefix, global) in &rows {
        for address in [prefix.network(), prefix.broadcast()] {
            let inner = rows
                .iter()
                .filter(|(row, _)| row.contains(&address))
                .max_by_key(|(row, _)| row.prefix_len());
            let expected = inner.map_or(*global, |(_, global)| *global);
            let class = classify(address);
            assert_eq!(
                (class.global, class.range.is_some()),
                (expected, true),
                "{address} of {prefix}"
            );
            assert!(class.global || !class.dialable, "{address}");
        }
    }
}

#[test]
fn an_address_that_only_stands_for_another_tells_it() {
    let check = |text: &str, expected: Option<&str>| {
        let found = carried(text.parse().expect("an address"));
        assert_eq!(
            found,
            expected.map(|text| text.parse().expect("an address")),
            "{text}"
        );
    };
    check("::ffff:8.8.8.8", Some("8.8.8.8"));
    check("64:ff9b::1.2.3.4", Some("1.2.3.4"));
    check("2002:a00:1::1", Some("10.0.0.1"));
    check("64:ff9b:1::1.2.3.4", None);
    check("::1.2.3.4", None);
    check("2001:0:808:808::1", None);
    check("2606:4700::1111", None);
}

#[test]
fn an_address_within_an_address_is_refused_whatever_it_carries() {
    let carriers = [
        "::ffff:8.8.8.8",
        "::ffff:127.0.0.1",
        "::8.8.8.8",
        "::127.0.0.1",
        "::ffff:0:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a00:1",
        "2002:808:808::1",
        "2002:7f00:1::1",
        "2001:0:808:808::1",
    ];
    for address in carriers {
        assert!(!is_public(address), "{address}");
    }
}

#[test]
fn outside_of_what_is_handed_out_nothing_is_public() {
    for first in (0..=u16::MAX).filter(|first| !(0x2000..0x4000).contains(first)) {
        for last in [0, 1, u16::MAX] {
            let address = Ipv6Addr::new(first, last, 0, 0, 0, 0, 0, last);
            assert!(Public::judge(address.into()).is_err(), "{address}");
        }
    }
}

#[test]
fn one_answer_that_is_not_public_spoils_a_name() {
    let judge = |addresses: &[&str]| {
        Public::judge_all(
            addresses
                .iter()
                .map(|one| one.parse::<IpAddr>().expect("an address")),
        )
    };
    assert_eq!(
        judge(&["8.8.8.8", "2606:4700::1111"]).map(|all| all.len()),
        Ok(2)
    );
    for mixed in [
        ["8.8.8.8", "10.0.0.1"],
        ["10.0.0.1", "8.8.8.8"],
        ["8.8.8.8", "::1"],
    ] {
        let refused = judge(&mixed).expect_err("one is not public").to_string();
        assert!(refused.contains("is not public: it is"), "{refused}");
    }
}
