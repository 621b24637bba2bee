//! What `redact` promises, case by case.

use arbtest::arbitrary::Unstructured;
use arbtest::arbtest;
use base64::engine::general_purpose::URL_SAFE;

use super::*;

fn redacted(value: &str, said: &str) -> String {
    String::from_utf8(SecretForms::of(value).redact(said.as_bytes().to_vec())).expect("text")
}

#[test]
fn a_value_is_found_in_every_spelling_of_its_characters() {
    let value = "p&ss/w%rd";
    for said in [
        "p&ss/w%rd",
        "p%26ss%2Fw%25rd",
        "p%26ss%2fw%25rd",
        "%70%26%73%73%2F%77%25%72%64",
        "p%2526ss%252Fw%2525rd",
        "p&ss\\/w%rd",
        "p\\u0026ss\\u002fw\\u0025rd",
        "p\\x26ss\\x2Fw%rd",
        "p&amp;ss/w%rd",
        "p&#38;ss&#47;w&#37;rd",
        "p&#x26;ss&#X2f;w&#x0025;rd",
        "p&ampss&sol;w&percnt;rd",
        "&#112;&#38;&#115;&#115;&#47;&#119;&#37;&#114;&#100;",
        // Several ways to write within one text.
        "p%26ss\\/w&#37;rd",
    ] {
        assert_eq!(redacted(value, said), "[secret]", "{said}");
        assert_eq!(
            redacted(value, &format!("<{said}, {said}>")),
            "<[secret], [secret]>"
        );
    }
    for near in [
        "p&ss/w",
        "p&ss/w%2rd",
        "&ss/w%rd",
        "p&amp",
        "%70%26",
        "p\\u0026ss\\u002",
        "P&SS/W%RD",
        "p&ss/w%",
    ] {
        assert_eq!(redacted(value, near), near);
    }
}

#[test]
fn what_stands_behind_a_scheme_is_a_secret_too() {
    let check = |value: &str, said: &str, expected: &str| {
        assert_eq!(redacted(value, said), expected, "{said}");
    };
    check(
        "Bearer lab-token-0123",
        "sent: Bearer lab-token-0123",
        "sent: [secret]",
    );
    check(
        "Bearer lab-token-0123",
        "{\"token\":\"lab-token-0123\"}",
        "{\"token\":\"[secret]\"}",
    );
    check("Bearer lab-token-0123", "Bearer+lab-token-0123", "[secret]");
    check("Bearer short", "Bearer short, short", "[secret], short");
    let basic = format!("Basic {}", STANDARD.encode("lab:pass word:0123"));
    check(
        &basic,
        "{\"user\":\"lab\",\"password\":\"pass word:0123\"}",
        "{\"user\":\"lab\",\"password\":\"[secret]\"}",
    );
    check(&basic, "lab:pass+word%3A0123", "[secret]");
    check("Basic not-base64-at-all", "not-base64-at-all", "[secret]");
}

#[test]
fn a_value_is_found_as_hexadecimal_and_as_base64_wherever_it_begins() {
    let value = "Bearer lab>token?0123";
    let word = "lab>token?0123";
    assert_eq!(redacted(value, "6c61623e746f6b656e3f30313233"), "[secret]");
    assert_eq!(redacted(value, "6C61623E746F6B656E3F30313233"), "[secret]");
    arbtest(|u: &mut Unstructured<'_>| {
        let (before, after) = (u.int_in_range(0..=9)?, u.int_in_range(0..=9)?);
        let text = format!("{}{word}{}", "a".repeat(before), "b".repeat(after));
        for encoded in [
            STANDARD.encode(&text),
            URL_SAFE.encode(&text),
            STANDARD_NO_PAD.encode(&text),
        ] {
            let told = redacted(value, &encoded);
            assert!(told.contains("[secret]"), "{encoded}: {told}");
            // What is left beside it holds bits of its first and last character at most.
            assert!(
                told.len() <= "[secret]".len() + (before + after) * 4 / 3 + 6,
                "{encoded}: {told}"
            );
        }
        Ok(())
    });
}

/// Of any text, nothing is lost but the value.
#[test]
fn everything_else_comes_through() {
    arbtest(|u: &mut Unstructured<'_>| {
        let pieces = [
            "p",
            "&",
            "ss",
            "/",
            "w%",
            "%26",
            "&amp;",
            "\\u0026",
            "rd",
            "+",
            "%",
            "p&ss/w%rd",
        ];
        let mut said = String::new();
        for _ in 0..u.int_in_range(0..=30)? {
            said.push_str(u.choose(&pieces)?);
        }
        let forms = SecretForms::of("p&ss/w%rd");
        let told = forms.redact(said.clone().into_bytes());
        assert_eq!(
            told != said.as_bytes(),
            forms.are_in(said.as_bytes()),
            "{said}"
        );
        assert!(!forms.are_in(&told), "{said}");
        Ok(())
    });
}
