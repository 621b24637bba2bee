//! The time zone of a place, and what the clock says there.
//!
//! A zone that a database names wins; then the country's, where it has one only, because boundaries that follow the tzdb put
//! Hanoi into Asia/Bangkok; then the boundaries. Zones and boundaries are of this build. Must not know of addresses.

use std::collections::HashMap;
use std::time::SystemTime;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use tzf_rs::EmbeddedFinder;

/// Countries with one zone only: two letters and the zone, from the tzdb's `zone.tab`.
const SINGLE_ZONES: &str = include_str!("../single_zones.tsv");

/// What is known of a place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Location {
    /// A zone, as somebody calls it.
    pub(crate) zone: Option<String>,
    /// Two letters.
    pub(crate) country: Option<String>,
    /// Latitude and longitude in degrees.
    pub(crate) coordinates: Option<(f64, f64)>,
}

/// What a zone was found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    Named,
    Country,
    Boundaries,
}

/// A zone at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocalZone {
    pub(crate) id: String,
    pub(crate) abbreviation: String,
    /// East of UTC.
    pub(crate) offset_seconds: i32,
    pub(crate) is_dst: bool,
    /// To the second, with its offset.
    pub(crate) local_time: String,
    pub(crate) basis: Basis,
}

/// All zones of the world.
pub(crate) struct ZoneTable {
    rules: TimeZoneDatabase,
    single: HashMap<&'static str, &'static str>,
    boundaries: EmbeddedFinder,
}

impl ZoneTable {
    /// Reads the boundaries, which takes some milliseconds.
    pub(crate) fn load() -> Self {
        let single = SINGLE_ZONES
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .collect();
        Self {
            rules: TimeZoneDatabase::bundled(),
            single,
            boundaries: EmbeddedFinder::new(),
        }
    }

    /// The zone of a place at a time; `None` where nothing tells it.
    pub(crate) fn of(&self, place: &Location, now: SystemTime) -> Option<LocalZone> {
        let (zone, basis) = self.find(place)?;
        let now = Timestamp::try_from(now).ok()?;
        let info = zone.to_offset_info(now);
        Some(LocalZone {
            id: zone.iana_name()?.to_owned(),
            abbreviation: info.abbreviation().to_owned(),
            offset_seconds: info.offset().seconds(),
            is_dst: info.dst().is_dst(),
            local_time: now
                .to_zoned(zone.clone())
                .strftime("%Y-%m-%dT%H:%M:%S%:z")
                .to_string(),
            basis,
        })
    }

    fn find(&self, place: &Location) -> Option<(TimeZone, Basis)> {
        let known = |name: &str| {
            self.rules
                .get(name)
                .ok()
                .filter(|zone| zone.iana_name().is_some())
        };
        if let Some(zone) = place.zone.as_deref().and_then(known) {
            return Some((zone, Basis::Named));
        }
        let only = place
            .country
            .as_deref()
            .and_then(|country| self.single.get(country));
        if let Some(zone) = only.and_then(|name| known(name)) {
            return Some((zone, Basis::Country));
        }
        let (latitude, longitude) = place.coordinates?;
        if !(-90.0..=90.0).contains(&latitude) || !(-180.0..=180.0).contains(&longitude) {
            return None;
        }
        known(self.boundaries.get_tz_name(longitude, latitude))
            .map(|zone| (zone, Basis::Boundaries))
    }
}

#[cfg(test)]
mod tests;
