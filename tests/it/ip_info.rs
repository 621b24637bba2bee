//! IP information: addresses of every form and range, databases in both schemas that the tests write, and files that are
//! damaged, missing or swapped while they serve.

mod asked;
pub(crate) mod databases;

use std::collections::HashMap;
use std::net::IpAddr;
use std::process::Command;

use ipnet::IpNet;
use mmdb_writer::IpVersion;
use regex_lite::Regex;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::support::{Answer, Options, Service, failure, workspace};
use databases::{BUILT, Databases};

pub(crate) async fn serve(config: String) -> Service {
    let manifest = Some(workspace().join("tests/programs/ip_info.toml"));
    Service::start(Options { config, manifest, ..Options::default() }).await
}

/// A text as a segment of a path.
fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}

pub(crate) async fn ask(service: &Service, ip: &str) -> Answer {
    service.post(&format!("/api/v1/ip-info/{}", encoded(ip)), &json!({})).await
}

/// The `data` of a 200, which is the same over MCP, and whose moving part is taken out once it was judged.
async fn told(service: &Service, ip: &str) -> Value {
    let answer = ask(service, ip).await;
    assert_eq!(answer.status, 200, "{ip}: {answer:?}");
    let mut data = answer.json()["data"].clone();
    let mut called = service.tool("lookup_ip_information", &json!({ "ip": ip })).await;
    assert_eq!(
        (&called["isError"], &called["structuredContent"]["success"]),
        (&json!(false), &json!(true)),
        "{called}"
    );
    let mut called = called["structuredContent"]["data"].take();
    let times = [data["timezone"]["localTime"].take(), called["timezone"]["localTime"].take()];
    for time in times.iter().filter(|time| !time.is_null()) {
        let form = Regex::new(r"^2[0-9]{3}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]([+-][0-9:]{5})$");
        let found = form.expect("a pattern").captures(time.as_str().expect("text")).map(|found| found[1].to_owned());
        assert_eq!(found.as_deref(), data["timezone"]["utcOffset"].as_str(), "{time}");
    }
    assert_eq!(data, called, "{ip}: the faces tell the same");
    data
}

#[tokio::test]
async fn the_nested_schema_is_told_whole() {
    let databases = Databases::new()
        .with("city", "GeoLite2 EULA", &[("city.mmdb", &databases::nested_city())])
        .with("asn", "CC BY 4.0", &[("asn.mmdb", &databases::asn())])
        .with("anonymous", "own", &[("anonymous.mmdb", &databases::anonymous())]);
    let service = serve(databases.config()).await;
    let mut data = told(&service, "89.160.20.112").await;
    let timezone = data["timezone"].take();
    assert_eq!(timezone["id"], "Europe/Stockholm");
    let summer = timezone["isDst"] == true;
    let expected = if summer { ("CEST", 7200, "+02:00") } else { ("CET", 3600, "+01:00") };
    let clock =
        (timezone["abbreviation"].as_str(), timezone["utcOffsetSeconds"].as_i64(), timezone["utcOffset"].as_str());
    assert_eq!(clock, (Some(expected.0), Some(expected.1), Some(expected.2)));
    let source = |name: &str, license: &str| json!({ "name": name, "license": license, "builtAt": BUILT });
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
    assert_eq!((&elsewhere["version"], &elsewhere["location"]["city"]), (&json!(6), &json!("Kathmandu")));
    assert_eq!(elsewhere["location"]["continent"], "Asia", "the letters say what the entry does not");
    let kathmandu = json!({
        "id": "Asia/Kathmandu", "abbreviation": "+0545", "utcOffsetSeconds": 20_700, "utcOffset": "+05:45",
        "isDst": false, "localTime": null,
    });
    assert_eq!(elsewhere["timezone"], kathmandu);
    assert_eq!(elsewhere["security"]["isAnonymous"], false, "an address that is not listed hides nobody");
}

#[tokio::test]
async fn the_flat_schema_is_told_as_far_as_it_goes_with_a_file_for_each_family() {
    let cities: [(&str, &[u8]); 2] = [("4.mmdb", &databases::flat_city_v4()), ("6.mmdb", &databases::flat_city_v6())];
    let databases = Databases::new()
        .with("city", "CC BY 4.0", &[cities[1], cities[0]])
        .with("country", "CC0", &[("country.mmdb", &databases::country())])
        .with("asn", "CC BY 4.0", &[("asn.mmdb", &databases::asn())]);
    let service = serve(databases.config()).await;

    let hanoi = told(&service, "113.161.1.1").await;
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
    assert_eq!(hanoi["timezone"], clock, "the country's only zone, and not the one of the boundaries");
    assert_eq!(hanoi["security"], Value::Null);
    assert_eq!(hanoi["sources"].as_array().map(Vec::len), Some(2), "the country was not asked for");

    let google = told(&service, "8.8.8.8").await;
    assert_eq!(google["timezone"]["id"], "America/Los_Angeles", "of several zones the one that the place lies in");
    assert_eq!((&google["network"]["asn"], &google["network"]["asName"]), (&json!(15169), &json!("Google LLC")));
    assert_eq!((&google["location"]["latitude"], &google["location"]["longitude"]), (&json!(37.422), &json!(-122.085)));
    let sources = google["sources"].as_array().expect("sources");
    assert_eq!(
        (sources.len(), &sources[2]["license"]),
        (3, &json!("ODbL-1.0")),
        "whoever drew the boundaries is credited"
    );

    let six = told(&service, "2606:4700::1111").await;
    assert_eq!((&six["location"]["city"], &six["network"]["cidr"]), (&json!("Montreal"), &json!("2606:4700::/32")));
    let sydney = told(&service, "1.1.1.1").await;
    assert_eq!((&sydney["location"]["country"], &sydney["location"]["city"]), (&json!("Australia"), &Value::Null));
    assert_eq!(sydney["timezone"]["id"], Value::Null, "nothing tells which of the country's zones");
    let denver = told(&service, "8.8.4.4").await;
    let location = json!({
        "continentCode": "NA", "continent": "North America", "countryCode": "US", "country": "United States",
        "isEu": false, "regionCode": null, "region": "Colorado", "city": "Denver", "postalCode": null,
        "latitude": 39.7392, "longitude": -104.9903, "accuracyRadiusKm": null,
    });
    assert_eq!(denver["location"], location, "the country's database adds to what the city's says");
    assert_eq!(
        (&denver["timezone"]["id"], &denver["network"]["cidr"]),
        (&json!("America/Denver"), &json!("8.8.4.0/24"))
    );
    let paris = told(&service, "2a01::1").await;
    assert_eq!((&paris["location"]["isEu"], &paris["timezone"]["id"]), (&json!(true), &json!("Europe/Paris")));
}

#[tokio::test]
async fn an_address_that_no_database_has_is_an_answer_of_nulls() {
    let databases = Databases::new().with("country", "CC0", &[("country.mmdb", &databases::country())]);
    let service = serve(databases.config()).await;
    let data = told(&service, "203.1.1.1").await;
    for block in ["location", "network", "timezone"] {
        let fields = data[block].as_object().expect("an object");
        assert!(fields.len() >= 6 && fields.values().all(Value::is_null), "{data}");
    }
    assert_eq!((&data["ip"], &data["type"], &data["security"]), (&json!("203.1.1.1"), &json!("public"), &Value::Null));
    let credited = json!([{ "name": "country ipvAll", "license": "CC0", "builtAt": BUILT }]);
    assert_eq!(data["sources"], credited, "that it is not there is known from here");
}

/// The service that all share which only want an answer or none.
async fn shared() -> &'static Service {
    static SHARED: OnceCell<(Service, Databases)> = OnceCell::const_new();
    let start = async || {
        // Every network is there, so that what is answered with nulls was not refused.
        let all = databases::file("all", IpVersion::V6, &[("::/0", json!({ "country_code": "VN" }))]);
        let databases = Databases::new().with("city", "own", &[("all.mmdb", &all)]);
        (serve(databases.config()).await, databases)
    };
    &SHARED.get_or_init(start).await.0
}

/// The address that is answered for, or the message of the refusal, which names the field on both faces.
async fn verdict(ip: &str) -> Result<String, String> {
    let service = shared().await;
    let answer = ask(service, ip).await;
    if answer.status == 200 {
        return Ok(answer.json()["data"]["ip"].as_str().expect("an address").to_owned());
    }
    assert_eq!(answer.refusal(), (400, "VALIDATION_ERROR".to_owned()), "{ip}");
    assert_eq!(answer.json()["data"]["field"], "ip", "{ip}");
    let called = service.tool("lookup_ip_information", &json!({ "ip": ip })).await;
    let (code, envelope) = failure(&called);
    assert_eq!((code.as_str(), &envelope["data"]["field"]), ("VALIDATION_ERROR", &json!("ip")), "{ip}");
    Err(answer.json()["error"]["message"].as_str().expect("a message").to_owned())
}

/// The rows of IANA's registries, and what stands beside them: prefix, whether it is global, name.
fn special() -> Vec<(IpNet, bool, String)> {
    serde_json::from_str(include_str!("ip_info/special.json")).expect("a table")
}

/// Whether the most special of the rows that have it calls an address global; IPv6 that is not handed out is not.
fn expected(rows: &[(IpNet, bool, String)], address: IpAddr) -> bool {
    let inner = rows.iter().filter(|(row, ..)| row.contains(&address)).max_by_key(|(row, ..)| row.prefix_len());
    match (inner, address) {
        (Some((_, global, _)), _) => *global,
        (None, IpAddr::V4(_)) => true,
        (None, IpAddr::V6(v6)) => v6.segments()[0] & 0xe000 == 0x2000,
    }
}

fn neighbours(row: IpNet) -> Vec<IpAddr> {
    let step = |address: IpAddr, by: i128| match address {
        IpAddr::V4(v4) => u32::try_from(i128::from(v4.to_bits()) + by)
            .ok()
            .map(|bits| IpAddr::from(std::net::Ipv4Addr::from_bits(bits))),
        IpAddr::V6(v6) if by < 0 => v6.to_bits().checked_sub(1).map(|bits| std::net::Ipv6Addr::from_bits(bits).into()),
        IpAddr::V6(v6) => v6.to_bits().checked_add(1).map(|bits| std::net::Ipv6Addr::from_bits(bits).into()),
    };
    [step(row.network(), -1), step(row.broadcast(), 1)].into_iter().flatten().collect()
}

#[tokio::test]
async fn special_ranges_are_refused_before_any_database_and_their_neighbours_are_not() {
    let rows = special();
    let mut seen = HashMap::new();
    for (row, ..) in &rows {
        // What only stands for an IPv4 address is judged as that one: see below.
        let carries = ["::ffff:0:0/96", "64:ff9b::/96", "2002::/16"].contains(&row.to_string().as_str());
        let ends = [row.network(), row.broadcast()].into_iter().filter(|_| !carries);
        for address in ends.chain(neighbours(*row)) {
            let is_within = |prefix: &str| prefix.parse::<IpNet>().is_ok_and(|prefix| prefix.contains(&address));
            if is_within("::ffff:0:0/96") || is_within("64:ff9b::/96") || is_within("2002::/16") {
                continue;
            }
            let told = verdict(&address.to_string()).await;
            assert_eq!(told.is_ok(), expected(&rows, address), "{address}: {told:?}");
            seen.insert(address, told);
        }
    }
    let refused = seen.values().filter(|told| told.is_err()).count();
    assert!(seen.len() > 150 && refused > 80, "{} addresses, {refused} refused", seen.len());
    let told = seen[&"10.0.0.0".parse::<IpAddr>().expect("an address")].clone();
    assert_eq!(told, Err("`ip` must be a public address; 10.0.0.0 is of a private network".to_owned()));
}

#[tokio::test]
async fn an_address_that_stands_for_another_is_looked_up_as_that_one() {
    for (text, expected) in [
        ("::ffff:8.8.8.8", Ok("8.8.8.8")),
        ("::ffff:808:808", Ok("8.8.8.8")),
        ("64:ff9b::8.8.8.8", Ok("8.8.8.8")),
        ("2002:808:808::1", Ok("8.8.8.8")),
        ("::ffff:10.0.0.1", Err("10.0.0.1 is of a private network")),
        ("::FFFF:127.0.0.1", Err("127.0.0.1 is loopback")),
        ("64:ff9b::a9fe:a9fe", Err("169.254.169.254 is link-local")),
        ("2002:c0a8:101::", Err("192.168.1.1 is of a private network")),
        ("64:ff9b:1::808:808", Err("is a locally translated IPv4 address")),
        ("::8.8.8.8", Err("is a compatible IPv4 address")),
        ("::ffff:0:8.8.8.8", Err("is a translated IPv4 address")),
    ] {
        match (verdict(text).await, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
            (Err(found), Err(expected)) => assert!(found.ends_with(expected), "{text}: {found}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }
}

#[tokio::test]
async fn an_address_is_a_literal_by_itself_and_is_told_in_one_spelling() {
    for (text, expected) in [
        ("8.8.8.8", "8.8.8.8"),
        ("2606:4700:0:0:0:0:0:1111", "2606:4700::1111"),
        ("2606:4700:0000:0000:0000:0000:0000:1111", "2606:4700::1111"),
        ("2A02:00:00::0AbC", "2a02::abc"),
        ("2001:4860:0:2001::68", "2001:4860:0:2001::68"),
        ("2606:4700::8.8.8.8", "2606:4700::808:808"),
    ] {
        assert_eq!(verdict(text).await.as_deref(), Ok(expected), "{text}");
    }
    let none = [
        "8.8.8",
        "8.8.8.8.8",
        "8.8.8.256",
        "08.8.8.8",
        "8.8.8.08",
        "0x8.8.8.8",
        "134744072",
        "8.8.8.8:53",
        "8.8.8.8/32",
        "8.8.8.8.",
        " 8.8.8.8",
        "8.8.8.8 ",
        "8.8.8.-8",
        "８.８.８.８",
        "[2606:4700::1111]",
        "[2606:4700::1111]:443",
        "2606:4700::1111%eth0",
        "fe80::1%1",
        "2606:4700::1111/64",
        "2606:4700:::1111",
        "2606:4700::1::1",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "2606:47000::1",
        "g::1",
        ":",
        "::ffff:08.8.8.8",
        "localhost",
        "example.com",
        "%",
        "8.8.8.8\u{0}",
        "8.8.8.8\n",
        "xx",
    ];
    for text in none {
        let told = verdict(text).await.expect_err(text);
        assert!(
            told.starts_with("`ip` must be an IPv4 or IPv6 address by itself") || told.contains("`ip`"),
            "{text}: {told}"
        );
    }
    for text in ["1", &"1".repeat(65), &format!("2606:4700::{}", "0".repeat(2000))] {
        let answer = ask(shared().await, text).await;
        assert_eq!((answer.refusal().0, &answer.json()["data"]["field"]), (400, &json!("ip")), "{text}");
    }
}

#[tokio::test]
async fn the_body_is_empty_or_an_empty_object() {
    let service = shared().await;
    let path = "/api/v1/ip-info/8.8.8.8";
    let empty = Service::send(service.request(Method::POST, path)).await;
    assert_eq!(empty.status, 200, "{empty:?}");
    let unknown = service.post(path, &json!({ "lang": "en" })).await;
    assert_eq!((unknown.refusal().0, &unknown.json()["data"]["field"]), (400, &json!("lang")));
    let twice = service.post(path, &json!({ "ip": "1.1.1.1" })).await;
    assert_eq!(twice.refusal(), (400, "VALIDATION_ERROR".to_owned()));
    assert_eq!(service.post_raw(path, "[]").await.refusal().0, 400);
    assert_eq!(service.post_raw(path, "{").await.refusal().0, 400);
    assert_eq!(service.post_raw(path, " ".repeat(20_000)).await.refusal().0, 413);
    assert_eq!(service.get(path).await.refusal(), (405, "METHOD_NOT_ALLOWED".to_owned()));
    let bare = Service::send(service.bare(Method::POST, path)).await;
    assert_eq!(bare.refusal(), (401, "UNAUTHORIZED".to_owned()));
    let other = service.issue(&["--scope", "bank-qr:banks"]);
    let forbidden = Service::send(service.bare(Method::POST, path).bearer_auth(other)).await;
    assert_eq!(forbidden.refusal(), (403, "FORBIDDEN".to_owned()));
}

async fn unavailable(service: &Service) {
    let answer = ask(service, "8.8.8.8").await;
    assert_eq!(answer.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
    let message = answer.json()["error"]["message"].as_str().expect("a message").to_owned();
    assert!(message.contains("`switchbay data fetch`"), "{message}");
    let (code, envelope) = failure(&service.tool("lookup_ip_information", &json!({ "ip": "8.8.8.8" })).await);
    assert_eq!((code.as_str(), envelope["error"]["message"].as_str()), ("SERVICE_UNAVAILABLE", Some(message.as_str())));
}

fn refusals(lines: &[Value]) -> Vec<&Value> {
    let is_one =
        |line: &&Value| line["message"].as_str().is_some_and(|text| text.starts_with("an IP database was refused"));
    lines.iter().filter(is_one).collect()
}

#[tokio::test]
async fn without_a_database_the_command_that_gets_one_is_named() {
    let service = serve(String::new()).await;
    unavailable(&service).await;
    assert_eq!(ask(&service, "10.0.0.1").await.refusal().0, 400, "what an address is needs no database");
    assert_eq!(ask(&service, "10.0.0.01").await.refusal().0, 400);
}

#[tokio::test]
async fn files_that_cannot_be_used_are_refused_by_their_reason_and_the_rest_serves() {
    let whole = databases::nested_city();
    let databases = Databases::new().with("city", "own", &[("cut.mmdb", &whole[..whole.len() / 2])]).with(
        "anonymous",
        "own",
        &[("text.mmdb", b"no database")],
    );
    std::fs::create_dir(databases.path("folder.mmdb")).expect("a folder");
    let missing = format!(
        "asn = {{ files = [{:?}] }}\nother = {{ files = [{:?}] }}\n",
        databases.path("missing.mmdb"),
        databases.path("folder.mmdb")
    );
    let service = serve(databases.config() + &missing).await;
    let lines = service.log_until(|lines| refusals(lines).len() >= 4);
    for (name, reason) in [
        ("city", "cut.mmdb is no database that can be used"),
        ("anonymous", "text.mmdb is no database that can be used"),
        ("asn", "missing.mmdb: No such file"),
        ("other", "folder.mmdb is no file"),
    ] {
        let told =
            refusals(&lines).into_iter().find(|line| line["name"] == name).unwrap_or_else(|| panic!("{lines:?}"));
        assert!(told["error"].as_str().is_some_and(|error| error.contains(reason)), "{told}");
        assert_eq!(told["serves_on"], false);
    }
    unavailable(&service).await;
    databases.put("missing.mmdb", &databases::asn());
    service.log_until(|lines| lines.iter().any(|line| line["message"] == "an IP database serves"));
    assert_eq!(told(&service, "8.8.8.8").await["network"]["asn"], 15169, "a file that comes is taken");
}

fn city(name: &str) -> Vec<u8> {
    databases::file("one", IpVersion::V6, &[("8.0.0.0/8", json!({ "city": name, "country_code": "US" }))])
}

#[tokio::test]
async fn a_file_is_swapped_under_load_and_a_broken_one_changes_nothing() {
    let databases = Databases::new().with("city", "own", &[("city.mmdb", &city("First"))]);
    let service = serve(databases.config()).await;
    let named = async || told(&service, "8.8.8.8").await["location"]["city"].as_str().map(str::to_owned);
    let served = |lines: &[Value]| lines.iter().filter(|line| line["message"] == "an IP database serves").count();
    assert_eq!(named().await.as_deref(), Some("First"));

    databases.put("city.mmdb", &city("Second"));
    service.log_until(|lines| served(lines) == 2);
    assert_eq!(named().await.as_deref(), Some("Second"));

    // Cut in place, under what serves: a file that were mapped itself would end the process here.
    let path = databases.path("city.mmdb");
    std::fs::OpenOptions::new().write(true).open(&path).expect("it is there").set_len(100).expect("it is cut");
    let lines = service.log_until(|lines| !refusals(lines).is_empty());
    assert_eq!(refusals(&lines)[0]["serves_on"], true);
    assert_eq!(named().await.as_deref(), Some("Second"));
    std::fs::remove_file(&path).expect("it is there");
    service.log_until(|lines| refusals(lines).len() >= 2);
    assert_eq!(named().await.as_deref(), Some("Second"));

    databases.put("city.mmdb", &city("Third"));
    service.log_until(|lines| served(lines) == 3);
    assert_eq!(named().await.as_deref(), Some("Third"));
    // A signal has all looked at again; what is as it was is not read again.
    let before = refusals(&service.log_until(|_| true)).len();
    std::fs::remove_file(&path).expect("it is there");
    let sent = Command::new("kill").args(["-HUP", &service.pid().to_string()]).status();
    assert!(sent.expect("kill runs").success());
    service.log_until(|lines| refusals(lines).len() > before);
    assert_eq!(named().await.as_deref(), Some("Third"));
}

#[tokio::test]
async fn databases_that_are_named_wrongly_keep_the_process_from_starting() {
    let manifest = workspace().join("tests/programs/ip_info.toml");
    for (setting, expected) in [
        ("City = { files = [\"a\"] }", "`ip_databases` is City; it must be by names of a-z"),
        ("city = { files = [] }", "`ip_databases` is city with 0 files; it must be one file each"),
        ("city = { files = [\"a\", \"b\", \"c\"] }", "`ip_databases` is city with 3 files"),
        ("city = { file = \"a\" }", "unknown field `file`"),
        ("city = \"a\"", "line 2, column 8"),
    ] {
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let config = folder.path().join("config.toml");
        std::fs::write(&config, format!("[ip_databases]\n{setting}")).expect("it is written");
        let files = ["--config", &config.to_string_lossy(), "--manifest", &manifest.to_string_lossy()];
        let told = crate::startup::failure_in(folder.path(), &files).await;
        assert!(told.contains(expected), "{setting}: {told}");
    }
}
