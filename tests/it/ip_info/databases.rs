//! Databases in both schemas, written by the tests: what is in them is written down here and nowhere else.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use mmdb_writer::{IpVersion, Ipv4Aliasing, Value as Stored, Writer};
use serde_json::{Value, json};

/// When all of them were built: 2026-06-05T13:42:02Z.
const BUILT_S: u64 = 1_780_666_922;
pub(crate) const BUILT: &str = "2026-06-05T13:42:02Z";

/// A database's file with these networks and entries.
pub(crate) fn file(kind: &str, family: IpVersion, entries: &[(&str, Value)]) -> Vec<u8> {
    let mut writer = Writer::builder(kind)
        .ip_version(family)
        .ipv4_aliasing(Ipv4Aliasing::Disabled)
        .build_epoch(SystemTime::UNIX_EPOCH + Duration::from_secs(BUILT_S))
        .build();
    for (network, entry) in entries {
        let network: ipnet::IpNet = network.parse().expect("a network");
        writer
            .insert_value(network, stored(entry))
            .expect("it fits");
    }
    writer.to_bytes().expect("a file")
}

/// Coordinates are of half precision, as in the flat schema.
fn stored(value: &Value) -> Stored {
    match value {
        Value::Null => panic!("the format has no null"),
        Value::Bool(truth) => Stored::from(*truth),
        Value::Number(number) => match number
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
        {
            Some(number) => Stored::from(number),
            None => Stored::from(number.to_string().parse::<f32>().expect("a number")),
        },
        Value::String(text) => Stored::from(text.as_str()),
        Value::Array(list) => Stored::array(list.iter().map(stored)),
        Value::Object(map) => {
            Stored::map(map.iter().map(|(key, value)| (key.clone(), stored(value))))
        }
    }
}

/// One name in several languages.
fn names(name: &str) -> Value {
    json!({ "de": format!("{name} auf Deutsch"), "en": name })
}

/// The nested schema.
pub(crate) fn nested_city() -> Vec<u8> {
    let linkoping = json!({
        "city": { "geoname_id": 2_694_762, "names": names("Linköping") },
        "continent": { "code": "EU", "names": names("Europe") },
        "country": { "iso_code": "SE", "is_in_european_union": true, "names": names("Sweden") },
        "location": { "accuracy_radius": 76, "latitude": 58.4167, "longitude": 15.6167, "time_zone": "Europe/Stockholm" },
        "postal": { "code": "581 82" },
        "registered_country": { "iso_code": "NO", "names": names("Norway") },
        "subdivisions": [{ "iso_code": "E", "names": names("Östergötland County") }],
    });
    let kathmandu = json!({
        "city": { "names": names("Kathmandu") },
        "country": { "iso_code": "NP", "names": names("Nepal") },
        "location": { "latitude": 27.7172, "longitude": 85.324, "time_zone": "Asia/Kathmandu" },
    });
    let nowhere =
        json!({ "registered_country": { "iso_code": "US", "names": names("United States") } });
    let entries = [
        ("89.160.20.0/24", linkoping),
        ("2001:218::/32", kathmandu),
        ("8.8.4.0/24", nowhere),
    ];
    file("Nested-City", IpVersion::V6, &entries)
}

/// The flat schema, for IPv4.
pub(crate) fn flat_city_v4() -> Vec<u8> {
    let flat = |city: &str, country: &str, state: &str, latitude: Value, longitude: Value| {
        json!({
            "city": city, "country_code": country, "state1": state, "state2": "", "latitude": latitude,
            "longitude": longitude, "postcode": "", "timezone": "",
        })
    };
    let entries = [
        (
            "8.8.8.0/24",
            flat(
                "Mountain View",
                "US",
                "California",
                json!(37.422),
                json!(-122.085),
            ),
        ),
        (
            "113.161.0.0/22",
            flat("Hanoi", "VN", "Hanoi", json!("21.0278"), json!("105.834")),
        ),
        ("1.1.1.0/24", flat("", "", "", json!(""), json!(""))),
        (
            "8.8.4.0/24",
            flat(
                "Denver",
                "",
                "Colorado",
                json!("39.7392"),
                json!("-104.9903"),
            ),
        ),
    ];
    file("city ipv4", IpVersion::V4, &entries)
}

/// The flat schema, for IPv6.
pub(crate) fn flat_city_v6() -> Vec<u8> {
    let montreal = json!({ "city": "Montreal", "country_code": "CA", "latitude": 45.5019, "longitude": -73.5674 });
    file("city ipv6", IpVersion::V6, &[("2606:4700::/44", montreal)])
}

/// Countries alone, for both families.
pub(crate) fn country() -> Vec<u8> {
    let code = |code: &str| json!({ "country_code": code });
    let entries = [
        ("1.1.1.0/24", code("AU")),
        ("8.0.0.0/8", code("US")),
        ("2a00::/12", code("FR")),
    ];
    file("country ipvAll", IpVersion::V6, &entries)
}

pub(crate) fn asn() -> Vec<u8> {
    let system = |number: u32, name: &str| json!({ "autonomous_system_number": number, "autonomous_system_organization": name });
    let telstra = json!({
        "autonomous_system_number": 1221, "autonomous_system_organization": "Telstra Pty Ltd",
        "isp": "Telstra Internet", "organization": "Telstra Internet",
    });
    let entries = [
        ("8.8.8.0/24", system(15169, "Google LLC")),
        ("1.128.0.0/11", telstra),
        ("2606:4700::/32", system(13335, "Cloudflare, Inc.")),
    ];
    file("asn", IpVersion::V6, &entries)
}

pub(crate) fn anonymous() -> Vec<u8> {
    let tor = json!({ "is_anonymous": true, "is_tor_exit_node": true });
    let hosted =
        json!({ "is_anonymous": true, "is_anonymous_vpn": true, "is_hosting_provider": true });
    file(
        "Anonymous",
        IpVersion::V4,
        &[("8.8.8.0/25", tor), ("89.160.20.0/24", hosted)],
    )
}

/// Files in a folder, and the configuration that names them.
pub(crate) struct Databases {
    folder: tempfile::TempDir,
    config: String,
}

impl Databases {
    pub(crate) fn new() -> Self {
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        Self {
            folder,
            config: "[ip_databases]\n".to_owned(),
        }
    }

    /// Names one more database, which has these files.
    pub(crate) fn with(mut self, name: &str, license: &str, files: &[(&str, &[u8])]) -> Self {
        let paths: Vec<String> = files
            .iter()
            .map(|(file, bytes)| format!("{:?}", self.put(file, bytes)))
            .collect();
        let paths = paths.join(", ");
        self.config += &format!("{name} = {{ files = [{paths}], license = {license:?} }}\n");
        self
    }

    /// Puts a file in place as a careful operator does: whole, by a rename.
    pub(crate) fn put(&self, file: &str, bytes: &[u8]) -> PathBuf {
        let (path, next) = (self.path(file), self.path("next"));
        std::fs::write(&next, bytes).expect("it is written");
        std::fs::rename(next, &path).expect("it is put in place");
        path
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        Path::new(self.folder.path()).join(file)
    }

    pub(crate) fn config(&self) -> String {
        self.config.clone()
    }
}
