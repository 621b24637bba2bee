//! The IP databases of the server under load: small ones, in which the looked-up address stands with all that an entry can say.
//!
//! A lookup descends one bit of the address at a time, so what it costs depends on the address and not on how many others there
//! are; what a large file costs besides are the pages that the system reads.

use std::path::Path;

use mmdb_writer::{IpVersion, Value, Writer};

/// What ip-info is granted.
pub(crate) const GRANTS: [&str; 4] = [
    "ip-database:anonymous",
    "ip-database:asn",
    "ip-database:city",
    "ip-database:country",
];

/// The address that is looked up: its zone is told by the country. The other one's is told by the boundaries.
pub(crate) const BY_COUNTRY: &str = "/api/v1/ip-info/89.160.20.112";
pub(crate) const BY_BOUNDARIES: &str = "/api/v1/ip-info/8.8.8.8";

/// Writes them into a folder and gives back the configuration that names them.
pub(crate) fn write(folder: &Path) -> String {
    let city = |city: &str, country: &str, latitude: f32, longitude: f32| {
        let texts = [
            ("city", city),
            ("country_code", country),
            ("state1", "A State"),
            ("postcode", "12345"),
        ];
        let texts = texts.map(|(key, text)| (key.to_owned(), Value::from(text)));
        let places = [("latitude", latitude), ("longitude", longitude)];
        let places = places.map(|(key, degrees)| (key.to_owned(), Value::from(degrees)));
        Value::map(texts.into_iter().chain(places))
    };
    let system = |number: u32, organisation: &str| {
        let number = ("autonomous_system_number".to_owned(), Value::from(number));
        Value::map([
            number,
            (
                "autonomous_system_organization".to_owned(),
                Value::from(organisation),
            ),
        ])
    };
    let sweden = city("Link\u{f6}ping", "SE", 58.4167, 15.6167);
    let america = city("Mountain View", "US", 37.422, -122.085);
    let files = [
        (
            "city",
            [("89.160.20.0/24", sweden), ("8.8.8.0/24", america)],
        ),
        (
            "asn",
            [
                ("89.160.0.0/17", system(29518, "A Network")),
                ("8.8.8.0/24", system(15169, "Another Network")),
            ],
        ),
    ];
    let written = files.map(|(name, entries)| {
        let mut writer = Writer::builder(name).ip_version(IpVersion::V4).build();
        for (network, entry) in entries {
            let network: ipnet::IpNet = network.parse().expect("a network");
            writer.insert_value(network, entry).expect("it fits");
        }
        let path = folder.join(format!("{name}.mmdb"));
        std::fs::write(&path, writer.to_bytes().expect("a file")).expect("the file is written");
        format!(
            "[ip_databases.{name}]\nfiles = [{:?}]\n",
            path.display().to_string()
        )
    });
    written.concat()
}
