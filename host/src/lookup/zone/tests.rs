//! What `zone` promises, case by case.

use super::*;

fn at(time: &str) -> SystemTime {
    time.parse::<Timestamp>().expect("a time").into()
}

/// Id, abbreviation, offset, daylight saving, local time and basis in one line.
fn told(zones: &ZoneTable, place: &Location, time: &str) -> String {
    let Some(zone) = zones.of(place, at(time)) else {
        return "none".to_owned();
    };
    let LocalZone {
        id,
        abbreviation,
        offset_seconds,
        is_dst,
        local_time,
        basis,
    } = zone;
    format!("{id} {abbreviation} {offset_seconds} {is_dst} {local_time} {basis:?}")
}

fn basis(zones: &ZoneTable, place: &Location) -> Option<(Option<String>, Basis)> {
    let (zone, basis) = zones.find(place)?;
    Some((zone.iana_name().map(str::to_owned), basis))
}

fn named(zone: &str) -> Location {
    Location {
        zone: Some(zone.to_owned()),
        ..Location::default()
    }
}

fn lying(country: Option<&str>, latitude: f64, longitude: f64) -> Location {
    Location {
        zone: None,
        country: country.map(str::to_owned),
        coordinates: Some((latitude, longitude)),
    }
}

#[test]
fn the_clock_changes_to_the_second() {
    let zones = ZoneTable::load();
    let check = |zone: &str, time: &str, expected: &str| {
        assert_eq!(
            told(&zones, &named(zone), time),
            format!("{zone} {expected} Named"),
            "{time}"
        );
    };
    check(
        "Europe/Paris",
        "2026-03-29T00:59:59Z",
        "CET 3600 false 2026-03-29T01:59:59+01:00",
    );
    check(
        "Europe/Paris",
        "2026-03-29T01:00:00Z",
        "CEST 7200 true 2026-03-29T03:00:00+02:00",
    );
    check(
        "Europe/Paris",
        "2026-10-25T00:59:59Z",
        "CEST 7200 true 2026-10-25T02:59:59+02:00",
    );
    check(
        "Europe/Paris",
        "2026-10-25T01:00:00Z",
        "CET 3600 false 2026-10-25T02:00:00+01:00",
    );
    check(
        "America/New_York",
        "2026-11-01T05:59:59Z",
        "EDT -14400 true 2026-11-01T01:59:59-04:00",
    );
    check(
        "America/New_York",
        "2026-11-01T06:00:00Z",
        "EST -18000 false 2026-11-01T01:00:00-05:00",
    );
    check(
        "Australia/Lord_Howe",
        "2026-10-03T15:30:00Z",
        "+11 39600 true 2026-10-04T02:30:00+11:00",
    );
    check(
        "Asia/Kathmandu",
        "2026-01-01T00:00:00Z",
        "+0545 20700 false 2026-01-01T05:45:00+05:45",
    );
    check(
        "America/St_Johns",
        "2026-01-01T00:00:00Z",
        "NST -12600 false 2025-12-31T20:30:00-03:30",
    );
}

#[test]
fn a_name_wins_over_the_country_and_that_over_the_boundaries() {
    let zones = ZoneTable::load();
    let is = |place: &Location, id: &str, by: Basis| {
        assert_eq!(
            basis(&zones, place),
            Some((Some(id.to_owned()), by)),
            "{place:?}"
        );
    };
    let hanoi = lying(Some("VN"), 21.0278, 105.834);
    is(&hanoi, "Asia/Ho_Chi_Minh", Basis::Country);
    is(
        &lying(None, 21.0278, 105.834),
        "Asia/Bangkok",
        Basis::Boundaries,
    );
    is(
        &Location {
            zone: Some("Asia/Tokyo".to_owned()),
            ..hanoi.clone()
        },
        "Asia/Tokyo",
        Basis::Named,
    );
    is(
        &Location {
            zone: Some("asia/tokyo".to_owned()),
            ..hanoi.clone()
        },
        "Asia/Tokyo",
        Basis::Named,
    );
    for unknown in ["", "Asia/Hanoi", "../etc/passwd", "EST5EDT4"] {
        is(
            &Location {
                zone: Some(unknown.to_owned()),
                ..hanoi.clone()
            },
            "Asia/Ho_Chi_Minh",
            Basis::Country,
        );
    }
    is(
        &lying(Some("US"), 37.422, -122.085),
        "America/Los_Angeles",
        Basis::Boundaries,
    );
    is(
        &lying(Some("AU"), -33.8688, 151.209),
        "Australia/Sydney",
        Basis::Boundaries,
    );
    is(
        &lying(Some("US"), 21.3, -157.85),
        "Pacific/Honolulu",
        Basis::Boundaries,
    );
    is(
        &Location {
            country: Some("FR".to_owned()),
            ..Location::default()
        },
        "Europe/Paris",
        Basis::Country,
    );
}

#[test]
fn a_place_that_may_be_in_several_zones_or_is_none_has_no_zone() {
    let zones = ZoneTable::load();
    let basis = |place: &Location| basis(&zones, place);
    assert_eq!(
        basis(&Location {
            country: Some("US".to_owned()),
            ..Location::default()
        }),
        None
    );
    assert_eq!(
        basis(&Location {
            country: Some("vn".to_owned()),
            ..Location::default()
        }),
        None
    );
    for (latitude, longitude) in [
        (f64::NAN, 0.0),
        (91.0, 0.0),
        (0.0, -180.5),
        (f64::INFINITY, f64::NEG_INFINITY),
    ] {
        assert_eq!(basis(&lying(None, latitude, longitude)), None);
    }
}

#[test]
fn every_zone_of_the_tables_is_in_the_rules() {
    let zones = ZoneTable::load();
    assert_eq!(zones.single.len(), 216);
    for (country, zone) in &zones.single {
        assert!(
            country.len() == 2 && zones.rules.get(zone).is_ok(),
            "{country} {zone}"
        );
    }
    for zone in zones.boundaries.timezonenames() {
        assert!(zones.rules.get(zone).is_ok(), "{zone}");
    }
}
