//! Where an address is, from an entry of either schema: nested with names by language (GeoIP2 and its kin), or flat
//! (ip-location-db). Pure.

use serde::Serialize;
use switchbay_sdk::lenient::LooseJson;
use switchbay_sdk::schemars::{self, JsonSchema};

use crate::countries;

/// Where an address is, as far as the databases know.
#[derive(Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Location {
    /// The two-letter continent code: AF, AN, AS, EU, NA, OC or SA.
    pub(crate) continent_code: Option<String>,
    /// The continent, in English.
    pub(crate) continent: Option<String>,
    /// The two-letter country code (ISO 3166-1).
    pub(crate) country_code: Option<String>,
    /// The country, in English.
    pub(crate) country: Option<String>,
    /// Whether the country is in the European Union.
    pub(crate) is_eu: Option<bool>,
    /// The region code (ISO 3166-2, without the country prefix).
    pub(crate) region_code: Option<String>,
    /// The region.
    pub(crate) region: Option<String>,
    /// The city.
    pub(crate) city: Option<String>,
    /// The postal code.
    pub(crate) postal_code: Option<String>,
    /// The latitude in degrees; north is positive. It locates an area, not a building.
    #[schemars(range(min = -90, max = 90))]
    pub(crate) latitude: Option<f64>,
    /// The longitude in degrees; east is positive.
    #[schemars(range(min = -180, max = 180))]
    pub(crate) longitude: Option<f64>,
    /// The radius around the coordinates that probably contains the address, in kilometres.
    pub(crate) accuracy_radius_km: Option<u32>,
}

impl Location {
    pub(crate) fn of(entry: &LooseJson) -> Self {
        let country_code = entry
            .text(&[&["country", "iso_code"], &["country_code"]])
            .map(|code| code.to_uppercase());
        let known = country_code.as_deref().and_then(countries::find);
        let continent_code = entry.text(&[&["continent", "code"], &["continent_code"]]);
        let continent_code =
            continent_code.or_else(|| known.map(|country| country.continent_code.to_owned()));
        let continent = entry.text(&[&["continent", "names", "en"]]);
        let in_eu = entry.is_any(&[&["country", "is_in_european_union"]]);
        let (latitude, longitude) = coordinates(entry).unzip();
        Self {
            continent: continent.or_else(|| {
                continent_code
                    .as_deref()
                    .and_then(countries::continent)
                    .map(str::to_owned)
            }),
            continent_code,
            country: entry
                .text(&[&["country", "names", "en"], &["country_name"]])
                .or_else(|| known.map(|country| country.name.to_owned())),
            is_eu: if in_eu {
                Some(true)
            } else {
                known.map(|country| country.is_eu)
            },
            country_code,
            region_code: entry.text(&[&["subdivisions", "0", "iso_code"]]),
            region: entry.text(&[&["subdivisions", "0", "names", "en"], &["state1"]]),
            city: entry.text(&[&["city", "names", "en"], &["city"]]),
            postal_code: entry.text(&[&["postal", "code"], &["postcode"]]),
            latitude,
            longitude,
            accuracy_radius_km: entry.count(&[&["location", "accuracy_radius"]]),
        }
    }

    /// The same in the country that another database names, where this one names none.
    pub(crate) fn in_country(self, country: Self) -> Self {
        let names = [
            &self.region_code,
            &self.region,
            &self.city,
            &self.postal_code,
        ];
        let says_where = self.latitude.is_some() || names.into_iter().any(Option::is_some);
        match country.country_code {
            None => self,
            Some(_) if !says_where => country,
            Some(country_code) => Self {
                continent_code: country.continent_code,
                continent: country.continent,
                country_code: Some(country_code),
                country: country.country,
                is_eu: country.is_eu,
                ..self
            },
        }
    }
}

/// Both or none, and on the globe.
fn coordinates(entry: &LooseJson) -> Option<(f64, f64)> {
    let latitude = entry.number(&[&["location", "latitude"], &["latitude"]])?;
    let longitude = entry.number(&[&["location", "longitude"], &["longitude"]])?;
    let is_there = (-90.0..=90.0).contains(&latitude) && (-180.0..=180.0).contains(&longitude);
    is_there.then_some((latitude, longitude))
}

/// The time zone that the entry names.
pub(crate) fn zone(entry: &LooseJson) -> Option<String> {
    entry.text(&[&["location", "time_zone"], &["timezone"]])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(entry: &Value) -> Value {
        let entry = LooseJson::read(Some(&entry.to_string()));
        serde_json::to_value(Location::of(&entry)).expect("JSON")
    }

    #[test]
    fn the_nested_schema_says_all() {
        let nested = json!({
            "city": { "geoname_id": 1, "names": { "de": "Linköping", "en": "Linköping" } },
            "continent": { "code": "EU", "names": { "en": "Europe" } },
            "country": { "iso_code": "SE", "is_in_european_union": true, "names": { "en": "Sweden" } },
            "location": { "accuracy_radius": 76, "latitude": 58.4167, "longitude": 15.6167, "time_zone": "Europe/Stockholm" },
            "postal": { "code": "581 82" },
            "subdivisions": [{ "iso_code": "E", "names": { "en": "Östergötland County" } }, { "iso_code": "X" }],
        });
        let expected = json!({
            "continentCode": "EU", "continent": "Europe", "countryCode": "SE", "country": "Sweden", "isEu": true,
            "regionCode": "E", "region": "Östergötland County", "city": "Linköping", "postalCode": "581 82",
            "latitude": 58.4167, "longitude": 15.6167, "accuracyRadiusKm": 76,
        });
        assert_eq!(of(&nested), expected);
        assert_eq!(
            zone(&LooseJson::read(Some(&nested.to_string()))).as_deref(),
            Some("Europe/Stockholm")
        );
    }

    #[test]
    fn the_flat_schema_says_less_and_the_letters_say_the_rest() {
        let flat = json!({
            "city": "Hanoi", "country_code": "VN", "latitude": "21.0278", "longitude": 105.834, "postcode": "",
            "state1": "Hanoi", "state2": "", "timezone": "",
        });
        let expected = json!({
            "continentCode": "AS", "continent": "Asia", "countryCode": "VN", "country": "Vietnam", "isEu": false,
            "regionCode": null, "region": "Hanoi", "city": "Hanoi", "postalCode": null,
            "latitude": 21.0278, "longitude": 105.834, "accuracyRadiusKm": null,
        });
        assert_eq!(of(&flat), expected);
        assert_eq!(zone(&LooseJson::read(Some(&flat.to_string()))), None);
    }

    #[test]
    fn what_is_of_another_form_is_nothing() {
        for odd in [
            json!({}),
            json!([]),
            json!("text"),
            json!({ "city": 7, "country": [], "location": "here" }),
        ] {
            assert!(
                of(&odd)
                    .as_object()
                    .expect("an object")
                    .values()
                    .all(Value::is_null),
                "{odd}"
            );
        }
        let away = json!({ "latitude": 91, "longitude": 0, "country_code": "zz" });
        assert_eq!(
            (&of(&away)["latitude"], &of(&away)["countryCode"]),
            (&Value::Null, &json!("ZZ"))
        );
        assert_eq!(
            (&of(&away)["country"], &of(&away)["isEu"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(
            Location::of(&LooseJson::read(None)),
            Location::of(&LooseJson::read(Some("{")))
        );
    }
}
