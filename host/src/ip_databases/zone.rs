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
const SINGLE_ZONES: &str = include_str!("single_zones.tsv");

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
pub(crate) struct Zone {
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
pub(crate) struct Zones {
    rules: TimeZoneDatabase,
    single: HashMap<&'static str, &'static str>,
    boundaries: EmbeddedFinder,
}

impl Zones {
    /// Reads the boundaries, which takes some milliseconds.
    pub(crate) fn load() -> Self {
        let single = SINGLE_ZONES.lines().filter_map(|line| line.split_once('\t')).collect();
        Self { rules: TimeZoneDatabase::bundled(), single, boundaries: EmbeddedFinder::new() }
    }

    /// The zone of a place at a time; `None` where nothing tells it.
    pub(crate) fn of(&self, place: &Location, now: SystemTime) -> Option<Zone> {
        let (zone, basis) = self.find(place)?;
        let now = Timestamp::try_from(now).ok()?;
        let info = zone.to_offset_info(now);
        Some(Zone {
            id: zone.iana_name()?.to_owned(),
            abbreviation: info.abbreviation().to_owned(),
            offset_seconds: info.offset().seconds(),
            is_dst: info.dst().is_dst(),
            local_time: now.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            basis,
        })
    }

    fn find(&self, place: &Location) -> Option<(TimeZone, Basis)> {
        let known = |name: &str| self.rules.get(name).ok().filter(|zone| zone.iana_name().is_some());
        if let Some(zone) = place.zone.as_deref().and_then(known) {
            return Some((zone, Basis::Named));
        }
        let only = place.country.as_deref().and_then(|country| self.single.get(country));
        if let Some(zone) = only.and_then(|name| known(name)) {
            return Some((zone, Basis::Country));
        }
        let (latitude, longitude) = place.coordinates?;
        if !(-90.0..=90.0).contains(&latitude) || !(-180.0..=180.0).contains(&longitude) {
            return None;
        }
        known(self.boundaries.get_tz_name(longitude, latitude)).map(|zone| (zone, Basis::Boundaries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: &str) -> SystemTime {
        time.parse::<Timestamp>().expect("a time").into()
    }

    /// Id, abbreviation, offset, daylight saving, local time and basis in one line.
    fn told(zones: &Zones, place: &Location, time: &str) -> String {
        let Some(zone) = zones.of(place, at(time)) else {
            return "none".to_owned();
        };
        let Zone { id, abbreviation, offset_seconds, is_dst, local_time, basis } = zone;
        format!("{id} {abbreviation} {offset_seconds} {is_dst} {local_time} {basis:?}")
    }

    fn basis(zones: &Zones, place: &Location) -> Option<(Option<String>, Basis)> {
        let (zone, basis) = zones.find(place)?;
        Some((zone.iana_name().map(str::to_owned), basis))
    }

    fn named(zone: &str) -> Location {
        Location { zone: Some(zone.to_owned()), ..Location::default() }
    }

    fn lying(country: Option<&str>, latitude: f64, longitude: f64) -> Location {
        Location { zone: None, country: country.map(str::to_owned), coordinates: Some((latitude, longitude)) }
    }

    #[test]
    fn the_clock_changes_to_the_second() {
        let zones = Zones::load();
        let check = |zone: &str, time: &str, expected: &str| {
            assert_eq!(told(&zones, &named(zone), time), format!("{zone} {expected} Named"), "{time}");
        };
        check("Europe/Paris", "2026-03-29T00:59:59Z", "CET 3600 false 2026-03-29T01:59:59+01:00");
        check("Europe/Paris", "2026-03-29T01:00:00Z", "CEST 7200 true 2026-03-29T03:00:00+02:00");
        check("Europe/Paris", "2026-10-25T00:59:59Z", "CEST 7200 true 2026-10-25T02:59:59+02:00");
        check("Europe/Paris", "2026-10-25T01:00:00Z", "CET 3600 false 2026-10-25T02:00:00+01:00");
        check("America/New_York", "2026-11-01T05:59:59Z", "EDT -14400 true 2026-11-01T01:59:59-04:00");
        check("America/New_York", "2026-11-01T06:00:00Z", "EST -18000 false 2026-11-01T01:00:00-05:00");
        check("Australia/Lord_Howe", "2026-10-03T15:30:00Z", "+11 39600 true 2026-10-04T02:30:00+11:00");
        check("Asia/Kathmandu", "2026-01-01T00:00:00Z", "+0545 20700 false 2026-01-01T05:45:00+05:45");
        check("America/St_Johns", "2026-01-01T00:00:00Z", "NST -12600 false 2025-12-31T20:30:00-03:30");
    }

    #[test]
    fn a_name_wins_over_the_country_and_that_over_the_boundaries() {
        let zones = Zones::load();
        let is = |place: &Location, id: &str, by: Basis| {
            assert_eq!(basis(&zones, place), Some((Some(id.to_owned()), by)), "{place:?}");
        };
        let hanoi = lying(Some("VN"), 21.0278, 105.834);
        is(&hanoi, "Asia/Ho_Chi_Minh", Basis::Country);
        is(&lying(None, 21.0278, 105.834), "Asia/Bangkok", Basis::Boundaries);
        is(&Location { zone: Some("Asia/Tokyo".to_owned()), ..hanoi.clone() }, "Asia/Tokyo", Basis::Named);
        is(&Location { zone: Some("asia/tokyo".to_owned()), ..hanoi.clone() }, "Asia/Tokyo", Basis::Named);
        for unknown in ["", "Asia/Hanoi", "../etc/passwd", "EST5EDT4"] {
            is(&Location { zone: Some(unknown.to_owned()), ..hanoi.clone() }, "Asia/Ho_Chi_Minh", Basis::Country);
        }
        is(&lying(Some("US"), 37.422, -122.085), "America/Los_Angeles", Basis::Boundaries);
        is(&lying(Some("AU"), -33.8688, 151.209), "Australia/Sydney", Basis::Boundaries);
        is(&lying(Some("US"), 21.3, -157.85), "Pacific/Honolulu", Basis::Boundaries);
        is(&Location { country: Some("FR".to_owned()), ..Location::default() }, "Europe/Paris", Basis::Country);
    }

    #[test]
    fn a_place_that_may_be_in_several_zones_or_is_none_has_no_zone() {
        let zones = Zones::load();
        let basis = |place: &Location| basis(&zones, place);
        assert_eq!(basis(&Location { country: Some("US".to_owned()), ..Location::default() }), None);
        assert_eq!(basis(&Location { country: Some("vn".to_owned()), ..Location::default() }), None);
        for (latitude, longitude) in [(f64::NAN, 0.0), (91.0, 0.0), (0.0, -180.5), (f64::INFINITY, f64::NEG_INFINITY)] {
            assert_eq!(basis(&lying(None, latitude, longitude)), None);
        }
    }

    #[test]
    fn every_zone_of_the_tables_is_in_the_rules() {
        let zones = Zones::load();
        assert_eq!(zones.single.len(), 216);
        for (country, zone) in &zones.single {
            assert!(country.len() == 2 && zones.rules.get(zone).is_ok(), "{country} {zone}");
        }
        for zone in zones.boundaries.timezonenames() {
            assert!(zones.rules.get(zone).is_ok(), "{zone}");
        }
    }
}
