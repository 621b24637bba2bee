//! What databases of both schemas say: each is told as far as it goes, and what none has is null.

use serde_json::{Value, json};

use super::databases::{self, BUILT, Databases};
use super::{serve, told};
use crate::support::Service;

/// Stockholm's time, in summer or in winter.
fn check_swedish_clock(timezone: &Value) {
    assert_eq!(timezone["id"], "Europe/Stockholm");
    let summer = timezone["isDst"] == true;
    let expected = if summer {
        ("CEST", 7200, "+02:00")
    } else {
        ("CET", 3600, "+01:00")
    };
    let clock = (
        timezone["abbreviation"].as_str(),
        timezone["utcOffsetSeconds"].as_i64(),
        timezone["utcOffset"].as_str(),
    );
    assert_eq!(
        clock,
        (Some(expected.0), Some(expected.1), Some(expected.2))
    );
}

#[tokio::test]
async fn the_nested_schema_is_told_whole() {
    let databases = Databases::new()
        .with(
            "city",
            "GeoLite2 EULA",
            &[("city.mmdb", &databases::nested_city())],
        )
        .with("asn", "CC BY 4.0", &[("asn.mmdb", &databases::asn())])
        .with(
            "anonymous",
            "own",
            &[("anonymous.mmdb", &databases::anonymous())],
        );
    let service = serve(databases.config()).await;
    let mut data = told(&service, "89.160.20.112").await;
    let timezone = data["timezone"].take();
    check_swedish_clock(&timezone);
    let source =
        |name: &str, license: &str| json!({ "name": name, "license": license, "builtAt": BUILT });
    let expected = json!({
        "ip": "89.160.20.112", "version": 4, "type": "public",
        "location": {
            "continentCode": "EU", "continent": "Europe", "countryCode": "SE", "country": "Sweden", "isEu": true,
            "regionCode": "E", "region": "Östergötland County", "city": "Linköping", "postalCode": "581 82",
            "latitude": 58.4167, "longitude": 15.6167, "accuracyRadiusKm": 76,
        },
        "network": {
            "cidr": "89.160.20.0/24", "asn": null, "asName": null, "asDomain": null, "isp": null, "organization": null,
            "hostname": null,
        },
        "timezone": null,
        "security": { "isAnonymous": true, "isVpn": true, "isProxy": false, "isTor": false, "isHosting": true },
        "sources": [
            source("Nested-City", "GeoLite2 EULA"), source("asn", "CC BY 4.0"), source("Anonymous", "own"),
        ],
        "meta": { "cached": false },
    });
    assert_eq!(data, expected);
    let telstra = told(&service, "1.128.0.0").await;
    let network = json!({
        "cidr": "1.128.0.0/11", "asn": 1221, "asName": "Telstra Pty Ltd", "asDomain": null, "isp": "Telstra Internet",
        "organization": "Telstra Internet", "hostname": null,
    });
    assert_eq!(telstra["network"], network);
    let elsewhere = told(&service, "2001:218::1").await;
    assert_eq!(
        (&elsewhere["version"], &elsewhere["location"]["city"]),
        (&json!(6), &json!("Kathmandu"))
    );
    assert_eq!(
        elsewhere["location"]["continent"], "Asia",
        "the letters say what the entry does not"
    );
    let kathmandu = json!({
        "id": "Asia/Kathmandu", "abbreviation": "+0545", "utcOffsetSeconds": 20_700, "utcOffset": "+05:45",
        "isDst": false, "localTime": null,
    });
    assert_eq!(elsewhere["timezone"], kathmandu);
    assert_eq!(
        elsewhere["security"]["isAnonymous"], false,
        "an address that is not listed hides nobody"
    );
}

/// A country of one zone: its place, network and clock, from two databases alone.
async fn check_hanoi(service: &Service) {
    let hanoi = told(service, "113.161.1.1").await;
    let location = json!({
        "continentCode": "AS", "continent": "Asia", "countryCode": "VN", "country": "Vietnam", "isEu": false,
        "regionCode": null, "region": "Hanoi", "city": "Hanoi", "postalCode": null, "latitude": 21.0278,
        "longitude": 105.834, "accuracyRadiusKm": null,
    });
    assert_eq!(hanoi["location"], location);
    assert_eq!(hanoi["network"]["cidr"], "113.161.0.0/22");
    let clock = json!({
        "id": "Asia/Ho_Chi_Minh", "abbreviation": "+07", "utcOffsetSeconds": 25_200, "utcOffset": "+07:00",
        "isDst": false, "localTime": null,
    });
    assert_eq!(
        hanoi["timezone"], clock,
        "the country's only zone, and not the one of the boundaries"
    );
    assert_eq!(hanoi["security"], Value::Null);
    assert_eq!(
        hanoi["sources"].as_array().map(Vec::len),
        Some(2),
        "the country was not asked for"
    );
}

#[tokio::test]
async fn the_flat_schema_is_told_as_far_as_it_goes_with_a_file_for_each_family() {
    let cities: [(&str, &[u8]); 2] = [
        ("4.mmdb", &databases::flat_city_v4()),
        ("6.mmdb", &databases::flat_city_v6()),
    ];
    let databases = Databases::new()
        .with("city", "CC BY 4.0", &[cities[1], cities[0]])
        .with("country", "CC0", &[("country.mmdb", &databases::country())])
        .with("asn", "CC BY 4.0", &[("asn.mmdb", &databases::asn())]);
    let service = serve(databases.config()).await;

    check_hanoi(&service).await;

    let google = told(&service, "8.8.8.8").await;
    assert_eq!(
        google["timezone"]["id"], "America/Los_Angeles",
        "of several zones the one that the place lies in"
    );
    assert_eq!(
        (&google["network"]["asn"], &google["network"]["asName"]),
        (&json!(15169), &json!("Google LLC"))
    );
    assert_eq!(
        (
            &google["location"]["latitude"],
            &google["location"]["longitude"]
        ),
        (&json!(37.422), &json!(-122.085))
    );
    let sources = google["sources"].as_array().expect("sources");
    assert_eq!(
        (sources.len(), &sources[2]["license"]),
        (3, &json!("ODbL-1.0")),
        "whoever drew the boundaries is credited"
    );

    let six = told(&service, "2606:4700::1111").await;
    assert_eq!(
        (&six["location"]["city"], &six["network"]["cidr"]),
        (&json!("Montreal"), &json!("2606:4700::/32"))
    );
    let sydney = told(&service, "1.1.1.1").await;
    assert_eq!(
        (&sydney["location"]["country"], &sydney["location"]["city"]),
        (&json!("Australia"), &Value::Null)
    );
    assert_eq!(
        sydney["timezone"]["id"],
        Value::Null,
        "nothing tells which of the country's zones"
    );
    let denver = told(&service, "8.8.4.4").await;
    let location = json!({
        "continentCode": "NA", "continent": "North America", "countryCode": "US", "country": "United States",
        "isEu": false, "regionCode": null, "region": "Colorado", "city": "Denver", "postalCode": null,
        "latitude": 39.7392, "longitude": -104.9903, "accuracyRadiusKm": null,
    });
    assert_eq!(
        denver["location"], location,
        "the country's database adds to what the city's says"
    );
    assert_eq!(
        (&denver["timezone"]["id"], &denver["network"]["cidr"]),
        (&json!("America/Denver"), &json!("8.8.4.0/24"))
    );
    let paris = told(&service, "2a01::1").await;
    assert_eq!(
        (&paris["location"]["isEu"], &paris["timezone"]["id"]),
        (&json!(true), &json!("Europe/Paris"))
    );
}

#[tokio::test]
async fn an_address_that_no_database_has_is_an_answer_of_nulls() {
    let databases =
        Databases::new().with("country", "CC0", &[("country.mmdb", &databases::country())]);
    let service = serve(databases.config()).await;
    let data = told(&service, "203.1.1.1").await;
    for block in ["location", "network", "timezone"] {
        let fields = data[block].as_object().expect("an object");
        assert!(
            fields.len() >= 6 && fields.values().all(Value::is_null),
            "{data}"
        );
    }
    assert_eq!(
        (&data["ip"], &data["type"], &data["security"]),
        (&json!("203.1.1.1"), &json!("public"), &Value::Null)
    );
    let credited = json!([{ "name": "country ipvAll", "license": "CC0", "builtAt": BUILT }]);
    assert_eq!(
        data["sources"], credited,
        "that it is not there is known from here"
    );
}
