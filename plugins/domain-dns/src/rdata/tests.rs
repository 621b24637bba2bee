//! Data on the wire against its texts, type by type; most are examples of the RFC that defines the type.

use super::*;
use crate::sample::name_bytes;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .chars()
        .filter_map(|c| c.to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn strings(texts: &[&[u8]]) -> Vec<u8> {
    let string = |text: &&[u8]| [&[u8::try_from(text.len()).expect("a string")], *text].concat();
    texts.iter().flat_map(string).collect()
}

#[track_caller]
fn check(code: u16, rdata: &[u8], data: &str, normalized: &str) {
    let shown = show(code, Reader::new(rdata));
    assert_eq!(
        (shown.data.as_str(), shown.normalized.as_str()),
        (data, normalized)
    );
}

/// One form alone.
#[track_caller]
fn same(code: u16, rdata: &[u8], data: &str) {
    check(code, rdata, data, data);
}

#[test]
fn addresses() {
    same(1, &[192, 0, 2, 1], "192.0.2.1");
    same(
        28,
        &bytes("20010db8 00000000 00000000 00000001"),
        "2001:db8::1",
    );
    same(
        28,
        &bytes("20010db8 00000001 00010001 00010001"),
        "2001:db8:0:1:1:1:1:1",
    );
    same(
        28,
        &bytes("00000000 00000000 0000ffff c0000201"),
        "::ffff:192.0.2.1",
    );
    same(28, &[0; 16], "::");
}

#[test]
fn names_alone_and_with_numbers() {
    for code in [2, 5, 12, 39] {
        check(
            code,
            &name_bytes("WWW.Example.com"),
            "WWW.Example.com.",
            "www.example.com",
        );
        same(code, &[0], ".");
    }
    check(
        15,
        &[&[0, 10], &*name_bytes("Mail.example.com")].concat(),
        "10 Mail.example.com.",
        "10 mail.example.com",
    );
    same(15, &[0, 0, 0], "0 .");
    let service = [
        &bytes("0000 0001 0051"),
        &*name_bytes("old-slow-box.example.com"),
    ]
    .concat();
    check(
        33,
        &service,
        "0 1 81 old-slow-box.example.com.",
        "0 1 81 old-slow-box.example.com",
    );
}

#[test]
fn soa() {
    // RFC 1035, 5.3, whose mailbox has a dot in its first label.
    let mailbox = [b"\x0AAction\\.dom".as_slice(), b"\x04ISI.\0"].concat();
    let mailbox = [&[11], &b"Action.doma"[..], &mailbox[11..]].concat();
    let numbers = bytes("00000014 00001c20 00000258 0036ee80 0000ea60");
    let rdata = [
        name_bytes("VENERA.ISI.EDU"),
        [mailbox[..12].to_vec(), name_bytes("ISI.EDU")].concat(),
        numbers,
    ]
    .concat();
    check(
        6,
        &rdata,
        "VENERA.ISI.EDU. Action\\.doma.ISI.EDU. 20 7200 600 3600000 60000",
        "venera.isi.edu action\\.doma.isi.edu 20 7200 600 3600000 60000",
    );
}

#[test]
fn texts_are_quoted_for_reading_and_joined_for_comparing() {
    check(
        16,
        &strings(&[b"v=spf1 -all"]),
        r#""v=spf1 -all""#,
        "v=spf1 -all",
    );
    check(
        16,
        &strings(&[b"a", b"b c", b""]),
        r#""a" "b c" """#,
        "ab c",
    );
    check(
        16,
        &strings(&[b"say \"hi\"; \\o/"]),
        r#""say \"hi\"; \\o/""#,
        "say \"hi\"; \\o/",
    );
    check(
        16,
        &strings(&["tiếng".as_bytes()]),
        r#""ti\225\186\191ng""#,
        "tiếng",
    );
    // A character may be cut by the end of a string.
    check(16, &strings(&[&[0xC3], &[0xA9]]), r#""\195" "\169""#, "é");
    check(
        16,
        &strings(&[b"\xFFa\0\n\x7F"]),
        r#""\255a\000\010\127""#,
        "\\255a\0\n\x7F",
    );
    check(16, &[0], r#""""#, "");
}

#[test]
fn caa() {
    // RFC 8659, 4.2 and 4.5.
    same(
        257,
        &[
            &[0],
            &*strings(&[b"issue"]),
            b"ca1.example.net; account=230123",
        ]
        .concat(),
        "0 issue \"ca1.example.net; account=230123\"",
    );
    check(
        257,
        &[&[128], &*strings(&[b"TBS"]), b"Unknown"].concat(),
        "128 TBS \"Unknown\"",
        "128 tbs \"Unknown\"",
    );
    same(
        257,
        &[&[0], &*strings(&[b"issuewild"]), b""].concat(),
        "0 issuewild \"\"",
    );
    same(
        257,
        &[&[0], &*strings(&[b"iodef"]), b"\"\\\xE9"].concat(),
        r#"0 iodef "\"\\\233""#,
    );
}

#[test]
fn ds_dnskey_and_tlsa() {
    // RFC 4034, 5.4.
    let digest = "2BB183AF5F22588179A53B0A98631FAD1A292118";
    let rdata = [bytes("ec45 05 01"), bytes(digest)].concat();
    check(
        43,
        &rdata,
        &format!("60485 5 1 {digest}"),
        &format!("60485 5 1 {}", digest.to_lowercase()),
    );
    // RFC 8080, 6.1.
    let key = bytes(
        "97 4d 96 a2 2d 22 4b c0 1a db 91 50 91 47 7d 44 cc d9 1c 9a 41 a1 14 30 01 01 17 d5 2c 59 24 0e",
    );
    same(
        48,
        &[bytes("0101 03 0f"), key].concat(),
        "257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=",
    );
    // A key that is taken back has no bytes (RFC 8078 says so of CDNSKEY).
    same(48, &bytes("0000 03 00"), "0 3 0");
    // RFC 6698, 2.3.
    let hash = "d2abde240d7cd3ee6b4b28c54df034b97983a1d16e8a410e4561cb106618e971";
    let rdata = [bytes("00 00 01"), bytes(hash)].concat();
    check(
        52,
        &rdata,
        &format!("0 0 1 {}", hash.to_uppercase()),
        &format!("0 0 1 {hash}"),
    );
}

#[test]
fn naptr() {
    // RFC 3403, 6.1 and 6.2.
    let first = [
        &bytes("0064 0032"),
        &*strings(&[b"a", b"z3950+N2L+N2C", b""]),
        &name_bytes("cidserver.example.com"),
    ];
    let shown = r#"100 50 "a" "z3950+N2L+N2C" "" cidserver.example.com."#;
    check(35, &first.concat(), shown, shown.trim_end_matches('.'));
    let pattern = br"!^urn:cid:.+@([^\.]+\.)(.*)$!\2!i";
    let second = [&bytes("0064 000a"), &*strings(&[b"", b"", pattern]), &[0]].concat();
    same(
        35,
        &second,
        r#"100 10 "" "" "!^urn:cid:.+@([^\\.]+\\.)(.*)$!\\2!i" ."#,
    );
}

/// Appendix D of RFC 9460.
#[test]
fn services() {
    check(
        65,
        &bytes("0000 03666f6f 076578616d706c65 03636f6d 00"),
        "0 foo.example.com.",
        "0 foo.example.com",
    );
    same(64, &bytes("0001 00"), "1 .");
    let at = |priority: &str, params: &str| {
        bytes(&format!(
            "{priority} 03666f6f 076578616d706c65 03636f6d 00 {params}"
        ))
    };
    let check = |rdata: &[u8], data: &str| check(64, rdata, data, &data.replace(".com. ", ".com "));
    check(&at("0010", "0003 0002 0035"), "16 foo.example.com. port=53");
    check(
        &at("0001", "029b 0005 68656c6c6f"),
        r#"1 foo.example.com. key667="hello""#,
    );
    check(
        &at("0001", "029b 0009 68656c6c6fd2716f6f"),
        r#"1 foo.example.com. key667="hello\210qoo""#,
    );
    let hints = "0006 0020 20010db8000000000000000000000001 20010db8000000000000000000530001";
    check(
        &at("0001", hints),
        "1 foo.example.com. ipv6hint=2001:db8::1,2001:db8::53:1",
    );
    let hint = "0006 0010 20010db8012203440000 0000c0000221";
    check(
        &at("0001", hint),
        "1 foo.example.com. ipv6hint=2001:db8:122:344::c000:221",
    );
    let several = "0000 0004 00010004 0001 0009 02 6832 05 68332d3139 0004 0004 c0000201";
    check(
        &at("0010", several),
        r#"16 foo.example.com. mandatory=alpn,ipv4hint alpn="h2,h3-19" ipv4hint=192.0.2.1"#,
    );
    check(
        &at("0010", "0001 000c 08 665c6f6f2c626172 02 6832"),
        r#"16 foo.example.com. alpn="f\\\\oo\\,bar,h2""#,
    );
}

#[test]
fn services_of_other_keys() {
    same(
        65,
        &bytes("0001 00 0001 0003 026832 0002 0000"),
        r#"1 . alpn="h2" no-default-alpn"#,
    );
    same(65, &bytes("0001 00 0005 0003 010203"), "1 . ech=AQID");
    same(
        64,
        &bytes("0001 00 0007 0010 2f646e732d71756572797b3f646e737d"),
        r#"1 . dohpath="/dns-query{?dns}""#,
    );
    same(
        64,
        &bytes("0001 00 0008 0000 0009 0000 fde8 0001 22"),
        r#"1 . ohttp key9 key65000="\"""#,
    );
    // The order of keys is the only one that resolvers should send, and the one that is compared.
    check(
        65,
        &bytes("0001 00 0003 0002 01bb 0001 0003 026832"),
        r#"1 . port=443 alpn="h2""#,
        r#"1 . alpn="h2" port=443"#,
    );
}

#[test]
fn data_that_is_not_known_or_does_not_fit_is_shown_as_bytes() {
    // RFC 3597, 5.
    same(731, &bytes("0123"), "\\# 2 0123");
    check(
        62347,
        &bytes("0a00abcd"),
        "\\# 4 0A00ABCD",
        "\\# 4 0a00abcd",
    );
    same(62347, &[], "\\# 0");
    let broken = [
        (1, "010203"),
        (1, "0102030405"),
        (28, "00"),
        (5, "c000"),
        (5, "0000"),
        (15, "00"),
        (16, ""),
        (16, "0261"),
        (257, "0000"),
        (257, "00012d"),
        (35, "0001000100"),
        (65, "000100 0003 0001 01"),
        (65, "000100 0003 0003 010203"),
        (65, "000100 0004 0000"),
        (65, "000100 0004 0003 010203"),
        (65, "000100 0001 0000"),
        (65, "000100 0001 0002 0561"),
        (65, "000100 0002 0001 00"),
        (65, "000100 0005 0000"),
        (65, "000100 00"),
    ];
    for (code, hex) in broken {
        let rdata = bytes(hex);
        let shown = show(code, Reader::new(&rdata));
        assert!(
            shown.data.starts_with(&format!("\\# {}", rdata.len())),
            "{code} {hex}: {}",
            shown.data
        );
    }
}

#[test]
fn no_bytes_panic() {
    arbtest::arbtest(|u| {
        let code = *u.choose(&crate::kind::ASKED.each_ref().map(|kind| kind.code))?;
        let rdata: Vec<u8> = u.arbitrary()?;
        let shown = show(code, Reader::new(&rdata));
        assert!(shown.data.is_ascii(), "{code} {rdata:?}: {}", shown.data);
        Ok(())
    });
}
