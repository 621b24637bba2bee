//! What `npm` promises, case by case.

use super::*;

#[test]
fn settings_are_read_as_npm_writes_them() {
    let text = "; a comment\n# registry = https://no.example/\naudit=false\nregistry = \"https://one.example/\"\n\
                //one.example/:_authToken=secret\nregistry=https://two.example/npm\n@ip-location-db:registry =\n";
    assert_eq!(
        value(text, "registry").as_deref(),
        Some("https://two.example/npm")
    );
    assert_eq!(value(text, "@ip-location-db:registry"), None);
    assert_eq!(value(text, "cafile"), None);
}

#[test]
fn a_checksum_is_the_sha512_of_several() {
    let whole = format!("sha512-{}", STANDARD.encode([7; 64]));
    assert_eq!(
        sha512(&format!("sha1-AAAA {whole}")),
        Some(whole["sha512-".len()..].to_owned())
    );
    for none in [
        "",
        "sha1-AAAA",
        "sha512-",
        "sha512-AAAA",
        "sha512-!",
        "SHA512-AAAA",
    ] {
        assert_eq!(sha512(none), None, "{none}");
    }
}

#[test]
fn a_registry_is_asked_by_https_or_at_home() {
    let safe = |url: &str| Url::parse(url).is_ok_and(|url| is_safe(&url));
    for url in [
        "https://registry.example/",
        "https://registry.example/npm",
        "http://127.0.0.1:4873/",
        "http://[::1]/",
    ] {
        assert!(safe(url), "{url}");
    }
    for url in [
        "http://registry.example/",
        "https://me:word@registry.example/",
        "ftp://127.0.0.1/",
        "https:///x?y",
    ] {
        assert!(!safe(url), "{url}");
    }
}
