//! Files that no tool would write: every one is refused or looked up in to an end, and none ends the process.

use std::fs;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use arbtest::arbtest;
use mmdb_writer::{IpVersion, RecordSize, Value as Stored, Writer};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

const ADDRESSES: [&str; 8] = [
    "1.1.1.1",
    "8.8.8.8",
    "81.2.69.142",
    "255.255.255.255",
    "::",
    "2606:4700::1111",
    "2a02::1",
    "ffff::ffff",
];

fn map<const N: usize>(entries: [(&str, Stored); N]) -> Stored {
    Stored::map(entries.map(|(key, value)| (key.to_owned(), value)))
}

/// A small database with every kind of value in it.
fn small(family: IpVersion, size: RecordSize) -> Vec<u8> {
    let built = SystemTime::UNIX_EPOCH + Duration::from_secs(1_780_666_922);
    let mut writer = Writer::builder("Small")
        .ip_version(family)
        .record_size(size)
        .build_epoch(built)
        .description(&[("en", "small")])
        .build();
    let names = || {
        map([
            ("en", Stored::from("London")),
            ("de", Stored::from("London")),
        ])
    };
    let london = map([
        (
            "city",
            map([
                ("geoname_id", Stored::from(2_643_743_u32)),
                ("names", names()),
            ]),
        ),
        (
            "location",
            map([
                ("latitude", Stored::from(51.5142_f64)),
                ("longitude", Stored::from(-0.0931_f32)),
            ]),
        ),
        (
            "subdivisions",
            Stored::array([map([("iso_code", Stored::from("ENG"))])]),
        ),
        (
            "flags",
            Stored::array([
                Stored::from(true),
                Stored::from(-7_i32),
                Stored::from(u64::MAX),
            ]),
        ),
        ("huge", Stored::from(u128::MAX)),
        ("raw", Stored::from(vec![1_u8, 2, 3])),
    ]);
    let mut put = |network: &str, value: &Stored| {
        writer
            .insert_value(
                network.parse::<ipnet::IpNet>().expect("a network"),
                value.clone(),
            )
            .expect("it fits");
    };
    put("81.2.69.0/24", &london);
    put(
        "1.1.1.0/25",
        &map([
            ("country_code", Stored::from("AU")),
            ("city", Stored::from("Sydney")),
        ]),
    );
    if family == IpVersion::V6 {
        put(
            "2606:4700::/44",
            &map([("country_code", Stored::from("CA"))]),
        );
    }
    writer.to_bytes().expect("a file")
}

/// Loads bytes as a server does, and looks up in them.
fn told(bytes: &[u8]) -> Result<Vec<Option<NetworkEntry>>, String> {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("some.mmdb");
    fs::write(&path, bytes).expect("it is written");
    let mapped = MappedFile::load(&path, folder.path()).map_err(|error| error.to_string())?;
    let addresses = ADDRESSES.map(|address| address.parse::<IpAddr>().expect("an address"));
    let asked = addresses.iter().filter(|address| mapped.is_for(**address));
    asked
        .map(|address| mapped.find(*address).map_err(|error| error.to_string()))
        .collect()
}

#[test]
fn an_entry_comes_back_as_json_with_its_network() {
    for size in [RecordSize::Bits24, RecordSize::Bits28, RecordSize::Bits32] {
        let found = told(&small(IpVersion::V6, size)).expect("it is good");
        assert_eq!(
            found[0],
            Some((
                "1.1.1.0/25".to_owned(),
                json!({ "city": "Sydney", "country_code": "AU" })
            ))
        );
        assert_eq!(found[1], None);
        let (network, entry) = found[2].clone().expect("an entry");
        assert_eq!(network, "81.2.69.0/24");
        let expected = json!({
            "city": { "geoname_id": 2_643_743, "names": { "de": "London", "en": "London" } },
            "flags": [true, -7, u64::MAX],
            "huge": null,
            "location": { "latitude": 51.5142, "longitude": -0.0931 },
            "raw": null,
            "subdivisions": [{ "iso_code": "ENG" }],
        });
        assert_eq!(entry, expected);
        assert_eq!(
            found[5],
            Some(("2606:4700::/44".to_owned(), json!({ "country_code": "CA" })))
        );
        let four = told(&small(IpVersion::V4, size)).expect("it is good");
        assert_eq!(
            (four.len(), &four[2]),
            (4, &found[2]),
            "one for IPv4 is not asked for IPv6"
        );
    }
}

#[test]
fn a_file_that_is_cut_is_refused() {
    let whole = small(IpVersion::V6, RecordSize::Bits28);
    for length in 0..whole.len() {
        // The last bytes are of the metadata, whose last field may go; what is left is whole.
        if let Ok(found) = told(&whole[..length]) {
            assert_eq!(
                Ok(found),
                told(&whole),
                "cut at {length} of {}",
                whole.len()
            );
        }
    }
    assert!(told(&whole[..whole.len() / 2]).is_err());
}

#[test]
fn a_damaged_file_is_refused_or_answers() {
    let files = [
        small(IpVersion::V6, RecordSize::Bits24),
        small(IpVersion::V4, RecordSize::Bits32),
    ];
    arbtest(|u| {
        let mut bytes = u.choose(&files)?.clone();
        for _ in 0..u.int_in_range(1..=5)? {
            let at = u.choose_index(bytes.len())?;
            bytes[at] = u.arbitrary()?;
        }
        // Whatever was verified is read: no lookup fails on what loading let through.
        if let Err(refusal) = told(&bytes) {
            assert!(refusal.contains("is not a usable database"), "{refusal}");
        }
        Ok(())
    })
    .budget_ms(1_000);
}

#[test]
fn an_entry_without_end_is_refused() {
    // A map whose value is a pointer to the map itself, put in the place of the entry.
    let mut bytes = small(IpVersion::V4, RecordSize::Bits24);
    let at = bytes
        .windows(7)
        .position(|window| window == b"\x44city\x46S")
        .or_else(|| bytes.windows(6).position(|window| window == b"\x46Sydne"));
    let at = at.expect("the entry is in the file");
    bytes[at..at + 2].copy_from_slice(&[0x20, 0x00]);
    assert!(told(&bytes).is_err_and(|refusal| refusal.contains("is not a usable database")));
}

#[test]
fn bounds_hold_for_deep_and_wide_entries() {
    let mut deep = Stored::from("bottom");
    for _ in 0..40 {
        deep = map([("in", deep)]);
    }
    let wide = Stored::map((0..5000_u32).map(|number| (format!("{number}"), Stored::from(number))));
    let long = Stored::from("x".repeat(70_000));
    let rules = [
        "deeper than 16 levels",
        "more than 4096 values",
        "more than 65536 bytes of text",
    ];
    for (value, rule) in [deep, wide, long].into_iter().zip(rules) {
        let mut writer = Writer::builder("Much").ip_version(IpVersion::V4).build();
        let network: ipnet::IpNet = "1.0.0.0/8".parse().expect("a network");
        writer
            .insert_value(network, map([("much", value)]))
            .expect("it fits");
        let refusal = told(&writer.to_bytes().expect("a file")).expect_err("it is too much");
        assert!(refusal.contains(rule), "{refusal}");
    }
}

#[test]
fn what_is_no_database_is_refused_by_its_reason() {
    let refusal = |bytes: &[u8]| told(bytes).expect_err("it is none");
    assert!(refusal(b"").contains("is not a usable database"));
    assert!(refusal(b"hello").contains("is not a usable database"));
    assert!(refusal(&[0; 4096]).contains("is not a usable database"));
    let found: Value = json!(told(&small(IpVersion::V4, RecordSize::Bits24)).expect("it is good"));
    assert!(found.is_array());
}

#[tokio::test]
async fn what_changed_before_it_was_watched_is_read() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("some.mmdb");
    let source = DatabaseSource {
        title: None,
        license: None,
        files: vec![path.clone()],
    };
    let configured = BTreeMap::from([("some".to_owned(), source)]);
    let databases =
        Arc::new(IpDatabases::open(configured, folder.path()).expect("the folder is there"));
    databases.read();
    assert!(databases.named("some").is_none());
    fs::write(&path, small(IpVersion::V4, RecordSize::Bits24)).expect("it is written");
    let until = CancellationToken::new();
    let reading = async {
        while databases.named("some").is_none() {
            tokio::task::yield_now().await;
        }
        until.cancel();
    };
    let read = async { tokio::join!(Arc::clone(&databases).follow(until.clone()), reading) };
    tokio::time::timeout(Duration::from_secs(30), read)
        .await
        .expect("it is read");
}
