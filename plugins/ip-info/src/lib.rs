//! Location, network and time zone of public IP addresses (docs/api.md, "IP information").
//!
//! This file is the index: the operation, its types, and which database is asked for what. The host reads the operator's
//! databases and hands out entries as they stand; what their fields mean is `location`'s and `network`'s to say.

mod countries;
mod location;
mod network;

use serde::{Deserialize, Serialize};
use switchbay_sdk::ip_database::{self, Basis, Error, Place};
use switchbay_sdk::lenient::LooseJson;
use switchbay_sdk::schemars::{self, JsonSchema};
use switchbay_sdk::{Call, ErrorCode, Failure, Operation, Plugin, Reply, Rest, Tool, plugin};

use location::Location;
use network::{Network, Security};

/// The text is no address, or none of the public network.
const NO_ADDRESS: ErrorCode =
    ErrorCode::validation_error("`ip` is not a public IPv4 or IPv6 address.");
/// There is nothing to look it up in.
const NO_DATABASE: ErrorCode =
    ErrorCode::service_unavailable("The server has no IP database that can be read.");

/// Boundaries of time zones, where they decide, and the licence that they are credited by.
const BOUNDARIES: (&str, &str) = (
    "Time zone boundaries from OpenStreetMap contributors",
    "ODbL-1.0",
);

/// The plugin.
pub fn plugin() -> Plugin {
    plugin!("Location, network and time zone of public IP addresses")
    .wants("ip-database:city", "to locate an address")
    .wants(
        "ip-database:country",
        "to find the country of an address whose city is unknown",
    )
    .wants("ip-database:asn", "to find the network of an address")
    .wants(
        "ip-database:anonymous",
        "to detect VPNs, proxies and other anonymous networks",
    )
    .operation(
        Operation::new("lookup", lookup)
            .title("Look up IP information")
            .description(
                "Returns the location, network and time zone of a public IPv4 or IPv6 address from \
                 this server's own databases; no third party is queried. Every field is always \
                 present, and null if unknown. A location describes an area, never a person. \
                 `sources` lists the databases with their licences and build times.",
            )
            .rest(Rest::post("/api/v1/ip-info/{ip}", "ip:lookup"))
            .tool(Tool::new("lookup_ip_information", "ip:lookup").read_only())
            .errors([NO_ADDRESS, NO_DATABASE])
            .example("An IPv4 address", r#"{ "ip": "8.8.8.8" }"#)
            .example("An IPv6 address", r#"{ "ip": "2606:4700:4700::1111" }"#),
    )
}

#[cfg(target_family = "wasm")]
switchbay_sdk::export!(plugin);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Lookup {
    /// The address without brackets, port, prefix, zone or leading zeros. IPv4 addresses in IPv6 form are looked up as IPv4.
    #[schemars(length(min = 2, max = 64))]
    ip: String,
}

#[derive(Serialize, JsonSchema)]
struct Information {
    /// The address that was looked up, in canonical form.
    ip: String,
    /// The IP version.
    #[schemars(extend("enum" = [4, 6]))]
    version: u8,
    /// The kind of address; only public addresses are accepted.
    #[serde(rename = "type")]
    kind: Kind,
    /// The location of the address.
    location: Location,
    /// The network of the address.
    network: Network,
    /// The time zone at the location, at the time of the request.
    timezone: Timezone,
    /// Whether the address hides its user; null if no database covers this.
    security: Option<Security>,
    /// The databases that were consulted.
    sources: Vec<Source>,
    /// Metadata about this answer.
    meta: Meta,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Public,
}

#[derive(Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Timezone {
    /// The name in the IANA time zone database, such as `Asia/Ho_Chi_Minh`.
    id: Option<String>,
    /// The abbreviation, such as `CET`, or `+07` if the zone has none.
    abbreviation: Option<String>,
    /// Seconds east of UTC.
    utc_offset_seconds: Option<i32>,
    /// The UTC offset in the form `+07:00`.
    utc_offset: Option<String>,
    /// Whether daylight saving time is in effect.
    is_dst: Option<bool>,
    /// The local time with its UTC offset.
    #[schemars(extend("format" = "date-time"))]
    local_time: Option<String>,
}

#[derive(PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Source {
    /// The name of the database.
    name: String,
    /// The licence of the database.
    license: Option<String>,
    /// When it was built.
    #[schemars(extend("format" = "date-time"))]
    built_at: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Meta {
    /// Whether the answer was cached. Never so: the databases are read for each request.
    cached: bool,
}

async fn lookup(_call: Call, input: Lookup) -> Result<Reply<Information>, Failure> {
    let refused = |told: String| NO_ADDRESS.failure(format!("`ip` {told}")).field("ip");
    let class = ip_database::classify(&input.ip).map_err(|error| match error {
        Error::InvalidAddress(rule) => refused(rule),
        other => unavailable(&other),
    })?;
    if !class.global {
        let range = class.range.as_deref().unwrap_or("not public");
        return Err(refused(format!(
            "must be a public address; {} is {range}",
            class.address
        )));
    }
    let mut asked = Asked {
        ip: &class.address,
        sources: Vec::new(),
    };
    let city = asked.find("city")?;
    let (mut location, mut network) = (Location::of(&city.entry), city.network);
    let mut zone = location::zone(&city.entry);
    if location.country_code.is_none() {
        let country = asked.find("country")?;
        location = location.in_country(Location::of(&country.entry));
        zone = zone.or_else(|| location::zone(&country.entry));
        network = network.or(country.network);
    }
    let system = asked.find("asn")?;
    if asked.sources.is_empty() {
        return Err(unavailable(&Error::Absent));
    }
    let hidden = asked.find("anonymous")?;
    let timezone = asked.timezone(&location, zone)?;
    let information = Information {
        version: class.family,
        kind: Kind::Public,
        network: Network::of(&system.entry, system.network.or(network)),
        security: hidden.is_asked.then(|| Security::of(&hidden.entry)),
        location,
        timezone,
        sources: asked.sources,
        meta: Meta { cached: false },
        ip: class.address,
    };
    Ok(Reply::ok(information))
}

fn unavailable(error: &Error) -> Failure {
    let told = match error {
        Error::Absent => {
            "this server has no IP database; its operator can fetch free ones with `switchbay data \
             fetch`"
        }
        Error::Denied(_) => "this plugin is not allowed to read this server's IP databases",
        Error::Unreadable(_) | Error::InvalidAddress(_) => {
            "an IP database of this server could not be read"
        }
    };
    NO_DATABASE.failure(told)
}

/// The databases that were asked about one address, each credited once.
struct Asked<'a> {
    ip: &'a str,
    sources: Vec<Source>,
}

/// What a database said. One that is not there says nothing.
#[derive(Default)]
struct Said {
    is_asked: bool,
    entry: LooseJson,
    network: Option<String>,
}

impl Asked<'_> {
    fn find(&mut self, database: &str) -> Result<Said, Failure> {
        let found = match ip_database::find(database, self.ip) {
            Ok(found) => found,
            Err(Error::Absent | Error::Denied(_)) => return Ok(Said::default()),
            Err(error) => return Err(unavailable(&error)),
        };
        self.credit(Source {
            name: found.database.title,
            license: found.database.license,
            built_at: found.database.built,
        });
        Ok(Said {
            is_asked: true,
            entry: LooseJson::read(found.entry.as_deref()),
            network: found.network,
        })
    }

    /// One file may be several databases.
    fn credit(&mut self, source: Source) {
        if !self.sources.contains(&source) {
            self.sources.push(source);
        }
    }

    fn timezone(&mut self, location: &Location, zone: Option<String>) -> Result<Timezone, Failure> {
        let place = Place {
            zone,
            country: location.country_code.clone(),
            latitude: location.latitude,
            longitude: location.longitude,
        };
        let Some(zone) = ip_database::zone_of(&place).map_err(|error| unavailable(&error))? else {
            return Ok(Timezone::default());
        };
        if zone.by == Basis::Boundaries {
            let (name, license) = BOUNDARIES;
            self.credit(Source {
                name: name.to_owned(),
                license: Some(license.to_owned()),
                built_at: None,
            });
        }
        Ok(Timezone {
            id: Some(zone.id),
            abbreviation: Some(zone.abbreviation),
            utc_offset_seconds: Some(zone.offset_seconds),
            utc_offset: zone
                .local_time
                .get(zone.local_time.len().saturating_sub(6)..)
                .map(str::to_owned),
            is_dst: Some(zone.is_dst),
            local_time: Some(zone.local_time),
        })
    }
}
